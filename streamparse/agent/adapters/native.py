"""The ledger as the prompt of a MiniMax M2 model: raw text, as its chat template renders it.

::

    ]~!b[]~b]system          the system text, and the tools
    …[e~[
    ]~b]user
    …[e~[
    ]~b]ai                   reasoning only behind the last user message; calls in the model's own format
    <think>
    …
    </think>

    …<minimax:tool_call>…[e~[
    ]~b]tool                 results in call order, and without ids: the order is the only link (B4)
    <response>…</response>
    <response>…</response>[e~[
    ]~b]ai                   here the model goes on
    <think>

The tags of an answer come from the grammar (``render_answer``). Nothing is escaped, because the model has never seen
it escaped; a server that reads special tokens in a text reads those of a tool's result, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from streamparse.agent.adapters.openai import check_sendable, last_user, system_messages
from streamparse.agent.ledger import Content, Ledger
from streamparse.agent.legal import is_text_part, plain, text_of
from streamparse.agent.turns import Turn
from streamparse.decoding.encode import render_answer, render_calls
from streamparse.events import json_text
from streamparse.tools.definition import as_tools

_START: Final = "]~!b["
_ROLE: Final = "]~b]"
_END: Final = "[e~[\n"
_DIALECT: Final = "minimax_m2"

INTRODUCTION: Final = "# Tools\nThese tools can be called. Each line is one, with the JSON Schema of its parameters:"


def to_prompt(ledger: Ledger, tools: Iterable[Any] = (), *, introduction: str = INTRODUCTION, more: str = "") -> str:
    """The prompt, open at its end: the model writes on inside its reasoning (``start="reasoning"``).

    ``tools`` in any form. ``introduction`` stands before them, ``more`` at the end of the system text. Raises
    ``UsageError`` while calls are open, or an answer runs.
    """
    check_sendable(ledger)
    parts = [message["content"] for message in system_messages(ledger, merge=True)]
    parts += [each for each in (render_tools(tools, introduction), more) if each]
    rendered = [_START, _block("system", "\n\n".join(parts))]
    entries = ledger.entries
    current = last_user(entries)
    for place, entry in enumerate(entries):
        if isinstance(entry, Turn):
            rendered.append(_turn(entry, with_reasoning=place > current))
        elif entry.role == "user":
            rendered.append(_block("user", _text(entry.content)))
    return "".join([*rendered, f"{_ROLE}ai\n<think>\n"])


def render_tools(tools: Iterable[Any], introduction: str = INTRODUCTION) -> str:
    """The tools as the prompt shows them, keys in their order, and how a call is written; ``""`` for none."""
    known = as_tools(tools).values()
    if not known:
        return ""
    lines = [
        f"<tool>{json_text({'name': tool.name, 'description': tool.description, 'parameters': tool.parameters})}</tool>"
        for tool in known
    ]
    example = render_calls([("tool-name", {"parameter": "value"})], _DIALECT, check=False)
    listed = "\n".join(["<tools>", *lines, "</tools>"])
    return f"{introduction}\n\n{listed}\n\nA call is written like this:\n{example}"


def _turn(turn: Turn, *, with_reasoning: bool) -> str:
    if turn.is_empty:
        return ""
    reasoning = plain(turn.reasoning).strip("\n") if with_reasoning else ""
    answer = render_answer(
        reasoning=f"\n{reasoning}\n" if reasoning else None,
        text=plain(turn.text),
        calls=[(call.name, call.wire_object) for call in turn.calls],
        dialect=_DIALECT,
        check=False,
    )
    responses = [f"<response>{plain(call.result.text)}</response>" for call in turn.calls if call.result is not None]
    return _block("ai", answer) + (_block("tool", "\n".join(responses)) if responses else "")


def _block(role: str, text: str) -> str:
    return f"{_ROLE}{role}\n{text}{_END}"


def _text(content: Content) -> str:
    """The text of a user message. The model reads text only: of other parts their JSON is left."""
    if isinstance(content, str):
        return str(plain(content))
    return "\n".join(plain(part["text"]) if is_text_part(part) else text_of(part) for part in content)
