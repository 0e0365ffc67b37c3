"""The tool loop: a model proposes, the program executes, the results go back, until there is an answer (part B).

It is made of parts that work alone: a model (``models``), the ``Ledger``, the ``Judge``, the ``Executor``, a
``Compactor``, a ``Guard``, a ``Budget``. What it promises:

* Each call has exactly one result, in call order, and the history is one that a server takes, at any moment at which
  a run is not going on: after an answer, a cancellation, a crash of a tool or of the caller's own callback.
* A call that is not sealed, not trusted, or read by guessing never runs a write (B15).
* It ends, and says how: ``EndState``. Nothing waits without a limit (B21), as long as tools let themselves be
  cancelled (see ``executor``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import anyio

from streamparse.agent.adapters.openai import DEFAULT_STYLE, ChatStyle
from streamparse.agent.budgets import Budget
from streamparse.agent.compaction import Compactor
from streamparse.agent.debuglog import DebugLog
from streamparse.agent.events import EndState, LoopEnded
from streamparse.agent.executor import Executor
from streamparse.agent.ledger import Content, Ledger
from streamparse.agent.loop_request import recall_tool
from streamparse.agent.loop_run import LoopRun, OnEvent
from streamparse.agent.loop_stream import LoopStream
from streamparse.agent.models.base import Model
from streamparse.agent.request import AUTO, Choice
from streamparse.agent.results import MAX_TEXT
from streamparse.agent.spans import ToolSpans
from streamparse.errors import UsageError
from streamparse.events import Ended, ToolCall
from streamparse.tools.definition import Tool, as_tools
from streamparse.tools.functions import tool_from_function
from streamparse.tools.issues import ArgumentRejectedError
from streamparse.tools.validation import Extra, Judge
from streamparse.transport.pace import CLOCK, Clock

ATTEMPTS: Final = 3
"""Answers in a row with wrong calls of a tool. The third is told that it was the last; one more ends the run."""


class ToolLoop:
    """One conversation of a model with tools. ::

        loop = ToolLoop(HttpModel(client, url, model="…"), [get_weather, *coding_tools("project")])
        ended = await loop.run("What is the weather in Bern?", on_event=print)
        ended.state, ended.text

    ``tools`` are ``Tool`` objects, or typed functions, which then count as writes. ``run`` may be called again: the
    conversation goes on. ``stream`` gives the events to iterate over, ``run_sync`` is for programs without an event
    loop. ``cancel`` ends a run.

    * ``system``: the system message; or ``ledger``, a conversation that goes on.
    * ``budget``: what one run may use up. ``attempts``: answers in a row with wrong calls of one tool, and then it ends
      (A6).
    * ``nudges``: how often in a run an unfinished answer is told why it is none, and the model goes on. 0: it ends.
    * ``compactor``: shortens the history, and gives the model the tool ``recall`` (B18).
    * ``extra``: what becomes of undeclared arguments (B14); ``undeclared`` counts them, by tool.
    * ``stop_doomed``: end the generation when a call cannot become valid any more. It needs a model that was made with
      ``early=True``.
    * ``log``, ``spans``: see there. ``style``: what the chat server wants. ``clock``: the time, for tests.
    * ``unsigned_thinking``: on the wire ``messages``, send reasoning back that came without a signature. Anthropic's
      own servers refuse it, those of others want it. What came with one always goes back as it came.
    * all other options are those of ``Executor``: ``approve``, ``ask``, ``reads``, ``timeout``, ``max_text`` …

    Raises ``ToolDefinitionError`` and ``UsageError`` for tools and options that cannot be.
    """

    def __init__(
        self,
        model: Model,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        *,
        system: str | None = None,
        ledger: Ledger | None = None,
        budget: Budget | None = None,
        attempts: int = ATTEMPTS,
        nudges: int = 0,
        compactor: Compactor | None = None,
        extra: Extra = "ignore",
        stop_doomed: bool = False,
        log: DebugLog | None = None,
        spans: ToolSpans | None = None,
        style: ChatStyle = DEFAULT_STYLE,
        unsigned_thinking: bool = True,
        clock: Clock = CLOCK,
        **execution: Any,
    ) -> None:
        if system is not None and ledger is not None:
            raise UsageError("system belongs to a new conversation; a ledger has its own")
        if attempts < 1 or nudges < 0:
            raise UsageError(f"attempts counts from 1 and nudges from 0, found {attempts!r} and {nudges!r}")
        self.model = model
        self.ledger = Ledger(system) if ledger is None else ledger
        known = [each if isinstance(each, Tool) else tool_from_function(each) for each in tools]
        self.compactor = compactor
        if compactor is not None:
            known.append(recall_tool(compactor, self.ledger, execution.get("max_text", MAX_TEXT)))
            execution.setdefault("keep", partial(compactor.store, self.ledger))
        self.tools = list(as_tools(known).values())
        self.extra = extra
        self.judge = Judge(self.tools, extra=extra)
        self.executor = Executor(self.tools, clock=clock, **{"refused": self._refused, **execution})
        self.budget = budget or Budget()
        self.attempts = attempts
        self.nudges = nudges
        self.stop_doomed = stop_doomed
        self.log = log
        self.spans = spans
        self.style = style
        self.unsigned_thinking = unsigned_thinking
        self.clock = clock
        self.undeclared: Counter[str] = Counter()
        self.repeatable = frozenset(tool.name for tool in self.tools if getattr(tool, "repeatable", False) is True)
        self._run: LoopRun | None = None

    async def run(
        self, task: Content | None = None, *, choice: Choice = AUTO, on_event: OnEvent | None = None
    ) -> LoopEnded:
        """Work on what the user says, until there is an end; ``task`` None goes on with the conversation as it is.

        ``choice`` is the ``tool_choice`` of the first turn (B1). ``on_event`` is told of everything. Raises
        ``UsageError`` while another run goes on, what the model raises that is no ``TransportError``, what ``on_event``
        raises, and the cancellation of the task; the history is whole all the same.
        """
        if self._run is not None:
            raise UsageError("a loop does one run at a time; make one for each conversation")
        choice.checked(self.judge.tools)
        self.close_history("it was left open before this request")
        if task is not None:
            self.ledger.add_user(task)
            self.executor.new_request()
        run = self._run = LoopRun(self, choice, on_event)
        explain, self.ledger.explain = self.ledger.explain, run.explain
        try:
            return await run.go()
        finally:
            self._run = None
            self.ledger.explain = explain

    def stream(self, task: Content | None = None, *, choice: Choice = AUTO) -> LoopStream:
        """The same as an async context manager, and an iterator of events. ::

        async with loop.stream("Fix the test.") as run:
            async for event in run: ...
        run.ended

        Leaving the block early cancels the run, and waits until all is closed.
        """
        return LoopStream(partial(self.run, task, choice=choice), self.cancel)

    def run_sync(
        self, task: Content | None = None, *, choice: Choice = AUTO, on_event: OnEvent | None = None
    ) -> LoopEnded:
        """``run`` for a program without an event loop: it makes one for each run. A client of ``HttpModel`` must not
        keep connections from one run to the next (``httpx.Limits(max_keepalive_connections=0)``)."""
        return anyio.run(partial(self.run, task, choice=choice, on_event=on_event))

    def cancel(self, reason: str = "cancelled by the user") -> None:
        """End the run that goes on, from the same event loop. What runs is stopped, and every call has its result."""
        if self._run is not None:
            self._run.stop(EndState.CANCELLED, reason)

    def _refused(self, call: ToolCall, error: ArgumentRejectedError) -> str:
        assert self._run is not None  # calls run in runs
        return self._run.refused(call, error)

    def close_history(self, reason: str) -> None:
        """Give all that is open its end: ``reason`` is why."""
        if self.ledger.is_answering:
            self.ledger.take([Ended(None, None, clean=False)])
        if self.ledger.open_calls:
            self.ledger.close_open(reason, reads=[tool.name for tool in self.tools if tool.effect == "read"])
