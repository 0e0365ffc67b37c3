"""Decode the tool calls of a language model while they stream. The README shows how, docs/ says why.

The decoders and their events are here at once. ``stream``, ``astream`` and the tools load what they stand on
(httpx-sse, jsonschema-rs) when they are first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from streamparse.decoding.arguments import JsonDecoder
from streamparse.decoding.chat import ChatDecoder
from streamparse.decoding.encode import (
    CallLike,
    ChunkEncoder,
    MessageEncoder,
    render_answer,
    render_calls,
    to_chat_completion,
    to_message,
)
from streamparse.decoding.messages import MessagesDecoder
from streamparse.decoding.native import NativeDecoder, decode
from streamparse.decoding.values import CompiledTools, compile_tools
from streamparse.errors import (
    ClosedError,
    ConnectError,
    EventTooLargeError,
    GrammarError,
    MissingExtraError,
    ResponseError,
    StreamInterruptedError,
    StreamparseError,
    StreamTimeoutError,
    ToolDefinitionError,
    TransportError,
    UnknownDialectError,
    UsageError,
)
from streamparse.events import (
    ArgumentDelta,
    ArgumentRejected,
    ArgumentValue,
    Deviated,
    Deviation,
    DeviationCode,
    Ended,
    ErrorCode,
    ErrorDetail,
    Event,
    Failed,
    Issue,
    IssueCode,
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

if TYPE_CHECKING:
    from streamparse.tools.definition import Tool
    from streamparse.tools.issues import Verdict
    from streamparse.tools.validation import Judge, check
    from streamparse.transport.http import AnswerStream, AsyncAnswerStream, astream, stream

__all__ = [
    "AnswerStream",
    "ArgumentDelta",
    "ArgumentRejected",
    "ArgumentValue",
    "AsyncAnswerStream",
    "CallLike",
    "ChatDecoder",
    "ChunkEncoder",
    "ClosedError",
    "CompiledTools",
    "ConnectError",
    "Deviated",
    "Deviation",
    "DeviationCode",
    "Ended",
    "ErrorCode",
    "ErrorDetail",
    "Event",
    "EventTooLargeError",
    "Failed",
    "GrammarError",
    "Issue",
    "IssueCode",
    "JsonDecoder",
    "Judge",
    "Level",
    "Limits",
    "MessageEncoder",
    "MessagesDecoder",
    "MissingExtraError",
    "NativeDecoder",
    "PartialToolCall",
    "Path",
    "Reasoning",
    "ResponseError",
    "StreamInterruptedError",
    "StreamTimeoutError",
    "StreamparseError",
    "Text",
    "Tool",
    "ToolCall",
    "ToolCallFailed",
    "ToolCallFinished",
    "ToolCallStarted",
    "ToolDefinitionError",
    "TransportError",
    "UnknownDialectError",
    "UsageError",
    "Verdict",
    "astream",
    "check",
    "compile_tools",
    "decode",
    "dialects",
    "render_answer",
    "render_calls",
    "stream",
    "to_chat_completion",
    "to_message",
]


def dialects() -> list[str]:
    """The names of the dialects that come with the library, sorted."""
    from streamparse.decoding.grammar import dialects as names  # lark is loaded only when a dialect is asked for

    return names()


_LATER = {
    "AnswerStream": "streamparse.transport.http",
    "AsyncAnswerStream": "streamparse.transport.http",
    "Judge": "streamparse.tools.validation",
    "Tool": "streamparse.tools.definition",
    "Verdict": "streamparse.tools.issues",
    "astream": "streamparse.transport.http",
    "check": "streamparse.tools.validation",
    "stream": "streamparse.transport.http",
}
"""What is loaded when it is asked for, and from where."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
