"""The tool loop with one plain function as a tool, over HTTP.

python examples/agent_loop.py

The local server plays two recorded answers. Put another endpoint in the place of its address, and this is an agent.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

import streamparse
from streamparse.agent.events import CallJudged, LoopEnded, ToolFinished
from streamparse.agent.loop import ToolLoop
from streamparse.agent.models import HttpModel
from streamparse.server import Recording, Server
from streamparse.tools.functions import tool_from_function
from streamparse.transport.recording import Header, Piece


def get_weather(city: str, days: int = 1) -> str:
    """Look up the weather of a place. You must call this when somebody asks for a forecast.

    Args:
        city: Such as 'Bern'.
        days: How many, from today.
    """
    return f"{city}: 17 degrees and sun for {days} days"


WEATHER = tool_from_function(get_weather, effect="read")  # a write, if nothing is said


async def work(url: str) -> None:
    async with httpx.AsyncClient() as client:
        loop = ToolLoop(HttpModel(client, url, model="any"), [WEATHER], system="You are brief.")
        async with loop.stream("Do I need a coat in Bern?") as events:
            async for event in events:
                match event:
                    case streamparse.Text(text):
                        print(text)
                    case CallJudged(_, _, verdict):
                        print(f"judged: {verdict.tool} {verdict.arguments}, executable: {verdict.executable}")
                    case ToolFinished(_, name, result):
                        print(f"{name}: {result.state}: {result.text}")
                    case LoopEnded(state, _, _, turns):
                        print(f"{state} after {turns} turns")


def answer(name: str, text: str, calls: list[tuple[str, dict[str, Any]]]) -> Recording:
    """A recorded answer, as the model would write it."""
    raw = streamparse.render_answer(text=text, calls=calls)
    reason = "tool_calls" if calls else "stop"
    return Recording(name, Header(tools=[WEATHER.to_openai()], finish_reason=reason), [Piece(0.0, raw)])


def main() -> None:
    answers = [
        answer("first", "I look it up.", [("get_weather", {"city": "Bern", "days": 3})]),
        answer("second", "No: 17 degrees and sun.", []),
    ]
    with Server(answers) as server:
        asyncio.run(work(f"{server.url}/v1/chat/completions"))


if __name__ == "__main__":
    main()
