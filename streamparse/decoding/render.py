"""Calls -> the text of a dialect: what a model would have written, for history and for round trips.

Theory. A renderer is the scanner read backwards, so it runs on the same state table. ``_Form`` walks the table once, from
the text through the envelope, a call and a parameter and out again, and keeps the tags that it meets and the white space
that they claim (``Margin``). No tag stands here; a dialect that is only a grammar file can be written as well as read.

What is written:

* One line break after each tag behind which only tags may stand, none where opaque text begins, but for its margin.
* A margin of a value or of reasoning (``HEAD_``, ``TAIL_``) is written in full: white space of the value's own behind it is
  then out of reach. (Where a carriage return stands before it, it is left out: the two would be one line break.)
* A name as attributes (``name="…"``, in single quotes if it has double ones) or bare, as the table says.
* A string raw, every other value as JSON; a call with a ``PAYLOAD`` as one JSON object.

What cannot be written. Values are not escaped (N9), so some have no text at all: a string that quotes the end of its own
call, a number where the schema says string. Nothing ambiguous is written: ``check=True`` reads the text again with
``NativeDecoder`` and raises ``UsageError`` if anything differs. What it compares with:

* with ``tools``, exactly what was to be written (JSON text of the arguments, so that ``1``, ``1.0`` and ``True`` differ);
* without, what a reader without tools can know (T5): objects and arrays come back as such, a string comes back as what
  its text is, everything else as its text. So ``3`` and ``"3"`` are both fine, and a mangled value is still found.
* Where the wire carries types (``PAYLOAD``) the comparison is always exact.

The text is read as an answer of its own, which ends where it ends. Reading costs about as much as decoding the answer did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from json import JSONDecodeError, dumps, loads
from typing import Any, NamedTuple, TypeAlias

from streamparse.decoding.headers import ATTRIBUTE_KINDS, read_header
from streamparse.decoding.native import decode
from streamparse.decoding.payload import ARGUMENTS, NAME
from streamparse.decoding.table import NO_MARGIN, Margin, Role, State, Table, Tag, Unit
from streamparse.decoding.values import ANY
from streamparse.errors import UsageError
from streamparse.events import (
    Event,
    Failed,
    PartialToolCall,
    Reasoning,
    Text,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    json_text,
)
from streamparse.limits import EXCERPT

CallLike: TypeAlias = ToolCall | PartialToolCall | tuple[str, Mapping[str, Any]] | Mapping[str, Any]
"""What the renderer takes for a call: a decoder's call, ``(name, arguments)``, or OpenAI-style JSON, which is
``{"function": {"name": …, "arguments": …}}`` or the inner object alone, its arguments an object or JSON text of one."""


def render_calls(
    calls: Iterable[CallLike],
    dialect: str = "minimax_m2",
    *,
    tools: Iterable[Any] | None = None,
    grouped: bool = True,
    check: bool = True,
) -> str:
    """The calls as a model of this dialect writes them; ``""`` for none. No line break before or after.

    ``grouped`` puts all calls into one envelope (MiniMax M2); ``False`` gives each its own (Qwen3-Coder). Both read alike,
    and a dialect without envelopes knows no difference. ``tools`` and ``check`` are explained in the module's docstring.

    Raises ``UsageError`` for what is no call, and, with ``check``, for what would not read back equal.
    """
    return render_answer(calls=calls, dialect=dialect, tools=tools, grouped=grouped, check=check)


def render_answer(
    *,
    reasoning: str | None = None,
    text: str = "",
    calls: Iterable[CallLike] = (),
    dialect: str = "minimax_m2",
    opened: bool = False,
    tools: Iterable[Any] | None = None,
    grouped: bool = True,
    check: bool = True,
) -> str:
    """One whole assistant turn: reasoning in its tags, then text, then calls. Without the special tokens around a turn.

    ``opened`` says that the prompt opened the reasoning (N1): its opening tag is left out, its closing tag is not, even for
    no reasoning. ``reasoning=None`` is no reasoning; ``""`` is an empty pair of tags. The rest as in ``render_calls``.
    """
    form = _form(dialect)
    tools = None if tools is None else list(tools)
    pieces = [_named(call) for call in calls]
    written = [form.call_text(piece) for piece in pieces]
    if reasoning is None and opened:
        reasoning = ""
    answer = form.answer(reasoning, text, written, opened, grouped)
    if check:
        wanted = _Answer(reasoning or "", text, [form.readable(piece, tools) for piece in pieces])
        _check(answer, wanted, form, opened, tools)
    return answer


# Calls of the caller ---------------------------------------------------------------------------------------------------


class _Call(NamedTuple):
    name: str
    arguments: Mapping[str, Any]


def _named(call: CallLike) -> _Call:
    """A call in any form, as name and arguments."""
    name: Any
    arguments: Any
    if isinstance(call, ToolCall | PartialToolCall):
        name, arguments = call.name, call.arguments
    elif isinstance(call, Mapping):
        function = call.get("function", call)
        if not isinstance(function, Mapping) or "name" not in function:
            raise UsageError("a call as JSON needs a name: {'function': {'name': …, 'arguments': …}}")
        name, arguments = function["name"], function.get("arguments", {})
        arguments = _loaded(name, arguments) if isinstance(arguments, str) else arguments
    elif isinstance(call, tuple) and len(call) == 2:
        name, arguments = call
    else:
        raise UsageError(f"{type(call).__name__} is no call; give a ToolCall, (name, arguments), or OpenAI-style JSON")
    if not isinstance(name, str) or not name:
        raise UsageError(f"a call needs a name, and {name!r} is none")
    if not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments):
        raise UsageError(f"the arguments of {name!r} must be an object with names as keys")
    return _Call(name, arguments)


def _loaded(name: Any, arguments: str) -> Any:
    """Arguments given as JSON text. Empty text is no arguments, as on the wire (C5)."""
    try:
        return loads(arguments) if arguments else {}
    except (JSONDecodeError, RecursionError) as error:
        raise UsageError(f"the arguments of {name!r} are not JSON: {error}") from error


def _json(value: Any, what: str) -> str:
    """As ``events.json_text`` writes it, but nothing that is no JSON (``NaN``)."""
    try:
        return dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{what} cannot be written as JSON: {error}") from error


# The form of a dialect -------------------------------------------------------------------------------------------------


class _Pair(NamedTuple):
    """The tags around something, and the one between its header and its content (none around an envelope)."""

    opening: Tag
    closing: Tag
    header: str = ""  # the kind of opaque text that names it
    middle: Tag | None = None


@dataclass(frozen=True, slots=True)
class _Form:
    """How a dialect is written. ``break_`` stands where only tags may stand."""

    dialect: str
    reasoning: _Pair | None
    envelope: _Pair | None
    call: _Pair
    argument: _Pair | None
    break_: str

    @property
    def typed(self) -> bool:
        """Whether the wire carries the types of values: a call is one JSON object."""
        return not self.call.header

    def readable(self, call: _Call, tools: list[Any] | None) -> _Call:
        """What a reader can make of a call (see the module's docstring)."""
        if self.typed or tools is not None:
            return call
        return _Call(call.name, {key: _untyped(value) for key, value in call.arguments.items()})

    # Calls

    def call_text(self, call: _Call) -> str:
        """A call from its opening tag to its closing tag."""
        opening, closing, header, middle = self.call
        if middle is None:
            payload = _json({NAME: call.name, ARGUMENTS: dict(call.arguments)}, f"the call of {call.name!r}")
            return f"{opening.text}\n{payload}\n{closing.text}"
        name = _header(call.name, header, middle, "tool")
        parts = [opening.text, name, middle.text, self.break_]
        for key, value in call.arguments.items():
            parts += self._argument(call.name, key, value)
        parts.append(closing.text)
        return "".join(parts)

    def _argument(self, name: str, key: str, value: Any) -> list[str]:
        pair = self.argument
        if pair is None or pair.middle is None:
            raise UsageError(f"dialect {self.dialect!r} has no parameters, and {name!r} has {key!r}")
        text = value if isinstance(value, str) else _json(value, f"{key!r} of {name!r}")
        return [
            pair.opening.text,
            _header(key, pair.header, pair.middle, "parameter"),
            pair.middle.text,
            _breaks(pair.middle.after),
            text,
            _breaks(pair.closing.before, text),
            pair.closing.text,
            self.break_,
        ]

    def calls(self, written: list[str], grouped: bool) -> str:
        """Calls in their envelopes, if the dialect has any."""
        if self.envelope is None:
            return _breaks_at_most(1, self.call.closing.after).join(written)
        opening, closing = self.envelope.opening.text + self.break_, self.break_ + self.envelope.closing.text
        groups = [self.break_.join(written)] if grouped else written
        between = _breaks_at_most(1, self.envelope.closing.after)
        return between.join(f"{opening}{group}{closing}" for group in groups)

    # A whole answer

    def answer(self, reasoning: str | None, text: str, written: list[str], opened: bool, grouped: bool) -> str:
        """Reasoning, text and calls, with the white space that stands between them."""
        parts = [] if reasoning is None else self._reasoning(reasoning, opened)
        if reasoning is not None and self.reasoning is not None and (text or written):
            parts.append(_breaks(self.reasoning.closing.after))
        parts.append(text)
        if written:
            first = (self.envelope or self.call).opening
            parts += [_gap(text, first.before), self.calls(written, grouped)]
        return "".join(parts)

    def _reasoning(self, reasoning: str, opened: bool) -> list[str]:
        pair = self.reasoning
        if pair is None:
            raise UsageError(f"dialect {self.dialect!r} has no reasoning")
        head = [] if opened else [pair.opening.text, _breaks(pair.opening.after)]
        return [*head, reasoning, _breaks(pair.closing.before, reasoning), pair.closing.text]


def _form(dialect: str) -> _Form:
    from streamparse.decoding.grammar import load  # lark is loaded with the first dialect, not with the library

    return _form_of(load(dialect))


@lru_cache(maxsize=64)
def _form_of(table: Table) -> _Form:
    """Walk the table from the text into a call and a parameter, and back."""
    text = table.states[table.starts["start"]]
    thought = _tag(text, Role.OPEN, "reasoning")
    envelope = _tag(text, Role.OPEN, "calls")
    inside = text if envelope is None else table.states[envelope.target]
    call = _tag(inside, Role.OPEN, "call")
    if call is None:
        raise UsageError(f"dialect {table.dialect!r} has no calls")
    body, called = _walk(table, call)
    argument = _tag(body, Role.OPEN, "argument")
    return _Form(
        table.dialect,
        None if thought is None else _walk(table, thought)[1],
        None if envelope is None else _Pair(envelope, _closing(table.states[envelope.target], "calls")),
        called,
        None if argument is None else _walk(table, argument)[1],
        "\n" if table.ignore else "",
    )


def _walk(table: Table, opening: Tag) -> tuple[State, _Pair]:
    """The tags of what ``opening`` opens, and the state of its content."""
    state = table.states[opening.target]
    middle = _tag(state, Role.INNER, "")
    if middle is None:
        return state, _Pair(opening, _closing(state, opening.rule))
    content = table.states[middle.target]
    return content, _Pair(opening, _closing(content, opening.rule), state.opaque, middle)


def _tag(state: State, role: Role, rule: str) -> Tag | None:
    """The tag by which a dialect is written, where several do the same."""
    tags = (tag for tag in state.tags if tag.role is role and tag.rule == rule)
    return next((tag for tag in tags if not tag.bare and not tag.nonstandard), None)


def _closing(state: State, rule: str) -> Tag:
    tag = _tag(state, Role.CLOSE, rule)
    assert tag is not None, f"nothing closes {rule}"
    return tag


# White space -----------------------------------------------------------------------------------------------------------


def _breaks(margin: Margin, before: str = "") -> str:
    """A margin in full; none behind a carriage return, where it would begin with the end of ``before``."""
    return "" if before.endswith("\r") and margin.unit is not Unit.SPACE else "\n" * margin.most


def _breaks_at_most(count: int, margin: Margin) -> str:
    return "\n" * min(count, margin.most)


def _gap(text: str, margin: Margin) -> str:
    """What stands between text and a call: one line break, as much as the margin takes if the text ends in white space."""
    if not text:
        return ""
    return _breaks(margin, text) if text[-1].isspace() else _breaks_at_most(1, margin)


# Names -----------------------------------------------------------------------------------------------------------------


def _header(name: str, kind: str, middle: Tag, what: str) -> str:
    """The text between an opening tag and its end that is read as this name (N4)."""
    attributes = kind in ATTRIBUTE_KINDS
    forms = (f'name="{name}"', f"name='{name}'") if attributes else (name, f'"{name}"', f"'{name}'")
    for form in forms:
        if read_header(form, attributes) == (name, ()) and (attributes or middle.text not in form):
            return form
    raise UsageError(f"{what} name {name!r} cannot be written in this dialect: {_why(name, attributes, middle)}")


def _why(name: str, attributes: bool, middle: Tag) -> str:
    if not name:
        return "it is empty"
    if not attributes and middle.text in name:
        return f"it holds {middle.text!r}"
    return "it holds a line break" if "\n" in name else "no quotes fit around it"


# Reading what was written ----------------------------------------------------------------------------------------------


class _Answer(NamedTuple):
    reasoning: str
    text: str
    calls: Sequence[_Call]


def _untyped(value: Any) -> Any:
    """What T5 makes of a value's text."""
    if isinstance(value, str):
        return ANY.read(value).value
    return value if isinstance(value, Mapping | list | tuple) else _json(value, "a value")


def _check(answer: str, wanted: _Answer, form: _Form, opened: bool, tools: list[Any] | None) -> None:
    """Raise ``UsageError`` unless ``answer`` reads as ``wanted``."""
    found, error = _read(answer, form.dialect, tools, opened)
    if error or not _equal(found, wanted):
        raise UsageError(f"cannot be written in {form.dialect} so that it reads back equal: {_blame(found, error, wanted)}")


def _read(answer: str, dialect: str, tools: list[Any] | None, opened: bool) -> tuple[_Answer, str]:
    """What a decoder makes of an answer, and the first error."""
    events = decode(answer, dialect, tools=tools, start="reasoning" if opened else "text")
    reasoning = "".join(event.text for event in events if isinstance(event, Reasoning))
    text = "".join(event.text for event in events if isinstance(event, Text))
    calls = [_Call(event.call.name, event.call.arguments) for event in events if isinstance(event, ToolCallFinished)]
    return _Answer(reasoning, text, calls), next(filter(None, map(_error, events)), "")


def _error(event: Event) -> str:
    return event.error.message if isinstance(event, ToolCallFailed | Failed) else ""


def _equal(found: _Answer, wanted: _Answer) -> bool:
    return (
        found.reasoning == wanted.reasoning
        and found.text == wanted.text
        and len(found.calls) == len(wanted.calls)
        and all(_same_call(*pair) for pair in zip(found.calls, wanted.calls, strict=True))
    )


def _same_call(found: _Call, wanted: _Call) -> bool:
    return found.name == wanted.name and _text(found.arguments) == _text(wanted.arguments)


def _text(value: Any) -> str:
    return json_text(dict(value) if isinstance(value, Mapping) else value)


def _blame(found: _Answer, error: str, wanted: _Answer) -> str:
    """The first difference, in words."""
    for what, there, here in (
        ("the reasoning", found.reasoning, wanted.reasoning),
        ("the text", found.text, wanted.text),
    ):
        if there != here:
            return f"{what} reads back as {_short(there)}{error and f' ({error})'}"
    for position, call in enumerate(wanted.calls):
        where = f"call {position} ({call.name!r})"
        if position >= len(found.calls):
            return f"{where} is not found{error and f' ({error})'}"
        back = found.calls[position]
        if back.name != call.name:
            return f"{where} reads back as a call of {back.name!r}{error and f' ({error})'}"
        for key, value in call.arguments.items():
            if key not in back.arguments or _text(back.arguments[key]) != _text(value):
                seen = _short(back.arguments[key]) if key in back.arguments else "nothing"
                return f"{where}: argument {key!r} reads back as {seen}"
        if len(back.arguments) != len(call.arguments):
            return f"{where} reads back with more arguments than it has"
    return error or f"{len(found.calls)} calls are found where {len(wanted.calls)} stand"


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= EXCERPT else f"{shown[:EXCERPT]}…"
