"""Regular expressions of schemas, as far as they can be told here.

JSON Schema's expressions are ECMAScript's, the validator's are Rust's, and this is Python. A *plain* expression means
the same in all three: letters, digits and a few signs, classes, groups, alternatives, and quantifiers on single
characters. Everything else cannot be told; nor can a long text or one with odd characters. A plain expression also
takes a bounded time: no group repeats, and at most two quantifiers leave a choice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

Matcher: TypeAlias = Callable[[str], bool | None]
"""Whether a text matches; None if that cannot be told."""

_LONGEST = 256
"""Characters of a text that is matched."""

_ATOM = r"(?:[\w :;,/@#%&=<>!~-]|\\[dw.\-/+*?()\[\]{}|^$_]|\.|\[\^?(?:[\w :;,/@#%&=<>!~.+*?()|-]|\\[dw.\-/+])+\])"
_QUANTIFIER = r"(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})?"
_PLAIN = re.compile(rf"\^?(?:{_ATOM}{_QUANTIFIER}|\((?:\?:)?|\)|\|)*\$?", re.ASCII)
_OPEN_ENDED = re.compile(r"[*+]|(?<!\()\?|,\d*\}")
_SET_SIGNS = re.compile(r"&&|--|~~|\|\||\[\[")
_REPEATED_GROUP = re.compile(r"\)[*+?{]")
_MOST_OPEN = 2


def matcher(pattern: Any) -> Matcher | None:
    """A matcher of a plain expression; None for every other."""
    if not isinstance(pattern, str) or not _is_plain(pattern):
        return None
    anchored = pattern[:-1] + r"\Z" if pattern.endswith("$") and not pattern.endswith(r"\$") else pattern
    try:
        search = re.compile(anchored, re.ASCII).search
    except (re.error, OverflowError, RecursionError):
        return None
    return lambda text: (search(text) is not None) if len(text) <= _LONGEST and text.isprintable() else None


def _is_plain(pattern: str) -> bool:
    if len(pattern) > _LONGEST or not _PLAIN.fullmatch(pattern):
        return False
    if _REPEATED_GROUP.search(pattern) or _SET_SIGNS.search(pattern):
        return False
    if "|" in pattern and (pattern.startswith("^") or pattern.endswith("$")) and "(" not in pattern:
        return False  # an anchor that belongs to one alternative: rare, and easily read wrongly
    return len(_OPEN_ENDED.findall(pattern)) <= _MOST_OPEN
