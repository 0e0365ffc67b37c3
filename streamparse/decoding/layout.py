"""How a dialect is written: its state table, read backwards.

A renderer is the scanner turned round, so it runs on the same table. ``layout_of`` walks the table once, from the
text through the envelope, a call and a parameter and out again, and keeps the tags that it meets and the white space
that they claim (``Margin``). No tag stands here: a dialect that is only a grammar file can be written as well as read.

* One line break after each tag behind which only tags may stand, none where opaque text begins, but for its margin.
* A margin of a value or of reasoning (``HEAD_``, ``TAIL_``) is written in full, so that white space of the value's own
  is out of its reach. Behind a carriage return it is left out: the two would be one line break.
* Names are attributes (``name="…"``, in single quotes if they hold double ones) or bare, as the table says.
* A string is written raw, every other value as JSON; a call with a ``PAYLOAD`` is one JSON object.

Nothing here judges whether the text reads back equal; ``render`` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from json import dumps
from typing import Any, NamedTuple

from streamparse.decoding.headers import ATTRIBUTE_KINDS, read_header
from streamparse.decoding.payload import ARGUMENTS, NAME
from streamparse.decoding.table import Margin, Role, State, Table, Tag, Unit
from streamparse.errors import UsageError


class Call(NamedTuple):
    """A call as the renderer sees it."""

    name: str
    arguments: Mapping[str, Any]


class Pair(NamedTuple):
    """The tags around something; where a name stands in it, also its kind of opaque text and the tag that ends it."""

    opening: Tag
    closing: Tag
    header: str = ""
    middle: Tag | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """The tags by which a dialect is written. ``gap`` stands between two tags that have nothing between them."""

    dialect: str
    reasoning: Pair | None
    envelope: Pair | None
    call: Pair
    argument: Pair | None
    gap: str

    @property
    def typed(self) -> bool:
        """Whether the wire carries the types of values: a call is one JSON object."""
        return self.call.middle is None

    def answer(
        self, reasoning: str | None, text: str, calls: list[str], *, opened: bool = False, grouped: bool = True
    ) -> str:
        """Reasoning, text and written calls, with the white space that stands between them."""
        parts: list[str] = []
        if reasoning is not None:
            parts = self._reasoning(reasoning, opened, alone=not text and not calls)
        parts.append(text)
        if calls:
            first = (self.envelope or self.call).opening
            parts += [_before_call(text, first.before), self._calls(calls, grouped)]
        return "".join(parts)

    def _reasoning(self, reasoning: str, opened: bool, alone: bool) -> list[str]:
        pair = self.reasoning
        if pair is None:
            raise UsageError(f"dialect {self.dialect!r} has no reasoning")
        head = [] if opened else [pair.opening.text, _whole(pair.opening.after)]
        tail = [_whole(pair.closing.before, reasoning), pair.closing.text]
        return [*head, reasoning, *tail, "" if alone else _whole(pair.closing.after)]

    def _calls(self, calls: list[str], grouped: bool) -> str:
        if self.envelope is None:
            return _at_most_one(self.call.closing.after).join(calls)
        opening, closing = self.envelope.opening.text + self.gap, self.gap + self.envelope.closing.text
        groups = [self.gap.join(calls)] if grouped else calls
        return _at_most_one(self.envelope.closing.after).join(f"{opening}{group}{closing}" for group in groups)

    def write_call(self, call: Call) -> str:
        """A call from its opening tag to its closing tag. ``UsageError`` for a name or value that has no text."""
        opening, closing, header, middle = self.call
        if middle is None:
            payload = write_json({NAME: call.name, ARGUMENTS: dict(call.arguments)}, f"the call of {call.name!r}")
            return f"{opening.text}\n{payload}\n{closing.text}"
        parts = [opening.text, _header(call.name, header, middle, "tool"), middle.text, self.gap]
        for key, value in call.arguments.items():
            parts += self._argument(call.name, key, value)
        parts.append(closing.text)
        return "".join(parts)

    def _argument(self, name: str, key: str, value: Any) -> list[str]:
        pair = self.argument
        if pair is None or pair.middle is None:
            raise UsageError(f"dialect {self.dialect!r} has no parameters, and {name!r} has {key!r}")
        text = value if isinstance(value, str) else write_json(value, f"{key!r} of {name!r}")
        return [
            pair.opening.text,
            _header(key, pair.header, pair.middle, "parameter"),
            pair.middle.text,
            _whole(pair.middle.after),
            text,
            _whole(pair.closing.before, text),
            pair.closing.text,
            self.gap,
        ]


def write_json(value: Any, what: str) -> str:
    """JSON text as ``events.json_text`` writes it; ``UsageError`` for what is no JSON, ``NaN`` included."""
    try:
        return dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{what} cannot be written as JSON: {error}") from error


# From the table


@lru_cache(maxsize=64)
def layout_of(table: Table) -> Layout:
    """The layout of a dialect. Raises ``UsageError`` for one without calls."""
    text = table.states[table.starts["start"]]
    thought = _tag(text, Role.OPEN, "reasoning")
    envelope = _tag(text, Role.OPEN, "calls")
    inside = text if envelope is None else table.states[envelope.target]
    call = _tag(inside, Role.OPEN, "call")
    if call is None:
        raise UsageError(f"dialect {table.dialect!r} has no calls")
    body, called = _walk(table, call)
    argument = _tag(body, Role.OPEN, "argument")
    return Layout(
        table.dialect,
        None if thought is None else _walk(table, thought)[1],
        None if envelope is None else Pair(envelope, _closing(inside, "calls")),
        called,
        None if argument is None else _walk(table, argument)[1],
        "\n" if table.ignore else "",
    )


def _walk(table: Table, opening: Tag) -> tuple[State, Pair]:
    """What ``opening`` opens: the state of its content, and its tags."""
    state = table.states[opening.target]
    middle = _tag(state, Role.INNER, "")
    if middle is None:
        return state, Pair(opening, _closing(state, opening.rule))
    content = table.states[middle.target]
    return content, Pair(opening, _closing(content, opening.rule), state.opaque, middle)


def _tag(state: State, role: Role, rule: str) -> Tag | None:
    """The tag by which a dialect is written, where several do the same."""
    tags = (tag for tag in state.tags if tag.role is role and tag.rule == rule)
    return next((tag for tag in tags if not tag.bare and not tag.nonstandard), None)


def _closing(state: State, rule: str) -> Tag:
    tag = _tag(state, Role.CLOSE, rule)
    assert tag is not None, f"nothing closes {rule!r}"
    return tag


# White space


def _whole(margin: Margin, before: str = "") -> str:
    """A margin in full; nothing behind a carriage return, which would be part of it."""
    return "" if before.endswith("\r") and margin.unit is not Unit.SPACE else "\n" * margin.most


def _at_most_one(margin: Margin) -> str:
    return "\n" * min(1, margin.most)


def _before_call(text: str, margin: Margin) -> str:
    """What stands between text and a call: one line break; the whole margin if the text itself ends in white space."""
    if not text:
        return ""
    return _whole(margin, text) if text[-1].isspace() else _at_most_one(margin)


# Names


def _header(name: str, kind: str, middle: Tag, what: str) -> str:
    """The text between an opening tag and its end that is read as this name (N4)."""
    attributes = kind in ATTRIBUTE_KINDS
    forms = (f'name="{name}"', f"name='{name}'") if attributes else (name, f'"{name}"', f"'{name}'")
    for form in forms if name else ():
        if read_header(form, attributes) == (name, ()) and (attributes or middle.text not in form):
            return form
    raise UsageError(f"{what} name {name!r} cannot be written in this dialect: {_why(name, attributes, middle)}")


def _why(name: str, attributes: bool, middle: Tag) -> str:
    if not name:
        return "it is empty"
    if not attributes and middle.text in name:
        return f"it holds {middle.text!r}"
    return "it holds a line break" if "\n" in name else "no quotes fit around it"
