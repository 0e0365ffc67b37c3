"""Anthropic-style events as they really come -> one shape (rules A, C7, C8).

``read`` makes an ``Event`` of whatever a caller has, a whole message included; how is in ``lenient``. Whatever has
nothing known in it is an empty ``Event``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from streamparse.decoding.lenient import (
    BaseResp,
    base_resp_of,
    error_of,
    failure,
    get,
    get_int,
    get_list,
    get_str,
    get_text,
    reader,
)


class Block(msgspec.Struct, gc=False):
    """A content block: as it starts, or a whole one of a whole message."""

    type: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None


class Delta(msgspec.Struct, gc=False):
    """What an event adds to a block, or (``stop_reason``) to the message."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: Any = None
    stop_reason: str | None = None


class Message(msgspec.Struct, gc=False):
    """A message: empty at its start, whole in ``message_stop`` of an SDK's helper."""

    content: str | list[Block] | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: Any = None


class Event(msgspec.Struct, gc=False):
    """One event, or a whole message (``content`` to ``stop_reason``). Only an error has the last two fields, as in
    ``wire.Chunk``."""

    type: str | None = None
    index: int | None = None
    delta: Delta | None = None
    content_block: Block | None = None
    message: Message | None = None
    usage: Any = None
    error: Any = None
    base_resp: BaseResp | None = None
    content: str | list[Block] | None = None
    model: str | None = None
    stop_reason: str | None = None
    msg: None = None
    detail: None = None

    def whole(self) -> Message:
        """The message that a whole message is."""
        return Message(self.content, self.model, self.stop_reason, self.usage)


# Leniently ------------------------------------------------------------------------------------------------------------


def _event(given: Any) -> Event:
    return Event(
        type=get_str(given, "type"),
        index=get_int(given, "index"),
        delta=_delta(get(given, "delta")),
        content_block=_block(get(given, "content_block")),
        message=_message(get(given, "message")),
        usage=get(given, "usage"),
        error=error_of(given) or (given if get(given, "type") == "error" else None),
        base_resp=base_resp_of(get(given, "base_resp")),
        content=_content(given),
        model=get_str(given, "model"),
        stop_reason=get_str(given, "stop_reason"),
    )


def _delta(given: Any) -> Delta | None:
    if given is None:
        return None
    return Delta(
        type=get_str(given, "type"),
        text=get_text(given, "text"),
        thinking=get_text(given, "thinking"),
        signature=get_str(given, "signature"),
        partial_json=get(given, "partial_json"),
        stop_reason=get_str(given, "stop_reason"),
    )


def _block(given: Any) -> Block | None:
    if given is None:
        return None
    return Block(
        type=get_str(given, "type"),
        id=get_str(given, "id"),
        name=get_str(given, "name"),
        input=get(given, "input"),
        text=get_text(given, "text"),
        thinking=get_text(given, "thinking"),
        signature=get_str(given, "signature"),
        data=get_str(given, "data"),
    )


def _message(given: Any) -> Message | None:
    if given is None:
        return None
    model, stop_reason = get_str(given, "model"), get_str(given, "stop_reason")
    return Message(_content(given), model, stop_reason, get(given, "usage"))


def _content(given: Any) -> str | list[Block] | None:
    blocks = get_list(given, "content")
    if blocks is None:
        return get_text(given, "content")
    return [block for block in map(_block, blocks) if block is not None]


read = reader(Event, _event)
"""The event in whatever a caller has. Raises ``UnreadableError`` for text that is no JSON, and nothing else."""


def blocks_of(message: Message) -> list[Block]:
    """The blocks of a whole message, whose content may be a text."""
    content = message.content
    return [Block("text", text=content)] if isinstance(content, str) else content or []


def failure_of(event: Event) -> str:
    """C8: status and message of an error in the event, in one line; empty if there is none."""
    nothing = {"message": ""} if event.type == "error" else None
    return failure((event.error, nothing), event.base_resp)
