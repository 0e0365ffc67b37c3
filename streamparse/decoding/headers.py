"""What stands between ``<invoke `` and ``>``: a name, by the rules of N4.

Two forms: *attributes* (``name="f"``, where ``>`` inside quotes is data) and *bare* (``<function=f>``). A quote that
is not closed before a line break, or within the name limit, is no quote and no part of the name."""

from __future__ import annotations

import re
from typing import TypeAlias

from streamparse.decoding.table import Tag
from streamparse.decoding.verdict import DATA, TAKE, WAIT, Verdict

ATTRIBUTE_KINDS = frozenset({"NAME_ATTRIBUTES", "KEY_ATTRIBUTES"})
"""The opaque text that is a list of attributes; other names and keys are bare."""

_ATTRIBUTE = re.compile(
    r"""\s*(?P<key>[^\s="']+)(?:\s*=\s*(?:"(?P<double>[^"\n]*)"|'(?P<single>[^'\n]*)'|(?P<bare>[^\s]*)))?"""
)


_QUOTE = re.compile("[\"']")
_ATTRIBUTE_BEGINS = re.compile(r"""\s*name\s*=\s*["']?(?P<name>[^\s"'>]*)""")
_BARE_BEGINS = re.compile(r"""\s*(?P<name>[^\s"'>]*)""")


Header: TypeAlias = tuple[str, tuple[str, ...]]
"""A header that was read: its name (empty if missing), and the names of the attributes that mean nothing."""


def read_header(text: str, attributes: bool) -> Header:
    """The name in a header's text (N4)."""
    if attributes and text[:6] == 'name="' and text.find('"', 6) == len(text) - 1 and "\n" not in text:
        return text[6:-1], ()  # the canonical form, quickly
    if not attributes:
        name = text.strip()
        return name[1:-1] if len(name) > 1 and name[0] in "\"'" and name[0] == name[-1] else name, ()
    name, at = "", 0
    extra: list[str] = []
    while True:
        found = _ATTRIBUTE.match(text, at)
        if found is None or found.end() == at:
            if at >= len(text):
                return name, tuple(extra)
            at += 1  # a stray quote or sign
            continue
        at = found.end()
        if found["key"] == "name" and not name:
            name = _value(found)
        else:
            extra.append(found["key"])


def name_so_far(text: str, attributes: bool) -> str:
    """The beginning of the name in a header that is being read, as far as it is certain; more of it may follow."""
    found = (_ATTRIBUTE_BEGINS if attributes else _BARE_BEGINS).match(text)
    return found["name"] if found else ""


def _value(found: re.Match[str]) -> str:
    for group in ("double", "single"):
        if found[group] is not None:
            return found[group]
    return (found["bare"] or "").replace('"', "").replace("'", "")


def header_end(text: str, end: str, attributes: bool) -> int | None:
    """Where a header ends in ``text``: the first ``end`` outside quotes. -1 if it has not come; None while a quote is
    open that this line may still close (N4)."""
    at = 0
    while True:
        place = text.find(end, at)
        quote = _QUOTE.search(text, at) if attributes else None
        if quote is None or 0 <= place < quote.start():
            return place
        closing = text.find(quote[0], quote.end())
        line_end = text.find("\n", quote.end())
        if closing < 0 and line_end < 0:
            return None
        at = closing + 1 if closing >= 0 and (line_end < 0 or closing < line_end) else quote.end()


class HeaderGuard:
    """Says of ``>`` in a list of attributes whether it stands inside quotes."""

    __slots__ = ("_limit", "_text")

    def __init__(self, limit: int) -> None:
        self._text = ""
        self._limit = limit

    def begin(self) -> None:
        """Another header."""
        self._text = ""

    def see(self, text: str) -> None:
        """More of the header."""
        self._text += text

    def judge(self, tag: Tag, buffer: str, end: int, final: bool) -> Verdict:
        """DATA inside quotes, WAIT while the quote may still be closed on this line."""
        seen = len(self._text)
        room = max(0, self._limit - seen)
        rest = buffer[end : end + room]
        place = header_end(f"{self._text}{tag.text}{rest}", tag.text, True)
        if place is None:
            return TAKE if final or len(rest) == room else WAIT
        return TAKE if place == seen else DATA
