"""May this call run? The question goes to the caller's hooks, with a limit; no answer is a no."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal, TypeAlias

import msgspec

from streamparse.agent.jobs import Runnable
from streamparse.agent.results import words_of
from streamparse.agent.run import Raised, Run, limit
from streamparse.events import ToolCall
from streamparse.transport.pace import Clock


class Decision(msgspec.Struct, frozen=True):
    """Whether a call may run. ``reason`` is for the model."""

    answer: Literal["allow", "deny", "ask"]
    reason: str = ""


Answer: TypeAlias = Decision | Literal["allow", "deny", "ask"] | bool

Hook: TypeAlias = Callable[[ToolCall, Runnable], Answer | Awaitable[Answer]]
"""Takes a call that is about to run, with the arguments that it would run with, and its tool. A function that is not
async runs in a thread, so that it may wait for a person."""


class Approval(msgspec.Struct, frozen=True):
    """``approve`` decides, or passes the question on to ``ask``. Without ``approve`` everything is allowed; without
    ``ask``, what it would be asked is denied. Each may take ``timeout`` seconds."""

    approve: Hook | None
    ask: Hook | None
    timeout: float
    clock: Clock

    async def denial(self, call: ToolCall, tool: Runnable, errors: list[str]) -> str | None:
        """Why the call may not run; None if it may. Raises nothing but a cancellation: what a hook raises is added to
        ``errors``, since its message is not for the model."""
        if self.approve is None:
            return None
        decision = await self._put("approve", self.approve, call, tool, errors)
        if decision.answer == "ask":
            if self.ask is None:
                return decision.reason or "somebody would have to allow it, and nobody can be asked"
            decision = await self._put("ask", self.ask, call, tool, errors)
        return None if decision.answer == "allow" else decision.reason or "it was denied"

    async def _put(self, name: str, hook: Hook, call: ToolCall, tool: Runnable, errors: list[str]) -> Decision:
        run = Run(partial(hook, call, tool), {})
        async with limit(self.timeout, self.clock):
            await run.go()
        if run.outcome is None:
            return Decision("deny", f"nobody answered within {self.timeout:g} s")
        if isinstance(run.outcome, Raised):
            errors.append(f"{name}: {words_of(run.outcome.error)}")
            kind = type(run.outcome.error).__name__
            return Decision("deny", f"the question whether it may run could not be answered ({kind})")
        return _decision(run.outcome.value)


def _decision(answer: object) -> Decision:
    """Only what is clearly a yes is one."""
    if isinstance(answer, Decision):
        return answer
    if answer is True or answer == "allow":
        return Decision("allow")
    return Decision("ask" if answer == "ask" else "deny")
