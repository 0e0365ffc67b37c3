"""Where the input comes from: a file, a pipe, a recording. Bytes become text here, and timing becomes waiting.

A file is one piece. A pipe is read as it arrives, and text is handed on at once. Either may be a recording, which is
recognised by its beginning.
"""

from __future__ import annotations

import codecs
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
from streamparse.transport.recording import Header, Piece, RecordingReader, is_recording

BLOCK = 1 << 16
"""Bytes that are asked for at once. What has arrived comes sooner."""


@dataclass(frozen=True)
class Source:
    """The input: its pieces, and its header where it is a recording. The pieces of plain text have no time: it is 0."""

    name: str
    pieces: Iterator[Piece]
    header: Header | None = None


@contextmanager
def open_source(name: str) -> Iterator[Source]:
    """The input of this name, ``-`` for standard input. Waits for as much of it as tells a recording from text.

    Raises ``UsageError``, naming the input, for what cannot be read.
    """
    if name == "-":
        if sys.stdin is None:
            raise UsageError("cannot read standard input: it is closed")
        yield _source("standard input", _texts(_arriving("standard input", sys.stdin.buffer)))
        return
    with _open(name) as file:
        regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        blocks = [read_whole(name)] if regular else _arriving(name, file)
        yield _source(name, _texts(blocks))


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


def _texts(blocks: Iterable[bytes]) -> Iterator[str]:
    """UTF-8, split anywhere; invalid bytes are U+FFFD, and one BOM at the start is no text."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
    for block in blocks:
        text = decoder.decode(block)
        if text:
            yield text
    text = decoder.decode(b"", final=True)
    if text:
        yield text


def _source(name: str, texts: Iterator[str]) -> Source:
    beginning = ""
    verdict = None
    for text in texts:
        beginning += text
        verdict = is_recording(beginning)
        if verdict is not None:
            break
    texts = chain([beginning] if beginning else [], texts)
    if verdict:
        return _recording(name, texts)
    return Source(name, (Piece(0.0, text) for text in texts))


def _recording(name: str, texts: Iterator[str]) -> Source:
    reader = RecordingReader()
    first: list[Piece] = []
    for text in texts:
        first += _named(name, reader.feed, text)
        if reader.header is not None:
            break
    else:
        first += _named(name, lambda _: reader.close(), "")  # a header without a line break, or none
        return Source(name, iter(first), reader.header)
    return Source(name, chain(first, _rest(name, reader, texts)), reader.header)


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
) -> Iterator[str]:
    """The texts of ``pieces`` when their time has come, ``speed`` times as fast as they were recorded."""
    start = clock()
    for piece in pieces:
        wait = start + piece.at / speed - clock()
        if wait > 0:
            sleep(wait)
        yield piece.text
