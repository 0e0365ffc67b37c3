"""What is in a file or a pipe: a recording, an event stream, chunks as JSON, or the raw output of a model? Sans-IO.

``recognise`` is asked with the beginning, again and again while it grows; what it says once, it says for every longer
one. Raw text may look like anything, so everything else has to prove itself:

* a *recording* begins with ``{"streamparse":``;
* *JSON* begins with an object, or a list of them, and its first value is a chunk, or an error in place of one. JSON
  Lines tell with the first line, a value of several lines when it is complete;
* an *event stream* has only fields and comments, up to a data line that holds JSON, or text under an event's name.

The wire is told by the first chunk that has one; where none has (an error comes first, or ``[DONE]``), it is ``chat``.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

import msgspec

from streamparse.limits import MAX_EVENT
from streamparse.transport.framing import FramingKind
from streamparse.transport.recording import MAGIC, Header
from streamparse.transport.response import ResponseKind, check_response
from streamparse.transport.sse import BOM, DONE
from streamparse.transport.wires import Wire, wire_of_chunk


class InputKind(StrEnum):
    """What an input is."""

    RECORDING = "recording"
    EVENT_STREAM = "event_stream"
    JSON = "json"
    TEXT = "text"


class Answer(msgspec.Struct, frozen=True):
    """The verdict on an input. A recording says in its header what its ``wire`` is: here it is None."""

    kind: InputKind
    wire: Wire | None = None

    @property
    def framing(self) -> FramingKind:
        """How chunks lie in it. Not of a recording."""
        return FramingKind(self.kind)


RECORDING = Answer(InputKind.RECORDING)
TEXT = Answer(InputKind.TEXT, Wire.TEXT)


def recognise(beginning: bytes, *, complete: bool = False) -> Answer | None:
    """What begins like this; None while it is too short to tell. ``complete``: there is no more of it; then, and behind
    ``MAX_EVENT`` bytes, there is always a verdict."""
    if len(beginning) >= MAX_EVENT:
        beginning, complete = beginning[:MAX_EVENT], True
    if not complete and BOM.startswith(beginning):
        return None
    text = beginning.removeprefix(BOM)
    if text.startswith(MAGIC.encode()):
        return RECORDING
    if not complete and MAGIC.encode().startswith(text):
        return None
    start = text.lstrip()
    if not start:
        return TEXT if complete else None
    if start[:1] in (b"{", b"["):
        return _recognise_json(start, complete)
    return _recognise_events(start, complete)


# JSON -----------------------------------------------------------------------------------------------------------------

_OBJECT = re.compile(rb"(?:\[\s*)?\{\s*[\"}]")
_UNDECIDED = re.compile(rb"(?:\[\s*)?(?:\{\s*)?")


def _recognise_json(start: bytes, complete: bool) -> Answer | None:
    if not _OBJECT.match(start):
        return None if not complete and _UNDECIDED.fullmatch(start) else TEXT
    line, ended, _ = start.partition(b"\n")
    if ended and _is_json(line):
        return _json_of(_wire_of_json(line))
    if not complete:
        return None
    return _json_of(_wire_of_json(start) if _is_json(start) else wire_of_words(start))


def _json_of(wire: Wire | None) -> Answer:
    return TEXT if wire is None else Answer(InputKind.JSON, wire)


_raw = msgspec.json.Decoder(msgspec.Raw).decode
_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode


def _is_json(text: bytes) -> bool:
    try:
        _raw(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True


def _wire_of_json(text: bytes) -> Wire | None:
    """The wire of a value, or of the first chunk of a list that says it."""
    chunks = [text] if not text.startswith(b"[") else [bytes(each) for each in _raws(text)]
    wires = (wire_of_chunk(chunk) for chunk in chunks)
    return next((wire for wire in wires if wire is not None), Wire.CHAT if any(map(_is_trouble, chunks)) else None)


class _Trouble(msgspec.Struct):
    """C8: an error in place of a chunk."""

    error: Any = None
    base_resp: Any = None


_trouble = msgspec.json.Decoder(_Trouble).decode


def _is_trouble(chunk: bytes) -> bool:
    try:
        trouble = _trouble(chunk)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return trouble.error is not None or trouble.base_resp is not None


_CUT_CHAT = re.compile(rb'"choices"\s*:\s*\[|"object"\s*:\s*"chat\.completion')
_CUT_MESSAGES = re.compile(rb'"type"\s*:\s*"(?:message|content_block)')


def wire_of_words(text: bytes) -> Wire | None:
    """The wire of chunks of which some may not be complete, by their words: such a chunk must not pass for a text that
    is whole."""
    if _CUT_CHAT.search(text):
        return Wire.CHAT
    return Wire.MESSAGES if _CUT_MESSAGES.search(text) else None


# Event streams --------------------------------------------------------------------------------------------------------

_FIELD = re.compile(rb"(?:data|event|id|retry)?:|(?:data|event|id|retry)\Z")
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_SMILE = re.compile(rb":[^\s\w:]")
"""What no server's comment begins with. It proves nothing where there is data."""


def _recognise_events(start: bytes, complete: bool) -> Answer | None:
    lines = start.splitlines(keepends=True)
    last = b"" if complete or lines[-1].endswith((b"\n", b"\r")) else lines.pop()
    named = proven = False
    for line in (line.rstrip(b"\r\n") for line in lines):
        if line and not _FIELD.match(line):
            return _unless(proven)
        payload = line[5:].strip() if line.startswith(b"data:") else b""
        if payload:
            proven = proven or named or payload.startswith((b"{", b"[{")) or payload == DONE.encode()
            if not proven:
                return TEXT
            wire = wire_of_chunk(payload) or wire_of_words(payload)
            if wire is not None:
                return Answer(InputKind.EVENT_STREAM, wire)
        named = line.startswith(b"event:") or (named and bool(line))
    if complete:
        ended = start.endswith((b"\n\n", b"\r\n\r\n", b"\r\r"))
        return _unless(proven or (ended and not any(map(_SMILE.match, lines))))
    could_be = any(last.startswith(name) or name.startswith(last) for name in _FIELDS)
    return None if could_be else _unless(proven)


def _unless(proven: bool) -> Answer:
    """The verdict on an input whose chunks do not tell their wire."""
    return Answer(InputKind.EVENT_STREAM, Wire.CHAT) if proven else TEXT


# Dumps ---------------------------------------------------------------------------------------------------------------

_HEAD = re.compile(rb"HTTP/[\d.]+ \d{3}[^\r\n]*\r?\n(?:[\w-]+:[^\r\n]*\r?\n)*?content-type:", re.IGNORECASE)


def has_head(beginning: bytes) -> bool:
    """Whether this is an HTTP response with its head, as ``curl -i`` writes it: no input, and no text of a model."""
    return _HEAD.match(beginning) is not None


# Recordings -----------------------------------------------------------------------------------------------------------


def framing_of(header: Header, beginning: bytes) -> FramingKind | None:
    """How chunks lie in a recorded body that begins like this; None if it holds none: an error page, for one."""
    if header.wire is Wire.TEXT:
        return FramingKind.TEXT
    kind = check_response(200, {"content-type": header.media_type}, beginning).kind
    if kind is not ResponseKind.ERROR:
        return FramingKind(kind)
    found = recognise(beginning, complete=True) or TEXT
    return found.framing if found.kind in (InputKind.EVENT_STREAM, InputKind.JSON) else None
