"""Which wire is this, and which decoder reads it?

A *wire* is what the chunks of an answer look like:

===============  ==========================================  ===================
wire             a chunk is                                  decoder
===============  ==========================================  ===================
``chat``         an OpenAI-style ``chat.completion.chunk``   ``ChatDecoder``
``completions``  the same of ``/v1/completions``: raw text   ``ChatDecoder``
``messages``     an Anthropic-style event                    ``MessagesDecoder``
``text``         a piece of the model's raw output           ``NativeDecoder``
===============  ==========================================  ===================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

import msgspec

from streamparse.decoding.chat import ChatDecoder
from streamparse.decoding.messages import MessagesDecoder
from streamparse.decoding.native import NativeDecoder
from streamparse.errors import UsageError
from streamparse.events import Event, PartialToolCall, ToolCall
from streamparse.limits import DEFAULT_LIMITS, Limits

RAW_DIALECT = "minimax_m2"
"""The dialect of raw output that does not say its model."""


class Wire(StrEnum):
    """What the chunks of an answer look like."""

    CHAT = "chat"
    COMPLETIONS = "completions"
    MESSAGES = "messages"
    TEXT = "text"


class Decoder(Protocol):
    """What all decoders have in common."""

    def feed(self, chunk: Any, /) -> list[Event]:
        """The events that this chunk makes certain."""

    def close(self, finish_reason: str | None = None) -> list[Event]:
        """The end of the answer."""

    def partial(self, index: int) -> PartialToolCall:
        """A snapshot of a call."""

    @property
    def calls(self) -> list[ToolCall]:
        """The sealed calls so far."""

    @property
    def done(self) -> bool:
        """Whether the stream has said that nothing more comes: all that may follow is usage."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a decoder, as ``ChatDecoder`` describes them, for any wire.

    ``dialect``: ``"auto"`` is the dialect of the model where chunks name one, and ``minimax_m2`` where the wire is raw
    output (``completions``, ``text``), which says nothing.
    """

    tools: Iterable[Any] | None = None
    dialect: str | None = "auto"
    start: Literal["text", "reasoning"] = "text"
    repair: int = 1
    early: bool = False
    id_factory: Callable[[int], str] | None = None
    limits: Limits = DEFAULT_LIMITS

    def decoder(self, wire: Wire) -> Decoder:
        """A new decoder of this wire. Raises as the decoder does."""
        words: dict[str, Any] = {name: getattr(self, name) for name in ("tools", "start", "repair", "early", "limits")}
        if self.id_factory is not None:
            words["id_factory"] = self.id_factory
        raw = RAW_DIALECT if self.dialect == "auto" else self.dialect
        if wire is Wire.TEXT:
            if raw is None:
                raise UsageError("dialect=None is not an option for raw text; name one of streamparse.dialects()")
            return NativeDecoder(raw, **words)
        if wire is Wire.MESSAGES:
            return MessagesDecoder(dialect=self.dialect, **words)
        return ChatDecoder(dialect=raw if wire is Wire.COMPLETIONS else self.dialect, **words)


def as_wire(name: str) -> Wire:
    """The wire of this name. Raises ``UsageError`` with the names there are."""
    try:
        return Wire(name)
    except ValueError:
        raise UsageError(f"wire={name!r} is none; use one of {', '.join(map(repr, map(str, Wire)))}") from None


def wire_of_url(url: str) -> Wire:
    """The wire of an endpoint, by its path: ``…/messages``, ``…/completions``; every other is ``chat``."""
    path = urlsplit(url).path.rstrip("/")
    if path.endswith("/messages"):
        return Wire.MESSAGES
    return Wire.COMPLETIONS if path.endswith("/completions") and not path.endswith("/chat/completions") else Wire.CHAT


class _Glance(msgspec.Struct):
    """As much of a chunk as tells what it is."""

    choices: list[dict[str, msgspec.Raw]] | None = None
    object: str | None = None
    type: str | None = None


_glance = msgspec.json.Decoder(_Glance).decode
_EVENTS = ("message_", "content_block_", "ping", "error")


def wire_of_chunk(text: str | bytes) -> Wire | None:
    """The wire of a chunk, by what it holds; None for JSON that is a chunk of none."""
    try:
        chunk = _glance(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    kind = chunk.object or ""
    if kind == "text_completion" or any("text" in choice for choice in chunk.choices or ()):
        return Wire.COMPLETIONS
    if chunk.choices is not None or kind.startswith("chat.completion"):
        return Wire.CHAT
    if chunk.type == "message" or (chunk.type or "").startswith(_EVENTS):
        return Wire.MESSAGES
    return None
