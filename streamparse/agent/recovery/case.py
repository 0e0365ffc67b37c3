"""A recovery case: a prepared call that is wrong, and what its correction has to look like (A3, A4).

A case is data, and a file that a person can read (``read_case``). Its tools are frozen (A7): ``digest`` says what they
were, and whoever changes them, in the file or in memory, gets ``SchemaChanged``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path as FilePath
from typing import Any, Final

import msgspec

from streamparse.agent.recovery.example import subschema
from streamparse.errors import StreamparseError, UsageError
from streamparse.events import Path, ToolCall, json_text
from streamparse.tools.canonical import same
from streamparse.tools.definition import as_tools, digest
from streamparse.tools.validation import Extra, Judge
from streamparse.tools.wording import place


class SchemaChanged(StreamparseError, ValueError):  # noqa: N818 - it says what happened, as A7 names it
    """The tools are not those with which the case was made (A7): what follows would be another experiment."""

    def __init__(self, frozen: str, found: str) -> None:
        self.frozen, self.found = frozen, found
        super().__init__(f"the tools have changed: their digest was {frozen[:12]}…, and is {found[:12]}…")


class Prepared(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The call that stands in the history as if the model had made it. It is prepared, never observed.

    One of: ``arguments``, the whole arguments of a structured call; ``arguments_text``, their text where it is no
    legal JSON; ``native``, the raw answer of an M2 model. ``finish_reason`` is the one of that answer.
    """

    arguments: dict[str, Any] | None = None
    arguments_text: str = ""
    native: str = ""
    finish_reason: str = "tool_calls"


class Fix(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A field that is wrong in the prepared call. It is fixed when it has its value in ``expected``; what is
    not there has to go."""

    path: Path


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the tool itself objects to in the prepared call, which its schema allows (the level ``tool``)."""

    path: Path
    allowed: tuple[str, ...] = ()
    hint: str = ""


class AnswerRule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the answer has to state: all of ``contains``, and nothing of ``contradicts``. Without ``contains`` it is the
    values of the result that stand neither in the request nor in the call."""

    contains: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()


class RecoveryCase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One case. ``read_case`` reads it from a file, ``generate`` makes some for any tool.

    * ``tools``: definitions in any JSON form; ``tool`` is the name of the one that is called. ``digest`` freezes them.
    * ``user``: the request. ``prepared``: the wrong call. ``kind``: what is wrong with it, in one word.
    * ``expected``: the arguments of a right call; ``fixes``, the fields that are wrong, and ``pins``, the fields that
      are right and must keep their value (A4), refer to it.
    * ``limit``: turns that may be wrong, from 1.
    * ``result``: what the mock tool returns once the call is right; ``answer``: how its use is told (A8).
    * ``refusal``: see there. ``extra``: what becomes of undeclared fields (``Judge``).

    Raises ``UsageError`` for a case that contradicts itself, ``SchemaChanged`` for tools that are not those of
    ``digest``, and ``ToolDefinitionError``.
    """

    name: str
    kind: str
    title: str = ""
    user: str
    system: str = ""
    tool: str
    tools: tuple[dict[str, Any], ...]
    digest: str = ""
    prepared: Prepared
    expected: dict[str, Any]
    fixes: tuple[Fix, ...]
    pins: tuple[Path, ...] = ()
    limit: int = 3
    result: Any
    answer: AnswerRule = AnswerRule()
    refusal: Refusal | None = None
    extra: Extra = "ignore"

    def __post_init__(self) -> None:
        if not self.digest:
            msgspec.structs.force_setattr(self, "digest", digest(self.tools))
        self.check_frozen()
        for wrong in _contradictions(self):
            raise UsageError(f"case {self.name!r}: {wrong}")

    def check_frozen(self, tools: Sequence[Any] | None = None) -> None:
        """Raises ``SchemaChanged`` if these tools, or the case's own, are not those of ``digest``."""
        for each in (self.tools, tools):
            found = self.digest if each is None else digest(each)
            if found != self.digest:
                raise SchemaChanged(self.digest, found)


NOTHING: Final = object()
"""The value at a path where there is none."""


def value_at(value: Any, path: Path) -> Any:
    """What stands there, or ``NOTHING``."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return NOTHING
    return value


def is_fixed(case: RecoveryCase, fix: Fix, arguments: Any) -> bool:
    """Whether arguments that fit the schema have this field right."""
    found, wanted = value_at(arguments, fix.path), value_at(case.expected, fix.path)
    return found is wanted if NOTHING in (found, wanted) else same(found, wanted)


def drifted(case: RecoveryCase, arguments: Any) -> tuple[Path, ...]:
    """The pins that do not have their value, and the fields that nobody asked for: those that ``expected`` does not
    have, at any depth, and that have another value than their default."""
    lost = [pin for pin in case.pins if not same(value_at(arguments, pin), value_at(case.expected, pin))]
    known = (*lost, *(fix.path for fix in case.fixes))
    schema = as_tools(case.tools)[case.tool].parameters
    for path in _added(arguments, case.expected, ()):
        value, default = value_at(arguments, path), subschema(schema, path).get("default", NOTHING)
        if not any(related(path, each) for each in known) and (default is NOTHING or not same(value, default)):
            lost.append(path)
    return tuple(lost)


def _added(value: Any, right: Any, path: Path) -> Iterator[Path]:
    """The places that only the first value has; what has another kind there is no addition."""
    if isinstance(value, dict) and isinstance(right, dict):
        for key, each in value.items():
            if key in right:
                yield from _added(each, right[key], (*path, key))
            else:
                yield (*path, key)
    elif isinstance(value, list) and isinstance(right, list):
        for at, each in enumerate(value):
            if at < len(right):
                yield from _added(each, right[at], (*path, at))
            else:
                yield (*path, at)


def related(one: Path, other: Path) -> bool:
    """Whether one of the places lies within the other."""
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def _contradictions(case: RecoveryCase) -> list[str]:
    wrong = []
    if case.tool not in as_tools(case.tools):
        wrong.append(f"its tool {case.tool!r} is none of its tools")
    prepared = case.prepared
    if [prepared.arguments is not None, bool(prepared.arguments_text), bool(prepared.native)].count(True) != 1:
        wrong.append("prepared needs one of arguments, arguments_text and native")
    if case.limit < 1:
        wrong.append(f"its limit is {case.limit}, and must be 1 or more")
    if not case.fixes:
        wrong.append("fixes is empty: nothing would have to be corrected")
    if not all((*case.pins, *(fix.path for fix in case.fixes))):
        wrong.append("a pin or a fix has an empty path: it has to name a field")
    for pin in case.pins:
        if value_at(case.expected, pin) is NOTHING:
            wrong.append(f"the pin {place(pin)} is not in expected")
        if any(related(pin, fix.path) for fix in case.fixes):
            wrong.append(f"{place(pin)} is both a pin and a fix")
    return wrong or _unfair(case)


def _unfair(case: RecoveryCase) -> list[str]:
    """What would blame a model for what the case got wrong."""
    verdict = Judge(case.tools, extra=case.extra).check(ToolCall("", case.tool, case.expected))
    wrong = [f"its own tool rejects expected: {issue}" for issue in verdict.issues]
    given = case.prepared.arguments
    if given is None:  # its text is cut, or broken: nothing can be compared
        return wrong
    lost = [pin for pin in case.pins if not same(value_at(given, pin), value_at(case.expected, pin))]
    idle = [fix.path for fix in case.fixes if is_fixed(case, fix, given)]
    wrong += [f"the pin {place(pin)} is not right in the prepared call" for pin in lost]
    return wrong + [f"{place(path)} is a fix, and is right in the prepared call" for path in idle]


# Files


def read_case(source: str | PathLike[str]) -> RecoveryCase:
    """The case in a file. Raises ``UsageError``, naming the file, ``SchemaChanged``, ``ToolDefinitionError``."""
    path = FilePath(source)
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"cannot read {path}: {reason}") from None
    return case_of(data, str(path))


def case_of(data: bytes | str, name: str = "case") -> RecoveryCase:
    """The case that is written there; ``name`` is for the errors, which are those of ``read_case``."""
    try:
        return msgspec.json.decode(data, type=RecoveryCase)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        if isinstance(error.__cause__, StreamparseError):  # msgspec wraps what __post_init__ raises
            raise error.__cause__ from None
        raise UsageError(f"{name}: expected a recovery case: {error}") from None


def case_text(case: RecoveryCase) -> str:
    """The case as a file: JSON, indented, objects and lists that fit into a line in one line."""
    return f"{_pretty(msgspec.to_builtins(case), 0)}\n"


_WIDTH: Final = 110


def _pretty(value: Any, depth: int) -> str:
    short = json_text(value)
    if len(short) + 2 * depth <= _WIDTH and (depth or not value):
        return short
    inner, outer = "  " * (depth + 1), "  " * depth
    if isinstance(value, dict):
        lines = [
            f"{inner}{json.dumps(key, ensure_ascii=False)}: {_pretty(each, depth + 1)}" for key, each in value.items()
        ]
        return "{\n" + ",\n".join(lines) + f"\n{outer}}}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(f"{inner}{_pretty(each, depth + 1)}" for each in value) + f"\n{outer}]"
    return short
