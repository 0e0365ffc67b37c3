"""Requests: a ledger, tools and a choice, as the body that a server takes (B1).

``tools`` are two levels deep for chat completions (``{"type": "function", "function": {…}}``) and flat for Anthropic.
A forced choice holds for one turn: a server that is told ``required`` again and again never lets the model answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from streamparse.agent.adapters.anthropic import to_anthropic
from streamparse.agent.adapters.native import to_prompt
from streamparse.agent.adapters.openai import DEFAULT_STYLE, ChatStyle, to_messages
from streamparse.agent.ledger import Ledger
from streamparse.errors import UsageError
from streamparse.tools.definition import Tool, as_tools

_MODES: Final = ("auto", "required", "none")


class Choice(msgspec.Struct, frozen=True):
    """Whether the model must call. ``Choice("required")``, ``Choice("named", "read_file")``; ``AUTO`` leaves it free.

    Raises ``UsageError`` for another mode, and for a name without ``"named"`` or the other way round.
    """

    mode: Literal["auto", "required", "none", "named"] = "auto"
    name: str = ""

    def __post_init__(self) -> None:
        if self.mode not in (*_MODES, "named"):
            raise UsageError(f"tool_choice {self.mode!r} is unknown; use auto, required, none or named")
        if (self.mode == "named") != bool(self.name):
            raise UsageError("a named choice, and no other, has a name: Choice('named', 'read_file')")

    def after_turn(self) -> Choice:
        """The choice for the next request: what was forced is free again."""
        return AUTO if self.mode in ("required", "named") else self

    def checked(self, tools: Mapping[str, Tool]) -> Choice:
        """Itself. Raises ``UsageError`` if these tools cannot satisfy it."""
        if self.mode == "required" and not tools:
            raise UsageError("tool_choice 'required' needs tools")
        if self.mode == "named" and self.name not in tools:
            known = ", ".join(tools) or "none"
            raise UsageError(f"tool_choice names {self.name!r}, which is none of the tools: {known}")
        return self

    def to_openai(self) -> str | dict[str, Any]:
        """As ``tool_choice`` of chat completions."""
        return {"type": "function", "function": {"name": self.name}} if self.mode == "named" else self.mode

    def to_anthropic(self) -> dict[str, Any]:
        """As ``tool_choice`` of the Messages API."""
        if self.mode == "named":
            return {"type": "tool", "name": self.name}
        return {"type": "any" if self.mode == "required" else self.mode}

    def to_prompt(self) -> str:
        """As a sentence, for a prompt: raw text can force nothing."""
        if self.mode == "named":
            return f"Your next answer must call the tool {self.name}."
        return "Your next answer must call a tool." if self.mode == "required" else ""


AUTO: Final = Choice()


def chat_request(
    ledger: Ledger,
    *,
    model: str,
    tools: Iterable[Any] = (),
    choice: Choice = AUTO,
    style: ChatStyle = DEFAULT_STYLE,
    **options: Any,
) -> dict[str, Any]:
    """The body for ``/chat/completions``, streamed. ``options`` are further fields, and win.

    Raises ``UsageError`` for calls without results and for a choice that cannot be, ``ToolDefinitionError`` for tools.
    """
    known = as_tools(tools)
    body: dict[str, Any] = {"model": model, "messages": to_messages(ledger, style), "stream": True}
    choice = choice.checked(known)
    if known:
        body["tools"] = [tool.to_openai() for tool in known.values()]
        body["tool_choice"] = choice.to_openai()
    return {**body, **options}


def anthropic_request(
    ledger: Ledger,
    *,
    model: str,
    max_tokens: int,
    tools: Iterable[Any] = (),
    choice: Choice = AUTO,
    unsigned_thinking: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """The body for ``/v1/messages``, streamed. As ``chat_request``; that wire wants ``max_tokens``."""
    known = as_tools(tools)
    history = to_anthropic(ledger, unsigned_thinking=unsigned_thinking)
    body: dict[str, Any] = {"model": model, "max_tokens": max_tokens, **history, "stream": True}
    choice = choice.checked(known)
    if known:
        body["tools"] = [tool.to_anthropic() for tool in known.values()]
        body["tool_choice"] = choice.to_anthropic()
    return {**body, **options}


def prompt_request(
    ledger: Ledger, *, model: str, tools: Iterable[Any] = (), choice: Choice = AUTO, **options: Any
) -> dict[str, Any]:
    """The body for ``/completions`` with the prompt of a MiniMax M2 model, streamed. As ``chat_request``; a forced
    choice is a sentence in the system text, and with ``none`` no tools are shown."""
    known = as_tools(tools)
    choice = choice.checked(known)
    shown = [] if choice.mode == "none" else list(known.values())
    return {"model": model, "prompt": to_prompt(ledger, shown, more=choice.to_prompt()), "stream": True, **options}
