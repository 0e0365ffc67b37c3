"""An alarm: work that goes on until a time of the clock, and is then told to stop (B21)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from streamparse.transport.pace import Clock

_T = TypeVar("_T")


async def with_alarm(seconds: float, clock: Clock, ring: Callable[[], object], work: Callable[[], Awaitable[_T]]) -> _T:
    """What ``work`` returns, or raises. After so many seconds of the clock ``ring`` is called, once, if it goes on."""
    done: list[_T] = []
    failed: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_ring, clock.now() + seconds, clock, ring)
        try:
            done.append(await work())
        except Exception as error:  # raised below, outside the group, which would wrap it
            failed = error
        group.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return done[0]


async def _ring(deadline: float, clock: Clock, ring: Callable[[], object]) -> None:
    left = deadline - clock.now()
    if left > 0:
        await clock.asleep(left)
    ring()
