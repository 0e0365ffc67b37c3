"""A command in its own process group, with a bounded output and an end that always comes.

``start`` it, ``wait`` for it in one thread, ``kill`` it from any. ``wait`` ends when the command has ended, whoever
still holds its output: descendants that it left behind are killed with the group, and one that has left the group
(with ``setsid``) is not waited for and not ended. Such a one is known by the output that it holds; if it has let go of
that, nothing tells that it is there.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Literal, TypeAlias

import msgspec

from streamparse.agent.coding_tools.bounds import GRACE

Ending: TypeAlias = Literal["exited", "timeout", "cancelled"]
"""How a command ended: by itself, by its time limit, by ``kill``."""

Leftover: TypeAlias = Literal["none", "stopped", "escaped"]
"""Processes that a command had left behind: none that is known of; all of them were stopped; one has left the group and
still runs."""

_READ = 65536
_POLL = 0.05
"""Seconds between two looks at a command that has not closed its output: how late an end may be noticed."""

_DRAIN = 0.2
"""Seconds for what is still in the pipe once everything is dead; somebody outside the group may go on writing."""

_LAST_WAIT = 5.0
"""Seconds for the system to bury a process that was killed."""


class Ended(msgspec.Struct, frozen=True):
    """How a command ended. ``code`` is its exit code, negative for a signal, None if it could not be buried in time.
    ``seconds`` is how long it ran; ``leftover`` is what became of the processes that it had left behind."""

    how: Ending
    code: int | None
    seconds: float
    leftover: Leftover


class Running:
    """A command that runs. ``wait`` must be called once, in one thread; ``kill`` may be called any time, from any.

    ``sink`` gets the output in ``wait``'s thread, standard error included unless ``errors`` is a file for it. ``grace``
    is how many seconds the group has between the request to end and the kill. Raises ``OSError`` if it cannot be
    started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str],
        sink: Callable[[bytes], None],
        errors: IO[bytes] | None = None,
        grace: float = GRACE,
    ) -> None:
        self._sink = sink
        self._grace = grace
        self._started = time.monotonic()
        self._wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_out, False)
        try:
            self._process = subprocess.Popen(
                argv,
                cwd=directory,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if errors is None else errors,
                start_new_session=True,  # its own group, and no terminal to ask for a password on
            )
        except BaseException:
            os.close(self._wake_in)
            os.close(self._wake_out)
            raise
        assert self._process.stdout is not None
        self._pipe = self._process.stdout.fileno()
        os.set_blocking(self._pipe, False)
        self._lock = threading.Lock()  # the group is signalled only while its leader is not buried: no reused id
        self._buried = False
        self._how: Ending = "exited"

    @property
    def pid(self) -> int:
        """The process id, which is that of the group."""
        return self._process.pid

    def kill(self) -> None:
        """Ask the whole group to end; ``wait`` kills what does not. Does nothing once the command has ended."""
        with self._lock:
            if self._buried:
                return
            if self._how == "exited":
                self._how = "cancelled"
            with suppress(OSError):
                os.write(self._wake_out, b"x")

    def wait(self, timeout: float) -> Ended:
        """Pass the output on until the command ends, ``timeout`` seconds are over, or ``kill`` was called."""
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._pipe, selectors.EVENT_READ)
                selector.register(self._wake_in, selectors.EVENT_READ)
                ended = self._until_end(selector, self._started + timeout)
                if not ended:
                    self._stop(selector)
            leftover: Leftover = "none"
            if ended and not self._drain(patient=False):  # the leader is dead, and somebody holds its output
                leftover = "stopped"
            self._signal(signal.SIGKILL)
            if not self._drain(patient=True):
                leftover = "escaped"
            code = self._bury()
            return Ended("exited" if ended else self._how, code, time.monotonic() - self._started, leftover)
        except BaseException:
            self._signal(signal.SIGKILL)
            self._bury()
            raise

    def _until_end(self, selector: selectors.BaseSelector, deadline: float) -> bool:
        """Read until the leader ends (true), or it is time to stop it (false)."""
        pause = 0.001
        while not self._over():
            left = deadline - time.monotonic()
            if left <= 0 or self._how == "cancelled":
                with self._lock:
                    self._how = "timeout" if self._how == "exited" else self._how
                return False
            reading = self._pipe in {key.fd for key in selector.get_map().values()}
            for key, _ in selector.select(min(left, _POLL if reading else pause)):
                if key.fd == self._pipe and not self._read():
                    selector.unregister(self._pipe)
            if not reading:
                pause = min(pause * 2, _POLL)
        return True

    def _stop(self, selector: selectors.BaseSelector) -> None:
        """End the group: first asked, then killed."""
        with suppress(KeyError):
            selector.unregister(self._wake_in)
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + self._grace
        while not self._over() and (left := deadline - time.monotonic()) > 0:
            if not selector.get_map():
                time.sleep(min(left, 0.01))
                continue
            if selector.select(min(left, _POLL)) and not self._read():
                selector.unregister(self._pipe)
        self._signal(signal.SIGKILL)

    def _read(self) -> bool:
        """Pass on what is there. False at the end of the output."""
        try:
            data = os.read(self._pipe, _READ)
        except BlockingIOError:
            return True
        if data:
            self._sink(data)
        return bool(data)

    def _drain(self, *, patient: bool) -> bool:
        """Pass on what is still in the pipe. Whether that was the end of the output. ``patient``: wait for the end a
        little, since those who were killed take a moment to die."""
        deadline = time.monotonic() + _DRAIN
        while (left := deadline - time.monotonic()) > 0:
            try:
                data = os.read(self._pipe, _READ)
            except BlockingIOError:
                if not patient:
                    return False
                time.sleep(min(left, 0.005))
                continue
            if not data:
                return True
            self._sink(data)
        return False

    def _over(self) -> bool:
        """Whether the leader has ended. It is not buried yet, so that its id stays that of the group."""
        if self._buried:
            return True
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # somebody else buried it: a handler for SIGCHLD
            return True

    def _signal(self, number: int) -> None:
        """Signal the whole group, if anybody is there."""
        with self._lock, suppress(ProcessLookupError, PermissionError):
            if not self._buried:
                os.killpg(self.pid, number)

    def _bury(self) -> int | None:
        """Collect the leader, and let go of the pipes."""
        with self._lock:
            if self._buried:
                return self._process.returncode
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_LAST_WAIT)
            self._buried = True
            assert self._process.stdout is not None
            self._process.stdout.close()
            os.close(self._wake_in)
            os.close(self._wake_out)
            return self._process.returncode
