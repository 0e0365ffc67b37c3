"""How many tokens a history is, estimated from its characters (B18). No tokenizer is loaded: a wrong vocabulary is no
better than a ratio, and the counter is replaceable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from streamparse.agent.legal import text_of_parts
from streamparse.agent.shape import REASONING, calls_of
from streamparse.tools.lint import estimate_tokens

Counter: TypeAlias = Callable[[str], int]
"""Text -> tokens."""

MESSAGE: Final = 4
"""Tokens of a message or a call around its text: role, tags, separators."""


def count_messages(messages: Iterable[Mapping[str, Any]], counter: Counter = estimate_tokens) -> int:
    """Tokens of OpenAI-style messages: content, reasoning, names and arguments."""
    return sum(_count(message, counter) for message in messages)


def _count(message: Mapping[str, Any], counter: Counter) -> int:
    texts = [text_of_parts(message.get("content")), *(text_of_parts(message.get(field)) for field in REASONING)]
    total = MESSAGE + sum(counter(text) for text in texts if text)
    for call in calls_of(message):
        function = call["function"]
        total += (
            MESSAGE + counter(text_of_parts(function.get("name"))) + counter(text_of_parts(function.get("arguments")))
        )
    return total
