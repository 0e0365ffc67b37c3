"""``streamparse decode``: an input, cut into pieces, through a ``NativeDecoder``, to a sink."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from streamparse.commands.cutting import Cut, pieces
from streamparse.commands.sinks import Format, default_format, open_sink
from streamparse.commands.sources import Source, open_source, paced, read_whole
from streamparse.decoding.native import NativeDecoder
from streamparse.errors import ToolDefinitionError, UsageError

DEFAULT_DIALECT = "minimax_m2"


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of ``decode``. None: what the recording says, or the default."""

    file: str
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
    with open_source(options.file) as source:
        decoder = _decoder(options, source, tools)
        with sink:
            for text in _texts(options, source):
                sink.show(decoder.feed(text))
            sink.show(decoder.close(_finish_reason(options, source)))
    return sink.tally.clean


def _decoder(options: Options, source: Source | None, tools: list[Any] | None) -> NativeDecoder:
    """The options come before the recording, the recording before the defaults."""
    header = source.header if source is not None else None
    start = options.start or (header.start if header else "text")
    if header is not None and tools is None:
        tools = header.tools
    try:
        return NativeDecoder(_dialect(options, source), tools=tools, start=start)
    except ToolDefinitionError as error:
        place = options.tools or (source.name if source else "")
        raise ToolDefinitionError(f"{place}: {error}") from None


def _dialect(options: Options, source: Source | None) -> str:
    if options.dialect is not None:
        return options.dialect
    return source.header.dialect if source is not None and source.header is not None else DEFAULT_DIALECT


def _finish_reason(options: Options, source: Source) -> str | None:
    if options.finish_reason is not None or source.header is None:
        return options.finish_reason
    return source.header.finish_reason


def _texts(options: Options, source: Source) -> Iterator[str]:
    from streamparse.decoding.grammar import load

    texts: Iterator[str]
    if options.speed is None:
        texts = (piece.text for piece in source.pieces)
    elif source.header is None:
        raise UsageError(f"--speed: expected a recording, and {source.name} is text without timing")
    else:
        texts = paced(source.pieces, options.speed)
    return pieces(texts, options.cut, load(_dialect(options, source)))


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
