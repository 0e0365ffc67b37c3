"""The prepared answer of a case, as events: it goes through the decoders like any other."""

from __future__ import annotations

from typing import Any

from streamparse.agent.recovery.case import RecoveryCase
from streamparse.decoding.chat import ChatDecoder
from streamparse.decoding.native import NativeDecoder
from streamparse.events import Event, json_text


def prepared_events(case: RecoveryCase) -> list[Event]:
    """The events of the answer that holds the wrong call. Its id says what it is: ``prepared_0``."""
    prepared = case.prepared
    if prepared.native:
        reader = NativeDecoder(tools=case.tools, id_factory=prepared_id)
        return reader.feed(prepared.native) + reader.close(prepared.finish_reason)
    decoder = ChatDecoder(tools=case.tools, dialect=None)
    return decoder.feed(_chunk(case)) + decoder.close()


def prepared_id(index: int) -> str:
    """The id of a prepared call."""
    return f"prepared_{index}"


def _chunk(case: RecoveryCase) -> dict[str, Any]:
    """The structured call as one OpenAI-style chunk."""
    prepared = case.prepared
    arguments = prepared.arguments_text or json_text(prepared.arguments)
    call = {"index": 0, "id": prepared_id(0), "function": {"name": case.tool, "arguments": arguments}}
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": prepared.finish_reason}
    return {"choices": [choice]}
