"""The request of a turn, as the model's wire has it, and the tool that gives old results back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamparse.agent.adapters.openai import DEFAULT_STYLE, ChatStyle
from streamparse.agent.compaction import Compactor
from streamparse.agent.ledger import Ledger
from streamparse.agent.request import Choice, anthropic_request, chat_request, prompt_request
from streamparse.agent.results import MAX_TEXT
from streamparse.tools.definition import Tool
from streamparse.tools.issues import ArgumentRejectedError
from streamparse.transport.wires import Wire


def request_of(
    ledger: Ledger,
    wire: Wire,
    tools: list[Tool],
    choice: Choice,
    style: ChatStyle = DEFAULT_STYLE,
    unsigned_thinking: bool = True,
) -> dict[str, Any]:
    """The body, without what the model itself adds: its name, and how many tokens an answer may have.

    Raises ``UsageError`` for a choice that these tools cannot satisfy.
    """
    if wire is Wire.MESSAGES:
        body = anthropic_request(
            ledger, model="", max_tokens=0, tools=tools, choice=choice, unsigned_thinking=unsigned_thinking
        )
        del body["max_tokens"]
    elif wire is Wire.CHAT:
        body = chat_request(ledger, model="", tools=tools, choice=choice, style=style)
    else:
        body = prompt_request(ledger, model="", tools=tools, choice=choice)
    del body["model"]
    return body


class _Recall(Tool):
    """It reads what the conversation knows, and no resource: it makes nothing certain that was in doubt."""

    __slots__ = ()

    def resource(self, arguments: Mapping[str, Any]) -> list[str]:
        return []


def recall_tool(compactor: Compactor, ledger: Ledger, max_text: int = MAX_TEXT) -> Tool:
    """The third layer of B18 as a tool: what the marker of a skeleton names, whole. What is longer than a result of
    ``max_text`` characters may be comes in pieces, each of which says how to get the next."""
    size = max(max_text - _FRAME, max_text // 2, 1)

    def recall(handle: str, start: int = 0) -> str:
        found = compactor.recall(handle, ledger)
        if found is None:
            known = "a handle from a marker, as in recall('call_1')"
            raise ArgumentRejectedError("handle", known, "not kept; run it again")
        shown = found.shown
        if start >= len(shown) > 0:
            raise ArgumentRejectedError("start", f"a number below {len(shown)}, which is how long the result is")
        end = start + size
        piece = shown[start:end]
        if end >= len(shown):
            return piece
        return f"{piece}\n[… characters {start:,} to {end:,} of {len(shown):,}; for more: {handle!r}, start={end} …]"

    return _Recall(
        "recall",
        "Gives an old result whole that is shortened in the conversation. You must call it when a marker says "
        "recall('…') and you need what was left out.",
        {
            "type": "object",
            "properties": {
                "handle": {"type": "string", "description": "From the marker: call_1."},
                "start": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "The character to begin with, for the next piece of a long result. Default: 0.",
                },
            },
            "required": ["handle"],
            "additionalProperties": False,
        },
        "read",
        function=recall,
    )


_FRAME: Final = 200
"""Characters for what stands around a piece."""
