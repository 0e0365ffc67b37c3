"""The request of a turn, as the model's wire has it, and the tool that gives old results back."""

from __future__ import annotations

from typing import Any

from streamparse.agent.adapters.openai import DEFAULT_STYLE, ChatStyle
from streamparse.agent.compaction import Compactor
from streamparse.agent.ledger import Ledger
from streamparse.agent.request import Choice, anthropic_request, chat_request, prompt_request
from streamparse.tools.definition import Tool
from streamparse.tools.issues import ArgumentRejected
from streamparse.transport.wires import Wire


def request_of(
    ledger: Ledger, wire: Wire, tools: list[Tool], choice: Choice, style: ChatStyle = DEFAULT_STYLE
) -> dict[str, Any]:
    """The body, without what the model itself adds: its name, and how many tokens an answer may have.

    Raises ``UsageError`` for a choice that these tools cannot satisfy.
    """
    if wire is Wire.MESSAGES:
        body = anthropic_request(ledger, model="", max_tokens=0, tools=tools, choice=choice)
        del body["max_tokens"]
    elif wire is Wire.CHAT:
        body = chat_request(ledger, model="", tools=tools, choice=choice, style=style)
    else:
        body = prompt_request(ledger, model="", tools=tools, choice=choice)
    del body["model"]
    return body


def recall_tool(compactor: Compactor, ledger: Ledger) -> Tool:
    """The third layer of B18 as a tool: what the marker of a skeleton names, whole."""

    def recall(handle: str) -> str:
        found = compactor.recall(handle, ledger)
        if found is None:
            raise ArgumentRejected("handle", "a handle from a marker, as in recall('call_1')", "not kept; run it again")
        return found.shown

    return Tool(
        "recall",
        "Gives an old result whole that is shortened in the conversation. You must call it when a marker says "
        "recall('…') and you need what was left out.",
        {
            "type": "object",
            "properties": {"handle": {"type": "string", "description": "From the marker: call_1."}},
            "required": ["handle"],
            "additionalProperties": False,
        },
        "read",
        function=recall,
    )
