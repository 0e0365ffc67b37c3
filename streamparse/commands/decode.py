"""``streamparse decode``: an input, cut into pieces, through the decoder of its wire, to a sink."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from streamparse.commands.cutting import Cut, pieces
from streamparse.commands.sinks import Format, default_format, open_sink
from streamparse.commands.sources import Source, open_source, paced, read_whole
from streamparse.errors import ToolDefinitionError, UsageError
from streamparse.transport.body import Body
from streamparse.transport.framing import FramingKind, TextFraming
from streamparse.transport.recording import Header, Piece
from streamparse.transport.replay import options_of
from streamparse.transport.wires import RAW_DIALECT, Decoder, Wire
from streamparse.transport.wires import Options as DecoderOptions


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of ``decode``. None: what the recording says, or the default."""

    file: str
    wire: Wire | None = None
    dialect: str | None = None
    tools: str | None = None
    start: Literal["text", "reasoning"] | None = None
    cut: Cut = None
    form: Format | None = None
    finish_reason: str | None = None
    speed: float | None = None


def decode(options: Options) -> bool:
    """Decode the input to standard output. Whether the answer was clean.

    Raises ``StreamparseError`` for wrong use; what is wrong before the input is said without waiting for it.
    """
    tools = None if options.tools is None else read_tools(options.tools)
    _decoder(options, None, tools)
    sink = open_sink(options.form or default_format(sys.stdout), sys.stdout)
    with open_source(options.file, options.wire) as source:
        body = Body(_decoder(options, source, tools), source.framing)
        broken = False
        with sink:
            for piece in _pieces(options, source):
                sink.show(body.feed(piece.data))
                broken = piece.broken
            sink.show(body.close(_finish_reason(options, source), clean=not broken))
    return sink.tally.clean


def _decoder(options: Options, source: Source | None, tools: list[Any] | None) -> Decoder:
    """The options come before the recording, the recording before the defaults."""
    header = source.header if source is not None and source.header is not None else Header()
    made = DecoderOptions(
        tools=options_of(header).tools if tools is None else tools,
        dialect=_dialect(options, source),
        start=options.start or header.start,
    )
    try:
        return made.decoder(source.wire if source is not None else options.wire or Wire.TEXT)
    except ToolDefinitionError as error:
        place = options.tools or (source.name if source else "")
        raise ToolDefinitionError(f"{place}: {error}") from None


def _dialect(options: Options, source: Source | None) -> str:
    if options.dialect is not None:
        return options.dialect
    return source.header.dialect if source is not None and source.header is not None else "auto"


def _finish_reason(options: Options, source: Source) -> str | None:
    if options.finish_reason is not None or source.header is None:
        return options.finish_reason
    return source.header.finish_reason


def _pieces(options: Options, source: Source) -> Iterable[Piece]:
    """The pieces, at their time and cut as it was asked for."""
    found: Iterable[Piece] = source.pieces
    if options.speed is not None:
        if source.header is None:
            what = "is text" if source.framing is FramingKind.TEXT else "holds chunks"
            raise UsageError(f"--speed: expected a recording, and {source.name} {what} without timing")
        found = paced(found, options.speed)
    if options.cut is None:
        return found
    if source.framing is FramingKind.TEXT:
        return _cut_text(options, source, found)
    if options.cut == "token":
        raise UsageError(f"--chunk token: expected raw output, and {source.name} holds chunks; use a number of bytes")
    return _cut_bytes(found, options.cut)


def _cut_text(options: Options, source: Source, found: Iterable[Piece]) -> Iterator[Piece]:
    from streamparse.decoding.grammar import load

    dialect = _dialect(options, source)
    framing = TextFraming()
    texts = (text for piece in found for text in framing.feed(piece.data))
    for text in pieces(texts, options.cut, load(RAW_DIALECT if dialect == "auto" else dialect)):
        yield Piece(0.0, text)
    yield from (Piece(0.0, text) for text in framing.close())


def _cut_bytes(found: Iterable[Piece], size: int | Literal["all"]) -> Iterator[Piece]:
    """In pieces of at most ``size`` bytes. Whether the connection broke, the last one says."""
    at, broken = 0.0, False
    whole: list[bytes] = []
    for piece in found:
        at, broken = piece.at, piece.broken
        whole.append(piece.data)
        if size != "all" and piece.data:
            yield from (Piece.of(at, piece.data[start : start + size]) for start in range(0, len(piece.data), size))
    if size == "all":
        yield Piece(at, base64=b"".join(whole), broken=broken)
    elif broken:
        yield Piece(at, broken=True)


def read_tools(name: str) -> list[Any]:
    """Tool definitions from a JSON file: a list, or an object with a list as ``tools``.

    Raises ``UsageError``, with the place in the file and what was expected there.
    """
    text = read_whole(name).decode("utf-8-sig", errors="replace")
    try:
        tools = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{name}:{error.lineno}:{error.colno}: expected JSON: {_reason(error)}") from None
    except RecursionError:
        raise UsageError(f"{name}: expected tool definitions, found JSON that is nested too deeply") from None
    if isinstance(tools, dict) and "tools" in tools:
        tools = tools["tools"]
    if not isinstance(tools, list):
        raise UsageError(f"{name}: expected a list of tool definitions, found {_kind(tools)}")
    return tools


def _reason(error: json.JSONDecodeError) -> str:
    """The library says "Expecting value"; what is there helps, too."""
    found = error.doc[error.pos : error.pos + 20].splitlines()
    where = f"found {found[0]!r}" if found and found[0] else "found the end of the " + ("line" if found else "file")
    return f"{error.msg[0].lower()}{error.msg[1:]}, {where}"


def _kind(value: object) -> str:
    kinds = {dict: "an object", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")
