"""Where the input comes from: a file, a pipe; and what it is: a recording, an event stream, chunks as JSON, raw text.

A file is one piece. A pipe is read as it arrives, and what arrived is handed on at once. What it is, is recognised by
its beginning.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

from streamparse.errors import UsageError
from streamparse.limits import EXCERPT
from streamparse.transport.formats import InputKind, framing_of, has_head, recognise
from streamparse.transport.framing import FramingKind, TextFraming
from streamparse.transport.recording import Header, Piece, RecordingReader
from streamparse.transport.wires import Wire

BLOCK = 1 << 16
"""Bytes that are asked for at once. What has arrived comes sooner."""


@dataclass(frozen=True)
class Source:
    """The input: its pieces, its wire, how chunks lie in it, and its header where it is a recording. Pieces of anything
    else have no time: it is 0."""

    name: str
    pieces: Iterator[Piece]
    wire: Wire
    framing: FramingKind
    header: Header | None = None


@contextmanager
def open_source(name: str, wire: Wire | None = None) -> Iterator[Source]:
    """The input of this name, ``-`` for standard input. Waits for as much of it as tells what it is.

    ``wire``: what its chunks are, whatever it looks like. Raises ``UsageError``, naming the input, for what cannot be
    read, or holds no answer.
    """
    if name == "-":
        if sys.stdin is None:
            raise UsageError("cannot read standard input: it is closed")
        yield _source("standard input", _arriving("standard input", sys.stdin.buffer), wire)
        return
    with _open(name) as file:
        regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        blocks = iter([read_whole(name)]) if regular else _arriving(name, file)
        yield _source(name, blocks, wire)


def read_whole(name: str) -> bytes:
    """The bytes of a file. Raises ``UsageError``, naming the file."""
    with _open(name) as file:
        return b"".join(_arriving(name, file))


def _open(name: str) -> BinaryIO:
    try:
        return open(name, "rb")
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from None


def _arriving(name: str, file: BinaryIO) -> Iterator[bytes]:
    """The bytes of ``file`` as they arrive."""
    while True:
        try:
            block = file.read1(BLOCK)  # type: ignore[attr-defined]
        except OSError as error:
            raise _unreadable(name, error) from None
        if not block:
            return
        yield block


def _unreadable(name: str, error: Exception) -> UsageError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UsageError(f"cannot read {name}: {reason}")


def _source(name: str, blocks: Iterator[bytes], wire: Wire | None) -> Source:
    beginning, answer = b"", None
    while answer is None:
        block = next(blocks, b"")
        beginning += block
        answer = recognise(beginning, complete=not block)
    blocks = chain([beginning] if beginning else [], blocks)
    if answer.kind is InputKind.RECORDING:
        return _recording(name, blocks)
    if wire is not Wire.TEXT and has_head(beginning):
        raise UsageError(f"{name}: expected the body of a response alone, found its HTTP head before it (curl -i)")
    pieces = (Piece.of(0.0, block) for block in blocks)
    if wire is Wire.TEXT:
        return Source(name, pieces, wire, FramingKind.TEXT)
    if wire is not None and answer.kind is InputKind.TEXT:
        raise UsageError(f"{name}: expected chunks of the wire {wire.value!r}, found neither an event stream nor JSON")
    return Source(name, pieces, wire or answer.wire or Wire.CHAT, answer.framing)


def _recording(name: str, blocks: Iterator[bytes]) -> Source:
    reader = RecordingReader()
    texts = _texts(blocks)
    first: list[Piece] = []
    for text in texts:
        first += _named(name, reader.feed, text)
        if reader.header is not None and (first or reader.header.wire is Wire.TEXT):
            break
    pieces: Iterator[Piece] = chain(first, _rest(name, reader, texts))
    if reader.header is None:  # a header without a line break, or none: the end tells
        pieces = iter(list(pieces))
    assert reader.header is not None
    return Source(name, pieces, reader.header.wire, _framing(name, reader.header, first), reader.header)


def _framing(name: str, header: Header, first: list[Piece]) -> FramingKind:
    if header.status >= 400:
        body = b"".join(piece.data for piece in first).decode("utf-8", "replace").strip()
        raise UsageError(f"{name}: the recording holds no answer, but HTTP status {header.status}: {body[:EXCERPT]}")
    framing = framing_of(header, b"".join(piece.data for piece in first))
    if framing is None:
        raise UsageError(f"{name}: the recording holds no answer, but {header.media_type or 'a body without a type'}")
    return framing


def _texts(blocks: Iterable[bytes]) -> Iterator[str]:
    """UTF-8, split anywhere."""
    framing = TextFraming()
    for block in blocks:
        yield from framing.feed(block)
    yield from framing.close()


def _rest(name: str, reader: RecordingReader, texts: Iterator[str]) -> Iterator[Piece]:
    for text in texts:
        yield from _named(name, reader.feed, text)
    yield from _named(name, lambda _: reader.close(), "")


def _named(name: str, read: Callable[[str], list[Piece]], text: str) -> list[Piece]:
    try:
        return read(text)
    except UsageError as error:
        raise UsageError(f"{name}, {error}") from None


def paced(
    pieces: Iterable[Piece],
    speed: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Piece]:
    """``pieces`` when their time has come, ``speed`` times as fast as they were recorded."""
    start = clock()
    for piece in pieces:
        wait = start + piece.at / speed - clock()
        if wait > 0:
            sleep(wait)
        yield piece
