"""Calls -> the text of a dialect: what a model would have written, for history and for round trips.

``layout`` says what a text looks like. This module says what may be written at all. Values are not escaped (N9), so
some have no text: a string that quotes the end of its own call, a number where the schema wants a string. Nothing is
written that would be read as something else: with ``check=True`` the text is read again by ``NativeDecoder``, as an
answer of its own that ends where it ends, and ``UsageError`` is raised if anything differs. It is compared with

* exactly what was to be written, if ``tools`` are given (as JSON text: ``1``, ``1.0`` and ``True`` differ), and where
  the wire carries types (a dialect with a ``PAYLOAD``);
* else with what a reader without tools can know (T5): an object or array comes back as such, a string as whatever its
  text is to T5, anything else as its text. So ``3`` may stand beside ``"3"``, and a value that is cut is still found.

Reading costs what decoding the answer costs. Who knows that the values are harmless may leave it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from json import JSONDecodeError, loads
from typing import Any, NamedTuple, TypeAlias

from streamparse.decoding.layout import Call, Layout, layout_of, write_json
from streamparse.decoding.native import decode
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
    """The calls as a model of this dialect writes them, with no line break before or after; ``""`` for none.

    ``dialect`` is a name from ``dialects()`` or the path of a ``.lark`` file. ``grouped`` puts all calls into one
    envelope (MiniMax M2), ``False`` gives each its own (Qwen3-Coder); both read alike, and a dialect without envelopes
    knows no difference. ``tools`` and ``check``: see the module.

    Raises ``UsageError`` for what is no call, for a name or value that has no text, and, with ``check``, for what would
    not read back equal.
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
    """One whole assistant turn: reasoning in its tags, then text, then calls; not the special tokens around a turn.

    ``opened`` says that the prompt opened the reasoning (N1): the opening tag is left out, the closing tag is not, even
    if there is no reasoning. ``reasoning=None`` is none, ``""`` an empty pair of tags. The rest as in ``render_calls``.
    """
    layout = _layout(dialect)
    tools = None if tools is None else list(tools)
    given = [_named(call) for call in calls]
    if reasoning is None and opened:
        reasoning = ""
    written = [layout.write_call(call) for call in given]
    answer = layout.answer(reasoning, text, written, opened=opened, grouped=grouped)
    if check:
        exact = layout.typed or tools is not None
        wanted = _Answer(reasoning or "", text, given if exact else [_untyped(call) for call in given])
        found = _read(answer, dialect, tools, opened)
        if found.error or not _equal(found, wanted):
            reason = f"cannot be written in {layout.dialect} so that it reads back equal: {_difference(found, wanted)}"
            raise UsageError(f"{reason}; check=False writes it all the same")
    return answer


def _layout(dialect: str) -> Layout:
    from streamparse.decoding.grammar import load  # lark is loaded with the first dialect, not with the library

    return layout_of(load(dialect))


# What the caller gives


def _named(call: CallLike) -> Call:
    """A call in any form, as name and arguments."""
    name: Any
    arguments: Any
    if isinstance(call, ToolCall | PartialToolCall):
        name, arguments = call.name, call.arguments
    elif isinstance(call, Mapping):
        name, arguments = _of_json(call)
    elif isinstance(call, tuple) and len(call) == 2:
        name, arguments = call
    else:
        raise UsageError(f"{type(call).__name__} is no call; give a ToolCall, (name, arguments), or OpenAI-style JSON")
    if not isinstance(name, str) or not name:
        raise UsageError(f"a call needs a name, and {name!r} is none")
    if not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments):
        raise UsageError(f"the arguments of {name!r} must be an object with names as keys")
    return Call(name, arguments)


def _of_json(call: Mapping[str, Any]) -> tuple[Any, Any]:
    """OpenAI-style JSON. Arguments that are empty text are no arguments, as on the wire (C5)."""
    function = call.get("function", call)
    if not isinstance(function, Mapping) or "name" not in function:
        raise UsageError("a call as JSON needs a name: {'function': {'name': …, 'arguments': …}}")
    name, arguments = function["name"], function.get("arguments", {})
    try:
        return name, (loads(arguments or "{}") if isinstance(arguments, str) else arguments)
    except (JSONDecodeError, RecursionError) as error:
        raise UsageError(f"the arguments of {name!r} are not JSON: {error}") from error


def _untyped(call: Call) -> Call:
    """What T5 makes of a call's text."""
    return Call(call.name, {key: _untyped_value(value) for key, value in call.arguments.items()})


def _untyped_value(value: Any) -> Any:
    if isinstance(value, str):
        return ANY.read(value).value
    return value if isinstance(value, Mapping | list | tuple) else write_json(value, "a value")


# What a reader finds


class _Answer(NamedTuple):
    reasoning: str
    text: str
    calls: Sequence[Call]
    error: str = ""


def _read(answer: str, dialect: str, tools: list[Any] | None, opened: bool) -> _Answer:
    """What a decoder makes of an answer."""
    events = decode(answer, dialect, tools=tools, start="reasoning" if opened else "text")
    return _Answer(
        "".join(event.text for event in events if isinstance(event, Reasoning)),
        "".join(event.text for event in events if isinstance(event, Text)),
        [Call(event.call.name, event.call.arguments) for event in events if isinstance(event, ToolCallFinished)],
        next(_errors(events), ""),
    )


def _errors(events: list[Event]) -> Iterator[str]:
    return (event.error.message for event in events if isinstance(event, ToolCallFailed | Failed))


def _equal(found: _Answer, wanted: _Answer) -> bool:
    return found[:2] == wanted[:2] and [*map(_text, found.calls)] == [*map(_text, wanted.calls)]


def _text(value: Any) -> str:
    if isinstance(value, Call):
        value = [value.name, dict(value.arguments)]
    return json_text(value)


def _difference(found: _Answer, wanted: _Answer) -> str:
    """The first difference, in words, and the first error."""
    why = f" ({found.error})" if found.error else ""
    if found.reasoning != wanted.reasoning:
        return f"the reasoning reads back as {_shown(found.reasoning)}{why}"
    for position, call in enumerate(wanted.calls):
        if position >= len(found.calls):
            return f"call {position}, {call.name!r}, is not found{why}"
        if _text(found.calls[position]) != _text(call):
            return f"call {position}, {call.name!r}: {_call_difference(found.calls[position], call)}{why}"
    if len(found.calls) != len(wanted.calls):
        return f"{len(found.calls)} calls are found instead of {len(wanted.calls)}{why}"
    return f"the text reads back as {_shown(found.text)}{why}"


def _call_difference(found: Call, wanted: Call) -> str:
    if found.name != wanted.name:
        return f"its name reads back as {_shown(found.name)}"
    for key, value in wanted.arguments.items():
        if key not in found.arguments:
            return f"argument {key!r} is not found"
        if _text(found.arguments[key]) != _text(value):
            return f"argument {key!r} reads back as {_shown(found.arguments[key])}"
    return "an argument is found that it does not have"


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= EXCERPT else f"{shown[:EXCERPT]}…"
