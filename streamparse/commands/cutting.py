"""How an input is cut before it is fed: not at all, every N characters, or where a tokenizer would cut it.

Chunking never changes what is decoded; it changes how it looks while it grows. A *token* here is what such models have:
a word of up to twelve letters with the blank before it, up to three digits, a run of punctuation, white space; and the
dialect's special tags whole, as the state table names them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Literal, TypeAlias

from streamparse.decoding.table import PROSE, Role, Table, Tag

Cut: TypeAlias = int | Literal["token", "all"] | None
"""Pieces of at most N characters, tokens, one piece; None is as it comes."""

_TOKEN = re.compile(
    r"""
      [ ]?[^\W\d_]{1,12}   # a word, or a part of a long one, with the blank before it
    | [0-9]{1,3}
    | [ ]?[^\s\w]+\n?      # punctuation, with the line break behind it
    | [ \t]*\n+            # line breaks
    | \s+(?=\s\S)          # indentation but for its last blank, which goes with the word
    | \s+
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


def pieces(texts: Iterable[str], cut: Cut, table: Table) -> Iterator[str]:
    """``texts``, cut further, each as it comes; for ``"all"`` in one piece, when the last has come."""
    if cut == "all":
        yield "".join(texts)
        return
    split = splitter(cut, table)
    for text in texts:
        yield from split(text)


def splitter(cut: int | Literal["token"] | None, table: Table) -> Callable[[str], Iterable[str]]:
    """The function that cuts one text."""
    if cut is None:
        return lambda text: [text]
    if cut == "token":
        special = special_tags(table)
        return lambda text: tokens(text, special)
    return lambda text: (text[at : at + cut] for at in range(0, len(text), cut))


def special_tags(table: Table) -> tuple[str, ...]:
    """The tags that stand between prose and the rest: in models of this kind each is one token."""
    return tuple(sorted({tag.text for state, tag in table.all_tags() if _is_special(table, state.opaque, tag)}))


def _is_special(table: Table, opaque: str, tag: Tag) -> bool:
    if tag.bare or tag.nonstandard:
        return False
    if tag.role is Role.MARK:
        return True
    if tag.role is Role.OPEN:
        return opaque in PROSE and (tag.rule != "call" or not _has_envelopes(table))
    rules = ("reasoning", "calls") if _has_envelopes(table) else ("reasoning", "call")
    return tag.role is Role.CLOSE and tag.rule in rules


@cache
def _has_envelopes(table: Table) -> bool:
    return any(tag.rule == "calls" for _, tag in table.all_tags())


def tokens(text: str, special: tuple[str, ...]) -> Iterator[str]:
    """``text`` at token-like boundaries; ``special`` strings are one token each, wherever they stand."""
    if not special:
        yield from _TOKEN.findall(text)
        return
    for part in re.split(f"({'|'.join(map(re.escape, special))})", text):
        if part in special:
            yield part
        else:
            yield from _TOKEN.findall(part)
