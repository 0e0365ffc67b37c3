"""Ids of calls. They are kept verbatim (B3); here is what happens where that cannot be.

An id links a result to a call among the *outstanding* calls, not among all: some servers number the calls of each
answer anew, and one sends the same id always. Two rounds with equal ids are therefore fine. Two equal ids in one turn
are not, and get a mark that is the same each time, so that the prompt stays the same for the server's cache.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

_ILLEGAL: Final = re.compile(r"[^a-zA-Z0-9_-]")


def distinct(ids: Iterable[str], taken: Collection[str] = ()) -> list[str]:
    """The ids, with ``_d2``, ``_d3`` … at those that are taken, or were there before."""
    wanted = list(ids)
    reserved = {*taken, *wanted}
    used = set(taken)
    marks: dict[str, Iterator[str]] = {}
    given = []
    for id_ in wanted:
        name = id_
        if id_ in used:
            marked = marks.setdefault(id_, _marked(id_))
            name = next(each for each in marked if each not in reserved)
            reserved.add(name)
        used.add(name)
        given.append(name)
    return given


def legal(id_: str) -> str:
    """The id in letters, digits, ``_`` and ``-``: all that Anthropic-style servers take."""
    return _ILLEGAL.sub("_", id_) or "call"


def fresh(prefix: str, taken: Collection[str]) -> Iterator[str]:
    """``prefix_0``, ``prefix_1`` …, without those that are taken."""
    number = 0
    while True:
        if (name := f"{prefix}_{number}") not in taken:
            yield name
        number += 1


def _marked(id_: str) -> Iterator[str]:
    number = 2
    while True:
        yield f"{id_}_d{number}"
        number += 1
