"""A call that is one JSON object, ``{"name": "f", "arguments": {...}}``: the path events of the reader -> events of a
call.

From tier 2 on the arguments may be a string that holds the object (J5). A second reader gets the characters of that
string; the offsets of its deviations and errors are that of the payload."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from streamparse.decoding import repair as repairs
from streamparse.decoding.arguments import JsonDecoder, reader_in_string
from streamparse.decoding.early import Early
from streamparse.decoding.pieces import Pieces
from streamparse.events import (
    ArgumentDelta,
    ArgumentRejected,
    ArgumentValue,
    Deviated,
    Deviation,
    ErrorCode,
    ErrorDetail,
    Path,
)
from streamparse.limits import Limits

PayloadEvent = ArgumentDelta | ArgumentValue | ArgumentRejected | Deviated

NAME = "name"
ARGUMENTS = "arguments"


class Payload:
    """Reads one payload. ``name`` is set as soon as it is complete; events of arguments that come before it wait for
    it."""

    __slots__ = ("_growing", "_index", "_inner", "_offset", "_waiting", "name", "raw", "reader")

    def __init__(self, index: int, offset: int, repair: int, limits: Limits, early: Early | None = None) -> None:
        self._index = index
        self._offset = offset
        self._waiting: list[PayloadEvent] = []
        self._growing: tuple[Path, Pieces] | None = None  # deltas that wait for the name are joined
        self.raw = Pieces()
        self.name = ""
        self.reader = JsonDecoder(index=index, offset=offset, repair=repair, limits=limits)
        self.reader.watch = None if early is None else early.watch_payload(index, NAME, ARGUMENTS)
        self._inner: JsonDecoder | None = None  # reads the string that the arguments are
        if repairs.allows(repair, repairs.JSON_IN_STRING):
            self._inner = reader_in_string(index, (), offset, repair, "object", limits)

    def feed(self, text: str) -> list[PayloadEvent]:
        """The events of the arguments, from the name on."""
        self.raw.add(text)
        return self._translate(self.reader.feed(text))

    def close(self) -> list[PayloadEvent]:
        """The payload is delimited."""
        return self._translate(self.reader.close())

    def _translate(self, events: list[PayloadEvent]) -> list[PayloadEvent]:
        for event in events:
            if isinstance(event, Deviated):
                self._waiting.append(Deviated(self._index, self._place(event.deviation)))
            elif event.path[0] == ARGUMENTS:
                self._of_arguments(event)
            elif event.path == (NAME,) and isinstance(event, ArgumentValue) and isinstance(event.value, str):
                self.name = event.value.strip()
        if not self.name:
            return []
        self._end_growing()
        ready, self._waiting = self._waiting, []
        return ready

    def _of_arguments(self, event: ArgumentDelta | ArgumentValue | ArgumentRejected) -> None:
        path: Path = event.path[1:]
        if isinstance(event, ArgumentRejected):
            self._end_growing()
            self._waiting.append(ArgumentRejected(self._index, path, structs.replace(event.issue, path=path)))
        elif not path:
            self._of_string(event)
        elif isinstance(event, ArgumentValue):
            self._end_growing()
            self._waiting.append(ArgumentValue(self._index, path, event.value))
        else:
            self._delta(path, event.text)

    def _of_string(self, event: ArgumentDelta | ArgumentValue) -> None:
        """The arguments are a string, or something else that is no object."""
        inner = self._inner
        if inner is None:
            return
        if isinstance(event, ArgumentValue):
            self._of_inner(inner.close())
            return
        before = inner.start
        found = inner.feed(event.text)
        if before is None and inner.start is not None:
            deviation = repairs.repaired(repairs.JSON_IN_STRING, self._offset, ())
            self._of_inner([Deviated(self._index, deviation)])
        self._of_inner(found)

    def _of_inner(self, events: list[PayloadEvent]) -> None:
        for event in events:
            if isinstance(event, ArgumentDelta):
                self._delta(event.path, event.text)
            else:
                self._end_growing()
                self._waiting.append(self._at_payload(event) if isinstance(event, Deviated) else event)

    def _at_payload(self, event: Deviated) -> Deviated:
        return Deviated(self._index, structs.replace(event.deviation, offset=self._offset))

    def _delta(self, path: Path, text: str) -> None:
        if self.name:
            self._waiting.append(ArgumentDelta(self._index, path, text))
        else:
            self._grow(path, text)

    def _grow(self, path: Path, text: str) -> None:
        if self._growing is None or self._growing[0] != path:
            self._end_growing()
            self._growing = (path, Pieces())
        self._growing[1].add(text)

    def _end_growing(self) -> None:
        if self._growing is not None:
            path, pieces = self._growing
            self._growing = None
            self._waiting.append(ArgumentDelta(self._index, path, pieces.text()))

    def _place(self, deviation: Deviation) -> Deviation:
        path = deviation.path[1:] if deviation.path[:1] == (ARGUMENTS,) else deviation.path
        return structs.replace(deviation, path=path)

    def error(self) -> ErrorDetail | None:
        """What is wrong with a payload that is over: its JSON, or that it is no call."""
        found = self.reader.error
        if found is not None:
            path = found.path[1:] if found.path[:1] == (ARGUMENTS,) else found.path
            return structs.replace(found, path=path)
        if self.reader.state != "complete":
            return ErrorDetail(ErrorCode.MISSING_NAME, "an empty call", self._offset, expected=("a JSON object",))
        given, inner = self.reader.value.get(ARGUMENTS, {}), self._inner
        if isinstance(given, str) and inner is not None and inner.start is not None:
            return inner.error and structs.replace(inner.error, offset=self._offset)
        if not isinstance(given, dict):
            reason = f"{ARGUMENTS!r} is no JSON object"
            return ErrorDetail(ErrorCode.NOT_AN_OBJECT, reason, self._offset, expected=("a JSON object",))
        return None

    def arguments(self) -> tuple[dict[str, Any], str | None]:
        """The arguments of a complete payload, and their text as it was sent; None where that was no JSON (J5)."""
        if isinstance(self.reader.value.get(ARGUMENTS), str) and self._inner is not None:
            return self._inner.value, None
        start, end = self.reader.spans.get(ARGUMENTS, (0, 0))
        sent = self.raw.text()[start:end] or "{}"
        return self.reader.value.get(ARGUMENTS, {}), None if self.reader.deviations else sent

    def extra(self) -> list[str]:
        """The members of a complete payload that mean nothing."""
        return [key for key in self.reader.value if key not in (NAME, ARGUMENTS)]

    def snapshot(self) -> dict[str, Any]:
        """The arguments so far."""
        partial = self.reader.partial
        arguments = partial.get(ARGUMENTS) if isinstance(partial, dict) else None
        if isinstance(arguments, str) and self._inner is not None:
            arguments = self._inner.partial
        return arguments if isinstance(arguments, dict) else {}
