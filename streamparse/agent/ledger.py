"""The ledger: the history of a conversation with tools, which a server always takes.

Theory. Servers refuse a history in which a call lacks its result, a result its call, or anything stands between the
two, and they refuse it for ever: the session is lost (B5). So the ledger has no place for such a history. A result
stands *inside* the turn that proposed its call, results may come in any order and are read in call order (B4), a new
turn begins only when the last has all its results, and what is said in between stands behind them.

Rules:

* Ids, arguments and reasoning are kept as they came (B3, B5). What a wire needs otherwise is made when it is written,
  by the adapters.
* Each call gets exactly one result. One that failed while it was read has it at once: it stands in the history with
  ``{}``, and its result says why nothing ran.
* A call moves only along the arrows of ``states``; anything else raises ``UsageError``.
* No clock and no file is touched.

Operations. ``take`` costs what the events cost, everything else is constant or linear in the calls of the last turn.
The ledger holds what was said, and one number per resource that was ever written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from streamparse.agent.ids import distinct
from streamparse.agent.legal import is_parts
from streamparse.agent.reasons import why_closed, why_not_executed
from streamparse.agent.resources import overlap
from streamparse.agent.states import CallState
from streamparse.agent.turns import Proposal, ToolResult, Turn, TurnBuilder
from streamparse.errors import UsageError
from streamparse.events import ErrorDetail, Event, PartialToolCall

Content: TypeAlias = str | list[Mapping[str, Any]]
"""Text, or a list of OpenAI-style content parts, kept verbatim (``{"type": "image_url", …}``)."""

Explain: TypeAlias = Callable[[PartialToolCall, ErrorDetail, str | None], str]
"""What the model is told of a call that failed while it was read: the call, the error, the finish reason."""


class Message(msgspec.Struct, frozen=True):
    """What the system or the user said."""

    role: Literal["system", "user"]
    content: Content


Entry: TypeAlias = Message | Turn
"""One step of the conversation. Results are in their turn."""


class Ledger:
    """See the module.

    ::

        ledger = Ledger("You write Python.")
        ledger.add_user("Fix the test.")
        for events in stream:
            turn = ledger.take(events)
        for call in turn.open_calls:
            ledger.start(call)
            ledger.record(ToolResult.of(call, CallState.OK, run(call)))

    ``explain`` replaces the text for calls that failed while they were read, and may be set anew. ``summary`` is the
    rolling summary of what was dropped (B18); adapters write it as a system message.
    """

    def __init__(self, system: str | None = None, *, explain: Explain = why_not_executed) -> None:
        self.summary = ""
        self.explain = explain
        self._entries: list[Entry] = []
        self._builder: TurnBuilder | None = None
        self._details: list[Mapping[str, Any]] = []
        self._ids: set[str] = set()
        self._turns = 0
        self._results = 0
        self._writes: dict[str, int] = {}
        if system is not None:
            self.add_system(system)

    # What was said

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The conversation so far, oldest first."""
        return tuple(self._entries)

    @property
    def turns(self) -> list[Turn]:
        """The assistant turns."""
        return [entry for entry in self._entries if isinstance(entry, Turn)]

    @property
    def calls(self) -> Iterator[Proposal]:
        """All calls, oldest first."""
        return (call for turn in self.turns for call in turn.calls)

    @property
    def open_calls(self) -> list[Proposal]:
        """The calls that wait for their results: only the last turn can have some."""
        turn = self._last_turn()
        return turn.open_calls if turn is not None else []

    @property
    def is_answering(self) -> bool:
        """Whether an answer has begun that has not ended."""
        return self._builder is not None

    def add_system(self, text: str) -> None:
        """A system message. They stand at the start: many servers refuse one further down, or leave it out."""
        if any(not (isinstance(entry, Message) and entry.role == "system") for entry in self._entries):
            raise UsageError("a system message belongs to the start of a conversation; add_user says something later")
        self._entries.append(Message("system", _checked(text)))

    def add_user(self, content: Content) -> None:
        """What the user says, text or content parts. While calls are open it stands behind their results."""
        if not isinstance(content, str) and not is_parts(content):
            raise UsageError("a message is text, or a list of content parts that say their type; this is neither")
        if self.is_answering:
            raise UsageError("an answer is not over: close its decoder, and take those events, before the user speaks")
        self._entries.append(Message("user", content))

    def take(self, events: Iterable[Event], *, details: Sequence[Mapping[str, Any]] = ()) -> Turn | None:
        """A decoder's events, as they come or all at once. Returns the turn when its ``Ended`` is among them.

        ``details`` are blocks of reasoning that go back verbatim (see ``Turn``). Raises ``UsageError`` when an answer
        begins while calls of the last turn are open.
        """
        turn = None
        self._details += details
        for event in events:
            if self._builder is None:
                self._begin()
            assert self._builder is not None
            done = self._builder.take(event, self._details)
            if done is not None:
                turn = done
                self._end(done)
        return turn

    def add_turn(self, turn: Turn) -> Turn:
        """A turn that comes from elsewhere: an imported history, a scripted model."""
        self._begin()
        self._end(turn)
        return turn

    def make_id(self, index: int) -> str:
        """An id for a call that came without one, unique in this conversation (N17): the decoders' ``id_factory``."""
        return distinct([f"call_{self._turns}_{index}"], self._ids)[0]

    # What became of the calls

    def start(self, call: Proposal | str) -> Proposal:
        """The call begins to run."""
        found = self._find(call, CallState.PROPOSED)
        found._become(CallState.RUNNING)
        return found

    def record(self, result: ToolResult, call: Proposal | None = None) -> Proposal:
        """The result of a call of the last turn, in any order. ``call`` where ids repeat within the turn; else it is
        the first that is open and has this id, one that is running before one that is not.

        Raises ``UsageError`` for an unknown id, a call that has its result, and a state that may not follow.
        """
        if not isinstance(result.text, str):
            raise UsageError(f"the result of {result.id!r} is no text; ToolResult.of makes text of a value")
        if not result.state.is_end:
            raise UsageError(f"the result of {result.id!r} cannot be {result.state}: that is no end of a call")
        found = self._find(call or result.id, CallState.RUNNING)
        if found.id != result.id:
            raise UsageError(f"this is the result of {result.id!r}, and not of {found.id!r}")
        found._become(result.state)
        found._result = result
        self._results += 1
        found.number = self._results
        for resource in result.wrote:
            self._writes[resource] = self._results
        return found

    def close_open(self, reason: str, *, reads: Collection[str] = ()) -> list[Proposal]:
        """Give every open call a truthful result (B21): ``reason`` is why the run ends, ``"cancelled by the user"``.

        What had not begun is cancelled. What was running is cancelled if its tool is one of ``reads``, the names of
        tools that change nothing, and in doubt otherwise. Returns the calls that were open.
        """
        closed = self.open_calls
        for call in closed:
            running, harmless = call.state is CallState.RUNNING, call.name in reads
            state = CallState.IN_DOUBT if running and not harmless else CallState.CANCELLED
            text = why_closed(reason, running=running, harmless=harmless)
            self.record(ToolResult.of(call, state, text), call)
        return closed

    def writes_after(self, call: Proposal) -> list[str]:
        """Resources that ``call`` had read, or written, and that a later result says were written: what it shows of
        them is stale."""
        result = call.result
        if result is None:
            return []
        seen = (*result.reads, *result.wrote)
        return sorted(name for name, number in self._writes.items() if number > call.number and overlap([name], seen))

    # What compaction may do

    def shorten(self, call: Proposal, text: str) -> None:
        """Show less of a result (B18). State, id and arguments stay."""
        if call.result is None:
            raise UsageError(f"call {call.id!r} has no result that could be shortened")
        call._result = msgspec.structs.replace(call.result, text=text)

    def forget(self, entries: Collection[Entry]) -> None:
        """Drop entries: a turn with all its calls and results, or a message. Raises ``UsageError`` for one that is
        not there, or still has open calls."""
        unwanted = {id(entry) for entry in entries}
        if any(isinstance(entry, Turn) and entry.open_calls for entry in entries):
            raise UsageError("a turn whose calls are open cannot be dropped: their results would come from nowhere")
        if not unwanted <= {id(entry) for entry in self._entries}:
            raise UsageError("only entries of this ledger can be dropped, each once")
        self._entries = [entry for entry in self._entries if id(entry) not in unwanted]

    # Inside

    def _last_turn(self) -> Turn | None:
        return next((entry for entry in reversed(self._entries) if isinstance(entry, Turn)), None)

    def _begin(self) -> None:
        if self.is_answering:
            raise UsageError("an answer is not over: close its decoder, and take those events, before the next begins")
        if waiting := self.open_calls:
            ids = ", ".join(repr(call.id) for call in waiting)
            raise UsageError(f"calls wait for their results: {ids}; record them, or close_open, before the next answer")
        self._builder = TurnBuilder(self.make_id)

    def _end(self, turn: Turn) -> None:
        self._builder = None
        self._details = []
        self._turns += 1
        self._ids.update(call.id for call in turn.calls)
        self._entries.append(turn)
        for call in turn.calls:
            if call.error is not None and isinstance(call.call, PartialToolCall) and call.is_open:
                text = self.explain(call.call, call.error, turn.finish_reason)
                self.record(ToolResult.of(call, CallState.NOT_EXECUTED, text), call)

    def _find(self, call: Proposal | str, preferred: CallState) -> Proposal:
        turn = self._last_turn()
        calls = turn.calls if turn is not None else ()
        if isinstance(call, Proposal):
            if not any(call is each for each in calls):
                raise UsageError(f"call {call.id!r} is none of the last turn, and only that can have open calls")
            return call
        named = [each for each in calls if each.id == call]
        if not named:
            known = ", ".join(repr(each.id) for each in calls) or "none"
            raise UsageError(f"the last turn has no call {call!r}; its calls: {known}")
        waiting = [each for each in named if each.is_open]
        return next((each for each in waiting if each.state is preferred), (waiting or named)[0])


def _checked(text: Any) -> str:
    if not isinstance(text, str):
        raise UsageError(f"a system message is text, not {type(text).__name__}")
    return text
