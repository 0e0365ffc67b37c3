"""The anthropic SDK's stream, decoded while it comes. A local server plays a recorded answer; no key, no network.

python examples/anthropic_sdk.py
"""

from __future__ import annotations

import anthropic
from answer import recording

import streamparse
from streamparse.server import Server


def decode(client: anthropic.Anthropic) -> list[streamparse.ToolCall]:
    """The sealed calls of one answer. MiniMax's own endpoint speaks this wire, too."""
    decoder = streamparse.MessagesDecoder()
    with client.messages.stream(
        model="weather", max_tokens=1000, messages=[{"role": "user", "content": "Pack for Bern?"}]
    ) as stream:
        for event in stream:  # the SDK's helper adds events of its own; the decoder doubles none
            for found in decoder.feed(event):
                if isinstance(found, streamparse.ArgumentValue) and len(found.path) == 1:
                    print(f"{found.path[0]} = {found.value!r}")
    for found in decoder.close():
        if isinstance(found, streamparse.Ended):
            print(f"{found.finish_reason}, clean={found.clean}")
    return decoder.calls


def main() -> None:
    with Server([recording()], speed=50) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="none")
        for call in decode(client):
            print(f"{call.name} {call.arguments}")


if __name__ == "__main__":
    main()
