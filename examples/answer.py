"""The answer that the examples ask for: M2's raw text, in pieces of a few characters, as a recording."""

from __future__ import annotations

from typing import Any

import streamparse
from streamparse.server import Recording
from streamparse.transport.recording import Header, Piece

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "You must call this when somebody asks for the weather of a place.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "hours": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["city"],
            },
        },
    }
]


def recording() -> Recording:
    """An answer with reasoning, text and two calls. The server plays it on every endpoint."""
    text = streamparse.render_answer(
        reasoning="Bern first, then Zürich.\n",
        text="I look both up.",
        calls=[("get_weather", {"city": "Bern", "days": 3}), ("get_weather", {"city": "Zürich", "hours": [8, 12, 18]})],
        opened=True,
    )
    pieces = [Piece(at / 100, text[at : at + 5]) for at in range(0, len(text), 5)]
    return Recording("weather", Header(tools=TOOLS, start="reasoning", finish_reason="tool_calls"), pieces)
