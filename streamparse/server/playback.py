"""Plays a plan as the body of a response: waits, writes, and notices at once when the client goes away."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from streamparse.server.plan import Step


class Served(msgspec.Struct, kw_only=True):
    """A request, and what became of it: an entry of ``/_requests``. ``sent`` counts bytes of the body.

    ``state`` is ``playing``, ``complete``, ``broken`` (by a fault, or as it was recorded), ``gone`` (the client went
    away) or ``stopped`` (the server did). ``status`` is 0 while no headers were sent.
    """

    path: str
    model: str = ""
    recording: str = ""
    status: int = 0
    sent: int = 0
    state: str = "playing"


class Playback(Response):
    """A response that plays a plan. ``status`` None sends nothing at all, until the client goes away."""

    def __init__(
        self,
        served: Served,
        status: int | None,
        headers: dict[str, str],
        steps: Iterator[Step],
        playing: set[Playback],
        log: Callable[[str], None] | None,
    ) -> None:
        self._served, self._status, self._fields, self._steps = served, status, headers, steps
        self._playing, self._log = playing, log
        self._over: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Break it off."""
        if self._over is not None:
            self._over.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._over = asyncio.create_task(_gone(receive))
        self._playing.add(self)
        try:
            self._served.state = await self._play(self._over, send)
        finally:
            self._playing.discard(self)
            self._over.cancel()
            self._tell()

    async def _play(self, over: asyncio.Task[None], send: Send) -> str:
        """Play to the end, and say which it was. Returning before the last ``send`` breaks the connection: uvicorn
        closes it without the end of the chunked body."""
        if self._status is None:
            await asyncio.wait([over])
            return _why(over)
        headers = [(name.encode(), value.encode("latin-1")) for name, value in self._fields.items()]
        self._served.status = self._status
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        clock = asyncio.get_running_loop().time
        due = clock()
        for wait, data, breaks in self._steps:
            due += wait
            await asyncio.wait([over], timeout=None if due == math.inf else max(due - clock(), 0))
            if over.done():
                return _why(over)
            if data:
                await send({"type": "http.response.body", "body": data, "more_body": True})
            self._served.sent += len(data)
            if breaks:
                return "broken"
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return "complete"

    def _tell(self) -> None:
        if self._log is not None:
            served = self._served
            what = served.recording or served.model or "-"
            self._log(f"{served.path} {what}: {served.status or 'no'} status, {served.sent} bytes, {served.state}")


async def _gone(receive: Receive) -> None:
    """Returns when the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _why(over: asyncio.Task[None]) -> str:
    return "stopped" if over.cancelled() else "gone"
