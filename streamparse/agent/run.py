"""One run of a function, in the event loop or in a thread, and how it ended. Limits by a clock that can be replaced.

Theory. A run ends with an outcome: what the function returned or raised. It is never lost, whatever becomes of those
who wait for it. A coroutine that is cancelled is over. A thread cannot be stopped (B10): who stops waiting for it
*abandons* it. Under one lock it is settled which came first, so that afterwards exactly one of these is true:

=================  =====================================================
``not begun``      the function was not called, and never will be
``is_running``     it was called, and goes on behind our back
``outcome``        it is over, perhaps later than anybody waited for it
neither            it was called, and stopped where it waited
=================  =====================================================
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from streamparse.transport.pace import Clock


class Returned(msgspec.Struct, frozen=True):
    """The function returned."""

    value: Any


class Raised(msgspec.Struct, frozen=True):
    """The function raised."""

    error: BaseException


class Run:
    """One run of ``function``. Made for one ``go``."""

    def __init__(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
        self.begun = False
        self.in_thread = not is_async(function)
        self.outcome: Returned | Raised | None = None
        self._function = function
        self._arguments = arguments
        self._waiting: Awaitable[Any] | None = None  # what a function returned that was not known to be async
        self._abandoned = False
        self._lock = threading.Lock()

    @property
    def is_running(self) -> bool:
        """Whether it is not over, though nobody may wait for it any more."""
        return self.begun and self.outcome is None and (self.in_thread or not self._abandoned)

    def _is_abandoned(self) -> bool:
        return self._abandoned  # which another thread may have changed

    async def go(self) -> None:
        """Run it, and wait for its outcome. Raises nothing but the cancellation of those who wait."""
        try:
            if self.in_thread:
                # A limiter of its own: a thread that was abandoned must not keep the next from starting.
                limiter = anyio.CapacityLimiter(1)
                await anyio.to_thread.run_sync(self._work, abandon_on_cancel=True, limiter=limiter)
                if self._waiting is not None:
                    self.outcome = await _outcome_of(self._waiting)
            else:
                self.begun = True
                self.outcome = await _outcome_of(self._function(**self._arguments))
        except (Exception, SystemExit) as error:  # of the call itself: arguments that do not fit the function
            self.outcome = Raised(error)
        finally:
            with self._lock:
                self._abandoned = True
                _close(self._waiting)

    def _work(self) -> None:
        """In the thread. Nothing is raised here: the thread may have outlived everybody."""
        with self._lock:
            if self._abandoned:
                return
            self.begun = True
        try:
            value = self._function(**self._arguments)
        except BaseException as error:  # KeyboardInterrupt reaches the main thread only
            self.outcome = Raised(error)
            return
        with self._lock:
            if not inspect.isawaitable(value):
                self.outcome = Returned(value)
                return
            self.in_thread = False  # the rest is for the event loop, or for nobody
            self._waiting = value
            if self._is_abandoned():
                _close(value)


def _close(awaitable: Awaitable[Any] | None) -> None:
    """A coroutine that nobody awaits any more. One that is over does not mind."""
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()


async def _outcome_of(awaitable: Awaitable[Any]) -> Returned | Raised:
    try:
        return Returned(await awaitable)
    except Exception as error:
        return Raised(error)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return Raised(error)  # nobody wanted that: the tool awaited something of its own that was cancelled
    except BaseException as error:  # sys.exit, pytest.fail: a tool must not end the program
        if isinstance(error, (KeyboardInterrupt, GeneratorExit, BaseExceptionGroup, anyio.get_cancelled_exc_class())):
            raise  # a group that is no ExceptionGroup may hold a cancellation
        return Raised(error)


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine, and so belongs into the event loop."""
    if inspect.iscoroutinefunction(function):
        return True
    return inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - an object with an async call


@asynccontextmanager
async def limit(seconds: float, clock: Clock) -> AsyncIterator[None]:
    """Cancels what is inside after so many seconds of the clock, and goes on behind it. What is inside must not
    raise."""
    deadline = clock.now() + seconds
    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            group.start_soon(_expire, deadline, clock, scope)
            yield
        group.cancel_scope.cancel()


async def _expire(deadline: float, clock: Clock, scope: anyio.CancelScope) -> None:
    left = deadline - clock.now()  # the tool may have begun first, and taken some of it
    if left > 0:
        await clock.asleep(left)
    scope.cancel()
