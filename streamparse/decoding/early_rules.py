"""Schemas, compiled for early verdicts: what one schema object says, and what is wrong with a value in its words.

A ``Rule`` knows the keywords of one object, apart from those that join schemas (``early_schema``). What it does not
understand allows everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple

from streamparse.decoding.early_patterns import Matcher, matcher
from streamparse.events import Issue, IssueCode, Level
from streamparse.rulewords import BOUNDS, RULE_WORDS, bound_words, type_words
from streamparse.wording import shown, type_word

NULL, FALSE, TRUE, NUMBER, STRING, OBJECT, ARRAY = (1 << bit for bit in range(7))
"""The kind of a value, which its first character tells. Booleans are two kinds: ``t`` is already not ``false``."""

EVERY: Final = 127

_TYPES: Final = {
    "null": NULL,
    "boolean": FALSE | TRUE,
    "integer": NUMBER,
    "number": NUMBER,
    "string": STRING,
    "object": OBJECT,
    "array": ARRAY,
}
_FOUND: Final = {
    NULL: "null",
    FALSE: "boolean",
    TRUE: "boolean",
    NUMBER: "number",
    STRING: "string",
    OBJECT: "object",
    ARRAY: "array",
}
NOTHING: Final = object()
"""Where no value stands, or not yet."""

LISTED: Final = 8
"""Allowed values that an issue lists, as the judge's."""

_EXACT: Final = 2**53
"""Beyond it a validator may compute with floats."""


def kind_of(value: Any) -> int:
    """The kind of a complete value."""
    if value is True:
        return TRUE
    if isinstance(value, str):
        return STRING
    if value is None:
        return NULL
    if value is False:
        return FALSE
    return OBJECT if isinstance(value, Mapping) else ARRAY if isinstance(value, list | tuple) else NUMBER


class Fault(NamedTuple):
    """Why a value is rejected. The words are only made when somebody wants the issue: of most branches of a union
    nobody does. ``words`` gives what is allowed."""

    code: IssueCode
    words: Callable[[], Sequence[str]]

    def issue(self, path: tuple[str | int, ...], found: str = "", value: Any = NOTHING) -> Issue:
        """The issue at a path; ``found`` and ``value`` say what stands there, as far as it is known."""
        level = Level.REPRESENTATION if self.code is IssueCode.WRONG_TYPE else Level.SCHEMA
        words = list(dict.fromkeys(self.words()))
        shown_value = "" if value is NOTHING else shown(value)
        return Issue(self.code, path, found, shown_value, tuple(words[:LISTED]), len(words[LISTED:]), level=level)


def joined(faults: Sequence[Fault]) -> Fault:
    """One fault for a union whose branches all have one: of the first code, with the words of all that share it."""
    alike = [fault.words for fault in faults if fault.code is faults[0].code]
    return Fault(faults[0].code, lambda: [word for words in alike for word in words()])


class Refusal(NamedTuple):
    """Why a kind of value is refused: the constants and the types that may stand there instead."""

    values: tuple[Any, ...]
    types: frozenset[str]

    def fault(self, kind: int) -> Fault:
        """In the words of an issue."""
        if not self.values and not self.types:
            return says("falseSchema", None)
        alike = any(_TYPES.get(type_word(each), 0) & kind for each in self.values)
        return Fault(IssueCode.NOT_IN_ENUM if alike else IssueCode.WRONG_TYPE, self._words)

    def _words(self) -> list[str]:
        return [*map(shown, self.values), *type_words(self.types)]


def says(keyword: str, limit: Any) -> Fault:
    """The fault of a value that breaks one keyword, whose value is ``limit``."""
    code, words = RULE_WORDS[keyword]
    return Fault(code, lambda: (words(limit),))


def found_word(kind: int) -> str:
    """The JSON type of a kind."""
    return _FOUND[kind]


class Rule:
    """The keywords of one schema object that this module understands, apart from those that join schemas."""

    __slots__ = (
        "_pattern",
        "_patterns",
        "_rest",
        "_rest_items",
        "_whole",
        "kinds",
        "least",
        "members",
        "most",
        "prefix",
        "properties",
        "required",
        "schema",
        "types",
        "words",
    )

    def __init__(self, schema: Mapping[str, Any] | bool, *, prefixes: bool = True) -> None:
        self.schema: Mapping[str, Any] = {} if isinstance(schema, bool) else schema
        get = self.schema.get
        self.kinds, self.types = _kinds(get("type"))
        self._whole = "integer" in self.types and "number" not in self.types
        self.members = _members(self.schema)
        self.words: tuple[str, ...] | None = None
        if self.members is not None:
            self.kinds &= sum({kind_of(each) for each in self.members})
            self.words = tuple(sorted({each for each in self.members if isinstance(each, str)}))
        if schema is False:
            self.kinds = 0
        texts, objects, arrays = ("Length", STRING), ("Properties", OBJECT), ("Items", ARRAY)
        sizes = (texts, objects, arrays)
        self.most = {kind: most for name, kind in sizes if (most := _count(get(f"max{name}"))) is not None}
        self.least = {kind: least for name, kind in sizes if (least := _count(get(f"min{name}")))}
        self._pattern: Matcher | None = matcher(get("pattern"))
        properties = get("properties")
        self.properties: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        patterns = get("patternProperties")
        self._patterns: list[tuple[Matcher | None, Any]] = []
        if isinstance(patterns, Mapping):
            self._patterns = [(matcher(pattern), each) for pattern, each in patterns.items()]
        self._rest: Any = get("additionalProperties")
        self._set_items(prefixes)
        required = get("required")
        names = required if isinstance(required, list | tuple) else ()
        self.required = tuple(name for name in names if isinstance(name, str))

    def _set_items(self, prefixes: bool) -> None:
        prefix, rest = self.schema.get("prefixItems") if prefixes else None, self.schema.get("items")
        if isinstance(rest, list | tuple):  # as it was written before 2020-12
            prefix, rest = rest, self.schema.get("additionalItems")
        self.prefix: tuple[Any, ...] = tuple(prefix) if isinstance(prefix, list | tuple) else ()
        self._rest_items: Any = rest

    @property
    def refusal(self) -> Refusal:
        """What may stand here, for a value whose kind is wrong."""
        if self.members is not None:
            return Refusal(tuple(self.members), frozenset())
        return Refusal((), self.types if self.kinds else frozenset())

    @property
    def plain_words(self) -> bool:
        """Whether, of a string, nothing but constants is checked."""
        return self._pattern is None and STRING not in self.most and STRING not in self.least

    def speaks_of(self, kind: int) -> bool:
        """Whether a value of this kind needs a look."""
        if self.members is not None and kind & (STRING | NUMBER | OBJECT | ARRAY):
            return True
        if kind in self.most or kind in self.least:
            return True
        if kind == STRING:
            return self._pattern is not None
        if kind == NUMBER:
            return self._whole or any(type(self.schema.get(key)) in (int, float) for key in BOUNDS)
        if kind == OBJECT:
            return bool(self.properties or self._patterns or self.required or self._rest not in (None, True))
        return kind == ARRAY and bool(self.prefix or self._rest_items not in (None, True))

    def text_fault(self, value: str) -> Fault | None:
        """What is wrong with a complete string, apart from its being no constant, and too long."""
        if len(value) > self.most.get(STRING, len(value)):
            return says("maxLength", self.most[STRING])
        if len(value) < self.least.get(STRING, 0):
            return says("minLength", self.least[STRING])
        if self._pattern is not None and self._pattern(value) is False:
            return says("pattern", self.schema["pattern"])
        return None

    def number_fault(self, value: Any) -> Fault | None:
        """What is wrong with a complete number."""
        if self._whole and isinstance(value, float) and not value.is_integer():
            return Fault(IssueCode.WRONG_TYPE, lambda: type_words(self.types))
        if self.members is not None and not any(equal(value, each) for each in self.members):
            return Refusal(tuple(self.members), frozenset()).fault(NUMBER)
        if any(_breaks(keyword, value, self.schema.get(keyword)) for keyword in BOUNDS):
            return Fault(IssueCode.OUT_OF_RANGE, lambda: (bound_words(self.schema),))
        return None

    def declares(self, key: str) -> bool:
        """Whether a member of this name is declared, or may be: some patterns cannot be told."""
        return key in self.properties or any(match is None or match(key) is not False for match, _ in self._patterns)

    def forbids(self, key: str) -> bool:
        """Whether no member of this name may stand here."""
        return self._rest is False and not self.declares(key)

    def schemas_of(self, key: str) -> list[Any]:
        """The schemas of a member."""
        found = [self.properties[key]] if key in self.properties else []
        found += [schema for match, schema in self._patterns if match is not None and match(key) is True]
        return found if found or self._rest is None or self.declares(key) else [self._rest]

    def schemas_at(self, index: int) -> list[Any]:
        """The schemas of an item."""
        if index < len(self.prefix):
            return [self.prefix[index]]
        return [] if self._rest_items is None else [self._rest_items]

    def close_fault(self, value: Any) -> Fault | None:
        """What is wrong with a complete object or array."""
        kind, name = (ARRAY, "minItems") if isinstance(value, list | tuple) else (OBJECT, "minProperties")
        if len(value) < self.least.get(kind, 0):
            return says(name, self.least[kind])
        if self.members is not None and not any(equal(value, each) for each in self.members):
            return Refusal(tuple(self.members), frozenset()).fault(kind)
        return None


def _kinds(type_: Any) -> tuple[int, frozenset[str]]:
    """The kinds and the names of a ``type``. One that is not known cannot be told."""
    names = (type_,) if isinstance(type_, str) else type_ if isinstance(type_, list | tuple) else ()
    known = [name for name in names if isinstance(name, str) and name in _TYPES]
    if not names or len(known) < len(names):
        return EVERY, frozenset()
    kinds = 0
    for name in known:
        kinds |= _TYPES[name]
    return kinds, frozenset(known)


def _members(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values that ``enum`` and ``const`` leave; None if they say nothing."""
    values = schema.get("enum")
    found = list(values) if isinstance(values, list | tuple) else None
    if "const" in schema:
        const = schema["const"]
        found = [const] if found is None or any(equal(const, each) for each in found) else []
    if found is None or not all(_is_json(each) for each in found):
        return None
    return found


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def equal(left: Any, right: Any) -> bool:
    """Equal as JSON values: ``1`` and ``1.0`` are, ``1`` and ``true`` are not."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


def _count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value != value // 1:
        return None
    return int(value)


def _breaks(keyword: str, value: Any, limit: Any) -> bool:
    """Whether a number breaks a bound, for certain."""
    if type(limit) not in (int, float) or (type(limit) is float and not isfinite(limit)):
        return False
    if keyword == "minimum":
        return bool(value < limit)
    if keyword == "maximum":
        return bool(value > limit)
    if keyword == "exclusiveMinimum":
        return bool(value <= limit)
    if keyword == "exclusiveMaximum":
        return bool(value >= limit)
    whole = limit > 0 and limit == limit // 1 and max(abs(value), limit) <= _EXACT
    return bool(whole and value % limit != 0)
