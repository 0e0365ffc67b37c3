"""How long to wait, and how often to try: the numbers of a request, and the clock that they are measured with."""

from __future__ import annotations

import math
import time
import zlib
from typing import Protocol

import anyio
import msgspec

from streamparse.errors import ResponseError, TransportError, UsageError

FIRST_PAUSE = 0.5
"""Seconds before the second try, where the server names none. Doubled with each try."""

LONGEST_PAUSE = 8.0
"""Seconds, at most, where the server names none."""

JITTER = 0.25
"""Share of a pause by which requests differ, so that those that failed together do not come back together."""


class Clock(Protocol):
    """Time, in seconds. Replaced in tests."""

    def now(self) -> float:
        """Never goes back."""

    def date(self) -> float:
        """The wall clock, since the epoch."""

    def sleep(self, seconds: float) -> None:
        """Blocks."""

    async def asleep(self, seconds: float) -> None:
        """Waits."""


class SystemClock:
    """The clock of the machine."""

    now = staticmethod(time.monotonic)
    date = staticmethod(time.time)
    sleep = staticmethod(time.sleep)
    asleep = staticmethod(anyio.sleep)


CLOCK = SystemClock()


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Limits in seconds, ``math.inf`` for none; ``retries`` counts the tries after the first."""

    first_token: float
    idle: float
    retries: int
    max_wait: float

    def pause(self, tries: int, error: TransportError, content: bytes) -> float | None:
        """Seconds to wait after so many tries, the last of which failed like this; None: give up.

        The pause depends on the request and on nothing else, so that a test can tell it."""
        if not error.retryable or tries > self.retries:
            return None
        asked = error.retry_after if isinstance(error, ResponseError) else None
        if asked is not None:
            return asked if asked <= self.max_wait else None
        pause = min(FIRST_PAUSE * 2.0 ** (tries - 1), LONGEST_PAUSE)
        return min(pause * (1 + JITTER * (zlib.crc32(content) % 1000) / 1000), self.max_wait)


def pace(first_token: float | None, idle: float | None, retries: int, max_wait: float) -> Pace:
    """Checks the numbers. Raises ``UsageError`` for one that cannot be."""
    for name, value in (("first_token", first_token), ("idle", idle)):
        if value is not None and not value > 0:
            raise UsageError(f"{name} counts seconds and must be above 0, or None for no limit, found {value!r}")
    if retries < 0 or not max_wait >= 0:
        raise UsageError(f"retries and max_wait must be at least 0, found {retries!r} and {max_wait!r}")
    return Pace(
        first_token=math.inf if first_token is None else first_token,
        idle=math.inf if idle is None else idle,
        retries=retries,
        max_wait=max_wait,
    )
