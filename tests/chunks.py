"""The one helper by which every case is run: whole, character by character, at every single split, with random cuts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from streamparse import ArgumentDelta, Event, Reasoning, Text

EVERY_SPLIT = 200
"""Texts up to this length are cut at every place, longer ones at a sample of as many."""

RANDOM_CUTS = 5

_E = TypeVar("_E", bound=Event)


def join(events: Sequence[_E]) -> list[_E]:
    """The events with adjacent pieces of one text made one: what does not depend on how the text was cut."""
    joined: list[Any] = []
    for event in events:
        whole = _whole(joined[-1], event) if joined else None
        if whole is None:
            joined.append(event)
        else:
            joined[-1] = whole
    return joined


def _whole(before: Event, event: Event) -> Event | None:
    """Two pieces of one text as one event; None if they are not that."""
    match before, event:
        case Text(), Text():
            return Text(before.text + event.text)
        case Reasoning(), Reasoning():
            return Reasoning(before.text + event.text)
        case ArgumentDelta(), ArgumentDelta() if (before.index, before.path) == (event.index, event.path):
            return ArgumentDelta(event.index, event.path, before.text + event.text)
    return None


def cuts(text: str) -> Iterator[list[str]]:
    """Ways to cut a text: whole, character by character, in two (everywhere, or at a sample of places), at random."""
    yield [text]
    yield list(text)
    generator = random.Random(len(text))
    places: Sequence[int] = range(len(text) + 1)
    if len(text) > EVERY_SPLIT:
        places = generator.sample(places, EVERY_SPLIT)
    for place in places:
        yield [text[:place], text[place:]]
    for _ in range(RANDOM_CUTS):
        yield _random_cut(text, generator)


def _random_cut(text: str, generator: random.Random) -> list[str]:
    pieces, at = [], 0
    while at < len(text):
        size = generator.choice((0, 1, 2, 3, 4, 7, 15, 40))
        pieces.append(text[at : at + size])
        at += size
    return pieces


def check_chunking(run: Callable[[list[str]], list[_E]], text: str) -> list[_E]:
    """Run the text in every cut; all must give the same joined events, which are returned."""
    whole: list[_E] | None = None
    for chunks in cuts(text):
        events = join(run(chunks))
        if whole is None:
            whole = events
        assert events == whole, f"cut as {chunks!r}"
    assert whole is not None
    return whole
