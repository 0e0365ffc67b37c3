"""One streaming request over HTTP: bytes of a caller's client -> events. Rules S, E4 and C8.

Theory. All that has to be decided is decided by ``Attempt`` (what a response is, when it has taken too long, how it
ends) and ``Pace`` (whether to try again, and when), which touch no network. Here are two thin drivers for them, which
send, read, wait and close.

The deadline of a read is kept by a cancel scope, or, where reads block, by a ``Watchdog``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from functools import partial
from types import TracebackType
from typing import Any

import anyio
import anyio.lowlevel

from streamparse.errors import ClosedError, UsageError
from streamparse.events import Event
from streamparse.transport.attempt import Attempt
from streamparse.transport.errand import Errand
from streamparse.transport.exchange import Exchange
from streamparse.transport.watchdog import Watchdog, shut_stream, socket_of

TURN = 0.001
"""Seconds after which an asynchronous stream lets others run, be there still events to hand out: what has arrived may
be hundreds, which no read waits for."""

CLOSE_SECONDS = 5.0
"""How long a cancelled task waits for its connection to close."""


class AnswerStream(Exchange):
    """One answer, while it streams: a context manager and an iterator of events. ``stream`` is its short name. ::

        with streamparse.stream(client, url, request) as events:
            for event in events: ...

    ``client`` is an ``httpx.Client`` (httpx2's works as well) and stays as it is: key, proxies, base address and limits
    for connecting are its own. ``request`` is the body: a mapping, sent as JSON with ``"stream": true`` if it has no
    ``stream``, or bytes, sent as they are. Keyword options:

    * ``wire``: ``"chat"``, ``"completions"``, ``"messages"`` or ``"text"``. None tells it by the path of ``url``.
    * ``tools``: as for the decoder; None takes those in ``request``.
    * ``dialect``, ``start``, ``repair``, ``early``, ``id_factory``, ``limits``: as for the decoder. For
      ``/v1/completions``, whose text is the model's raw output, ``start="reasoning"`` when the prompt ends inside the
      reasoning.
    * ``headers``: further headers of this request.
    * ``first_token``: seconds from the sending of the request to the first event. Keep-alives and empty deltas are
      none.
    * ``idle``: seconds without an event after that, while one is waited for. Keep-alives are none here, either: a
      server that hangs may send them for ever. One that thinks in silence for longer than the default of 300 needs
      more. For both limits, None is no limit.
    * ``retries``: tries after the first. Again is tried only what nothing has been handed over of, and what may pass:
      no connection, 408, 409, 425, 429, 5xx, a provider's word to that effect, no first token in time, a stream that
      broke before its first event. Waits as long as the server says (``retry-after``), or 0.5 s, doubled each time.
    * ``max_wait``: seconds. A server that asks for more is not waited for; the error's ``retry_after`` says how long.
    * ``max_event``: bytes of one event (``EventTooLargeError``).
    * ``observer``: is told of each response and its bytes (``Observer``). ``clock``: the time, for tests.

    *Errors before the first event raise, later ones are events.* Entering sends the request and waits for the first
    event; it raises ``ConnectError``, ``ResponseError``, ``StreamTimeoutError``, ``StreamInterruptedError`` or
    ``EventTooLargeError`` when the last try failed. From then on iteration raises nothing: when the connection breaks,
    or a limit is over, the last events say what that did to the answer (E4) and ``error`` says what happened.

    Leaving the block closes the response at once, which ends the generation at the server; a ``break`` alone does not,
    iteration can go on. When the answer is complete, the end of the response is still read, for a few seconds at most,
    so that the connection can be used again. ``close`` may be called from another thread, also while the block is being
    entered; then there are no more events.

    Raises ``UsageError`` and the errors of the decoder when made, before anything is sent.
    """

    _chunks: Iterator[bytes] = iter(())
    _watch: Watchdog | None = None
    _reading = False
    _errand: Errand | None = None
    _fresh: Any = None  # the connection that was made for the request that is being sent

    def __enter__(self) -> AnswerStream:
        self._enter()
        if inspect.iscoroutinefunction(self._client.send):
            raise UsageError("this client is an asynchronous one: use astream")
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> AnswerStream:
        return self

    def __next__(self) -> Event:
        ready = self._ready
        while not ready:
            attempt = self._running()
            if attempt is None:
                self._drop()
                raise StopIteration
            ready.extend(self._wait(attempt))
        return ready.popleft()

    def close(self) -> None:
        """Ends the response, and with it the generation. Again does nothing."""
        self._closed = True
        self._ready.clear()
        if self._errand is not None:
            self._errand.abandon()
        shut_stream(self._fresh)  # no response comes any more
        if self._reading and self._watch is not None:
            self._watch.interrupt()  # another thread is in a read, which closing alone would not end
        self._drop()

    def _open(self) -> None:
        errand = self._errand = Errand()
        while not self._closed:
            attempt = self._next_try()
            self._send(attempt, errand)
            self._ready.extend(self._wait(attempt))
            if attempt.refusal is None:
                return
            errand.run(partial(self._clock.sleep, self._pause(attempt.refusal)))

    def _send(self, attempt: Attempt, errand: Errand) -> None:
        try:
            response = errand.run(partial(self._client.send, self._request, stream=True), late=_close)
        except Exception as error:
            if not self._unsent(attempt, error):
                raise
            return
        finally:
            self._fresh = None
        if response is None:  # closed meanwhile
            return
        self._take_head(attempt, response)
        sock = socket_of(response)
        self._watch = None if sock is None else Watchdog(sock, self._clock.now, attempt.deadline)
        self._chunks = response.iter_bytes()

    def _wait(self, attempt: Attempt) -> list[Event]:
        """The next events; none if there are no more."""
        watch = self._watch
        attempt.wait(self._now())
        events: list[Event] = []
        while not (events or attempt.over or self._closed):
            if watch is not None:
                watch.move(attempt.deadline)
            events = self._read(attempt)
        if watch is not None:
            watch.rest()
        if attempt.refusal is not None:
            self._drop()
        return self._handed_over(events)

    def _read(self, attempt: Attempt) -> list[Event]:
        self._reading = True
        try:
            data = next(self._chunks, None)
        except Exception as error:
            events = self._broken(attempt, error)
            if events is None:
                raise
            return events
        finally:
            self._reading = False
        if data is not None:
            return attempt.feed(data, self._now())
        if self._closed:
            return []
        # A socket that was shut down ends a body of unknown length like any other end.
        return attempt.expire() if self._fired else attempt.end()

    @property
    def _fired(self) -> bool:
        return self._watch is not None and self._watch.fired

    def _drop(self) -> None:
        if self._watch is not None:
            self._watch.stop()
        if self.response is not None:
            self.response.close()

    def _extensions(self) -> dict[str, Any]:
        return {"trace": self._trace}

    def _trace(self, name: str, info: Any) -> None:
        """Told by the transport, by whichever thread is in it."""
        if name.endswith("response_closed.started"):
            if self._watch is not None:
                self._watch.stop()  # from this moment on the connection may be another request's
        elif name.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._fresh = info.get("return_value")
        elif self._closed and name.endswith("send_request_headers.started"):
            raise ClosedError("the stream was closed before its request was sent")


class AsyncAnswerStream(Exchange):
    """``AnswerStream`` for an ``httpx.AsyncClient``, under asyncio and trio; ``astream`` is its short name. ::

        async with streamparse.astream(client, url, request) as events:
            async for event in events: ...

    Options, errors and ends as there; ``aclose`` in place of ``close``. When the task is cancelled, the response is
    closed at once.
    """

    _reads_block = False
    _chunks: Any = None
    _turn = -math.inf
    _scope: anyio.CancelScope | None = None

    async def __aenter__(self) -> AsyncAnswerStream:
        self._enter()
        if not inspect.iscoroutinefunction(self._client.send):
            raise UsageError("this client is not an asynchronous one: use stream")
        try:
            await self._open()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> AsyncAnswerStream:
        return self

    async def __anext__(self) -> Event:
        while not self._ready:
            attempt = self._running()
            if attempt is None:
                await self._drop()
                raise StopAsyncIteration
            self._ready.extend(await self._wait(attempt))
        return self._ready.popleft()

    async def aclose(self) -> None:
        """Ends the response, and with it the generation. Again does nothing. Another task may call it."""
        self._closed = True
        self._ready.clear()
        if self._scope is not None:
            self._scope.cancel()  # another task may wait in it
        await self._drop()

    async def _open(self) -> None:
        while not self._closed:
            attempt = self._next_try()
            await self._send(attempt)
            self._ready.extend(await self._wait(attempt))
            if attempt.refusal is None:
                return
            pause = self._pause(attempt.refusal)
            with self._until(math.inf):
                await self._clock.asleep(pause)

    async def _send(self, attempt: Attempt) -> None:
        try:
            with self._until(attempt.deadline) as scope:
                response = await self._client.send(self._request, stream=True)
        except Exception as error:
            if not self._unsent(attempt, error):
                raise
            return
        if scope.cancelled_caught:
            if not self._closed:
                attempt.expire()
            return
        self._take_head(attempt, response)
        self._chunks = response.aiter_bytes()

    async def _wait(self, attempt: Attempt) -> list[Event]:
        """The next events; none if there are no more."""
        now = self._now()
        if now - self._turn > TURN:
            await anyio.lowlevel.checkpoint()
            self._turn = now = self._now()
        attempt.wait(now)
        events: list[Event] = []
        # A scope costs as much as all the rest of a read. In a stream that flows, the client's own limit does the same
        # for the first read: it is as long as the deadline is away.
        scoped = not (attempt.flowing and self._limit_is_idle)
        while not (events or attempt.over or self._closed):
            events = await self._read(attempt, scoped)
            scoped = True
        if attempt.refusal is not None:
            await self._drop()
        return self._handed_over(events)

    async def _read(self, attempt: Attempt, scoped: bool) -> list[Event]:
        expired = False
        data: bytes | None = None
        try:
            if scoped:
                with self._until(attempt.deadline) as scope:
                    data = await anext(self._chunks, None)
                expired = scope.cancelled_caught
            else:
                data = await anext(self._chunks, None)
        except Exception as error:
            events = self._broken(attempt, error)
            if events is None:
                raise
            return events
        if expired:
            return [] if self._closed else attempt.expire()
        if data is not None:
            return attempt.feed(data, self._now())
        return [] if self._closed else attempt.end()

    def _until(self, deadline: float) -> anyio.CancelScope:
        """Cancels what is in it at a time of our clock, or when the stream is closed."""
        self._scope = anyio.CancelScope(deadline=anyio.current_time() + deadline - self._clock.now())
        return self._scope

    async def _drop(self) -> None:
        if self.response is not None:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await self.response.aclose()


def _close(response: Any) -> None:
    response.close()


stream = AnswerStream
astream = AsyncAnswerStream
