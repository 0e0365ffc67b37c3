"""Decode the tool calls of a language model while they stream. The README shows how, docs/ says why."""

from __future__ import annotations

from streamparse.decoding.arguments import JsonDecoder
from streamparse.decoding.chat import ChatDecoder
from streamparse.decoding.encode import CallLike, ChunkEncoder, render_answer, render_calls, to_chat_completion
from streamparse.decoding.messages import MessagesDecoder
from streamparse.decoding.native import NativeDecoder, decode
from streamparse.decoding.values import CompiledTools, compile_tools
from streamparse.errors import (
    ClosedError,
    GrammarError,
    MissingExtraError,
    StreamparseError,
    ToolDefinitionError,
    UnknownDialectError,
    UsageError,
)
from streamparse.events import (
    ArgumentDelta,
    ArgumentValue,
    Deviated,
    Deviation,
    DeviationCode,
    Ended,
    ErrorCode,
    ErrorDetail,
    Event,
    Failed,
    Level,
    PartialToolCall,
    Path,
    Reasoning,
    Text,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
)
from streamparse.limits import Limits

__all__ = [
    "ArgumentDelta",
    "ArgumentValue",
    "CallLike",
    "ChatDecoder",
    "ChunkEncoder",
    "ClosedError",
    "CompiledTools",
    "Deviated",
    "Deviation",
    "DeviationCode",
    "Ended",
    "ErrorCode",
    "ErrorDetail",
    "Event",
    "Failed",
    "GrammarError",
    "JsonDecoder",
    "Level",
    "Limits",
    "MessagesDecoder",
    "MissingExtraError",
    "NativeDecoder",
    "PartialToolCall",
    "Path",
    "Reasoning",
    "StreamparseError",
    "Text",
    "ToolCall",
    "ToolCallFailed",
    "ToolCallFinished",
    "ToolCallStarted",
    "ToolDefinitionError",
    "UnknownDialectError",
    "UsageError",
    "compile_tools",
    "decode",
    "dialects",
    "render_answer",
    "render_calls",
    "to_chat_completion",
]


def dialects() -> list[str]:
    """The names of the dialects that come with the library, sorted."""
    from streamparse.decoding.grammar import dialects as names  # lark is loaded only when a dialect is asked for

    return names()
