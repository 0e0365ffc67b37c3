"""`streamparse decode FILE`: files and pipes that hold chunks, told apart by what is in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import streamparse
from streamparse.events import loads
from streamparse.transport.recording import Header, Piece, write
from streamparse.transport.wires import Wire
from tests.chunks import join
from tests.test_cli import check_misuse, events_of, next_line, run, running, send

CHUNKS: list[dict[str, Any]] = [
    {"choices": [{"delta": {"content": "Let me see. ⛅"}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get_weather"}}]}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"city": "Zürich"}'}}]}}]},
    {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
]
MESSAGE_EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 3}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let me see. ⛅"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "a", "name": "get_weather", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '{"city": "Zürich"}'},
    },
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
]


def lines(chunks: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(chunk, ensure_ascii=False) + "\n" for chunk in chunks)


def event_stream(chunks: list[dict[str, Any]], *, end: str = "") -> str:
    names = [f"event: {chunk['type']}\n" if "type" in chunk else "" for chunk in chunks]
    blocks = (f"{name}data: {json.dumps(chunk)}\n\n" for name, chunk in zip(names, chunks, strict=True))
    return "".join(blocks) + end


WHOLE = {
    "object": "chat.completion",
    "choices": [
        {
            "finish_reason": "tool_calls",
            "message": {
                "content": "Let me see. ⛅",
                "tool_calls": [
                    {"id": "a", "function": {"name": "get_weather", "arguments": json.dumps({"city": "Zürich"})}}
                ],
            },
        }
    ],
}
HTTP = Header(wire=Wire.CHAT, media_type="text/event-stream")
FILES = {
    "stream.sse": event_stream(CHUNKS, end="data: [DONE]\n\n"),
    "messages.sse": event_stream(MESSAGE_EVENTS),
    "chunks.jsonl": lines(CHUNKS),
    "messages.jsonl": lines(MESSAGE_EVENTS),
    "completion.json": json.dumps(WHOLE, indent=2),
    "list.json": json.dumps(CHUNKS),
    "recording.jsonl": write(HTTP, [Piece.of(0.1, event_stream(CHUNKS, end="data: [DONE]\n\n").encode())]),
    "raw.txt": 'Let me see. ⛅\n<minimax:tool_call>\n<invoke name="get_weather">\n'
    '<parameter name="city">Zürich</parameter>\n</invoke>\n</minimax:tool_call>',
}


@pytest.mark.parametrize("name", FILES)
def test_what_a_file_holds_is_recognised(tmp_path, name):
    path = tmp_path / name
    path.write_text(FILES[name], encoding="utf-8")
    found = [run("decode", path), run("decode", path, "--chunk", "7"), run("decode", "-", stdin=path.read_bytes())]
    for done in found:
        events = events_of(done.stdout)
        (call,) = [event.call for event in events if isinstance(event, streamparse.ToolCallFinished)]
        assert (call.name, call.arguments, done.returncode) == ("get_weather", {"city": "Zürich"}, 0)
        assert "".join(event.text for event in events if isinstance(event, streamparse.Text)) == "Let me see. ⛅"


def test_chunks_are_decoded_as_they_arrive():
    first, rest = FILES["stream.sse"].encode()[:30], FILES["stream.sse"].encode()[30:]
    with running("decode", "-") as process:
        send(process, first)
        send(process, rest[: rest.index(b"\n\n") + 2])
        assert loads(next_line(process)) == streamparse.Text("Let me see. ⛅")


def test_a_wire_that_is_named_comes_first(tmp_path):
    path = tmp_path / "looks-like-chunks.txt"
    path.write_text(FILES["chunks.jsonl"], encoding="utf-8")
    text = join(events_of(run("decode", path, "--wire", "text").stdout))[0]
    assert text == streamparse.Text(FILES["chunks.jsonl"])
    check_misuse(["decode", "-", "--wire", "chat"], ["standard input: expected chunks of the wire 'chat'"])
    check_misuse(["decode", path, "--chunk", "token"], ["--chunk token: expected raw output"])


def test_a_response_with_its_head(tmp_path):
    """As ``curl -i`` writes it: the head would make raw text of the body."""
    path = tmp_path / "dump.txt"
    head = "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Type: text/event-stream\r\n\r\n"
    path.write_text(head + FILES["stream.sse"], encoding="utf-8", newline="")
    check_misuse(["decode", path], [path.name, "found its HTTP head", "curl -i"])
    check_misuse(["serve", path], [path.name, "found its HTTP head"])
    assert run("decode", path, "--wire", "text").returncode == 0


def test_a_body_that_was_cut_is_told_by_the_exit_code(tmp_path):
    path = tmp_path / "whole.json"
    path.write_text(json.dumps(WHOLE)[:-9], encoding="utf-8")
    done = run("decode", path)
    (failed,) = [event for event in events_of(done.stdout) if isinstance(event, streamparse.Failed)]
    assert (failed.error.code, done.returncode) == (streamparse.ErrorCode.STREAM_INTERRUPTED, 1)


def test_a_recorded_connection_that_broke(tmp_path):
    path = tmp_path / "broken.jsonl"
    start = event_stream(CHUNKS[:3]).encode()
    path.write_text(write(HTTP, [Piece.of(0.1, start), Piece(0.2, broken=True)]), encoding="utf-8")
    for cut in ([], ["--chunk", "5"], ["--chunk", "all"]):
        done = run("decode", path, *cut)
        events = events_of(done.stdout)
        (failed,) = [event for event in events if isinstance(event, streamparse.ToolCallFailed)]
        assert (failed.error.code, done.returncode) == (streamparse.ErrorCode.STREAM_INTERRUPTED, 1)
        assert events[-1].finish_reason == "error"  # type: ignore[union-attr]


def test_a_recorded_error_is_no_answer(tmp_path):
    path = tmp_path / "error.jsonl"
    header = Header(wire=Wire.CHAT, media_type="application/json", status=429)
    path.write_text(write(header, [Piece.of(0.1, b'{"error": "slow down"}')]), encoding="utf-8")
    check_misuse(["decode", path], ["HTTP status 429", "slow down"])
