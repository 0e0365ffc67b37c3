"""What the scanner needs to know of a state, prepared once: how to find the next tag, how to tell a tag that has begun.

A *plan* is the searchable form of a ``State``. It holds no position and no text, so all scanners of a dialect share it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from streamparse.decoding.table import NO_MARGIN, PROSE, Margin, Role, State, Table, Tag, Unit

FENCES = (Tag("```", "FENCE", Role.MENTION, "", 0), Tag("~~~", "FENCE", Role.MENTION, "", 0))
"""Markdown code fences, noticed in text for N12. They belong to Markdown, not to any dialect."""


class Plan:
    """The searchable form of one state."""

    __slots__ = (
        "before",
        "begun",
        "begun_closers",
        "begun_openers",
        "begun_own",
        "chained",
        "index",
        "longest",
        "lost",
        "match",
        "noted",
        "opaque",
        "opaque_target",
        "prefixes",
        "prefixes_at_line",
        "prose",
        "search",
        "search_begun",
        "state",
        "stop",
        "stops",
        "tags",
    )

    def __init__(self, state: State, table: Table, bare: bool) -> None:
        self.state = state
        self.index = state.index
        self.opaque = state.opaque
        self.opaque_target = state.opaque_target
        self.prose = state.opaque in PROSE
        real = [tag for tag in state.tags if bare or not tag.bare]
        mentions = [tag for tag in state.tags if tag not in real] + list(state.mentions)
        if state.opaque == "TEXT":
            mentions += FENCES
        self.lost = {recovery.tag.text: recovery.lost for recovery in state.recoveries}
        real += [recovery.tag for recovery in state.recoveries]
        self.noted = frozenset(tag.text for tag in mentions)
        self.tags: dict[str, Tag] = {tag.text: tag for tag in (*mentions, *real)}
        self.longest = max(map(len, self.tags), default=0)
        self.chained = frozenset(
            tag.text for tag in real if tag.role is Role.CLOSE and state.opaque and not table.states[tag.target].opaque
        )
        amid = [tag for tag in real if not self.prose or _may_count(tag, table, False, state.opaque)]
        at_line = [tag for tag in real if not self.prose or _may_count(tag, table, True, state.opaque)]
        self.prefixes = _prefixes(mentions, amid)
        self.prefixes_at_line = _prefixes(mentions, at_line)
        self.begun = _beginnings(amid)
        self.begun_openers = _beginnings([tag for tag in real if tag.role is Role.OPEN])
        own = [tag for tag in real if tag.text not in self.lost]
        self.begun_own = _beginnings(own)
        self.begun_closers = _beginnings([tag for tag in own if tag.role is Role.CLOSE])
        pattern = re.compile(_any_of(self.tags))
        self.match = pattern.match
        self.search_begun = re.compile(f"(?:{_any_of(self.prefixes_at_line)})\\Z").search
        self.search = pattern.search
        self.before = max((tag.before for tag in real), key=lambda margin: margin.most, default=NO_MARGIN)
        self.stop, self.stops = _stops(self)

    def ends_in(self, beginnings: frozenset[str], buffer: str, at: int) -> bool:
        """Whether the buffer ends, from ``at`` on, in one of these beginnings of a tag."""
        return len(buffer) - at < self.longest and buffer[at:] in beginnings

    def is_plain(self, chunk: str) -> bool:
        """Whether a chunk has nothing in it that could be, or become, a tag of this state."""
        return self.stop not in chunk if self.stop else self.stops(chunk) is None

    def hold(self, buffer: str, low: int) -> int:
        """Where the white space at the buffer's end begins that a tag might claim."""
        return margin_start(self.before, buffer, len(buffer), low, True) if self.before.most else len(buffer)


def _may_count(tag: Tag, table: Table, line: bool, opaque: str) -> bool:
    """N3: whether a tag can count in prose at all, at the start of a line or amid one."""
    if tag.role is Role.CLOSE:
        return line or not tag.nonstandard
    if tag.role is not Role.OPEN or tag.rule == "turn" or (line and (opaque == "TEXT" or tag.rule == "reasoning")):
        return True
    return table.states[tag.target].opaque in ("", "PAYLOAD")


def _beginnings(tags: list[Tag]) -> frozenset[str]:
    """How these tags look when they have begun and are not over: their proper prefixes."""
    return frozenset(tag.text[:length] for tag in tags for length in range(1, len(tag.text)))


def _prefixes(mentions: list[Tag], tags: list[Tag]) -> dict[str, Margin | None]:
    """Every beginning of a tag, with the white space that the tag would claim; None for what is only noticed."""
    found: dict[str, Margin | None] = dict.fromkeys(_beginnings(mentions))
    for tag in tags:
        for prefix in _beginnings([tag]):
            before = found.get(prefix)
            found[prefix] = tag.before if before is None or tag.before.most > before.most else before
    return found


def _stops(plan: Plan) -> tuple[str, Callable[[str], object]]:
    """A chunk without these is opaque text from end to end: one character, or a search where there are several."""
    characters = {text[0] for text in plan.tags}
    tail = ""
    if plan.prose:
        characters |= {"\n", "`"}
    if plan.before.most:
        characters |= set("" if plan.before.unit is Unit.SPACE else "\r\n")
        tail = r"|\s\Z" if plan.before.unit is Unit.SPACE else ""
    pattern = re.compile(_any_of(characters) + tail)
    stop = next(iter(characters)) if len(characters) == 1 and not tail else ""
    return stop, pattern.search


def margin_start(margin: Margin, buffer: str, end: int, low: int, at_end: bool) -> int:
    """Where the white space before ``end`` begins that the margin claims, not before ``low``."""
    start, left = end, margin.most
    if at_end and margin.unit is not Unit.SPACE and start > low and buffer[start - 1] == "\r":
        start, left = start - 1, left - 1  # the line feed may still come
    while left and start > low:
        character = buffer[start - 1]
        if margin.unit is Unit.SPACE:
            if not character.isspace():
                break
            start -= 1
        elif character == "\n":
            start -= 2 if start - 1 > low and buffer[start - 2] == "\r" else 1
        else:
            break
        left -= 1
    return start


@lru_cache(maxsize=64)
def plans(table: Table, bare: bool) -> tuple[Plan, ...]:
    """The plans of all states. ``bare`` lets a call open outside its envelope (N11)."""
    return tuple(Plan(state, table, bare) for state in table.states)


@lru_cache(maxsize=64)
def structure(table: Table) -> re.Pattern[str]:
    """A pattern for every tag of a call's structure (for N5: which of them comes next)."""
    texts = {
        tag.text
        for _, tag in table.all_tags()
        if tag.role in (Role.OPEN, Role.CLOSE) and tag.rule in ("calls", "call", "argument")
    }
    return re.compile(_any_of(texts))


def _any_of(texts: Iterable[str]) -> str:
    """A pattern for any of the texts, the longest first; for none of them one that never matches."""
    return "|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or r"(?!)"
