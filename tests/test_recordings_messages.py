"""Streams that real providers sent, Anthropic-style: every recording in ``../shared/recordings`` of this wire.

Read as ``test_recordings`` reads its own. The index counts the calls that the provider runs itself, too; they carry
the one deviation that says so. ``""`` is no arguments, which is ``{}``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamparse import DeviationCode, Ended, Event, Failed, Reasoning, Text, ToolCallFailed, ToolCallFinished
from streamparse.decoding.messages import MessagesDecoder
from streamparse.transport.sse import iter_events, payloads
from tests.chunks import join
from tests.conftest import shared

WIRES = frozenset({"anthropic_sse", "anthropic_chunks_jsonl"})


def load() -> list[Any]:
    lines = shared("recordings", "INDEX.jsonl").read_text("utf-8").splitlines()
    return [pytest.param(entry, id=entry["file"]) for entry in map(json.loads, lines) if entry["wire"] in WIRES]


def read(entry: dict[str, Any]) -> list[str]:
    """The payloads of a recording; of an event stream through the transport's own reader."""
    if entry["wire"] == "anthropic_chunks_jsonl":
        return [line for line in shared("recordings", entry["file"]).read_text("utf-8").split("\n") if line.strip()]
    with shared("recordings", entry["file"]).open("rb") as file:
        return [payload for event in iter_events(iter(lambda: file.read(4096), b"")) for payload in payloads(event)]


def run(chunks: list[Any], **options: Any) -> list[Event]:
    decoder = MessagesDecoder(**options)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return join(events + decoder.close())


def is_whole(text: str) -> bool:
    try:
        return isinstance(json.loads(text or "{}"), dict)
    except ValueError:
        return False


def naive(chunks: list[str], kind: str) -> str:
    """All text of one kind, joined as it stands in the deltas and at the start of blocks."""
    found = []
    for event in map(json.loads, chunks):
        part = event.get("delta") or event.get("content_block") or {}
        if part.get("type") in (kind, f"{kind}_delta"):
            found.append(part.get(kind, ""))
    return "".join(found)


def given(chunks: list[str], id_: str) -> str:
    """The input that the start of a block holds, which the index leaves out."""
    blocks = (json.loads(chunk).get("content_block") or {} for chunk in chunks)
    return next(json.dumps(block["input"]) for block in blocks if block.get("id") == id_)


def answers(chunks: list[str]) -> list[list[str]]:
    """A recording of several answers, one after the other: each of them."""
    starts = [at for at, chunk in enumerate(chunks) if '"message_start"' in chunk]
    return [chunks[at:end] for at, end in zip(starts, [*starts[1:], len(chunks)], strict=True)]


@pytest.mark.parametrize("entry", load())
def test_recording(entry: dict[str, Any]) -> None:
    chunks, *more = answers(read(entry))
    events = run(chunks)
    ends = [event for event in events if isinstance(event, ToolCallFinished | ToolCallFailed)]
    ends.sort(key=lambda event: event.index)
    assert len(ends) == len(entry["expected"])
    for end, wanted in zip(ends, entry["expected"], strict=True):
        assert (end.call.id, end.call.name) == (wanted["id"], wanted["name"])
        assert isinstance(end, ToolCallFinished) is is_whole(wanted["arguments"])
        if isinstance(end, ToolCallFinished):
            arguments = wanted["arguments"] or given(chunks, wanted["id"])
            assert json.loads(end.call.arguments_json) == end.call.arguments == json.loads(arguments)
            assert end.call.arguments_json == arguments or not wanted["arguments"]
            on_server = not wanted["id"].startswith("toolu_")
            assert [each.code for each in end.call.deviations] == [DeviationCode.SERVER_TOOL] * on_server
            assert end.call.trusted is not on_server
        else:
            assert end.call.raw == wanted["arguments"]
    assert not [event for event in events if isinstance(event, Failed)]
    assert "".join(event.text for event in events if isinstance(event, Text)) == naive(chunks, "text")
    assert "".join(event.text for event in events if isinstance(event, Reasoning)) == naive(chunks, "thinking")
    last = events[-1]
    assert isinstance(last, Ended)
    assert last.finish_reason == entry["finish"] or more  # the index has that of the last answer
    assert last.clean is all(isinstance(end, ToolCallFinished) for end in ends)
    assert last.usage is not None
    assert last.usage["output_tokens"] == json.loads(chunks[-2])["usage"]["output_tokens"]
    assert run([json.loads(chunk) for chunk in chunks]) == events


@pytest.mark.parametrize("entry", load())
def test_a_recording_that_is_cut(entry: dict[str, Any]) -> None:
    """After any event: what was sealed stays so, what is open fails, and the end is not clean."""
    chunks = answers(read(entry))[0]
    whole = [event.call for event in run(chunks) if isinstance(event, ToolCallFinished)]
    for cut in range(0, len(chunks) - 2, max(1, len(chunks) // 40)):
        events = run(chunks[:cut])
        calls = [event.call for event in events if isinstance(event, ToolCallFinished)]
        assert calls == whole[: len(calls)]
        assert isinstance(events[-1], Ended)
        assert not events[-1].clean


def test_answers_that_are_over_before_they_begin() -> None:
    """Calls that code of the provider's own sandbox wrote come in a ``message_start`` that is the whole message."""
    found = [answer for param in load() for answer in answers(read(param.values[0])) if len(answer) == 2]
    assert len(found) > 10
    for start, stop in found:
        message = json.loads(start)["message"]
        events = run([start, stop])
        calls = [event.call for event in events if isinstance(event, ToolCallFinished)]
        assert [(call.id, call.name, call.arguments) for call in calls] == [
            (block["id"], block["name"], block["input"]) for block in message["content"]
        ]
        assert events[-1] == Ended("tool_use", message["usage"], True)


def test_there_are_recordings() -> None:
    assert len(load()) >= 45
