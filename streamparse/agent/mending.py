"""One message, brought into a shape that servers take. What cannot stay where it is goes on as text, never away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from streamparse.agent.legal import (
    NO_ARGUMENTS,
    clean_name,
    is_arguments,
    is_json,
    is_name,
    plain,
    read_object,
    text_of,
    text_of_parts,
)
from streamparse.agent.problems import ProblemCode
from streamparse.agent.shape import has_legal_content, is_call, is_empty, reasons, role_of
from streamparse.events import json_text

NO_ANSWER: Final = "[no answer: the turn ended in its reasoning]"
"""The text of a turn that has reasoning and nothing else."""

LOST: Final = "[no result: it was lost, or the call was not executed; whether it had an effect is unknown]"
"""The result of a call that has none."""

Tell = Callable[[ProblemCode, str], None]


def note(message: str, text: str) -> dict[str, Any]:
    """A user message that says what it is made of."""
    return {"role": "user", "content": f"[{message}]\n{text}"}


def mended(given: Any, tell: Tell) -> dict[str, Any] | None:
    """The message with nothing wrong in it but ids and its place, or None if nothing was in it. ``given`` is not
    changed; ``tell`` hears of everything that is done."""
    message = _as_message(given, tell)
    if message is None:
        return None
    message = _with_role(message, tell)
    if message["role"] == "assistant":
        message = _with_calls(message, tell)
    message = _with_content(message, tell)
    if message["role"] != "assistant" and message["content"] is None:
        return None
    if is_empty(message):
        if not reasons(message):
            tell(ProblemCode.EMPTY_TURN, "dropped")
            return None
        tell(ProblemCode.EMPTY_TURN, "said that there is only reasoning")
        message = {**message, "content": NO_ANSWER}
    return message


def _as_message(given: Any, tell: Tell) -> dict[str, Any] | None:
    if isinstance(given, dict):
        if is_json(given):
            return given
        tell(ProblemCode.NOT_JSON, "replaced what cannot be sent")
        return dict(plain(given))
    if isinstance(given, Mapping):
        tell(ProblemCode.NOT_A_MESSAGE, "made an object of it")
        return dict(plain(given))
    text = text_of(given)
    tell(ProblemCode.NOT_A_MESSAGE, "kept as a user message" if text else "dropped, it was empty")
    return note("not a message", text) if text else None


def _with_role(message: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Legacy results become results; what has no known role becomes the user's, and says so."""
    if role_of(message) is not None:
        return message
    role = message.get("role")
    if role == "function":
        tell(ProblemCode.UNKNOWN_ROLE, "made a tool result of a function's")
        return {**message, "role": "tool"}
    tell(ProblemCode.UNKNOWN_ROLE, "kept as a user message")
    content = message.get("content")
    rest = {key: value for key, value in message.items() if key not in ("role", "content") and value}
    parts = [text_of_parts(content), text_of(rest) if rest else ""]
    return note(f"message with the role {text_of(role) or 'of nobody'}", "\n".join(part for part in parts if part))


# Content


def _with_content(message: dict[str, Any], tell: Tell) -> dict[str, Any]:
    if has_legal_content(message):
        return message
    content = message.get("content")
    if message["role"] == "tool":
        tell(ProblemCode.CONTENT_NOT_TEXT, "made text of a result")
        return {**message, "content": text_of_parts(content)}
    if content is None or content == []:
        tell(ProblemCode.CONTENT_NOT_TEXT, "dropped, it was empty")
        return {**message, "content": None}
    tell(ProblemCode.CONTENT_NOT_TEXT, "made text of it")
    return {**message, "content": text_of_parts(content)}


def _add_text(message: dict[str, Any], text: str) -> dict[str, Any]:
    content = message.get("content")
    before = text_of_parts(content)
    return {**message, "content": f"{before}\n{text}" if before else text}


# Calls


def _with_calls(message: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """``tool_calls`` as a list of calls with two levels, or no such key."""
    given, legacy = message.get("tool_calls"), message.get("function_call")
    if legacy is None and (
        "tool_calls" not in message
        or given is None
        or (isinstance(given, list) and given and all(is_call(call) for call in given))
    ):
        return message
    tell(ProblemCode.MALFORMED_CALL, "put the calls into their form; what is no call is text")
    message = {key: value for key, value in message.items() if key not in ("tool_calls", "function_call")}
    entries = given if isinstance(given, list) else [given]
    calls = []
    for entry in [*entries, legacy]:
        call = _as_call(entry)
        if call is not None:
            calls.append(call)
        elif entry:
            message = _add_text(message, f"[unreadable call]\n{text_of(entry)}")
    return {**message, "tool_calls": calls} if calls else message


def _as_call(entry: Any) -> dict[str, Any] | None:
    """A call from what resembles one: flat, without a type, or with an object for its arguments."""
    if not isinstance(entry, dict):
        return None
    if is_call(entry):
        return entry
    function = entry.get("function")
    if not isinstance(function, dict):
        if not isinstance(entry.get("name"), str):
            return None
        function = {"name": entry["name"], "arguments": entry.get("arguments", entry.get("input"))}
    known = ("id", "type", "function", "name", "arguments", "input")
    rest = {key: value for key, value in entry.items() if key not in known}
    return {"id": entry.get("id"), "type": "function", "function": function, **rest}


def mended_function(function: Mapping[str, Any], tell: Tell) -> tuple[dict[str, Any], str]:
    """Name and arguments as servers take them, and what of the arguments could not stay there, for the result."""
    name, arguments = function.get("name"), function.get("arguments")
    lost = ""
    if not is_name(name):
        tell(ProblemCode.BAD_NAME, "cleaned the name")
        name = clean_name(text_of(name))
    if not is_arguments(arguments):
        arguments, lost = _mended_arguments(arguments)
        tell(ProblemCode.BAD_ARGUMENTS, "kept the broken text in the result" if lost else "wrote them as JSON")
    return {**function, "name": name, "arguments": arguments}, lost


def _mended_arguments(given: Any) -> tuple[str, str]:
    """What is tolerated without a change of meaning (J5, tier 1) is written anew. The rest is ``{}``: never guessed."""
    if given is None:
        return NO_ARGUMENTS, ""
    if not isinstance(given, str):
        written = json_text(given)
        return (written, "") if is_arguments(written) else _lost(given)
    if not given.strip():
        return NO_ARGUMENTS, ""
    value = read_object(given, repair=1)
    written = NO_ARGUMENTS if value is None else json_text(value)
    return (written, "") if value is not None and is_arguments(written) else _lost(given)


def _lost(given: Any) -> tuple[str, str]:
    return NO_ARGUMENTS, text_of(given)
