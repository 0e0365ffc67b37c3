"""One proposed call of a recovery case: its verdict, its class (A9), and what goes back for it (A6).

Three questions are answered apart (A1): could the call be read, does it fit, and is it the correction that was asked
for. The first two are ``Judge``'s; here stands the third.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from streamparse.agent.recovery.case import NOTHING, Fix, RecoveryCase, drifted, is_fixed, related, value_at
from streamparse.agent.recovery.classes import REPEATS, TurnClass
from streamparse.agent.turns import Proposal
from streamparse.events import ErrorCode, Level, Path, ToolCall, ToolCallFailed, ToolCallFinished
from streamparse.tools.canonical import same
from streamparse.tools.issues import ArgumentRejectedError, IssueCode, Verdict
from streamparse.tools.observation import SIZE, observation
from streamparse.tools.validation import Judge
from streamparse.tools.wording import clip, quoted, shown

_CUT: Final = (IssueCode.TRUNCATED, IssueCode.INTERRUPTED)
_ASKED: Final = "what the user asked for"
_NOT_ASKED: Final = "it fits the tool, and is not what the user asked for"


class Assessment(msgspec.Struct, frozen=True):
    """One call of a turn. ``verdict`` is the one of its text; ``valid`` is None where nothing could be read, and
    ``corrected`` where nothing could be judged. ``drifted`` are the pins that lost their value."""

    call: Proposal
    turn_class: TurnClass
    verdict: Verdict
    valid: bool | None = None
    corrected: bool | None = None
    drifted: tuple[Path, ...] = ()

    @property
    def level(self) -> Level | None:
        """Whose fault it is (A5). What the validator found keeps its level where it is new; what the model was told
        before, and did not follow, is ``recovery``."""
        if self.turn_class in (TurnClass.MALFORMED, TurnClass.UNFINISHED, TurnClass.INVENTED_TOOL, TurnClass.NEW_ERROR):
            return self.verdict.level or Level.REPRESENTATION
        if self.turn_class is TurnClass.PROSE_CALL:
            return Level.PARSE
        return None if self.turn_class is TurnClass.FIXED else Level.RECOVERY


class Referee:
    """Judges the calls of one case."""

    def __init__(self, case: RecoveryCase) -> None:
        self.case = case
        self.judge = Judge(case.tools, extra=case.extra)

    def verdict(self, call: Proposal) -> Verdict:
        """The verdict on a call, of the schema and of the mock tool."""
        if call.error is not None or not isinstance(call.call, ToolCall):
            assert call.error is not None
            return self.judge.check(ToolCallFailed(0, call.call, call.error))  # type: ignore[arg-type]
        verdict = self.judge.check(ToolCallFinished(0, call.call))
        refusal = self.case.refusal
        if refusal is None or not verdict.valid or call.call.name != self.case.tool:
            return verdict
        if same(value_at(call.call.arguments, refusal.path), value_at(self.case.prepared.arguments, refusal.path)):
            return self._refused(call.call, refusal.path, refusal.allowed, refusal.hint)
        return verdict

    def assess(self, call: Proposal, rejected: Sequence[dict[str, Any]]) -> Assessment:
        """The class of a call, when the calls with these arguments were rejected before."""
        verdict = self.verdict(call)
        if call.error is not None or not isinstance(call.call, ToolCall):
            return Assessment(call, self._unread(call, verdict), verdict)
        if call.call.name not in self.judge.tools:
            return Assessment(call, TurnClass.INVENTED_TOOL, verdict, valid=False)
        if call.call.name != self.case.tool:
            return Assessment(call, TurnClass.FOREIGN_TOOL, verdict, valid=verdict.valid, corrected=False)
        return self._own(call, call.call, verdict, rejected)

    def repeats(self, arguments: dict[str, Any], rejected: Sequence[dict[str, Any]]) -> bool:
        """Whether a call with these arguments would be a repetition, wherever they stand (A2)."""
        call = Proposal("", ToolCall("", self.case.tool, arguments))
        return self.assess(call, rejected).turn_class in REPEATS

    def repeats_so_far(self, arguments: dict[str, Any]) -> bool:
        """The same of a call that was cut: whether a text is wrong again, whatever would have followed."""
        for fix in self.case.fixes:
            found, right = value_at(arguments, fix.path), value_at(self.case.expected, fix.path)
            if isinstance(found, str) and isinstance(right, str) and not right.startswith(found):
                return True
        return False

    def _unread(self, call: Proposal, verdict: Verdict) -> TurnClass:
        if in_reasoning(call):
            return TurnClass.PROSE_CALL
        return TurnClass.UNFINISHED if verdict.issues[0].code in _CUT else TurnClass.MALFORMED

    def _own(
        self, proposal: Proposal, call: ToolCall, verdict: Verdict, rejected: Sequence[dict[str, Any]]
    ) -> Assessment:
        """A call of the right tool that could be read."""
        arguments = verdict.arguments
        lost = drifted(self.case, arguments)
        wrong = [fix for fix in self.case.fixes if not is_fixed(self.case, fix, arguments) or _blamed(fix, verdict)]
        if any(same(call.arguments, each) for each in rejected):
            found = TurnClass.REPEAT_IDENTICAL
        elif wrong:
            found = TurnClass.REPEAT_SAME_FIELD
        elif not verdict.valid:
            found = TurnClass.NEW_ERROR
        elif lost:
            found = TurnClass.DRIFTED
        else:
            found = TurnClass.FIXED  # whether it may run is another question (A1): its doubts are in the report
        valid = verdict.valid or verdict.level is Level.TOOL
        if verdict.valid and found is not TurnClass.FIXED:
            verdict = self._objection(call, wrong, lost)
        return Assessment(proposal, found, verdict, valid, corrected=found is TurnClass.FIXED, drifted=lost)

    def _objection(self, call: ToolCall, wrong: Sequence[Fix], lost: Sequence[Path]) -> Verdict:
        """What is wrong with a call that fits: the first field that is not what the user asked for, or not any more."""
        if wrong:
            return self._refused(call, wrong[0].path, (_ASKED,), _NOT_ASKED)
        if lost:
            right = value_at(self.case.expected, lost[0])
            if right is NOTHING:
                return self._refused(call, lost[0], ("to leave it out",), "nobody asked for it")
            return self._refused(call, lost[0], (shown(right),), "it was right before, and was changed")
        return self._refused(call, self.case.fixes[0].path, (_ASKED,), "this very call was rejected before")

    def _refused(self, call: ToolCall, path: Path, allowed: Sequence[str], hint: str) -> Verdict:
        verdict = self.judge.refused(call, ArgumentRejectedError(path, tuple(allowed), hint))
        unsure = {
            path[0],
            *(fix.path[0] for fix in self.case.fixes),
            *(pin[0] for pin in drifted(self.case, call.arguments)),
        }
        return msgspec.structs.replace(verdict, keep=tuple(key for key in verdict.keep if key not in unsure))


def in_reasoning(call: Proposal) -> bool:
    """Whether the call stands in the reasoning, where it is provisional (N13)."""
    return call.error is not None and call.error.code is ErrorCode.CALL_IN_REASONING


def counting(assessed: Sequence[Assessment]) -> Sequence[Assessment]:
    """The calls that count: those in the reasoning only where there is no other (N13)."""
    return [each for each in assessed if not in_reasoning(each.call)] or assessed


def _blamed(fix: Fix, verdict: Verdict) -> bool:
    return any(related(issue.path, fix.path) for issue in verdict.issues)


# What goes back


class Attempt(msgspec.Struct, frozen=True):
    """Which try it was, from 1, and how many there are."""

    number: int
    of: int


def reply(assessed: Assessment, due: Verdict, attempt: Attempt, repeats: int) -> str:
    """The result of a call that is not accepted; ``due`` is the verdict whose correction is waited for. At most 600
    characters."""
    if assessed.turn_class is TurnClass.FIXED:
        return "Nothing was executed: another call of the same answer was wrong. Send the corrected call alone."
    if assessed.turn_class is TurnClass.FOREIGN_TOOL:
        lead = f"The call {_name(assessed.verdict)} was not executed: {_name(due)} still has to be corrected."
        return reminder(lead, due, attempt)
    return observation(assessed.verdict, attempt=attempt.number, limit=attempt.of, repeats=repeats)


def reminder(lead: str, due: Verdict, attempt: Attempt, repeats: int = 0) -> str:
    """What is said to a model that sent no call: a sentence, and the error once more. At most 600 characters."""
    return clip(f"{lead}\n{observation(due, attempt=attempt.number, limit=attempt.of, repeats=repeats)}", SIZE)


def _name(verdict: Verdict) -> str:
    return clip(quoted(verdict.tool, 40), 40)
