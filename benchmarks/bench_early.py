"""Early verdicts: what they add to the decoding of a call, by stream. On and off take turns, so the ratio is one of the
same minute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from benchmarks.measure import Measure, chunked
from streamparse import ChatDecoder, NativeDecoder, compile_tools
from streamparse.events import json_text

STATUS = {"type": "string", "enum": ["pending", "in_progress", "completed"]}
TODO = {
    "type": "object",
    "properties": {
        "content": {"type": "string"},
        "status": STATUS,
        "priority": {"type": "integer", "minimum": 1, "maximum": 5},
        "due": {"anyOf": [{"type": "string", "maxLength": 10}, {"type": "null"}]},
        "owner": {"type": "object", "properties": {"name": {"type": "string"}, "role": {"enum": ["dev", "ops"]}}},
    },
    "required": ["content", "status"],
    "additionalProperties": False,
}
TODOS = {
    "name": "write_todos",
    "parameters": {"type": "object", "properties": {"todos": {"type": "array", "items": TODO}}, "required": ["todos"]},
}
WEATHER = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "maximum": 10_000},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city"],
    },
}
WRITE = {
    "name": "write_file",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
}
SHAPE = {
    "name": "draw",
    "parameters": {
        "type": "object",
        "properties": {
            "shapes": {
                "type": "array",
                "items": {
                    "oneOf": [
                        {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}},
                        {"type": "object", "properties": {"kind": {"const": "square"}, "a": {"type": "number"}}},
                        {"type": "object", "properties": {"kind": {"const": "text"}, "words": {"type": "string"}}},
                    ]
                },
            }
        },
    },
}
TOOLS = compile_tools([TODOS, WEATHER, WRITE, SHAPE])

TODO_ITEMS = [
    {
        "content": f"Look at the second part of file {number}, and at what the test says",
        "status": "in_progress",
        "priority": number % 5 + 1,
        "due": "2025-01-01" if number % 2 else None,
        "owner": {"name": f"Person {number}", "role": "dev"},
    }
    for number in range(100)
]
SHAPES = [{"kind": "square", "a": number} for number in range(300)]


def chat_chunks(name: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    def chunk(**function: str) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": function}]}}]}

    texts = chunked(json_text(arguments))
    return [chunk(name=name, arguments=""), *(chunk(arguments=text) for text in texts)]


def envelope(calls: Sequence[tuple[str, dict[str, Any]]]) -> str:
    inner = ""
    for name, arguments in calls:
        pairs = (f'<parameter name="{key}">{value}</parameter>\n' for key, value in arguments.items())
        inner += f'<invoke name="{name}">\n{"".join(pairs)}</invoke>\n'
    return f"<minimax:tool_call>\n{inner}</minimax:tool_call>"


def decoded(make: Callable[..., Any], chunks: Sequence[Any], *, early: bool) -> None:
    decoder = make(tools=TOOLS, early=early)
    feed = decoder.feed
    for chunk in chunks:
        feed(chunk)
    decoder.close("stop")


SHORT = [("get_weather", {"city": f"Town {number}", "days": number, "unit": "celsius"}) for number in range(50)]


@pytest.mark.parametrize(
    ("name", "make", "chunks", "wanted"),
    [
        ("JSON, enums and nested objects", ChatDecoder, chat_chunks("write_todos", {"todos": TODO_ITEMS}), "1.30"),
        ("JSON, a union of objects told apart by a constant", ChatDecoder, chat_chunks("draw", {"shapes": SHAPES}), ""),
        ("JSON, one string of 40 KB", ChatDecoder, chat_chunks("write_file", {"content": "word " * 8_000}), "1.05"),
        ("M2 text, 50 calls of 3 short parameters", NativeDecoder, chunked(envelope(SHORT)), "1.30"),
        (
            "M2 text, one string of 40 KB",
            NativeDecoder,
            chunked(envelope([("write_file", {"content": "word " * 8_000})])),
            "1.05",
        ),
    ],
)
def test_overhead(measure: Measure, name: str, make: Callable[..., Any], chunks: Sequence[Any], wanted: str) -> None:
    off, on = measure.best(
        [lambda: decoded(make, chunks, early=False), lambda: decoded(make, chunks, early=True)], rounds=15
    )
    count = len(chunks)
    detail = f"{off / count * 1e9:.0f} ns per chunk without, {on / count * 1e9:.0f} ns with"
    measure.table.add(f"{name}, 4-character chunks", f"{on / off:.2f} of the time without", detail, wanted)
