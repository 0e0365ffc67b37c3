"""OpenAI-style chunks as they really come -> one shape (rules C1, C7, C8, C10).

Theory. ``read`` makes a ``Chunk`` of whatever a caller has: JSON text or bytes, a dict, a struct, an object of an SDK
(anything with these attributes). There are two ways, and the second is only taken where the first refuses:

* *typed*: ``msgspec`` decodes or converts into the structs below. Unknown fields are skipped without being built; every
  field may be missing or null. This is the way of a healthy chunk.
* *lenient*: the same structs, field by field. A field of a wrong type is as good as missing, so that one odd field
  never costs the rest of a chunk.

``read`` raises only ``UnreadableError``: text that is no JSON. Whatever has nothing known in it is an empty ``Chunk``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec


class UnreadableError(Exception):
    """The text of a chunk is no JSON. Never leaves the decoders: they make an event of it."""


class Function(msgspec.Struct, gc=False):
    """Name and arguments of a fragment, or of a legacy ``function_call`` (C10)."""

    name: str | None = None
    arguments: Any = None


class Fragment(msgspec.Struct, gc=False):
    """A piece of a tool call."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


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
    """One choice of a chunk."""

    index: int | None = None
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    error: Any = None


class BaseResp(msgspec.Struct, gc=False):
    """MiniMax reports errors here, with status 200."""

    status_code: int | str | None = None
    status_msg: str | None = None


class Chunk(msgspec.Struct, gc=False):
    """One chunk, or a whole completion."""

    choices: list[Choice] | None = None
    model: str | None = None
    usage: Any = None
    error: Any = None
    base_resp: BaseResp | None = None


_TEXTS = (str, bytes, bytearray, memoryview)
_decode = msgspec.json.Decoder(Chunk).decode


def read(given: Any) -> Chunk:
    """The chunk in whatever a caller has. Raises ``UnreadableError`` for text that is no JSON, and nothing else."""
    if isinstance(given, Chunk):
        return given
    if isinstance(given, _TEXTS):
        return _read_text(given)
    try:
        return msgspec.convert(given, Chunk, from_attributes=True)
    except Exception:  # an attribute may do anything
        return _chunk(given)


def _read_text(text: str | bytes | bytearray | memoryview) -> Chunk:
    try:
        return _decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):  # ValueError: a lone surrogate in the text
        pass
    try:
        plain = text if isinstance(text, str) else bytes(text).decode("utf-8", "replace")
        return _chunk(json.loads(plain.removeprefix("\ufeff")))
    except (ValueError, RecursionError) as error:
        raise UnreadableError(str(error)) from None


# Leniently ------------------------------------------------------------------------------------------------------------


def _get(given: Any, name: str) -> Any:
    """A field of a mapping or an object; None if it has none."""
    try:
        return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)
    except Exception:  # a property may raise anything
        return None


def _chunk(given: Any) -> Chunk:
    return Chunk(
        choices=[_choice(each) for each in _list(given, "choices") or ()],
        model=_str(given, "model"),
        usage=_get(given, "usage"),
        error=_get(given, "error"),
        base_resp=_base_resp(_get(given, "base_resp")),
    )


def _choice(given: Any) -> Choice:
    return Choice(
        index=_int(given, "index"),
        delta=_delta(_get(given, "delta")),
        message=_delta(_get(given, "message")),
        finish_reason=_str(given, "finish_reason"),
        native_finish_reason=_str(given, "native_finish_reason"),
        error=_get(given, "error"),
    )


def _delta(given: Any) -> Delta | None:
    if given is None:
        return None
    calls = _list(given, "tool_calls")
    return Delta(
        content=_str(given, "content") or _list(given, "content"),
        refusal=_str(given, "refusal"),
        reasoning_content=_str(given, "reasoning_content"),
        reasoning=_str(given, "reasoning"),
        reasoning_details=_list(given, "reasoning_details"),
        tool_calls=None if calls is None else [_fragment(each) for each in calls],
        function_call=_function(_get(given, "function_call")),
    )


def _fragment(given: Any) -> Fragment:
    return Fragment(_int(given, "index"), _str(given, "id"), _function(_get(given, "function")))


def _function(given: Any) -> Function | None:
    return None if given is None else Function(_str(given, "name"), _get(given, "arguments"))


def _base_resp(given: Any) -> BaseResp | None:
    if given is None:
        return None
    status = _int(given, "status_code")
    return BaseResp(_str(given, "status_code") if status is None else status, _str(given, "status_msg"))


def _str(given: Any, name: str) -> str | None:
    value = _get(given, name)
    return sound(value) if isinstance(value, str) else None


def _int(given: Any, name: str) -> int | None:
    value = _get(given, name)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _list(given: Any, name: str) -> list[Any] | None:
    value = _get(given, name)
    return list(value) if isinstance(value, list | tuple) else None


# What is in a field ---------------------------------------------------------------------------------------------------


def sound(text: str) -> str:
    """The text without surrogates, which nobody could encode: a pair becomes its character, half a pair U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


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
        thinking = _get(part, "thinking")
        if isinstance(thinking, list):
            thinking = "".join(_part(each) for each in thinking)
        if isinstance(thinking, str):
            parts.append((True, sound(thinking)))
        else:
            parts.append((_get(part, "type") == "reasoning", _part(part)))
    return [(is_reasoning, text) for is_reasoning, text in parts if text]


def _part(given: Any) -> str:
    """The text of a part, or of an entry of ``reasoning_details`` (a summary, there)."""
    if isinstance(given, str):
        return sound(given)
    return _str(given, "text") or _str(given, "summary") or ""


def plain(usage: Any) -> dict[str, Any] | None:
    """The usage as a dict; None if there is none."""
    if usage is not None and not isinstance(usage, dict):
        dump = _get(usage, "model_dump") or _get(usage, "to_dict")
        try:
            usage = dump() if callable(dump) else msgspec.to_builtins(getattr(usage, "__dict__", usage))
        except Exception:  # an SDK may do anything
            return None
    return dict(usage) if isinstance(usage, dict) and usage else None


def failure(chunk: Chunk, choice: Choice | None) -> str:
    """C8: status and message of an error in the chunk, in one line; empty if there is none."""
    for given in (chunk.error, None if choice is None else choice.error):
        if given:
            return _words(given)
    base = chunk.base_resp
    if base is None or base.status_code is None or str(base.status_code).strip() in ("0", ""):
        return ""
    return f"{base.status_code} {sound(base.status_msg or '')}".strip()


def _words(error: Any) -> str:
    if isinstance(error, str):
        return sound(error)
    words = [_get(error, name) for name in ("status_code", "code", "type", "message")]
    told = [str(word) for word in words if isinstance(word, str | int) and str(word)]
    return sound(" ".join(dict.fromkeys(told))) or "an error without a message"
