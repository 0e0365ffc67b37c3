"""What is sent: the caller's request -> address, bytes and headers. Nothing of the caller's is changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import msgspec

from streamparse.errors import UsageError

HeaderTypes: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]

HEADERS = {"accept": "text/event-stream", "cache-control": "no-store", "content-type": "application/json"}
"""What each request says of itself, unless the caller's ``headers`` say something else."""


class Outgoing(msgspec.Struct, frozen=True):
    """One request, to be sent as often as it takes. ``tools`` are the ones that it declares, None if it has none."""

    url: Any
    content: bytes
    headers: dict[str, str]
    tools: list[Any] | None


def outgoing(url: Any, request: Mapping[str, Any] | bytes, headers: HeaderTypes | None) -> Outgoing:
    """The request as it is sent. Raises ``UsageError`` for what cannot be sent.

    Bytes go as they are, and nobody looks into them; a mapping becomes JSON, with ``"stream": true`` unless it has a
    ``stream`` of its own."""
    try:
        urlsplit(str(url))
    except ValueError:  # whose message may quote a password
        raise UsageError("the address is no URL") from None
    if isinstance(request, bytes | bytearray):
        return Outgoing(url, bytes(request), _headers(headers), None)
    if not isinstance(request, Mapping):
        raise UsageError(f"request must be a mapping or bytes, not {type(request).__name__}")
    return Outgoing(url, _json({"stream": True, **request}), _headers(headers), _tools(request.get("tools")))


def _headers(given: HeaderTypes | None) -> dict[str, str]:
    pairs = given.items() if isinstance(given, Mapping) else given or ()
    return HEADERS | {name.lower(): value for name, value in pairs}


def _json(request: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(request, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        try:
            return text.encode()
        except UnicodeEncodeError:  # half a surrogate pair, out of an earlier answer: only an escape can carry it
            return json.dumps(request, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the request is no JSON: {error}") from None


def _tools(declared: Any) -> list[Any] | None:
    """The tools of a request, without those that only the provider knows, which have no name."""
    if not isinstance(declared, list | tuple):
        return None
    return [tool for tool in declared if not isinstance(tool, Mapping) or _has_name(tool)]


def _has_name(tool: Mapping[str, Any]) -> bool:
    function = tool.get("function")
    return bool((function if isinstance(function, Mapping) else tool).get("name"))
