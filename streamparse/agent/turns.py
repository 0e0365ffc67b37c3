"""An assistant turn: what a model said in one answer, and the calls that it proposed, each with its state and result.

``TurnBuilder`` folds a decoder's events into one. The ledger alone moves calls from state to state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from streamparse.agent.legal import arguments_of, clean_name, read_object, text_of
from streamparse.agent.states import TRANSITIONS, CallState
from streamparse.errors import UsageError
from streamparse.events import (
    Deviated,
    Deviation,
    DeviationCode,
    Ended,
    ErrorCode,
    ErrorDetail,
    Event,
    PartialToolCall,
    Reasoning,
    Text,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
)


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a call came to: the one result of the call ``id``.

    ``state`` is how it ended, ``text`` what the model is told. ``reads`` and ``wrote`` name resources (paths) that the
    tool looked at and changed (``resources``).
    """

    id: str
    state: CallState
    text: str
    reads: tuple[str, ...] = ()
    wrote: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, call: Proposal, state: CallState, value: Any, *, reads: Sequence[str] = (), wrote: Sequence[str] = ()
    ) -> ToolResult:
        """The result of ``call``; ``value`` is text, or becomes JSON (``{"ok": true}``, never Python's own writing)."""
        return cls(id=call.id, state=state, text=text_of(value), reads=tuple(reads), wrote=tuple(wrote))

    @property
    def is_error(self) -> bool:
        """Whether the model has to be told that it went wrong (B12)."""
        return self.state is not CallState.OK


class Proposal:
    """A call in the ledger. ``call`` is what the decoder gave, ``error`` why it failed, or None.

    ``number`` counts results in the order in which they came, over the whole ledger; 0 while there is none. ``index``
    is the place of the call in its answer, as the decoder counts.
    """

    def __init__(
        self, id_: str, call: ToolCall | PartialToolCall, error: ErrorDetail | None = None, index: int = 0
    ) -> None:
        self.id = id_
        self.call = call
        self.error = error
        self.index = index
        self.number = 0
        self._state = CallState.PROPOSED
        self._result: ToolResult | None = None

    def __repr__(self) -> str:
        return f"<call {self.id!r} {self.call.name!r} {self._state}>"

    @property
    def state(self) -> CallState:
        """Where the call is."""
        return self._state

    @property
    def result(self) -> ToolResult | None:
        """Its result, once it has ended."""
        return self._result

    @property
    def is_open(self) -> bool:
        """Whether its result is still to come."""
        return self._result is None

    @property
    def name(self) -> str:
        """The tool's name for the wire: without white space, and never empty."""
        return clean_name(self.call.name)

    @property
    def raw(self) -> str:
        """The arguments as they were received, broken or not (B5)."""
        return self.call.raw if isinstance(self.call, PartialToolCall) else self.call.arguments_json

    @cached_property
    def wire_arguments(self) -> str:
        """The arguments for the wire: always the text of a JSON object."""
        return arguments_of(self.call)

    @property
    def wire_object(self) -> Mapping[str, Any]:
        """The same as an object, for wires and templates that want one."""
        return read_object(self.wire_arguments, repair=0) or {}

    def _become(self, state: CallState) -> None:
        """Raises ``UsageError`` for what may not follow (see ``states``)."""
        allowed = TRANSITIONS.get(self._state, ())
        if state not in allowed:
            has = f"it may become {', '.join(allowed)}" if allowed else "it has its result"
            raise UsageError(f"call {self.id!r} is {self._state} and cannot become {state}: {has}")
        self._state = state


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of the model. ``details`` are the provider's own blocks of reasoning (Anthropic's ``thinking`` with
    its signature, entries of ``reasoning_details``), which go back as they came."""

    text: str = ""
    reasoning: str = ""
    details: tuple[Mapping[str, Any], ...] = ()
    calls: tuple[Proposal, ...] = ()
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    clean: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all came."""
        return not (self.text or self.reasoning or self.details or self.calls)

    @property
    def open_calls(self) -> list[Proposal]:
        """Its calls that wait for their results, in call order."""
        return [call for call in self.calls if call.is_open]


def is_served(call: ToolCall | PartialToolCall) -> bool:
    """Whether the provider runs the call itself: whoever runs it again runs it twice."""
    return any(each.code is DeviationCode.SERVER_TOOL for each in call.deviations)


_NO_END = ErrorDetail(ErrorCode.STREAM_INTERRUPTED, "the answer ended inside the call", 0)


class TurnBuilder:
    """Folds the events of one answer. ``take`` returns the turn at ``Ended``, else None.

    Calls that the provider ran itself (``server_tool``) are none of ours: nobody here has their results, and a result
    that says that nothing was executed would be untrue. They are left out.
    """

    def __init__(self, make_id: Callable[[int], str]) -> None:
        self._make_id = make_id
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, ToolCall | PartialToolCall] = {}
        self._errors: dict[int, ErrorDetail] = {}
        self._served: set[int] = set()

    def take(self, event: Event, details: Sequence[Mapping[str, Any]]) -> Turn | None:
        """One event. Deltas and deviations are in what ends the call; they add nothing."""
        match event:
            case Text(text):
                self._text.append(text)
            case Reasoning(text):
                self._reasoning.append(text)
            case ToolCallStarted(index, id_, name):
                self._calls[index] = PartialToolCall(id_, name, {})
                self._errors[index] = _NO_END
            case ToolCallFinished(index, call):
                self._calls[index] = call
                self._errors.pop(index, None)
            case ToolCallFailed(index, partial, error):
                self._calls[index] = partial
                self._errors[index] = error
            case Deviated(int() as index, Deviation(DeviationCode.SERVER_TOOL)):
                self._served.add(index)
            case Ended():
                return self._turn(event, details)
        return None

    def _turn(self, end: Ended, details: Sequence[Mapping[str, Any]]) -> Turn:
        calls = [
            Proposal(call.id or self._make_id(index), call, self._errors.get(index), index)
            for index, call in sorted(self._calls.items(), key=lambda item: item[0])
            if index not in self._served and not is_served(call)
        ]
        return Turn(
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            details=tuple(details),
            calls=tuple(calls),
            finish_reason=end.finish_reason,
            usage=end.usage,
            clean=end.clean,
        )
