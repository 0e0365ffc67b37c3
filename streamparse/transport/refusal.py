"""An answer that is an error -> ``ResponseError``: what the provider says, and whether another try is worth it.

Providers put their errors into an HTTP status with a body, into a good status with a JSON body, or into the first event
of a stream (C8). The body is looked into alike in all three."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from streamparse.decoding.lenient import Told, told
from streamparse.errors import ResponseError
from streamparse.limits import EXCERPT
from streamparse.transport.framing import FramingKind, make_framing
from streamparse.transport.recorder import Redaction
from streamparse.transport.sse import BOM

MESSAGE = 500
"""Characters of a provider's message that an error repeats: some providers append the whole request."""

# 409: a lock on the server's side, in the words of those who send it.
_RETRYABLE_STATUS = frozenset({408, 409, 425, 429})

_RETRYABLE = frozenset(
    """
    api_error connection_error engine_overloaded engine_overloaded_error internal_error internal_server_error
    internalservererror overloaded overloaded_error rate_limit rate_limit_error rate_limit_exceeded ratelimiterror
    resource_exhausted server_error server_overloaded service_unavailable serviceunavailableerror timeout timeout_error
    too_many_requests unavailable
    """.split()
)
"""Words for an error that passes. They matter where there is no status to go by."""

_FINAL = frozenset(
    """
    access_terminated billing_error billing_hard_limit_reached billing_not_active exceeded_current_quota_error
    insufficient_balance insufficient_quota quota_exceeded
    """.split()
)
"""Words for an error that waiting does not cure, although it comes with 429: there is nothing left to spend."""

_MINIMAX_RETRYABLE = frozenset({"1000", "1001", "1002", "1013", "1024", "1033", "1039", "1041", "2045"})
"""``base_resp`` codes for which MiniMax advises to try again: unknown, timeout, requests per minute, internal errors
(1013, 1024, 1033), tokens per minute, connections, growth of the rate. All others are about the key, the balance, the
parameters or the content, and are final."""


class Reply(msgspec.Struct, frozen=True):
    """A response, as far as an error goes into it. ``now`` is the wall clock, for dates, in seconds."""

    status: int
    headers: Mapping[str, str]
    redact: Redaction
    now: float


def refusal(reply: Reply, reason: str, body: bytes, *, said: str = "") -> ResponseError:
    """The error of a response that is one. ``reason`` opens the message; ``body`` is the start of the body; ``said`` is
    what is known of the error where the body cannot be read."""
    found = told_by(body)
    words = [reason, found.code, found.message or said]
    line = ": ".join(" ".join(reply.redact.text(word).split())[:MESSAGE] for word in words if word)
    return ResponseError(
        line,
        status=reply.status,
        code=reply.redact.text(found.code)[:MESSAGE],
        body=reply.redact.text(body.decode("utf-8", "replace"))[:EXCERPT],
        retryable=_is_retryable(reply, found),
        retry_after=retry_after(reply.headers, reply.now),
    )


# What a body says ----------------------------------------------------------------------------------------------------


def told_by(body: bytes) -> Told:
    """The error in a body: JSON, or an event stream whose last event it is. Empty if there is none to be found."""
    try:
        return next((found for value in reversed(_values(body)) if (found := told(value)) is not None), Told())
    except RecursionError:
        return Told()


def _values(body: bytes) -> list[Any]:
    is_json = body.removeprefix(BOM).lstrip().startswith((b"{", b"["))
    framing = make_framing(FramingKind.JSON if is_json else FramingKind.EVENT_STREAM)
    payloads = framing.feed(body) + framing.close()
    return [value for payload in payloads if (value := _decoded(payload)) is not None]


def _decoded(payload: Any) -> Any:
    if not isinstance(payload, str | bytes):
        return payload
    try:
        return msgspec.json.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


# Whether, and when, to try again --------------------------------------------------------------------------------------


def _is_retryable(reply: Reply, found: Told) -> bool:
    kinds = {kind.lower() for kind in found.kinds}
    if kinds & _FINAL:
        return False
    asked = reply.headers.get("x-should-retry")  # what OpenAI and Anthropic tell their own clients
    if asked in ("true", "false"):
        return asked == "true"
    if found.minimax:
        return bool(kinds & _MINIMAX_RETRYABLE)
    if not 200 <= reply.status < 300:
        return _passes(reply.status)
    return bool(kinds & _RETRYABLE) or any(kind.isdecimal() and _passes(int(kind[:4])) for kind in kinds)


def _passes(status: int) -> bool:
    return status in _RETRYABLE_STATUS or 500 <= status < 600


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """How long the server asks to wait, in seconds; None if it does not, or not in words that make sense.

    ``retry-after-ms``, then ``retry-after``: seconds, or a date, which is set against the server's own ``date``."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after", "")
    seconds = _number(given)
    if seconds is not None:
        return seconds
    until = _date(given)
    if until is None:
        return None
    since = _date(headers.get("date", ""))
    return max(0.0, until.timestamp() - (now if since is None else since.timestamp()))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def header_map(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by their names in lower case; of one that was sent twice, the first counts."""
    found: dict[str, str] = {}
    for name, value in headers:
        found.setdefault(name.lower(), value)
    return found
