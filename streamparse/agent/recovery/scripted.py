"""Models with one habit each, for any case and every wire: to try the check out, and to see that it tells them apart.

They are told the case, and therefore know what a right call is. None of them reads what it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Final, Literal, TypeAlias

import msgspec

from streamparse.agent.models import Said, Script, ScriptedModel
from streamparse.agent.recovery.case import NOTHING, RecoveryCase, drifted, is_fixed, value_at
from streamparse.agent.recovery.mutation import replaced, without
from streamparse.decoding.encode import render_answer
from streamparse.errors import UsageError
from streamparse.events import Path, ToolCall, json_text
from streamparse.tools.definition import as_tools
from streamparse.tools.validation import Judge
from streamparse.transport.wires import Wire


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One turn: what is said, and the call (name and arguments, the latter as text where they are no JSON).
    ``cut``: the answer ends there, by its length."""

    text: str = ""
    reasoning: str = ""
    call: tuple[str, dict[str, Any] | str] | None = None
    cut: bool = False


Habit: TypeAlias = Callable[[RecoveryCase], list[Line]]
"""The turns of a model. When they are used up, the last one comes again and again."""


def scripted_model(name: str, case: RecoveryCase, *, wire: Wire = Wire.CHAT, limit: int | None = None) -> ScriptedModel:
    """The model with this habit. ``wire``: both how it has to be asked, and how it answers. ``limit``: the one of the
    check, if it is not the case's.

    Raises ``UsageError`` for an unknown name, and for a habit that the case leaves no room for.
    """
    if name not in SCRIPTS:
        raise UsageError(f"there is no scripted model {name!r}; use one of {', '.join(SCRIPTS)}")
    lines = SCRIPTS[name](case)
    lines += lines[-1:] * ((limit or case.limit) + 1)  # a check asks for at most its limit, and one
    turns = [_said(line, wire, number) for number, line in enumerate(lines)]
    return ScriptedModel(turns, wire=wire)


# Habits


def _right(case: RecoveryCase) -> Line:
    return Line(reasoning="The error names the field.", call=(case.tool, case.expected))


def _wrong(case: RecoveryCase) -> Line:
    prepared = case.prepared
    if prepared.arguments is not None:
        return Line(call=(case.tool, prepared.arguments))
    return Line(call=(case.tool, prepared.arguments_text or case.expected), cut=True)


def _answer(case: RecoveryCase) -> Line:
    return Line(text=f"Done. The tool says: {json_text(case.result)} {' '.join(case.answer.contains)}".rstrip())


def _prose(case: RecoveryCase) -> Line:
    call = {"name": case.tool, "arguments": case.prepared.arguments or case.expected}
    return Line(text=f"I will make this call:\n```json\n{json_text(call)}\n```")


def _envelope(case: RecoveryCase) -> Line:
    """The rejected call, as M2 text within the answer's text."""
    arguments = case.prepared.arguments or case.expected
    return Line(text=render_answer(text="", calls=[(case.tool, arguments)], check=False))


def _other_tool(case: RecoveryCase) -> Line:
    others = [name for name in as_tools(case.tools) if name != case.tool]
    if not others:
        raise _no_room(case, "has one tool only")
    return Line(call=(others[0], {}))


def _drifted(case: RecoveryCase) -> Line:
    """Right, but for one field that was right before."""
    judge = Judge(case.tools, extra=case.extra)
    for pin in case.pins:
        for value in _other_values(value_at(case.expected, pin)):
            arguments = replaced(case.expected, pin, value)
            valid = judge.check(ToolCall("", case.tool, arguments)).valid
            if valid and drifted(case, arguments) and _is_right(case, arguments):
                return Line(call=(case.tool, arguments))
    raise _no_room(case, "has no field that could drift")


def _wrong_values(case: RecoveryCase) -> tuple[Line, Line]:
    """Two calls in which the same field is wrong, in other ways than before."""
    found: list[Line] = []
    for fix in case.fixes:
        for value in ("kelvins", [[1]], {"wrong": True}, -987654321, "rankine", None):
            arguments = _placed(case.expected, fix.path, value)
            if arguments is not None and arguments != case.prepared.arguments and not _is_right(case, arguments):
                found.append(Line(call=(case.tool, arguments)))
    if len(found) < 2:
        raise _no_room(case, "takes every value in the field that is wrong")
    return found[0], found[1]


def _new_error(case: RecoveryCase) -> Line:
    """The field is right, and another one is not."""
    judge = Judge(case.tools, extra=case.extra)
    for pin in case.pins:
        values: list[Any] = [[[1]], {"wrong": True}, -987654321, "x", None]
        for arguments in (without(case.expected, pin), *(replaced(case.expected, pin, value) for value in values)):
            issues = judge.check(ToolCall("", case.tool, arguments)).issues
            if issues and all(issue.path[: len(pin)] == pin for issue in issues):
                return Line(call=(case.tool, arguments))
    raise _no_room(case, "takes every value in the fields that are right")


def _contradicting(case: RecoveryCase) -> Line:
    words = " ".join(case.answer.contradicts) or "31415"
    return Line(text=f"Done. It is {words}.")


def _no_room(case: RecoveryCase, why: str) -> UsageError:
    return UsageError(f"case {case.name!r} {why}: this scripted model has nothing to say in it")


SCRIPTS: Final[Mapping[str, Habit]] = {
    "recovers": lambda case: [_right(case), _answer(case)],
    "second_try": lambda case: [_wrong(case), _right(case), _answer(case)],
    "repeats": lambda case: [_wrong(case)],
    "other_envelope": lambda case: [_envelope(case)],
    "prose": lambda case: [_prose(case)],
    "same_field": lambda case: [*_wrong_values(case), Line(text="I give up.")],
    "new_error": lambda case: [_new_error(case)],
    "drifts": lambda case: [_drifted(case)],
    "invents": lambda case: [Line(call=("do_what_i_mean", case.expected))],
    "other_tool": lambda case: [_other_tool(case)],
    "malformed": lambda case: [Line(call=(case.tool, '{"broken" 1}'))],
    "cut": lambda case: [Line(call=(case.tool, case.expected), cut=True)],
    "reasons": lambda case: [Line(reasoning="The unit is wrong, so I should think about it.")],
    "gives_up": lambda case: [Line(text="I am sorry, that does not seem to be possible.")],
    "ignores": lambda case: [_right(case), Line(text="Done.")],
    "contradicts": lambda case: [_right(case), _contradicting(case)],
    "silent": lambda case: [_right(case), Line(reasoning="That is the result.")],
    "cycles": lambda case: [*_wrong_values(case)] * 3,
}
"""The habits, by name."""


def _is_right(case: RecoveryCase, arguments: dict[str, Any]) -> bool:
    return all(is_fixed(case, fix, arguments) for fix in case.fixes)


def _placed(arguments: dict[str, Any], path: Path, value: Any) -> dict[str, Any] | None:
    """The arguments with this value, also where there was none; None where there is no such place."""
    parent = value_at(arguments, path[:-1])
    if not isinstance(parent, dict | list) or (isinstance(parent, list) and value_at(parent, path[-1:]) is NOTHING):
        return None
    copied = deepcopy(arguments)
    value_at(copied, path[:-1])[path[-1]] = value
    return copied


def _other_values(value: Any) -> Iterator[Any]:
    """Values of the same kind."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value - 1)
    elif isinstance(value, str):
        yield from (f"{value} (other)", value[:-1], f"{value}x", value.swapcase())
    elif isinstance(value, list):
        yield from (value[:-1], value * 2)
        for at, each in enumerate(value):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in _other_values(each))
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from ({**value, key: other} for other in _other_values(each))


# On the wire


def _said(line: Line, wire: Wire, number: int) -> Said:
    if wire in (Wire.TEXT, Wire.COMPLETIONS):
        return _native(line, opened=wire is Wire.COMPLETIONS)
    return _events(line, number) if wire is Wire.MESSAGES else _chunks(line, number)


def _native(line: Line, *, opened: bool) -> Script:
    name, arguments = line.call or ("", {})
    fields = arguments if isinstance(arguments, dict) else {}
    calls = [] if line.call is None else [(name, fields)]
    text = render_answer(reasoning=line.reasoning or None, text=line.text, calls=calls, opened=opened, check=False)
    if isinstance(arguments, str):  # there is no JSON to break here: what it is stands where a parameter is due
        lines = text.split("\n")
        text = "\n".join([*lines[:-2], arguments, *lines[-2:]])
    start: Literal["text", "reasoning"] = "reasoning" if opened else "text"
    if line.cut:
        return Script(content=text.rsplit("\n", 2)[0], start=start, finish="length")
    return Script(content=text, start=start)


def _chunks(line: Line, number: int) -> list[dict[str, Any]]:
    delta: dict[str, Any] = {"role": "assistant", "content": line.text or None}
    if line.reasoning:
        delta["reasoning_content"] = line.reasoning
    if line.call is not None:
        function = {"name": line.call[0], "arguments": _cut(line)}
        delta["tool_calls"] = [{"index": 0, "id": f"scripted_{number}", "type": "function", "function": function}]
    reason = "length" if line.cut else "tool_calls" if line.call is not None else "stop"
    return [{"model": "MiniMax-M2", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}]


def _events(line: Line, number: int) -> list[dict[str, Any]]:
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if line.reasoning:
        begin = {"type": "thinking", "thinking": ""}
        blocks.append((begin, {"type": "thinking_delta", "thinking": line.reasoning}))
    if line.text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": line.text}))
    if line.call is not None:
        use: dict[str, Any] = {"type": "tool_use", "id": f"scripted_{number}", "name": line.call[0], "input": {}}
        blocks.append((use, {"type": "input_json_delta", "partial_json": _cut(line)}))
    reason = "max_tokens" if line.cut else "tool_use" if line.call is not None else "end_turn"
    message: dict[str, Any] = {"role": "assistant", "model": "MiniMax-M2", "content": []}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, (begin, delta) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": begin})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        if not line.cut:
            events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}})
    return [*events, {"type": "message_stop"}]


def _cut(line: Line) -> str:
    """The text of the arguments, without its end if the answer is cut."""
    assert line.call is not None
    arguments = line.call[1]
    text = arguments if isinstance(arguments, str) else json_text(arguments)
    return text[:-1] if line.cut and not isinstance(arguments, str) else text
