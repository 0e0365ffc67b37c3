"""Recording a response: what was received is what is written, with its time, and never a secret."""

from __future__ import annotations

import json
import math
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamparse.errors import EventTooLargeError, UsageError
from streamparse.server import Recording, Server
from streamparse.transport import recorder as recorder_module
from streamparse.transport.recorder import REPLACEMENT, Recorder, Redaction
from streamparse.transport.recording import Header, Piece, RecordingReader, read, write
from streamparse.transport.replay import body_of, options_of
from streamparse.transport.wires import Wire
from tests.conftest import ROOT

LIMIT = 30.0
KEY = "sk-test/0123 é"


def recorded(parts: list[bytes], *, broken: bool = False, header: Header | None = None, **options: Any) -> str:
    recorder = Recorder(header or Header(wire=Wire.CHAT), **options)
    lines = [recorder.start(), *(recorder.add(part, at) for at, part in enumerate(parts, 1))]
    return "".join(lines) + recorder.close(len(parts) + 1, broken=broken)


def in_pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


CUTS = st.lists(st.integers(0, 10_000), max_size=6)

# What is written


@given(st.lists(st.binary(max_size=12) | st.text(max_size=8).map(str.encode)), st.booleans(), st.booleans())
def test_the_bytes_and_times_are_those_that_came(parts, broken, wary):
    text = recorded(parts, broken=broken, secrets=[KEY] if wary else [])
    _, pieces = read(text)
    assert b"".join(piece.data for piece in pieces) == b"".join(parts)
    assert [piece.broken for piece in pieces] == [False] * (len(pieces) - broken) + [True] * broken
    came = {at for at, part in enumerate(parts, 1) if part}
    assert {piece.at for piece in pieces if piece.data} == came
    if not wary:
        assert [piece.data for piece in pieces if piece.data] == [part for part in parts if part]


def test_lines_are_written_as_they_come():
    recorder = Recorder(Header(wire=Wire.CHAT))
    assert recorder.start() == json.dumps(json.loads(recorder.start()), ensure_ascii=False) + "\n"
    assert recorder.add(b"data: ", 0.5) == '{"at": 0.5, "text": "data: "}\n'
    assert recorder.add(b"\xe4\xb8", 0.75) == '{"at": 0.75, "base64": "5Lg="}\n'
    assert recorder.close(1.0, broken=True) == '{"at": 1.0, "broken": true}\n'
    wary = Recorder(Header(wire=Wire.CHAT), secrets=["x"])
    assert wary.add(b"data: ", 0.5) == ""
    assert wary.add(b"1\nid", 0.75) == '{"at": 0.5, "text": "data: "}\n{"at": 0.75, "text": "1\\n"}\n'
    assert wary.close(1.0) == '{"at": 0.75, "text": "id"}\n'


def test_the_header_holds_what_is_not_the_default():
    plain = json.loads(write(Header(), []))
    assert plain.keys() == {
        *("streamparse", "version", "title", "look", "dialect", "start", "finish_reason", "tools", "expected")
    }
    assert plain["dialect"] == "minimax_m2"
    header = Header(wire=Wire.MESSAGES, path="/v1/messages", request={"a": 1}, status=500, media_type="text/plain")
    assert header.dialect == "auto"
    assert read(write(header, [])) == (header, [])


def test_nothing_comes_behind_a_break():
    reader = RecordingReader()
    reader.feed(write(Header(), [Piece(1.0, broken=True)]))
    with pytest.raises(UsageError, match="line 3: expected nothing behind the piece that is broken"):
        reader.feed('{"at": 2, "text": "x"}\n')


# Secrets

KEYS = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x10FFFF, exclude_categories=["Cs"]), min_size=6, max_size=20
)


@given(KEYS, CUTS, st.integers(0, 3))
@example('sk-"\\/é🎉', [], 2)
@example("[redacted]x", [3], 0)
def test_a_secret_is_never_written(key, cuts, nesting):
    """Whole or in pieces, plain or as JSON writes it, also as JSON in JSON."""
    spelled = [key]
    for ascii_ in (True, False):
        text = key
        for _ in range(nesting):
            text = json.dumps(text, ensure_ascii=ascii_)[1:-1]
            spelled += [text, text.replace("/", "\\/")]
    body = "".join(f"data: <{each}>\r\n\r\n" for each in spelled).encode()
    header = Header(wire=Wire.CHAT, path=f"/v1/{key}/chat", request={key: [f"a {key} b"], "n": 1})
    text = recorded(in_pieces(body, cuts), header=header, secrets=[key])
    found, pieces = read(text)
    written = b"".join(piece.data for piece in pieces).decode()
    assert written == f"data: <{REPLACEMENT}>\r\n\r\n" * len(spelled)
    assert found.path == f"/v1/{REPLACEMENT}/chat"
    assert found.request == {REPLACEMENT: [f"a {REPLACEMENT} b"], "n": 1}


@given(CUTS, CUTS)
def test_redaction_does_not_depend_on_the_cuts(one, other):
    body = f"data: 1 {KEY}\n\ndata: 2\n\ndata: {KEY}".encode()
    written = {
        b"".join(piece.data for piece in read(recorded(in_pieces(body, cuts), secrets=[KEY]))[1])
        for cuts in (one, other)
    }
    assert written == {body.replace(KEY.encode(), REPLACEMENT.encode())}


def test_patterns_see_strings_and_lines():
    def redact(text: str) -> str:
        return re.sub(r"\d{4}$", "0000", text, flags=re.MULTILINE)

    header = Header(wire=Wire.CHAT, path="/1234", request={"a": "1234", "b": ["x 1234", 1234]})
    found, pieces = read(recorded([b"12", b"34\n12", b"34"], header=header, redact=redact))
    assert (found.path, found.request) == ("/0000", {"a": "0000", "b": ["x 0000", 1234]})
    assert [(piece.at, piece.data) for piece in pieces] == [(2, b"0000\n"), (3, b"0000")]


def test_bytes_that_are_no_utf8_stay():
    assert Redaction(["key"]).line(b"\xff key \xfe\n") == b"\xff [redacted] \xfe\n"
    assert not Redaction(["", ""]).needed


def test_a_line_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(recorder_module, "MAX_BODY", 10)
    recorder = Recorder(Header(wire=Wire.CHAT), secrets=["x"])
    with pytest.raises(EventTooLargeError, match="more than 10 bytes"):
        recorder.add(b"a" * 11, 0.0)


# Reading again


def test_the_tools_of_the_request_are_used():
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    assert options_of(Header(wire=Wire.CHAT, request={"tools": [tool]})).tools == [tool]
    assert options_of(Header(wire=Wire.CHAT, request={"tools": [3]})).tools is None
    assert options_of(Header(wire=Wire.CHAT, request={"tools": 3})).tools is None
    assert options_of(Header(wire=Wire.CHAT, request=[1])).tools is None
    assert options_of(Header(wire=Wire.CHAT, tools=[], request={"tools": [tool]})).tools == []
    assert body_of(Header(wire=Wire.CHAT, media_type="text/html"), b"<html>") is None


# The command


def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return f"data: {json.dumps({'choices': choices}, ensure_ascii=False)}\n\n"


PARTS = [chunk({"content": "Grü"}), chunk({"content": "ße"}), chunk({}, "stop"), "data: [DONE]\n\n"]
BODY = "".join(PARTS).encode()
ECHO = chunk({"content": "your key is sk-secret-1"}) + "data: [DONE]\n\n"
SSE = "text/event-stream; charset=utf-8"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    recordings = [
        Recording(
            "chat", Header(wire=Wire.CHAT, media_type=SSE), [Piece(0.01 * at, part) for at, part in enumerate(PARTS)]
        ),
        Recording("echo", Header(wire=Wire.CHAT, media_type=SSE), [Piece(0.0, ECHO[:40]), Piece(0.0, ECHO[40:])]),
        Recording("page", Header(wire=Wire.CHAT, status=502, media_type="text/html"), [Piece(0.0, "<html>no</html>")]),
    ]
    with Server(recordings) as server:
        yield server


def run(folder: Path, url: str, *arguments: str, model: str = "chat") -> subprocess.CompletedProcess[str]:
    request = json.dumps({"model": model, "stream": True, "user": "sk-secret-1"})
    command = [sys.executable, "-m", "streamparse", "record", url, "--request", "-", "--out", "a.jsonl", *arguments]
    environment = {"TEST_KEY": "sk-secret-1", "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        command,
        cwd=folder,
        input=request,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )


def test_what_is_recorded_is_played_again(server, tmp_path):
    done = run(tmp_path, f"{server.url}/v1/chat/completions?x=1", "--format", "text")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("text      | Grüße\n")
    text = (tmp_path / "a.jsonl").read_text("utf-8")
    header, pieces = read(text)
    assert (header.path, header.wire, header.status) == ("/v1/chat/completions", Wire.CHAT, 200)
    assert header.media_type == SSE
    assert header.request["model"] == "chat"
    assert [piece.text for piece in pieces] == PARTS
    assert 0 < pieces[0].at <= pieces[1].at
    with Server([tmp_path / "a.jsonl"], speed=math.inf) as again:
        response = httpx.post(f"{again.url}/v1/chat/completions", json={"stream": True}, timeout=LIMIT)
        assert (response.content, response.headers["content-type"]) == (BODY, SSE)


def test_the_key_is_never_recorded(server, tmp_path):
    for arguments in (
        ["--key-env", "TEST_KEY"],
        ["--header", "Authorization: Bearer sk-secret-1"],
        ["--header", "X-Api-Key: sk-secret-1", "--header", "X-Title: your"],
        ["--header", "Cookie: a=b; session=sk-secret-1"],
    ):
        done = run(tmp_path, f"{server.url}/v1/chat/completions", *arguments, model="echo")
        assert (done.returncode, done.stderr) == (0, "")
        text = (tmp_path / "a.jsonl").read_text("utf-8")
        assert "sk-secret" not in text
        assert f"your key is {REPLACEMENT}" in text  # a title is no secret
        assert read(text)[0].request["user"] == REPLACEMENT
    run(tmp_path, f"{server.url}/v1/chat/completions", "--redact", "sk-[a-z]+", "--redact", "-1", model="echo")
    text = (tmp_path / "a.jsonl").read_text("utf-8")
    assert f"your key is {REPLACEMENT}{REPLACEMENT}" in text
    assert read(text)[0].request["user"] == REPLACEMENT * 2


def test_a_short_value_of_a_header_is_no_secret(server, tmp_path):
    """The recording stays JSON, and can be played."""
    short = ["X-Retry-Count: 0", "X-Flag: true", "X-Seconds: 1000", "X-Kind: no"]
    arguments = [word for header in short for word in ("--header", header)]
    done = run(tmp_path, f"{server.url}/v1/chat/completions?beta=true&key=0", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert REPLACEMENT not in (tmp_path / "a.jsonl").read_text("utf-8")


def test_errors_are_recorded(server, tmp_path):
    url = f"{server.url}/v1/chat/completions"
    done = run(tmp_path, f"{url}?fault=status=429", "--format", "jsonl")
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout.splitlines()[0])["error"]["code"] == "provider_error"
    assert read((tmp_path / "a.jsonl").read_text("utf-8"))[0].status == 429
    done = run(tmp_path, url, model="page")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "streamparse: HTTP status 502, text/html: 15 bytes recorded, nothing to decode\n"
    header, [piece] = read((tmp_path / "a.jsonl").read_text("utf-8"))
    assert (header.status, header.media_type, piece.text) == (502, "text/html", "<html>no</html>")


def test_a_broken_connection_is_recorded(server, tmp_path):
    url = f"{server.url}/v1/chat/completions"
    done = run(tmp_path, f"{url}?fault=cut={len(PARTS[0]) + 9}")
    assert done.returncode == 1
    assert done.stderr == "streamparse: the connection broke: RemoteProtocolError\n"
    assert json.loads(done.stdout.splitlines()[0]) == {"type": "text", "text": "Grü"}
    _, pieces = read((tmp_path / "a.jsonl").read_text("utf-8"))
    assert pieces[-1].broken
    assert b"".join(piece.data for piece in pieces) == BODY[: len(PARTS[0].encode()) + 8]
    with Server([tmp_path / "a.jsonl"], speed=math.inf) as again, pytest.raises(httpx.RemoteProtocolError):
        httpx.post(f"{again.url}/v1/chat/completions", json={"stream": True}, timeout=LIMIT)


@pytest.mark.parametrize(
    ("url", "arguments", "words"),
    [
        ("ftp://h/x?key=secret-1", [], "URL: expected http:// or https:// and a host"),
        ("nothing", [], "URL: expected http:// or https:// and a host"),
        ("http://127.0.0.1:1/x?key=secret-1", [], "127.0.0.1: "),
        ("http://h/", ["--key-env", "NO_SUCH"], "--key-env NO_SUCH: expected a key in this environment variable"),
        ("http://h/", ["--header", "Authorization secret-1"], "--header: expected 'NAME: VALUE'"),
        ("http://h/", ["--header", "A: b\nsecret-1: d"], "--header: expected 'NAME: VALUE'"),
        ("http://h/", ["--redact", "("], "--redact '(': expected a regular expression"),
        ("http://h/", ["--request", "nothing.json"], "cannot read nothing.json"),
        ("http://h/", ["--request", "bad.json"], "--request bad.json: expected JSON"),
        ("LISTENING", ["--out", "no/where.jsonl"], "cannot write no/where.jsonl"),
    ],
)
def test_wrong_use(server, tmp_path, url, arguments, words):
    (tmp_path / "bad.json").write_text("{")
    done = run(tmp_path, url.replace("LISTENING", f"{server.url}/v1/chat/completions"), *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "secret-1" not in done.stderr
    assert not (tmp_path / "a.jsonl").exists()


def test_what_is_sent(tmp_path):
    """One request, read from the socket."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(LIMIT)

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.settimeout(LIMIT)
                while b'"user"' not in b"".join(received):
                    received.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: a=secret\r\n\r\n{}")

        thread = threading.Thread(target=answer)
        thread.start()
        port = listening.getsockname()[1]
        run(tmp_path, f"http://127.0.0.1:{port}/v1/messages?beta=true", "--key-env", "TEST_KEY", "--header", "A-B: c:d")
        thread.join(LIMIT)
    head, _, body = b"".join(received).decode().partition("\r\n\r\n")
    assert head.startswith("POST /v1/messages?beta=true HTTP/1.1\r\n")
    for line in ("x-api-key: sk-secret-1", "anthropic-version: 2023-06-01", "a-b: c:d", "accept-encoding: identity"):
        assert f"\r\n{line}\r\n" in f"{head.lower()}\r\n"
    assert json.loads(body)["user"] == "sk-secret-1"
    text = (tmp_path / "a.jsonl").read_text("utf-8")
    assert "secret" not in text
    assert read(text)[0].path == "/v1/messages"
