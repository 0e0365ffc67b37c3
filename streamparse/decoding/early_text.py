"""The raw text of a native parameter, while nobody can say yet what it is (rules T).

A value that is decided when it is closed gives no events, but its first characters already tell what it can become: a
number, a literal in the forms that T3 tolerates, JSON, or the text itself, which every misfit stays (T6). When the
schema allows none of these, the parameter is rejected.
"""

from __future__ import annotations

import re
from typing import Final

from streamparse.decoding.early_rules import ARRAY, FALSE, NULL, NUMBER, OBJECT, STRING, TRUE, Fault, found_word
from streamparse.decoding.early_schema import Shape

LOOKED_AT: Final = 64
"""Characters of such a text that are looked at. Real numbers and literals are shorter; the rest is judged at its
end."""

_NUMBER = re.compile(
    r"-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+(?:[eE](?:[+-]?[0-9]*)?)?)?|[eE](?:[+-]?[0-9]*)?)?)?"
    r"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\s*"
)
"""The beginning of a JSON number, or all of it and white space."""

_WORDS: Final = {NULL: "null", TRUE: "true", FALSE: "false", OBJECT: "{", ARRAY: "["}
_KINDS: Final[dict[str, tuple[int, ...]]] = {
    "null": (NULL,),
    "boolean": (TRUE, FALSE),
    "integer": (NUMBER,),
    "number": (NUMBER,),
    "object": (OBJECT,),
    "array": (ARRAY,),
}


def late_fault(shape: Shape, types: frozenset[str], raw: str, *, strip: bool) -> tuple[Fault, str] | None:
    """What is wrong with every value that a text with this beginning can become, read as one of ``types``; and the JSON
    type that it seems to have. What is right with a text is right with its beginnings."""
    text = raw.lstrip()
    if not text or any(_may_be(kind, text, types) for kind in _fitting(shape, types)):
        return None
    plan = shape.plan(STRING)
    if plan.refusal is None:
        words = raw.strip() if strip else raw
        fault = plan.prefix_fault(words[: plan.head], len(words))
        return None if fault is None else (fault, "string")
    kind = next((kind for name in sorted(types) for kind in _KINDS.get(name, ()) if _may_be(kind, text, types)), STRING)
    refusal = shape.plan(kind).refusal
    return None if refusal is None else (refusal.fault(kind), found_word(kind))


def _fitting(shape: Shape, types: frozenset[str]) -> tuple[int, ...]:
    """The kinds, apart from a string, that the types and the schema allow."""
    found = shape.fitting.get(types)
    if found is None:
        kinds = dict.fromkeys(kind for name in sorted(types) for kind in _KINDS.get(name, ()))
        found = shape.fitting[types] = tuple(kind for kind in kinds if shape.plan(kind).refusal is None)
    return found


def _may_be(kind: int, text: str, types: frozenset[str]) -> bool:
    """Whether a text can become a value of this kind. T3 tolerates more where no string is allowed."""
    if kind == NUMBER:
        return _NUMBER.fullmatch(text) is not None
    word = _WORDS[kind]
    if kind & (OBJECT | ARRAY):
        return text[0] == word
    if "string" in types:
        return _begins(word, text)
    return _begins(word, text.lower()) or (kind == NULL and _begins("None", text))


def _begins(word: str, text: str) -> bool:
    return word.startswith(text) or text.rstrip() == word
