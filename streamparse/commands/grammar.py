"""``streamparse grammar`` and ``streamparse dialects``: what the grammar files say."""

from __future__ import annotations

from typing import TextIO

from streamparse.commands.sinks import encode_as
from streamparse.decoding.grammar import dialects, load
from streamparse.diagram import as_mermaid, as_text


def print_grammar(dialect: str, out: TextIO, *, mermaid: bool) -> None:
    """The state table of a dialect, as text or as a Mermaid diagram.

    Raises ``UnknownDialectError`` and ``GrammarError``, as ``NativeDecoder`` does.
    """
    table = load(dialect)
    encode_as(out, "utf-8")
    out.write(as_mermaid(table) if mermaid else as_text(table))


def print_dialects(out: TextIO) -> None:
    """The names of the dialects, one a line."""
    out.write("".join(f"{name}\n" for name in dialects()))
