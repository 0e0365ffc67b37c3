"""The local server over real HTTP: what is played, what answers whom, each fault as a client sees it."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import anthropic
import httpx
import openai
import pytest

from streamparse import decode, to_chat_completion
from streamparse.decoding.chat import ChatDecoder
from streamparse.decoding.messages import MessagesDecoder
from streamparse.demo.expectation import outcome
from streamparse.errors import UsageError
from streamparse.server import Recording, Server, load
from streamparse.server.library import recording_of
from streamparse.transport.body import Body
from streamparse.transport.framing import FramingKind
from streamparse.transport.recording import Header, Piece, read, write
from streamparse.transport.sse import BOM
from streamparse.transport.wires import Wire
from tests.conftest import ROOT

LIMIT = 20.0  # seconds: a limit on each wait, not a measure

RAW = (
    "Grüße.\n<minimax:tool_call>\n"
    '<invoke name="get_weather">\n<parameter name="city">Zürich 中</parameter>\n</invoke>\n</minimax:tool_call>'
)
CUT = RAW[: RAW.index("rich")]


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    fields = {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": choices}
    return f"data: {json.dumps(fields, ensure_ascii=False)}\n\n".encode()


CHAT = [
    chunk({"role": "assistant", "content": "Grü"}),
    chunk({"content": "ße 中"}),
    chunk({}, "stop"),
    b"data: [DONE]\n\n",
]
CHAT_BODY = b"".join(CHAT)
EVENTS: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m"},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]
MESSAGES_BODY = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in EVENTS).encode()
WHOLE = b'{"object": "chat.completion", "choices": []}'
SSE = "text/event-stream"


def timed(parts: list[bytes], gap: float = 0.01) -> list[Piece]:
    return [Piece.of(gap * number, part) for number, part in enumerate(parts, 1)]


RECORDINGS = [
    Recording("chat", Header(wire=Wire.CHAT, media_type="text/event-stream; charset=utf-8"), timed(CHAT)),
    Recording("messages", Header(wire=Wire.MESSAGES, media_type=SSE), [Piece.of(0.0, MESSAGES_BODY)]),
    Recording("raw", Header(), timed([RAW[at : at + 5].encode() for at in range(0, len(RAW), 5)])),
    Recording("cut", Header(finish_reason="length"), timed([CUT.encode()])),
    Recording("slow", Header(wire=Wire.CHAT, media_type=SSE), timed(CHAT, 30.0)),
    Recording("refused", Header(wire=Wire.CHAT, status=402, media_type="text/plain"), [Piece(0.0, "pay")]),
    Recording("broken", Header(wire=Wire.CHAT, media_type=SSE), [*timed(CHAT[:1]), Piece(0.02, broken=True)]),
    Recording("whole", Header(wire=Wire.CHAT, media_type="application/json"), [Piece(0.0, '{"choices": []}')]),
    Recording("completions", Header(wire=Wire.COMPLETIONS, media_type=SSE), [
        Piece(0.0, 'data: {"choices": [{"index": 0, "text": "a<"}]}\n\n'),
        Piece(0.0, 'data: {"choices": [{"index": 0, "text": "b", "finish_reason": "length"}]}\n\ndata: [DONE]\n\n'),
    ]),
]  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(RECORDINGS) as server:
        yield server


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=LIMIT) as client:
        yield client


def ask(
    client: httpx.Client, server: Server, model: str, path: str = "/v1/chat/completions", fault: str = "", **fields: Any
) -> httpx.Response:
    headers = {"x-streamparse-fault": fault} if fault else {}
    return client.post(server.url + path, json={"model": model, "stream": True, **fields}, headers=headers)


def writes(client: httpx.Client, server: Server, model: str, **options: Any) -> list[bytes]:
    """The body as it was written: httpx gives each chunk of HTTP on its own."""
    url = server.url + options.pop("path", "/v1/chat/completions")
    headers = {"x-streamparse-fault": options.pop("fault", "")}
    with client.stream("POST", url, json={"model": model, "stream": True}, headers=headers) as response:
        return list(response.iter_raw())


def eventually(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


# What is played


def test_a_recording_is_played_byte_for_byte(server, client):
    response = ask(client, server, "chat")
    assert (response.status_code, response.content) == (200, CHAT_BODY)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert writes(client, server, "chat") == CHAT
    for path in ("/v1/messages", "/anthropic/v1/messages"):
        assert ask(client, server, "messages", path).content == MESSAGES_BODY
    assert ask(client, server, "chat", "/chat/completions").content == CHAT_BODY
    assert ask(client, server, "completions", "/v1/completions").text.startswith('data: {"choices"')
    assert ask(client, server, "whole").text == '{"choices": []}'


def test_a_recorded_error_is_played(server, client):
    response = ask(client, server, "refused")
    assert (response.status_code, response.text, response.headers["content-type"]) == (402, "pay", "text/plain")


def test_a_recorded_break_is_played(server, client):
    with pytest.raises(httpx.RemoteProtocolError):
        ask(client, server, "broken")
    with pytest.raises(httpx.RemoteProtocolError):
        ask(client, server, "broken", "/v1/messages")
    assert "hi" in ask(client, server, "messages").text  # the connection is one thing, the server another


def events_of(body: bytes, decoder: Any) -> list[Any]:
    reader = Body(decoder, FramingKind.EVENT_STREAM)
    found = reader.feed(body) + reader.close()
    assert reader.error is None
    return found


def same(events: list[Any]) -> dict[str, Any]:
    found = outcome(events)
    return {name: found[name] for name in ("reasoning", "text", "calls", "clean")}


@pytest.mark.parametrize("model", ["raw", "cut"])
def test_raw_text_on_each_endpoint(server, client, model):
    text, reason = (RAW, "stop") if model == "raw" else (CUT, "length")
    expected = same(decode(text))
    chat = ask(client, server, model)
    assert same(events_of(chat.content, ChatDecoder(dialect=None))) == expected
    messages = ask(client, server, model, "/v1/messages")
    assert same(events_of(messages.content, MessagesDecoder(dialect=None))) == expected
    raw = ask(client, server, model, "/v1/completions")
    payloads = [json.loads(line[6:]) for line in raw.text.split("\n\n")[:-2]]
    choices = [payload["choices"][0] for payload in payloads]
    assert "".join(choice["text"] for choice in choices) == text
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + [reason]
    assert raw.text.endswith("data: [DONE]\n\n")
    assert chat.text.endswith("data: [DONE]\n\n")


def test_raw_text_comes_as_it_was_recorded(server, client):
    found = writes(client, server, "raw", path="/v1/completions")
    texts = [json.loads(each.decode()[6:])["choices"][0]["text"] for each in found[:-1]]
    pieces = next(each for each in RECORDINGS if each.name == "raw").pieces
    assert "".join(texts) == RAW
    assert len(texts) >= len([piece for piece in pieces if piece.text])


def test_raw_text_may_stay_raw(server, client):
    for path in ("/v1/chat/completions?raw=1",):
        found = ask(client, server, "raw", path)
        assert same(events_of(found.content, ChatDecoder(dialect="minimax_m2"))) == same(decode(RAW))
        whole = ask(client, server, "raw", path, stream=False).json()
        assert whole["choices"][0]["message"]["content"] == RAW


def test_without_streaming_the_answer_is_whole(server, client):
    chat = ask(client, server, "raw", stream=False)
    assert chat.json() == to_chat_completion(decode(RAW), model="raw")
    assert chat.headers["content-type"] == "application/json"
    again = ask(client, server, "chat", stream=False).json()
    assert again["choices"][0]["message"]["content"] == "Grüße 中"
    assert ask(client, server, "raw", "/v1/completions", stream=False).json()["choices"][0]["text"] == RAW
    message = ask(client, server, "raw", "/v1/messages", stream=False).json()
    assert message["stop_reason"] == "tool_use"
    assert message["content"][1]["input"] == {"city": "Zürich 中"}
    completion = ask(client, server, "completions", "/v1/completions", stream=False).json()["choices"][0]
    assert (completion["text"], completion["finish_reason"]) == ("a<b", "length")


def test_one_wire_as_another(server, client):
    assert same(events_of(ask(client, server, "messages").content, ChatDecoder()))["text"] == "hi"
    found = ask(client, server, "chat", "/v1/messages")
    assert same(events_of(found.content, MessagesDecoder()))["text"] == "Grüße 中"
    refused = ask(client, server, "chat", "/v1/completions")
    assert refused.status_code == 400
    assert "chat holds no raw text; ask /v1/chat/completions" in refused.json()["error"]["message"]


def test_the_openai_sdk_reads_it(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=LIMIT) as sdk:
        stream = sdk.chat.completions.create(model="raw", messages=[], stream=True)
        decoder = ChatDecoder()
        events = [event for each in stream for event in decoder.feed(each)] + decoder.close()
        assert same(events) == same(decode(RAW))
        whole = sdk.chat.completions.create(model="raw", messages=[]).to_dict()
        decoder = ChatDecoder()
        assert same(decoder.feed(whole) + decoder.close()) == same(decode(RAW))
        assert "raw" in [model.id for model in sdk.models.list()]
        with pytest.raises(openai.RateLimitError):
            sdk.chat.completions.create(model="raw", messages=[], extra_query={"fault": "status=429"})


def test_the_anthropic_sdk_reads_it(server):
    overloaded = {"x-streamparse-fault": "status=529"}
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=LIMIT) as sdk:
        with sdk.messages.stream(model="raw", messages=[], max_tokens=9) as stream:
            streamed = stream.get_final_message()
        whole = sdk.messages.create(model="raw", messages=[], max_tokens=9)
        for message in (streamed, whole):
            text, call = message.content
            assert (text.type, call.type) == ("text", "tool_use")
            assert call.to_dict()["input"] == {"city": "Zürich 中"}
        with pytest.raises(anthropic.APIStatusError):
            sdk.messages.create(model="raw", messages=[], max_tokens=9, extra_headers=overloaded)


def test_the_bundled_recordings_on_each_endpoint(client):
    files = sorted((ROOT / "streamparse" / "demo").glob("*.jsonl"))
    with Server(files, speed=math.inf) as server:
        for file in files:
            expected = read(file.read_text("utf-8"))[0].expected or {}
            names = ("reasoning", "text", "calls")
            wanted = {name: expected[name] for name in names}
            chat = events_of(ask(client, server, file.stem).content, ChatDecoder())
            messages = events_of(ask(client, server, file.stem, "/v1/messages").content, MessagesDecoder())
            for events in (chat, messages):
                assert {name: outcome(events)[name] for name in names} == wanted
                assert len(outcome(events)["failed"]) == len(expected["failed"])


# Files


@pytest.mark.parametrize(
    ("name", "content", "path", "body"),
    [
        ("a.sse", CHAT_BODY, "/v1/chat/completions", CHAT_BODY),
        ("a.jsonl", b"".join(part[6:-1] for part in CHAT[:-1]), "/v1/chat/completions", CHAT_BODY),
        ("a.json", b"[" + b",".join(part[6:-2] for part in CHAT[:-1]) + b"]", "/v1/chat/completions", None),
        ("a.jsonl", "\n".join(map(json.dumps, EVENTS)).encode(), "/v1/messages", MESSAGES_BODY),
        ("a.json", WHOLE, "/v1/chat/completions", WHOLE),
        ("a.txt", RAW.encode(), "/v1/completions", None),
        ("a.jsonl", write(RECORDINGS[0].header, RECORDINGS[0].pieces).encode(), "/v1/chat/completions", CHAT_BODY),
    ],
)  # fmt: skip
def test_files_of_each_kind(client, tmp_path, name, content, path, body):
    (tmp_path / name).write_bytes(content)
    with Server([tmp_path / name], speed=math.inf) as server:
        found = ask(client, server, "a", path)
    assert found.status_code == 200
    if body is not None:
        assert found.content == body


def test_files_that_cannot_be_played(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read .*nothing\.sse: No such file"):
        Server([tmp_path / "nothing.sse"])
    (tmp_path / "b.jsonl").write_text('{"streamparse": "recording", "version": 9}\n')
    with pytest.raises(UsageError, match=r"b\.jsonl, line 1: expected the header"):
        load(tmp_path / "b.jsonl")
    one = recording_of("one", b"text")
    with pytest.raises(UsageError, match="two recordings are called 'one'"):
        Server([one, one])


# Which recording answers


def test_order_names_and_the_end(client):
    texts = ["one", "two"]
    with Server([recording_of(text, text.encode()) for text in texts], speed=math.inf) as server:
        said = [ask(client, server, model, stream=False).json() for model in ("gpt", "two", "gpt")]
        assert [each["choices"][0]["message"]["content"] for each in said] == ["one", "two", "two"]
        assert [each["model"] for each in said] == ["gpt", "two", "gpt"]
        over = ask(client, server, "gpt")
        assert over.status_code == 404
        assert "all recordings were played" in over.json()["error"]["message"]
        assert ask(client, server, "gpt", "/v1/messages").json()["type"] == "error"
        assert ask(client, server, "one").status_code == 200
        assert [each["recording"] for each in server.requests] == ["one", "two", "two", "", "", "one"]


def test_repeat(client):
    texts = ["one", "two"]
    with Server([recording_of(text, text.encode()) for text in texts], speed=math.inf, repeat=True) as server:
        said = [ask(client, server, "x", stream=False).json()["choices"][0]["message"]["content"] for _ in range(5)]
    assert said == ["one", "two", "one", "two", "one"]


def test_other_endpoints(server, client):
    models = client.get(f"{server.url}/v1/models").json()["data"]
    assert [model["id"] for model in models] == [recording.name for recording in RECORDINGS]
    assert client.get(f"{server.url}/health").json() == {"status": "ok"}
    missing = client.post(f"{server.url}/v1/embeddings", json={})
    assert missing.status_code == 404
    assert "there are /v1/chat/completions" in missing.json()["error"]["message"]
    assert client.get(f"{server.url}/v1/messages").json()["type"] == "error"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_requests_that_are_none(server, client, body):
    response = client.post(f"{server.url}/v1/chat/completions", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith("the request is")


# Time and writes


def test_the_recorded_time(client):
    pieces = [Piece(0.2, "a"), Piece(0.4, "b")]
    with Server([Recording("t", Header(), pieces)]) as server:
        start = time.monotonic()
        ask(client, server, "t")
        assert time.monotonic() - start >= 0.4
    with Server([Recording("t", Header(), [Piece(500.0, "a")])], speed=math.inf) as server:
        ask(client, server, "t")
    with Server([Recording("t", Header(), [Piece(500.0, "a")])], speed=10_000) as server:
        ask(client, server, "t")


@pytest.mark.parametrize("size", [1, 7, "event"])
def test_writes_are_cut_again(client, size):
    with Server(RECORDINGS, speed=math.inf, chunk=size) as server:
        found = writes(client, server, "chat")
    assert b"".join(found) == CHAT_BODY
    assert found == CHAT if size == "event" else {len(each) for each in found[:-1]} == {size}


@pytest.mark.parametrize("options", [{"speed": 0}, {"speed": -1.0}, {"chunk": 0}, {"faults": ["x"]}, {"port": 70_000}])
def test_options_that_cannot_be(options):
    with pytest.raises(UsageError), Server([], **options):
        pass


def test_a_port_that_is_taken(server):
    with pytest.raises(UsageError, match="cannot listen on"), Server([], port=urlsplit(server.url).port):
        pass


# Faults, as clients see them


def on_the_wire(server: Server, fault: str, model: str = "chat") -> bytes:
    """The bytes of a response, read from the socket until it is closed."""
    body = json.dumps({"model": model, "stream": True}).encode()
    head = f"POST /v1/chat/completions?fault={fault} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=LIMIT) as connection:
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode() + body)
        received = b""
        while data := connection.recv(65536):
            received += data
        return received


def test_a_cut_has_no_end_on_the_wire(server):
    whole, cut, closed = (on_the_wire(server, fault) for fault in ("", "cut=30", "close=30"))
    assert whole.endswith(b"\r\n0\r\n\r\n")
    assert closed.endswith(CHAT_BODY[:30] + b"\r\n0\r\n\r\n")
    assert cut.endswith(CHAT_BODY[:30] + b"\r\n")
    assert on_the_wire(server, "cut=0").endswith(b"\r\n\r\n")


def until_broken(
    client: httpx.Client, server: Server, fault: str, **options: Any
) -> tuple[bytes, httpx.TransportError | None]:
    """What arrives of the body, and how it ends for the client."""
    received = b""
    url = f"{server.url}/v1/chat/completions?fault={fault}"
    with client.stream("POST", url, json={"model": "chat", "stream": True}, **options) as response:
        try:
            for data in response.iter_raw():
                received += data
        except httpx.TransportError as error:
            return received, error
    return received, None


@pytest.mark.parametrize("after", [0, 1, 50, len(CHAT_BODY)])
def test_cut(server, client, after):
    received, error = until_broken(client, server, f"cut={after}")
    assert received == CHAT_BODY[:after]
    assert isinstance(error, httpx.RemoteProtocolError)
    assert "incomplete chunked read" in str(error)


def told(server: Server, fault: str) -> bytes:
    """The whole body with a fault, by an asynchronous client."""

    async def run() -> bytes:
        async with httpx.AsyncClient(timeout=LIMIT) as client:
            response = await client.post(
                f"{server.url}/v1/chat/completions",
                params={"fault": fault},
                json={"model": "chat", "stream": True},
            )
            assert response.status_code == 200
            return response.content

    return asyncio.run(run())


DONE = b"data: [DONE]\n\n"
BODIES = {
    "close=30": CHAT_BODY[:30],
    "slow-start=0.05": CHAT_BODY,
    "stall=30:0.05": CHAT_BODY,
    "no-done": CHAT_BODY.removesuffix(DONE),
    "no-blank": CHAT_BODY[:-1],
    "bom": BOM + CHAT_BODY,
    "crlf": CHAT_BODY.replace(b"\n", b"\r\n"),
    "cr": CHAT_BODY.replace(b"\n", b"\r"),
    "split-utf8": CHAT_BODY,
    "drip": CHAT_BODY,
    "bom,crlf,no-done,drip": BOM + CHAT_BODY.removesuffix(DONE).replace(b"\n", b"\r\n"),
}


@pytest.mark.parametrize("fault", BODIES)
def test_bodies_with_faults(server, client, fault):
    assert ask(client, server, "chat", fault=fault).content == told(server, fault) == BODIES[fault]


def test_writes_with_faults(server, client):
    assert {len(each) for each in writes(client, server, "chat", fault="drip")} == {1}
    split = writes(client, server, "chat", fault="split-utf8")
    assert len(split) == len(CHAT) + sum(len(text.encode()) > 1 for text in CHAT_BODY.decode())


def test_stall_and_keepalive(server, client):
    after = len(CHAT[0])
    url = f"{server.url}/v1/chat/completions?fault=stall={after},keepalive=0.02"
    with client.stream("POST", url, json={"model": "chat", "stream": True}) as response:
        received = b""
        for data in response.iter_raw():
            received += data
            if received.count(b": keep-alive") > 3:
                break
    assert received.replace(b": keep-alive\n\n", b"") == CHAT[0]
    received, error = until_broken(client, server, "stall=10", timeout=0.3)
    assert received == CHAT_BODY[:10]
    assert isinstance(error, httpx.ReadTimeout)


def test_hang_and_slow_start(server, client):
    with pytest.raises(httpx.ReadTimeout):
        client.post(f"{server.url}/v1/chat/completions?fault=hang", json={"model": "chat"}, timeout=0.2)
    url = f"{server.url}/v1/chat/completions?fault=slow-start=60"
    with client.stream("POST", url, json={"model": "chat"}, timeout=1) as response:  # the headers are there
        assert response.status_code == 200
    eventually(lambda: [each["state"] for each in server.requests[-2:]] == ["gone", "gone"])


def test_refusals(client):
    with Server(RECORDINGS, faults=["first=429:1.5,times=2"], speed=math.inf) as server:
        found = [ask(client, server, "chat") for _ in range(3)]
        assert [each.status_code for each in found] == [429, 429, 200]
        assert found[0].headers["retry-after"] == "1.5"
        assert found[0].json()["error"]["type"] == "rate_limit_error"
        assert [ask(client, server, "chat", fault="status=503").status_code for _ in range(2)] == [503, 503]
        refused = ask(client, server, "x", "/v1/messages", fault="status=529:7")
        assert (refused.status_code, refused.json()["type"], refused.headers["retry-after"]) == (529, "error", "7")
        assert ask(client, server, "x").content == CHAT_BODY  # a refusal uses nothing up


def test_other_media_types_and_errors(server, client):
    html = ask(client, server, "chat", fault="content-type=text/html")
    assert (html.headers["content-type"], html.content) == ("text/html", CHAT_BODY)
    assert "content-type" not in ask(client, server, "chat", fault="content-type=").headers
    error = ask(client, server, "chat", fault="json-error")
    assert (error.status_code, error.json()["base_resp"]["status_code"]) == (200, 1002)
    assert error.headers["content-type"] == "application/json"
    inside = ask(client, server, "chat", fault="error-event=1").content
    assert inside.startswith(CHAT[0] + b'data: {"error": ')
    assert outcome(events_of(inside, ChatDecoder()))["clean"] is False
    inside = ask(client, server, "messages", "/v1/messages", fault="error-event=1").content
    assert b'event: error\ndata: {"type": "error"' in inside
    assert outcome(events_of(inside, MessagesDecoder()))["clean"] is False


def test_json_has_no_events_to_put_faults_between(server, client):
    whole = ask(client, server, "raw", stream=False)
    assert ask(client, server, "raw", stream=False, fault="keepalive=0.01,error-event=1").content == whole.content


def test_a_recording_that_cannot_be_decoded(client):
    recordings = [Recording("a", Header(dialect="none"), [Piece(0.0, "hi")])]
    with Server(recordings, speed=math.inf) as server:
        response = ask(client, server, "a")
    assert response.status_code == 500
    assert "'none'" in response.json()["error"]["message"]


def test_a_fault_that_is_none(server, client):
    response = ask(client, server, "chat", fault="cutt=3")
    assert response.status_code == 400
    assert "fault 'cutt=3': expected one of cut=N" in response.json()["error"]["message"]


# Clients that go away, many clients, the end


def test_a_client_that_goes_away_is_noticed(server, client):
    for path in ("/v1/chat/completions", "/v1/messages"):
        with client.stream("POST", server.url + path, json={"model": "slow", "stream": True}):
            assert client.get(f"{server.url}/_requests").json()[-1]["state"] == "playing"
        eventually(lambda: server.requests[-1]["state"] == "gone")
        last = client.get(f"{server.url}/_requests").json()[-1]
        assert last == {"path": path, "model": "slow", "recording": "slow", "status": 200, "sent": 0, "state": "gone"}


def test_what_is_told_of_a_request(server, client):
    lines: list[str] = []
    ask(client, server, "chat", fault="close=12")
    expected = {"model": "chat", "recording": "chat", "status": 200, "sent": 12, "state": "complete"}
    assert server.requests[-1] == {"path": "/v1/chat/completions", **expected}
    with Server(RECORDINGS, log=lines.append) as other:
        ask(client, other, "chat")
    assert lines == [f"/v1/chat/completions chat: 200 status, {len(CHAT_BODY)} bytes, complete"]


@pytest.mark.parametrize("count", [200])
def test_many_streams_at_once(server, count):
    async def run() -> list[bytes]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(timeout=60, limits=limits) as client:
            url = f"{server.url}/v1/chat/completions"
            asked = (client.post(url, json={"model": "chat", "stream": True}) for _ in range(count))
            return [response.content for response in await asyncio.gather(*asked)]

    before = threading.active_count()
    assert asyncio.run(run()) == [CHAT_BODY] * count
    assert threading.active_count() <= before + 1


def test_a_server_stops_while_it_plays(client):
    before = threading.active_count()
    start = time.monotonic()
    with Server(RECORDINGS) as server:
        address = urlsplit(server.url)
        connection = socket.create_connection((address.hostname, address.port), timeout=LIMIT)
        body = json.dumps({"model": "slow", "stream": True}).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        connection.sendall(head + body)
        assert connection.recv(12) == b"HTTP/1.1 200"
    with connection:
        while connection.recv(65536):
            pass
    assert time.monotonic() - start < LIMIT
    assert server.requests[-1]["state"] == "stopped"
    assert threading.active_count() == before


# The command


def test_the_command(client, tmp_path):
    (tmp_path / "answer.sse").write_bytes(CHAT_BODY)
    command = [
        sys.executable,
        "-m",
        "streamparse",
        "serve",
        "answer.sse",
        "--port",
        "0",
        "--speed",
        "inf",
        "--fault",
        "bom",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.endswith(" plays 1 recording; Ctrl-C stops\n")
        response = client.post(f"{line.split()[0]}/v1/chat/completions", json={"stream": True})
        assert response.content == BOM + CHAT_BODY
        process.send_signal(2)
        _, told = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
        process.wait(LIMIT)
    assert (process.returncode, told) == (
        130,
        f"/v1/chat/completions answer: 200 status, {len(BOM + CHAT_BODY)} bytes, complete\n",
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.sse"], "cannot read nothing.sse"),
        (["a.txt", "--fault", "x"], "fault 'x': expected one of"),
        (["a.txt", "--port", "70000"], "expected a number from 0 to 65535"),
        (["a.txt", "--chunk", "0"], "expected a number of bytes from 1, 'event' or 'as-recorded'"),
        (["a.txt", "--host", "256.0.0.1"], "cannot listen on 256.0.0.1:8000"),
    ],
)
def test_wrong_use_of_the_command(tmp_path, arguments, words):
    (tmp_path / "a.txt").write_text("hi")
    command = [sys.executable, "-m", "streamparse", "serve", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 2
    assert words in done.stderr


def test_without_the_extra():
    code = """
import sys
sys.modules["uvicorn"] = None
from streamparse.cli import main
sys.exit(main(["serve", "x"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "streamparse: the local server needs uvicorn, which is in the extra 'serve': "
        "pip install 'streamparse-toolcalls[serve]'\n"
    )
