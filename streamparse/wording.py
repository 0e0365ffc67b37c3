"""Values, places and lists in the words of an issue: bounded, in one line, and harmless to whatever prints them.

Nothing here costs more than its result: a string of 50,000 characters is cut before it is quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from streamparse.events import Path

VALUE = 60
"""Characters of a value that is quoted: enough to recognise it in what the model wrote."""

PLACE = 120
"""Characters of a path. Deep ones keep their end, which names the field."""

_WORD = re.compile(r"[^\W\d][\w-]*")
_CUT = re.compile(r"(\".*)…(\" \([\d,]+ characters\))", re.DOTALL)
_RECOGNISED = 8
_MANY_DIGITS = 10**VALUE


def clip(text: str, size: int) -> str:
    """``text`` in at most ``size`` characters; a cut shows as ``…``."""
    return text if len(text) <= size else text[: max(size - 1, 0)] + "…"[:size]


def plain(text: str) -> str:
    """``text`` with every character that is not printable (controls, line breaks, halves of surrogate pairs, marks
    that turn the direction) written as an escape."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(ord(each)) for each in text)


def _escape(number: int) -> str:
    return {9: "\\t", 10: "\\n", 13: "\\r"}.get(number) or (
        f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
    )


def quoted(text: str, size: int = VALUE) -> str:
    """A string as JSON; a cut one says how long it is: ``"aaaa…" (50,000 characters)``."""
    if len(text) <= size:
        whole = plain(json.dumps(text, ensure_ascii=False))
        if len(whole) <= size + 2:
            return whole
    note = f" ({len(text):,} characters)"
    inner = plain(json.dumps(text[:size], ensure_ascii=False)[1:-1])
    return f'"{clip(inner, size - 1).removesuffix("…")}…"{note}'


def requoted(words: str, size: int) -> str:
    """What ``quoted`` or ``shown`` wrote, in fewer characters: a cut string keeps its end quote and its size."""
    match = _CUT.fullmatch(words)
    if match is None or len(words) <= size or size < len(match[2]) + _RECOGNISED:
        return clip(words, size)
    return f"{clip(match[1], size - len(match[2]))}{match[2]}"


def shown(value: Any, size: int = VALUE) -> str:
    """A value as JSON text, clipped; what holds other values only by its size, so that none of them shows."""
    if isinstance(value, str):
        return quoted(value, size)
    if isinstance(value, Mapping):
        return f"{{…}} with {counted(len(value), 'member')}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[…] with {counted(len(value), 'item')}" if value else "[]"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _MANY_DIGITS:
        return f"{'-' if value < 0 else ''}(more than {VALUE} digits)"
    try:
        return clip(plain(json.dumps(value)), size)
    except (TypeError, ValueError):
        return f"a Python {plain(clip(type(value).__name__, size))}"


def type_word(value: Any) -> str:
    """The JSON type of a value, ``integer`` apart from ``number``; ``none`` for what JSON cannot hold."""
    for kinds, name in _TYPES:
        if isinstance(value, kinds):
            return name
    return "none"


_TYPES: tuple[tuple[Any, str], ...] = (
    (str, "string"),
    (type(None), "null"),
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (Mapping, "object"),
    (list | tuple, "array"),
)


def place(path: Path, size: int = PLACE) -> str:
    """``("todos", 0, "content")`` as ``todos[0].content``; the arguments themselves are ``arguments``."""
    words = ""
    for step in path[-size:]:
        if isinstance(step, int):
            words += f"[{step}]"
        elif len(step) <= size and _WORD.fullmatch(step):
            words += f".{step}" if words else step
        else:
            words += f"[{quoted(step, size)}]"
    words = plain(words) or "arguments"
    return words if len(words) <= size else "…" + words[len(words) - size + 1 :]


def counted(number: int, noun: str) -> str:
    """``1 item``, ``1,200 items``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(words: Sequence[str], more: int, size: int, conjunction: str = "or") -> str:
    """As many of ``words`` as fit in ``size`` characters, and how many are left out: ``"a", "b" or +3 more``."""
    whole = _joined([*words, *([f"+{more:,} more"] if more else [])], conjunction)
    if len(whole) <= size:
        return whole
    kept = list(words)
    while len(kept) > 1:
        kept.pop()
        text = _joined([*kept, f"+{more + len(words) - len(kept):,} more"], conjunction)
        if len(text) <= size:
            return text
    return clip(whole, size)


def _joined(words: Sequence[str], conjunction: str) -> str:
    """``a, b or c``."""
    return f"{', '.join(words[:-1])} {conjunction} {words[-1]}" if len(words) > 1 else "".join(words)
