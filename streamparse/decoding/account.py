"""The account of one answer that comes on several roads: structured calls, and native text in one field or two.

Each road has events of its own. Here they become one list, feed by feed; calls get the indexes of the answer, in the
order of their start; and it is remembered how calls ended, and which came in the text (C9)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from streamparse.decoding.lenient import sound
from streamparse.decoding.outcome import Outcome
from streamparse.events import (
    ArgumentDelta,
    ArgumentRejected,
    ArgumentValue,
    Deviated,
    Deviation,
    DeviationCode,
    Ended,
    ErrorCode,
    ErrorDetail,
    Event,
    Failed,
    Reasoning,
    Text,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
)
from streamparse.limits import EXCERPT


class Account(Outcome):
    """The outcome of one answer. ``place`` counts the characters that were received."""

    __slots__ = ("_make_id", "count", "ids", "place", "twins")

    def __init__(self, make_id: Callable[[int], str]) -> None:
        super().__init__()
        self._make_id = make_id
        self.count = 0  # calls that have an index
        self.place = 0
        self.ids: set[str] = set()
        self.twins = Twins()

    def next_index(self) -> int:
        """The index of a call that starts now."""
        self.count += 1
        return self.count - 1

    def make_id(self, index: int) -> str:
        """N17, C4: the id of a call that came without one."""
        return self._make_id(index)

    def error(self, code: ErrorCode, reason: str, excerpt: str = "") -> ErrorDetail:
        """An error at this place."""
        return ErrorDetail(code, reason, self.place, excerpt=sound(excerpt[:EXCERPT]))


class _Calls:
    """Sealed calls by name and arguments, each of which can be taken once.

    The arguments are written down only when somebody asks for the first time; then each question is one look-up."""

    __slots__ = ("_known", "_new")

    def __init__(self) -> None:
        self._new: dict[str, list[tuple[int, ToolCall]]] = {}
        self._known: dict[str, dict[str, list[int]]] = {}  # by name and arguments

    def __bool__(self) -> bool:
        return bool(self._new or self._known)

    def any(self, name: str) -> bool:
        return bool(self._new.get(name) or self._known.get(name))

    def add(self, index: int, call: ToolCall) -> None:
        self._new.setdefault(call.name, []).append((index, call))

    def take(self, name: str, arguments: dict[str, Any]) -> int | None:
        """The index of a call with these arguments, which is forgotten."""
        known = self._known.setdefault(name, {})
        for index, call in self._new.pop(name, ()):
            known.setdefault(_written(call.arguments), []).append(index)
        key = _written(arguments) if known else ""
        indexes = known.get(key)
        if indexes is None:
            return None
        index = indexes.pop(0)
        if not indexes:
            del known[key]
        return index


class Twins:
    """The calls that came in the text, for structured calls that repeat them, and the other way round (C9). Each can be
    repeated once."""

    __slots__ = ("_finished", "_running", "_structured")

    def __init__(self) -> None:
        self._running: dict[int, str] = {}
        self._finished = _Calls()
        self._structured = _Calls()

    def __bool__(self) -> bool:
        """Whether any call came in the text that may be repeated."""
        return bool(self._running or self._finished)

    def start(self, index: int, name: str) -> None:
        """A call began in the text."""
        self._running[index] = name

    def end(self, index: int, call: ToolCall | None) -> None:
        """It ended; None if it failed, or is no call of its own."""
        self._running.pop(index, None)
        if call is not None:
            self._finished.add(index, call)

    def sealed(self, call: ToolCall) -> None:
        """A structured call was sealed."""
        self._structured.add(-1, call)

    def again(self, call: ToolCall) -> bool:
        """Whether a call that ends in the text repeats a structured one that was sealed before it."""
        return bool(self._structured) and self._structured.take(call.name, call.arguments) is not None

    def running(self, name: str) -> bool:
        """Whether such a call has begun and not ended. (At most one runs, and those that wait in the reasoning.)"""
        return name in self._running.values()

    def any(self, name: str) -> bool:
        """Whether a call of this name came, and no structured call has repeated it."""
        return self._finished.any(name) or self.running(name)

    def take(self, name: str, arguments: dict[str, Any]) -> int | None:
        """The index of the call that one with these arguments repeats."""
        return self._finished.take(name, arguments)


def _written(arguments: dict[str, Any]) -> str:
    """The arguments, so that they are equal if they are to be taken for the same. Native text has no types, so a string
    is equal to the value whose JSON text it is; numbers go by their value."""
    return json.dumps({key: _value_text(value) for key, value in arguments.items()}, sort_keys=True)


def _value_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    try:
        return json.dumps(json.loads(text, parse_float=_number), sort_keys=True)
    except (ValueError, RecursionError):  # a text that is no JSON
        return text


def _number(text: str) -> float | int:
    value = float(text)
    return int(value) if value.is_integer() else value


class Road:
    """The indexes of one native decoder, as indexes of the answer."""

    __slots__ = ("_account", "_indexes")

    def __init__(self, account: Account) -> None:
        self._account = account
        self._indexes: dict[int, int] = {}

    def index(self, index: int) -> int:
        """The index in the answer; a new one for a call that is new."""
        known = self._indexes.get(index)
        if known is None:
            known = self._indexes[index] = self._account.next_index()
        return known

    def make_id(self, index: int) -> str:
        """The id of a call."""
        return self._account.make_id(self.index(index))

    def local(self, index: int) -> int | None:
        """The decoder's own index of a call; None if the call is not on this road."""
        return next((own for own, public in self._indexes.items() if public == index), None)

    def take(self, events: list[Event]) -> None:
        """Events of the decoder, which become events of the answer."""
        for event in events:
            self._take(event)

    def _told_again(self, index: int, call: ToolCall) -> ToolCall:
        """C9: the structured call came first, and nothing that was told is taken back."""
        deviation = Deviation(DeviationCode.REPEATED_CALL, self._account.place)
        self._account.events.append(Deviated(self.index(index), deviation))
        return msgspec.structs.replace(call, deviations=(*call.deviations, deviation), trusted=False)

    def _take(self, event: Event) -> None:
        account = self._account
        twins = account.twins
        match event:
            case Text() | Reasoning():
                account.events.append(event)
            case ArgumentDelta(index, path, text):
                account.events.append(ArgumentDelta(self.index(index), path, text))
            case ArgumentValue(index, path, value):
                account.events.append(ArgumentValue(self.index(index), path, value))
            case ArgumentRejected(index, path, issue):
                account.events.append(ArgumentRejected(self.index(index), path, issue))
            case ToolCallStarted(index, id_, name):
                twins.start(self.index(index), name)
                account.events.append(ToolCallStarted(self.index(index), id_, name))
            case ToolCallFinished(index, call):
                again = twins.again(call)
                twins.end(self.index(index), None if again else call)
                if again:
                    call = self._told_again(index, call)
                account.conclude(ToolCallFinished(self.index(index), call))
            case ToolCallFailed(index, partial, error):
                twins.end(self.index(index), None)
                account.conclude(ToolCallFailed(self.index(index), partial, error))
            case Deviated(index, deviation):
                account.events.append(Deviated(None if index is None else self.index(index), deviation))
            case Failed():
                account.clean = False
                account.events.append(event)
            case Ended(clean=clean):
                account.clean = account.clean and clean  # E2, N13: sealed in an answer that was cut
