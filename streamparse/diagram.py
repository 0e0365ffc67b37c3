"""A state table for readers: as text, and as a Mermaid state diagram for the documentation.

Both are deterministic: the same grammar gives the same characters, so that a test can compare them with what the
documentation shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamparse.decoding.table import Margin, Role, State, Table, Tag, Unit
from streamparse.events import join_words

_START_WORDS = {"start": "text", "resumed": "reasoning"}
_ROLE_WORDS = {Role.OPEN: "opens", Role.CLOSE: "closes", Role.INNER: "ends the name", Role.MARK: "is a mark"}
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def as_text(table: Table) -> str:
    """Every state with all that the scanner knows of it."""
    return "\n".join([*_head(table), *(line for state in table.states for line in _state(table, state))]) + "\n"


def _head(table: Table) -> Iterator[str]:
    between = "belongs to the format" if table.ignore else "is not allowed"
    yield f"dialect {table.dialect}: {len(table.states)} states; white space between tags {between}"
    for symbol, number in table.starts.items():
        yield f'  start="{_START_WORDS.get(symbol, symbol)}" begins in state {number}'


def _state(table: Table, state: State) -> Iterator[str]:
    yield ""
    yield f"state {state.index}"
    yield _row("open", " > ".join(state.open) or "nothing")
    yield _row(
        "opaque", f"{state.opaque} -> {state.opaque_target}" if state.opaque else "none: only tags may stand here"
    )
    yield _row("may end", "yes" if state.may_end else "no")
    yield _row("expected", join_words(tuple(_escaped(word) for word in state.expected)))
    rows = [(_quoted(tag.text), f"-> {tag.target}", _tag_words(tag)) for tag in state.tags]
    yield from _rows("tags", rows)
    mentions = [(_quoted(tag.text), tag.rule or tag.terminal, "") for tag in state.mentions]
    yield from _rows("mentions", mentions)
    recoveries = [
        (_quoted(found.tag.text), f"-> {found.tag.target}", f"leaves {', '.join(found.lost)} unclosed")
        for found in state.recoveries
    ]
    yield from _rows("recovers", recoveries)


def _row(label: str, words: str) -> str:
    return f"  {label:<9} {words}".rstrip()


def _rows(label: str, rows: list[tuple[str, str, str]]) -> Iterator[str]:
    width = max((len(row[0]) for row in rows), default=0)
    target = max((len(row[1]) for row in rows), default=0)
    for first, second, third in rows:
        yield _row(label, f"{first:<{width}}  {second:<{target}}  {third}")
        label = ""


def _tag_words(tag: Tag) -> str:
    rule = f" {tag.rule}" if tag.rule else ""
    words = [f"{_ROLE_WORDS.get(tag.role, tag.role.value)}{rule}"]
    words += ["bare"] if tag.bare else []
    words += ["not standard: counts at the start of a line"] if tag.nonstandard else []
    words += [f"{_margin_words(tag.before)} before it"] if tag.before.most else []
    words += [f"{_margin_words(tag.after)} after it"] if tag.after.most else []
    return ", ".join(words)


def _margin_words(margin: Margin) -> str:
    if margin.unit is Unit.SPACE:
        return f"up to {margin.most} of {margin.unit.value}"
    return f"up to {margin.most} {margin.unit.value.removesuffix('s') if margin.most == 1 else margin.unit.value}"


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)


def _quoted(text: str) -> str:
    return f"'{_escaped(text)}'"


# Mermaid


def as_mermaid(table: Table) -> str:
    """A ``stateDiagram-v2``: the states by what is open and may stand in them, an arrow for each tag.

    Opaque text that leads nowhere else, mentions and recoveries are left out.
    """
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{_label(state)}" as s{state.index}' for state in table.states]
    for symbol, number in table.starts.items():
        lines.append(f"    [*] --> s{number} : {_START_WORDS.get(symbol, symbol)}")
    for state in table.states:
        lines += (f"    s{state.index} --> s{target} : {label}" for target, label in _arrows(state))
        lines += [f"    s{state.index} --> [*]"] if state.may_end else []
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _label(state: State) -> str:
    return _entities(f"{state.index} {' > '.join((*state.open, state.opaque or '(tags only)'))}")


def _arrows(state: State) -> Iterator[tuple[int, str]]:
    """One arrow for each state that is led to, with all that leads there."""
    labels: dict[int, list[str]] = {}
    if state.opaque and state.opaque_target != state.index:
        labels[state.opaque_target] = [state.opaque]
    for tag in state.tags:
        labels.setdefault(tag.target, []).append(_entities(_escaped(tag.text)))
    for target, words in labels.items():
        yield target, " or ".join(words)


def _entities(text: str) -> str:
    """Mermaid's own entity codes, for all that its syntax or HTML could read: ``#lt;think#gt;``."""
    names = {"<": "#lt;", ">": "#gt;", '"': "#quot;", "&": "#amp;"}
    return re.sub(r"[^\w ./()=-]", lambda match: names.get(match[0], f"#{ord(match[0])};"), text)
