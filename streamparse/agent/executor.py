"""Runs the calls of one turn: reads together, writes one after the other, each once, and each with one true result.

Theory. A turn is run in *program order*, as if its calls were run one after the other, only faster (B16): neighbouring
reads run together, up to ``reads`` of them; a write runs alone, after everything before it and before everything behind
it. So a read sees the writes that stand before it in the answer, and none that stand behind it. What acts elsewhere
(``external``) is a write.

Before a call runs it is asked, in this order:

1. May it run at all? A call that is not sealed, or was refused by whoever judged it, never does. A write never does if
   its call is not ``trusted``, or was read at a repair tier of 2 or more (B15). Nobody can allow that.
2. Was this write done already, or is one in doubt (B13, B10)? See ``receipts``.
3. Is it allowed? See ``approval``.

How a call ends (``states``):

=======================  =======================================  ==========================================
what happened            a read                                   a write
=======================  =======================================  ==========================================
it returned              ok                                       ok
it raised                error; rejected if the argument is       the same; in doubt if it may have taken
                         wrong (B12)                              effect, as when a connection broke
its time was over (B10)  timeout                                  in doubt
cancelled, had begun     cancelled                                in doubt
cancelled, had not       cancelled: nothing was executed          the same
=======================  =======================================  ==========================================

Nothing waits without a limit (B21). A turn takes at most the sum of the limits of its tools and of ``approve``. Two
things are beyond that: a coroutine that blocks the event loop, or that catches its own cancellation and goes on, cannot
be stopped from outside; and a thread that never ends may keep the *program* from ending.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import anyio

from streamparse.agent.approval import Approval, Hook
from streamparse.agent.callrun import CallRun, Settings
from streamparse.agent.jobs import Job, Runnable, by_name, seconds
from streamparse.agent.receipts import Receipts
from streamparse.agent.results import MAX_TEXT, Execution, Keep, Refused
from streamparse.errors import UsageError
from streamparse.transport.pace import CLOCK, Clock

TIMEOUT: Final = 300.0
"""B10: seconds that a tool may run, unless it has a ``timeout`` of its own."""

APPROVAL_TIMEOUT: Final = 600.0
"""Seconds that ``approve`` and ``ask`` may take: a person who went to fetch a coffee answers within ten minutes."""

READS: Final = 8
"""Reads that run at the same time."""

OnStart: TypeAlias = Callable[[int], object]
OnResult: TypeAlias = Callable[[Execution], object]


class Executor:
    """Runs turns, one at a time; a conversation has one. ``await executor.run(jobs)``, or ``executor.turn(jobs)``.

    * ``approve`` says whether a call may run: ``"allow"``, ``"deny"``, ``"ask"``, a bool, or a ``Decision``. ``"ask"``
      passes the question on to ``ask``; without one, the answer is no. They are asked about one call at a time. What
      they raise, and no answer in ``approval_timeout`` seconds, is a no.
    * ``reads``: how many reads run at the same time. ``timeout``: seconds, for tools without their own.
    * ``max_text``: characters of a result; ``keep`` takes the whole of one that is longer.
    * ``refused``: writes the text for a call whose argument the tool refused (``ArgumentRejectedError``).
    * ``clock``: the time, for tests.

    ``tallies`` counts, for each tool, the states in which its calls ended, and ``"model_fault"`` and ``"tool_fault"``
    (B12); ``""`` stands for every tool that does not exist. ``receipts`` knows what was written.

    Raises ``UsageError`` for a name that comes twice, a tool without a function, and limits that are none.
    """

    def __init__(
        self,
        tools: Iterable[Runnable],
        *,
        approve: Hook | None = None,
        ask: Hook | None = None,
        reads: int = READS,
        timeout: float = TIMEOUT,
        approval_timeout: float = APPROVAL_TIMEOUT,
        max_text: int = MAX_TEXT,
        keep: Keep | None = None,
        refused: Refused | None = None,
        clock: Clock = CLOCK,
    ) -> None:
        if reads < 1 or max_text < 1:
            raise UsageError(f"reads and max_text must be at least 1, found {reads!r} and {max_text!r}")
        self.tools = by_name(tools)
        self.receipts = Receipts()
        self.tallies: dict[str, Counter[str]] = {}
        self.reads = reads
        self.settings = Settings(
            tools=self.tools,
            receipts=self.receipts,
            approval=Approval(approve, ask, seconds("approval_timeout", approval_timeout), clock),
            timeout=seconds("timeout", timeout),
            max_text=max_text,
            keep=keep,
            refused=refused,
            clock=clock,
        )
        self._busy = False

    def new_request(self) -> None:
        """The user asks for something new: writes that were done for the last request may be done again (B13)."""
        self.receipts.new_request()

    def turn(
        self, jobs: Sequence[Job], *, on_start: OnStart | None = None, on_result: OnResult | None = None
    ) -> TurnRun:
        """The calls of one turn, ready to run. ``on_start`` is told of a call that begins, by its place in the turn,
        ``on_result`` of each result as it comes, in any order."""
        return TurnRun(self, jobs, on_start, on_result)

    async def run(
        self, jobs: Sequence[Job], *, on_start: OnStart | None = None, on_result: OnResult | None = None
    ) -> list[Execution]:
        """Runs the calls of one turn. Returns one result for each, in call order (B4)."""
        return await self.turn(jobs, on_start=on_start, on_result=on_result).run()

    def _begin(self) -> None:
        if self._busy:
            raise UsageError("an executor runs one turn at a time; make one for each conversation")
        self._busy = True
        self.receipts.new_turn()

    def _end(self) -> None:
        self._busy = False

    def _count(self, execution: Execution) -> None:
        name = execution.call.name if execution.call.name in self.tools else ""
        tally = self.tallies.setdefault(name, Counter())
        tally[execution.result.state.value] += 1
        if execution.fault is not None:
            tally[f"{execution.fault}_fault"] += 1


class TurnRun:
    """One turn. ``run`` once; ``cancel`` at any time, from the same event loop.

    After ``cancel``, ``run`` returns as always, with a true result for each call. When it is cancelled from outside, or
    a callback raises, that goes on to the caller, and ``executions`` has the results all the same.
    """

    def __init__(
        self, executor: Executor, jobs: Sequence[Job], on_start: OnStart | None, on_result: OnResult | None
    ) -> None:
        self._executor = executor
        self._calls = [CallRun(executor.settings, index, job, on_start) for index, job in enumerate(jobs)]
        self._on_result = on_result
        self._done: dict[int, Execution] = {}
        self._reason: str | None = None
        self._scope: anyio.CancelScope | None = None
        self._ran = False

    @property
    def executions(self) -> list[Execution]:
        """The results that there are, in call order; one for each call once ``run`` is over."""
        return [self._done[index] for index in sorted(self._done)]

    def cancel(self, reason: str = "cancelled") -> None:
        """Stop: nothing more begins, what runs is cancelled. ``reason`` is for the model."""
        self._reason = self._reason or reason
        if self._scope is not None:
            self._scope.cancel()

    async def run(self) -> list[Execution]:
        """Runs the calls. Raises ``UsageError`` when called again, or while the executor runs another turn."""
        if self._ran:
            raise UsageError("a turn runs once")
        self._executor._begin()
        self._ran = True
        try:
            with anyio.CancelScope() as self._scope:
                if self._reason is None:
                    await self._run_all()
        finally:
            self._executor._end()
            self._close()
        return self.executions

    async def _run_all(self) -> None:
        slots, asking = anyio.Semaphore(self._executor.reads), anyio.Lock()
        for batch in self._batches():
            async with anyio.create_task_group() as group:
                for call in batch:
                    group.start_soon(self._take, call, slots, asking)

    def _batches(self) -> Iterator[list[CallRun]]:
        """The calls in program order: neighbouring reads together, each write alone."""
        reads: list[CallRun] = []
        for call in self._calls:
            if not call.is_write:
                reads.append(call)
                continue
            if reads:
                yield reads
            yield [call]
            reads = []
        if reads:
            yield reads

    async def _take(self, call: CallRun, slots: anyio.Semaphore, asking: anyio.Lock) -> None:
        async with slots:
            self._finish(await call.go(asking))

    def _finish(self, execution: Execution) -> None:
        self._done[execution.index] = execution
        self._executor._count(execution)
        if self._on_result is not None:
            self._on_result(execution)

    def _close(self) -> None:
        """One true result for each call that has none (B21)."""
        left = [call.closed(self._reason or "cancelled") for call in self._calls if call.index not in self._done]
        self._done |= {execution.index: execution for execution in left}
        for execution in left:
            self._finish(execution)
