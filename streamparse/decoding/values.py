"""Typed values of native parameters: the raw text of a parameter and its schema -> a value.

The wire carries no types, so the schema decides (rules T of the semantics). ``compile_tools`` turns tool definitions
into a ``ValueType`` per parameter, once; ``ValueType.read`` reads a whole raw text and never raises. ``Mode`` says
what a decoder may do before the text is whole.

What a schema allows is a set of types (``toolset`` says how it is found). Read then, in this order:

1. *A word of an enum* (T2): a string member that is the raw text, character by character, is the value. If another
   member has the same JSON text (``["1", 1]``), the order of 2 decides between them.
2. *The first of* null, boolean, integer, number, object, array *whose canonical JSON text this is*, white space
   around it aside (T2, N8).
3. *The text, verbatim*, if a string is allowed (T1, T2, N8).
4. *Lenient forms*, only where no string is allowed (T3), each with ``coerced``: ``True``, ``NULL``, ``None``; for an
   integer, a JSON number whose value is integral and within the range of a float (``3.0``, ``1e3``), exactly.
5. *The text, verbatim*, with ``type_mismatch`` (T6). An enum without this value is no mismatch: that is validation's
   business.

A schema that says nothing (T5) is the set of object, array and string: 2 and 3 read it exactly as T5 wants. A union
of such a schema with types (``anyOf: [{}, {"type": "null"}]``) is those types and these three.

Canonical is what some JSON serialiser writes for a value and what reads back to it. Where no string is allowed,
nothing is lost by reading every JSON number, so this narrows 2 only where the alternative is a string, whose
characters it keeps:

* integer: ``0``, ``-7``; not ``-0`` (read as 0 without a string), ``042``, ``+3``, ``1_000``. Digits beyond what the
  interpreter converts (``sys.get_int_max_str_digits``) do not fit, since nothing downstream could write them either.
* number: ``1.0``, ``0.25``, ``1e-05``, ``1E5``, ``2.5E+16``; not ``1.10`` (no serialiser ends a fraction so: it is a
  version), not ``12e5`` (one digit stands before an exponent: it is an id), and not more digits than a float holds.
  What overflows (``1e400``), ``NaN`` and ``Infinity`` never fit. Integral text gives an integer: ``3`` is 3, ``3.0``
  is 3.0.
* object and array (T4): strict JSON, in any layout, with no duplicate key, lone surrogate or number out of range, and
  nested no deeper than ``limits.depth``.

``number`` includes ``integer``. White space is JSON's: space, tab, line feed, carriage return.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from json import JSONDecoder
from math import isfinite
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from streamparse.decoding.toolset import ANYTHING, Allowed, declared_tools
from streamparse.events import DeviationCode, join_words, json_text
from streamparse.limits import DEFAULT_LIMITS

_FOUND = 60
"""Characters of a deviation's ``found``: enough to recognise the value in a line of text."""

_MISS: Final = object()
"""What a reader returns for a text that is none of its type. (``None`` is a value.)"""

_Reader: TypeAlias = Callable[[str], Any]


class Mode(StrEnum):
    """What may be known of a value before its text is whole."""

    TEXT = "text"
    """A string whatever comes (T1): it can be streamed verbatim."""
    JSON = "json"
    """No string. If the first non-blank character opens an allowed container, it is JSON and streams; else ``LATE``."""
    OPEN = "open"
    """T5: complete strict JSON that is an object or an array becomes that value, all else is a string."""
    LATE = "late"
    """Decided when the value is closed (T2, T3)."""


class Reading(NamedTuple):
    """A value, and what was tolerated to get it: ``(code, expected, found)``, ``coerced`` or ``type_mismatch``."""

    value: Any
    deviations: tuple[tuple[DeviationCode, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a parameter.

    ``containers`` are the openers that mode ``JSON`` may stream (a subset of ``{`` and ``[``); none in other modes.
    ``types`` is what is allowed; ``words`` are the enum's strings that another type would read as something else.
    """

    mode: Mode
    containers: frozenset[str]
    types: frozenset[str]
    words: frozenset[str] = frozenset()
    _readers: tuple[_Reader, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        readers = _CANONICAL if "string" in self.types else _JSON
        object.__setattr__(self, "_readers", tuple(reader for name, reader in readers if name in self.types))

    def read(self, raw: str) -> Reading:
        """The value of the whole raw text. Takes any text, and never raises."""
        if self.mode is Mode.TEXT or (self.words and raw in self.words):
            return Reading(raw)
        text = raw.strip(JSON_SPACE)
        for reader in self._readers:
            if (value := reader(text)) is not _MISS:
                return Reading(value)
        return Reading(raw) if "string" in self.types else self._read_leniently(raw, text)

    def _read_leniently(self, raw: str, text: str) -> Reading:
        """T3's tolerated forms, else T6."""
        for name, reader in _LENIENT:
            if name in self.types and (value := reader(text)) is not _MISS:
                return Reading(value, (self._deviation(DeviationCode.COERCED, text),))
        return Reading(raw, (self._deviation(DeviationCode.TYPE_MISMATCH, text),))

    def _deviation(self, code: DeviationCode, text: str) -> tuple[DeviationCode, str, str]:
        implied = "integer" if "number" in self.types else ""
        expected = [name for name, _ in _JSON if name in self.types and name != implied]
        expected.sort(key="null".__eq__)  # last, as people say it
        return code, join_words(tuple(expected)), _found(text, broken=text[:1] in self.containers)


@dataclass(frozen=True, slots=True)
class ToolTypes:
    """A declared tool: the type of each of its parameters, and the schema that says so (None where there is none)."""

    name: str
    parameters: Mapping[str, ValueType]
    schema: Any = field(default=None, repr=False, compare=False)

    def type_of(self, key: str) -> ValueType | None:
        """The type of a parameter; ``None`` if the tool does not declare it."""
        return self.parameters.get(key)


class CompiledTools(dict[str, ToolTypes]):
    """The declared tools by name, ready for use: compile them once, and give them to every decoder."""

    early: Any = None
    """What early verdicts compiled of them, once somebody asked (``decoding.early``)."""


def compile_tools(tools: Iterable[Any] | None) -> CompiledTools:
    """The declared tools by name. Takes every form of definition that ``toolset`` lists; ``None`` is no tools.

    Raises ``ToolDefinitionError``, with the position in the list, for a definition that has no name, repeats one, or
    has a schema that is none."""
    if isinstance(tools, CompiledTools):
        return tools
    return CompiledTools(
        (name, ToolTypes(name, {key: value_type(each) for key, each in declared.parameters.items()}, declared.schema))
        for name, declared in declared_tools(tools).items()
    )


def value_type(allowed: Allowed) -> ValueType:
    """How to read what a schema allows. Nothing allowed is no reason to lose a value: it is read by T5."""
    types = allowed.types | _ANY_TYPES if allowed.open else allowed.types or _ANY_TYPES
    if types == _STRING:
        return ValueType(Mode.TEXT, frozenset(), types)
    if "string" not in types:
        containers = frozenset(opener for name, opener in _OPENERS.items() if name in types)
        return ValueType(Mode.JSON if containers else Mode.LATE, containers, types)
    words = _words(allowed.members, types)
    return ValueType(Mode.OPEN if types == _ANY_TYPES and not words else Mode.LATE, frozenset(), types, words)


def _words(members: tuple[Any, ...], types: frozenset[str]) -> frozenset[str]:
    """The string members whose text would be read as another type, and is no other member's (T2)."""
    plain = ValueType(Mode.LATE, frozenset(), types)
    others = {_text(member) for member in members if not isinstance(member, str)}
    readings = {member: plain.read(member).value for member in members if isinstance(member, str)}
    return frozenset(word for word, value in readings.items() if value != word and _text(value) not in others)


def _text(member: Any) -> str:
    try:
        return json_text(member)
    except (TypeError, ValueError, RecursionError):  # a Python object inside, too many digits, a cycle
        return ""


def _null(text: str) -> Any:
    return None if text == "null" else _MISS


def _boolean(text: str) -> Any:
    return _BOOLEANS.get(text, _MISS)


def _integer(text: str) -> Any:
    return _exact(text) if _INTEGER.fullmatch(text) else _MISS


def _canonical_integer(text: str) -> Any:
    return _integer(text) if text != "-0" else _MISS


def _number(text: str) -> Any:
    """A number with a fraction or an exponent; integral text is ``_integer``'s."""
    if not _NUMBER.fullmatch(text) or _INTEGER.fullmatch(text):
        return _MISS
    value = float(text)
    return value if isfinite(value) else _MISS


def _canonical_number(text: str) -> Any:
    """A number that is written with the digits that a serialiser writes."""
    if not _WRITTEN_NUMBER.fullmatch(text) or (value := _number(text)) is _MISS:
        return _MISS
    return value if _scientific(text) == _scientific(repr(value)) else _MISS


def _container(text: str) -> Any:
    """T4: strict JSON that is an object or an array."""
    if not text.startswith(("{", "[")):
        return _MISS
    try:
        value = _STRICT.decode(text)
        escaped = "\\ud" in text or "\\uD" in text  # a surrogate, perhaps alone (J2)
        (json_text(value) if escaped else text).encode()
    except (ValueError, RecursionError):
        return _MISS
    return _MISS if _too_deep(text, value) else value


def _object(text: str) -> Any:
    return _container(text) if text.startswith("{") else _MISS


def _array(text: str) -> Any:
    return _container(text) if text.startswith("[") else _MISS


def _lenient_null(text: str) -> Any:
    return None if text == "None" or text[:5].lower() == "null" else _MISS


def _lenient_boolean(text: str) -> Any:
    return _BOOLEANS.get(text[:6].lower(), _MISS)


def _lenient_integer(text: str) -> Any:
    """An integral JSON number with a fraction or an exponent, exactly."""
    if _number(text) is _MISS:
        return _MISS
    sign, digits, power = _scientific(text)
    return _exact(f"{sign}{digits}{'0' * power}") if power >= 0 else _MISS


def _exact(text: str) -> Any:
    try:
        return int(text)
    except ValueError:  # more digits than the interpreter converts
        return _MISS


def _scientific(text: str) -> tuple[str, str, int]:
    """The value of a JSON number as sign, digits without zeros around them, and power of ten; zero is ``("", "0", 0)``.

    ``text`` does not overflow a float, so a power that is cut here is that of a very small number, and tells enough.
    """
    mantissa, _, power = text.lower().partition("e")
    whole, _, fraction = mantissa.removeprefix("-").partition(".")
    written = whole + fraction
    digits = written.rstrip("0")
    if not digits:
        return "", "0", 0
    exponent = int(power.lstrip("+-").lstrip("0")[:_POWER_DIGITS] or "0") * (-1 if power.startswith("-") else 1)
    sign = "-" if text.startswith("-") else ""
    return sign, digits.lstrip("0"), exponent - len(fraction) + len(written) - len(digits)


def _too_deep(text: str, value: Any) -> bool:
    if text.count("{") + text.count("[") <= DEFAULT_LIMITS.depth:
        return False
    level = [value]
    for _ in range(DEFAULT_LIMITS.depth):
        children = chain.from_iterable(each.values() if isinstance(each, dict) else each for each in level)
        level = [child for child in children if isinstance(child, dict | list)]
    return bool(level)


def _finite(text: str) -> float:
    value = float(text)
    return value if isfinite(value) else _no_json(text)


def _no_json(text: str) -> NoReturn:
    raise ValueError(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    return members if len(members) == len(pairs) else _no_json("duplicate key")


def _found(text: str, broken: bool) -> str:
    """A text in the words of a deviation: what it is, and an excerpt on one line. ``broken`` if it began as JSON."""
    excerpt = text[: _FOUND + 1]
    for name, reader in _JSON:
        if reader(text) is not _MISS:
            shown = name if name == text else f"{name} {' '.join(excerpt.split())}"
            break
    else:
        if _NUMBER.fullmatch(text):
            shown = f"out-of-range number {excerpt}"
        else:
            shown = f"{'invalid JSON' if broken else 'string'} {excerpt!r}"
    return shown if len(shown) <= _FOUND else shown[: _FOUND - 1] + "…"


JSON_SPACE = " \t\n\r"
_BOOLEANS = {"true": True, "false": False}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WRITTEN_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)\.(?:0|[0-9]*[1-9])|[1-9](?:\.(?:0|[0-9]*[1-9]))?[eE][+-]?[0-9]+)")
"""A fraction has no zeros at its end but in ``.0``; before an exponent stands one digit."""

_POWER_DIGITS = 9

_STRICT = JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_json)

_STRING = frozenset({"string"})
_ANY_TYPES = frozenset({"object", "array", "string"})
_OPENERS = {"object": "{", "array": "["}

_JSON: tuple[tuple[str, _Reader], ...] = (
    ("null", _null),
    ("boolean", _boolean),
    ("integer", _integer),
    ("number", _number),
    ("object", _object),
    ("array", _array),
)
"""T2's order. What a JSON parser takes: these texts can be nothing else where no string is allowed."""

_CANONICAL: tuple[tuple[str, _Reader], ...] = tuple(
    (name, {"integer": _canonical_integer, "number": _canonical_number}.get(name, reader)) for name, reader in _JSON
)
"""What a JSON serialiser writes: any other text is a string, where one is allowed."""

_LENIENT: tuple[tuple[str, _Reader], ...] = (
    ("null", _lenient_null),
    ("boolean", _lenient_boolean),
    ("integer", _lenient_integer),
)
"""T3, where no string is allowed."""

ANY = value_type(ANYTHING)
"""T5: the type of a parameter that is not declared, or whose schema says nothing."""
