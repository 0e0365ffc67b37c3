"""A blocking call that its caller can stop waiting for.

Sending a request ends when the response begins, and a pause when it is over: neither ends because another thread says
so. So they are done by a thread of their own, and waited for here. Who is told to ``abandon`` them stops waiting at
once; the thread goes on until its call returns, and gives what it brought to ``late``."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


class Errand:
    """Runs calls, one at a time, until it is abandoned. After that it runs none."""

    def __init__(self) -> None:
        self._abandoned = threading.Event()
        self._lock = threading.Lock()
        self._wake = threading.Event()

    def run(self, call: Callable[[], _T], late: Callable[[_T], object] = lambda _: None) -> _T | None:
        """What the call returns or raises; None when the errand is abandoned first."""
        found: list[_T] = []
        failed: list[BaseException] = []
        context = contextvars.copy_context()

        def work() -> None:
            try:
                result = context.run(call)
            except BaseException as error:
                failed.append(error)
            else:
                with self._lock:
                    in_time = not self._abandoned.is_set()
                    if in_time:
                        found.append(result)
                if not in_time:
                    late(result)
            self._wake.set()

        with self._lock:
            if self._abandoned.is_set():
                return None
            self._wake.clear()
        threading.Thread(target=work, name="streamparse-errand", daemon=True).start()
        try:
            self._wake.wait()
        except BaseException:  # the user's interrupt
            self.abandon()
            raise
        with self._lock:
            if found:
                return found.pop()
            if self._abandoned.is_set():
                return None
        raise failed.pop()

    def abandon(self) -> None:
        """Nobody waits any more. Again does nothing."""
        with self._lock:
            self._abandoned.set()
        self._wake.set()
