"""Keeps a caller's secrets out of what errors quote: a server may send back whatever the request said."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qsl, unquote, urlsplit

from streamparse.transport.recorder import Redaction

SECRET_HEADERS = frozenset(
    "api-key authorization cookie ocp-apim-subscription-key proxy-authorization x-api-key x-goog-api-key".split()
)
"""Headers whose values are secrets, in lower case."""

SHORTEST = 4
"""Characters. A shorter value is no key, and would be found in every text."""


def redaction_of(headers: Iterable[tuple[str, str]] = (), url: str = "") -> Redaction:
    """Takes out the secrets of one request: of its headers, and all that stands in the query of its address, as it is
    written there and decoded. ``Bearer sk-1`` counts whole and without its first word."""
    found: set[str] = set()
    for name, value in headers:
        if name.lower() in SECRET_HEADERS:
            found.update((value, value.partition(" ")[2].strip()))
    parts = urlsplit(url)
    found.update(value for _, value in parse_qsl(parts.query))
    found.update(pair.partition("=")[2] for pair in parts.query.split("&"))
    found.update((parts.password or "", unquote(parts.password or "")))
    return Redaction(value for value in found if len(value) >= SHORTEST)
