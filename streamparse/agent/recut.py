"""Cut a chunk into smaller ones, as a server might have sent them. For scripts: a chunking must never matter.

A chunk is a dict, OpenAI- or Anthropic-style. What cannot be cut for certain (several choices, parts, fragments without
an index) stays whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_CHAT: Final = ("reasoning_content", "reasoning", "content")
_MESSAGES: Final = ("text", "thinking", "partial_json")


def recut(chunk: Mapping[str, Any], size: int) -> list[Mapping[str, Any]]:
    """The chunk in pieces, each with at most ``size`` characters of text. What is no text stands in the first one,
    what ends the answer in the last."""
    if len_of(chunk) <= size:
        return [chunk]
    if chunk.get("type") == "content_block_delta":
        return list(_cut_block(chunk, size))
    return _cut_choice(chunk, size)


def len_of(chunk: Mapping[str, Any]) -> int:
    """Characters of text in a chunk that can be cut; 0 for any other."""
    delta = chunk.get("delta")
    if chunk.get("type") == "content_block_delta" and isinstance(delta, Mapping):
        return sum(len(delta[key]) for key in _MESSAGES if isinstance(delta.get(key), str))
    choices = chunk.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0].get("delta"), Mapping):
        return 0
    delta = choices[0]["delta"]
    calls = delta.get("tool_calls") or []
    if not all(isinstance(call.get("index"), int) for call in calls):
        return 0
    texts = [delta.get(key) for key in _CHAT] + [call.get("function", {}).get("arguments") for call in calls]
    return sum(len(text) for text in texts if isinstance(text, str))


def _slices(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]


def _cut_block(chunk: Mapping[str, Any], size: int) -> Iterator[Mapping[str, Any]]:
    for key in _MESSAGES:
        text = chunk["delta"].get(key)
        if isinstance(text, str):
            for piece in _slices(text, size):
                yield {**chunk, "delta": {**chunk["delta"], key: piece}}


def _cut_choice(chunk: Mapping[str, Any], size: int) -> list[Mapping[str, Any]]:
    choice = chunk["choices"][0]
    delta = choice["delta"]
    ends = {key: value for key, value in choice.items() if key not in ("index", "delta")}
    last = {key: chunk[key] for key in ("usage",) if key in chunk}
    head = {key: value for key, value in chunk.items() if key not in ("choices", "usage")}
    deltas = [*_deltas(delta, size)]
    for position, each in enumerate(deltas):
        final = position == len(deltas) - 1
        deltas[position] = {
            **head,
            "choices": [{"index": choice.get("index", 0), "delta": each, **(ends if final else {})}],
            **(last if final else {}),
        }
    return list(deltas)


def _deltas(delta: Mapping[str, Any], size: int) -> Iterator[dict[str, Any]]:
    rest = {key: value for key, value in delta.items() if key not in (*_CHAT, "tool_calls") and value is not None}
    if rest:
        yield rest
    for key in _CHAT:
        if isinstance(delta.get(key), str) and delta[key]:
            yield from ({key: piece} for piece in _slices(delta[key], size))
    for call in delta.get("tool_calls") or []:
        function = call.get("function") or {}
        first, *others = _slices(function.get("arguments") or "", size)
        yield {"tool_calls": [{**call, "function": {**function, "arguments": first}}]}
        for piece in others:
            yield {"tool_calls": [{"index": call["index"], "function": {"arguments": piece}}]}
