"""Events -> Anthropic-style events: what a client of them sees is what was decoded, for whole and cut answers alike."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import anthropic.types
import pydantic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamparse import (
    ArgumentDelta,
    ClosedError,
    Ended,
    NativeDecoder,
    Reasoning,
    Text,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
    UsageError,
    decode,
    render_answer,
)
from streamparse.decoding.encode import MessageEncoder, to_message
from streamparse.decoding.messages import MessagesDecoder
from streamparse.demo import runner
from streamparse.demo.expectation import outcome
from streamparse.events import json_text

SDK_EVENT: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(anthropic.types.RawMessageStreamEvent)

ANSWER = render_answer(
    reasoning="Where?\n",
    text="Two calls.",
    calls=[("get_weather", {"city": "Zürich", "days": [1, {"a": None}]}), ("now", {})],
)


def encoded(text: str, finish: str | None = None, cuts: tuple[int, ...] = ()) -> tuple[list[Any], list[dict[str, Any]]]:
    """The events of a text that comes in pieces, and what they are written as."""
    decoder = NativeDecoder("minimax_m2")
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    events = [event for start, end in pairwise(places) for event in decoder.feed(text[start:end])]
    events += decoder.close(finish)
    return events, MessageEncoder(model="m").feed_all(events)


def told(events: list[Any]) -> dict[str, Any]:
    found = outcome(events)
    return {name: found[name] for name in ("reasoning", "text", "calls")}


def check(text: str, finish: str | None = None, cuts: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """What must hold for every answer; the written events."""
    events, written = encoded(text, finish, cuts)
    for event in written:
        SDK_EVENT.validate_python(event)
    started = [event["index"] for event in written if event["type"] == "content_block_start"]
    stopped = [event["index"] for event in written if event["type"] == "content_block_stop"]
    assert started == list(range(len(started)))
    assert len(set(stopped)) == len(stopped)
    failed = outcome(events)["failed"]
    sealed = [event.call for event in events if isinstance(event, ToolCallFinished)]
    blocks = [event["content_block"] for event in written if event["type"] == "content_block_start"]
    calls = [number for number, block in enumerate(blocks) if block["type"] == "tool_use"]
    assert len([number for number in calls if number in stopped]) == len(sealed)
    assert [number for number in range(len(blocks)) if number not in calls and number not in stopped] == []
    assert (written[-2]["delta"]["stop_reason"] == "max_tokens") == bool(failed or finish == "length")
    assert [event["type"] for event in written[-2:]] == ["message_delta", "message_stop"]
    decoder = MessagesDecoder(dialect=None)
    again = [event for each in written for event in decoder.feed(each)] + decoder.close()
    assert told(again) == told(events)
    if any(isinstance(event, ToolCallFailed) for event in events):
        assert outcome(again)["clean"] is False
    elif not failed and finish is None:
        assert outcome(again)["clean"] is True
    whole = to_message(events, model="m")
    anthropic.types.Message.model_validate(whole)
    inputs = [(block["name"], json_text(block["input"])) for block in whole["content"] if block["type"] == "tool_use"]
    assert inputs == [(call.name, json_text(call.arguments)) for call in sealed]
    return written


def test_the_written_events():
    assert [(event["type"], event.get("index")) for event in join_deltas(check(ANSWER))] == [
        ("message_start", None),
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_stop", 1),
        ("content_block_start", 2),
        ("content_block_delta", 2),
        ("content_block_stop", 2),
        ("content_block_start", 3),
        ("content_block_delta", 3),
        ("content_block_stop", 3),
        ("message_delta", None),
        ("message_stop", None),
    ]
    fragments = [
        event["delta"]["partial_json"]
        for event in check(ANSWER)
        if event["type"] == "content_block_delta" and event["index"] == 2
    ]
    assert "".join(fragments) == '{"city": "Zürich", "days": [1, {"a": null}]}'


def join_deltas(written: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the deltas that follow one of the same block."""
    kept: list[dict[str, Any]] = []
    for event in written:
        again = event["type"] == "content_block_delta" and kept[-1].get("index") == event["index"]
        if not (again and kept[-1]["type"] == "content_block_delta"):
            kept.append(event)
    return kept


@given(st.integers(0, len(ANSWER)), st.lists(st.integers(0, len(ANSWER)), max_size=5).map(tuple), st.booleans())
@example(len(ANSWER), (), True)
def test_answers_cut_anywhere(end, cuts, limit):
    check(ANSWER[:end], "length" if limit else None, cuts)


@pytest.mark.parametrize("name", [recording.name for recording in runner.recordings()])
def test_the_bundled_recordings(name):
    header, pieces = next((each.header, each.pieces) for each in runner.recordings() if each.name == name)
    decoder = NativeDecoder(header.dialect, tools=header.tools, start=header.start)
    events = [event for piece in pieces for event in decoder.feed(piece.text)] + decoder.close(header.finish_reason)
    reader = MessagesDecoder(dialect=None)
    written = MessageEncoder().feed_all(events)
    again = [event for each in written for event in reader.feed(json.dumps(each))] + reader.close()
    assert told(again) == told(events)


def test_a_failed_call_is_never_whole():
    text = ANSWER[: ANSWER.index("rich")]
    written = check(text, "length")
    assert written[-2]["streamparse"]["errors"][0]["code"] == "unclosed_parameter"
    fragments = [event["delta"].get("partial_json", "") for event in written if event["type"] == "content_block_delta"]
    assert "".join(fragments) == '{"city": "Zü'
    assert [block["type"] for block in to_message(encoded(text)[0])["content"]] == ["thinking", "text"]


def test_calls_side_by_side_and_repeated_ids():
    events: list[Any] = [
        ToolCallStarted(0, "same", "f"),
        ToolCallStarted(1, "same", "g"),
        ArgumentDelta(1, ("b",), "2"),
        ArgumentDelta(0, ("a",), "1"),
        Text("between"),
    ]
    encoder = MessageEncoder()
    written = encoder.feed_all(events)
    assert [event.get("index") for event in written] == [None, 0, 1, 1, 0, 2, 2]
    assert encoder.feed(Reasoning("x"))[0] == {"type": "content_block_stop", "index": 2}


def test_a_call_that_comes_with_its_end():
    events: list[Any] = [
        ToolCallFinished(4, ToolCall("i", "f", {"a": 1})),
        Ended("stop", {"prompt_tokens": 3, "output_tokens": 4}),
    ]
    written = MessageEncoder().feed_all(events)
    assert [event.get("index") for event in written] == [None, 0, 0, 0, None, None]
    assert written[-2]["usage"] == {"input_tokens": 3, "output_tokens": 4}
    assert written[-2]["delta"]["stop_reason"] == "tool_use"


def test_stop_reasons():
    for given_, sent in [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        (None, "end_turn"),
    ]:
        assert MessageEncoder().feed(Ended(given_))[-2]["delta"]["stop_reason"] == sent


def test_misuse():
    encoder = MessageEncoder()
    encoder.feed_all(decode("hi"))
    with pytest.raises(ClosedError):
        encoder.feed(Text("more"))
    with pytest.raises(UsageError, match="no end"):
        to_message([Text("hi")])
    with pytest.raises(UsageError, match="no end"):
        to_message([])
    with pytest.raises(UsageError, match="not open"):
        MessageEncoder().feed(ArgumentDelta(0, ("a",), "x"))


def test_chunks_do_not_matter():
    whole = [json.dumps(event) for event in join_texts(encoded(ANSWER)[1])]
    single = [json.dumps(event) for event in join_texts(encoded(ANSWER, cuts=tuple(range(len(ANSWER))))[1])]
    assert whole == single


def join_texts(written: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adjacent deltas of one block made one."""
    joined: list[dict[str, Any]] = []
    for event in written:
        before = joined[-1] if joined else {}
        if event["type"] == before.get("type") == "content_block_delta" and event["index"] == before["index"]:
            delta = {name: before["delta"][name] + text for name, text in event["delta"].items() if name != "type"}
            joined[-1] = {**event, "delta": {**event["delta"], **delta}}
        else:
            joined.append(event)
    return joined
