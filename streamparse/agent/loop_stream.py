"""A run as an iterator of events, while it goes on in a task of its own."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from streamparse.agent.events import AgentEvent, LoopEnded


class _Start(Protocol):
    def __call__(self, *, on_event: Callable[[AgentEvent], object]) -> Awaitable[LoopEnded]: ...


class LoopStream:
    """``ToolLoop.stream`` makes one. ``ended`` is how the run ended, None before that. What the run raises comes out of
    the iteration. Events wait without limit: a slow reader slows nothing down."""

    def __init__(self, start: _Start, cancel: Callable[[str], None]) -> None:
        self.ended: LoopEnded | None = None
        self._start = start
        self._cancel = cancel
        self._error: Exception | None = None
        self._group: TaskGroup | None = None
        self._left = False
        self._runs = False

    async def __aenter__(self) -> LoopStream:
        self._send, self._receive = anyio.create_memory_object_stream[AgentEvent](math.inf)
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._group.start_soon(self._work)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._group is not None
        self._left = True
        if self._runs:  # else there is another run, perhaps, which is none of ours
            self._cancel("the caller left")
        try:
            await self._group.__aexit__(None, None, None)
        finally:
            self._receive.close()
        if error is None:
            self._raise()

    def __aiter__(self) -> LoopStream:
        return self

    async def __anext__(self) -> AgentEvent:
        try:
            return await self._receive.receive()
        except anyio.EndOfStream:
            self._raise()
            raise StopAsyncIteration from None

    async def _work(self) -> None:
        try:
            if self._left:
                return
            self._runs = True
            self.ended = await self._start(on_event=self._send.send_nowait)
        except Exception as error:
            self._error = error
        finally:
            self._runs = False
            self._send.close()

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error
