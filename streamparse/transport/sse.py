"""Event streams (``text/event-stream``): bytes in pieces of any size -> events -> the JSON payloads in them. Rule S.

Two questions (``response`` asked before them whether this is an event stream at all):

* ``EventStream``: which events do the bytes hold? ``feed`` and ``close`` return them; ``iter_events`` and
  ``aiter_events`` are the same for whatever yields bytes (``response.iter_bytes()``, aiohttp, a file).
* ``payloads``: which JSON values does an event hold?

Theory. In UTF-8 the bytes CR and LF are never part of another character, so a stream is cut into lines *before* it is
decoded: no character can be split, and nothing but CR, LF and CRLF can end a line. ``_Lines`` does that. A CR ends its
line at once, and an LF that follows, in whatever chunk, belongs to it; so an event is out with its last byte, and no CR
waits for the end of the stream. Fields are read by httpx-sse, where it is right; where it is not, ``_Fields`` stands
before it. No other code knows that httpx-sse exists.

Costs. Every byte is copied a fixed number of times: chunks of one byte, and a line of many megabytes in small chunks,
take linear time. Kept are the lines of the event that is open, at most ``max_event`` bytes; behind that bound, nothing.

The end. ``feed`` and ``close`` never raise on input. What went wrong stands in ``error`` and comes after the events
that were complete before it, so that nothing decoded is lost; the iterators raise it after the last event.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from json import JSONDecoder

import msgspec

# A private module: the public door wants an httpx response, and pulls. The tests compare this with that door, so that a
# change behind it is noticed.
from httpx_sse._decoders import SSEDecoder

from streamparse.errors import ClosedError, EventTooLargeError, StreamInterruptedError, TransportError, UsageError
from streamparse.limits import EXCERPT, MAX_EVENT

DONE = "[DONE]"
"""The payload that says: no more chunks. Frames that follow are still read, for usage."""

BOM = b"\xef\xbb\xbf"
"""The byte order mark."""


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """One event. ``event`` is ``message`` where the stream names none; ``id`` is the last one that was sent, also by an
    earlier event; ``retry`` (milliseconds) only if this event sent it.

    ``unterminated``: the stream ended without the blank line that ends an event. The standard drops such an event; it
    is delivered because its data is complete. A deviation.
    """

    event: str
    data: str
    id: str = ""
    retry: int | None = None
    unterminated: bool = False


class _Lines:
    """Bytes in pieces -> complete lines, without their ends. The rest waits in ``open``."""

    def __init__(self) -> None:
        self.open = bytearray()  # grows in place: amortised linear
        self._after_cr = False
        self._head: bytes | None = b""  # the first bytes, while they may become a byte order mark

    def cut(self, data: bytes) -> list[bytes]:
        """The lines that this completes."""
        if self._head is not None:
            data = self._start(data)
        if self._after_cr and data:
            data = data.removeprefix(b"\n")  # the second half of a CRLF
            self._after_cr = False
        if not data:
            return []
        lines = data.splitlines()  # of bytes: at CR, LF and CRLF only, unlike that of str
        self._after_cr = data.endswith(b"\r")
        rest = b"" if data.endswith((b"\n", b"\r")) else lines.pop()
        if lines and self.open:
            lines[0] = bytes(self.open) + lines[0]
            self.open.clear()
        self.open += rest
        return lines

    def _start(self, data: bytes) -> bytes:
        """S: one byte order mark is stripped, here and nowhere else in the stream."""
        head = (self._head or b"") + data
        self._head = head if len(head) < len(BOM) and BOM.startswith(head) else None
        return b"" if self._head is not None else head.removeprefix(BOM)

    @property
    def empty(self) -> bool:
        """Whether what comes next starts a line, and is not the second half of a CRLF or of a byte order mark."""
        return not self.open and not self._after_cr and self._head is None

    def take_open(self) -> bytes:
        """The line that was never ended."""
        return self._head or bytes(self.open)


class _Fields:
    """Lines -> events: httpx-sse's decoder, and all that is worked around in it.

    * A byte order mark hides its first field, it trusts the charset, ends a line at a CR only with the next chunk, and
      has no size limit. ``_Lines`` gives it no mark, lines that are cut already, and no more than ``max_event`` bytes.
    * It yields an empty event for each blank line once it saw an id, and for a lone ``event`` or ``retry``. Here an
      event is what had a ``data`` line, be it an empty one.
    * ``retry`` goes through ``int``, which takes ``+5``, ``1_0`` and Arabic digits. Only ASCII digits get through.
    * It drops an event whose blank line is missing; ``EventStream.close`` asks for it.
    * One event costs it a call per line and an object with properties: more than all the rest. The blocks that models
      send, one ``data:`` line with or without an ``event:`` line before it, are kept apart in ``_name`` and ``_plain``,
      and go through it only when another field follows.
    """

    def __init__(self) -> None:
        self.id = ""
        self._decoder = SSEDecoder()
        self._name: str | None = None
        self._plain: str | None = None
        self._begun = False  # the decoder has seen fields of this event
        self._has_data = False

    @property
    def begun(self) -> bool:
        """Whether an event is open."""
        return self._begun or self._plain is not None or self._name is not None

    def field(self, line: str) -> None:
        """One line that is neither blank nor a comment."""
        if not self._begun:
            if self._plain is None:
                if line.startswith("data:"):
                    self._plain = line[6:] if line.startswith("data: ") else line[5:]
                    return
                if line.startswith("event:"):  # the last one counts
                    self._name = line[6:].removeprefix(" ")
                    return
            self._hand_over()
        self._decode(line)

    def _hand_over(self) -> None:
        """The block is not a plain one: what was kept apart goes to the decoder."""
        self._begun = True
        if self._name is not None:
            self._decode(f"event: {self._name}")
        if self._plain is not None:
            self._decode(f"data: {self._plain}")
        self._name = self._plain = None

    def _decode(self, line: str) -> None:
        if line.startswith("data:") or line == "data":
            self._has_data = True
        elif line.startswith("retry:") and not _ascii_digits(line[6:].removeprefix(" ")):
            return
        self._decoder.decode(line)

    def end(self) -> SseEvent | None:
        """A blank line: the event that was open, if it had data."""
        if self._begun:
            return self._end_decoded()
        name, plain = self._name, self._plain
        self._name = self._plain = None
        return None if plain is None else SseEvent(name or "message", plain, self.id)

    def _end_decoded(self) -> SseEvent | None:
        found, wanted = self._decoder.decode(""), self._has_data
        self._begun = self._has_data = False
        self.id = found.id if found else ""  # None: it holds nothing, not even an id
        return SseEvent(found.event, found.data, found.id, found.retry) if found and wanted else None


def _ascii_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


class EventStream:
    """Reads one event stream. ``feed`` and ``close`` return the events that became complete.

    ``error`` is None until something goes wrong that is not in the caller's hands: ``EventTooLargeError`` when an event
    has more than ``max_event`` bytes (what follows is not read), or ``StreamInterruptedError`` when the stream ends
    inside an event. Raises ``ClosedError`` after ``close``, ``UsageError`` for a bound that is none.
    """

    def __init__(self, *, max_event: int = MAX_EVENT) -> None:
        if max_event < 1:
            raise UsageError(f"max_event counts bytes and must be at least 1, found {max_event}")
        self.error: TransportError | None = None
        self._max_event = max_event
        self._size = 0  # bytes of the open event's complete lines
        self._closed = False
        self._between = False  # at the start of an event, behind a possible byte order mark
        self._lines, self._fields = _Lines(), _Fields()

    @property
    def interrupted(self) -> bool:
        """Whether the stream did not end as it should have: not all that was sent has been decoded."""
        return self.error is not None

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that these bytes complete, in order. Nothing more once ``error`` is set."""
        if self._closed:
            raise ClosedError("this event stream is closed; make a new EventStream for the next response")
        if self.error is not None:
            return []
        if data[:6] == b"data: " and (payload := self.plain(data)) is not None:
            return [SseEvent("message", payload.decode("utf-8", "replace"), self._fields.id)]
        events: list[SseEvent] = []
        fields = self._fields
        for line in self._lines.cut(data):
            if not line:
                self._size = 0
                if (event := fields.end()) is not None:
                    events.append(event)
            elif self._size + len(line) > self._max_event:
                self._refuse(line)
                return events
            elif not line.startswith(b":"):  # a comment counts for nothing once it is over
                self._size += len(line)
                fields.field(line.decode("utf-8", "replace"))  # S: UTF-8, whatever the charset says
        # The same answer for the start of a line as for the line, so that chunking does not matter.
        if self._size + len(self._lines.open) > self._max_event:
            self._refuse(self._lines.open)
        self._between = self._lines.empty and not fields.begun
        return events

    def plain(self, data: bytes) -> bytes | None:
        """The fast path of who wants payloads: that of bytes which are one event and no more, as most servers write
        it, with or without a name before it. None for what takes more to tell; then nothing was read."""
        end = len(data) - 2
        if not self._between or data[end:] != b"\n\n" or b"\r" in data or end > self._max_event:
            return None
        start = 6
        if data[:6] != b"data: ":
            start += data.find(b"\n") + 1
            if data[:7] != b"event: " or data[start - 6 : start] != b"data: " or data[7 : start - 7] == b"error":
                return None
        return data[start:end] if data.find(b"\n", start) == end else None

    def close(self, *, clean: bool = True) -> list[SseEvent]:
        """The end of the stream; ``clean`` is False when the connection broke.

        S: at a clean end, an event without its blank line is returned if its data is complete JSON or ``[DONE]``
        (``unterminated``). If anything else was open, ``error`` says so; it may be set beside an event.
        """
        if self._closed:
            raise ClosedError("this event stream is closed already")
        self._closed, self._between = True, False
        if self.error is not None:
            return []
        line = self._lines.take_open()
        event = self._last(line) if clean else None
        if not clean:
            where = "inside an event" if line or self._fields.begun else "between two events"
            self.error = StreamInterruptedError(f"the connection broke {where}{_quoted(line)}")
        self._forget()
        return [] if event is None else [event]

    def _last(self, line: bytes) -> SseEvent | None:
        """The event whose blank line is missing. ``line`` was not ended, either."""
        is_data = line.startswith(b"data:")
        if is_data:
            self._fields.field(line.decode("utf-8", "replace"))
        lost = bool(line) and not is_data and not line.startswith(b":")  # part of a field, perhaps of more data
        if not self._fields.begun and not lost:
            return None
        event = self._fields.end()
        if event is not None and not _is_complete(event.data, open_line=is_data):
            line, event = line or event.data[:EXCERPT].encode(), None
        if event is None or lost:
            self.error = StreamInterruptedError(f"the event stream ended inside an event{_quoted(line)}")
        return None if event is None else msgspec.structs.replace(event, unterminated=True)

    def _refuse(self, line: bytes | bytearray) -> None:
        self._between = False
        self.error = EventTooLargeError(f"an event of more than {self._max_event} bytes{_quoted(line)}")
        self._forget()

    def _forget(self) -> None:
        self._lines, self._fields = _Lines(), _Fields()


def _quoted(line: bytes | bytearray) -> str:
    """The start of a line, for an error's message."""
    if not line:
        return ""
    start = excerpt_of(bytes(line))
    return f": {start!r}"


def excerpt_of(data: bytes) -> str:
    """The start of some bytes as text, bounded, for a message."""
    return data[: 4 * EXCERPT].decode("utf-8", "replace")[:EXCERPT]


def iter_events(chunks: Iterable[bytes], *, max_event: int = MAX_EVENT) -> Iterator[SseEvent]:
    """The events of anything that yields bytes: ``iter_events(response.iter_bytes())``, ``iter_events(file)``.

    Raises ``EventTooLargeError`` or ``StreamInterruptedError`` after the last event that is complete. What ``chunks``
    raises passes through. Closing ``chunks`` is up to whoever opened it.
    """
    stream = EventStream(max_event=max_event)
    for data in chunks:
        yield from stream.feed(data)
        if stream.error is not None:
            raise stream.error
    yield from stream.close()
    if stream.error is not None:
        raise stream.error


async def aiter_events(chunks: AsyncIterable[bytes], *, max_event: int = MAX_EVENT) -> AsyncIterator[SseEvent]:
    """``iter_events`` for anything that yields bytes asynchronously: ``aiter_events(response.aiter_bytes())``."""
    stream = EventStream(max_event=max_event)
    async for data in chunks:
        for event in stream.feed(data):
            yield event
        if stream.error is not None:
            raise stream.error
    for event in stream.close():
        yield event
    if stream.error is not None:
        raise stream.error


# --- payloads: the JSON values of an event ---------------------------------------------------------------------------


def payloads(event: SseEvent) -> list[str]:
    """The JSON texts in an event, in order; ``[DONE]`` comes as ``DONE``. An event without text has none.

    S: nearly always the data is one value. Behind some proxies each line of it is one; one value may have several
    lines, too. What is no complete JSON comes last and as it is: the decoder says what is wrong with it.
    """
    data = event.data
    if "\n" in data:
        values, rest = _values(data)
        return [*values, rest] if rest else values
    stripped = data.strip()
    if stripped == DONE:
        return [DONE]
    return [data] if stripped else []


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


# Only where values end is asked of it: it can stop behind a value, which msgspec cannot.
_scan = JSONDecoder(parse_constant=_no_constant, parse_int=str, parse_float=str).raw_decode
_SPACE = re.compile(r"[ \t\r\n]*")
_VALUE_END = re.compile(r"[ \t\r]*(?:\n|\Z)")


def _values(data: str) -> tuple[list[str], str]:
    """The complete values at the start of ``data``, each of which ends its line, and what is left. Linear."""
    values: list[str] = []
    at = _after_space(data, 0)
    while at < len(data):
        end = _value_end(data, at)
        if end is None or not _VALUE_END.match(data, end):
            break
        values.append(data[at:end])
        at = _after_space(data, end)
    return values, data[at:]


def _after_space(data: str, at: int) -> int:
    match = _SPACE.match(data, at)
    return match.end() if match else at


def _value_end(data: str, at: int) -> int | None:
    if data.startswith(DONE, at):
        return at + len(DONE)
    try:
        return _scan(data, at)[1]
    except (ValueError, RecursionError):  # no JSON, or nested deeper than any reader would follow
        return None


def _is_complete(data: str, *, open_line: bool) -> bool:
    """Whether all of the data is complete JSON or ``[DONE]``. At the end of a line that was not ended, a number proves
    nothing: there may have been more digits (J1)."""
    values, rest = _values(data)
    return bool(values) and not rest and not (open_line and data[-1].isdigit())
