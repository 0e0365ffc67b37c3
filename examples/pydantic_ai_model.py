"""The decoders inside another framework's loop: a pydantic-ai agent whose model is read by streamparse.

python examples/pydantic_ai_model.py

pydantic-ai runs the loop and the tools; streamparse reads the answers. So the agent gets calls out of a server that
sends the model's raw text (here: the local server, ``raw=True``), typed by the tools, and none that is half-written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
from pydantic_ai import Agent
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import (
    AgentInfo,
    DeltaThinkingCalls,
    DeltaThinkingPart,
    DeltaToolCall,
    DeltaToolCalls,
    FunctionModel,
)
from pydantic_ai.tools import ToolDefinition

import streamparse
from streamparse.agent.preflight import preflight
from streamparse.server import Recording, Server
from streamparse.transport.recording import Header, Piece


def model_of(client: httpx.AsyncClient, url: str, name: str) -> FunctionModel:
    """A model for pydantic-ai: requests go to ``url``, and answers come through the decoders."""

    async def stream(
        messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls | DeltaThinkingCalls]:
        history = [each for message in messages for each in openai_messages(message)]
        assert preflight(history) == []  # what a server would refuse
        request = {"model": name, "messages": history, "tools": [openai_tool(tool) for tool in info.function_tools]}
        async with streamparse.astream(client, url, request, dialect="minimax_m2") as events:
            async for event in events:
                match event:
                    case streamparse.Text(text):
                        yield text
                    case streamparse.Reasoning(text):
                        yield {-1: DeltaThinkingPart(content=text)}
                    case streamparse.ToolCallFinished(index, call):  # sealed: complete, delimited, typed
                        yield {index: DeltaToolCall(call.name, call.arguments_json, tool_call_id=call.id)}
                    case streamparse.ToolCallFailed(_, call, error):  # never executed, whatever was there of it
                        raise UnexpectedModelBehavior(f"the call of {call.name} failed: {error.message}")

    return FunctionModel(stream_function=stream, model_name=name)


def openai_tool(tool: ToolDefinition) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters_json_schema}
    return {"type": "function", "function": function}


def openai_messages(message: ModelMessage) -> list[dict[str, Any]]:
    """What of a message this example needs: text, calls, results."""
    if isinstance(message, ModelRequest):
        return [each for part in message.parts for each in of_request(part)]
    calls = [
        {
            "id": part.tool_call_id,
            "type": "function",
            "function": {"name": part.tool_name, "arguments": part.args_as_json_str()},
        }
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
    return [{"role": "assistant", "content": text or None} | ({"tool_calls": calls} if calls else {})]


def of_request(part: Any) -> list[dict[str, Any]]:
    match part:
        case ToolReturnPart():
            return [{"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response_str()}]
        case RetryPromptPart(tool_name=str()):
            return [{"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response()}]
        case UserPromptPart(content=str() as content):
            return [{"role": "user", "content": content}]
        case _:
            return []


# The agent ------------------------------------------------------------------------------------------------------------


def get_weather(city: str, days: int) -> str:
    """Look up the weather of a place."""
    print(f"get_weather({city!r}, {days!r})")
    return f"17 degrees in {city}"


async def work(url: str) -> None:
    async with httpx.AsyncClient() as client:
        agent = Agent(model_of(client, url, "any"), tools=[get_weather])
        async with agent.run_stream("Do I need a coat in Bern?") as result:
            print(await result.get_output())


def answer(name: str, text: str, calls: list[tuple[str, dict[str, Any]]]) -> Recording:
    """A recorded answer, as the model would write it: raw text, with its tags."""
    raw = streamparse.render_answer(text=text, calls=calls)
    return Recording(name, Header(finish_reason="tool_calls" if calls else "stop"), [Piece(0.0, raw)])


def main() -> None:
    answers = [
        answer("first", "", [("get_weather", {"city": "Bern", "days": 3})]),
        answer("second", "No, it has 17 degrees.", []),
    ]
    with Server(answers, raw=True) as server:
        asyncio.run(work(f"{server.url}/v1/chat/completions"))
        print(f"{len(server.requests)} requests")


if __name__ == "__main__":
    main()
