"""Cases for any tool, by mutation (A12): a right call, made wrong in one way.

A mutation proposes a wrong value for a place; the judge decides whether it really is one, and whether it is blamed on
that place. So nothing here has to understand a schema fully, and no case is made that would not be rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from streamparse.agent.recovery.case import (
    NOTHING,
    AnswerRule,
    Fix,
    Prepared,
    RecoveryCase,
    Refusal,
    related,
    value_at,
)
from streamparse.agent.recovery.example import example, subschema
from streamparse.decoding.encode import render_calls
from streamparse.errors import UsageError
from streamparse.events import Path, ToolCall, json_text
from streamparse.tools.definition import Tool, as_tools
from streamparse.tools.validation import Judge

KINDS: Final = (
    "enum",
    "type",
    "missing",
    "extra",
    "union",
    "range",
    "array_for_string",
    "truncated_parameter",
    "truncated_envelope",
    "unclosed_json",
    "two_errors",
)
"""What can be made wrong with a call. ``refused``, the error of the tool itself, needs its ``Refusal``."""

Wrong: TypeAlias = Mapping[Path, Any]
"""Wrong values to use at these places, where a made one would read badly: for an enum, a range, a union, a refusal."""

Mutate: TypeAlias = Callable[[Mapping[str, Any], Any], Any]
"""A wrong value for a place, from its schema and its right value; ``NOTHING`` where it has none."""

VALUES: Final = AnswerRule()
"""The answer has to state the values of the result."""

_EXTRA: Final = "verbose"
_ABOUT: Final = "about "


def generate(
    tool: Any,
    others: Iterable[Any] = (),
    *,
    arguments: dict[str, Any] | None = None,
    user: str = "",
    result: Any = None,
    answer: AnswerRule = VALUES,
    wrong: Wrong | None = None,
    refusal: Refusal | None = None,
    kinds: Sequence[str] = KINDS,
    name: str = "",
    limit: int = 3,
) -> list[RecoveryCase]:
    """A case for each of ``kinds`` that this tool's schema has a place for.

    ``tool`` and ``others`` are definitions in any form, ``arguments`` those of a right call; without them an example is
    made from the schema. ``user`` is the request, which has to say all of them: without it, it does so in JSON.
    ``result`` and ``answer``: as in a case. ``wrong``: see there; ``refusal`` is for the kind ``refused``, which needs
    a wrong value for its path.

    Raises ``UsageError`` for arguments that are not right, and for an unknown kind; ``ToolDefinitionError``.
    """
    known = as_tools([tool, *others])
    first = next(iter(known.values()))
    right = example(first.parameters) if arguments is None else arguments
    maker = _Maker(first, right, dict(wrong or {}), refusal)
    maker.check()
    base: dict[str, Any] = {
        "tool": first.name,
        "tools": tuple(_definition(each) for each in known.values()),
        "user": user or f"Call the tool {first.name} with exactly these arguments: {json_text(right)}",
        "limit": limit,
        "result": {"receipt": "R-4071"} if result is None else result,
        "answer": answer,
    }
    cases = []
    for kind in kinds:
        made = maker.make(kind)
        if made is not None:
            cases.append(RecoveryCase(name=f"{name or first.name}_{kind}", kind=kind, **base, **made))
    return cases


def _definition(tool: Tool) -> dict[str, Any]:
    definition: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {**definition, "annotations": {"readOnlyHint": True}} if tool.effect == "read" else definition


class _Maker:
    """Makes the part of a case that says what is wrong."""

    def __init__(self, tool: Tool, right: dict[str, Any], wrong: dict[Path, Any], refusal: Refusal | None) -> None:
        self.tool, self.right, self.wrong, self.refusal = tool, right, wrong, refusal
        self.judge = Judge([tool], extra="reject")

    def check(self) -> None:
        issues = self.judge.check(ToolCall("", self.tool.name, self.right)).issues
        if issues:
            raise UsageError(f"tool {self.tool.name!r}: these are not the arguments of a right call: {issues[0]}")

    def make(self, kind: str) -> dict[str, Any] | None:
        """``prepared``, ``fixes`` …; None where the tool has no place for this kind."""
        if kind not in (*KINDS, "refused"):
            raise UsageError(f"kind {kind!r} is unknown; use one of {', '.join((*KINDS, 'refused'))}")
        made: dict[str, Any] | None = getattr(self, f"_{kind}")()
        return made

    # Structured calls, with one field wrong

    def _enum(self) -> dict[str, Any] | None:
        return self._mutated(_outside_enum, self.wrong)

    def _type(self) -> dict[str, Any] | None:
        return self._mutated(_other_type)

    def _range(self) -> dict[str, Any] | None:
        return self._mutated(_out_of_range, self.wrong)

    def _array_for_string(self) -> dict[str, Any] | None:
        return self._mutated(
            lambda schema, value: [value] if isinstance(value, str) and "enum" not in schema else NOTHING
        )

    def _missing(self) -> dict[str, Any] | None:
        for path, _, _ in self._places():
            made = self._case(without(self.right, path), [path])
            if made is not None:
                return made
        return None

    def _extra(self) -> dict[str, Any] | None:
        made = self._case({**self.right, _EXTRA: True}, [(_EXTRA,)])
        return None if made is None else {**made, "extra": "reject"}

    def _union(self) -> dict[str, Any] | None:
        """Something wrong within a value that may have several forms."""
        unions = [path for path, schema, _ in self._places() if any(key in schema for key in ("anyOf", "oneOf"))]
        for union in unions:
            inside = [path for path, _ in _walk(self.right, ()) if path[: len(union)] == union and path != union]
            for path in inside:
                tried = [self.wrong[path]] if path in self.wrong else [_other_type({}, value_at(self.right, path))]
                for value in tried:
                    made = None if value is NOTHING else self._case(replaced(self.right, path, value), [path])
                    if made is not None:
                        return made
        return None

    def _two_errors(self) -> dict[str, Any] | None:
        found: list[tuple[Path, dict[str, Any]]] = []
        for make in (self._enum, self._type, self._range, self._missing, self._array_for_string):
            one = make()
            if one is not None and not any(related(one["fixes"][0].path, path) for path, _ in found):
                found.append((one["fixes"][0].path, one["prepared"].arguments))
        if len(found) < 2:
            return None
        (first, arguments), (second, other) = found[:2]
        value = value_at(other, second)
        both = without(arguments, second) if value is NOTHING else replaced(arguments, second, value)
        return self._case(both, [first, second])

    def _refused(self) -> dict[str, Any] | None:
        if self.refusal is None or self.refusal.path not in self.wrong:
            raise UsageError("the kind 'refused' needs a refusal, and a wrong value for its path")
        path = self.refusal.path
        arguments = replaced(self.right, path, self.wrong[path])
        return {**self._made(Prepared(arguments=arguments), [path]), "refusal": self.refusal}

    # Calls that are not whole

    def _truncated_parameter(self) -> dict[str, Any] | None:
        last, value = next(reversed(self.right.items()), ("", None))
        if not isinstance(value, str) or len(value) < 2:
            return None
        whole = self._native()
        end = whole.rindex(f">{value}</parameter>") + 1 + len(value) // 2
        return self._made(Prepared(native=whole[:end], finish_reason="length"), [(last,)])

    def _truncated_envelope(self) -> dict[str, Any] | None:
        if not self.right:
            return None
        whole, last = self._native(), list(self.right)[-1]
        without_its_end = whole.rsplit("\n", 2)[0]  # the lines that close the call and the envelope
        return self._made(Prepared(native=f"{without_its_end}\n", finish_reason="length"), [(last,)])

    def _unclosed_json(self) -> dict[str, Any] | None:
        if not self.right:
            return None
        last = list(self.right)[-1]
        text = json_text(self.right)
        return self._made(Prepared(arguments_text=text[:-2], finish_reason="tool_calls"), [(last,)])

    def _native(self) -> str:
        return render_calls([(self.tool.name, self.right)], tools=[self.tool])

    # What they have in common

    def _places(self) -> Iterator[tuple[Path, Mapping[str, Any], Any]]:
        """The places in the right call, with their schemas."""
        for path, value in _walk(self.right, ()):
            yield path, subschema(self.tool.parameters, path), value

    def _mutated(self, mutate: Mutate, wrong: Wrong = MappingProxyType({})) -> dict[str, Any] | None:
        for path, schema, value in self._places():
            found = mutate(schema, value)
            if found is NOTHING:
                continue
            made = self._case(replaced(self.right, path, wrong.get(path, found)), [path])
            if made is not None:
                return made
        return None

    def _case(self, arguments: dict[str, Any], paths: Sequence[Path]) -> dict[str, Any] | None:
        """The case, if the judge rejects the call for each of these places, and for no other."""
        issues = self.judge.check(ToolCall("", self.tool.name, arguments)).issues
        blamed = all(any(related(issue.path, path) for issue in issues) for path in paths)
        only = all(any(related(issue.path, path) for path in paths) for issue in issues)
        return self._made(Prepared(arguments=arguments), paths) if issues and blamed and only else None

    def _made(self, prepared: Prepared, paths: Sequence[Path]) -> dict[str, Any]:
        return {
            "prepared": prepared,
            "expected": deepcopy(self.right),
            "fixes": tuple(Fix(path) for path in paths),
            "pins": tuple(_pins(self.right, (), paths)),
        }


def _walk(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """The places within a value, from the outside in."""
    members: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for step, each in members:
        yield (*path, step), each
        yield from _walk(each, (*path, step))


def _pins(value: Any, path: Path, wrong: Sequence[Path]) -> Iterator[Path]:
    """The largest parts of a right call in which nothing is wrong."""
    if path and not any(related(path, each) for each in wrong):
        yield path
    elif path not in wrong:
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for step, each in members:
            yield from _pins(each, (*path, step), wrong)


def replaced(arguments: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """The arguments with another value at this place."""
    copied = deepcopy(arguments)
    value_at(copied, path[:-1])[path[-1]] = value
    return copied


def without(arguments: dict[str, Any], path: Path) -> dict[str, Any]:
    """The arguments without this place."""
    copied = deepcopy(arguments)
    del value_at(copied, path[:-1])[path[-1]]
    return copied


# Wrong values


def _outside_enum(schema: Mapping[str, Any], value: Any) -> Any:
    if not ("enum" in schema or "const" in schema):
        return NOTHING
    return f"{value}_other" if isinstance(value, str) else "other"


def _other_type(_: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, bool):
        return "maybe"
    if isinstance(value, int | float):
        return f"{_ABOUT}{value}"
    if isinstance(value, str):
        return {"value": value}
    if isinstance(value, list):
        return "; ".join(map(str, value)) or "none"
    return "the usual" if isinstance(value, dict) else NOTHING


def _out_of_range(schema: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NOTHING
    for key, step in (("maximum", 1), ("exclusiveMaximum", 0), ("minimum", -1), ("exclusiveMinimum", 0)):
        bound = schema.get(key)
        if isinstance(bound, int | float):
            return bound + step
    return NOTHING
