"""The faults that people reported of other systems, as this wire meets them: the cases of ``../shared/cases``.

One case holds an Anthropic-style event: B166, behind the event stream of another wire. The rest are about what this
wire carries inside its events, and are carried here: native text in text blocks, which has to give the events of the
native decoder, and JSON texts as the arguments of a block, which have to end as the reader says. What those should be
is checked in ``test_cases_native`` and ``test_cases_json``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamparse import (
    DeviationCode,
    Ended,
    ErrorCode,
    Event,
    Failed,
    JsonDecoder,
    NativeDecoder,
    Text,
    ToolCallFailed,
    ToolCallFinished,
)
from streamparse.decoding.messages import MessagesDecoder
from streamparse.transport.sse import iter_events, payloads
from tests.chunks import check_chunking, join
from tests.conftest import shared
from tests.test_messages import closed, end, more, says, tool

FILES = ("json_partial", "m2_xml", "openai_delta", "reasoning", "sse", "truncation", "types")
TYPES = ("message_start", "message_delta", "message_stop", "content_block", "error")


def cases(*kinds: str) -> list[dict[str, Any]]:
    lines = [line for name in FILES for line in shared("cases", f"{name}.jsonl").read_text("utf-8").split("\n")]
    return [case for case in map(json.loads, filter(None, lines)) if case["input"]["type"] in kinds]


def params(*kinds: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in cases(*kinds)]


def data_of(case: dict[str, Any]) -> list[str]:
    """The payloads of a case."""
    given = case["input"]
    if given["type"] == "openai_chunks":
        return [json.dumps(chunk) for chunk in given["chunks"]]
    return [payload for event in iter_events(map(bytes.fromhex, given["chunks_hex"])) for payload in payloads(event)]


def is_event(data: str) -> bool:
    try:
        found = json.loads(data)
    except ValueError:
        return False
    return isinstance(found, dict) and str(found.get("type")).startswith(TYPES)


def test_cases_of_this_wire():
    """Which they are, and that an error in a stream is told with its words, and that the rest of it is no text here."""
    found = {}
    for case in cases("openai_chunks", "sse_bytes"):
        if case["id"] != "B165" and any(map(is_event, data := data_of(case))):  # B165 ends inside an event
            found[case["id"]] = data
    assert found.keys() == {"B166"}
    decoder = MessagesDecoder()
    events = [event for data in found["B166"] for event in decoder.feed(data)] + decoder.close()
    (failed,) = [event for event in events if isinstance(event, Failed)]
    assert failed.error.code is ErrorCode.PROVIDER_ERROR
    assert failed.error.reason == "overloaded_error Overloaded"
    assert not [event for event in events if isinstance(event, Text)]


@pytest.mark.parametrize("case", params("text", "text_chunks"))
def test_native_text_in_text_blocks(case: dict[str, Any]) -> None:
    given = case["input"]
    text = "".join(given["chunks"]) if given["type"] == "text_chunks" else given["text"]
    finish = given.get("finish_reason") or "stop"
    start: Any = "reasoning" if "reasoning" in case["expected"].get("initial_state", "") else "text"
    options: dict[str, Any] = {"tools": case.get("tools"), "start": start}

    def run(pieces: list[str]) -> list[Event]:
        decoder = MessagesDecoder(dialect="minimax_m2", **options)
        events = [event for piece in pieces for event in decoder.feed(says(piece))]
        return events + decoder.close({"length": "max_tokens", "stop": "end_turn"}.get(finish, finish))

    native = NativeDecoder("minimax_m2", **options)
    wanted = join(native.feed(text) + native.close(finish))
    found = check_chunking(run, text)
    assert found[:-1] == wanted[:-1]
    assert isinstance(found[-1], Ended)
    assert isinstance(wanted[-1], Ended)
    assert found[-1].clean is wanted[-1].clean


@pytest.mark.parametrize("case", params("json_text", "json_fragments"))
def test_json_as_arguments(case: dict[str, Any]) -> None:
    given = case["input"]
    pieces = given["fragments"] if given["type"] == "json_fragments" else [given["text"]]
    reader = JsonDecoder()
    for piece in pieces:
        reader.feed(piece)
    reader.close()
    decoder = MessagesDecoder()
    events = [event for piece in (tool(), *map(more, pieces), closed(), end()) for event in decoder.feed(piece)]
    events += decoder.close()
    (ended,) = [event for event in events if isinstance(event, ToolCallFinished | ToolCallFailed)]
    if reader.state == "complete":
        assert isinstance(ended, ToolCallFinished)
        assert ended.call.arguments == reader.value
        repaired = DeviationCode.REPAIRED in {deviation.code for deviation in ended.call.deviations}
        assert ended.call.verbatim == (None if repaired else "".join(pieces))
        assert json.loads(ended.call.arguments_json) == reader.value
    elif reader.state == "empty":
        assert isinstance(ended, ToolCallFinished)
        assert ended.call.arguments == {}
    else:
        assert isinstance(ended, ToolCallFailed)
        assert ended.error == reader.error
        assert ended.call.raw == "".join(pieces)
