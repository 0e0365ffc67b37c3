"""The state table of a dialect: what ``grammar.py`` makes of a ``.lark`` file and ``scanner.py`` runs on.

Plain data. A state knows the rules that are open, the one kind of opaque text that may stand here, the tags that may
come and where each leads, what else is worth noticing (mentions), and whether the stream may end. The vocabulary of
rule and terminal names, which is the whole interface between a dialect and the code, is documented in
``docs/dialects.md``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Role(Enum):
    """What a tag does to the open rules."""

    OPEN = "open"
    CLOSE = "close"
    INNER = "inner"
    MARK = "mark"
    MENTION = "mention"


class Unit(Enum):
    """What the white space beside a tag is counted in."""

    BREAK = "line breaks"
    LINE = "blank lines"
    SPACE = "white space"


@dataclass(frozen=True, slots=True)
class Margin:
    """White space beside a tag that belongs to the format: at most ``most`` units of it."""

    unit: Unit = Unit.BREAK
    most: int = 0


NO_MARGIN = Margin()

PROSE = frozenset({"TEXT", "REASONING"})
"""Opaque text that is written for readers: openers in it have to earn their meaning (N3)."""

OPAQUE_WORDS = {
    "TEXT": "text",
    "REASONING": "text",
    "VALUE": "text",
    "NAME": "a name",
    "KEY": "a name",
    "NAME_ATTRIBUTES": 'name="…"',
    "KEY_ATTRIBUTES": 'name="…"',
    "PAYLOAD": "a JSON object",
    "ROLE": "a role",
}
"""Every kind of opaque text, and how an error message calls it. The keys are the closed list of names that a dialect
may declare."""

MARKS = frozenset({"START_OF_TEXT", "END_OF_TURN"})
"""Named tags that neither open nor close anything: special tokens of the format, never text (N2)."""

RULES = ("reasoning", "calls", "call", "argument", "turn")
"""The rules that a dialect may have beside its start symbols; a suffix makes variants of one
(``reasoning_resumed``)."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A literal of the grammar, in one state: ``rule`` is the rule that it opens or closes (else empty), ``target``
    the state behind it. ``bare`` tags open a call outside its envelope, ``nonstandard`` ones count at the start of a
    line."""

    text: str
    terminal: str
    role: Role
    rule: str
    target: int
    before: Margin = NO_MARGIN
    after: Margin = NO_MARGIN
    bare: bool = False
    nonstandard: bool = False


@dataclass(frozen=True, slots=True)
class Recovery:
    """A tag of an enclosing state, found where only tags may stand: the rules ``lost`` (innermost first) were never
    closed."""

    tag: Tag
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class State:
    """One state. ``opaque`` is empty where only tags may stand; ``opaque_target`` is the state behind a fragment of
    it."""

    index: int
    open: tuple[str, ...]
    opaque: str
    opaque_target: int
    tags: tuple[Tag, ...]
    mentions: tuple[Tag, ...]
    recoveries: tuple[Recovery, ...]
    may_end: bool

    @property
    def expected(self) -> tuple[str, ...]:
        """What may come, in the tags' own words, for error messages."""
        words = tuple(f"'{tag.text}'" for tag in self.tags)
        return (*words, OPAQUE_WORDS[self.opaque]) if self.opaque else words

    @property
    def expected_terminals(self) -> frozenset[str]:
        """The same as the grammar's terminal names: what Lark's ``accepts()`` says, ``$END`` included."""
        names = {tag.terminal for tag in self.tags}
        if self.opaque:
            names.add(self.opaque)
        if self.may_end:
            names.add("$END")
        return frozenset(names)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A dialect, compiled. ``starts`` names the state of each start symbol; ``ignore`` says that white space between
    tags is part of the format."""

    dialect: str
    states: tuple[State, ...]
    starts: dict[str, int]
    ignore: bool

    def all_tags(self) -> Iterator[tuple[State, Tag]]:
        """Every tag in every state."""
        for state in self.states:
            for tag in state.tags:
                yield state, tag
