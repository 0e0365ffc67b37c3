"""The skeleton of a result: what a model needs to know of a text that it has read before (B18).

Every line gets a rank, and lines are kept by rank until the room is used up, the first ones first. Kept lines stand in
their order, with their numbers and without their indentation; ``…`` stands where some are missing.

====  ========================================================================
rank  line
====  ========================================================================
0     errors, failures, exit codes
1     files, and headers of a listing or a diff
2     functions, classes, types
3     variables, imports, changed lines of a diff
4     other lines
5     comments
====  ========================================================================

Blank lines are never kept. It is a heuristic over lines and knows no language: nothing is decided by it but what a
model sees of an old result, and the whole text can be recalled.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final, NamedTuple

LINE: Final = 160
"""Characters of a line that are kept. Longer ones are data."""

OTHER: Final = 4
COMMENT: Final = 5

_NUMBERED: Final = re.compile(r"\s*(\d{1,7})\s*[:|\t→]\s?(.*)", re.DOTALL)
"""A line that has its number in front, as ``read_file`` and ``grep -n`` write it."""

_RANKS: Final = (
    re.compile(
        r"\b(error|exception|traceback|fail(ed|ure|ures)?|fatal|panic(ked)?|assert(ion)?error|undefined|denied"
        r"|timed? ?out|exit (code|status)|no such|not found)\b|^E\s|\w(Error|Exception)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"^(diff --git|index [0-9a-f]|--- |\+\+\+ |@@ |==> |# file|file:)|^[\w./\\-]+\.\w{1,6}(:\d+.*|:)?$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^[+-]?\s*((export|default|public|private|protected|internal|static|abstract|final|async|pub(\([^)]*\))?|unsafe"
        r"|virtual|inline|override|open|sealed|data)\s+)*"
        r"(def|class|function\*?|fn|func|fun|struct|enum|interface|trait|impl|type|namespace|module|record|union|macro"
        r"|template|protocol|@\w+)\b"
        r"|^[\w:<>*&\s]+\s[\w:~]+\([^;]*\)\s*(const)?\s*\{$"
    ),
    re.compile(
        r"^([+-]|(const|let|var|import|from|use|using|package|#include|return|raise|throw)\b|[\w.\[\]]+\s*(:[^=]+)?=[^=])"
    ),
)
_COMMENT: Final = re.compile(r"^(#(?!include)|//|/\*|\*|--\s|;|<!--|\"\"\"|''')")


class Line(NamedTuple):
    """A line that is not blank: its rank, its place in the text, the number that it says it has, and what it says."""

    rank: int
    place: int
    number: int
    text: str


def rank_of(line: str) -> int:
    """How soon the line goes, 0 the last. ``line`` has neither its number nor its indentation."""
    ranks = (rank for rank, pattern in enumerate(_RANKS) if pattern.search(line[:LINE]))
    rank = next(ranks, OTHER)
    return COMMENT if rank and _COMMENT.match(line) else rank


def skeleton(text: str, room: int) -> str:
    """The lines that matter most, ``"12: def f():"``, at most ``room`` characters."""
    lines = _lines(text)
    kept = {}
    for line in sorted(lines):
        shown = f"{line.number}: {line.text if len(line.text) <= LINE else line.text[:LINE] + '…'}"
        needed = len(shown) + 3  # its line break, and a mark for what is missing before it
        if needed <= room:
            room -= needed
            kept[line.place] = shown
    out: list[str] = []
    for line in lines:
        if line.place in kept:
            out.append(kept[line.place])
        elif not out or out[-1] != "…":
            out.append("…")
    return "\n".join(out)


def _lines(text: str) -> list[Line]:
    """The lines that are not blank. Numbers in front of them are read if most lines have one, and they rise: a column
    of times is none."""
    given = [(place, line) for place, line in enumerate(text.splitlines(), 1) if line.strip()]
    found = {place: match for place, line in given if (match := _NUMBERED.match(line))}
    numbers = [int(match[1]) for match in found.values()]
    numbered = 2 * len(found) > len(given) and all(one < other for one, other in pairwise(numbers))
    lines = []
    for place, line in given:
        match = found.get(place) if numbered else None
        number, said = (int(match[1]), match[2].strip()) if match else (place, line.strip())
        if said:
            lines.append(Line(rank_of(said), place, number, said))
    return lines
