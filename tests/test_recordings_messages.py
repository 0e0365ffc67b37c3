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


def load() -> list[Any]:
    lines = shared("recordings", "INDEX.jsonl").read_text("utf-8").splitlines()
    return [
        pytest.param(entry, id=entry["file"]) for entry in map(json.loads, lines) if entry["wire"] == "anthropic_sse"
    ]


def read(entry: dict[str, Any]) -> list[str]:
    """The payloads of a recording, through the transport's own reader."""
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


@pytest.mark.parametrize("entry", load())
def test_recording(entry: dict[str, Any]) -> None:
    chunks = read(entry)
    events = run(chunks)
    ends = [event for event in events if isinstance(event, ToolCallFinished | ToolCallFailed)]
    ends.sort(key=lambda event: event.index)
    assert len(ends) == len(entry["expected"])
    for end, wanted in zip(ends, entry["expected"], strict=True):
        assert (end.call.id, end.call.name) == (wanted["id"], wanted["name"])
        assert isinstance(end, ToolCallFinished) is is_whole(wanted["arguments"])
        if isinstance(end, ToolCallFinished):
            assert end.call.arguments_json == (wanted["arguments"] or "{}")
            assert end.call.arguments == json.loads(wanted["arguments"] or "{}")
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
    assert last.finish_reason == entry["finish"]
    assert last.clean is all(isinstance(end, ToolCallFinished) for end in ends)
    assert last.usage is not None
    assert last.usage["output_tokens"] == json.loads(chunks[-2])["usage"]["output_tokens"]
    assert run([json.loads(chunk) for chunk in chunks]) == events


@pytest.mark.parametrize("entry", load())
def test_a_recording_that_is_cut(entry: dict[str, Any]) -> None:
    """After any event: what was sealed stays so, what is open fails, and the end is not clean."""
    chunks = read(entry)
    whole = [event.call for event in run(chunks) if isinstance(event, ToolCallFinished)]
    for cut in range(0, len(chunks) - 2, max(1, len(chunks) // 40)):
        events = run(chunks[:cut])
        calls = [event.call for event in events if isinstance(event, ToolCallFinished)]
        assert calls == whole[: len(calls)]
        assert isinstance(events[-1], Ended)
        assert not events[-1].clean


def test_there_are_recordings() -> None:
    assert len(load()) >= 45
