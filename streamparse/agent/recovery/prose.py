"""Whether a text spells out the call of a case, where nobody executes it: as JSON, as code, as tags, or in words (A2).

JSON and code are told as everywhere (``agent.prose``). Beside them stands what only a check can tell, since it knows
which call is due: tags without their envelope, the arguments alone, and the announcement of a call in words. What says
that it does not, cannot or did not, is none: a refusal names the tool, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from streamparse.agent.prose import LOOKED_AT, SIGNS, Spelled, objects, spelled
from streamparse.agent.recovery.case import NOTHING, RecoveryCase, value_at
from streamparse.decoding.native import NativeDecoder
from streamparse.events import Deviated, Event, ToolCallFinished
from streamparse.tools.definition import as_tools
from streamparse.tools.wording import shown

_FENCE: Final = re.compile(r"```\w*\s*\n(.*?)```", re.DOTALL)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_INTENT: Final = re.compile(
    r"\b(?:i will|i shall|i am going to|i['\u2019](?:ll|m going to)|let (?:me|us)|calling|i (?:now )?call)\b",
    re.IGNORECASE,
)
_DENIAL: Final = re.compile(
    r"\b(?:not|no|never|cannot|without|instead|unable|failed|rejected)\b|n['\u2019]t\b", re.IGNORECASE
)


def spelled_calls(case: RecoveryCase, text: str, events: list[Event]) -> list[Spelled]:
    """The calls that the text spells out, in their order; the last one is what the model came to."""
    text = text[-LOOKED_AT:]
    names = as_tools(case.tools)
    found = [*_tagged(case, text), *spelled(text, names), *_bare(case, text)]
    if found:
        return sorted(found, key=lambda each: each.at)
    if any(isinstance(event, Deviated) and event.deviation.code in SIGNS for event in events):
        return [Spelled(case.tool)]
    return [Spelled(case.tool, form="words")] if _announced(case, text) else []


def names_wrong_value(case: RecoveryCase, text: str, rejected: dict[str, Any]) -> bool:
    """Whether the text has a value that was rejected, and none that would be right."""
    wrong = [value_at(rejected, fix.path) for fix in case.fixes]
    right = [value_at(case.expected, fix.path) for fix in case.fixes]
    return any(_has(text, value) for value in wrong) and not any(_has(text, value) for value in right)


def _tagged(case: RecoveryCase, text: str) -> Iterator[Spelled]:
    """Calls in M2's own tags, with or without their envelope."""
    places = [match.start() for match in re.finditer("<invoke", text)]
    decoder = NativeDecoder(tools=case.tools, bare_invoke="call")
    for event in decoder.feed(text) + decoder.close("stop"):
        if isinstance(event, ToolCallFinished):
            at = places[event.index] if event.index < len(places) else len(text)
            yield Spelled(event.call.name, event.call.arguments, "tags", at)


def _bare(case: RecoveryCase, text: str) -> Iterator[Spelled]:
    """The arguments alone, where the text, or a fence in it, is nothing but their object."""
    fields = _fields(case)
    whole = [(0, text), *((match.start(1), match[1]) for match in _FENCE.finditer(text))]
    for at, part in whole:
        stripped = part.strip()
        if stripped.startswith("{") and stripped.endswith("}"):
            found = list(objects(stripped))
            if len(found) == 1 and found[0][0] == 0 and found[0][1].keys() & fields:
                yield Spelled(case.tool, found[0][1], "JSON", at)


def _announced(case: RecoveryCase, text: str) -> bool:
    """A sentence that says that the tool is being called, and names one of its fields."""
    return any(
        _INTENT.search(sentence) is not None
        and _DENIAL.search(sentence) is None
        and _has(sentence, case.tool)
        and any(_has(sentence, field) for field in _fields(case))
        for sentence in _SENTENCE.split(text)
    )


def _fields(case: RecoveryCase) -> set[str]:
    properties = as_tools(case.tools)[case.tool].parameters.get("properties")
    return set(properties) if isinstance(properties, dict) else set()


def _has(text: str, value: Any) -> bool:
    """Whether a scalar value stands in the text, as a word of its own."""
    if value is NOTHING or value is None or isinstance(value, dict | list | bool) or value == "":
        return False
    word = value if isinstance(value, str) else shown(value)
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None
