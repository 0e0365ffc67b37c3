"""``streamparse agent``: a small coding agent on a terminal, on the tool loop and the coding tools."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TextIO
from urllib.parse import urlsplit

import anyio
import httpx

from streamparse.agent.approval import Decision
from streamparse.agent.budgets import TURNS, Budget
from streamparse.agent.coding_tools import Root, coding_tools
from streamparse.agent.compaction import Compactor
from streamparse.agent.debuglog import DebugLog
from streamparse.agent.events import EndState, LoopEnded
from streamparse.agent.jobs import Runnable, is_write
from streamparse.agent.loop import ToolLoop
from streamparse.agent.models import HttpModel
from streamparse.commands.agent_view import AgentView
from streamparse.commands.lines import Lines
from streamparse.commands.previews import preview
from streamparse.commands.record import request_headers
from streamparse.commands.sinks import default_format, live_view, text_log
from streamparse.errors import UsageError
from streamparse.events import ToolCall
from streamparse.transport.recorder import Redaction
from streamparse.transport.redaction import secrets_of
from streamparse.transport.wires import Wire, as_wire, wire_of_url

SYSTEM: Final = """\
You are a coding agent. You work in one project directory, with the tools that you are given.
Read a file before you edit it. After a change, run the tests or whatever shows that it works.
If a call is refused, do not try it again in another form: say what you need.
When you are done, say in a few words what you changed and how you know that it works."""

CONNECT, READ = 10.0, 600.0
"""Seconds that a connection, and the next bytes, may take; the watchdogs of the model are stricter."""

NUDGES: Final = 2
"""How often an answer that is none is sent back."""

_GRACE = 1.0
"""Seconds that the end of the program waits for the thread of a tool that was given up."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of ``agent``. ``yes``: nobody is asked. ``plain``: a log instead of the live view."""

    task: str
    url: str
    root: str = "."
    yes: bool = False
    model: str | None = None
    wire: str | None = None
    key_env: str | None = None
    log: str | None = None
    max_turns: int = TURNS
    plain: bool = False


def agent(options: Options, out: TextIO) -> bool:
    """Work on the task, and show it. Whether there was an answer.

    Raises ``KeyboardInterrupt`` after Ctrl-C, when all is closed; ``UsageError`` for wrong use, ``MissingExtraError``
    for the live view without rich.
    """
    live = not options.plain and default_format(out) == "live"
    view = AgentView(lambda: live_view(out) if live else text_log(out))
    _check_url(options.url)
    wire = wire_of_url(options.url) if options.wire is None else as_wire(options.wire)
    headers = request_headers(options.url, [], options.key_env, wire)
    redaction = Redaction(secrets_of(options.url, headers))
    before = set(threading.enumerate())
    code = 130
    try:
        with _log(options.log, redaction) as log:
            ended = anyio.run(_work, options, wire, headers, view, log)
        if log is not None and log.error is not None:
            sys.stderr.write(f"streamparse: the log is not whole: {log.error}\n")
        if ended.state is EndState.CANCELLED:
            raise KeyboardInterrupt
        code = 0 if ended.state is EndState.ANSWERED else 1
    finally:
        view.close()
        _leave_hung(before, code)
    return code == 0


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good:
        raise UsageError("--url: expected the endpoint, with http:// or https:// and a host")


async def _work(
    options: Options, wire: Wire, headers: dict[str, str], view: AgentView, log: DebugLog | None
) -> LoopEnded:
    root = Root(options.root)
    async with httpx.AsyncClient(timeout=httpx.Timeout(CONNECT, read=READ)) as client:
        model = HttpModel(
            client,
            options.url,
            wire=wire,
            model=options.model,
            headers=headers,
            start="reasoning" if wire is Wire.COMPLETIONS else "text",  # where its prompt ends
        )
        loop = loop_of(model, root, view, yes=options.yes, log=log, max_turns=options.max_turns)
        with _ctrl_c(loop):
            return await loop.run(options.task, on_event=view)


@contextmanager
def _ctrl_c(loop: ToolLoop) -> Iterator[None]:
    """Ctrl-C cancels the run, and once more its task. A handler of the event loop wakes it for certain, which the one
    that it has for itself does not: a signal between two waits would be seen after the next event."""
    running, task = asyncio.get_running_loop(), asyncio.current_task()
    pressed = 0

    def interrupt() -> None:
        nonlocal pressed
        pressed += 1
        if pressed == 1:
            loop.cancel("interrupted by the user")
        elif task is not None:
            task.cancel()

    try:
        running.add_signal_handler(signal.SIGINT, interrupt)
    except (NotImplementedError, RuntimeError, ValueError):  # a system, or a thread, without
        yield
        return
    try:
        yield
    finally:
        running.remove_signal_handler(signal.SIGINT)


def loop_of(
    model: Any, root: Root, view: AgentView, *, yes: bool, log: DebugLog | None = None, max_turns: int = TURNS
) -> ToolLoop:
    """The loop with the coding tools. Each write and each command is shown before it runs, and asked for if not
    ``yes``."""
    permission = Permission(view, root, yes=yes)
    return ToolLoop(
        model,
        coding_tools(root, policy="allow"),  # commands are asked for with the other writes
        system=SYSTEM,
        budget=Budget(turns=max_turns),
        nudges=NUDGES,
        compactor=Compactor(),
        log=log,
        approve=permission.approve,
        ask=permission.ask,
    )


class Permission:
    """Shows what a call is about to do, and asks whether it may."""

    def __init__(self, view: AgentView, root: Root, *, yes: bool) -> None:
        self._view = view
        self._root = root
        self._allowed: set[str] = set()
        self._yes = yes
        self._lines = Lines(sys.stdin)

    async def approve(self, call: ToolCall, tool: Runnable) -> Decision:
        """Reads may run. Everything else is shown; then it is allowed, or asked for. Who is asked sees all of it."""
        if not is_write(tool):
            return Decision("allow")
        shown = preview(call, self._root)
        is_allowed = self._yes or call.name in self._allowed
        self._view.block(shown.label, shown.bounded.lines if is_allowed else shown.lines)
        return Decision("allow" if is_allowed else "ask")

    async def ask(self, call: ToolCall, _: Runnable) -> Decision:
        """The person at the terminal decides: yes, no, always (for this tool), or in words, which are a no."""
        sys.stderr.write(f"{call.name}: may it run? [y]es, [n]o, [a]lways, or say what to do instead: ")
        sys.stderr.flush()
        line = await self._lines.next()
        if line is None:
            return Decision("deny", "nobody is there to allow it")
        answer = line.strip()
        if answer.lower() in ("a", "always"):
            self._allowed.add(call.name)
        if answer.lower() in ("y", "yes", "a", "always"):
            return Decision("allow")
        if answer.lower() in ("", "n", "no"):
            return Decision("deny", "the user said no")
        return Decision("deny", f"the user said: {answer}")


@contextmanager
def _log(name: str | None, redaction: Redaction) -> Iterator[DebugLog | None]:
    if name is None:
        yield None
        return
    with _create(name) as file:
        yield DebugLog(file.write, redact=redaction.text if redaction.needed else None)


def _create(name: str) -> TextIO:
    try:
        return open(name, "x", encoding="utf-8", newline="\n", buffering=1)
    except FileExistsError:
        raise UsageError(f"--log: {name} is there already, and is not overwritten; expected a new file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"cannot write {name}: {reason}") from None


def _leave_hung(before: set[threading.Thread], code: int) -> None:
    """A thread that a tool has hung in would keep the program from ending, for ever (B10)."""
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon:
            thread.join(_GRACE)
            if thread.is_alive():
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
