"""A call that is one JSON object, ``{"name": "f", "arguments": {...}}``: the path events of the reader -> events of a
call."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from streamparse.decoding.arguments import JsonDecoder
from streamparse.decoding.pieces import Pieces
from streamparse.events import ArgumentDelta, ArgumentValue, Deviated, Deviation, ErrorCode, ErrorDetail, Path
from streamparse.limits import Limits

PayloadEvent = ArgumentDelta | ArgumentValue | Deviated

NAME = "name"
ARGUMENTS = "arguments"


class Payload:
    """Reads one payload. ``name`` is set as soon as it is complete; events of arguments that come before it wait for
    it."""

    __slots__ = ("_index", "_offset", "_raw", "_waiting", "name", "reader")

    def __init__(self, index: int, offset: int, repair: int, limits: Limits) -> None:
        self._index = index
        self._offset = offset
        self._raw = Pieces()
        self._waiting: list[PayloadEvent] = []
        self.name = ""
        self.reader = JsonDecoder(index=index, offset=offset, repair=repair, limits=limits)

    def feed(self, text: str) -> list[PayloadEvent]:
        """The events of the arguments, from the name on."""
        self._raw.add(text)
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
        if not self.name or not self._waiting:
            return []
        ready, self._waiting = self._waiting, []
        return ready

    def _of_arguments(self, event: ArgumentDelta | ArgumentValue) -> None:
        path: Path = event.path[1:]
        if not path:
            return
        if isinstance(event, ArgumentDelta):
            self._waiting.append(ArgumentDelta(self._index, path, event.text))
        else:
            self._waiting.append(ArgumentValue(self._index, path, event.value))

    def _place(self, deviation: Deviation) -> Deviation:
        path = deviation.path[1:] if deviation.path[:1] == (ARGUMENTS,) else deviation.path
        return structs.replace(deviation, path=path)

    def error(self) -> ErrorDetail | None:
        """What is wrong with a payload that is over: its JSON, or that it is no call."""
        if self.reader.error is not None:
            return self.reader.error
        if self.reader.state != "complete":
            return ErrorDetail(ErrorCode.MISSING_NAME, "an empty call", self._offset, expected=("a JSON object",))
        if not isinstance(self.reader.value.get(ARGUMENTS, {}), dict):
            reason = f"{ARGUMENTS!r} is no JSON object"
            return ErrorDetail(ErrorCode.NOT_AN_OBJECT, reason, self._offset, expected=("a JSON object",))
        return None

    def arguments(self) -> tuple[dict[str, Any], str]:
        """The arguments of a complete payload, and their text as it was sent."""
        start, end = self.reader.spans.get(ARGUMENTS, (0, 0))
        return self.reader.value.get(ARGUMENTS, {}), self._raw.text()[start:end] or "{}"

    def snapshot(self) -> tuple[dict[str, Any], str]:
        """The arguments so far, and the raw payload."""
        partial = self.reader.partial if self.reader.error is None else None
        arguments = partial.get(ARGUMENTS) if isinstance(partial, dict) else None
        return (arguments if isinstance(arguments, dict) else {}), self._raw.text()
