"""The ledger as OpenAI-style messages, and back.

Servers that call themselves compatible differ in what they refuse. The differences are a ``ChatStyle``, which is data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from streamparse.agent.ids import distinct
from streamparse.agent.ledger import Entry, Ledger, Message
from streamparse.agent.legal import plain, read_object, text_of, text_of_parts
from streamparse.agent.mending import NO_ANSWER
from streamparse.agent.preflight import preflight
from streamparse.agent.problems import ProblemCode
from streamparse.agent.shape import REASONING, SYSTEM, calls_of
from streamparse.agent.states import CallState
from streamparse.agent.turns import Proposal, ToolResult, Turn
from streamparse.errors import UsageError
from streamparse.events import ToolCall


class ChatStyle(msgspec.Struct, frozen=True, kw_only=True):
    """What one OpenAI-compatible server wants (B6). The defaults suit MiniMax, vLLM, DeepSeek and OpenAI itself."""

    content_beside_calls: Literal[""] | None = None
    """The content of a turn that has calls and no text. Some refuse ``""`` (text blocks must not be empty), some
    ``null``."""

    reasoning: Literal["reasoning_content", "reasoning", "reasoning_details"] | None = "reasoning_content"
    """The field in which reasoning goes back (B3). None leaves it out."""

    all_reasoning: bool = True
    """False leaves it out in turns before the last user message, where templates would drop it anyway."""

    merge_system: bool = False
    """All system messages, and the summary, in one: for templates that read only the first."""

    distinct_ids: bool = True
    """Mark an id that a call of the same turn has already: servers refuse the history otherwise (see ``ids``). False
    sends it as it came (C4)."""


DEFAULT_STYLE: Final = ChatStyle()


def to_messages(ledger: Ledger, style: ChatStyle = DEFAULT_STYLE) -> list[dict[str, Any]]:
    """The history as ``messages``. ``preflight`` has nothing to say about them.

    Raises ``UsageError`` while calls are open, or an answer runs: there is nothing yet that could be sent.
    """
    check_sendable(ledger)
    return system_messages(ledger, merge=style.merge_system) + messages_of(ledger.entries, style)


def messages_of(entries: Sequence[Entry], style: ChatStyle = DEFAULT_STYLE) -> list[dict[str, Any]]:
    """Turns with their results, and what the user said, as messages."""
    messages: list[dict[str, Any]] = []
    current = last_user(entries)
    for place, entry in enumerate(entries):
        if isinstance(entry, Turn):
            messages += _of_turn(entry, style, with_reasoning=style.all_reasoning or place > current)
        elif entry.role == "user":
            messages.append({"role": "user", "content": plain(entry.content)})
    return messages


def check_sendable(ledger: Ledger) -> None:
    """Raises ``UsageError`` if something is missing that has to come first."""
    if ledger.is_answering:
        raise UsageError("an answer is not over: close its decoder, and take those events, before the next request")
    if waiting := ledger.open_calls:
        ids = ", ".join(repr(call.id) for call in waiting)
        raise UsageError(f"calls wait for their results: {ids}; record them, or close_open, before the next request")


def system_messages(ledger: Ledger, *, merge: bool) -> list[dict[str, Any]]:
    """The system messages, with the summary of what was dropped behind them."""
    texts = [plain(entry.content) for entry in ledger.entries if isinstance(entry, Message) and entry.role == "system"]
    if ledger.summary:
        texts.append(plain(ledger.summary))
    if merge and texts:
        texts = ["\n\n".join(texts)]
    return [{"role": "system", "content": text} for text in texts]


def last_user(entries: Sequence[Entry]) -> int:
    """The place of the last user message; -1 if there is none. Reasoning behind it belongs to the work in hand."""
    places = (place for place, entry in enumerate(entries) if isinstance(entry, Message) and entry.role == "user")
    return max(places, default=-1)


def _of_turn(turn: Turn, style: ChatStyle, *, with_reasoning: bool) -> list[dict[str, Any]]:
    """The assistant message and its results. A turn in which nothing came is left out: servers refuse it."""
    if turn.is_empty:
        return []
    content = plain(turn.text) or (style.content_beside_calls if turn.calls else NO_ANSWER)
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if with_reasoning:
        message |= _reasoning(turn, style)
    if not turn.calls:
        return [message]
    ids = [plain(call.id) for call in turn.calls]
    ids = distinct(ids) if style.distinct_ids else ids
    message["tool_calls"] = [_call(id_, call) for id_, call in zip(ids, turn.calls, strict=True)]
    return [message, *(_result(id_, call) for id_, call in zip(ids, turn.calls, strict=True))]


def _call(id_: str, call: Proposal) -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": call.name, "arguments": call.wire_arguments}}


def _result(id_: str, call: Proposal) -> dict[str, Any]:
    assert call.result is not None  # check_sendable
    return {"role": "tool", "tool_call_id": id_, "content": plain(call.result.text)}


def _reasoning(turn: Turn, style: ChatStyle) -> dict[str, Any]:
    if style.reasoning is None or not (turn.reasoning or turn.details):
        return {}
    if style.reasoning == "reasoning_details":
        own = [plain(detail) for detail in turn.details if str(detail.get("type", "")).startswith("reasoning")]
        made = [{"type": "reasoning.text", "text": plain(turn.reasoning)}] if turn.reasoning else []
        return {"reasoning_details": own or made} if own or made else {}
    return {style.reasoning: plain(turn.reasoning)} if turn.reasoning else {}


# The way in


def from_messages(messages: Iterable[Any]) -> Ledger:
    """A ledger of OpenAI-style messages. Calls at the very end that have no results are open in it.

    Raises ``UsageError`` with the first problem of ``preflight``; ``heal`` the messages before.
    """
    messages = list(messages)
    pending = _pending(messages)
    for problem in preflight(messages):
        if problem.code is not ProblemCode.MISSING_RESULT or problem.position != pending:
            raise UsageError(f"{problem.message}. heal(messages) mends it")
    ledger = Ledger()
    for message in messages:
        role = message["role"]
        if role in SYSTEM:
            ledger.add_system(text_of_parts(message["content"]))
        elif role == "user":
            ledger.add_user(message["content"])
        elif role == "assistant":
            ledger.add_turn(_turn(message))
        else:
            _record(ledger, message)
    return ledger


def _pending(messages: list[Any]) -> int:
    """The place of the turn with which the history ends, but for results; -1 if it ends otherwise."""
    place = len(messages) - 1
    while place >= 0 and isinstance(messages[place], dict) and messages[place].get("role") == "tool":
        place -= 1
    return place


def _turn(message: Mapping[str, Any]) -> Turn:
    text = text_of_parts(message.get("content")) or text_of(message.get("refusal"))
    calls = []
    for call in calls_of(message):
        arguments = call["function"]["arguments"]
        value = read_object(arguments, repair=0) or {}
        calls.append(Proposal(call["id"], ToolCall(call["id"], call["function"]["name"], value, arguments)))
    details = message.get("reasoning_details")
    reasoning = _reasoning_text(message)
    return Turn(
        text="" if reasoning and text == NO_ANSWER else text,
        reasoning=reasoning,
        details=tuple(detail for detail in details if isinstance(detail, Mapping)) if isinstance(details, list) else (),
        calls=tuple(calls),
    )


def _reasoning_text(message: Mapping[str, Any]) -> str:
    for field in REASONING:
        value = message.get(field)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list):
            parts = (part.get("text") or part.get("summary") for part in value if isinstance(part, Mapping))
            return "".join(text for text in parts if isinstance(text, str))
    return ""


def _record(ledger: Ledger, message: Mapping[str, Any]) -> None:
    call = ledger.start(message["tool_call_id"])
    ledger.record(ToolResult.of(call, CallState.OK, message["content"]), call)
