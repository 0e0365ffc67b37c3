"""The shape of one OpenAI-style message, looked at alone: what ``preflight`` names and ``heal`` mends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from streamparse.agent.legal import is_arguments, is_json, is_name, is_parts, is_text_part
from streamparse.agent.problems import ProblemCode

SYSTEM: Final = ("system", "developer")
ROLES: Final = (*SYSTEM, "user", "assistant", "tool")

REASONING: Final = ("reasoning_content", "reasoning", "reasoning_details")
"""Where servers put the reasoning of an assistant turn."""

Found = Iterator[tuple[ProblemCode, str]]


def faults(message: Any) -> Found:
    """What is wrong with the message itself, wherever it stands, each with the id of the call."""
    if not isinstance(message, dict):
        yield ProblemCode.NOT_A_MESSAGE, ""
        return
    if not is_json(message):
        yield ProblemCode.NOT_JSON, ""
    if role_of(message) is None:
        yield ProblemCode.UNKNOWN_ROLE, ""
        return
    if not has_legal_content(message):
        yield ProblemCode.CONTENT_NOT_TEXT, ""
    elif is_empty(message):
        yield ProblemCode.EMPTY_TURN, ""
    if message["role"] == "assistant":
        yield from _call_faults(message)


def role_of(message: Mapping[str, Any]) -> str | None:
    """The role, if servers know it."""
    role = message.get("role")
    return role if isinstance(role, str) and role in ROLES else None


def has_legal_content(message: Mapping[str, Any]) -> bool:
    """Whether the content has a form that this role may have."""
    content = message.get("content")
    if isinstance(content, str):
        return True
    if message["role"] == "assistant":
        return content is None or is_parts(content)
    return message["role"] != "tool" and is_parts(content)


def is_empty(message: Mapping[str, Any]) -> bool:
    """Whether it is an assistant turn without text and without calls. Reasoning does not count: servers that do not
    know its field would see an empty turn."""
    return message["role"] == "assistant" and not (says_something(message) or message.get("tool_calls"))


def says_something(message: Mapping[str, Any]) -> bool:
    """Whether its content, or its refusal, is more than nothing."""
    content = message.get("content")
    if isinstance(content, list):
        return any(not is_text_part(part) or part["text"] for part in content)
    return bool(content or message.get("refusal"))


def reasons(message: Mapping[str, Any]) -> bool:
    """Whether it carries reasoning."""
    return any(message.get(field) for field in REASONING)


def _call_faults(message: Mapping[str, Any]) -> Found:
    calls = message.get("tool_calls")
    if message.get("function_call") is not None or (
        calls is not None and (not isinstance(calls, list) or not calls or not all(map(is_call, calls)))
    ):
        yield ProblemCode.MALFORMED_CALL, ""
    seen = set()
    for call in calls_of(message):
        id_ = call.get("id")
        if not isinstance(id_, str) or not id_:
            yield ProblemCode.MISSING_ID, ""
            id_ = ""
        elif id_ in seen:
            yield ProblemCode.REPEATED_ID, id_
        seen.add(id_)
        if not is_name(call["function"].get("name")):
            yield ProblemCode.BAD_NAME, id_
        if not is_arguments(call["function"].get("arguments")):
            yield ProblemCode.BAD_ARGUMENTS, id_


def calls_of(message: Any) -> list[Mapping[str, Any]]:
    """The calls of an assistant turn that can be read as calls."""
    calls = message.get("tool_calls") if isinstance(message, dict) and message.get("role") == "assistant" else None
    return [call for call in calls if is_call(call)] if isinstance(calls, list) else []


def is_call(call: Any) -> bool:
    """Whether an entry of ``tool_calls`` has its two levels."""
    return isinstance(call, dict) and call.get("type") == "function" and isinstance(call.get("function"), dict)
