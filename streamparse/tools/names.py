"""Which of the known words was meant.

Models drift in style (``startLine`` for ``start_line``) and now and then in a letter. The first is certain, the second
likely; everything else is no suggestion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_COMPARED = 64
"""Characters that are compared. Names end there (the APIs' limit), and so does the cost."""

_CLOSEST = 16
"""Candidates whose edit distance is worth computing."""


def fold(word: str) -> str:
    """A word without its style: ``startLine``, ``Start-Line`` and ``start_line`` are one."""
    return "".join(each for each in word[:_COMPARED].casefold() if each not in "_-. ")


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """``known`` with those that resemble ``word`` first; in their own order where they resemble it equally."""
    target = _pairs(folded := fold(word))
    return sorted(known, key=lambda each: -_resemblance(folded, target, fold(each)))


def meant(word: str, known: Sequence[str]) -> str | None:
    """The one of ``known`` that ``word`` probably stands for: equal but for its style, a few letters off, or the
    beginning of it. ``None`` if there is none."""
    folded = fold(word)
    if len(folded) < 2:
        return None
    for each in known:
        if fold(each) == folded and each != word:
            return each
    closest = [each for each in nearest(word, known)[:_CLOSEST] if each != word]
    slips = {each: _distance(folded, fold(each)) for each in closest if close(word, each)}
    if slips:
        return min(slips, key=slips.__getitem__)
    return next((each for each in closest if _begins(folded, fold(each))), None)


def close(word: str, other: str) -> bool:
    """Whether a word is a few letters off another one."""
    one, two = fold(word), fold(other)
    slips = _slips(min(one, two, key=len))
    return abs(len(one) - len(two)) <= slips and _distance(one, two) <= slips


def _begins(word: str, other: str) -> bool:
    """Whether one of two words is the beginning of the other."""
    short, long = sorted((word, other), key=len)
    return len(short) >= 4 and long.startswith(short)


def _slips(word: str) -> int:
    """Letters that may differ: in a short word, each one makes another word."""
    return 0 if len(word) < 3 else 1 if len(word) < 6 else 2


def _pairs(word: str) -> set[str]:
    return {word[at : at + 2] for at in range(len(word) - 1)} or {word}


def _resemblance(word: str, pairs: set[str], other: str) -> float:
    """From 0 to 2.5: pairs of letters in common, a common beginning, and, for half as much, a common end."""
    theirs = _pairs(other)
    common = 2 * len(pairs & theirs) / (len(pairs) + len(theirs))
    same = _common(word, other) + _common(word[::-1], other[::-1]) / 2
    return common + same / max(len(word), len(other), 1)


def _common(word: str, other: str) -> int:
    """Letters at the beginning that two words have in common."""
    return next((at for at, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other)))


def _distance(left: str, right: str) -> int:
    """Letters to insert, remove, replace or swap with their neighbour."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]
