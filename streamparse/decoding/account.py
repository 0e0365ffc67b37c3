"""The account of one answer that comes on several roads: structured calls, and native text in one field or two.

Each road has events of its own. Here they become one list, feed by feed; calls get the indexes of the answer, in the
order of their start; and it is remembered how calls ended, and which came in the text (C9)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from streamparse.decoding.outcome import Outcome
from streamparse.events import (
    ArgumentDelta,
    ArgumentRejected,
    ArgumentValue,
    Deviated,
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
        return ErrorDetail(code, reason, self.place, excerpt=excerpt[:EXCERPT])


class Twins:
    """The calls that came in the text, for structured calls that repeat them (C9). Each can be repeated once.

    The arguments are written down only when somebody asks for the first time; then each question is one look-up."""

    __slots__ = ("_finished", "_known", "_running")

    def __init__(self) -> None:
        self._running: dict[int, str] = {}
        self._finished: dict[str, list[tuple[int, ToolCall]]] = {}
        self._known: dict[str, dict[str, list[int]]] = {}  # by name and arguments

    def __bool__(self) -> bool:
        """Whether any call came in the text that may be repeated."""
        return bool(self._running or self._finished or self._known)

    def start(self, index: int, name: str) -> None:
        """A call began in the text."""
        self._running[index] = name

    def end(self, index: int, call: ToolCall | None) -> None:
        """It ended; None if it failed."""
        self._running.pop(index, None)
        if call is not None:
            self._finished.setdefault(call.name, []).append((index, call))

    def running(self, name: str) -> bool:
        """Whether such a call has begun and not ended. (At most one runs, and those that wait in the reasoning.)"""
        return name in self._running.values()

    def any(self, name: str) -> bool:
        """Whether a call of this name came, and no structured call has repeated it."""
        return bool(self._finished.get(name) or self._known.get(name)) or self.running(name)

    def take(self, name: str, arguments: dict[str, Any]) -> int | None:
        """The index of the call that one with these arguments repeats."""
        known = self._known.setdefault(name, {})
        for index, call in self._finished.pop(name, ()):
            known.setdefault(_written(call.arguments), []).append(index)
        indexes = known.get(_written(arguments)) if known else None
        return indexes.pop(0) if indexes else None


def _written(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True)


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
                twins.end(self.index(index), call)
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
