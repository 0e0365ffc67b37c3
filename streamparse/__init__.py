"""Decode the tool calls of a language model while they stream."""

from __future__ import annotations

from streamparse.decoding.arguments import JsonDecoder
from streamparse.decoding.native import NativeDecoder, decode
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
    Reasoning,
    Text,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
)
from streamparse.limits import Limits
