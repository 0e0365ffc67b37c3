"""What a response is, before its first event: an event stream, a whole JSON body, JSON Lines, or an error. Rule S.

Status first, then the media type; where that is missing, says nothing or is plainly wrong, the start of the body."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from streamparse.limits import EXCERPT
from streamparse.transport.sse import BOM, excerpt_of


class ResponseKind(StrEnum):
    """What a response holds."""

    EVENT_STREAM = "event_stream"
    JSON = "json"
    """A whole completion, or an error that the provider sent with a good status (C8): decode it, never skip it. Also
    JSON Lines, one chunk in each."""
    ERROR = "error"


class ResponseCheck(msgspec.Struct, frozen=True):
    """The verdict on a response, before its first event. ``media_type`` is lower case, without parameters. For an
    error, ``reason`` is one line, and ``excerpt`` the start of the body, which may repeat whatever the request said."""

    kind: ResponseKind
    status: int
    media_type: str
    reason: str = ""
    excerpt: str = ""


def check_response(
    status: int, headers: Mapping[str, str] | Iterable[tuple[str, str]], body_start: bytes = b""
) -> ResponseCheck:
    """What the response holds. S: status first, then the media type, in any case and with any parameters.

    ``body_start`` is what has arrived of the body: the first chunk, for an error as much as is to be quoted. It decides
    where the media type is missing or says nothing (a plain ASGI response has none), and corrects a wrong one: an event
    stream that starts with ``{`` would be an empty one, and no JSON starts with ``data:``.
    """
    headers = list(headers.items() if isinstance(headers, Mapping) else headers)
    media_type = _header(headers, "content-type")
    media_type = (
        re.split("[;,]", media_type, maxsplit=1)[0].strip().lower()
    )  # a comma: sent twice, joined by the client
    reason = _refusal(status, _header(headers, "location"))
    kind = ResponseKind.ERROR if reason else _kind(media_type, body_start)
    if kind is ResponseKind.ERROR:
        reason = reason or _unknown(media_type, body_start)
        return ResponseCheck(kind, status, media_type, reason, excerpt_of(body_start))
    return ResponseCheck(kind, status, media_type)


def _header(headers: Iterable[tuple[str, str]], wanted: str) -> str:
    return next((value for name, value in headers if name.lower() == wanted), "")


def _refusal(status: int, location: str) -> str:
    if status in (204, 205):
        return f"HTTP status {status}: no content"
    if 300 <= status < 400 and location:
        return (
            f"HTTP status {status}: moved to {_place(location)}; use that address, or a client that follows redirects"
        )
    return "" if 200 <= status < 300 else f"HTTP status {status}"


def _place(location: str) -> str:
    """An address without what may be secret in it: user, password, query."""
    bare = re.split("[?#]", location, maxsplit=1)[0]
    return re.sub(r"(?<=//)[^/]*@", "", bare)[:EXCERPT]


_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_JSON = ("application/json", "text/json", "application/x-ndjson", "application/jsonl", "application/json-lines")
_SAYS_NOTHING = ("", "text/plain", "application/octet-stream")


def _kind(media_type: str, body_start: bytes) -> ResponseKind:
    declared = _declared(media_type)
    if declared is ResponseKind.ERROR and media_type not in _SAYS_NOTHING:
        return declared
    start = body_start.removeprefix(BOM).lstrip()
    if start.startswith((b"{", b"[")):
        return ResponseKind.JSON
    if start and any(start.startswith(name) or name.startswith(start) for name in _FIELDS):
        return ResponseKind.EVENT_STREAM
    return declared


def _declared(media_type: str) -> ResponseKind:
    if media_type == "text/event-stream":
        return ResponseKind.EVENT_STREAM
    if media_type in _JSON or media_type.endswith("+json"):
        return ResponseKind.JSON
    return ResponseKind.ERROR


def _unknown(media_type: str, body_start: bytes) -> str:
    named = f"media type {media_type!r}" if media_type else "no media type"
    empty = "" if body_start else " and an empty body"
    return f"expected text/event-stream or application/json, found {named}{empty}"
