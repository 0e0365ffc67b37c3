"""One call, from the question whether it may run to its result. ``executor`` says when.

``go`` runs it. Where ``go`` is cancelled, ``closed`` says what became of the call, at any moment and truthfully: a run
that was over is not said to be cancelled, and one that had not begun not to be in doubt.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any, Final

import anyio
import msgspec

from streamparse.agent.approval import Approval
from streamparse.agent.jobs import Job, Runnable, is_write, refusal_of
from streamparse.agent.reasons import MAX_REASON, NOT_EXECUTED, why_closed
from streamparse.agent.receipts import Held, Receipts, Write, key_of
from streamparse.agent.resources import EVERYTHING
from streamparse.agent.results import (
    Execution,
    Fault,
    Keep,
    Refused,
    Told,
    bounded,
    is_outcome_unknown,
    told_error,
    told_value,
    words_of,
)
from streamparse.agent.run import Raised, Returned, Run, limit
from streamparse.agent.states import CallState
from streamparse.agent.turns import ToolResult
from streamparse.events import ToolCall
from streamparse.tools.wording import clip, plain, quoted
from streamparse.transport.pace import Clock

VERSION_TIMEOUT: Final = 10.0
"""Seconds for ``version``: reading a file, not more."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the calls of an executor have in common. ``timeout`` is for tools without their own."""

    tools: dict[str, Runnable]
    receipts: Receipts
    approval: Approval
    timeout: float
    max_text: int
    keep: Keep | None
    refused: Refused | None
    clock: Clock


class CallRun:
    """One call of a turn; ``index`` is its place there. ``on_start`` is told before it runs."""

    def __init__(self, settings: Settings, index: int, job: Job, on_start: Callable[[int], object] | None) -> None:
        self.index = index
        self.job = job
        self.tool = settings.tools.get(job.call.name)
        self._settings = settings
        self._on_start = on_start
        self._arguments = _arguments(job)
        self._hook_errors: list[str] = []
        self._resources = self._named(self.tool)
        self._write: Write | None = None
        self._run: Run | None = None
        self._since = 0.0

    @property
    def is_write(self) -> bool:
        """Whether it has to run alone."""
        return self.tool is not None and is_write(self.tool)

    async def go(self, asking: anyio.Lock) -> Execution:
        """Runs the call, if it may run. ``asking`` is held while somebody is asked."""
        refusal = refusal_of(self.job, self._settings.tools)
        if refusal is not None:
            return self._ended(refusal.state, refusal.text, "model" if refusal.state is CallState.REJECTED else None)
        call, tool = self.job.call, self.tool
        assert isinstance(call, ToolCall)
        assert tool is not None
        key = key_of(call.name, self._arguments)
        if self.is_write and (held := await self._held(key, tool)) is not None:
            return self._not_now(held)
        async with asking:
            denial = await self._settings.approval.denial(
                msgspec.structs.replace(call, arguments=deepcopy(self._arguments)), tool, self._hook_errors
            )
        if denial is not None:
            return self._ended(CallState.NOT_EXECUTED, f"{NOT_EXECUTED} The call was not allowed: {denial}.")
        try:
            keywords = _converted(tool, self._arguments)
        except Exception as error:  # of a conversion that is the tool's own
            text = f"{NOT_EXECUTED} The arguments do not fit: {clip(plain(str(error)), MAX_REASON)}"
            return self._ended(CallState.REJECTED, text, "model")
        await self._execute(call, tool, key, keywords)
        execution = self._concluded(self._lapsed)
        if self._write is not None and execution.result.state is CallState.OK:
            self._settings.receipts.version(self._write, await self._versions(tool))
            return msgspec.structs.replace(execution, hook_errors=tuple(self._hook_errors))
        return execution

    def closed(self, reason: str) -> Execution:
        """What became of a call whose ``go`` was cancelled, or never called."""
        return self._concluded(partial(self._stopped, reason))

    # Before

    async def _held(self, key: str, tool: Runnable) -> Held | None:
        receipts = self._settings.receipts
        held = receipts.held(key, self._resources)
        if held is not None or getattr(tool, "repeatable", False) is True:
            return held
        receipt = receipts.fresh(key)
        return None if receipt is None else receipt.held(await self._versions(tool))

    def _not_now(self, held: Held) -> Execution:
        if held.repeats is None:
            return self._ended(CallState.NOT_EXECUTED, held.text)
        self._started()  # for the ledger: only what began can be ok
        return self._ended(CallState.OK, held.text, repeats=held.repeats)

    async def _versions(self, tool: Runnable) -> Any:
        """The versions of all its resources; None where the tool tells none."""
        version = getattr(tool, "version", None)
        if not callable(version):
            return None
        runs = [Run(partial(version, resource), {}) for resource in self._resources if resource != EVERYTHING]
        for run in runs:
            async with limit(VERSION_TIMEOUT, self._settings.clock):
                await run.go()
        return [self._version(run) for run in runs]

    def _version(self, run: Run) -> Any:
        """What ``version`` said. A resource that is not there has a version as well: the error says so each time."""
        if isinstance(run.outcome, Returned):
            return run.outcome.value
        if not isinstance(run.outcome, Raised):
            return object()
        if not isinstance(run.outcome.error, OSError):
            self._hook_errors.append(f"version: {words_of(run.outcome.error)}")
        return type(run.outcome.error).__name__

    def _named(self, tool: Runnable | None) -> tuple[str, ...]:
        """What the call reads or changes. A tool that does not say may read, or change, everything."""
        unknown = () if tool is None else (EVERYTHING,)
        resource = getattr(tool, "resource", None)
        if not callable(resource):
            return unknown
        try:
            found = resource(deepcopy(self._arguments))
        except Exception as error:  # it is the tool's own code, and the arguments may be anything
            self._hook_errors.append(f"resource: {words_of(error)}")
            return unknown
        if isinstance(found, str):
            return (found,)
        texts = isinstance(found, list | tuple) and all(isinstance(each, str) for each in found)
        return tuple(found) if texts else unknown

    # Running

    def _started(self) -> None:
        if self._on_start is not None:
            self._on_start(self.index)

    async def _execute(self, call: ToolCall, tool: Runnable, key: str, keywords: dict[str, Any]) -> None:
        assert tool.function is not None
        self._started()
        if self.is_write:
            self._write = self._settings.receipts.begin(call.id, key, self._resources)
        self._since = self._settings.clock.now()
        self._run = Run(tool.function, keywords)
        async with limit(self._limit, self._settings.clock):
            await self._run.go()

    @property
    def _limit(self) -> float:
        """Seconds that the tool may run (B10)."""
        own = getattr(self.tool, "timeout", None)
        return self._settings.timeout if own is None else float(own)

    # Ends

    def _concluded(self, unfinished: Callable[[], Execution]) -> Execution:
        """The result of what is over; ``unfinished`` gives that of what is not."""
        call, run = self.job.call, self._run
        if run is None or run.outcome is None:
            return unfinished()
        assert isinstance(call, ToolCall)
        if isinstance(run.outcome, Raised):
            told = told_error(call, run.outcome.error, self._settings.refused)
            if self._write is not None and told.fault == "tool" and is_outcome_unknown(run.outcome.error):
                text = told.text.removesuffix(".")
                return self._in_doubt(f"{text}. The outcome is unknown: it may have taken effect.", "tool")
        else:
            told = told_value(call.name, run.outcome.value)
        return self._told(call, told, done=isinstance(run.outcome, Returned))

    def _told(self, call: ToolCall, told: Told, *, done: bool) -> Execution:
        text = bounded(call, told.text, self._settings.max_text, self._settings.keep)
        if self._write is not None:
            if told.resource is not None and told.resource not in self._write.resources:
                self._write = self._settings.receipts.also(self._write, told.resource)
            if done and told.ran:
                self._settings.receipts.done(self._write, text)
        elif told.state is CallState.OK:
            self._settings.receipts.looked(self._resources if told.resource is None else (told.resource,))
        return self._ended(told.state, text, told.fault, touched=told.resource)

    def _lapsed(self) -> Execution:
        """Its time is over (B10)."""
        assert self._run is not None
        name, after = quoted(self.job.call.name), f"timed out after {self._limit:g} s"
        if not self._run.begun:
            return self._ended(CallState.TIMEOUT, f"{NOT_EXECUTED} The tool {name} {after}, and had not begun.", "tool")
        how = "it may still be running" if self._run.is_running else "it was stopped"
        if self._write is None:
            return self._ended(CallState.TIMEOUT, f"The tool {name} {after}; {how}.", "tool")
        return self._in_doubt(f"The tool {name} {after}; {how}. It may have taken effect.", "tool")

    def _stopped(self, reason: str) -> Execution:
        """Nobody wants it any more (B21)."""
        running = self._run is not None and self._run.begun
        text = why_closed(reason, running=running, harmless=self._write is None)
        if running and self._write is not None:
            return self._in_doubt(text, None)
        if running and self._run is not None and self._run.is_running:
            text += " It may still be running."
        return self._ended(CallState.CANCELLED, text)

    def _in_doubt(self, text: str, fault: Fault | None) -> Execution:
        assert self._write is not None
        assert self._run is not None
        self._settings.receipts.in_doubt(self._write, self._run if self._run.is_running else None)
        return self._ended(CallState.IN_DOUBT, f"{text.removesuffix(_VERIFY)}{_VERIFY}", fault)

    def _ended(
        self,
        state: CallState,
        text: str,
        fault: Fault | None = None,
        *,
        repeats: str | None = None,
        touched: str | None = None,
    ) -> Execution:
        call = self.job.call
        ran = self._run is not None and self._run.begun and state is not CallState.REJECTED
        names = self._resources if touched is None else (touched,)
        result = ToolResult(
            id=call.id,
            state=state,
            text=text,
            reads=names if ran and not self.is_write else (),
            wrote=names if ran and self.is_write else (),
        )
        taken = 0.0 if self._run is None else self._settings.clock.now() - self._since
        return Execution(
            index=self.index,
            call=call,
            result=result,
            fault=fault,
            seconds=taken,
            repeats=repeats,
            hook_errors=tuple(self._hook_errors),
        )


_VERIFY: Final = " Verify before you repeat it."


def _arguments(job: Job) -> dict[str, Any]:
    return job.call.arguments if job.arguments is None else job.arguments


def _converted(tool: Runnable, arguments: dict[str, Any]) -> dict[str, Any]:
    convert = getattr(tool, "convert", None)
    return dict(convert(arguments) if callable(convert) else arguments)
