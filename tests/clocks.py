"""A clock that only goes when it is told to, and the way to run async tests: on every backend, and never for ever."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

BACKENDS = ["asyncio", "trio"]

PATIENCE = 30.0
"""Real seconds after which an async test hangs for certain."""

_T = TypeVar("_T")


class FakeClock:
    """``transport.pace.Clock``. ``advance`` wakes whoever has slept long enough."""

    def __init__(self) -> None:
        self.time = 1000.0
        self._sleepers: dict[anyio.Event, float] = {}

    def now(self) -> float:
        return self.time

    def date(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    async def asleep(self, seconds: float) -> None:
        event = anyio.Event()
        self._sleepers[event] = self.time + seconds
        try:
            await event.wait()
        finally:
            del self._sleepers[event]

    def advance(self, seconds: float) -> None:
        self.time += seconds
        for event, wakes in self._sleepers.items():
            if wakes <= self.time:
                event.set()

    @property
    def longest(self) -> float:
        """Seconds until the last of the sleepers wakes; 0 if nobody sleeps."""
        return max((wakes - self.time for wakes in self._sleepers.values()), default=0.0)


class Hasty(FakeClock):
    """Sleeps in no time, and counts it."""

    async def asleep(self, seconds: float) -> None:
        self.time += seconds
        await anyio.lowlevel.checkpoint()


def run(main: Callable[[], Awaitable[_T]], backend: str = "asyncio") -> _T:
    """What ``main`` returns."""

    async def guarded() -> Any:
        with anyio.fail_after(PATIENCE):
            return await main()

    result: _T = anyio.run(guarded, backend=backend)
    return result


async def until(condition: Callable[[], bool]) -> None:
    """Waits for a thread, which tells nobody."""
    while not condition():
        await anyio.sleep(0.001)
