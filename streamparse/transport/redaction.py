"""What of a request is secret: keeps it out of what errors quote, of events and of recordings. A server may send back
whatever the request said.

The rule, for all of them: a header is secret unless its name is in ``HARMLESS``. Keys come under names that nobody can
list. Of the address, a password is, and what the query has under a name that speaks of a key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from streamparse.events import ErrorDetail, Event, Failed, ToolCallFailed
from streamparse.transport.recorder import Redaction
from streamparse.transport.request import HeaderTypes

HARMLESS = frozenset(
    "accept accept-charset accept-encoding accept-language anthropic-beta anthropic-version cache-control connection "
    "content-encoding content-length content-type expect host http-referer openai-beta origin pragma referer te "
    "transfer-encoding user-agent x-streamparse-fault x-streamparse-raw x-title".split()
)
"""Headers whose values are no secrets, in lower case: clients send them unasked, or they name a version or the caller's
program. Every other one's value is."""

SHORTEST = 4
"""Characters. A shorter value is no key, and would be found in every text."""

_PLAIN = re.compile(r"true|false|null|-?[0-9.]{1,7}", re.IGNORECASE)
"""Switches and small numbers are no keys either, and JSON without them is none."""

_SECRET_NAME = re.compile("key|token|secret|sig|auth|pass|credential|session", re.IGNORECASE)


def secrets_of(url: str = "", headers: HeaderTypes = ()) -> set[str]:
    """All that was sent and is a secret, as it may be quoted: the value of a header whole, without its scheme
    (``Bearer``), and, of a cookie, each value; what the query holds as it is written there and decoded."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    found = {value.strip() for name, given in pairs for value in _of_header(name.lower(), given)}
    found.update(_of_address(url))
    return {value for value in found if len(value) >= SHORTEST and not _PLAIN.fullmatch(value)}


def _of_header(name: str, value: str) -> Iterator[str]:
    if name in HARMLESS:
        return
    yield value
    yield value.partition(" ")[2]
    if name == "cookie":
        yield from (pair.partition("=")[2].strip(' "') for pair in value.split(";"))


def _of_address(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    yield parts.password or ""
    yield unquote(parts.password or "")
    written = (pair.partition("=")[::2] for pair in parts.query.split("&"))
    for name, value in (*written, *parse_qsl(parts.query)):
        if _SECRET_NAME.search(unquote(name)):
            yield value


def redaction_of(headers: HeaderTypes = (), url: str = "") -> Redaction:
    """Takes out the secrets of one request."""
    return Redaction(secrets_of(url, headers))


_ERRORS = frozenset({Failed, ToolCallFailed})


def redact_errors(events: list[Event], redact: Redaction) -> list[Event]:
    """The events, without secrets in what an error says and quotes. What the model wrote stays as it is."""
    for event in events:
        if type(event) in _ERRORS:
            return [_redacted(each, redact) for each in events]
    return events


def _redacted(event: Event, redact: Redaction) -> Event:
    if not isinstance(event, Failed | ToolCallFailed):
        return event
    error: ErrorDetail = msgspec.structs.replace(
        event.error, reason=redact.excerpt(event.error.reason), excerpt=redact.excerpt(event.error.excerpt)
    )
    return msgspec.structs.replace(event, error=error)
