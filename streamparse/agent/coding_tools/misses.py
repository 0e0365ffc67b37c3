"""A fragment that does not occur: where something almost like it does, and what the difference is.

Lines are compared after forgetting one thing more at a time: the white space, the typography, the case, line numbers
that were copied along. What is found is shown as it stands in the file, so that it can be copied.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from itertools import islice

from streamparse.agent.coding_tools.bounds import LINE_CHARACTERS
from streamparse.agent.coding_tools.outcome import clipped
from streamparse.agent.coding_tools.text import SourceText

_PLACES = 3
"""Near misses that are shown of one kind."""

_SHOWN_LINES = 12
"""Lines of one near miss that are shown."""

_COMPARED = 10_000
"""Lines that are compared for their likeness, which is slow."""

_COMPARED_CHARACTERS = 300
"""Characters of a line that are compared so: that takes the square of them."""

_COMPARED_CLOSELY = 500
"""Lines whose likeness is measured exactly."""

_TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2009\u202f\u3000", " "),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", None),
        "…": "...",
        "，": ",",
        "：": ":",
        "；": ";",
        "（": "(",
        "）": ")",
    }
)
_NUMBER = re.compile(r"^\s*\d+(?:\t|[|:] ?)")


def _spaceless(line: str) -> str:
    return "".join(line.split())


def _plain(line: str) -> str:
    return unicodedata.normalize("NFKC", line.translate(_TYPOGRAPHY))


_DIFFERENCES: list[tuple[str, Callable[[str], str], Callable[[str], str]]] = [
    # what differs, what is done to a line of the file, what to a line of the fragment
    ("only white space (indentation, tabs, blanks at line ends) differs", _spaceless, _spaceless),
    ("only typographic characters (quotes, dashes, special blanks) differ", _plain, _plain),
    (
        "only white space and typographic characters differ",
        lambda line: _spaceless(_plain(line)),
        lambda line: _spaceless(_plain(line)),
    ),
    ("old_text holds line numbers, which are not part of the file", str, lambda line: _NUMBER.sub("", line)),
    (
        "only upper and lower case, and white space, differ",
        lambda line: _spaceless(_plain(line)).casefold(),
        lambda line: _spaceless(_plain(line)).casefold(),
    ),
]


def near_misses(source: SourceText, fragment: str) -> str:
    """Where the fragment nearly occurs, in sentences with line numbers; what to do where it does not."""
    wanted = fragment.strip("\n").split("\n")
    for difference, of_file, of_fragment in _DIFFERENCES:
        changed = [of_fragment(line) for line in wanted]
        if not any(changed):
            break
        places = list(islice(_windows([of_file(line) for line in source.lines], changed), _PLACES))
        if places:
            return "\n".join([f"Almost, {difference}:", *(_shown(source, at, len(wanted)) for at in places)])
    return _alike(source, wanted)


def _windows(lines: list[str], wanted: list[str]) -> Iterator[int]:
    """Where the wanted lines follow one another: whole lines, the first and the last perhaps in part."""
    count = len(wanted)
    for at in range(len(lines) - count + 1):
        if count == 1:
            if wanted[0] in lines[at]:
                yield at
        elif (
            lines[at].endswith(wanted[0])
            and lines[at + count - 1].startswith(wanted[-1])
            and lines[at + 1 : at + count - 1] == wanted[1:-1]
        ):
            yield at


def _alike(source: SourceText, wanted: list[str]) -> str:
    """Lines that look like the longest line of the fragment."""
    line = max(wanted, key=lambda each: len(each.strip())).strip()[:_COMPARED_CHARACTERS]
    matcher, scored = SequenceMatcher(autojunk=False), list[tuple[float, int]]()
    matcher.set_seq2(line)
    for at, other in enumerate(source.lines[:_COMPARED]):
        matcher.set_seq1(other.strip()[:_COMPARED_CHARACTERS])
        if matcher.real_quick_ratio() > 0.6 and matcher.quick_ratio() > 0.6 and (ratio := matcher.ratio()) > 0.6:
            scored.append((-ratio, at))
            if len(scored) == _COMPARED_CLOSELY:
                break
    if not scored:
        return "Nothing like it is there. Read the file first, and copy the text exactly"
    best = sorted(scored)[:_PLACES]
    shown = "\n".join(_shown(source, at, 1) for _, at in sorted(best, key=lambda each: each[1]))
    return f"The lines most like it (copy the exact text):\n{shown}"


def _shown(source: SourceText, at: int, count: int) -> str:
    """Lines as they stand in the file, with their numbers."""
    last = at + min(count, _SHOWN_LINES)
    lines = [f"{number + 1}\t{clipped(source.lines[number], LINE_CHARACTERS)}" for number in range(at, last)]
    return "\n".join([*lines, f"[{count - _SHOWN_LINES} lines more]"] if count > _SHOWN_LINES else lines)
