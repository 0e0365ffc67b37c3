"""Whether a text spells out a call, where nobody executes it: as JSON, as code, as tags, or in words (A2)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from streamparse.agent.recovery.case import NOTHING, RecoveryCase, value_at
from streamparse.decoding.native import NativeDecoder
from streamparse.events import Deviated, DeviationCode, Event, ToolCallFinished
from streamparse.tools.definition import as_tools
from streamparse.tools.wording import shown

_LOOKED_AT: Final = 20_000
"""Characters of a text that are searched: a call in prose is short."""

_TRIES: Final = 50
"""Braces at which JSON is tried."""

_ARGUMENT = re.compile(r"""(\w+)\s*[=:]\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^,()\s]+)""")
_ARGUMENTS: Final = ("arguments", "parameters", "input", "args")
_SIGNS: Final = (DeviationCode.FOREIGN_FORMAT, DeviationCode.BARE_INVOKE)


class Spelled(msgspec.Struct, frozen=True):
    """A call in a text: the tool, and the arguments where they can be read."""

    name: str
    arguments: dict[str, Any] | None = None


def spelled_call(case: RecoveryCase, text: str, events: list[Event]) -> Spelled | None:
    """The call that the text spells out; None if it does not."""
    text = text[:_LOOKED_AT]
    for found in (*_tagged(case, text), *_json(case, text), *_code(case, text)):
        return found
    if any(isinstance(event, Deviated) and event.deviation.code in _SIGNS for event in events):
        return Spelled(case.tool)
    return Spelled(case.tool) if _in_words(case, text) else None


def names_wrong_value(case: RecoveryCase, text: str, rejected: dict[str, Any]) -> bool:
    """Whether the text has a value that was rejected, and none that would be right."""
    wrong = [value_at(rejected, fix.path) for fix in case.fixes]
    right = [value_at(case.expected, fix.path) for fix in case.fixes]
    return any(_has(text, value) for value in wrong) and not any(_has(text, value) for value in right)


def _tagged(case: RecoveryCase, text: str) -> Iterator[Spelled]:
    decoder = NativeDecoder(tools=case.tools, bare_invoke="call")
    for event in decoder.feed(text) + decoder.close("stop"):
        if isinstance(event, ToolCallFinished):
            yield Spelled(event.call.name, event.call.arguments)


def _json(case: RecoveryCase, text: str) -> Iterator[Spelled]:
    at, reader = text.find("{"), json.JSONDecoder()
    for _ in range(_TRIES):
        if at < 0:
            return
        try:
            value, end = reader.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        if (found := _as_call(case, value)) is not None:
            yield found
        at = text.find("{", end)


def _as_call(case: RecoveryCase, value: dict[str, Any]) -> Spelled | None:
    inner = value.get("function", value)
    name = inner.get("name") if isinstance(inner, dict) else None
    if isinstance(name, str):
        arguments = next((inner[key] for key in _ARGUMENTS if key in inner), None)
        if isinstance(arguments, dict):
            return Spelled(name, arguments)
    return Spelled(case.tool, value) if value.keys() & _fields(case) else None


def _code(case: RecoveryCase, text: str) -> Iterator[Spelled]:
    """``get_weather(location="Bern", unit="kelvin")``."""
    for name in as_tools(case.tools):
        for match in re.finditer(rf"(?<!\w){re.escape(name)}\s*\(([^()]{{0,2000}})\)", text):
            arguments = {key: _value(word) for key, word in _ARGUMENT.findall(match[1])}
            yield Spelled(name, arguments or None)


def _value(word: str) -> Any:
    if word.startswith("'"):
        return word[1:-1]
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        return word


def _in_words(case: RecoveryCase, text: str) -> bool:
    """The name of the tool and one of its fields: a refusal names the tool alone, or neither."""
    return _has(text, case.tool) and any(_has(text, field) for field in _fields(case))


def _fields(case: RecoveryCase) -> set[str]:
    properties = as_tools(case.tools)[case.tool].parameters.get("properties")
    return set(properties) if isinstance(properties, dict) else set()


def _has(text: str, value: Any) -> bool:
    """Whether a scalar value stands in the text, as a word of its own."""
    if value is NOTHING or value is None or isinstance(value, dict | list | bool) or value == "":
        return False
    word = value if isinstance(value, str) else shown(value)
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None
