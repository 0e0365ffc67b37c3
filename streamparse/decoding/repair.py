r"""Tolerant reading of JSON, by tier (J5).

Tolerance is explicit: the caller says how far a reader may go, and every repair is a ``Deviated`` event with its tier
and its place. A tier includes the ones below it:

=====  ==================  =====================================================================================
tier   name                what is tolerated
=====  ==================  =====================================================================================
0      ``STRICT``          nothing: RFC 8259
1      ``HARMLESS``        what cannot change the meaning: ``//`` and ``/* */`` comments, a trailing comma, raw
                           control characters in strings, a Markdown code fence around the whole value
2      ``OBVIOUS``         what has one likely meaning: single quotes (with Python's ``\'``, ``\x41`` and
                           ``\U0001f600``), Python literals, tuples as arrays, unquoted keys, text before and after
                           the outermost braces, a JSON string that holds the JSON
3      ``GUESS``           what may change the meaning: illegal escapes kept literally, lone surrogates as U+FFFD,
                           typographic quotes
=====  ==================  =====================================================================================

Four rules hold for every tier:

* *Truncation is judged first.* A string, an object, an array, a tuple, a comment or a fence that the text leaves open
  is never closed by a repair; a fence neither where text stands before it. The only thing that the end of the text may
  close is a ``//`` comment, and text behind the value: nothing else could.
* *A repair needs no lookahead that a stream does not have.* It is decided where it stands, so that what was emitted
  before it stays true, and so that chunking does not matter.
* *What stays ambiguous is refused.* See below.
* *From* ``UNTRUSTED`` *on, a call that was repaired is not trusted.*

What is ambiguous, and therefore an error at every tier:

* *Duplicate keys*, however they are quoted.
* *A second value.* Text behind the value is dropped only if it holds no ``{`` and no ``}`` (where an array may be the
  value, no bracket either), and does not begin as JSON goes on: with a comma, a colon, a quote or a bracket. So
  ``{"a": 1}{"b": 2}`` and ``{"a": 1}, "b": 2}`` stay ``trailing_text``. Text before the value ends at the first ``{``,
  whatever it is. It does not begin with another JSON value: ``[{"a": 1}]``, ``null`` and ``12`` are ``not_an_object``.
* *An apostrophe* in a string in single quotes ends it; what follows it is then an error.
* *One value in parentheses*: ``(1)`` is no tuple, ``(1,)`` is one.
* *The words* ``true``, ``false``, ``null``, ``True``, ``False``, ``None`` as unquoted keys.
* *Escapes of which some are legal.* A string with an illegal escape was not escaped: from there on only ``\"``, ``\\``
  and ``\/`` are read as escapes (``\d C:\temp`` holds no tab). If a legal one, as ``\n``, stands before it in the same
  string, nobody knows what that was.
* *Mixed quotes.* What ``“`` or ``”`` opens, ``”`` closes, and ``’`` what ``‘`` or ``’`` opens. The opening quote, or
  the straight one, in between could be the end.
* *A string in a string in a string.* One level of JSON in a string is undone, with no other text in that string.

The reader asks ``allows(repair, kind)`` at the place where strict reading would stop, and reports with ``repaired``. A
new repair is a line in ``REPAIRS`` and a branch at that place.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from streamparse.events import Deviation, DeviationCode, Path


class Tier(IntEnum):
    """How far a repair goes. The values are those of the option ``repair=``."""

    STRICT = 0
    HARMLESS = 1
    OBVIOUS = 2
    GUESS = 3


UNTRUSTED: Final = Tier.OBVIOUS
"""The first tier that costs a call its ``trusted``."""

COMMENT: Final = "comment"
TRAILING_COMMA: Final = "trailing comma"
CONTROL_CHARACTER: Final = "control character"
CODE_FENCE: Final = "code fence"

SINGLE_QUOTES: Final = "single quotes"
PYTHON_LITERAL: Final = "Python literal"
TUPLE: Final = "tuple"
UNQUOTED_KEY: Final = "unquoted key"
TEXT_BEFORE: Final = "text before the value"
TEXT_AFTER: Final = "text after the value"
JSON_IN_STRING: Final = "JSON in a string"

ILLEGAL_ESCAPE: Final = "illegal escape"
LONE_SURROGATE: Final = "lone surrogate"
TYPOGRAPHIC_QUOTES: Final = "typographic quotes"

REPAIRS: Final[dict[str, Tier]] = {
    COMMENT: Tier.HARMLESS,
    TRAILING_COMMA: Tier.HARMLESS,
    CONTROL_CHARACTER: Tier.HARMLESS,
    CODE_FENCE: Tier.HARMLESS,
    SINGLE_QUOTES: Tier.OBVIOUS,
    PYTHON_LITERAL: Tier.OBVIOUS,
    TUPLE: Tier.OBVIOUS,
    UNQUOTED_KEY: Tier.OBVIOUS,
    TEXT_BEFORE: Tier.OBVIOUS,
    TEXT_AFTER: Tier.OBVIOUS,
    JSON_IN_STRING: Tier.OBVIOUS,
    ILLEGAL_ESCAPE: Tier.GUESS,
    LONE_SURROGATE: Tier.GUESS,
    TYPOGRAPHIC_QUOTES: Tier.GUESS,
}
"""Each repair that is implemented, by the name that its deviation carries in ``detail``."""


def allows(repair: int, kind: str) -> bool:
    """Whether reading at this tier may make this repair."""
    return repair >= REPAIRS[kind]


def repaired(kind: str, offset: int, path: Path, found: str = "") -> Deviation:
    """The deviation that reports one repair; ``found`` is the beginning of a text that is dropped."""
    return Deviation(DeviationCode.REPAIRED, offset, detail=kind, path=path, found=found, tier=int(REPAIRS[kind]))
