"""A gateway: an inference server that only writes raw M2 text stands behind an OpenAI-compatible endpoint.

python examples/gateway_server.py

The openai SDK is the client, this file the gateway, and a local server plays the inference server. Nothing that the
gateway has sent is ever taken back, and each piece of an argument leaves as soon as it is certain.
"""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator

import httpx
import openai
import uvicorn
from answer import TOOLS, recording
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

import streamparse
from streamparse.server import Server


def gateway(upstream: str) -> Starlette:
    """The application. ``upstream`` is the inference server."""

    async def complete(request: Request) -> StreamingResponse:
        body = await request.json()
        return StreamingResponse(chunks(upstream, body), media_type="text/event-stream")

    return Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])])


async def chunks(upstream: str, body: dict) -> AsyncIterator[str]:
    """What the client gets, for what the model writes. A client that goes away ends this, and with it the request."""
    encoder = streamparse.ChunkEncoder(model=body["model"])
    prompt = {"model": body["model"], "prompt": "…", "stream": True}  # the chat template is the caller's
    async with httpx.AsyncClient(base_url=upstream) as client:
        answer = streamparse.astream(client, "/v1/completions", prompt, tools=body.get("tools"), start="reasoning")
        async with answer as events:
            async for event in events:
                for chunk in encoder.feed(event):
                    yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def ask(url: str) -> None:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
    with client.chat.completions.stream(
        model="weather", messages=[{"role": "user", "content": "Pack for Bern?"}], tools=TOOLS
    ) as stream:
        message = stream.get_final_completion().choices[0].message
    print(message.content)
    for call in message.tool_calls or ():
        print(call.function.name, call.function.arguments)


def main() -> None:
    with Server([recording()], speed=50) as server:
        config = uvicorn.Config(gateway(server.url), host="127.0.0.1", port=0, log_level="warning")
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run)
        thread.start()
        try:
            while not running.started:
                thread.join(0.01)
            port = running.servers[0].sockets[0].getsockname()[1]
            ask(f"http://127.0.0.1:{port}")
        finally:
            running.should_exit = True
            thread.join()


if __name__ == "__main__":
    main()
