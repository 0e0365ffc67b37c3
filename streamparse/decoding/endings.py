"""E1: what it means that the stream ended in a state."""

from __future__ import annotations

from streamparse.decoding.table import State
from streamparse.events import ErrorCode

_BY_OPAQUE = {
    "REASONING": ErrorCode.UNCLOSED_REASONING,
    "NAME": ErrorCode.UNCLOSED_HEADER,
    "KEY": ErrorCode.UNCLOSED_HEADER,
    "NAME_ATTRIBUTES": ErrorCode.UNCLOSED_HEADER,
    "KEY_ATTRIBUTES": ErrorCode.UNCLOSED_HEADER,
    "VALUE": ErrorCode.UNCLOSED_PARAMETER,
    "PAYLOAD": ErrorCode.UNCLOSED_CALL,
}


def ending(state: State) -> ErrorCode | None:
    """The error that the end of the stream is in this state; None where an answer may end."""
    if state.may_end or state.opaque in ("TEXT", "ROLE"):
        return None
    if state.opaque:
        return _BY_OPAQUE[state.opaque]
    return ErrorCode.UNCLOSED_CALL if state.open[-1:] == ("call",) else ErrorCode.UNCLOSED_ENVELOPE
