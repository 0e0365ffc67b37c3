"""The recovery check: is the argument that was wrong repaired after a precise error (A2)?

Theory. A dialogue begins with the user's request and a prepared call that is wrong. What is wrong with it goes back as
the result of that very call, and then the model speaks. Each of its turns is decoded, judged, given exactly one class,
and answered; that goes on until the call is fixed, and until the answer to the user uses what the (mock) tool returned.
``limit`` turns may be wrong. So there are at most ``limit + 1`` turns, and exactly one end.

This is the core, and touches nothing but its own memory: ``request`` says what to send, ``take`` or ``read`` is given
what came. ``drive`` is the way to run it on a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from streamparse.agent.ledger import Ledger
from streamparse.agent.models import Content
from streamparse.agent.prose import Spelled
from streamparse.agent.recovery.case import RecoveryCase
from streamparse.agent.recovery.classes import PROPOSALS, REPEATS, End, TurnClass
from streamparse.agent.recovery.judging import Assessment, Attempt, Referee, counting, in_reasoning, reminder, reply
from streamparse.agent.recovery.prepared import prepared_events
from streamparse.agent.recovery.prose import names_wrong_value, spelled_calls
from streamparse.agent.recovery.report import Dialogue, TurnReport
from streamparse.agent.recovery.telling import dialogue_of, is_cut, misread_of, prepared_report, turn_report
from streamparse.agent.recovery.using import Predicate, default_predicate, without_last_word
from streamparse.agent.request import anthropic_request, chat_request, prompt_request
from streamparse.agent.states import CallState
from streamparse.agent.turns import Proposal, ToolResult, Turn
from streamparse.decoding.roster import LENGTH, judged
from streamparse.errors import UsageError
from streamparse.events import (
    Ended,
    ErrorCode,
    ErrorDetail,
    Event,
    Failed,
    Level,
    PartialToolCall,
    ToolCall,
    ToolCallFailed,
    json_text,
)
from streamparse.tools.canonical import same
from streamparse.tools.observation import fingerprint, observation
from streamparse.transport.wires import Options, Wire, wire_of_chunk

_UNREAD: Final = {
    ErrorCode.MALFORMED_ENVELOPE: TurnClass.MALFORMED,
    ErrorCode.MALFORMED_CALL: TurnClass.MALFORMED,
    ErrorCode.MISSING_NAME: TurnClass.MALFORMED,
    ErrorCode.LIMIT_EXCEEDED: TurnClass.MALFORMED,
}
"""What an error that belongs to no call makes of a turn; any other leaves it unfinished."""

_RAW: Final = (Wire.TEXT, Wire.COMPLETIONS)
"""Wires on which no finish reason says that there are calls."""

_LEADS: Final = {
    TurnClass.PROSE_CALL: "No tool was called: a call in the text is not executed. Send it as a tool call.",
    TurnClass.UNFINISHED: "The answer ended before a tool was called.",
    TurnClass.MALFORMED: "The answer could not be read: send the call in the documented format.",
    TurnClass.MISSING: "No tool was called.",
}
_AGAIN: Final = {
    TurnClass.IGNORED: "The answer does not say what the tool returned. Answer again, with its result.",
    TurnClass.CONTRADICTS: "The answer is not what the tool returned. Answer again, with its result.",
    TurnClass.MISSING: "There is no answer yet. Answer the request, with what the tool returned.",
}
_WRONG_ARGUMENTS: Final = (*REPEATS, TurnClass.NEW_ERROR, TurnClass.DRIFTED)
_DONE: Final = "Not executed: the result of the corrected call stands above. Answer the user with it."


class RecoveryCheck:
    """One run of one case. ::

        check = RecoveryCheck(case)
        while not check.is_over:
            turn = check.take(events_of_the_answer_to(check.request(model="…")))
            print(turn.turn_class)
        report = check.report()

    ``limit`` replaces the case's. ``predicate`` replaces the way in which the use of the result is told. ``run`` is a
    number for the report. Raises ``UsageError`` for a case whose prepared call is not wrong.
    """

    def __init__(
        self, case: RecoveryCase, *, limit: int | None = None, predicate: Predicate | None = None, run: int = 1
    ) -> None:
        if limit is not None and limit < 1:
            raise UsageError(f"limit={limit} is no number of turns from 1")
        case.check_frozen()
        self.case = case
        self.limit = case.limit if limit is None else limit
        self.end: End | None = None
        self.turns: list[TurnReport] = []
        self.ledger = Ledger(case.system or None, explain=self._explain)
        self._run = run
        self._predicate = predicate or default_predicate(case)
        self._referee = Referee(case)
        self._asked = Wire.CHAT
        self._wrong = 0
        self._fixed = False
        self._seen: list[str] = []  # fingerprints of the proposals so far
        self._keys: list[tuple[str, ...]] = []  # the proposals of each turn that had some, without direct repetitions
        self._rejected: list[dict[str, Any]] = []
        self.ledger.add_user(case.user)
        self._begin()

    # What to send

    @property
    def is_over(self) -> bool:
        """Whether the dialogue has come to its end."""
        return self.end is not None

    @property
    def due(self) -> Literal["call", "answer"]:
        """What the next turn has to bring."""
        return "answer" if self._fixed else "call"

    def request(self, wire: Wire = Wire.CHAT, *, model: str = "", **options: Any) -> dict[str, Any]:
        """The request for the next turn, as this wire has it. ``options`` are further fields of it (``temperature``;
        ``max_tokens``, which the wire ``messages`` wants and which is 4,096 there if nothing is said).

        Raises ``UsageError`` when the dialogue is over, and ``SchemaChanged``.
        """
        self._check(None)
        self._asked = wire
        if wire is Wire.MESSAGES:
            options = {"max_tokens": 4096, **options}
            return anthropic_request(self.ledger, model=model, tools=self.case.tools, **options)
        write = chat_request if wire is Wire.CHAT else prompt_request
        return write(self.ledger, model=model, tools=self.case.tools, **options)

    # What came

    def take(self, events: Iterable[Event], *, tools: Sequence[Any] | None = None, raw: str = "") -> TurnReport:
        """One turn: all events of one answer, from any decoder, its ``Ended`` last. Returns what became of it.

        ``tools``: those that the model was really given, if that is not sure. ``raw``: the answer's text, for the
        report. Raises ``SchemaChanged`` if these or the case's own tools are not the frozen ones any more, and
        ``UsageError`` when the dialogue is over, and for events that are not one whole answer.
        """
        self._check(tools)
        events = list(events)
        ends = [isinstance(event, Ended) for event in events]
        if ends.count(True) != 1 or not ends[-1]:
            raise UsageError("a turn is all events of one answer: close its decoder, and add what it says")
        turn = self.ledger.take(events)
        assert turn is not None
        report = self._take_answer(turn, events, raw) if self._fixed else self._take_proposal(turn, events, raw)
        self.turns.append(report)
        return report

    def read(
        self,
        content: Content,
        *,
        finish_reason: str | None = None,
        tools: Sequence[Any] | None = None,
        **options: Any,
    ) -> TurnReport:
        """One turn, not yet decoded: native text, OpenAI-style chunks, or Anthropic-style events. ``options`` are those
        of the decoder (``start``, ``dialect``). Otherwise as ``take``."""
        wire, pieces = Wire.TEXT, [content] if isinstance(content, str) else list(content)
        if not isinstance(content, str):
            wire = next((each for piece in pieces if (each := wire_of_chunk(json_text(piece))) is not None), Wire.CHAT)
        options = {"id_factory": self.ledger.make_id, **options}
        decoder = Options(tools=self.case.tools, **options).decoder(wire)
        events = [event for piece in pieces for event in decoder.feed(piece)]
        if isinstance(content, str) and finish_reason is None:
            finish_reason = "tool_calls" if decoder.calls else "stop"
        raw = content if isinstance(content, str) else "\n".join(map(json_text, content))
        self._asked = wire
        return self.take([*events, *decoder.close(finish_reason)], tools=tools, raw=raw)

    def report(self) -> Dialogue:
        """The dialogue so far."""
        return dialogue_of(self.case, self._prepared, self.turns, self.end, limit=self.limit, run=self._run)

    # The beginning

    def _begin(self) -> None:
        events = prepared_events(self.case)
        turn = self.ledger.take(events)
        assert turn is not None
        if len(turn.calls) != 1 or turn.calls[0].call.name != self.case.tool:
            raise UsageError(f"case {self.case.name!r}: its prepared answer is not one call of {self.case.tool!r}")
        call = turn.calls[0]
        self._due = self._referee.verdict(call)
        if self._due.level is None:
            raise UsageError(f"case {self.case.name!r}: its prepared call is right, so there is nothing to correct")
        text = observation(self._due, attempt=1, limit=self.limit + 1)
        self._close(call, text)
        self._seen.append(fingerprint(call.call))
        self._keys.append((fingerprint(call.call),))
        if isinstance(call.call, ToolCall):
            self._rejected.append(call.call.arguments)
        self._prepared = prepared_report(self.case, call, self._due, misread_of(events, self.case.prepared.native))

    def _explain(self, call: PartialToolCall, error: ErrorDetail, _: str | None) -> str:
        """The result of a call that could not be read (the ledger asks when it takes it)."""
        if self._fixed:
            return _DONE
        verdict = self._referee.judge.check(ToolCallFailed(0, call, error))
        attempt = self._attempt(failed=bool(self._seen))
        return observation(
            verdict, attempt=attempt.number, limit=attempt.of, repeats=self._seen.count(fingerprint(call))
        )

    # A turn in which a call is due

    def _take_proposal(self, turn: Turn, events: list[Event], raw: str) -> TurnReport:
        assessed = [self._referee.assess(call, self._rejected) for call in turn.calls]
        spelled = self._spelled(turn, events)
        found = self._class_of(turn, events, assessed, spelled)
        repeats = self._is_repeated(turn, assessed, spelled)
        self._fixed = found is TurnClass.FIXED
        if not self._fixed:
            self._went_wrong(assessed, spelled)
        observations = [self._answer_call(each, found) for each in assessed]
        feedback = ""
        if not self._fixed:
            if not turn.calls and self.end is None:
                feedback = self._remind(found, self._times(spelled, repeats))
            self._remember(assessed, spelled)
        return turn_report(
            self.case,
            number=len(self.turns) + 1,
            due="call",
            turn_class=found,
            level=_level(found, assessed),
            repeats=repeats and found is not TurnClass.FIXED,
            turn=turn,
            assessed=assessed,
            observations=observations,
            feedback=feedback,
            misread=misread_of(events, raw),
            labelled=self._asked not in _RAW,
        )

    def _spelled(self, turn: Turn, events: list[Event]) -> Spelled | None:
        """The call to which the text comes, of several the last; where there is a real one, the text is no matter."""
        if not all(map(in_reasoning, turn.calls)):
            return None
        found = spelled_calls(self.case, turn.text, events)
        return found[-1] if found else None

    def _class_of(
        self, turn: Turn, events: list[Event], assessed: Sequence[Assessment], spelled: Spelled | None
    ) -> TurnClass:
        """Of several reasons the first in ``PROPOSALS``."""
        classes = [each.turn_class for each in counting(assessed)]
        errors = [event.error.code for event in events if isinstance(event, Failed)]
        unread = [_UNREAD.get(code, TurnClass.UNFINISHED) for code in errors if code is not ErrorCode.MISSING_CALL]
        if any(call.error is None for call in turn.calls):  # what is sealed stays sealed, however the answer ended (E2)
            unread = [each for each in unread if each is not TurnClass.UNFINISHED]
        classes += unread
        if not turn.calls and not classes:
            if not turn.text.strip() or judged(turn.finish_reason) == LENGTH:
                classes = [TurnClass.UNFINISHED]
            else:
                classes = [TurnClass.MISSING if spelled is None else TurnClass.PROSE_CALL]
        return min(classes, key=PROPOSALS.index)

    def _answer_call(self, assessed: Assessment, found: TurnClass) -> str:
        """The result of a call: the mock result, or what is wrong."""
        call = assessed.call
        if call.result is not None:  # it could not be read
            return call.result.text
        if found is TurnClass.FIXED:
            self.ledger.start(call)
            result = self.ledger.record(ToolResult.of(call, CallState.OK, self.case.result), call).result
            assert result is not None
            return result.text
        attempt = self._attempt(failed=False)
        text = reply(assessed, self._due, attempt, self._seen.count(fingerprint(call.call)))
        self._close(call, text)
        if assessed.verdict.level is not None and call.call.name == self.case.tool:
            self._due = assessed.verdict
        return text

    def _went_wrong(self, assessed: Sequence[Assessment], spelled: Spelled | None) -> None:
        """One more turn was wrong. Does the dialogue end with it (A10)? A call that was cut was not rejected, nor was a
        call in prose but for what it says."""
        self._wrong += 1
        unjudged = (TurnClass.UNFINISHED, TurnClass.PROSE_CALL)
        key = tuple(fingerprint(each.call.call) for each in assessed if each.turn_class not in unjudged)
        if spelled is not None and spelled.arguments is not None and self._was_rejected(spelled):
            key = (_print_of(spelled),)
        if key and (not self._keys or key != self._keys[-1]):
            if key in self._keys:
                self.end = End.CYCLE
            self._keys.append(key)
        if self.end is None and self._wrong >= self.limit:
            self.end = End.LIMIT

    def _times(self, spelled: Spelled | None, repeats: bool) -> int:
        """How often the call that a text spells out came before."""
        if spelled is None or spelled.arguments is None:
            return int(repeats)
        return self._seen.count(_print_of(spelled))

    def _remember(self, assessed: Iterable[Assessment], spelled: Spelled | None) -> None:
        """What was rejected for what it says. A right call in a wrong envelope, or beside a wrong one, was not."""
        if spelled is not None and spelled.arguments is not None:
            self._seen.append(_print_of(spelled))
        for each in assessed:
            call = each.call.call
            self._seen.append(fingerprint(call))
            if isinstance(call, ToolCall) and each.turn_class in _WRONG_ARGUMENTS:
                self._rejected.append(call.arguments)

    def _is_repeated(self, turn: Turn, assessed: Sequence[Assessment], spelled: Spelled | None) -> bool:
        """Whether it asks for what was rejected before, in whatever envelope: as a call, in the reasoning, in the text,
        or cut."""
        if spelled is None:
            return any(map(self._repeats, counting(assessed)))
        if spelled.arguments is not None:
            return spelled.name == self.case.tool and self._referee.repeats(spelled.arguments, self._rejected)
        return bool(self._rejected) and names_wrong_value(self.case, turn.text, self._rejected[-1])

    def _repeats(self, each: Assessment) -> bool:
        call = each.call.call
        if each.call.error is None or call.name != self.case.tool:
            return each.turn_class in REPEATS
        if in_reasoning(each.call):
            return self._referee.repeats(call.arguments, self._rejected)
        return fingerprint(call) in self._seen or self._referee.repeats_so_far(call.arguments)

    def _was_rejected(self, spelled: Spelled) -> bool:
        return spelled.name == self.case.tool and any(same(spelled.arguments, each) for each in self._rejected)

    # A turn in which the answer is due

    def _take_answer(self, turn: Turn, events: list[Event], raw: str) -> TurnReport:
        cut = is_cut(turn)
        text = without_last_word(turn.text) if cut else turn.text
        missing = not all(map(in_reasoning, turn.calls)) or not text.strip()
        found = TurnClass.MISSING if missing else self._judged(text)
        if cut and found is not TurnClass.USED:  # what it would have said nobody knows
            found = TurnClass.MISSING
        if found is TurnClass.USED:
            self.end = End.RECOVERED
        else:
            self._wrong += 1
            self.end = End.LIMIT if self._wrong >= self.limit else None
        assessed = [Assessment(call, found, self._referee.verdict(call)) for call in turn.calls]
        observations = []
        for call in turn.calls:
            if call.is_open:
                self._close(call, _DONE)
            assert call.result is not None
            observations.append(call.result.text)
        feedback = ""
        if self.end is None and not turn.calls:
            feedback = _AGAIN[found]
            self.ledger.add_user(feedback)
        return turn_report(
            self.case,
            number=len(self.turns) + 1,
            due="answer",
            turn_class=found,
            level=None if found is TurnClass.USED else Level.PARSE if cut else Level.RECOVERY,
            repeats=False,
            turn=turn,
            assessed=assessed,
            observations=observations,
            feedback=feedback,
            misread=misread_of(events, raw),
            labelled=self._asked not in _RAW,
        )

    def _judged(self, text: str) -> TurnClass:
        found = self._predicate(text)
        if found not in (TurnClass.USED, TurnClass.IGNORED, TurnClass.CONTRADICTS):
            raise UsageError(f"the predicate of an answer gives used, ignored or contradicts, not {found!r}")
        return found

    # Small things

    def _attempt(self, *, failed: bool) -> Attempt:
        """The number of the call that is being answered: the prepared one is the first. ``failed``: this turn is not
        counted as wrong yet."""
        return Attempt(self._wrong + 1 + failed, self.limit + 1)

    def _remind(self, found: TurnClass, repeats: int) -> str:
        text = reminder(_LEADS[found], self._due, self._attempt(failed=False), repeats)
        self.ledger.add_user(text)
        return text

    def _close(self, call: Proposal, text: str) -> None:
        """The call is not executed, and this is why. One that could not be read has its result already."""
        if call.is_open:
            self.ledger.record(ToolResult.of(call, CallState.REJECTED, text), call)

    def _check(self, tools: Sequence[Any] | None) -> None:
        if self.end is not None:
            raise UsageError(f"the dialogue is over ({self.end}); make a new check for the next one")
        self.case.check_frozen(tools)


def _print_of(spelled: Spelled) -> str:
    return fingerprint(ToolCall("", spelled.name, spelled.arguments or {}))


def _level(found: TurnClass, assessed: Sequence[Assessment]) -> Level | None:
    """Whose fault the turn is (A5)."""
    for each in assessed:
        if each.turn_class is found:
            return each.level
    if found is TurnClass.FIXED:
        return None
    return Level.RECOVERY if found is TurnClass.MISSING else Level.PARSE
