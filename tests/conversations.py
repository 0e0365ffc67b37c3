"""Conversations with the recovery check as a person writes them down, and as a wire carries them.

::

    thinks The unit is wrong.
    calls get_weather {"location": "Bern, Switzerland", "unit": "celsius"}
    -
    says It is 17.5 degrees.

A dash ends a turn. ``cut`` as the last line of a turn cuts the answer there, by its length.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from streamparse import render_calls
from streamparse.transport.wires import Wire


class Turn(NamedTuple):
    """What one turn says."""

    thought: str
    text: str
    calls: list[tuple[str, str]]
    cut: bool


def turns_of(script: str) -> list[Turn]:
    lines = "\n".join(line.strip() for line in script.strip().splitlines())
    return [_turn(part.splitlines()) for part in lines.split("\n-\n")]


def _turn(lines: list[str]) -> Turn:
    found: dict[str, list[str]] = {"thinks": [], "says": [], "calls": [], "cut": []}
    for line in lines:
        word, _, rest = line.partition(" ")
        found[word].append(rest.replace("\\n", "\n"))
    calls = [(name, arguments) for name, _, arguments in (each.partition(" ") for each in found["calls"])]
    return Turn("\n".join(found["thinks"]), "\n".join(found["says"]), calls, "cut" in lines[-1].split())


def on_wire(turn: Turn, wire: Wire) -> Any:
    """The turn as native text, as OpenAI-style chunks, or as Anthropic-style events."""
    return {Wire.TEXT: native, Wire.CHAT: chunks, Wire.MESSAGES: events}[wire](turn)


def native(turn: Turn) -> str:
    thought = f"<think>\n{turn.thought}\n</think>\n\n" if turn.thought else ""
    calls = render_calls([(name, json.loads(text)) for name, text in turn.calls], check=False) if turn.calls else ""
    whole = f"{thought}{turn.text}{chr(10) if turn.text and calls else ''}{calls}"
    return whole[: whole.rfind("</parameter>")] if turn.cut and calls else whole


def chunks(turn: Turn) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    parts += [{"reasoning_content": turn.thought}] if turn.thought else []
    parts += [{"content": turn.text}] if turn.text else []
    for index, (name, arguments) in enumerate(turn.calls):
        head = {"index": index, "id": f"call_{name}_{index}", "function": {"name": name, "arguments": ""}}
        text = arguments[:-2] if turn.cut else arguments
        half = len(text) // 2
        parts.append({"tool_calls": [head]})
        parts += [
            {"tool_calls": [{"index": index, "function": {"arguments": each}}]} for each in (text[:half], text[half:])
        ]
    reason = "length" if turn.cut else "tool_calls" if turn.calls else "stop"
    deltas = [*((part, None) for part in parts), ({}, reason)]
    return [{"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} for delta, finish in deltas]


def events(turn: Turn) -> list[dict[str, Any]]:
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if turn.thought:
        thinking = {"type": "thinking_delta", "thinking": turn.thought}
        blocks.append(({"type": "thinking", "thinking": ""}, thinking))
    if turn.text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": turn.text}))
    for index, (name, arguments) in enumerate(turn.calls):
        use = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
        text = arguments[:-2] if turn.cut else arguments
        blocks.append((use, {"type": "input_json_delta", "partial_json": text}))
    reason = "max_tokens" if turn.cut else "tool_use" if turn.calls else "end_turn"
    found: list[dict[str, Any]] = [{"type": "message_start", "message": {"role": "assistant", "content": []}}]
    for index, (block, delta) in enumerate(blocks):
        found.append({"type": "content_block_start", "index": index, "content_block": block})
        found.append({"type": "content_block_delta", "index": index, "delta": delta})
        if not turn.cut:
            found.append({"type": "content_block_stop", "index": index})
    return [*found, {"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"}]
