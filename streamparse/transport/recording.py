"""Recordings: an answer as it arrived, piece by piece, with its timing, in a file that a person can read.

JSON Lines. The first line is the header and begins with ``{"streamparse":``; every other line is a piece::

    {"streamparse": "recording", "version": 1, "title": "…", "dialect": "minimax_m2", "start": "reasoning", …}
    {"at": 0.412, "text": "The"}
    {"at": 0.431, "text": " user"}

``at`` counts seconds from the start of the answer (of a recorded response: from its request) and never falls. With the
wire ``text``, the texts, joined, are the raw output of the model. With every other wire they are the body of an HTTP
response as it came, byte for byte: a piece that is not whole in UTF-8 has ``base64`` in place of ``text``. A last line
``{"at": 3.2, "broken": true}`` says that the connection broke there, which no header can know. Headers of the request
and of the response are never written; of the address only the path is.

No clock and no file is touched here: ``RecordingReader`` takes text in pieces of any size, ``write`` returns text.
``recorder`` makes a recording of a response while it arrives.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, Literal, TypeVar

import msgspec

from streamparse.errors import UsageError
from streamparse.events import json_text
from streamparse.transport.wires import RAW_DIALECT, Wire

MAGIC = '{"streamparse":'
"""How a recording begins."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What the pieces are, and how to decode them.

    ``dialect``, ``start``, ``tools`` and ``finish_reason`` are the arguments of a decoder and its ``close``; without
    ``dialect`` it is ``minimax_m2`` for the wire ``text``, else ``"auto"`` (``wires.Options``). ``look`` says what is
    worth watching; ``expected`` says what has to come out, and belongs to whoever checks it.

    Of an HTTP response: ``wire``, what its chunks look like; ``path`` of the address; ``request``, the body that was
    sent, as JSON or as text; ``status`` and ``media_type``. They are written where they are not the default.
    """

    streamparse: Literal["recording"] = "recording"
    version: Literal[1] = 1
    title: str = ""
    look: str = ""
    dialect: str = "auto"
    start: Literal["text", "reasoning"] = "text"
    finish_reason: str | None = None
    tools: list[dict[str, Any]] | None = None
    expected: dict[str, Any] | None = None
    wire: Wire = Wire.TEXT
    path: str = ""
    request: Any = None
    status: int = 200
    media_type: str = ""

    def __post_init__(self) -> None:
        if self.wire is Wire.TEXT and self.dialect == "auto":
            msgspec.structs.force_setattr(self, "dialect", RAW_DIALECT)


class Piece(msgspec.Struct, frozen=True, omit_defaults=True):
    """What arrived at once, ``at`` in seconds from the start of the answer. Of ``text`` and ``base64`` one is empty.

    ``broken``: nothing more arrived, because the connection broke. Only the last piece can say so.
    """

    at: float
    text: str = ""
    base64: bytes = b""
    broken: bool = False

    @classmethod
    def of(cls, at: float, data: bytes) -> Piece:
        """The piece of these bytes."""
        try:
            return cls(at, data.decode())
        except UnicodeDecodeError:
            return cls(at, base64=data)

    @property
    def data(self) -> bytes:
        """The bytes that arrived."""
        return self.base64 or self.text.encode()


_T = TypeVar("_T")

_HEADER = msgspec.json.Decoder(Header)
_PIECE = msgspec.json.Decoder(Piece)


class RecordingReader:
    """Reads a recording that comes in pieces of any size. ``feed`` and ``close`` return the recorded pieces.

    ``header`` is None until its line is complete. Raises ``UsageError``, with the line, for what is no recording.
    """

    def __init__(self) -> None:
        self.header: Header | None = None
        self._open: list[str] = []  # the line that is not complete yet
        self._line = 0
        self._at = 0.0
        self._broken = False

    def feed(self, text: str) -> list[Piece]:
        """The pieces whose lines this text completes."""
        *complete, rest = text.split("\n")
        pieces: list[Piece] = []
        for part in complete:
            self._open.append(part)
            pieces += self._read_line()
        self._open.append(rest)
        return pieces

    def close(self) -> list[Piece]:
        """The end of the file; the last line needs no line break."""
        pieces = self._read_line()
        if self.header is None:
            raise UsageError('line 1: expected the header {"streamparse": "recording", "version": 1, …}, found nothing')
        return pieces

    def _read_line(self) -> list[Piece]:
        line = "".join(self._open)
        self._open.clear()
        self._line += 1
        if not line.strip():
            return []
        if self.header is None:
            self.header = self._decode(_HEADER, line, 'the header {"streamparse": "recording", "version": 1, …}')
            return []
        piece = self._decode(_PIECE, line, 'a piece {"at": seconds, "text": "…"}')
        if piece.at < self._at:
            raise UsageError(f"line {self._line}: expected 'at' to be at least {self._at:g}, found {piece.at:g}")
        if self._broken:
            raise UsageError(f"line {self._line}: expected nothing behind the piece that is broken")
        self._at, self._broken = piece.at, piece.broken
        return [piece]

    def _decode(self, decoder: msgspec.json.Decoder[_T], line: str, expected: str) -> _T:
        try:
            return decoder.decode(line)
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise UsageError(f"line {self._line}: expected {expected}: {error}") from None


def read(text: str) -> tuple[Header, list[Piece]]:
    """A whole recording. Raises ``UsageError``, with the line, for what is none."""
    reader = RecordingReader()
    pieces = reader.feed(text) + reader.close()
    assert reader.header is not None
    return reader.header, pieces


def write(header: Header, pieces: Iterable[Piece]) -> str:
    """The text of a recording: what ``read`` reads back into equal values."""
    return "".join(chain([header_line(header)], map(piece_line, pieces)))


_OF_RESPONSE = ("wire", "path", "request", "status", "media_type")
_DEFAULTS = msgspec.to_builtins(Header())


def header_line(header: Header) -> str:
    """The first line, with its line break."""
    fields: dict[str, Any] = msgspec.to_builtins(header)
    same = [name for name in _OF_RESPONSE if fields[name] == _DEFAULTS[name]]
    return f"{json_text({name: value for name, value in fields.items() if name not in same})}\n"


def piece_line(piece: Piece) -> str:
    """The line of a piece, with its line break."""
    return f"{json_text(msgspec.to_builtins(piece))}\n"
