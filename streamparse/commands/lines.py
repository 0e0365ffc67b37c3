"""Lines of a person, for an event loop: a thread waits for them, which keeps nothing from ending."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TextIO


class Lines:
    """Lines of a stream (standard input), one for each ``next``. What was typed on a terminal before the question is
    no answer to it. The thread is a daemon, because reading cannot be cancelled; it reads when it is asked to."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._wanted = threading.Semaphore(0)
        self._reading = False
        self._thread: threading.Thread | None = None
        self._waiting: asyncio.Future[str | None] | None = None
        self._is_over = False

    async def next(self) -> str | None:
        """The next line, None at the end of the stream."""
        if self._is_over:
            return None
        loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = threading.Thread(target=self._read, args=(loop,), name="standard input", daemon=True)
            self._thread.start()
        self._waiting = loop.create_future()
        if not self._reading:  # else the last question was given up, and this one gets its line
            self._reading = True
            _forget_typed(self._stream)
            self._wanted.release()
        try:
            return await self._waiting
        finally:
            self._waiting = None

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        line: str | None = ""
        while line is not None:
            self._wanted.acquire()
            try:
                line = self._stream.readline() or None
            except (OSError, ValueError):
                line = None
            with suppress(RuntimeError):  # the loop is over, and so is everything
                loop.call_soon_threadsafe(self._give, line)

    def _give(self, line: str | None) -> None:
        self._reading = False
        self._is_over = line is None
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(line)


def _forget_typed(stream: TextIO) -> None:
    try:
        import termios
    except ImportError:
        return
    with suppress(OSError, ValueError, termios.error):
        if stream.isatty():
            termios.tcflush(stream.fileno(), termios.TCIFLUSH)
