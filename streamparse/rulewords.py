"""What a rule of a schema asks for, in the words of an issue: ``at most 5 items``. The judge and the decoders' early
verdicts say the same of the same rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streamparse.events import IssueCode
from streamparse.wording import VALUE, clip, counted, plain, shown

Words = Callable[[Any], str]


def bound_words(schema: Mapping[str, Any]) -> str:
    """The bounds of a number: ``at least 1 and at most 10``; empty where there are none."""
    bounds = [(_named(key, schema), schema[key]) for key in BOUNDS if type(schema.get(key)) in (int, float)]
    return " and ".join(RULE_WORDS[key][1](value) for key, value in bounds)


def type_words(types: Iterable[str]) -> list[str]:
    """Types in a fixed order; ``number`` includes ``integer``."""
    return [name for name in _TYPE_ORDER if name in types and not (name == "integer" and "number" in types)]


def _named(key: str, schema: Mapping[str, Any]) -> str:
    """The keyword that a bound means."""
    exclusive = _EXCLUSIVE.get(key, "")
    return exclusive if schema.get(exclusive) is True else key


def _number(words: str) -> Words:
    return lambda limit: f"{words} {shown(limit)}"


def _count(words: str, noun: str) -> Words:
    return lambda limit: f"{words} {counted(limit, noun)}" if isinstance(limit, int) else f"{words} {noun}s"


def _text(words: str) -> Words:
    return lambda value: f"{words} {clip(plain(str(value)), 2 * VALUE)}"


_TYPE_ORDER = ("string", "integer", "number", "boolean", "array", "object", "null")
_EXCLUSIVE = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}
"""In draft 4 these are flags, which make of a bound an exclusive one."""

BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")
RULE_WORDS: dict[str, tuple[IssueCode, Words]] = {
    "minimum": (IssueCode.OUT_OF_RANGE, _number("at least")),
    "exclusiveMinimum": (IssueCode.OUT_OF_RANGE, _number("more than")),
    "maximum": (IssueCode.OUT_OF_RANGE, _number("at most")),
    "exclusiveMaximum": (IssueCode.OUT_OF_RANGE, _number("less than")),
    "multipleOf": (IssueCode.OUT_OF_RANGE, _number("a multiple of")),
    "pattern": (IssueCode.PATTERN, _text("text that matches")),
    "format": (IssueCode.PATTERN, _text("the format")),
    "maxLength": (IssueCode.TOO_LONG, _count("at most", "character")),
    "minLength": (IssueCode.TOO_SHORT, _count("at least", "character")),
    "maxItems": (IssueCode.TOO_MANY, _count("at most", "item")),
    "minItems": (IssueCode.TOO_FEW, _count("at least", "item")),
    "maxProperties": (IssueCode.TOO_MANY, _count("at most", "member")),
    "minProperties": (IssueCode.TOO_FEW, _count("at least", "member")),
    "uniqueItems": (IssueCode.NOT_UNIQUE, lambda _: "each item only once"),
    "contains": (IssueCode.UNFIT, lambda _: "at least one item that the schema's 'contains' describes"),
    "not": (IssueCode.FORBIDDEN, lambda _: "anything but what the schema's 'not' describes"),
    "falseSchema": (IssueCode.FORBIDDEN, lambda _: "nothing at all"),
    "additionalItems": (IssueCode.TOO_MANY, lambda _: "no further items"),
    "unevaluatedItems": (IssueCode.TOO_MANY, lambda _: "no further items"),
}
