"""The ledger as Anthropic-style messages, and back.

What that wire wants otherwise: the system text stands beside the messages; roles alternate, beginning with the user;
results are blocks of the user turn behind the calls, all in one, before anything else in it; ids have a narrow alphabet
and are unique in the whole conversation; no text block is blank. Thinking goes back in front, as it came, with its
signature if it had one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from streamparse.agent.adapters.openai import check_sendable, system_messages
from streamparse.agent.ids import distinct, legal
from streamparse.agent.ledger import Content, Ledger
from streamparse.agent.legal import plain, text_of, text_of_parts
from streamparse.agent.mending import NO_ANSWER
from streamparse.agent.states import CallState
from streamparse.agent.turns import Proposal, ToolResult, Turn
from streamparse.errors import UsageError
from streamparse.events import ToolCall, json_text

THINKING: Final = ("thinking", "redacted_thinking")

BEGIN: Final = "[the conversation goes on]"
"""The first user message of a history that begins with an answer."""


def to_anthropic(ledger: Ledger, *, unsigned_thinking: bool = True) -> dict[str, Any]:
    """``{"system": …, "messages": […]}``, without ``system`` if there is none.

    ``unsigned_thinking`` sends reasoning back that came without a signature; Anthropic's own servers refuse it, those
    of others want it. Raises ``UsageError`` while calls are open, or an answer runs.
    """
    check_sendable(ledger)
    system = "".join(message["content"] for message in system_messages(ledger, merge=True))
    ids = iter(distinct(legal(call.id) for call in ledger.calls))
    turns: list[dict[str, Any]] = []
    for entry in ledger.entries:
        if isinstance(entry, Turn):
            _add(turns, "assistant", _blocks_of_turn(entry, ids, unsigned_thinking))
            results = zip(_ids_of(turns, entry), entry.calls, strict=True)
            _add(turns, "user", [_result(id_, call) for id_, call in results])
        elif entry.role == "user":
            _add(turns, "user", [_to_block(block) for block in _parts(entry.content)])
    if turns and turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [_text(BEGIN)]})
    return {"system": system, "messages": turns} if system else {"messages": turns}


def _add(turns: list[dict[str, Any]], role: str, blocks: list[dict[str, Any]]) -> None:
    """Blocks of this role: a message of their own, or more of the last one."""
    if not blocks:
        return
    if turns and turns[-1]["role"] == role:
        turns[-1]["content"] += blocks
    else:
        turns.append({"role": role, "content": blocks})


def _blocks_of_turn(turn: Turn, ids: Iterator[str], unsigned: bool) -> list[dict[str, Any]]:
    blocks = [dict(plain(detail)) for detail in turn.details if detail.get("type") in THINKING]
    if not blocks and turn.reasoning and unsigned:
        blocks = [{"type": "thinking", "thinking": plain(turn.reasoning)}]
    if turn.text.strip():
        blocks.append(_text(turn.text))
    elif not turn.calls and (turn.reasoning or turn.details):
        blocks.append(_text(NO_ANSWER))
    uses = ({"type": "tool_use", "id": next(ids), "name": call.name, "input": call.wire_object} for call in turn.calls)
    return [*blocks, *uses]


def _ids_of(turns: list[dict[str, Any]], turn: Turn) -> list[str]:
    """The ids that were given to the calls of the turn that was written last."""
    if not turn.calls:
        return []
    written = [block["id"] for block in turns[-1]["content"] if block["type"] == "tool_use"]
    return written[-len(turn.calls) :]


def _result(id_: str, call: Proposal) -> dict[str, Any]:
    assert call.result is not None  # check_sendable
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": id_, "content": plain(call.result.text)}
    return {**block, "is_error": True} if call.result.is_error else block


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": plain(text)}


def _parts(content: Content) -> list[Any]:
    """Content as parts, without text that is blank: it would be refused."""
    parts = [_text(content)] if isinstance(content, str) else content
    return [part for part in parts if not (part.get("type") == "text" and not text_of(part.get("text")).strip())]


def _to_block(part: Mapping[str, Any]) -> dict[str, Any]:
    """An OpenAI-style content part as a block. What is no image and no text is taken for a block already."""
    image = part.get("image_url")
    if part.get("type") != "image_url" or not isinstance(image, Mapping):
        return dict(plain(part))
    head, comma, data = str(image.get("url", "")).partition(";base64,")
    if comma and head.startswith("data:"):
        return {"type": "image", "source": {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}}
    return {"type": "image", "source": {"type": "url", "url": head}}


# The way in


def from_anthropic(messages: Iterable[Mapping[str, Any]], system: Any = None) -> Ledger:
    """A ledger of Anthropic-style messages; ``system`` is text or text blocks. Calls at the very end may be open.

    Raises ``UsageError``, with its place, for a message that is none, and for results that do not follow their calls.
    """
    ledger = Ledger(text_of_parts(system) if system else None)
    for position, message in enumerate(messages):
        place = f"messages[{position}]"
        role, blocks = _read(message, place)
        try:
            if role == "assistant":
                ledger.add_turn(_turn(blocks))
            else:
                _take_user(ledger, blocks)
        except UsageError as error:
            raise UsageError(f"{place}: {error}") from error
    return ledger


def _read(message: Any, place: str) -> tuple[str, list[Mapping[str, Any]]]:
    role = message.get("role") if isinstance(message, Mapping) else None
    if role not in ("user", "assistant"):
        raise UsageError(f"{place}: expected an object with the role user or assistant")
    content = message.get("content")
    blocks = [_text(content)] if isinstance(content, str) else content
    if not isinstance(blocks, list) or not all(isinstance(block, Mapping) and "type" in block for block in blocks):
        raise UsageError(f"{place}: expected content that is text or a list of blocks with a type")
    return role, blocks


def _turn(blocks: list[Mapping[str, Any]]) -> Turn:
    thinking = [block for block in blocks if block["type"] in THINKING]
    text = "".join(text_of(block.get("text")) for block in blocks if block["type"] == "text")
    return Turn(
        text="" if thinking and text == NO_ANSWER else text,
        reasoning="".join(text_of(block.get("thinking")) for block in thinking),
        details=tuple(block for block in thinking if block.get("signature") or block["type"] == "redacted_thinking"),
        calls=tuple(_call(block) for block in blocks if block["type"] == "tool_use"),
    )


def _call(block: Mapping[str, Any]) -> Proposal:
    id_, name, value = block.get("id"), block.get("name"), block.get("input")
    if not isinstance(id_, str) or not id_ or not isinstance(name, str) or not isinstance(value, Mapping):
        raise UsageError("a tool_use block needs an id, a name, and an object as input")
    return Proposal(id_, ToolCall(id_, name, dict(value), json_text(plain(value))))


def _take_user(ledger: Ledger, blocks: list[Mapping[str, Any]]) -> None:
    """The results first, and then what the user says."""
    said = [block for block in blocks if block["type"] != "tool_result"]
    for block in blocks:
        if block["type"] == "tool_result":
            call = ledger.start(text_of(block.get("tool_use_id")))
            state = CallState.ERROR if block.get("is_error") else CallState.OK
            ledger.record(ToolResult.of(call, state, text_of_parts(block.get("content"))), call)
    if len(said) == 1 and said[0]["type"] == "text":
        ledger.add_user(text_of(said[0].get("text")))
    elif said:
        ledger.add_user(said)
