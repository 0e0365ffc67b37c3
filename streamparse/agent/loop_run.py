"""One run of a loop: asks, judges, executes, and asks again, until there is an end.

Theory. A run is a sequence of turns; each has two phases, the model's and the tools'. Whatever happens in one, it ends
with a history that can be sent: an answer that is broken off is closed, and each of its calls has one true result. Only
then is the next thing done. A run is stopped (``stop``) by stopping the phase that is running; a stop that comes
between two phases stops the next at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec

from streamparse.agent.alarm import with_alarm
from streamparse.agent.budgets import Spending
from streamparse.agent.endings import Ending, ending_of, nudge
from streamparse.agent.events import (
    AgentEvent,
    AnswerStopped,
    EndState,
    HistoryCompacted,
    LoopEnded,
    Nudged,
    Retried,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from streamparse.agent.guard import Guard
from streamparse.agent.jobs import Job
from streamparse.agent.judging import Attempts, Judging
from streamparse.agent.loop_request import request_of
from streamparse.agent.models.base import Answer, Request
from streamparse.agent.reasons import NOT_EXECUTED, why_not_executed
from streamparse.agent.request import Choice
from streamparse.agent.results import Execution
from streamparse.agent.states import CallState
from streamparse.agent.turns import Proposal, Turn
from streamparse.errors import TransportError
from streamparse.events import (
    ArgumentRejected,
    Deviated,
    Deviation,
    Ended,
    ErrorDetail,
    Event,
    IssueCode,
    PartialToolCall,
    ToolCall,
)
from streamparse.tools.issues import ArgumentRejectedError as ToolRefusal

if TYPE_CHECKING:
    from streamparse.agent.loop import ToolLoop

OnEvent = Callable[[AgentEvent], object]
"""Told of everything as it happens, in the event loop. What it raises ends the run, and goes on to the caller."""

BREAKS: Final = 3
"""Answers in a row that the connection may break behind the start of a call, before the run ends."""

_BROKEN_OFF: Final = Ended(None, None, clean=False)


class LoopRun:
    """See the module. ``go`` once; ``stop`` at any time, from the same event loop."""

    def __init__(self, loop: ToolLoop, choice: Choice, on_event: OnEvent | None) -> None:
        self._loop = loop
        self._ledger = loop.ledger
        self._choice = choice
        self._on_event = on_event
        self._spending = Spending(loop.budget)
        self._guard = Guard(loop.repeatable)
        self._attempts = Attempts(loop.attempts, loop.judge.tools)
        self._judging = Judging(loop.judge, self._attempts, loop.undeclared)
        self._deviations: list[Deviation] = []  # of the text of this answer
        self._stopped: Ending | None = None
        self._halt: Callable[[], object] | None = None  # stops the phase that is running
        self._answer: Turn | None = None  # the last that came
        self._source: Answer | None = None  # where it comes from
        self._doomed = False
        self._crash: Exception | None = None  # of the callback
        self._over = False
        self._breaks = 0  # answers in a row that the connection broke

    # From outside

    async def go(self) -> LoopEnded:
        """The run. When it is cancelled, or a callback raises, that goes on to the caller, and the history is whole."""
        budget, clock = self._loop.budget, self._loop.clock
        ring = partial(self.stop, EndState.LIMIT, f"the run took longer than {budget.seconds:g} s")
        try:
            return self._end(await with_alarm(budget.seconds, clock, ring, self._turns))
        except BaseException as error:
            failed = isinstance(error, Exception)
            state = EndState.ERROR if failed else EndState.CANCELLED
            self._loop.close_history("the program that runs the tools failed" if failed else "cancelled")
            if not self._over:
                with suppress(Exception):  # it was the callback, perhaps
                    self._end(Ending(state, f"{type(error).__name__}: {error}" if failed else "cancelled"))
            if self._crash is not None:
                raise self._crash from None  # itself, and not the groups that it went through
            raise

    def stop(self, state: EndState, reason: str) -> None:
        """End the run like this, as soon as all is closed. The first who says so counts."""
        self._stopped = self._stopped or Ending(state, reason)
        if self._halt is not None:
            self._halt()

    def explain(self, call: PartialToolCall, error: ErrorDetail, finish_reason: str | None) -> str:
        """What the model is told of a call that failed while it was read (for the ledger)."""
        if (told := self._judging.why(call)) is not None:
            return told
        if self._stopped is not None:
            return f"{NOT_EXECUTED} The answer was stopped before the call was complete: {self._stopped.reason}."
        if self._doomed:
            return f"{NOT_EXECUTED} The answer was stopped before the call was complete, because of another call."
        return why_not_executed(call, error, finish_reason)

    def refused(self, call: ToolCall, error: ToolRefusal) -> str:
        """What the model is told of a call whose argument the tool refused (for the executor)."""
        return self._judging.refused(call, error)

    # Turns

    async def _turns(self) -> Ending:
        nudges = 0
        while True:
            if (spent := self._spending.spent) is not None:
                return Ending(EndState.LIMIT, spent)
            await self._compact()
            ending = self._is_stopped() or await self._turn()
            if ending is None:
                continue
            if ending.state is not EndState.UNFINISHED or nudges >= self._loop.nudges:
                return ending
            nudges += 1
            text = nudge(ending)
            self._ledger.add_user(text)
            self._emit(Nudged(self._spending.turns, text))

    async def _turn(self) -> Ending | None:
        """One turn, and the end that it makes of the run; None if the run goes on."""
        error = await self._ask()
        turn = self._answer
        self._breaks = 0 if error is None else self._breaks + 1
        if (stopped := self._is_stopped()) is not None:
            return stopped
        calls = [] if turn is None else turn.calls
        if error is not None and not (calls and error.retryable and self._breaks <= BREAKS):
            return Ending(EndState.ERROR, str(error))
        if turn is None:
            return Ending(EndState.UNFINISHED, "no answer came")
        await self._execute(turn)
        if (stopped := self._is_stopped()) is not None:
            return stopped
        if not calls:
            return ending_of(turn, self._loop.judge.tools, self._deviations)
        whole = [call for call in calls if not self._judging.is_broken_off(call)]
        circling = (self._guard.saw(whole) if whole else None) or self._attempts.exceeded
        return None if circling is None else Ending(EndState.LIMIT, circling)

    async def _compact(self) -> None:
        if self._loop.compactor is None:
            return
        done = None
        try:
            with anyio.CancelScope() as scope:
                self._enter(scope.cancel)
                done = await self._loop.compactor.acompact(self._ledger, style=self._loop.style, clock=self._loop.clock)
        finally:
            self._halt = None
        if done is not None and (done.shortened or done.dropped or done.problem):
            self._emit(HistoryCompacted(self._spending.turns + 1, done))

    # The model's phase

    async def _ask(self) -> TransportError | None:
        """One answer, into the ledger. The error that broke it, if one did."""
        loop = self._loop
        self._spending.turns += 1
        self._attempts.next_answer()
        body = request_of(self._ledger, loop.model.wire, loop.tools, self._choice, loop.style, loop.unsigned_thinking)
        self._choice = self._choice.after_turn()
        self._judging = Judging(loop.judge, self._attempts, loop.undeclared)
        self._answer, self._source, self._deviations, self._doomed = None, None, [], False
        self._emit(TurnStarted(self._spending.turns, len(self._ledger.entries)))
        if loop.log is not None:
            loop.log.request(self._spending.turns, loop.model.wire, body)
        error: TransportError | None = None
        ring = partial(self.stop, EndState.LIMIT, f"an answer took longer than {loop.budget.answer:g} s")
        try:
            with anyio.CancelScope() as scope:
                self._enter(scope.cancel)
                error = await with_alarm(loop.budget.answer, loop.clock, ring, partial(self._read, body))
        except TransportError as raised:
            error = raised
        finally:
            self._halt = None
            self._close_answer()
            if loop.log is not None:
                loop.log.reply(self._spending.turns, self._answer, error)
        return error

    async def _read(self, body: Request) -> TransportError | None:
        loop = self._loop
        async with loop.model.stream(body, tools=loop.tools, id_factory=self._ledger.make_id) as answer:
            self._source = answer
            if (attempts := getattr(answer, "attempts", 1)) > 1:
                self._emit(Retried(self._spending.turns, attempts))
            async for events in answer:
                self._take(events)
                if self._doomed:
                    return None
            return answer.error

    def _take(self, events: list[Event]) -> None:
        for event in events:
            self._emit(event)
            if isinstance(event, Deviated) and event.index is None:
                self._deviations.append(event.deviation)
            if (judged := self._judging.take(event)) is not None:
                self._emit(judged)
            details = self._details() if isinstance(event, Ended) else ()
            self._answer = self._ledger.take([event], details=details) or self._answer
            if isinstance(event, ArgumentRejected) and self._is_fatal(event):
                self._give_up(event)
                return

    def _is_fatal(self, event: ArgumentRejected) -> bool:
        """An undeclared field is not, where the judge leaves it out (B14)."""
        ignored = event.issue.code is IssueCode.EXTRA and self._loop.extra == "ignore"
        return self._loop.stop_doomed and not ignored

    def _give_up(self, event: ArgumentRejected) -> None:
        """The call cannot become valid: whatever else comes of it is for nothing."""
        failed, text = self._judging.doomed(event)
        self._doomed = True
        self._emit(AnswerStopped(event.index, text))
        self._answer = self._ledger.take([failed, _BROKEN_OFF], details=self._details())

    def _close_answer(self) -> None:
        """An answer that was broken off has an end, too."""
        if self._ledger.is_answering:
            self._answer = self._ledger.take([_BROKEN_OFF], details=self._details())

    def _details(self) -> Sequence[Mapping[str, Any]]:
        """The blocks of reasoning that have to go back as they came (B3)."""
        return getattr(self._source, "thinking", ())

    # The tools' phase

    async def _execute(self, turn: Turn) -> None:
        """One result for each call that has none."""
        calls = turn.open_calls
        if not calls:
            return
        jobs = [self._affordable(self._judging.job_of(call)) for call in calls]

        def started(index: int) -> None:
            call = self._ledger.start(calls[index])
            if self._loop.spans is not None and isinstance(call.call, ToolCall):
                self._loop.spans.start(index, call.call)
            self._emit(ToolStarted(call.index, call.id, call.call.name))

        def finished(execution: Execution) -> None:
            call = calls[execution.index]
            if jobs[execution.index].refusal is None:
                self._accept(execution)
            self._finished(execution, call)

        run = self._loop.executor.turn(jobs, on_start=started, on_result=finished)
        try:
            self._enter(lambda: run.cancel(self._stopped.reason if self._stopped else "cancelled"))
            await run.run()
        finally:
            self._halt = None

    def _affordable(self, job: Job) -> Job:
        """The job, refused if the budget has nothing left for it."""
        if job.refusal is not None or isinstance(job.call, PartialToolCall):
            return job
        refusal = self._spending.refusal(job.call.name)
        return job if refusal is None else Job(job.call, refusal=refusal, state=CallState.NOT_EXECUTED)

    def _accept(self, execution: Execution) -> None:
        """A call that was right ran, or the tool itself refused an argument (B12)."""
        if execution.result.state is CallState.REJECTED:
            self._attempts.wrong(execution.call)
        else:
            self._attempts.right(execution.call.name)

    def _finished(self, execution: Execution, call: Proposal) -> None:
        result = msgspec.structs.replace(execution.result, id=call.id)
        if call.is_open:
            self._ledger.record(result, call)
        if self._loop.spans is not None:
            self._loop.spans.end(execution)
        if self._loop.log is not None:
            self._loop.log.result(self._spending.turns, execution)
        self._emit(
            ToolFinished(
                call.index,
                call.call.name,
                result,
                execution.fault,
                round(execution.seconds, 6),
                execution.repeats,
                execution.hook_errors,
            )
        )

    # Small things

    def _is_stopped(self) -> Ending | None:
        return self._stopped  # which may have changed during any await

    def _enter(self, halt: Callable[[], object]) -> None:
        """A phase begins."""
        self._halt = halt
        if self._stopped is not None:
            halt()

    def _emit(self, event: AgentEvent) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception as error:
            self._crash = self._crash or error
            raise

    def _end(self, ending: Ending) -> LoopEnded:
        """All is closed, whatever happened."""
        self._over = True
        self._loop.close_history(ending.reason)
        text = "" if self._answer is None else self._answer.text
        ended = LoopEnded(ending.state, ending.reason, text, self._spending.turns, self._spending.calls)
        if self._loop.log is not None:
            self._loop.log.end(ended)
        self._emit(ended)
        return ended
