"""Scripts, tools and checks for the tests of the loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import streamparse
from streamparse.agent.adapters.openai import to_messages
from streamparse.agent.events import AgentEvent, LoopEnded
from streamparse.agent.ledger import Ledger
from streamparse.agent.loop import ToolLoop
from streamparse.agent.models import Script, ScriptedModel
from streamparse.agent.preflight import preflight
from streamparse.tools.definition import Tool
from tests.clocks import FakeClock, run

TEXT = {"type": "string"}


def tool(name: str, function: Callable[..., Any] | None = None, effect: str = "read", /, **properties: Any) -> Tool:
    """A tool that takes these; strings, if nothing is said. All are required."""
    schema = {key: TEXT if value is None else value for key, value in properties.items()}
    return Tool(
        name,
        f"You must call it for {name}.",
        {"type": "object", "properties": schema, "required": list(schema), "additionalProperties": False},
        effect,  # type: ignore[arg-type]
        function=function or (lambda **arguments: f"{name} {json.dumps(arguments)}"),
    )


def noted(done: list[Any], name: str = "put") -> Tool:
    """A write that takes a name, and remembers it."""

    def put(name):
        done.append(name)
        return "put"

    return tool(name, put, "write", name=None)


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def calls(*wanted: tuple[str, Any], ids: Iterable[str] = (), text: str = "", finish: str = "tool_calls") -> list[Any]:
    """An answer with calls, as chunks. Arguments are an object, or the text that was sent."""
    given = list(ids)
    entries = [
        {
            "index": index,
            "id": given[index] if index < len(given) else f"c{index}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            },
        }
        for index, (name, arguments) in enumerate(wanted)
    ]
    return [chunk(content=text), chunk(tool_calls=entries), chunk(finish)]


def says(text: str, finish: str = "stop", **more: Any) -> list[Any]:
    """An answer in text, as chunks."""
    return [chunk(content=text, **more), chunk(finish)]


def native(*wanted: tuple[str, Any], text: str = "") -> str:
    """The same in the words of M2."""
    return text + streamparse.render_calls([{"name": name, "arguments": arguments} for name, arguments in wanted])


def loop_of(turns: Iterable[Any], tools: Iterable[Any] = (), **options: Any) -> Any:
    """A loop with a scripted model and a clock that stands still."""
    clock = options.setdefault("clock", FakeClock())
    model = options.pop("model", None) or ScriptedModel(list(turns), clock=clock, **options.pop("scripted", {}))
    return ToolLoop(model, tools, **options)


def played(loop: ToolLoop, task: Any = "go", **options: Any) -> tuple[LoopEnded, list[AgentEvent]]:
    """How the run ended, and all that it said. Its history can be sent."""
    events: list[AgentEvent] = []
    ended = run(lambda: loop.run(task, on_event=events.append, **options))
    check_history(loop.ledger)
    return ended, events


def check_history(ledger: Ledger) -> list[dict[str, Any]]:
    """Each call has exactly one result, and a server takes it all."""
    assert not ledger.is_answering
    assert [call for call in ledger.calls if call.result is None or not call.state.is_end] == []
    messages = to_messages(ledger)
    assert preflight(messages) == []
    return messages


def results(loop: ToolLoop) -> list[tuple[str, str]]:
    """State and text of each result, in call order."""
    return [(call.state.value, call.result.text if call.result else "") for call in loop.ledger.calls]


def only(events: Iterable[AgentEvent], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


__all__ = [
    "Script",
    "calls",
    "check_history",
    "chunk",
    "loop_of",
    "native",
    "noted",
    "only",
    "played",
    "results",
    "says",
    "tool",
]
