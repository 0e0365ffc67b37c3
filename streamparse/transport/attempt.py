"""One try: from the head of a response to the last event, by the rules of S, E4 and C8. Sans-IO.

Theory. A driver tells what happens, with the time: ``head``, ``feed`` (bytes), ``end`` (of the response), ``expire``
(the deadline is over), ``break_off`` (the connection broke). It gets back the events to hand over, and looks at
``deadline``, ``over`` and the two errors:

* ``refusal``: nothing was handed over, and nothing will be. Raise it, or try again.
* ``error``: something was. The last events say what the answer lacks, this says why. Do not try again.

Which of them it is depends on one thing: whether an event was handed over. A deviation alone is no event of the answer,
nor is a chunk that is no JSON; they wait for the next one. So the same bytes end in the same way however they were cut.

The phases, and the deadline in each::

    FIRST    nothing was handed over           first_token from the sending of the request
    FLOW     events come                       idle from the moment that one is waited for
    TAIL     the answer said that it is done   TAIL_SECONDS; what is missing after that is not missed
    REFUSED  the body of an error              REFUSED_SECONDS; an error without its body is one, too
    OVER     nothing more is read
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import Protocol, TypeGuard

import msgspec

from streamparse.errors import ResponseError, StreamInterruptedError, StreamTimeoutError, TransportError
from streamparse.events import Deviated, Ended, ErrorCode, Event, Failed, ToolCallFailed
from streamparse.limits import ERROR_BODY, MAX_EVENT
from streamparse.transport.body import Body
from streamparse.transport.formats import wire_of_words
from streamparse.transport.framing import FramingKind
from streamparse.transport.pace import Pace
from streamparse.transport.recorder import Redaction
from streamparse.transport.refusal import Reply, header_map, refusal
from streamparse.transport.response import ResponseCheck, ResponseKind, check_response
from streamparse.transport.sse import BOM
from streamparse.transport.wires import Decoder, Wire

TAIL_SECONDS = 5.0
"""How long the end of a response is waited for once the answer is done: the usage comes at once, or not at all. After
that the connection is closed in place of being used again."""

TAIL_BYTES = 64 * 1024
"""How much may come after the answer is done."""

REFUSED_SECONDS = 5.0
"""How long the body of an error is waited for."""


class Observer(Protocol):
    """Takes an answer down as it arrives. What it raises passes through to the caller."""

    def begin(self, attempt: int, status: int, media_type: str) -> None:
        """A response has come. ``attempt`` counts from 1; what earlier ones brought is no part of the answer."""

    def piece(self, at: float, data: bytes) -> None:
        """Bytes of its body, ``at`` in seconds since the request was sent, before they are decoded."""

    def end(self, *, broken: bool) -> None:
        """Nothing more is read; ``broken`` if the body did not end by itself. Not called when the caller stops."""


class Phase(Enum):
    """What a response is expected to do next."""

    FIRST = auto()
    FLOW = auto()
    TAIL = auto()
    REFUSED = auto()
    OVER = auto()


class Try(msgspec.Struct, frozen=True):
    """What a try begins with. ``number`` counts from 1; ``sent`` and ``date`` are the time on the two clocks."""

    number: int
    sent: float
    date: float
    decoder: Decoder
    wire: Wire
    pace: Pace
    max_event: int = MAX_EVENT
    observer: Observer | None = None


class Attempt:
    """One try. See above."""

    over: bool
    """Whether nothing more is read."""
    flowing: bool
    """Whether events come, so that the deadline is ``idle`` away when one begins to wait."""

    def __init__(self, given: Try) -> None:
        self.decoder = given.decoder
        self.deadline = given.sent + given.pace.first_token
        self.status: int | None = None
        self.error: TransportError | None = None
        self.refusal: TransportError | None = None
        self._given = given
        self._idle = given.pace.idle
        self._observer = given.observer
        self._redact = Redaction()
        self._enter(Phase.FIRST)
        self._headers: dict[str, str] = {}
        self._body: Body | None = None
        self._start = bytearray()  # of the body, until it is known what it holds; of an error's, all that is kept
        self._kept = bytearray()  # the latest bytes, while they may turn out to be an error
        self._emitted = False
        self._held: list[Event] = []  # deviations before the first event
        self._tail_left = TAIL_BYTES

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self.over = phase is Phase.OVER
        self.flowing = phase is Phase.FLOW

    # What happens

    def head(self, status: int, headers: Iterable[tuple[str, str]], redact: Redaction, now: float) -> None:
        """The response has begun. ``redact`` is for what an error quotes of it."""
        self._redact = redact
        self.status, self._headers = status, header_map(headers)
        check = self._check()
        if self._observer is not None:
            self._observer.begin(self._given.number, status, check.media_type)
        if check.reason and not 200 <= status < 300:
            self._enter(Phase.REFUSED)
            self.deadline = now + REFUSED_SECONDS

    def wait(self, now: float) -> None:
        """The driver begins to wait for events. What the caller did in the meantime is no silence of the server."""
        if self.flowing:
            self.deadline = now + self._idle
        elif self._phase is Phase.TAIL:
            self.deadline = now + TAIL_SECONDS

    def feed(self, data: bytes, now: float) -> list[Event]:
        """Bytes of the body."""
        if self.flowing and self._observer is None:
            return self._flow(data, now)
        if self._observer is not None:
            self._observer.piece(now - self._given.sent, data)
        if self._phase is Phase.REFUSED:
            self._collect(data)
            events = []
        elif self._body is None:
            events = self._begin(data, now)
        else:
            events = self._decode(self._body, data, now)
        if events or self.over or now < self.deadline:
            return events
        return self.expire()

    def _flow(self, data: bytes, now: float) -> list[Event]:
        """The fast path: an answer in the middle."""
        body = self._body
        assert body is not None
        events = body.feed(data)
        if body.over:
            return self._over(body, events, len(data), now)
        return events if events or now < self.deadline else self.expire()

    def end(self) -> list[Event]:
        """The body ended by itself."""
        if self._phase is Phase.REFUSED:
            return self._refuse(self._check())
        events: list[Event] = []
        body = self._body
        if body is None:
            check = self._check()
            body = self._body = self._body_of(check)
            if body is None:
                return self._refuse(check)
            events = body.feed(bytes(self._start))
        return self._close(body, events)

    def expire(self) -> list[Event]:
        """The deadline is over."""
        phase = "idle" if self._emitted else "first_token"
        return self.break_off(StreamTimeoutError(phase, getattr(self._given.pace, phase)))

    def break_off(self, error: TransportError) -> list[Event]:
        """The connection broke, or is given up."""
        if self._phase is Phase.REFUSED:
            return self._refuse(self._check(), broken=True)
        if self._phase is Phase.TAIL and self._body is not None:
            return self._close(self._body, [], broken=True)  # the answer was whole
        if not self._emitted or self._body is None:
            return self._give_up(error, broken=True)
        self.error = error
        self._finish(broken=True)
        return self._body.close(clean=False)

    # What the response is

    def _check(self) -> ResponseCheck:
        assert self.status is not None
        return check_response(self.status, self._headers, bytes(self._start))

    def _begin(self, data: bytes, now: float) -> list[Event]:
        """The first bytes tell what the body is, together with the headers."""
        self._start += data
        if _is_blank(bytes(self._start)) and len(self._start) < ERROR_BODY:
            return []
        body = self._body = self._body_of(self._check())
        if body is None:
            self._enter(Phase.REFUSED)
            self.deadline = min(self.deadline, now + REFUSED_SECONDS)
            self._collect(b"")
            return []
        start = bytes(self._start)
        self._start.clear()
        return self._decode(body, start, now)

    def _body_of(self, check: ResponseCheck) -> Body | None:
        """What decodes this body; None if it holds no answer."""
        given = self._given
        if given.wire is not Wire.TEXT:
            kind = None if check.kind is ResponseKind.ERROR else FramingKind(check.kind.value)
        else:
            refused = not 200 <= check.status < 300 or check.media_type.endswith("json")
            kind = None if refused else FramingKind.TEXT
        return None if kind is None else Body(given.decoder, kind, max_event=given.max_event)

    def _collect(self, data: bytes) -> None:
        self._start += data
        if len(self._start) >= ERROR_BODY:
            del self._start[ERROR_BODY:]
            self._refuse(self._check(), broken=True)

    # What the answer says

    def _decode(self, body: Body, data: bytes, now: float) -> list[Event]:
        if self._emitted:
            events = body.feed(data)
        else:
            self._keep(data)
            events = self._first(body.feed(data))
            if self.over:
                return []
        return self._over(body, events, len(data), now) if body.over else events

    def _over(self, body: Body, events: list[Event], size: int, now: float) -> list[Event]:
        if body.error is not None:
            return self._close(body, events)
        return events + self._enter_tail(body, size, now)

    def _enter_tail(self, body: Body, size: int, now: float) -> list[Event]:
        """The answer is done, and the response goes on. What is in the same piece as the end is not counted."""
        if self._phase is not Phase.TAIL:
            self._enter(Phase.TAIL)
            self.deadline = now + TAIL_SECONDS
            return []
        self._tail_left -= size
        return [] if self._tail_left > 0 else self._close(body, [], broken=True)

    def _keep(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > ERROR_BODY:
            del self._kept[:-ERROR_BODY]

    def _first(self, events: list[Event]) -> list[Event]:
        """The first events, if they are that: an error before all else is no answer (C8)."""
        first = _first_of(events)
        self._held += events
        if first is None:
            return []
        if _is_provider_error(first):
            reason = "the answer is an error"
            return self._give_up(refusal(self._reply(), reason, bytes(self._kept), said=first.error.reason))
        self._emitted = True
        events, self._held = self._held, []
        self._kept.clear()
        if self._phase is Phase.FIRST:
            self._enter(Phase.FLOW)
            self.deadline = math.inf
        return events

    # Ends

    def _close(self, body: Body, events: list[Event], *, broken: bool = False) -> list[Event]:
        """The last events, behind those before them. ``broken``: the response goes on, and is not read any more."""
        tail = self._phase is Phase.TAIL
        events = events + body.close()
        error = None if tail else self._lack(body) or _interruption(events)
        if not self._emitted:
            first = _first_of(self._held + events)
            if first is None or isinstance(first, Ended):
                error = error if body.error is not None else self._no_answer(events) or error
            if error is not None and not _is_provider_error(first):
                return self._give_up(error, broken=body.error is not None)
            events = self._first(events)
            if self.refusal is not None:
                return []
        self.error = error
        self._finish(broken=broken or body.error is not None)
        return events

    def _lack(self, body: Body) -> TransportError | None:
        """What is wrong with the body. It may quote a line of it."""
        return None if body.error is None else type(body.error)(self._redact.excerpt(str(body.error)))

    def _no_answer(self, events: list[Event]) -> TransportError | None:
        """Why there is nothing of an answer in a body that holds something."""
        unreadable = next(filter(_is_unreadable, self._held + events), None)
        if unreadable is None:
            return self._other_wire()
        said = unreadable.error.excerpt
        return refusal(self._reply(), "expected JSON of an answer", bytes(self._kept), said=f"found {said!r}")

    def _other_wire(self) -> TransportError | None:
        """The chunks are those of another wire, which the decoder of this one skips."""
        wire, found = self._given.wire, wire_of_words(bytes(self._kept))
        if found is None or (found is Wire.MESSAGES) is (wire is Wire.MESSAGES):
            return None
        reason = f"expected chunks of the wire {wire.value!r}, found those of {found.value!r}; use wire={found.value!r}"
        return refusal(self._reply(), reason, bytes(self._kept))

    def _refuse(self, check: ResponseCheck, *, broken: bool = False) -> list[Event]:
        reason = check.reason or f"expected raw text, found media type {check.media_type!r}"
        return self._give_up(refusal(self._reply(), reason, bytes(self._start)), broken=broken)

    def _give_up(self, error: TransportError, *, broken: bool = False) -> list[Event]:
        if not isinstance(error, ResponseError):
            error = self._other_wire() or error
        self.refusal = error
        self._finish(broken=broken)
        return []

    def _finish(self, *, broken: bool) -> None:
        self._enter(Phase.OVER)
        if self._observer is not None and self.status is not None:
            self._observer.end(broken=broken)

    def _reply(self) -> Reply:
        given = self._given
        return Reply(self.status or 0, self._headers, self._redact, given.date)


def _interruption(events: Sequence[Event]) -> TransportError | None:
    """C6: the response ended by itself, and the answer did not."""
    for event in events:
        if isinstance(event, Failed | ToolCallFailed) and event.error.code is ErrorCode.STREAM_INTERRUPTED:
            return StreamInterruptedError("the response ended before the answer did")
    return None


def _is_blank(start: bytes) -> bool:
    """Whether the start of a body says nothing yet: white space, or a part of a byte order mark."""
    return BOM.startswith(start) or not start.removeprefix(BOM).strip()


def _first_of(events: Sequence[Event]) -> Event | None:
    """The first event of the answer itself. What cannot be read is no part of it: it waits, too."""
    return next((event for event in events if not isinstance(event, Deviated) and not _is_unreadable(event)), None)


def _is_unreadable(event: Event) -> TypeGuard[Failed]:
    return isinstance(event, Failed) and event.error.code is ErrorCode.INVALID_JSON


def _is_provider_error(event: Event | None) -> TypeGuard[Failed]:
    return isinstance(event, Failed) and event.error.code is ErrorCode.PROVIDER_ERROR
