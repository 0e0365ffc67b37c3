"""Streams that real providers sent, OpenAI-style: every recording in ``../shared/recordings`` of this wire.

What the index expects of a recording is the naive concatenation of its fragments. Where it says so, the recording
client's next request carried the same calls. A recording whose arguments are not JSON was cut, whatever its finish
reason says, and must fail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamparse import Deviated, DeviationCode, Ended, Event, Failed, ToolCallFailed, ToolCallFinished
from streamparse.decoding.chat import DONE, ChatDecoder
from streamparse.transport.sse import iter_events
from tests.chunks import join
from tests.conftest import shared

NONE = ("", "null")
"""No arguments at all, as servers write them (C5)."""

WIRES = frozenset({"openai_sse", "openai_chunks_jsonl"})


def load() -> list[Any]:
    lines = shared("recordings", "INDEX.jsonl").read_text("utf-8").splitlines()
    return [pytest.param(entry, id=entry["file"]) for entry in map(json.loads, lines) if entry["wire"] in WIRES]


def payloads(entry: dict[str, Any]) -> list[str]:
    """The chunks of a recording."""
    path = shared("recordings", entry["file"])
    if entry["wire"] == "openai_chunks_jsonl":
        return [line for line in path.read_text("utf-8").split("\n") if line.strip()]
    return [event.data for event in iter_events([path.read_bytes()])]


def run(chunks: list[Any], **options: Any) -> list[Event]:
    decoder = ChatDecoder(**options)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return join(events + decoder.close())


def finish_of(entry: dict[str, Any], chunks: list[Any]) -> Any:
    """The finish reason, unless the gateway's word for what its provider said is that the answer was cut (C6)."""
    words = ('"native_finish_reason":"max_output_tokens"', '"native_finish_reason":"length"')
    cut = any(word in "".join(chunk.split()) for chunk in chunks for word in words)
    return "length" if cut else entry["finish"]


def is_whole(text: str, finish: str | None) -> bool:
    """Whether these are all arguments of a call: JSON, or none at all at a regular end (C5)."""
    if text in NONE:
        return finish == "tool_calls"
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


@pytest.mark.parametrize("entry", load())
def test_recording(entry: dict[str, Any]) -> None:
    chunks = payloads(entry)
    events = run(chunks)
    if DeviationCode.OTHER_CHOICE in {event.deviation.code for event in events if isinstance(event, Deviated)}:
        check_choices(entry, chunks)
        return
    ends = [event for event in events if isinstance(event, ToolCallFinished | ToolCallFailed)]
    ends.sort(key=lambda event: event.index)
    assert len(ends) == len(entry["expected"])
    for end, wanted in zip(ends, entry["expected"], strict=True):
        assert (end.call.id, end.call.name) == (wanted["id"], wanted["name"])
        assert isinstance(end, ToolCallFinished) is is_whole(wanted["arguments"], entry["finish"])
        if isinstance(end, ToolCallFinished):
            none = wanted["arguments"] in NONE
            assert end.call.verbatim == (None if none else wanted["arguments"])
            assert end.call.arguments == ({} if none else json.loads(wanted["arguments"]))
            odd = [DeviationCode.ARGUMENTS_NOT_TEXT] if wanted["arguments"] == "null" else []
            assert [deviation.code for deviation in end.call.deviations] == odd
        else:
            assert end.call.raw == wanted["arguments"]
    assert not [event for event in events if isinstance(event, Failed)]
    last = events[-1]
    assert isinstance(last, Ended)
    assert last.finish_reason == finish_of(entry, chunks)
    assert last.clean is all(isinstance(end, ToolCallFinished) for end in ends)
    objects = [chunk if chunk.strip() == DONE else json.loads(chunk) for chunk in chunks]
    assert run(objects) == events


def check_choices(entry: dict[str, Any], chunks: list[str]) -> None:
    """A recording of several choices, each with one call: one decoder for each."""
    for choice, wanted in enumerate(entry["expected"]):
        (end,) = [event for event in run(chunks, choice=choice) if isinstance(event, ToolCallFinished)]
        assert (end.call.id, end.call.name, end.call.verbatim) == (wanted["id"], wanted["name"], wanted["arguments"])


def test_there_are_recordings() -> None:
    assert len(load()) >= 200
