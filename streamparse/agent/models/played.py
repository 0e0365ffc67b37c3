"""An answer that was there before the question: what scripted and recorded models play."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from types import TracebackType
from typing import Any, TypeAlias

import anyio.lowlevel

from streamparse.agent.models.base import Request, thinking_of
from streamparse.errors import TransportError
from streamparse.events import Event
from streamparse.transport.pace import Clock

Play: TypeAlias = Generator[tuple[float, list[Event]], None, TransportError | None]
"""The events of an answer with their times, in seconds from its start; then why it is not whole."""


class PlayedAnswer:
    """An answer that was there before the question."""

    def __init__(self, play: Play, clock: Clock, decoder: object = None) -> None:
        self.error: TransportError | None = None
        self._decoder = decoder
        self._play = play
        self._clock = clock
        self._start = 0.0
        self._first: list[Event] | None = None

    @property
    def thinking(self) -> list[dict[str, Any]]:
        """Blocks of reasoning that have to go back as they came (B3)."""
        return thinking_of(self._decoder)

    async def __aenter__(self) -> PlayedAnswer:
        self._start = self._clock.now()
        self._first = await self._next()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._play.close()
        self._first = None

    def __aiter__(self) -> PlayedAnswer:
        return self

    async def __anext__(self) -> list[Event]:
        events, self._first = self._first, None
        events = events or await self._next()
        if events is None:
            raise StopAsyncIteration
        return events

    async def _next(self) -> list[Event] | None:
        await anyio.lowlevel.checkpoint()  # a script without delays must not keep others from running
        while True:
            try:
                at, events = next(self._play)
            except StopIteration as over:
                self.error = over.value or self.error
                return None
            wait = self._start + at - self._clock.now()
            if wait > 0:
                await self._clock.asleep(wait)
            if events:
                return events


def tools_of(request: Request, tools: Iterable[Any] | None) -> list[Any] | None:
    """The tools to decode with: those that are given, else the request's."""
    declared = request.get("tools") if tools is None else tools
    return None if declared is None else list(declared)
