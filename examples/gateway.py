"""Put a model that writes M2 text behind an OpenAI-style interface: text in, `chat.completion.chunk` objects out.

python examples/gateway.py
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import streamparse


def chunks(text: Iterable[str], tools: list[Any], finish_reason: str = "stop") -> Iterator[dict[str, Any]]:
    """What the gateway sends for what the model writes. Nothing that was sent is ever taken back."""
    decoder = streamparse.NativeDecoder("minimax_m2", tools=tools, start="reasoning")
    encoder = streamparse.ChunkEncoder(id="chatcmpl-1", model="MiniMax-M2")
    for piece in text:
        for event in decoder.feed(piece):
            yield from encoder.feed(event)
    for event in decoder.close(finish_reason):
        yield from encoder.feed(event)


def main() -> None:
    answer = streamparse.render_answer(
        reasoning="The user wants the weather.",
        text="One moment.",
        calls=[("get_weather", {"city": "Bern", "days": 3})],
        opened=True,
    )
    tools = [
        {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            },
        }
    ]
    for chunk in chunks((answer[at : at + 6] for at in range(0, len(answer), 6)), tools):
        print("data:", json.dumps(chunk, ensure_ascii=False))
    print("data: [DONE]")


if __name__ == "__main__":
    main()
