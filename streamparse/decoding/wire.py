"""OpenAI-style chunks as they really come -> one shape (rules C1, C7, C8, C10).

``read`` makes a ``Chunk`` of whatever a caller has; how is in ``lenient``. Whatever has nothing known in it is an empty
``Chunk``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from streamparse.decoding.lenient import (
    BaseResp,
    base_resp_of,
    error_of,
    failure,
    get,
    get_int,
    get_list,
    get_str,
    get_text,
    reader,
)


class Function(msgspec.Struct, gc=False):
    """Name and arguments of a fragment, or of a legacy ``function_call`` (C10)."""

    name: str | None = None
    arguments: Any = None


class Fragment(msgspec.Struct, gc=False):
    """A piece of a tool call. Some servers leave ``function`` out and put what is in it here; a custom tool of OpenAI
    has ``custom``, whose ``input`` is any text."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None
    name: str | None = None
    arguments: Any = None
    custom: Any = None

    def flat(self) -> Function:
        """Name and arguments where ``function`` is missing."""
        if self.custom is not None:
            return Function(get_str(self.custom, "name"), get(self.custom, "input"))
        return Function(self.name, self.arguments)


class Delta(msgspec.Struct, gc=False):
    """What a chunk adds, or the whole ``message`` of a completion."""

    content: str | list[Any] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Any] | None = None
    tool_calls: list[Fragment] | None = None
    function_call: Function | None = None


class Choice(msgspec.Struct, gc=False):
    """One choice of a chunk; ``text`` is what ``/v1/completions`` has in place of a delta. Moonshot puts the usage
    here."""

    index: int | None = None
    text: str | None = None
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    error: Any = None
    usage: Any = None


class Chunk(msgspec.Struct, gc=False):
    """One chunk, or a whole completion. Only an error has the last three fields: the typed way refuses them, so that
    such a payload is read leniently, where all its words are looked at (``error_of``)."""

    choices: list[Choice] | None = None
    model: str | None = None
    usage: Any = None
    error: Any = None
    base_resp: BaseResp | None = None
    x_groq: Any = None
    message: None = None
    msg: None = None
    detail: None = None


# Leniently ------------------------------------------------------------------------------------------------------------


def _chunk(given: Any) -> Chunk:
    return Chunk(
        choices=[_choice(each) for each in get_list(given, "choices") or ()],
        model=get_str(given, "model"),
        usage=get(given, "usage"),
        error=error_of(given),
        base_resp=base_resp_of(get(given, "base_resp")),
        x_groq=get(given, "x_groq"),
    )


def _choice(given: Any) -> Choice:
    return Choice(
        index=get_int(given, "index"),
        text=get_text(given, "text"),
        delta=_delta(get(given, "delta")),
        message=_delta(get(given, "message")),
        finish_reason=get_str(given, "finish_reason"),
        native_finish_reason=get_str(given, "native_finish_reason"),
        error=get(given, "error"),
        usage=get(given, "usage"),
    )


def _delta(given: Any) -> Delta | None:
    if given is None:
        return None
    calls = get_list(given, "tool_calls")
    return Delta(
        content=get_text(given, "content") or get_list(given, "content"),
        refusal=get_text(given, "refusal"),
        reasoning_content=get_text(given, "reasoning_content"),
        reasoning=get_text(given, "reasoning"),
        reasoning_details=get_list(given, "reasoning_details"),
        tool_calls=None if calls is None else [_fragment(each) for each in calls],
        function_call=_function(get(given, "function_call")),
    )


def _fragment(given: Any) -> Fragment:
    return Fragment(
        get_int(given, "index"),
        get_str(given, "id"),
        _function(get(given, "function")),
        get_str(given, "name"),
        get(given, "arguments"),
        get(given, "custom"),
    )


def _function(given: Any) -> Function | None:
    return None if given is None else Function(get_str(given, "name"), get(given, "arguments"))


read = reader(Chunk, _chunk)
"""The chunk in whatever a caller has. Raises ``UnreadableError`` for text that is no JSON, and nothing else."""


# What is in a field ---------------------------------------------------------------------------------------------------


def reasoning_of(delta: Delta) -> str:
    """The reasoning of a delta. Several fields that are filled hold the same text: the first counts."""
    text = delta.reasoning_content or delta.reasoning
    if text or not delta.reasoning_details:
        return text or ""
    return "".join(_part(each) for each in delta.reasoning_details)


def parts_of(content: list[Any]) -> list[tuple[bool, str]]:
    """The texts of a content that is a list of parts, each with whether it is reasoning."""
    parts = []
    for part in content:
        thinking = get(part, "thinking")
        if isinstance(thinking, list):
            thinking = "".join(_part(each) for each in thinking)
        if isinstance(thinking, str):
            parts.append((True, thinking))
        else:
            parts.append((get(part, "type") == "reasoning", _part(part)))
    return [(is_reasoning, text) for is_reasoning, text in parts if text]


def _part(given: Any) -> str:
    """The text of a part, or of an entry of ``reasoning_details`` (a summary, there)."""
    if isinstance(given, str):
        return given
    return get_text(given, "text") or get_text(given, "summary") or ""


def failure_of(chunk: Chunk, choice: Choice | None) -> str:
    """C8: status and message of an error in the chunk, in one line; empty if there is none."""
    return failure((chunk.error, None if choice is None else choice.error), chunk.base_resp)
