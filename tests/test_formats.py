"""Telling inputs apart: by their beginning, and never differently once more of it is there."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamparse.transport import formats
from streamparse.transport.formats import TEXT, Answer, InputKind, framing_of, has_head, recognise
from streamparse.transport.framing import FramingKind
from streamparse.transport.recording import Header, Piece, write
from streamparse.transport.wires import Wire
from tests.conftest import ROOT

CHAT = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "hi"}}]}
COMPLETIONS = {"id": "c", "object": "text_completion", "choices": [{"index": 0, "text": "hi"}]}
MESSAGES = {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}}
ERROR = {"error": {"message": "no", "code": 429}}


def line(value: object) -> str:
    return json.dumps(value)


def data(value: object) -> str:
    return f"data: {json.dumps(value)}\n\n"


INPUTS: dict[str, tuple[str, str, Wire | None]] = {
    "a recording": (write(Header(), [Piece(0.1, "hi")]), "recording", None),
    "a recording of chunks": (write(Header(wire=Wire.CHAT), [Piece(0.1, data(CHAT))]), "recording", None),
    "OpenAI events": (data(CHAT) + data(CHAT) + "data: [DONE]\n\n", "event_stream", Wire.CHAT),
    "events with CRLF": (data(CHAT).replace("\n", "\r\n"), "event_stream", Wire.CHAT),
    "events with CR": (data(CHAT).replace("\n", "\r"), "event_stream", Wire.CHAT),
    "events behind a mark": ("\ufeff" + data(CHAT), "event_stream", Wire.CHAT),
    "raw completions": (data(COMPLETIONS), "event_stream", Wire.COMPLETIONS),
    "Anthropic events": (f"event: message_start\n{data(MESSAGES)}", "event_stream", Wire.MESSAGES),
    "a comment first": (f": PROCESSING\n\n{data(CHAT)}", "event_stream", Wire.CHAT),
    "id and retry first": (f"id: 7\nretry: 100\n{data(CHAT)}", "event_stream", Wire.CHAT),
    "an error first": (data(ERROR) + data(MESSAGES), "event_stream", Wire.MESSAGES),
    "nothing but an error": (data(ERROR), "event_stream", Wire.CHAT),
    "nothing but the end": ("data: [DONE]\n\n", "event_stream", Wire.CHAT),
    "nothing but comments": (": ping\n\n: ping\n\n", "event_stream", Wire.CHAT),
    "data on several lines": ('data: {\ndata: "choices": [\ndata: ]}\n\n', "event_stream", Wire.CHAT),
    "events, cut in the first": (data(CHAT)[:60], "event_stream", Wire.CHAT),
    "a named event that is text": ("event: error\ndata: overloaded\n\n", "event_stream", Wire.CHAT),
    "JSON Lines": (f"{line(CHAT)}\n{line(CHAT)}\n", "json", Wire.CHAT),
    "one line, not ended": (line(COMPLETIONS), "json", Wire.COMPLETIONS),
    "a pretty completion": (json.dumps({"object": "chat.completion", "choices": []}, indent=2), "json", Wire.CHAT),
    "a pretty message": (json.dumps({"id": "m", "type": "message", "content": []}, indent=2), "json", Wire.MESSAGES),
    "a list of chunks": (json.dumps([ERROR, MESSAGES], indent=1), "json", Wire.MESSAGES),
    "an error alone": (line(ERROR), "json", Wire.CHAT),
    "MiniMax's error": ('{"base_resp": {"status_code": 1002}}\n', "json", Wire.CHAT),
    "a completion, cut": ('{"id": "c", "choices": [{"message": {"con', "json", Wire.CHAT),
    "a message, cut": ('{"id": "m", "type": "message", "con', "json", Wire.MESSAGES),
    "text": ("Hello, what can I do?\n", "text", Wire.TEXT),
    "raw calls": ('<minimax:tool_call>\n<invoke name="now">\n</invoke>\n</minimax:tool_call>', "text", Wire.TEXT),
    "nothing": ("", "text", Wire.TEXT),
    "white space": (" \n\n", "text", Wire.TEXT),
    "JSON that is an answer": ('{"city": "Bern",\n "days": 3}\n', "text", Wire.TEXT),
    "a list that is an answer": ('[{"city": "Bern"}]\n', "text", Wire.TEXT),
    "a link": ("[a](b) is where it is", "text", Wire.TEXT),
    "a set": ("{1, 2}", "text", Wire.TEXT),
    "text that begins like a field": ("data: the plural of datum.\n\n", "text", Wire.TEXT),
    "text that is nearly a field": ("datastores are slow", "text", Wire.TEXT),
    "a smile": (":) hello\nyou\n", "text", Wire.TEXT),
    "a smile alone": (":)\n\n", "text", Wire.TEXT),
    "a sad comment": (":-(\n\n" + data(CHAT), "event_stream", Wire.CHAT),
    "a response with its head": (
        f"HTTP/1.1 200 OK\nContent-Type: text/event-stream\n\n{data(CHAT)}",
        "text",
        Wire.TEXT,
    ),
    "a number in data": ("data: 5\n\n", "text", Wire.TEXT),
    "nearly a recording": ('{"streamparse', "text", Wire.TEXT),
}


@pytest.mark.parametrize(("text", "kind", "wire"), INPUTS.values(), ids=INPUTS)
def test_verdicts(text, kind, wire):
    assert recognise(text.encode(), complete=True) == Answer(InputKind(kind), wire)


def check_prefixes(body: bytes) -> None:
    final = recognise(body, complete=True)
    assert final is not None
    for end in range(len(body) + 1):
        assert recognise(body[:end]) in (None, final), body[:end]


@pytest.mark.parametrize(("text", "kind", "wire"), INPUTS.values(), ids=INPUTS)
def test_a_verdict_stands(text, kind, wire):
    check_prefixes(text.encode())


SNIPPETS = st.sampled_from(
    [
        *'{["}] \n\rxé\ufeff',
        *("\r\n", "data", "data:", "event: e", "id", ": c", "[DONE]", "{}", '{"a": 1}', '{"streamparse":'),
        *map(line, (CHAT, MESSAGES, ERROR)),
    ]
)


@given(st.lists(SNIPPETS | st.text(max_size=4), max_size=9).map("".join))
@example(": c\n\ndata")
@example('data: {"a": 1}\nx')
def test_a_verdict_stands_for_anything(text):
    check_prefixes(text.encode("utf-8", "replace"))


@pytest.mark.parametrize(
    ("beginning", "kind"),
    [
        (data(CHAT), "event_stream"),
        (f"{line(CHAT)}\n", "json"),
        ("Th", "text"),
        ('<minimax:tool_call>\n<invoke name="now">', "text"),
        ('{"streamparse":', "recording"),
        ("data: not J\n", "text"),
        ("[T", "text"),
        ("{'", "text"),
    ],
)
def test_streams_do_not_wait_for_their_end(beginning, kind):
    found = recognise(beginning.encode())
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {}", True),
        ("HTTP/2 200 \r\ndate: now\r\ncontent-type: text/event-stream\r\n\r\n", True),
        ("HTTP/1.1 200 OK means that all went well.\nContent-Length: ...", False),
        ("HTTP/1.1 200 OK\n\nThe content-type: is", False),
        ("GET / HTTP/1.1\ncontent-type: x", False),
    ],
)
def test_the_head_of_a_response(text, head):
    assert has_head(text.encode()) is head


def test_behind_the_bound_there_is_a_verdict(monkeypatch):
    monkeypatch.setattr(formats, "MAX_EVENT", 100)
    assert recognise(b'{"x": "' + b"x" * 200) == TEXT
    assert recognise(b"data: " + b"x" * 200) == TEXT
    assert recognise(b'{"choices": [' + b" " * 200) == Answer(InputKind.JSON, Wire.CHAT)


def test_the_shared_recordings(shared):
    wires = {
        "anthropic_sse": Answer(InputKind.EVENT_STREAM, Wire.MESSAGES),
        "openai_sse": Answer(InputKind.EVENT_STREAM, Wire.CHAT),
        "openai_chunks_jsonl": Answer(InputKind.JSON, Wire.CHAT),
    }
    seen = set()
    for text in shared("recordings", "INDEX.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(text)
        body = shared("recordings", entry["file"]).read_bytes()
        found = recognise(body, complete=True)
        assert found is not None
        if entry["wire"] in wires:
            seen.add(entry["wire"])
            assert found == wires[entry["wire"]], entry["file"]
    assert seen == set(wires)


def test_the_bundled_recordings():
    for path in (ROOT / "streamparse" / "demo").glob("*.jsonl"):
        assert recognise(path.read_bytes()[:100]) == Answer(InputKind.RECORDING)


@pytest.mark.parametrize(
    ("header", "beginning", "framing"),
    [
        (Header(), b"data: {}", FramingKind.TEXT),
        (Header(wire=Wire.CHAT, media_type="text/event-stream"), b"", FramingKind.EVENT_STREAM),
        (Header(wire=Wire.CHAT, media_type="application/json"), b"{}", FramingKind.JSON),
        (Header(wire=Wire.CHAT), data(CHAT).encode(), FramingKind.EVENT_STREAM),
        (Header(wire=Wire.CHAT, media_type="text/html"), data(CHAT).encode(), FramingKind.EVENT_STREAM),
        (Header(wire=Wire.CHAT, media_type="text/html"), b"<html>", None),
    ],
)
def test_the_framing_of_a_recorded_body(header, beginning, framing):
    assert framing_of(header, beginning) == framing
