"""What the model is told of a call that ended without running. Bounded, and the true cause (A6, B15).

A model that is told "missing argument" about a call that was cut writes the same oversized call again.
"""

from __future__ import annotations

from typing import Final

from streamparse.events import ErrorCode, ErrorDetail, PartialToolCall

MAX_REASON: Final = 600
"""Characters, whatever the arguments were (A6)."""

_EXCERPT: Final = 120

_CUT: Final = frozenset(
    {
        ErrorCode.UNCLOSED_TAG,
        ErrorCode.UNCLOSED_ENVELOPE,
        ErrorCode.UNCLOSED_CALL,
        ErrorCode.UNCLOSED_PARAMETER,
        ErrorCode.UNCLOSED_HEADER,
        ErrorCode.UNTERMINATED_JSON,
    }
)
_LENGTH: Final = frozenset({"length", "max_tokens"})

_CAUSES: Final = {
    ErrorCode.CALL_IN_REASONING: "It stood inside the reasoning. Write a call after the reasoning if it is meant.",
    ErrorCode.MISSING_NAME: "It names no tool. Send it again with the tool's name.",
    ErrorCode.STREAM_INTERRUPTED: "The stream broke before the call was complete. Send it again, whole.",
    ErrorCode.PROVIDER_ERROR: "The server reported an error before the call was complete. Send it again, whole.",
    ErrorCode.AMBIGUOUS_DELIMITER: "A closing tag is missing, so it is not clear where a value ends. Send it again.",
    ErrorCode.LIMIT_EXCEEDED: "It is too large. Send something smaller, or in several calls.",
}
NOT_EXECUTED: Final = "Nothing was executed."


def why_not_executed(call: PartialToolCall, error: ErrorDetail, finish_reason: str | None) -> str:
    """The result of a call that failed while it was read."""
    if error.code in _CUT and finish_reason in _LENGTH:
        cause = (
            "The call was truncated: the answer reached the output limit before the call was complete. "
            "Send a smaller call, or split the work into several."
        )
    elif error.code in _CUT:
        cause = "The answer ended before the call was complete. Send it again, whole."
    elif error.code in _CAUSES:
        cause = _CAUSES[error.code]
    else:
        cause = f"The arguments could not be parsed: {_clipped(error.message, 200)}. Send correct JSON."
    began = f" It began: {_clipped(call.raw, _EXCERPT)}" if call.raw.strip() else ""
    return f"{NOT_EXECUTED} {cause}{began}"[:MAX_REASON]


def why_closed(reason: str, *, running: bool, harmless: bool) -> str:
    """The result of a call that was still open when the run ended, for ``reason`` (``"cancelled by the user"``)."""
    reason = _clipped(reason, 200)
    if not running:
        return f"{NOT_EXECUTED} The call had not begun: {reason}."
    if harmless:
        return f"The call was stopped while it ran: {reason}. It changes nothing."
    return (
        f"The outcome is unknown: the call was running when it was stopped ({reason}). It may have taken effect, and "
        "may still be running. Verify before you repeat it."
    )


def _clipped(text: str, limit: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[:limit]}…"
