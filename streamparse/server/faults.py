"""What can be asked to go wrong, and how it is asked: ``cut=2000``, ``first=429:1``, ``keepalive=0.2``.

``parse_faults`` reads specs; ``plan`` puts the faults into what is sent. The table of all of them is ``SPECS``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn

import msgspec

from streamparse.errors import UsageError


class Refusal(NamedTuple):
    """An error in place of an answer; ``retry_after`` in seconds, as it is sent."""

    status: int
    retry_after: float | None = None


class Stall(NamedTuple):
    """Silence behind so many bytes; infinite: until the client goes away."""

    after: int
    seconds: float = math.inf


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong with an answer. Each field is a spec of ``SPECS``."""

    cut: int | None = None
    close: int | None = None
    stall: Stall | None = None
    slow_start: float = 0.0
    hang: bool = False
    status: Refusal | None = None
    first: Refusal | None = None
    times: int = 1
    content_type: str | None = None
    json_error: bool = False
    no_done: bool = False
    split_utf8: bool = False
    bom: bool = False
    line_end: bytes | None = None
    keepalive: float | None = None
    no_blank: bool = False
    error_event: int | None = None
    drip: bool = False


NO_FAULTS = Faults()


def parse_faults(specs: Iterable[str], base: Faults = NO_FAULTS) -> Faults:
    """The faults of these specs on top of ``base``; of two for one thing the later counts. A spec may be several,
    separated by commas. Raises ``UsageError`` with the spec and what was expected."""
    changes: dict[str, Any] = {}
    for spec in (part.strip() for text in specs for part in text.split(",")):
        if spec:
            changes |= _parse(spec)
    return msgspec.structs.replace(base, **changes)


def _parse(spec: str) -> dict[str, Any]:
    name, given, value = spec.partition("=")
    if name not in SPECS:
        raise UsageError(f"fault {spec!r}: expected one of {', '.join(known.form for known in SPECS.values())}")
    known = SPECS[name]
    if bool(given) != ("=" in known.form):
        raise UsageError(f"fault {spec!r}: expected {known.form}")
    try:
        return known.read(value)
    except ValueError as error:
        raise UsageError(f"fault {spec!r}: expected {known.form}, {error}") from None


class _Spec(NamedTuple):
    form: str
    read: Callable[[str], dict[str, Any]]
    means: str


def _flag(field: str) -> Callable[[str], dict[str, Any]]:
    return lambda _: {field: True}


def _value(field: str, read: Callable[[str], Any]) -> Callable[[str], dict[str, Any]]:
    return lambda text: {field: read(text)}


def _bytes(text: str) -> int:
    return _number(text, "N a number of bytes")


def _times(text: str) -> int:
    return _number(text, "K a number of requests")


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit()):
        _refuse(what, text)
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        _refuse("a number of seconds", text)
    return seconds


def _interval(text: str) -> float:
    seconds = _seconds(text)
    if seconds < 0.001:
        _refuse("at least 0.001 seconds", text)
    return seconds


def _stall(text: str) -> Stall:
    after, given, seconds = text.partition(":")
    return Stall(_bytes(after), _seconds(seconds)) if given else Stall(_bytes(after))


def _refusal(text: str) -> Refusal:
    status, given, retry_after = text.partition(":")
    number = _number(status, "STATUS a number")
    if not 400 <= number < 600:
        _refuse("STATUS an HTTP status from 400 to 599", status)
    return Refusal(number, _seconds(retry_after) if given else None)


def _media_type(text: str) -> str:
    if not text.isascii() or not text.isprintable():
        _refuse("TYPE printable ASCII", text)
    return text


def _refuse(what: str, found: str) -> NoReturn:
    raise ValueError(f"{what}, found {found!r}")


SPECS = {
    spec.form.partition("=")[0]: spec
    for spec in (
        _Spec("cut=N", _value("cut", _bytes), "the connection breaks behind N bytes of the body"),
        _Spec("close=N", _value("close", _bytes), "the body ends behind N bytes, as if that were all"),
        _Spec("stall=N[:SECONDS]", _value("stall", _stall), "silence behind N bytes, for SECONDS or for ever"),
        _Spec("slow-start=SECONDS", _value("slow_start", _seconds), "headers at once, the first byte later"),
        _Spec("hang", _flag("hang"), "no response at all"),
        _Spec("status=STATUS[:RETRY_AFTER]", _value("status", _refusal), "an error, each time"),
        _Spec("first=STATUS[:RETRY_AFTER]", _value("first", _refusal), "an error the first time, then the answer"),
        _Spec("times=K", _value("times", _times), "with first: an error the first K times"),
        _Spec("content-type=TYPE", _value("content_type", _media_type), "another media type; empty: none"),
        _Spec("json-error", _flag("json_error"), "status 200 and an error as JSON, as MiniMax sends it"),
        _Spec("no-done", _flag("no_done"), "without [DONE] or message_stop"),
        _Spec("split-utf8", _flag("split_utf8"), "each character of several bytes in two writes"),
        _Spec("bom", _flag("bom"), "a byte order mark first"),
        _Spec("crlf", lambda _: {"line_end": b"\r\n"}, "lines end in CRLF"),
        _Spec("cr", lambda _: {"line_end": b"\r"}, "lines end in CR"),
        _Spec("keepalive=SECONDS", _value("keepalive", _interval), "a comment whenever nothing comes for so long"),
        _Spec("no-blank", _flag("no_blank"), "without the blank line of the last event"),
        _Spec(
            "error-event=N", _value("error_event", _bytes), "an error in the stream, at the first event behind N bytes"
        ),
        _Spec("drip", _flag("drip"), "one byte a write"),
    )
}
"""All faults, by name: the form of the spec, and what it does."""
