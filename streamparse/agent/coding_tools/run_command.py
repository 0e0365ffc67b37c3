"""``run_command``: a shell command in the project directory, with limits on all that it can do to the loop.

This is no sandbox: a command may do whatever the user may. What guards it is the policy.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress

import anyio
import anyio.to_thread

from streamparse.agent.coding_tools.bounds import TIMEOUT
from streamparse.agent.coding_tools.confine import Root
from streamparse.agent.coding_tools.environment import scrubbed
from streamparse.agent.coding_tools.outcome import Outcome, Rejected, StoppedError, ToolError
from streamparse.agent.coding_tools.policy import Ask, Policy, check_policy, permit
from streamparse.agent.coding_tools.process import Ended, Running
from streamparse.agent.coding_tools.tail import Tail
from streamparse.errors import UsageError

_COMMAND_BYTES = 100_000
"""Bytes of a command: what a system takes as one argument, and some room."""

_FAREWELL = 3.0
"""Seconds that a cancelled call waits for the end of its command, which was killed."""

_KILLED = ": the command and its process group were killed. The output is partial."

_STAYS = "What it had done by then stays."

_LEFT = {
    "stopped": "[It left a process running in the background, which was stopped.]",
    "escaped": "[It started a process that has left its process group. That one was not stopped, and may still run.]",
}


class Execution:
    """A command that was started. ``wait`` gives its ``Outcome``; ``kill`` ends it; both from any thread, any time.

    A thread of its own sees to it that the command ends, and is collected, whether somebody waits or not.
    """

    def __init__(self, running: Running, tail: Tail, timeout: float) -> None:
        self._running, self._tail, self._timeout = running, tail, timeout
        self._outcome: Outcome | None = None
        self._ended: Ended | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._watch, name="run_command", daemon=True)
        self._thread.start()

    def wait(self) -> Outcome:
        """Wait for the end: by itself, by the time limit, or by ``kill``. It always comes."""
        self._thread.join()
        if self._outcome is None:
            raise ToolError(f"The command's end could not be seen: {self._error}")
        return self._outcome

    @property
    def stopped(self) -> str | None:
        """What the command had printed when it was ended by ``kill``; None if it ended otherwise, or not yet."""
        if self._ended is None or self._ended.how != "cancelled" or self._outcome is None:
            return None
        return self._outcome.text

    def kill(self) -> None:
        """End the command and all of its process group; ``wait`` then returns with what was printed."""
        self._running.kill()

    def _watch(self) -> None:
        try:
            self._ended = self._running.wait(self._timeout)
            self._tail.close()
            self._tail.fit()
            self._outcome = Outcome(_report(self._ended, self._tail, self._timeout))
        except Exception as error:  # of the system; ``wait`` tells
            self._error = error


class Shell:
    """Runs commands in a root. ``policy`` is asked before each; ``ask`` is who it may pass the question on to.

    ``timeout`` is in seconds. ``environment`` is added to the few variables that commands see of this process.
    """

    def __init__(
        self,
        root: Root,
        *,
        policy: Policy = "ask",
        ask: Ask | None = None,
        timeout: float = TIMEOUT,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        if not timeout > 0:
            raise UsageError(f"timeout is in seconds and must be more than 0, found {timeout}")
        check_policy(policy)
        self._root, self._policy, self._ask, self._timeout = root, policy, ask, timeout
        self._environment = dict(environment or {})

    def permit(self, command: str) -> None:
        """Return if the command may run. Raises ``DeniedError``, or ``Rejected`` for what can be no command."""
        _require_command(command)
        permit(command, self._policy, self._ask)

    def start(self, command: str) -> Execution:
        """Start a command. Raises as ``permit``, and ``ToolError`` if the system cannot start it."""
        self.permit(command)
        return self._launch(command)

    def run(self, command: str) -> Outcome:
        """Run a command and wait for it. A signal that ends the waiting ends the command."""
        execution = self.start(command)
        try:
            return execution.wait()
        finally:
            execution.kill()  # does nothing once it has ended

    async def arun(self, command: str) -> Outcome:
        """The same for an event loop: when this is cancelled, the command is ended."""
        return await _end_of(await self._astart(command))

    async def acall(self, command: str) -> Outcome:
        """The same for an executor, which has to tell the model what became of the call: when this is cancelled, it
        raises ``StoppedError`` with what the command had printed, instead of going on with the cancellation."""
        execution = await self._astart(command)
        try:
            return await _end_of(execution)
        except anyio.get_cancelled_exc_class():
            if execution.stopped is None:
                raise
            raise StoppedError(f"{execution.stopped}\n{_STAYS}") from None

    async def _astart(self, command: str) -> Execution:
        await anyio.to_thread.run_sync(self.permit, command, abandon_on_cancel=True)  # it may be asking a person
        return self._launch(command)

    def _launch(self, command: str) -> Execution:
        tail = Tail()
        argv, environment = [_shell(), "-c", command], scrubbed(extra=self._environment)
        try:
            running = Running(argv, directory=self._root.directory, environment=environment, sink=tail.feed)
        except OSError as error:
            raise ToolError(f"The command could not be started: {error.strerror}") from None
        return Execution(running, tail, self._timeout)


async def _end_of(execution: Execution) -> Outcome:
    """The outcome, as soon as there is one. When this is cancelled, the command is ended."""
    limiter = anyio.CapacityLimiter(2)  # of its own: commands must not wait for threads that were abandoned
    try:
        return await anyio.to_thread.run_sync(execution.wait, abandon_on_cancel=True, limiter=limiter)
    finally:
        execution.kill()
        with anyio.move_on_after(_FAREWELL, shield=True):  # so that nothing of it runs any more
            await anyio.to_thread.run_sync(execution.wait, abandon_on_cancel=True, limiter=limiter)


def run_command(
    root: Root,
    command: str,
    *,
    policy: Policy = "ask",
    ask: Ask | None = None,
    timeout: float = TIMEOUT,
    environment: Mapping[str, str] | None = None,
) -> Outcome:
    """Run one command and wait for it. The options are those of ``Shell``, which also gives a handle to end it by."""
    return Shell(root, policy=policy, ask=ask, timeout=timeout, environment=environment).run(command)


def _require_command(command: str) -> None:
    if not isinstance(command, str) or not command.strip():
        raise Rejected("command", "command is empty. Expected a shell command")
    if "\0" in command:
        raise Rejected("command", "command holds a NUL character, which no shell takes")
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        raise Rejected("command", "command holds a lone surrogate, which no shell takes") from None
    if size > _COMMAND_BYTES:
        raise Rejected("command", f"command has {size:,} bytes, at most {_COMMAND_BYTES:,} can be run: write a script")


def _shell() -> str:
    return next((path for path in ("/bin/bash", "/usr/bin/bash") if os.access(path, os.X_OK)), "/bin/sh")


def _report(ended: Ended, tail: Tail, timeout: float) -> str:
    """What the model gets: how it ended, the error lines of what was cut, the last lines."""
    parts = [_ending(ended, timeout)]
    if ended.leftover in _LEFT:
        parts.append(_LEFT[ended.leftover])
    lines = tail.lines
    if tail.cut:
        if tail.errors:
            parts += [f"Error lines in the {tail.cut:,} lines that are not shown:", *tail.errors]
        parts.append(f"Output, the last {len(lines):,} of {tail.total:,} lines:")
    elif lines:
        parts.append("Output:")
    return "\n".join([*parts, *(lines or ["No output."])])


def _ending(ended: Ended, timeout: float) -> str:
    took = f"{ended.seconds:.1f} s"
    if ended.how == "timeout":
        return f"Timed out after {timeout:g} s{_KILLED} Took {took}"
    if ended.how == "cancelled":
        return f"Cancelled{_KILLED} Took {took}"
    if ended.code is None:
        return f"Exit code unknown: the process could not be collected. Took {took}"
    if ended.code < 0:
        name = str(-ended.code)
        with suppress(ValueError):
            name = signal.Signals(-ended.code).name
        return f"Killed by signal {name}. Took {took}"
    return f"Exit code {ended.code}. Took {took}"
