"""The report of a turn, and of a dialogue, from what was decided about it. Every text in it is bounded, and can be
written as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from streamparse.agent.legal import plain
from streamparse.agent.recovery.case import RecoveryCase
from streamparse.agent.recovery.classes import ANSWERS, End, TurnClass
from streamparse.agent.recovery.judging import Assessment, counting
from streamparse.agent.recovery.report import CallReport, Dialogue, Misread, PreparedReport, TurnReport
from streamparse.agent.turns import Proposal, Turn
from streamparse.decoding.roster import BROKEN, LENGTH, PROMISES, judged
from streamparse.events import ErrorCode, Event, Failed, Level, ToolCall, ToolCallFailed, join_words, json_text
from streamparse.tools.issues import Issue, Verdict
from streamparse.tools.wording import clip, listed, place

SHOWN: Final = 4000
"""Characters of a text that a report keeps."""

_CALLS: Final = 16
"""Calls of one turn that a report keeps."""


def turn_report(
    case: RecoveryCase,
    *,
    number: int,
    due: Literal["call", "answer"],
    turn_class: TurnClass,
    level: Level | None,
    repeats: bool,
    turn: Turn,
    assessed: Sequence[Assessment],
    observations: Sequence[str],
    feedback: str,
    misread: tuple[Misread, ...],
    labelled: bool,
) -> TurnReport:
    """The report of one turn. ``labelled``: its finish reason can say that there are calls (of raw text it cannot)."""
    counted = counting(assessed)
    own = [each for each in counted if each.call.error is None and each.call.call.name == case.tool]
    names = {each.call.call.name for each in counted}
    sealed = [each for each in counted if each.call.error is None]
    return TurnReport(
        number=number,
        due=due,
        turn_class=turn_class,
        level=level,
        read=_all(each.call.error is None for each in counted) if counted else (False if misread else None),
        valid=_all(each.valid for each in counted),
        corrected=_all(each.corrected for each in counted),
        repeats=repeats,
        tool_kept=names == {case.tool},
        pins_kept=not any(each.drifted for each in own) if own else None,
        cut=turn_class is TurnClass.UNFINISHED or is_cut(turn),
        mislabelled=labelled and mislabelled(turn.finish_reason, begun=bool(counted or misread), sealed=bool(sealed)),
        finish_reason=None if turn.finish_reason is None else text_in(turn.finish_reason, 40),
        text=text_in(turn.text),
        reasoning=text_in(turn.reasoning),
        calls=tuple(
            call_report(each.call, each.verdict, each, observation)
            for each, observation in zip(assessed[:_CALLS], observations[:_CALLS], strict=True)
        ),
        more_calls=max(len(assessed) - _CALLS, 0),
        misread=misread,
        feedback=feedback,
    )


def is_cut(turn: Turn) -> bool:
    """Whether the answer is not whole: cut by its length, or broken off."""
    broken = turn.finish_reason in (*BROKEN, None) and not turn.clean
    return judged(turn.finish_reason) == LENGTH or broken


def mislabelled(finish_reason: str | None, *, begun: bool, sealed: bool) -> bool:
    """Whether a finish reason and the calls do not agree: it promises calls and there is none, not even a broken one;
    or it says that the answer is whole, and nothing of the calls in it."""
    reason = judged(finish_reason)
    if reason in PROMISES:
        return not begun
    return sealed and reason not in (None, LENGTH, *BROKEN)


def prepared_report(
    case: RecoveryCase, call: Proposal, verdict: Verdict, misread: tuple[Misread, ...]
) -> PreparedReport:
    """The report of the call with which a dialogue begins."""
    assert call.result is not None
    assert verdict.level is not None
    prepared = case.prepared
    raw = prepared.native or prepared.arguments_text or json_text(prepared.arguments)
    report = call_report(call, verdict, None, call.result.text)
    return PreparedReport(raw=text_in(raw), level=verdict.level, calls=(report,), misread=misread)


def call_report(call: Proposal, verdict: Verdict, assessed: Assessment | None, observation: str) -> CallReport:
    """The report of one call. Of the answer's turn there is no class of a call: it needed none."""
    judged = assessed is not None and assessed.turn_class not in ANSWERS
    return CallReport(
        id=text_in(call.id, 100),
        name=text_in(call.call.name, 100),
        arguments=text_in(_arguments(call)),
        turn_class=assessed.turn_class if assessed is not None and judged else None,
        read=call.error is None,
        valid=assessed.valid if assessed is not None else (verdict.valid if call.error is None else None),
        corrected=assessed.corrected if assessed is not None else None,
        level=assessed.level if assessed is not None and judged else verdict.level,
        issues=tuple(issue_words(issue) for issue in verdict.issues),
        doubts=tuple(text_in(doubt, 200) for doubt in verdict.doubts),
        observation=observation,
    )


def issue_words(issue: Issue) -> str:
    """``unit: not_in_enum, found "kelvin", allowed "celsius" or "fahrenheit"``."""
    words = f"{place(issue.path)}: {issue.code.value}" if issue.path else issue.code.value
    if issue.value:
        words += f", found {issue.value}"
    if issue.allowed:
        words += f", allowed {listed(issue.allowed, issue.more, 200)}"
    return text_in(f"{words}; {issue.hint}" if issue.hint else words, 600)


def misread_of(events: Sequence[Event], raw: str) -> tuple[Misread, ...]:
    """What of an answer could not be read. The raw output is ``raw`` where somebody has it, else what the decoder kept
    of the call."""
    found = []
    for event in events:
        if isinstance(event, ToolCallFailed):
            found.append(_misread(event, raw or event.call.raw))
        elif isinstance(event, Failed) and event.error.code is not ErrorCode.MISSING_CALL:
            found.append(_misread(event, raw))
    return tuple(found[:_CALLS])


def dialogue_of(
    case: RecoveryCase, prepared: PreparedReport, turns: Sequence[TurnReport], end: End | None, *, limit: int, run: int
) -> Dialogue:
    """The report of a dialogue."""
    return Dialogue(
        case=text_in(case.name, 200),
        kind=text_in(case.kind, 100),
        title=text_in(case.title),
        run=run,
        digest=case.digest,
        limit=limit,
        tool=text_in(case.tool, 100),
        user=text_in(case.user),
        wrong_fields=tuple(place(fix.path) for fix in case.fixes),
        pins=tuple(map(place, case.pins)),
        expected=text_in(json_text(case.expected)),
        result=text_in(json_text(case.result)),
        prepared=prepared,
        turns=tuple(turns),
        end=end,
    )


def text_in(text: str, size: int = SHOWN) -> str:
    """A text as it stands in a report."""
    return clip(str(plain(text)), size)


def _misread(event: ToolCallFailed | Failed, raw: str) -> Misread:
    error = event.error
    expected = tuple(text_in(each, 200) for each in error.expected[:_CALLS])
    said = text_in(error.reason, 300) + f" at {error.offset}"
    if error.open:
        said += f" in {' > '.join(error.open)}"
    if expected:
        said += f"; expected {join_words(expected)}"
    return Misread(error.code.value, text_in(said, 1000), expected, text_in(raw or error.excerpt))


def _arguments(call: Proposal) -> str:
    """The arguments as they came; huge numbers in an object that came as such cannot be written otherwise."""
    if call.error is None and isinstance(call.call, ToolCall):
        try:
            return call.call.arguments_json
        except (ValueError, RecursionError):
            return call.wire_arguments
    return call.raw


def _all(values: Any) -> bool | None:
    """False if one is, else None if one is unknown, else True; None for none at all."""
    values = list(values)
    if False in values:
        return False
    return True if values and None not in values else None
