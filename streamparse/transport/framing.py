"""How chunks lie in a body: the bytes of a response or a file -> the payloads in them, in pieces of any size.

Each framing has ``feed`` and ``close``, which return payloads for a decoder, and ``error``, which is None until
something is wrong that is not the decoder's to tell."""

from __future__ import annotations

import codecs
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from streamparse.errors import EventTooLargeError, StreamInterruptedError, TransportError
from streamparse.limits import MAX_BODY, MAX_EVENT
from streamparse.transport.sse import BOM, EventStream, SseEvent, excerpt_of, payloads


class FramingKind(StrEnum):
    """How chunks lie in a body."""

    EVENT_STREAM = "event_stream"
    JSON = "json"
    """One JSON value, or one on each line."""
    TEXT = "text"
    """The model's raw output, in UTF-8."""


class Framing(Protocol):
    """Bytes -> payloads."""

    @property
    def error(self) -> TransportError | None:
        """What is wrong with the body itself."""

    @property
    def unterminated(self) -> str | None:
        """The last payload of an event stream whose blank line was missing (S)."""

    def feed(self, data: bytes) -> list[Any]:
        """The payloads that these bytes complete."""

    def close(self, *, clean: bool = True) -> list[Any]:
        """The end of the body; ``clean`` is False when the connection broke."""


def make_framing(kind: FramingKind, *, max_event: int = MAX_EVENT, max_body: int = MAX_BODY) -> Framing:
    """A new framing of this kind. ``max_event`` and ``max_body`` count bytes."""
    if kind is FramingKind.EVENT_STREAM:
        return EventStreamFraming(max_event)
    return TextFraming() if kind is FramingKind.TEXT else JsonFraming(max_body)


class EventStreamFraming:
    """Payloads of an event stream."""

    __slots__ = ("_stream", "unterminated")

    def __init__(self, max_event: int) -> None:
        self._stream = EventStream(max_event=max_event)
        self.unterminated: str | None = None

    @property
    def error(self) -> TransportError | None:
        """What is wrong with the stream."""
        return self._stream.error

    def feed(self, data: bytes) -> list[Any]:
        """The payloads of the events that these bytes complete."""
        payload = self._stream.plain(data)
        if payload is not None:
            return [payload]
        found: list[Any] = []
        for event in self._stream.feed(data):
            found += payloads(event) if event.event != "error" else _errors(event)
        return found

    def close(self, *, clean: bool = True) -> list[Any]:
        """The last payload, where its event lacks the blank line and is complete all the same."""
        events = self._stream.close(clean=clean)
        if events and events[-1].unterminated:
            self.unterminated = events[-1].data
        return [payload for event in events for payload in payloads(event)]


def _errors(event: SseEvent) -> list[Any]:
    """C8: an event of the name ``error`` is an error, also where its data does not say so itself."""
    found: list[Any] = []
    for payload in payloads(event):
        try:
            value = msgspec.json.decode(payload)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            value = payload
        told = isinstance(value, dict) and ("error" in value or "base_resp" in value)
        found.append(payload if told else {"type": "error", "error": value})
    return found


class JsonFraming:
    """One JSON value, pretty or not, or one on each line. Which of them, the first line tells."""

    __slots__ = ("_by_line", "_max", "_open", "_size", "error", "unterminated")

    def __init__(self, max_body: int) -> None:
        self.error: TransportError | None = None
        self.unterminated: str | None = None
        self._max = max_body
        self._open: list[bytes] = []
        self._size = 0
        self._by_line: bool | None = None

    def feed(self, data: bytes) -> list[Any]:
        """The lines that are complete, if each holds a value."""
        found: list[Any] = []
        if self.error is not None:
            return found
        lines = [data] if self._by_line is False else data.splitlines(keepends=True)
        for line in lines:
            self._keep(line)
            if self._by_line is not False and line.endswith(b"\n"):
                found += self._end_line()
        if self._size > self._max:
            self._open.clear()
            self.error = EventTooLargeError(f"a body, or a line, of more than {self._max} bytes")
        return found

    def _keep(self, data: bytes) -> None:
        if data:
            self._open.append(data)
            self._size += len(data)

    def _end_line(self) -> list[Any]:
        line = b"".join(self._open)
        blank = not line.strip()
        if not blank and self._by_line is None:
            self._by_line = _is_json(line)
        if not blank and not self._by_line:
            return []
        self._open.clear()
        self._size = 0
        return [] if blank else [line]

    def close(self, *, clean: bool = True) -> list[Any]:
        """What is left: the whole body, or the last line."""
        if not clean and self.error is None:
            self.error = StreamInterruptedError("the connection broke inside the body")
        if self.error is not None:
            return []
        rest = b"".join(self._open).removeprefix(BOM)
        self._open.clear()
        values = _elements(rest) if not self._by_line else None
        if values is not None:
            return values
        if _is_cut(rest):
            self.error = StreamInterruptedError(f"the body ended inside its JSON: {excerpt_of(rest)!r}")
            return []
        return [rest] if rest.strip() else []


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line.removeprefix(BOM), type=msgspec.Raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True


def _is_cut(text: bytes) -> bool:
    """Whether this is the beginning of an object or a list, and more could have made it whole."""
    if not text.lstrip().startswith((b"{", b"[")):
        return False
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.MsgspecError as error:
        return "truncated" in str(error)
    except (ValueError, RecursionError):
        return False
    return False


_decode_list = msgspec.json.Decoder(list[Any]).decode


def _elements(body: bytes) -> list[Any] | None:
    """The chunks of a body that is a list of them; None if it is none."""
    if not body.lstrip().startswith(b"["):
        return None
    try:
        return _decode_list(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


class TextFraming:
    """Raw output: UTF-8, split anywhere; invalid bytes are U+FFFD, and one byte order mark at the start is no text."""

    __slots__ = ("_decoder", "error", "unterminated")

    def __init__(self) -> None:
        self.error: TransportError | None = None
        self.unterminated: str | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")

    def feed(self, data: bytes) -> list[Any]:
        """The text of these bytes."""
        text = self._decoder.decode(data)
        return [text] if text else []

    def close(self, *, clean: bool = True) -> list[Any]:
        """Half a character is one that is no character."""
        if not clean:
            self.error = StreamInterruptedError("the connection broke inside the text")
        text = self._decoder.decode(b"", final=True)
        return [text] if text else []
