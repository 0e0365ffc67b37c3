"""The openai SDK's stream, decoded while it comes. A local server plays a recorded answer; no key, no network.

python examples/openai_sdk.py

With an endpoint of your own, leave the server out and name the endpoint's `base_url`.
"""

from __future__ import annotations

import openai
from answer import TOOLS, recording

import streamparse
from streamparse.server import Server


def decode(client: openai.OpenAI) -> list[streamparse.ToolCall]:
    """The sealed calls of one answer; characters of arguments are printed as they arrive."""
    decoder = streamparse.ChatDecoder(tools=TOOLS)
    stream = client.chat.completions.create(
        model="weather",
        messages=[{"role": "user", "content": "Pack for Bern?"}],
        tools=TOOLS,  # type: ignore[arg-type]  # plain dicts are what the SDK sends
        stream=True,
    )
    for chunk in stream:  # objects of the SDK: the decoder reads their attributes
        show(decoder.feed(chunk))
    show(decoder.close())
    return decoder.calls


def show(events: list[streamparse.Event]) -> None:
    for event in events:
        match event:
            case streamparse.Text(text):
                print(text, end="")
            case streamparse.ToolCallStarted(_, _, name):
                print(f"\n{name}: ", end="")
            case streamparse.ArgumentDelta(_, _, text):
                print(text, end="|")


def main() -> None:
    with Server([recording()], speed=50) as server:
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none")
        for call in decode(client):
            print(f"\n{call.name} {call.arguments} trusted={call.trusted}", end="")
    print()


if __name__ == "__main__":
    main()
