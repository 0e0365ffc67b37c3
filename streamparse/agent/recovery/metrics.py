"""Metrics over dialogues (A12). Every rate says what it is counted out of; turns that were cut are among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Final

from streamparse.agent.recovery.classes import End, TurnClass
from streamparse.agent.recovery.rates import Metrics, Rate, rate
from streamparse.agent.recovery.report import Dialogue, Report, TurnReport
from streamparse.decoding.roster import PROMISES, judged

_DIALOGUES: Final = "dialogues"
_DUE: Final = "turns in which a call was due, cut ones included"
_FOREIGN: Final = (TurnClass.INVENTED_TOOL, TurnClass.FOREIGN_TOOL)


def measure(dialogues: Iterable[Dialogue], unmeasured: int = 0) -> Metrics:
    """The metrics of these dialogues."""
    dialogues = list(dialogues)
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    fixed_at = [number for dialogue in dialogues if (number := _fixed_at(dialogue)) is not None]
    return Metrics(
        len(dialogues),
        len(turns),
        unmeasured,
        tuple(_rates(dialogues, turns, fixed_at)),
        _counted(turn.turn_class for turn in turns),
        _counted(turn.level for turn in turns if turn.level is not None),
        _counted(dialogue.end or "not over" for dialogue in dialogues),
        _counted(str(number) for number in sorted(fixed_at)),
        float(median(fixed_at)) if fixed_at else None,
    )


def measure_reports(reports: Iterable[Report]) -> Metrics:
    """The metrics of the dialogues of all these reports together."""
    reports = list(reports)
    dialogues = [dialogue for report in reports for dialogue in report.dialogues]
    return measure(dialogues, sum(len(report.unmeasured) for report in reports))


def _rates(dialogues: Sequence[Dialogue], turns: Sequence[TurnReport], fixed_at: Sequence[int]) -> list[Rate]:
    due = [turn for turn in turns if turn.due == "call"]
    answers = [turn for turn in turns if turn.due == "answer"]
    promised = [turn for turn in due if judged(turn.finish_reason) in PROMISES]
    first_answers = [answer for dialogue in dialogues if (answer := _first_answer(dialogue)) is not None]
    used = sum(turn.turn_class is TurnClass.USED for turn in first_answers)

    def share(
        name: str, holds: Callable[[TurnReport], bool], among: Sequence[TurnReport] = due, of: str = _DUE
    ) -> Rate:
        return rate(name, sum(map(holds, among)), len(among), of)

    return [
        rate("recovered", sum(each.end is End.RECOVERED for each in dialogues), len(dialogues), _DIALOGUES),
        rate("fix@1", sum(number == 1 for number in fixed_at), len(dialogues), _DIALOGUES),
        rate("fix@k, k the limit", len(fixed_at), len(dialogues), _DIALOGUES),
        share("right fields kept", lambda turn: turn.pins_kept is True),
        share("tool kept", lambda turn: turn.tool_kept),
        share("repeats the error", lambda turn: turn.repeats),
        share("foreign or invented tool", lambda turn: turn.turn_class in _FOREIGN),
        share("unfinished", lambda turn: turn.turn_class is TurnClass.UNFINISHED),
        share("cut", lambda turn: turn.cut),
        share("cut", lambda turn: turn.cut, answers, "turns in which an answer was due"),
        share("mislabelled", lambda turn: turn.mislabelled),
        share("valid by the schema", lambda turn: turn.valid is True),
        share("valid by the schema", lambda turn: turn.valid is True, promised, "turns whose finish reason says calls"),
        rate("answer uses the result", used, len(first_answers), "first answers after a fixed call"),
        rate("answer uses the result", used, len(dialogues), _DIALOGUES),
    ]


def _fixed_at(dialogue: Dialogue) -> int | None:
    return next((turn.number for turn in dialogue.turns if turn.turn_class is TurnClass.FIXED), None)


def _first_answer(dialogue: Dialogue) -> TurnReport | None:
    return next((turn for turn in dialogue.turns if turn.due == "answer"), None)


def _counted(words: Iterable[str]) -> dict[str, int]:
    """How often each comes; in the order of the words, so that equal reports are equal texts."""
    return dict(sorted(Counter(map(str, words)).items()))
