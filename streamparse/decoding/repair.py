"""Tolerant reading of JSON, by tier (J5).

Tolerance is explicit: the caller says how far a reader may go, and every repair is a ``Deviated`` event with its tier
and its place. A tier includes the ones below it:

=====  ==================  =====================================================================================
tier   name                what is tolerated
=====  ==================  =====================================================================================
0      ``STRICT``          nothing: RFC 8259
1      ``HARMLESS``        what cannot change the meaning: ``//`` and ``/* */`` comments, a trailing comma, raw
                           control characters in strings, a Markdown code fence around the whole value
2      ``OBVIOUS``         what has one likely meaning. Reserved, nothing is implemented: single quotes, Python
                           literals and tuples, unquoted keys, text before or after the value, a JSON string that
                           holds the JSON
3      ``GUESS``           what may change the meaning. Reserved, nothing is implemented: illegal escapes kept
                           literally, lone surrogates as U+FFFD, typographic quotes
=====  ==================  =====================================================================================

Three rules hold for every tier:

* *Truncation is judged first.* A string, an object, an array, a comment or a fence that the text leaves open is never
  closed by a repair. The only thing that the end of the text may close is a ``//`` comment: nothing else could.
* *A repair needs no lookahead that a stream does not have.* It is decided where it stands, so that what was emitted
  before it stays true, and so that chunking does not matter.
* *From* ``UNTRUSTED`` *on, a call that was repaired is not trusted.*

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

REPAIRS: Final[dict[str, Tier]] = {
    COMMENT: Tier.HARMLESS,
    TRAILING_COMMA: Tier.HARMLESS,
    CONTROL_CHARACTER: Tier.HARMLESS,
    CODE_FENCE: Tier.HARMLESS,
}
"""Each repair that is implemented, by the name that its deviation carries in ``detail``."""


def allows(repair: int, kind: str) -> bool:
    """Whether reading at this tier may make this repair."""
    return repair >= REPAIRS[kind]


def repaired(kind: str, offset: int, path: Path) -> Deviation:
    """The deviation that reports one repair."""
    return Deviation(DeviationCode.REPAIRED, offset, detail=kind, path=path, tier=int(REPAIRS[kind]))
