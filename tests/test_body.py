"""Bytes -> events: framings, wires, and the body that joins them; facts of ``cases/sse.jsonl`` above its events."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamparse import (
    Deviated,
    DeviationCode,
    Ended,
    ErrorCode,
    Event,
    Failed,
    Text,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
)
from streamparse.errors import EventTooLargeError, StreamInterruptedError, UsageError
from streamparse.transport.body import Body
from streamparse.transport.framing import FramingKind, make_framing
from streamparse.transport.wires import Options, Wire, as_wire, wire_of_chunk, wire_of_url
from tests.chunks import join
from tests.conftest import shared

CALL = '<minimax:tool_call>\n<invoke name="f">\n<parameter name="x">1 é 😀</parameter>\n</invoke>\n</minimax:tool_call>'


def chunk(delta: dict[str, Any], **words: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, **words}]}


CHUNKS = [
    chunk({"role": "assistant", "content": "Olá 😀"}),
    chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x": "é'}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '\\n"}'}}]}),
    chunk({}, finish_reason="tool_calls"),
    {"choices": [], "usage": {"total_tokens": 3}},
]


def event_stream(chunks: Iterable[Any], *, end: str = "\n\n", done: bool = True) -> bytes:
    lines = [f"data: {json.dumps(each, ensure_ascii=False)}{end}" for each in chunks]
    return "".join([*lines, *([f"data: [DONE]{end}"] if done else [])]).encode()


def run(pieces: Iterable[bytes], wire: Wire, kind: FramingKind, **words: Any) -> list[Event]:
    body = Body(Options(**words).decoder(wire), kind)
    events = [event for piece in pieces for event in body.feed(piece)]
    return join(events + body.close())


BODIES = {
    "event stream": (event_stream(CHUNKS), Wire.CHAT, FramingKind.EVENT_STREAM),
    "event stream, CRLF": (event_stream(CHUNKS, end="\r\n\r\n"), Wire.CHAT, FramingKind.EVENT_STREAM),
    "JSON lines": ("\n".join(map(json.dumps, CHUNKS)).encode(), Wire.CHAT, FramingKind.JSON),
    "JSON lines, CRLF": ("\r\n".join(map(json.dumps, CHUNKS)).encode() + b"\r\n", Wire.CHAT, FramingKind.JSON),
    "a list of chunks": (json.dumps(CHUNKS, indent=1, ensure_ascii=False).encode(), Wire.CHAT, FramingKind.JSON),
}


@pytest.mark.parametrize("name", BODIES)
def test_chunks_lie_in_a_body_in_many_ways(name):
    data, wire, kind = BODIES[name]
    events = run([data], wire, kind)
    (end,) = [event for event in events if isinstance(event, ToolCallFinished)]
    assert end.call.arguments == {"x": "é\n"}
    assert events[0] == Text("Olá 😀")
    assert events[-1] == Ended("tool_calls", {"total_tokens": 3}, True)


@pytest.mark.parametrize("name", BODIES)
def test_every_split_of_the_bytes_gives_the_same(name):
    data, wire, kind = BODIES[name]
    whole = run([data], wire, kind)
    assert run([data[at : at + 1] for at in range(len(data))], wire, kind) == whole
    for at in range(0, len(data), 7):
        assert run([data[:at], data[at:]], wire, kind) == whole


def test_raw_text_split_inside_characters():
    data = b"\xef\xbb\xbf" + CALL.encode()
    whole = run([data], Wire.TEXT, FramingKind.TEXT)
    assert [event.call.arguments for event in whole if isinstance(event, ToolCallFinished)] == [{"x": "1 é 😀"}]
    assert run([data[at : at + 1] for at in range(len(data))], Wire.TEXT, FramingKind.TEXT) == whole


def test_completions_carry_raw_text():
    chunks = [{"object": "text_completion", "choices": [{"text": CALL[at : at + 5]}]} for at in range(0, len(CALL), 5)]
    chunks.append({"choices": [{"text": "", "finish_reason": "stop"}]})
    events = run([event_stream(chunks)], Wire.COMPLETIONS, FramingKind.EVENT_STREAM)
    assert [event.call.name for event in events if isinstance(event, ToolCallFinished)] == ["f"]
    assert not [event for event in events if isinstance(event, Text)]
    assert events[-1] == Ended("stop", None, True)


def test_a_whole_completion():
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = {"object": "chat.completion", "choices": [{"message": message, "finish_reason": "tool_calls"}]}
    for text in (json.dumps(body), json.dumps(body, indent=2), json.dumps(body) + "\n"):
        events = run([text.encode()], Wire.CHAT, FramingKind.JSON)
        assert [event.call.arguments for event in events if isinstance(event, ToolCallFinished)] == [{"x": 1}]


# --- ends ------------------------------------------------------------------------------------------------------------


def test_a_last_event_without_its_blank_line_is_told():
    data = event_stream(CHUNKS)[:-2]
    events = run([data], Wire.CHAT, FramingKind.EVENT_STREAM)
    assert DeviationCode.UNTERMINATED_EVENT in {e.deviation.code for e in events if isinstance(e, Deviated)}
    assert events[-1] == Ended("tool_calls", {"total_tokens": 3}, True)


@given(st.integers(0, len(event_stream(CHUNKS)) - 1))
def test_a_connection_that_breaks_keeps_what_came(at):
    """E4: wherever it breaks; what was decoded before stays, and a call that was not sealed fails."""
    data = event_stream(CHUNKS)
    body = Body(Options().decoder(Wire.CHAT), FramingKind.EVENT_STREAM)
    before = body.feed(data[:at])
    done = body.done
    after = body.close(clean=False)
    assert isinstance(body.error, StreamInterruptedError)
    assert isinstance(after[-1], Ended)
    sealed = [event for event in before if isinstance(event, ToolCallFinished)]
    started = [event for event in join(before) if isinstance(event, ToolCallStarted)]
    failed = [event for event in after if isinstance(event, ToolCallFailed)]
    assert len(sealed) + len(failed) == len(started)
    assert all(event.error.code is ErrorCode.STREAM_INTERRUPTED for event in failed)
    assert after[-1].clean is done


def test_an_end_inside_an_event_is_never_clean():
    data = event_stream(CHUNKS[:-2])[:-20]
    body = Body(Options().decoder(Wire.CHAT), FramingKind.EVENT_STREAM)
    body.feed(data)
    last = body.close()[-1]
    assert isinstance(last, Ended)
    assert not last.clean
    assert isinstance(body.error, StreamInterruptedError)


@pytest.mark.parametrize("kind", [FramingKind.EVENT_STREAM, FramingKind.JSON])
def test_bounds(kind):
    framing = make_framing(kind, max_event=100, max_body=100)
    assert framing.feed(b"data: " + b"x" * 200) == []
    assert isinstance(framing.error, EventTooLargeError)
    assert framing.feed(b"\n\n") == []
    assert framing.close() == []
    assert isinstance(framing.error, EventTooLargeError)


@given(st.lists(st.binary(max_size=40), max_size=8), st.sampled_from(FramingKind), st.booleans())
def test_total(pieces, kind, clean):
    """No bytes make it raise, and the last event is the end."""
    wire = Wire.TEXT if kind is FramingKind.TEXT else Wire.CHAT
    body = Body(Options().decoder(wire), kind)
    for piece in pieces:
        body.feed(piece)
    assert isinstance(body.close(clean=clean)[-1], Ended)
    assert body.received == sum(map(len, pieces))


# --- the facts of the cases that this layer decides ------------------------------------------------------------------


def cases() -> dict[str, Any]:
    with shared("cases", "sse.jsonl").open(encoding="utf-8") as file:
        return {case["id"]: case for case in map(json.loads, file)}


def decoded(name: str) -> list[Event]:
    given = cases()[name]["input"]
    if given["type"] == "http_response":
        return run([given["body"].encode()], Wire.CHAT, FramingKind.JSON)
    return run([bytes.fromhex(each) for each in given["chunks_hex"]], Wire.CHAT, FramingKind.EVENT_STREAM)


@pytest.mark.parametrize("name", ["B166", "B167", "B170"])
def test_errors_inside_a_stream_or_a_body(name):
    """C8: ``provider_error`` with the provider's own words, and no clean end."""
    (wanted,) = cases()[name]["expected"]["errors"]
    code, _, words = wanted.partition(":")
    events = decoded(name)
    (failed,) = [event for event in events if isinstance(event, Failed)]
    assert failed.error.code == code
    assert words in failed.error.reason
    assert isinstance(events[-1], Ended)
    assert not events[-1].clean
    assert not [event for event in events if isinstance(event, ToolCallFinished)]


@pytest.mark.parametrize("before", [b"", b"{}\n"])
def test_blank_lines_cost_no_more_than_others(before):
    """Quadratic, this takes half an hour; and none of them counts for the bound of a body."""
    data = before + b"\n" * 400_000 + b" \r\n" + json.dumps(chunk({"content": "hi"})).encode() + b"\n"
    body = Body(Options().decoder(Wire.CHAT), FramingKind.JSON, max_body=10_000)
    assert body.feed(data) == [Text("hi")]
    assert body.error is None


@pytest.mark.parametrize("whole", [json.dumps({"choices": [{"message": {"content": "hé, [}{"}}]}, ensure_ascii=False)])
@pytest.mark.parametrize("wrap", ["{}", "[{}]", " \n{}"])
def test_json_that_was_cut_is_an_interruption(whole, wrap):
    """C6: at every byte, be it a number's or a character's middle."""
    data = wrap.replace("{}", whole).encode()
    first = data.index(b"{" if wrap[0] != "[" else b"[")
    for end in range(first + 1, len(data)):
        body = Body(Options().decoder(Wire.CHAT), FramingKind.JSON)
        events = [*body.feed(data[:end]), *body.close()]
        assert isinstance(body.error, StreamInterruptedError), data[:end]
        assert [event.error.code for event in events if isinstance(event, Failed)] == [ErrorCode.STREAM_INTERRUPTED]
        assert events[-1] == Ended("error", None, clean=False)


@pytest.mark.parametrize("data", [b"upstream error", b"{'choices': 1}", b'{"a": 1}}', b"[1,]"])
def test_what_is_no_json_was_not_cut(data):
    body = Body(Options().decoder(Wire.CHAT), FramingKind.JSON)
    events = [*body.feed(data), *body.close()]
    assert body.error is None
    assert [event.error.code for event in events if isinstance(event, Failed)] == [ErrorCode.INVALID_JSON]


def test_text_that_looks_like_done():
    """B174: the text of the answer, and the usage that came after the real ``[DONE]``."""
    events = decoded("B174")
    assert [event.text for event in events if isinstance(event, Text)] == [cases()["B174"]["expected"]["content"]]
    assert isinstance(events[-1], Ended)
    assert events[-1].usage == {"total_tokens": 3}


def test_an_event_named_error_is_one_whatever_its_data():
    for data in ('{"message": "Overloaded", "code": 529}', "Overloaded", '{"error": {"message": "Overloaded"}}'):
        events = run([f"event: error\ndata: {data}\n\n".encode()], Wire.CHAT, FramingKind.EVENT_STREAM)
        (failed,) = [event for event in events if isinstance(event, Failed)]
        assert (failed.error.code, "Overloaded" in failed.error.reason) == (ErrorCode.PROVIDER_ERROR, True)


# --- wires -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "wire"),
    [
        ("http://h/v1/chat/completions", Wire.CHAT),
        ("http://h/v1/completions?key=1", Wire.COMPLETIONS),
        ("http://h/anthropic/v1/messages/", Wire.MESSAGES),
        ("http://h/v1/text/chatcompletion_v2", Wire.CHAT),
    ],
)
def test_the_wire_of_an_endpoint(url, wire):
    assert wire_of_url(url) is wire


@pytest.mark.parametrize(
    ("text", "wire"),
    [
        (json.dumps(CHUNKS[0]), Wire.CHAT),
        ('{"object": "chat.completion", "choices": []}', Wire.CHAT),
        ('{"choices": [{"text": "a", "index": 0}]}', Wire.COMPLETIONS),
        ('{"type": "message_start", "message": {}}', Wire.MESSAGES),
        ('{"type": "content_block_delta", "index": 0}', Wire.MESSAGES),
        ('{"type": "message", "content": []}', Wire.MESSAGES),
        ('{"name": "f", "arguments": {}}', None),
        ('["a"]', None),
        ("Hello", None),
        ("{", None),
    ],
)
def test_the_wire_of_a_chunk(text, wire):
    assert wire_of_chunk(text) is wire


def test_names_of_wires():
    assert as_wire("chat") is Wire.CHAT
    with pytest.raises(UsageError, match="'messages'"):
        as_wire("anthropic")
    with pytest.raises(UsageError, match="dialect"):
        Options(dialect=None).decoder(Wire.TEXT)
