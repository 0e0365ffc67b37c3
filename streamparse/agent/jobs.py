"""What an executor is given: tools that can be run, and the calls of a turn with the judgement on them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, Protocol

import msgspec

from streamparse.agent.reasons import NOT_EXECUTED
from streamparse.agent.states import CallState
from streamparse.errors import UsageError
from streamparse.events import DeviationCode, PartialToolCall, ToolCall
from streamparse.tools.issues import Verdict
from streamparse.tools.observation import observation
from streamparse.tools.wording import listed, quoted

_DOUBTFUL_TIER: Final = 2  # B15
_NAMES: Final = 400  # characters of names that are listed


class Runnable(Protocol):
    """What a tool needs to be run; ``tools.Tool`` is one.

    ``effect`` is ``"read"``, ``"write"`` or ``"external"``; ``function`` takes keyword arguments, and may be async. A
    tool may have more:

    * ``timeout``: seconds that it may run.
    * ``resource(arguments)``: the name of what it reads or changes, or several. A tool without it may read, or change,
      everything.
    * ``version(resource)``: what the resource holds, as something that can be compared (a hash, a time); may be async.
    * ``repeatable``: True for a write that may be done again within a request, such as a command that waits for
      something. It gets no receipts; in doubt it is verified all the same.
    * ``convert(arguments)``: the keyword arguments out of the JSON arguments.
    """

    @property
    def name(self) -> str:
        """What the model calls it."""

    @property
    def effect(self) -> str:
        """What running it does. Everything but ``"read"`` is a write."""

    @property
    def function(self) -> Callable[..., Any] | None:
        """What is run. It returns text, a value that is JSON, or an object with a ``text``."""


class Job(msgspec.Struct, frozen=True):
    """A call of a turn, judged. ``arguments`` are those to run it with, None for the call's own. ``refusal``, if there
    is one, is why it does not run, for the model; it ends in ``state`` then."""

    call: ToolCall | PartialToolCall
    arguments: dict[str, Any] | None = None
    refusal: str | None = None
    state: CallState = CallState.REJECTED

    @classmethod
    def judged(cls, call: ToolCall | PartialToolCall, verdict: Verdict, refusal: str | None = None) -> Job:
        """A call with its verdict; ``refusal`` replaces the text for one that may not run."""
        if verdict.executable:
            return cls(call, verdict.arguments)
        state = CallState.NOT_EXECUTED if verdict.valid else CallState.REJECTED
        return cls(call, verdict.arguments, refusal or observation(verdict), state)


class Refusal(msgspec.Struct, frozen=True):
    """Why a call does not run, for the model, and how it ends."""

    state: CallState
    text: str


def refusal_of(job: Job, tools: dict[str, Runnable]) -> Refusal | None:
    """Why the call must not run, whatever anybody allows (E3, B15); None if it may."""
    call, tool = job.call, tools.get(job.call.name)
    if job.refusal is not None:
        return Refusal(job.state, job.refusal)
    if isinstance(call, PartialToolCall):
        return Refusal(CallState.NOT_EXECUTED, f"{NOT_EXECUTED} The call was not complete. Send it again, whole.")
    if tool is None:
        names = listed(sorted(tools), 0, _NAMES) or "none"
        text = f"{NOT_EXECUTED} There is no tool {quoted(call.name)}. Call one of the tools that exist: {names}."
        return Refusal(CallState.REJECTED, text)
    codes = {each.code for each in call.deviations}
    if DeviationCode.SERVER_TOOL in codes:
        return Refusal(CallState.NOT_EXECUTED, f"{NOT_EXECUTED} The provider runs this call itself.")
    if is_write(tool) and is_doubtful(call):
        why = f" ({', '.join(sorted(codes))})" if codes else ""
        text = f"{NOT_EXECUTED} The call could not be read reliably{why}, and this tool changes something."
        return Refusal(CallState.NOT_EXECUTED, f"{text} Send it again in the documented format, with correct JSON.")
    return None


def is_write(tool: Runnable) -> bool:
    """Whether running it may change anything, here or elsewhere."""
    return tool.effect != "read"


def is_doubtful(call: ToolCall) -> bool:
    """Whether what was read is perhaps not what was meant (B15)."""
    return not call.trusted or any(each.tier >= _DOUBTFUL_TIER for each in call.deviations)


def by_name(tools: Iterable[Runnable]) -> dict[str, Runnable]:
    """The tools, by name. Raises ``UsageError``."""
    known: dict[str, Runnable] = {}
    for tool in tools:
        if not callable(tool.function):
            raise UsageError(f"tool {tool.name!r} has no function that could be run")
        if _is_generator(tool.function):
            raise UsageError(
                f"tool {tool.name!r} is a generator, which runs nothing when it is called; return the result"
            )
        if tool.name in known:
            raise UsageError(f"two tools have the name {tool.name!r}: rename one")
        timeout = getattr(tool, "timeout", None)
        if timeout is not None:
            seconds(f"tool {tool.name!r}: timeout", timeout)
        known[tool.name] = tool
    return known


def _is_generator(function: Callable[..., Any]) -> bool:
    while isinstance(function, partial):
        function = function.func
    forms = (function, getattr(function, "__call__", None))  # noqa: B004 - an object whose call is a generator
    return any(inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each) for each in forms)


def seconds(name: str, value: float) -> float:
    """A limit. Raises ``UsageError`` for what is none: nothing may wait for ever (B21)."""
    if not 0 < value < float("inf"):
        raise UsageError(f"{name} counts seconds, and must be above 0 and finite, found {value!r}")
    return float(value)
