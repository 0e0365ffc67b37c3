"""The way back: calls -> the text of a dialect (``render``), events -> OpenAI-style chunks (``chunks``) or
Anthropic-style events (``message_events``)."""

from __future__ import annotations

from streamparse.decoding.chunks import ChunkEncoder, to_chat_completion
from streamparse.decoding.message_events import MessageEncoder, to_message
from streamparse.decoding.render import CallLike, render_answer, render_calls

__all__ = [
    "CallLike",
    "ChunkEncoder",
    "MessageEncoder",
    "render_answer",
    "render_calls",
    "to_chat_completion",
    "to_message",
]
