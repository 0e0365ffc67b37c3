"""Nothing was called, although something should have been: why (B20).

``diagnose`` goes through a request in a fixed order, the cheapest and most frequent causes first, and says of each what
it found and what to do:

1. ``tool_choice``: it forbids calls, or names what is not there
2. vague descriptions: the model cannot tell when to call
3. tools missing from the request, or nested wrongly: the server has not seen them
4. no example in the messages: nothing shows how a call is made here
5. an unclear instruction: the user asks for nothing that a tool does
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from streamparse.agent.legal import text_of, text_of_parts
from streamparse.agent.turns import Turn
from streamparse.events import ToolCallFailed, ToolCallFinished, ToolCallStarted
from streamparse.tools.lint import lint


class Cause(StrEnum):
    """Why nothing was called, in the order in which it is looked for."""

    TOOL_CHOICE = "tool_choice"
    VAGUE_DESCRIPTION = "vague_description"
    TOOLS_MISSING = "tools_missing"
    NO_EXAMPLE = "no_example"
    UNCLEAR_INSTRUCTION = "unclear_instruction"


class Finding(msgspec.Struct, frozen=True):
    """One cause, where it stands in the request, and what to do."""

    cause: Cause
    place: str
    found: str
    advice: str

    @property
    def message(self) -> str:
        """One line for people."""
        return f"{self.place}: {self.found}. {self.advice}"


_VAGUE: Final = frozenset({"no_description", "short_description", "no_trigger", "weak_trigger", "vague"})
"""The advice of ``lint`` that is about descriptions."""

_CJK: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_FEW_WORDS: Final = 3


def diagnose(request: Any, answer: Any) -> list[Finding]:
    """What may have kept the model from calling, most likely first; empty if it called, or nothing is found.

    ``request`` is a body for chat completions or the Messages API. ``answer`` is what came: text, a list of events, a
    ``Turn``, a message, or a whole completion. Never raises on content.
    """
    if not isinstance(request, Mapping):
        return [
            Finding(Cause.TOOLS_MISSING, "request", "it is no object", "Send a JSON object with messages and tools")
        ]
    if called(answer):
        return []
    return [finding for check in _CHECKS for finding in check(request)]


def called(answer: Any) -> bool:
    """Whether there is a call in the answer, sealed or not."""
    if isinstance(answer, Turn):
        return bool(answer.calls)
    if isinstance(answer, Mapping):
        choices = answer.get("choices")
        inner = [choice.get("message") for choice in _objects(choices)]
        content = answer.get("content")
        used = any(block.get("type") == "tool_use" for block in _objects(content))
        return bool(answer.get("tool_calls") or answer.get("function_call")) or used or any(map(called, inner))
    if isinstance(answer, Iterable) and not isinstance(answer, str | bytes):
        return any(isinstance(event, ToolCallStarted | ToolCallFinished | ToolCallFailed) for event in answer)
    return False


# 1


def _tool_choice(request: Mapping[str, Any]) -> Iterator[Finding]:
    choice = request.get("tool_choice")
    mode = choice.get("type") if isinstance(choice, Mapping) else choice
    names = [_fields(tool).get("name") for tool in _objects(request.get("tools"))]
    if mode == "none":
        yield _choice("it forbids calls", "Leave it out, or set it to auto or required")
    elif mode in ("function", "tool"):
        chosen = choice if isinstance(choice, Mapping) else {}
        inner = chosen if mode == "tool" else chosen.get("function")
        name = inner.get("name") if isinstance(inner, Mapping) else None
        if not isinstance(name, str) or not name:
            yield _choice("it names no tool", "Write {'type': 'function', 'function': {'name': …}}")
        elif name not in names:
            yield _choice(f"it names {name!r}, which is none of the tools", "Name one of the tools of this request")
        else:
            yield _choice(f"the server ignored that {name!r} was required", "Check that it supports a forced choice")
    elif mode in ("required", "any"):
        yield _choice("the server ignored that a call was required", "Check that it supports a forced choice")
    elif mode not in (None, "auto"):
        yield _choice(f"{_short(choice)} is unknown", "Use auto, required, none, or a named tool")


def _choice(found: str, advice: str) -> Finding:
    return Finding(Cause.TOOL_CHOICE, "tool_choice", found, advice)


# 2


def _descriptions(request: Mapping[str, Any]) -> Iterator[Finding]:
    for position, tool in enumerate(_list(request.get("tools"))):
        if not isinstance(tool, Mapping):
            continue  # the third check says so
        for advice in lint([tool]).findings:
            if advice.code in _VAGUE:
                place = f"tools[{position}] {advice.tool!r}"
                yield Finding(Cause.VAGUE_DESCRIPTION, place, f"description: {advice.code}", _sentence(advice.message))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


# 3


def _tools(request: Mapping[str, Any]) -> Iterator[Finding]:
    tools = request.get("tools")
    if tools is None and "functions" in request:
        yield _missing("functions", "it is the legacy field", "Send tools: [{'type': 'function', 'function': {…}}]")
    elif tools is None:
        yield _missing("tools", "the request has none", "Send the tools with each request, not with the first only")
    elif not isinstance(tools, list):
        yield _missing("tools", f"it is {type(tools).__name__} and no list", "Send a list of definitions")
    elif not tools:
        yield _missing("tools", "the list is empty", "Send the tools with each request, not with the first only")
    else:
        for position, tool in enumerate(tools):
            if wrong := _wrongly_nested(tool, flat="max_tokens" in request and _is_flat(tools)):
                yield _missing(f"tools[{position}]", *wrong)


def _is_flat(tools: list[Any]) -> bool:
    """Whether these are Anthropic-style tools: then they are meant to be flat."""
    return any(isinstance(tool, Mapping) and "input_schema" in tool for tool in tools)


def _wrongly_nested(tool: Any, *, flat: bool) -> tuple[str, str] | None:
    form = "Write {'type': 'function', 'function': {'name', 'description', 'parameters'}}"
    if not isinstance(tool, Mapping):
        return f"it is {type(tool).__name__} and no object", form
    if flat:
        if "function" in tool:
            return "it has two levels, and this wire wants one", "Write {'name', 'description', 'input_schema'}"
        return None if tool.get("name") else ("it has no name", "Give it one")
    function = tool.get("function")
    if not isinstance(function, Mapping):
        found = "name and parameters stand at the top level" if "name" in tool else "it has no function"
        return found, form
    if isinstance(function.get("function"), Mapping):
        return "it has three levels", form
    if tool.get("type") != "function":
        return "its type is not 'function'", form
    if not function.get("name"):
        return "its function has no name", form
    if "parameters" in tool and "parameters" not in function:
        return "parameters stand beside function and not inside it", form
    return None


def _missing(place: str, found: str, advice: str) -> Finding:
    return Finding(Cause.TOOLS_MISSING, place, found, advice)


# 4 and 5


def _example(request: Mapping[str, Any]) -> Iterator[Finding]:
    messages = _objects(request.get("messages"))
    if not any(called(message) for message in messages if message.get("role") == "assistant"):
        advice = "Put an assistant turn with a call, and its result, in front: one example is often enough"
        yield Finding(Cause.NO_EXAMPLE, "messages", "no turn in them shows a call", advice)


def _instruction(request: Mapping[str, Any]) -> Iterator[Finding]:
    messages = list(enumerate(_list(request.get("messages"))))
    said = [(place, each) for place, each in messages if isinstance(each, Mapping) and each.get("role") == "user"]
    if not said:
        yield _unclear("messages", "there is no user message", "Say what is wanted")
        return
    place, message = said[-1]
    text = text_of_parts(message.get("content"))
    if _CJK.search(text):
        return  # its words cannot be told apart without a dictionary
    words = {word.lower() for word in _WORD.findall(text)}
    if len(words) < _FEW_WORDS:
        yield _unclear(f"messages[{place}]", "it is too short to say what is wanted", "Say what to do, and with what")
    elif not _related(words, request):
        advice = "Ask in the words of a tool's description, or name the tool"
        yield _unclear(f"messages[{place}]", "it has no word in common with any tool", advice)


def _related(words: set[str], request: Mapping[str, Any]) -> bool:
    stems = {word[:5] for word in words if len(word) > 3 or word == "run"}
    for tool in _objects(request.get("tools")):
        fields = _fields(tool)
        schema = fields.get("parameters") or fields.get("input_schema")
        told = f"{text_of(fields.get('name'))} {text_of(fields.get('description'))} {text_of(schema)}"
        if stems & {word.lower()[:5] for word in _WORD.findall(told.replace("_", " "))}:
            return True
    return not _objects(request.get("tools"))


def _unclear(place: str, found: str, advice: str) -> Finding:
    return Finding(Cause.UNCLEAR_INSTRUCTION, place, found, advice)


_CHECKS: Final[tuple[Callable[[Mapping[str, Any]], Iterator[Finding]], ...]] = (
    _tool_choice,
    _descriptions,
    _tools,
    _example,
    _instruction,
)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in _list(value) if isinstance(each, Mapping)]


def _fields(tool: Any) -> Mapping[str, Any]:
    """Name, description and parameters, wherever they stand."""
    if not isinstance(tool, Mapping):
        return {}
    function = tool.get("function")
    return function if isinstance(function, Mapping) else tool


def _short(value: Any) -> str:
    text = text_of(value)
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
