"""One streaming request with httpx: limits, retries and errors included. The server refuses it once, and then plays.

python examples/plain_httpx.py
"""

from __future__ import annotations

import asyncio

import httpx
from answer import TOOLS, recording

import streamparse
from streamparse.server import Server

REQUEST = {"model": "weather", "messages": [{"role": "user", "content": "Pack for Bern?"}], "tools": TOOLS}


def blocking(url: str) -> None:
    with httpx.Client(base_url=url) as client, streamparse.stream(client, "/v1/chat/completions", REQUEST) as events:
        for event in events:
            if isinstance(event, streamparse.ToolCallFinished):
                print(f"{event.call.name} {event.call.arguments}")
        print(f"sent {events.attempts} times, error: {events.error}")


async def asynchronous(url: str) -> None:
    """Leaving the block early closes the connection, which stops the model."""
    async with (
        httpx.AsyncClient(base_url=url) as client,
        streamparse.astream(client, "/v1/chat/completions", REQUEST) as events,
    ):
        async for event in events:
            if isinstance(event, streamparse.ToolCallFinished):
                print(f"the first call is enough: {event.call.arguments}")
                break


def main() -> None:
    with Server([recording()], speed=50, faults=["first=429:0"]) as server:
        blocking(server.url)
        asyncio.run(asynchronous(server.url))


if __name__ == "__main__":
    main()
