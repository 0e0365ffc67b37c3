"""What the blocking and the asynchronous driver have in common: the options, what is sent in each try, what is made of
the client's exceptions. It uses what httpx and httpx2 have in common and imports neither."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from streamparse.errors import TransportError, UsageError
from streamparse.events import Event, PartialToolCall, ToolCall
from streamparse.limits import DEFAULT_LIMITS, MAX_EVENT, Limits
from streamparse.transport import faults
from streamparse.transport.attempt import Attempt, Observer, Try
from streamparse.transport.pace import CLOCK, Clock, pace
from streamparse.transport.recorder import Redaction
from streamparse.transport.redaction import redact_errors, redaction_of
from streamparse.transport.request import HeaderTypes, outgoing
from streamparse.transport.wires import Decoder, Options, as_wire, wire_of_url

FIRST_TOKEN = 30.0
"""Seconds from the sending of a request to the first event. Models think aloud, so even a long thought begins early."""

IDLE = 300.0
"""Seconds without an event. Some providers send nothing but keep-alives while a model thinks, or writes a large
argument that they hold back; and some hang. A stream that hung is no worse after five minutes than after one."""


class Client(Protocol):
    """An ``httpx.Client`` or ``httpx.AsyncClient``, or one of httpx2."""

    @property
    def timeout(self) -> Any:
        """The time limits of its own, of which those for connecting, writing and the pool are kept."""

    def build_request(self, *args: Any, **keywords: Any) -> Any:
        """A request, merged with what the client adds to each."""

    def send(self, *args: Any, **keywords: Any) -> Any:
        """Sends it."""


class Exchange:
    """What the two have in common. ``AnswerStream`` documents it."""

    _reads_block = True

    def __init__(
        self,
        client: Client,
        url: Any,
        request: Mapping[str, Any] | bytes,
        *,
        wire: str | None = None,
        tools: Iterable[Any] | None = None,
        dialect: str | None = "auto",
        start: Literal["text", "reasoning"] = "text",
        repair: int = 1,
        early: bool = False,
        id_factory: Callable[[int], str] | None = None,
        limits: Limits = DEFAULT_LIMITS,
        headers: HeaderTypes | None = None,
        first_token: float | None = FIRST_TOKEN,
        idle: float | None = IDLE,
        retries: int = 2,
        max_wait: float = 30.0,
        max_event: int = MAX_EVENT,
        observer: Observer | None = None,
        clock: Clock = CLOCK,
    ) -> None:
        self.attempts = 0
        """How often the request was sent."""
        self.response: Any = None
        """The client's response object, for its headers; None before there is one. Do not read it."""
        self._client, self._clock, self._observer = client, clock, observer
        self._pace = pace(first_token, idle, retries, max_wait)
        self._outgoing = outgoing(url, request, headers)
        self._wire = wire_of_url(str(url)) if wire is None else as_wire(wire)
        self._options = Options(
            tools=self._outgoing.tools if tools is None else _lasting(tools),
            dialect=dialect,
            start=start,
            repair=repair,
            early=early,
            id_factory=id_factory,
            limits=limits,
        )
        self._max_event = max_event
        self._decoder = self._options.decoder(self._wire)  # what is wrong with the options is told before it is sent
        self._request: Any = None
        self._redact = Redaction()
        self._now = clock.now
        self._attempt: Attempt | None = None
        self._ready: deque[Event] = deque()
        self._closed = False
        self._limit_is_idle = False

    @property
    def status(self) -> int | None:
        """The HTTP status; None before there is one."""
        return None if self._attempt is None else self._attempt.status

    @property
    def error(self) -> TransportError | None:
        """Why the stream is not whole, once it is over: its last events say what the answer lacks for that reason."""
        return None if self._attempt is None else self._attempt.error

    @property
    def decoder(self) -> Decoder:
        """The decoder of the last try."""
        return self._decoder

    @property
    def calls(self) -> list[ToolCall]:
        """The sealed calls so far."""
        return self._decoder.calls

    def partial(self, index: int) -> PartialToolCall:
        """A snapshot of a call, as that of the decoder."""
        return self._decoder.partial(index)

    # One try

    def _enter(self) -> None:
        if self.attempts or self._closed:
            raise UsageError("a stream is one request, and is entered once; make a new one for the next")

    def _running(self) -> Attempt | None:
        """The try that is read; None if nothing more comes."""
        if self._closed:
            return None
        if self._attempt is None:
            raise UsageError("the stream is not open: use it in a with statement")
        return None if self._attempt.over else self._attempt

    def _next_try(self) -> Attempt:
        """Everything anew."""
        if self.attempts:
            self._decoder = self._options.decoder(self._wire)
        self.attempts += 1
        self.response = None
        self._request = self._build()
        self._attempt = Attempt(
            Try(
                number=self.attempts,
                sent=self._clock.now(),
                date=self._clock.date(),
                decoder=self._decoder,
                wire=self._wire,
                pace=self._pace,
                max_event=self._max_event,
                observer=self._observer,
            )
        )
        return self._attempt

    def _build(self) -> Any:
        """The client's own limits count, but for reading: its default of 5 s would break long thoughts."""
        own, most = self._client.timeout, self._pace.first_token
        read = _limit(most) if self._reads_block else None
        limits = (_shorter(own.connect, most), read, _shorter(own.write, most), _shorter(own.pool, most))
        out = self._outgoing
        try:
            return self._client.build_request(
                "POST", out.url, content=out.content, headers=out.headers, timeout=limits, extensions=self._extensions()
            )
        except Exception as error:
            told = faults.before_response(error, "", redaction_of(url=str(out.url)))
            if told is None:
                raise
        raise told

    def _extensions(self) -> dict[str, Any]:
        return {}

    def _redaction(self) -> Redaction:
        """Of what was really sent: the client, and what it does for authentication, add to it."""
        request = self._request if self.response is None else self.response.request
        return redaction_of(request.headers.multi_items(), str(request.url))

    def _take_head(self, attempt: Attempt, response: Any) -> None:
        self.response = response
        # The client reads the body with one limit for each read, which must not be over before the deadline is. For
        # exactness it is not enough: every keep-alive starts it again.
        longest = max(self._pace.idle, attempt.deadline - self._clock.now())
        response.request.extensions.get("timeout", {})["read"] = _limit(longest)
        self._limit_is_idle = longest == self._pace.idle and "network_stream" in response.extensions
        self._redact = self._redaction()
        attempt.head(response.status_code, response.headers.multi_items(), self._redact, self._clock.now())

    def _unsent(self, attempt: Attempt, error: Exception) -> bool:
        """There was no response. False for what is not ours to explain; raises what is the caller's fault."""
        if faults.is_read_timeout(error):
            attempt.expire()
            return True
        told = faults.before_response(error, urlsplit(str(self._request.url)).hostname or "", self._redaction())
        if isinstance(told, UsageError):
            raise told from None
        if told is not None:
            attempt.break_off(told)
        return told is not None

    def _broken(self, attempt: Attempt, error: Exception) -> list[Event] | None:
        """The response broke, or the watchdog broke it. None for what is not ours to explain."""
        if self._closed:
            return []
        if self._fired or faults.is_read_timeout(error):
            return attempt.expire()
        told = faults.in_response(error, self._redact)
        return None if told is None else attempt.break_off(told)

    @property
    def _fired(self) -> bool:
        return False

    def _handed_over(self, events: list[Event]) -> list[Event]:
        """What the caller gets of these."""
        return [] if self._closed else redact_errors(events, self._redact)

    def _pause(self, refusal: TransportError) -> float:
        """Seconds until the next try. Raises the refusal when there is none."""
        pause = self._pace.pause(self.attempts, refusal, self._outgoing.content)
        if pause is None:
            raise refusal
        return pause


def _lasting(tools: Iterable[Any]) -> Iterable[Any]:
    """Tools that every try can read."""
    return list(tools) if isinstance(tools, Iterator) else tools


def _shorter(own: float | None, limit: float) -> float | None:
    return _limit(limit if own is None else min(own, limit))


def _limit(seconds: float) -> float | None:
    """Seconds as clients count them."""
    return None if math.isinf(seconds) else max(seconds, 0.001)
