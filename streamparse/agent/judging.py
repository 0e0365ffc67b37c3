"""The calls of an answer, judged as they end: which may run, and what the model is told of the others.

A call is judged the moment that it is sealed, while the answer goes on. What is wrong goes back as its result, with the
number of the attempt; the identical call, and the last attempt, are told more firmly (A6). Attempts are counted for
each tool, by answers, until one of its calls is accepted; a call that could not be read counts like any other. One that
broke off with the connection is not the model's fault, and counts for nothing (B12).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from streamparse.agent.events import CallJudged
from streamparse.agent.jobs import Job
from streamparse.agent.reasons import why_not_executed
from streamparse.agent.turns import Proposal, is_served
from streamparse.events import (
    ArgumentRejected,
    ArgumentValue,
    ErrorCode,
    ErrorDetail,
    Event,
    PartialToolCall,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
)
from streamparse.tools.issues import ArgumentRejectedError as ToolRefusal
from streamparse.tools.issues import Verdict
from streamparse.tools.observation import fingerprint, observation
from streamparse.tools.validation import Judge
from streamparse.tools.wording import quoted

_REMEMBERED = 64
"""Wrong calls of a tool that are remembered; no loop goes on for so long without a right one."""


class _Wrong:
    """What was wrong with one tool since its last right call: in how many answers, which calls in those, and which in
    the answer that is going on."""

    def __init__(self) -> None:
        self.answers = 0
        self.seen: list[str] = []
        self.now: list[str] = []


class Attempts:
    """Wrong calls, by tool, since its last right one. ``limit`` is in how many answers in a row a model may make some.
    All calls of one answer are one attempt: the model has seen the error of none when it writes the next. All that is
    no tool (``names``) counts as one: a model that invents names does not begin anew with each."""

    def __init__(self, limit: int, names: Collection[str]) -> None:
        self.limit = limit
        self._names = names
        self._wrong: dict[str, _Wrong] = {}
        self._right: set[str] = set()  # in the answer that is going on

    def next_answer(self) -> None:
        """The model has seen what came of its calls, and answers."""
        for name in self._right:
            self._wrong.pop(name, None)
        self._right.clear()
        for wrong in self._wrong.values():
            wrong.answers += bool(wrong.now)
            wrong.seen = [*wrong.seen, *wrong.now][-_REMEMBERED:]
            wrong.now = []

    def next(self, call: ToolCall | PartialToolCall) -> tuple[int, int]:
        """The number that this call has if it is wrong, and how often the model was told that the identical one is."""
        wrong = self._wrong.get(self._key(call.name)) or _Wrong()
        return wrong.answers + 1, wrong.seen.count(fingerprint(call))

    def wrong(self, call: ToolCall | PartialToolCall) -> None:
        """Counts a wrong call."""
        now, same = self._wrong.setdefault(self._key(call.name), _Wrong()).now, fingerprint(call)
        if same not in now:
            now.append(same)

    def right(self, name: str) -> None:
        """A call of this tool was accepted: whatever was wrong beside it, before or behind, the model knows how."""
        self._right.add(name)

    @property
    def exceeded(self) -> str | None:
        """Why the run has to stop, None if it has not: the last attempt was wrong, and was not the last."""
        for name, wrong in self._wrong.items():
            answers = wrong.answers + bool(wrong.now)
            if answers > self.limit and name not in self._right:
                what = quoted(name, 40) if name else "a tool that does not exist"
                return f"{what} was called wrongly in {answers} answers in a row; {self.limit} may be"
        return None

    def _key(self, name: str) -> str:
        return name if name in self._names else ""


class Judging:
    """One answer. ``take`` sees its events; then ``job_of`` says what becomes of each call."""

    def __init__(self, judge: Judge, attempts: Attempts, undeclared: Counter[str]) -> None:
        self._judge = judge
        self._attempts = attempts
        self._undeclared = undeclared
        self._jobs: dict[int, Job] = {}  # by the identity of the call, which the ledger keeps
        self._told: dict[int, str] = {}
        self._started: dict[int, tuple[str, str]] = {}
        self._read: dict[int, dict[str, Any]] = {}
        self._broken: set[int] = set()

    def take(self, event: Event) -> CallJudged | None:
        """The verdict, for an event that ends a call; None for every other, and for what the provider runs itself."""
        if isinstance(event, ToolCallStarted):
            self._started[event.index] = (event.id, event.name)
        if isinstance(event, ArgumentValue) and len(event.path) == 1:
            self._read.setdefault(event.index, {})[str(event.path[0])] = event.value
        if isinstance(event, ToolCallFinished):
            if is_served(event.call):
                return None
            return self._judged(event.index, event.call, self._judge.check(event.call))
        if isinstance(event, ToolCallFailed) and not is_served(event.call):
            verdict = self._judge.check(event)
            if event.error.code in _BROKEN_OFF:
                self._broken.add(id(event.call))
                text = self._told[id(event.call)] = why_not_executed(event.call, event.error, None)
                return CallJudged(event.index, event.call.id, verdict, text)
            return self._judged(event.index, event.call, verdict)
        return None

    def doomed(self, event: ArgumentRejected) -> tuple[ToolCallFailed, str]:
        """The end of a call that goes on, and cannot become valid any more (``early=True``); and what the model is told
        of it."""
        id_, name = self._started.get(event.index, ("", event.issue.value.strip('"')))
        call = PartialToolCall(id_, name, self._read.get(event.index, {}))
        verdict = Verdict(name, event.issue.level, (event.issue,))
        _, text = self._wrong(call, verdict)
        self._told[id(call)] = text
        error = ErrorDetail(
            ErrorCode.STREAM_INTERRUPTED, "stopped: the call could not become valid", 0, path=event.path
        )
        return ToolCallFailed(event.index, call, error), text

    def refused(self, call: ToolCall, error: ToolRefusal) -> str:
        """What the model is told of a call whose argument the tool itself refused (B12)."""
        return self._told_of(call, self._judge.refused(call, error))

    def job_of(self, proposal: Proposal) -> Job:
        """What the executor gets for a call that is open."""
        return self._jobs.get(id(proposal.call)) or Job(proposal.call)

    def why(self, call: PartialToolCall) -> str | None:
        """What the model is told of a call that failed, None if it was never said to have failed."""
        return self._told.get(id(call))

    def is_broken_off(self, proposal: Proposal) -> bool:
        """Whether the connection or the provider broke the call off, and not the model."""
        return id(proposal.call) in self._broken

    def _judged(self, index: int, call: ToolCall | PartialToolCall, verdict: Verdict) -> CallJudged:
        known = call.name in self._judge.tools
        if verdict.undeclared:
            self._undeclared[call.name if known else ""] += verdict.undeclared
        if verdict.executable and isinstance(call, ToolCall):
            self._jobs[id(call)] = Job.judged(call, verdict)
            return CallJudged(index, call.id, verdict)
        attempt, text = self._wrong(call, verdict)
        if isinstance(call, ToolCall):
            self._jobs[id(call)] = Job.judged(call, verdict, text)
        else:
            self._told[id(call)] = text
        return CallJudged(index, call.id, verdict, text, attempt)

    def _wrong(self, call: ToolCall | PartialToolCall, verdict: Verdict) -> tuple[int, str]:
        """Counts the attempt: its number, and what the model is told."""
        attempt, _ = self._attempts.next(call)
        text = self._told_of(call, verdict)
        self._attempts.wrong(call)
        return attempt, text

    def _told_of(self, call: ToolCall | PartialToolCall, verdict: Verdict) -> str:
        attempt, repeats = self._attempts.next(call)
        limit = self._attempts.limit
        return observation(verdict, attempt=min(attempt, limit), limit=limit, repeats=repeats)


_BROKEN_OFF = frozenset({ErrorCode.STREAM_INTERRUPTED, ErrorCode.PROVIDER_ERROR})
