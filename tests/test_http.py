"""``stream`` and ``astream``: each rule with transports and clocks made for it, then with real sockets."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import socket
import struct
import threading
import time
import warnings
from contextlib import closing, contextmanager
from email.utils import formatdate
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import anyio
import httpx
import httpx2
import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamparse.errors import (
    ConnectError,
    EventTooLargeError,
    ResponseError,
    StreamInterruptedError,
    StreamTimeoutError,
    ToolDefinitionError,
    TransportError,
    UsageError,
)
from streamparse.events import (
    ArgumentDelta,
    Deviated,
    Ended,
    ErrorCode,
    Failed,
    Reasoning,
    Text,
    ToolCallFailed,
    ToolCallFinished,
)
from streamparse.limits import ERROR_BODY, EXCERPT
from streamparse.transport import attempt as attempt_module
from streamparse.transport.body import Body
from streamparse.transport.framing import FramingKind
from streamparse.transport.http import astream, stream
from streamparse.transport.pace import FIRST_PAUSE, JITTER, LONGEST_PAUSE, SystemClock, pace
from streamparse.transport.recorder import REPLACEMENT, Redaction
from streamparse.transport.redaction import redaction_of, secrets_of
from streamparse.transport.refusal import told_by
from streamparse.transport.wires import Options, Wire
from tests.chunks import join
from tests.conftest import shared

CHAT = "http://model.test/v1/chat/completions"
SSE = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}
KEEP_ALIVE = b": still here\n\n"
DONE = b"data: [DONE]\n\n"


def event(**fields):
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def delta(finish=None, **fields):
    return event(choices=[{"index": 0, "delta": fields, "finish_reason": finish}])


def call(arguments, **fields):
    function = {"arguments": arguments} | ({"name": fields["name"]} if fields else {})
    return delta(tool_calls=[{"index": 0, "id": "c1", "function": function}])


ROLE = delta(role="assistant", content="")
HI = delta(content="Hi")
STOP = delta("stop")
ANSWER = [ROLE, HI, delta(content=" there"), STOP, event(choices=[], usage={"total_tokens": 3}), DONE]
ANSWER_EVENTS = [Text("Hi there"), Ended("stop", {"total_tokens": 3})]

CALL = [ROLE, call("", name="f"), call('{"a": "x'), call('y"}'), delta("tool_calls"), DONE]


# --- drivers: the same scripts through the two ways, and through two generations of the client -----------------------


class FakeClock:
    """Time that passes when a script says so."""

    def __init__(self):
        self.time = 100.0
        self.pauses = []

    def now(self):
        return self.time

    def date(self):
        return 1_700_000_000.0

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.time += seconds

    async def asleep(self, seconds):
        self.sleep(seconds)


class Hasty(FakeClock):
    """The real time, without the pauses between two tries."""

    now = staticmethod(time.monotonic)

    def sleep(self, seconds):
        self.pauses.append(seconds)


class Patient(SystemClock):
    """The real time, with pauses that nobody waits for."""

    @staticmethod
    def sleep(_):
        time.sleep(LIMIT * 3)

    @staticmethod
    async def asleep(_):
        await anyio.sleep(LIMIT * 3)


class Play:
    """One response: status, headers and what its body does. In ``body``: bytes come, a number of seconds passes, an
    exception is raised. Instead of a status, an exception: there is no response."""

    def __init__(self, *body, status=200, headers=SSE, after=0.0, fails=None):
        self.body, self.status, self.headers, self.after, self.fails = body, status, headers, after, fails
        self.closed = False
        self.read = 0  # pieces of the body


def transport_of(library: Any, plays, clock, requests: list[Any]):
    """Plays one after the other, sync and async."""

    class Stream(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, play):
            self.play = play

        def __iter__(self):
            for step in self.play.body:
                if isinstance(step, bytes):
                    self.play.read += 1
                    yield step
                elif isinstance(step, str):
                    raise getattr(library, step)("it broke")
                else:
                    clock.time += step

        async def __aiter__(self):
            for data in self:
                yield data

        def close(self):
            self.play.closed = True

        async def aclose(self):
            self.play.closed = True

    def handle(request):
        play = plays[len(requests)]
        requests.append(request)
        clock.time += play.after
        if play.fails:
            raise getattr(library, play.fails)("no luck", request=request)
        return library.Response(play.status, headers=play.headers, stream=Stream(play))

    class Transport(library.BaseTransport, library.AsyncBaseTransport):  # type: ignore[misc]
        def handle_request(self, request):
            request.read()
            return handle(request)

        async def handle_async_request(self, request):
            await request.aread()
            return handle(request)

    return Transport()


class Outcome(SimpleNamespace):
    """What came of it: ``events`` (joined), ``raised``, the ``answer`` object, and what the server saw."""


@pytest.fixture(params=["sync", "async", "sync httpx2", "async httpx2"])
def run(request):
    """Runs plays; takes the options of ``stream``."""
    library = httpx2 if "httpx2" in request.param else httpx
    is_async = request.param.startswith("async")

    def run(*plays, url=CHAT, body=None, client=None, stop_after=None, **options):
        clock = FakeClock()
        requests: list[Any] = []
        options = {"clock": clock} | options
        outcome = Outcome(clock=clock, requests=requests, plays=plays, events=[], raised=None, answer=None)
        transport = transport_of(library, plays, clock, requests)
        body = {"model": "m", "messages": []} if body is None else body

        def take(answer, found):
            outcome.answer = answer
            outcome.events.append(found)
            return stop_after is not None and len(outcome.events) >= stop_after

        def sync():
            with library.Client(transport=transport, **(client or {})) as user:
                outcome.answer = stream(user, url, body, **options)
                with outcome.answer as answer:
                    for found in answer:
                        if take(answer, found):
                            break

        async def asynchronous():
            async with library.AsyncClient(transport=transport, **(client or {})) as user:
                outcome.answer = astream(user, url, body, **options)
                async with outcome.answer as answer:
                    async for found in answer:
                        if take(answer, found):
                            break

        try:
            asyncio.run(asynchronous()) if is_async else sync()
        except Exception as error:
            outcome.raised = error
        outcome.events = join(outcome.events)
        assert all(play.closed for play in plays[: len(requests)] if not play.fails)
        return outcome

    run.library = library  # type: ignore[attr-defined]
    return run


# --- what is sent ----------------------------------------------------------------------------------------------------


def test_answer(run):
    done = run(Play(*ANSWER))
    assert (done.events, done.raised, done.answer.error) == (ANSWER_EVENTS, None, None)
    assert (done.answer.status, done.answer.attempts) == (200, 1)
    assert done.answer.response.headers["content-type"] == "text/event-stream"


def test_what_is_sent(run):
    client = {"headers": {"Authorization": "Bearer k", "Accept": "*/*", "X-Own": "1"}}
    body = {"model": "m", "messages": [{"role": "user", "content": "é"}]}
    done = run(Play(*ANSWER), body=body, client=client, headers={"X-More": "2", "Cache-Control": "max-age=0"})
    [request] = done.requests
    assert request.method == "POST"
    assert json.loads(request.content) == {"stream": True, **body}
    assert "stream" not in body
    sent = {name: request.headers[name] for name in ("accept", "content-type", "x-own", "x-more", "authorization")}
    assert sent == {
        "accept": "text/event-stream",
        "content-type": "application/json",
        "x-own": "1",
        "x-more": "2",
        "authorization": "Bearer k",
    }
    assert request.headers["cache-control"] == "max-age=0"


def test_cache_control(run):
    assert run(Play(*ANSWER)).requests[0].headers["cache-control"] == "no-store"


@pytest.mark.parametrize("value", [False, None])
def test_a_stream_of_the_caller_stays(run, value):
    done = run(Play(*ANSWER), body={"stream": value})
    assert json.loads(done.requests[0].content) == {"stream": value}


def test_bytes_are_sent_as_they_are(run):
    assert run(Play(*ANSWER), body=b'{"x":  1}').requests[0].content == b'{"x":  1}'


def test_half_a_surrogate_pair_can_be_sent(run):
    assert run(Play(*ANSWER), body={"a": "\ud83d"}).requests[0].content == b'{"stream":true,"a":"\\ud83d"}'


@pytest.mark.parametrize("body", ["text", 7, {"a": object()}, {"a": float("nan")}])
def test_no_request(run, body):
    done = run(Play(*ANSWER), body=body)
    assert isinstance(done.raised, UsageError)
    assert done.requests == []


def test_limits_of_the_client(run):
    done = run(Play(*ANSWER), client={"timeout": run.library.Timeout(1, read=2, pool=50, write=None)}, first_token=40)
    timeout = done.requests[0].extensions["timeout"]
    assert {name: timeout[name] for name in ("connect", "write", "pool")} == {"connect": 1, "write": 40, "pool": 40}
    assert timeout["read"] is None or timeout["read"] >= 40


def test_tools_of_the_request(run):
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    known = run(Play(*CALL), body={"tools": [tool, {"type": "web_search"}]})
    [finished] = [found for found in known.events if isinstance(found, ToolCallFinished)]
    assert finished.call.trusted
    unknown = run(Play(*CALL), body={"tools": [tool]}, tools=[{"name": "other"}])
    [finished] = [found for found in unknown.events if isinstance(found, ToolCallFinished)]
    assert not finished.call.trusted
    assert unknown.answer.calls == [finished.call]
    assert unknown.answer.partial(0).arguments == {"a": "xy"}


def test_bad_options(run):
    for options, error in (
        ({"tools": [{}]}, ToolDefinitionError),
        ({"wire": "smoke"}, UsageError),
        ({"first_token": 0}, UsageError),
        ({"idle": -1}, UsageError),
        ({"retries": -1}, UsageError),
        ({"dialect": "nobody"}, UsageError),
        ({"url": "http://[model.test/"}, UsageError),
        ({"url": "http://model.test:port/"}, UsageError),
    ):
        done = run(Play(*ANSWER), **options)
        assert isinstance(done.raised, error), options
        assert done.requests == []


def test_bad_protocol():
    with httpx.Client() as client, pytest.raises(UsageError, match="ftp"):
        stream(client, "ftp://model.test/?key=secret", {}).__enter__()


def test_the_other_client():
    with httpx.Client() as client, pytest.raises(UsageError, match="use stream"):
        asyncio.run(astream(client, CHAT, {}).__aenter__())
    with pytest.raises(UsageError, match="use astream"):
        stream(httpx.AsyncClient(), CHAT, {}).__enter__()


def test_misuse():
    with httpx.Client(transport=transport_of(httpx, [Play(*ANSWER)], FakeClock(), [])) as client:
        answer = stream(client, CHAT, {})
        with pytest.raises(UsageError, match="with statement"):
            next(answer)
        with answer:
            pass
        with pytest.raises(UsageError, match="entered once"):
            answer.__enter__()
        assert list(answer) == []


# --- wires -----------------------------------------------------------------------------------------------------------


def test_completions(run):
    """The text of ``/v1/completions`` is raw output."""
    texts = ["think", '</think>\n<minimax:tool_call>\n<invoke name="f">\n', '<parameter name="a">x</parameter>\n']
    texts += ["</invoke>\n</minimax:tool_call>"]
    body = [event(choices=[{"index": 0, "text": text}]) for text in texts]
    body += [event(choices=[{"index": 0, "text": "", "finish_reason": "stop"}]), DONE]
    done = run(Play(*body), url="http://model.test/v1/completions", start="reasoning")
    assert done.events[0] == Reasoning("think")
    assert [found.arguments for found in done.answer.calls] == [{"a": "x"}]
    assert done.answer.error is None


def test_messages(run):
    said: list[tuple[str, dict]] = [
        ("message_start", {"message": {"role": "assistant", "content": []}}),
        ("ping", {}),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "Hi"}}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        ("message_stop", {}),
    ]
    body = [f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode() for name, data in said]
    done = run(Play(*body, KEEP_ALIVE, "ReadError"), url="http://model.test/v1/messages")
    assert (done.events[0], done.events[-1].clean, done.answer.error) == (Text("Hi"), True, None)
    full = event(type="error", error={"type": "overloaded_error", "message": "Overloaded"})
    again = run(Play(*body[:2], full), Play(*body), url="http://model.test/v1/messages")
    assert (again.events[0], again.answer.attempts) == (Text("Hi"), 2)


def test_raw_text(run):
    done = run(Play(b"  a", "é".encode()[:1], "é".encode()[1:], headers={"content-type": "text/plain"}), wire="text")
    assert done.events == [Text("  aé"), Ended()]
    refused = run(Play(b'{"detail": "no"}', headers=JSON), wire="text")
    assert (refused.raised.status, "no" in str(refused.raised)) == (200, True)


def test_blank_raw_text(run):
    assert run(Play(b"  ", headers={"content-type": "text/plain"}), wire="text").events == [Text("  "), Ended()]


def test_whole_completion(run):
    body = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}
    done = run(Play(json.dumps(body).encode(), headers=JSON))
    assert (done.events, done.answer.error) == ([Text("Hi"), Ended("stop")], None)


def test_media_type_is_missing_or_wrong(run):
    for headers in ({}, {"content-type": "Text/Plain"}, {"content-type": "application/json"}, {"content-type": "*"}):
        done = run(Play(b"\xef\xbb", b"\xbf", b"\n\nd", b"".join(ANSWER)[1:], headers=headers), retries=0)
        assert (done.events == ANSWER_EVENTS) == (headers != {"content-type": "*"}), headers


def test_empty_answer_is_an_answer(run):
    done = run(Play(ROLE, STOP, DONE))
    assert (done.events, done.answer.error, done.answer.attempts) == ([Ended("stop")], None, 1)


# --- refusals --------------------------------------------------------------------------------------------------------

REFUSALS = [
    # status, headers, body, code, what the message says, retryable
    (
        401,
        {},
        {"error": {"message": "bad key", "type": "t", "code": "invalid_api_key"}},
        "invalid_api_key",
        "bad key",
        0,
    ),
    (429, {}, {"error": {"message": "slow", "code": "rate_limit_exceeded"}}, "rate_limit_exceeded", "slow", 1),
    (429, {}, {"error": {"message": "pay", "type": "insufficient_quota"}}, "insufficient_quota", "pay", 0),
    (429, {}, {"error": {"message": "up", "metadata": {}, "code": 429}}, "429", "up", 1),
    (
        529,
        {},
        {"type": "error", "error": {"type": "overloaded_error", "message": "full"}},
        "overloaded_error",
        "full",
        1,
    ),
    (
        400,
        {},
        {"object": "error", "message": "long", "type": "BadRequestError", "code": 400},
        "BadRequestError",
        "long",
        0,
    ),
    (422, {}, {"detail": [{"loc": ["body", "n"], "msg": "not int", "type": "t"}]}, "", "body.n: not int", 0),
    (404, {}, {"detail": "Not Found"}, "", "Not Found", 0),
    (503, {}, [{"error": {"code": 503, "message": "later", "status": "UNAVAILABLE"}}], "UNAVAILABLE", "later", 1),
    (400, {}, {"error": "flat"}, "", "flat", 0),
    (408, {}, None, "", "HTTP status 408", 1),
    (409, {}, None, "", "HTTP status 409", 1),
    (425, {}, None, "", "HTTP status 425", 1),
    (500, {"x-should-retry": "false"}, None, "", "HTTP status 500", 0),
    (400, {"x-should-retry": "true"}, None, "", "HTTP status 400", 1),
    (502, {"content-type": "text/html"}, "<html>Bad Gateway", "", "HTTP status 502", 1),
    (307, {"location": "http://elsewhere.test/"}, None, "", "HTTP status 307", 0),
    (204, {}, None, "", "no content", 0),
    (200, {"content-type": "text/html"}, "<html>Log in", "", "text/html", 0),
    (200, {}, None, "", "empty body", 0),
    (200, JSON, {"error": {"message": "later", "type": "server_error"}}, "server_error", "later", 1),
    (200, JSON, {"error": {"message": "busy", "code": 503}}, "503", "busy", 1),
    (200, JSON, {"detail": "Not authenticated"}, "", "Not authenticated", 0),
    (200, JSON, {"code": 401, "msg": "log in"}, "401", "log in", 0),
    (200, JSON, {"object": "error", "message": "long", "code": 400}, "400", "long", 0),
    (200, JSON, {"choices": [{"error": {"message": "later", "code": 502}}]}, "502", "later", 1),
    (200, JSON, {"error": {"message": "no", "code": 400}}, "400", "no", 0),
    *[
        (200, JSON, {"base_resp": {"status_code": code, "status_msg": "why"}}, str(code), "why", retryable)
        for code, retryable in [(1000, 1), (1001, 1), (1002, 1), (1013, 1), (1024, 1), (1004, 0), (1008, 0), (2013, 0)]
    ],
]


@pytest.mark.parametrize(("status", "headers", "body", "code", "said", "retryable"), REFUSALS)
def test_refusals(run, status, headers, body, code, said, retryable):
    raw = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    plays = [Play(*[raw] * bool(raw), status=status, headers=headers)] * 3
    done = run(*plays)
    error = done.raised
    assert type(error) is ResponseError
    assert (error.status, error.code, error.retryable) == (status, code, bool(retryable))
    assert said in str(error)
    assert error.body == raw.decode()[:EXCERPT]
    assert len(done.requests) == (3 if retryable else 1)
    assert (done.events, done.answer.status) == ([], status)


STREAMED = [
    (event(error={"message": "full", "type": "overloaded_error"}), "overloaded_error", True),
    (b'event: error\ndata: {"message": "boom", "code": 500}\n\n', "500", True),
    (event(base_resp={"status_code": 1002, "status_msg": "rate limit"}), "1002", True),
    (event(error={"message": "too long", "code": "context_length_exceeded"}), "context_length_exceeded", False),
    (event(object="error", message="too long", code=400), "400", False),
    (event(type="error", message="boom", code="server_error"), "server_error", True),
    (event(choices=[{"index": 0, "delta": {}, "error": {"message": "bad gateway", "code": 502}}]), "502", True),
]


@pytest.mark.parametrize(("error", "code", "retryable"), STREAMED)
def test_an_error_before_all_else_is_a_refusal(run, error, code, retryable):
    done = run(Play(KEEP_ALIVE, ROLE, error[:9], error[9:], DONE), Play(*ANSWER))
    if retryable:
        assert (done.events, done.raised, done.answer.attempts) == (ANSWER_EVENTS, None, 2)
    else:
        assert (done.raised.status, done.raised.code, done.raised.retryable) == (200, code, False)


@pytest.mark.parametrize(("error", "code", "retryable"), STREAMED)
def test_an_error_after_that_is_an_event(run, error, code, retryable):
    done = run(Play(HI, error, DONE))
    assert done.events[0] == Text("Hi")
    assert [found.error.code for found in done.events if isinstance(found, Failed)] == [ErrorCode.PROVIDER_ERROR]
    assert (done.raised, done.answer.error, done.answer.attempts) == (None, None, 1)


def test_case_b170(run):
    [case] = [
        case
        for case in map(json.loads, shared("cases", "sse.jsonl").read_text(encoding="utf-8").splitlines())
        if case["id"] == "B170"
    ]
    given = case["input"]
    done = run(Play(given["body"].encode(), status=given["status"], headers=given["headers"]), retries=0)
    assert done.raised.retryable is case["expected"]["retryable"]
    assert f"{done.raised.code} rate limit" == case["expected"]["errors"][0].removeprefix("provider_error:")


def test_an_error_body_is_read_to_a_bound(run):
    play = Play(*[b"x" * 1000] * 200, status=400)
    assert run(play).raised.body == "x" * EXCERPT
    assert play.read <= ERROR_BODY // 1000 + 1


def test_an_error_body_is_not_waited_for(run):
    play = Play(b"{", *[3.0, b" "] * 10, status=400)
    assert run(play).raised.status == 400
    assert play.read == 3


def test_a_broken_error_body_is_an_error_of_that_status(run):
    done = run(Play(b'{"error": {"mess', "ReadError", status=400))
    assert (done.raised.status, done.raised.body) == (400, '{"error": {"mess')


KEY = 'sk-live/0123"456'
KEYS = st.text("abcdefgh-_/0123456789", min_size=8, max_size=20)


@pytest.mark.parametrize(
    ("headers", "auth", "query"),
    [
        ({"Authorization": f"Bearer {KEY}"}, None, ""),
        ({"X-Api-Key": KEY}, None, ""),
        ({"api-key": KEY}, None, ""),
        ({"Helicone-Auth": f"Bearer {KEY}"}, None, ""),
        ({"X-Portkey-Api-Key": KEY}, None, ""),
        ({"X-Nobody-Knows": KEY}, None, ""),
        ({"Cookie": f"a=b; session={KEY}"}, None, ""),
        ({}, ("user", "sk-basic"), ""),
        ({}, None, "?key=sk-live%2F0123%22456"),
    ],
)
@pytest.mark.parametrize("fault", ["body", "stream", "network"])
def test_the_key_is_in_no_error(run, headers, auth, query, fault):
    def echo(request):
        return json.dumps({"error": {"message": f"you sent {dict(request.headers)} to {request.url} {KEY}"}}).encode()

    library = run.library
    request = library.Request("POST", f"{CHAT}{query}", headers=headers)
    request = next(library.BasicAuth(*auth).auth_flow(request)) if auth else request
    secrets = [
        KEY,
        "sk-basic",
        json.dumps(KEY)[1:-1],
        KEY.replace("/", "%2F"),
        request.headers.get("authorization", KEY),
    ]
    if not auth:
        secrets.remove("sk-basic")
    body = echo(request)
    if auth:
        body = body.replace(json.dumps(KEY)[1:-1].encode(), b"")
    play = {
        "body": Play(body, status=401),
        "stream": Play(b"data: " + body + b"\n\n"),
        "network": Play(fails="ConnectError"),
    }[fault]
    done = run(play, url=f"{CHAT}{query}", client={"auth": auth}, headers=headers, retries=0)
    texts = [str(done.raised), repr(vars(done.raised)), repr(done.raised.args)]
    texts += [str(done.raised.__cause__), str(done.raised.__context__)]
    found = [(secret, text) for text in texts for secret in secrets if secret in text]
    if fault == "network":
        assert "model.test" in str(done.raised)
    else:
        assert REPLACEMENT in str(done.raised)
    assert [pair for pair in found if "%2F" not in pair[0]] == []


@given(key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=4), rest=st.text())
def test_redaction(key, rest):
    assume(not re.fullmatch(r"true|false|null|-?[0-9.]{4,7}", key, re.IGNORECASE))
    redact = redaction_of([("Authorization", f"Bearer {key}")])
    for text in (f"{rest}{key}{rest}", rest + json.dumps({"echo": key})):
        assert key not in redact.text(text).replace(REPLACEMENT, "\0") or key in REPLACEMENT


def test_what_is_no_secret():
    """What says nothing must not be torn out of texts, least of all out of JSON."""
    harmless = {
        "Accept": "text/event-stream",
        "X-Retry-Count": "0",
        "X-Flag": "true",
        "X-Seconds": "3600",
        "X-A": "abc",
    }
    query = "beta=true&api-version=2024-10-21&model=MiniMax-M2&key=0&token="
    assert secrets_of(f"https://host/v1?{query}", harmless) == set()
    url = "https://me:p%40ssword@host/v1?beta=true&sub-KEY=a%2Fbcd&access_token=efgh"
    assert secrets_of(url) == {"p%40ssword", "p@ssword", "a%2Fbcd", "a/bcd", "efgh"}
    assert secrets_of(headers=[("Cookie", 'a=1; b="wxyz"; c=vu=ts')]) == {
        *('a=1; b="wxyz"; c=vu=ts', 'b="wxyz"; c=vu=ts', "wxyz", "vu=ts")
    }


@given(KEYS, st.text(max_size=9), st.data())
def test_half_a_secret_at_the_end_of_an_excerpt(key, rest, data):
    """An excerpt was cut anywhere; of the key no more than three characters stay."""
    whole = f"{rest} {key}"
    size = data.draw(st.integers(len(rest) + 5, len(whole)))
    for text in (whole[:size], whole[::-1][:size][::-1]):
        for quote in ("", "'"):
            found = Redaction([key]).excerpt(f"{quote}{text}{quote}")
            assert key[:4] not in found
            assert found.endswith(quote)


IN_STREAM = [
    event(error={"message": f"you sent {KEY}", "code": KEY}),
    b"data: {'you sent': " + json.dumps(KEY).encode() + b"}\n\n",
    b'event: error\ndata: "' + b"x" * (EXCERPT - 12) + KEY.encode(),
]


@pytest.mark.parametrize("error", IN_STREAM)
def test_the_key_is_in_no_event(run, error):
    """C8, behind the first event: what the error says is shown without what was sent."""
    done = run(Play(HI, call('{"a": ', name="f"), error), headers={"X-Nobody-Knows": KEY})
    assert done.events[0] == Text("Hi")
    failures = [found for found in done.events if isinstance(found, Failed | ToolCallFailed)]
    shown = repr([failures, done.answer.error, str(done.answer.error)])
    assert len(failures) >= 1
    assert not re.search("sk-live|0123|456", shown), shown


@pytest.mark.parametrize(
    "body", [b"data: {'you sent': " + KEY.encode(), b'{"choices": [{"a": ' + json.dumps(KEY)[:-1].encode()]
)
def test_the_key_is_in_no_error_of_the_body(run, body):
    done = run(*[Play(body)] * 3, headers={"X-Nobody-Knows": KEY})
    assert isinstance(done.raised, StreamInterruptedError)
    assert not re.search("sk-live|0123|456", str(done.raised))


CUT_JSON = b'{"choices": [{"message": {"content": "hi'


def test_json_that_was_cut_is_tried_again(run):
    done = run(Play(CUT_JSON, headers=JSON), Play(*ANSWER))
    assert (done.events, done.raised, done.answer.attempts) == (ANSWER_EVENTS, None, 2)
    done = run(*[Play(CUT_JSON, headers=JSON)] * 3)
    assert type(done.raised) is StreamInterruptedError
    assert "inside its JSON" in str(done.raised)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ([b"upstream ", b"error"], JSON),
        ([b"data: upstream error\n\n"], SSE),
        ([KEEP_ALIVE, ROLE, b"data: upstream error\n\n", DONE], SSE),
        ([b"data: {'upstream': 'error'}\n\n", STOP], SSE),
    ],
)
def test_what_is_no_json_is_no_answer(run, body, headers):
    done = run(Play(*body, headers=headers))
    assert type(done.raised) is ResponseError
    assert (done.raised.status, done.raised.retryable, done.events) == (200, False, [])
    assert "expected JSON" in str(done.raised)
    assert "upstream" in str(done.raised)


def test_a_chunk_that_is_no_json_before_others(run):
    done = run(Play(b"data: oops\n\n", *ANSWER))
    assert isinstance(done.events[0], Failed)
    assert done.events[1:] == [Text("Hi there"), Ended("stop", {"total_tokens": 3}, clean=False)]
    assert done.answer.attempts == 1


def test_many_chunks_that_are_no_json_cost_no_more_each():
    """Quadratic, this takes minutes: they wait for an event of the answer."""
    count = 60_000
    events, _ = drive([b"data: oops\n\n"] * count + ANSWER)
    assert len(events) == count + 3
    assert join(events[count:])[0] == Text("Hi there")


MESSAGE = [
    event(type="message_start", message={"id": "m", "content": []}),
    event(type="ping"),
    event(type="content_block_start", index=0, content_block={"type": "text", "text": ""}),
    event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": "Hi"}),
    event(type="message_delta", delta={"stop_reason": "end_turn"}),
    event(type="message_stop"),
]


@pytest.mark.parametrize("end", [[], [1000.0], ["ReadError"]])
@pytest.mark.parametrize(("wire", "other", "plays"), [("chat", "messages", MESSAGE), ("messages", "chat", ANSWER)])
def test_chunks_of_another_wire(run, wire, other, plays, end):
    """The generation is paid for once, not three times."""
    done = run(Play(*plays[: -1 if end else None], *end), wire=wire)
    assert type(done.raised) is ResponseError
    assert (done.raised.retryable, len(done.requests)) == (False, 1)
    assert f"use wire={other!r}" in str(done.raised)


def test_a_redirect_says_where_to(run):
    done = run(Play(status=307, headers={"location": "https://me:pass@elsewhere.test/v2/x?sig=abcd#f"}))
    assert "https://elsewhere.test/v2/x;" in str(done.raised)
    assert "abcd" not in str(done.raised)
    assert "pass@" not in str(done.raised)


@given(st.binary() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(msgspec.json.encode))
def test_any_body_of_an_error_can_be_read(body):
    told_by(body)


def test_deep_bodies_of_errors_can_be_read():
    for depth in (10, 300, 900, 5000):
        told_by(b"[" * depth + b"]" * depth)
        told_by(b'{"error":{"message":' + b"[" * depth + b"]" * depth + b"}}")


error_values = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from("error message type code detail base_resp status_code loc msg".split()), inner
        )
    ),
)


@given(error_values)
def test_any_value_of_an_error_can_be_read(value):
    told = told_by(json.dumps(value).encode())
    assert isinstance(told.code, str)
    assert isinstance(told.message, str)


# --- trying again ----------------------------------------------------------------------------------------------------

FAILURES = {
    "no connection": Play(fails="ConnectError"),
    "slow connection": Play(fails="ConnectTimeout"),
    "no place in the pool": Play(fails="PoolTimeout"),
    "broke before the response": Play(fails="RemoteProtocolError"),
    "broke while sending": Play(fails="WriteError"),
    "bad proxy": Play(fails="ProxyError"),
    "too many requests": Play(status=429, headers={}),
    "server error": Play(status=500, headers={}),
    "broke before the first event": Play(KEEP_ALIVE, ROLE, "ReadError"),
    "bad encoding": Play("DecodingError"),
    "broke inside the first event": Play(HI[:9], "RemoteProtocolError"),
    "ended before the first event": Play(ROLE),
    "ended inside the first event": Play(HI[:9]),
    "no body": Play(),
    "broke inside a whole completion": Play(b'{"choices', "ReadError", headers=JSON),
    "keep-alives and empty deltas only": Play(*[KEEP_ALIVE, 4.0, ROLE, 4.0] * 9),
    "nothing after the head": Play(31.0, KEEP_ALIVE),
    "slow head": Play(KEEP_ALIVE, after=31.0),
}


@pytest.mark.parametrize("name", FAILURES)
def test_what_may_pass_is_tried_again(run, name):
    failure = FAILURES[name]
    done = run(failure, failure, Play(*ANSWER))
    assert (done.events, done.raised, done.answer.attempts) == (ANSWER_EVENTS, None, 3)
    assert done.requests[0].content == done.requests[2].content


@pytest.mark.parametrize("name", FAILURES)
def test_not_for_ever(run, name):
    done = run(*[FAILURES[name]] * 4, retries=3)
    assert done.raised.retryable
    assert len(done.requests) == done.answer.attempts == 4
    assert len(done.clock.pauses) == 3


def test_kinds_of_failures(run):
    kinds = {name: type(run(play, retries=0).raised) for name, play in FAILURES.items()}
    connect = {name for name, kind in kinds.items() if kind is ConnectError}
    assert connect == set(list(FAILURES)[:6])
    assert {name for name, kind in kinds.items() if kind is ResponseError} == {"too many requests", "server error"}
    assert {name for name, kind in kinds.items() if kind is StreamTimeoutError} == set(list(FAILURES)[-3:])
    assert {kind for name, kind in kinds.items()} - {ConnectError, ResponseError, StreamTimeoutError} == {
        StreamInterruptedError
    }


def test_an_exception_of_somebody_else_passes(run):
    class Observer:
        def begin(self, attempt, status, media_type):
            raise ZeroDivisionError

    assert isinstance(run(Play(*ANSWER), observer=Observer()).raised, ZeroDivisionError)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": formatdate(1_700_000_020, usegmt=True)}, 20.0),
        ({"retry-after": formatdate(1_000, usegmt=True)}, 0.0),
        ({"retry-after": formatdate(1_011, usegmt=True), "date": formatdate(1_000, usegmt=True)}, 11.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "30"}, 30.0),
    ],
)
def test_the_server_says_how_long(run, headers, seconds):
    done = run(Play(status=429, headers=headers), Play(*ANSWER))
    assert done.events == ANSWER_EVENTS
    [pause] = done.clock.pauses
    if seconds is None:
        assert FIRST_PAUSE <= pause <= FIRST_PAUSE * (1 + JITTER)
    else:
        assert pause == pytest.approx(seconds)


def test_too_long_is_not_waited_for(run):
    done = run(Play(status=429, headers={"retry-after": "31"}))
    assert (done.raised.retry_after, done.raised.retryable, done.clock.pauses) == (31.0, True, [])
    assert run(Play(status=429, headers={"retry-after": "31"}), Play(*ANSWER), max_wait=31).events == ANSWER_EVENTS


@given(st.integers(1, 60), st.binary())
def test_pauses_grow_to_a_bound(tries, content):
    plan = pace(1, 1, 100, 1000)
    pauses = [plan.pause(number, ConnectError(), content) or 0.0 for number in (tries, tries + 1)]
    assert FIRST_PAUSE <= pauses[0] <= pauses[1] <= LONGEST_PAUSE * (1 + JITTER)
    assert pace(1, 1, tries - 1, 1000).pause(tries, ConnectError(), content) is None


def test_not_once_something_was_handed_over(run):
    for failure in ("ReadError", 301.0):
        done = run(Play(HI, failure, KEEP_ALIVE, HI), Play(*ANSWER))
        assert (len(done.requests), done.raised) == (1, None)
        assert done.answer.error.retryable


def test_a_deviation_alone_was_not_the_answer(run):
    other = event(choices=[{"index": 0, "delta": {}}, {"index": 1, "delta": {"content": "no"}}])
    again = run(Play(other, "ReadError"), Play(*ANSWER))
    assert (again.events, again.answer.attempts) == (ANSWER_EVENTS, 2)
    once = run(Play(other, *ANSWER))
    assert [type(found) for found in once.events] == [Deviated, Text, Ended]


# --- after the first event -------------------------------------------------------------------------------------------

BREAKS = {
    "reset": (["ReadError"], StreamInterruptedError),
    "reset inside an event": ([HI[:9], "RemoteProtocolError"], StreamInterruptedError),
    "no end": ([], StreamInterruptedError),
    "end inside an event": ([HI[:9]], StreamInterruptedError),
    "silence": (["ReadTimeout"], StreamTimeoutError),
    "keep-alives only": ([KEEP_ALIVE, 200.0] * 9, StreamTimeoutError),
    "endless event": ([b"data: " + b"x" * 2000], EventTooLargeError),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_the_last_event(run, name):
    steps, kind = BREAKS[name]
    done = run(Play(*CALL[:3], *steps), max_event=1000)
    assert done.raised is None
    assert type(done.answer.error) is kind
    assert ArgumentDelta(0, ("a",), "x") in done.events
    kinds = [type(found) for found in done.events]
    assert kinds.count(ToolCallFailed) == 1
    assert kinds[-1] is Ended
    assert not done.events[-1].clean
    assert not done.answer.calls
    assert done.answer.partial(0).arguments == {"a": "x"}


def test_an_endless_event_before_all_else_raises(run):
    done = run(Play(b"data: " + b"x" * 2000), max_event=1000)
    assert type(done.raised) is EventTooLargeError
    assert len(done.requests) == 1


def test_each_event_begins_the_idle_time_anew(run):
    assert run(Play(HI, 290.0, HI, KEEP_ALIVE, 290.0, *ANSWER[1:])).answer.error is None


def test_a_late_token_is_a_token(run):
    """It came, so nothing hangs: a clock that is looked at too late must not throw it away."""
    assert run(Play(ROLE, 31.0, *ANSWER[1:])).events == ANSWER_EVENTS


def test_no_limits(run):
    assert run(Play(1e6, HI, 1e6, *ANSWER[2:], after=1e6), first_token=None, idle=None).events == ANSWER_EVENTS


# --- the end ---------------------------------------------------------------------------------------------------------


def test_usage_after_done(run):
    done = run(Play(HI, STOP, DONE, event(choices=[], usage={"total_tokens": 9})))
    assert done.events[-1] == Ended("stop", {"total_tokens": 9})


@pytest.mark.parametrize("tail", [["ReadError"], [KEEP_ALIVE, 2.0] * 9, ["ReadTimeout"], [b"x" * 1000] * 500, [HI[:9]]])
def test_the_tail_is_not_needed(run, tail):
    """Once the answer is complete nothing can spoil it, and little is waited for."""
    play = Play(*ANSWER, *tail)
    done = run(play)
    assert (done.events, done.answer.error) == (ANSWER_EVENTS, None)
    assert play.read <= len(ANSWER) + attempt_module.TAIL_BYTES // 1000 + 1


def test_the_caller_stops(run):
    play = Play(*ANSWER)
    done = run(play, stop_after=1)
    assert (done.events, play.closed) == ([Text("Hi")], True)
    assert play.read < len(ANSWER)


def test_the_caller_fails():
    play = Play(*ANSWER)
    with httpx.Client(transport=transport_of(httpx, [play], FakeClock(), [])) as client:
        answer = stream(client, CHAT, {})

        def fail():
            with answer:
                next(answer)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert play.closed
        assert list(answer) == []


def test_a_generator_is_closed():
    play = Play(*ANSWER)
    with httpx.Client(transport=transport_of(httpx, [play], FakeClock(), [])) as client:

        def texts():
            with stream(client, CHAT, {}) as answer:
                yield from answer

        generator = texts()
        next(generator)
        generator.close()
    assert play.closed


def test_break_alone_does_not_close(run):
    play = Play(*ANSWER)
    with httpx.Client(transport=transport_of(httpx, [play], FakeClock(), [])) as client, stream(client, CHAT, {}) as it:
        for _ in it:
            break
        assert join([Text("Hi"), *it]) == ANSWER_EVENTS


# --- the observer ----------------------------------------------------------------------------------------------------


class Tape:
    def __init__(self):
        self.told = []

    def begin(self, attempt, status, media_type):
        self.told.append(("begin", attempt, status, media_type))

    def piece(self, at, data):
        self.told.append((at, data))

    def end(self, *, broken):
        self.told.append(("end", broken))


def test_observer(run):
    tape = Tape()
    run(Play(b"busy", status=503, headers={}), Play(0.5, ROLE, 1.0, HI, "ReadError", after=0.25), observer=tape)
    assert tape.told == [
        ("begin", 1, 503, ""),
        (0.0, b"busy"),
        ("end", False),
        ("begin", 2, 200, "text/event-stream"),
        (0.75, ROLE),
        (1.75, HI),
        ("end", True),
    ]


def test_observer_gets_the_whole_body(run):
    tape = Tape()
    run(Play(*ANSWER), observer=tape)
    assert [data for _, data in tape.told[1:-1]] == ANSWER


# --- bytes -----------------------------------------------------------------------------------------------------------


def drive(pieces, is_async=False, **options):
    clock = FakeClock()
    transport = transport_of(httpx, [Play(*pieces)] * 3, clock, [])
    if is_async:

        async def main():
            async with (
                httpx.AsyncClient(transport=transport) as client,
                astream(client, CHAT, {}, clock=clock, **options) as answer,
            ):
                return [found async for found in answer], answer.error

        return asyncio.run(main())
    with httpx.Client(transport=transport) as client, stream(client, CHAT, {}, clock=clock, **options) as answer:
        return list(answer), answer.error


def on_the_whole(data):
    body = Body(Options().decoder(Wire.CHAT), FramingKind.EVENT_STREAM)
    return join([*body.feed(data), *body.close()])


@given(
    st.lists(
        st.sampled_from([*ANSWER, *CALL, KEEP_ALIVE, b"\xef\xbb\xbf", event(error="e"), b"data: {\n\n"]), max_size=9
    ),
    st.lists(st.integers(0, 2000)),
    st.booleans(),
)
def test_cuts_do_not_matter(body, places, is_async):
    data = HI + b"".join(body)
    places = sorted({0, len(data), *[place for place in places if place < len(data)]})
    pieces = [data[start:end] for start, end in pairwise(places)]
    events, _ = drive(pieces, is_async)
    assert join(events) == on_the_whole(data)


def outcome_of(pieces):
    try:
        events, error = drive(pieces, retries=0)
    except TransportError as raised:
        return type(raised), str(raised), raised.retryable
    return join(events), type(error), str(error)


@given(
    st.lists(
        st.sampled_from(
            [ROLE, HI, STOP, DONE, KEEP_ALIVE, b"data: {\n\n", event(error="e"), MESSAGE[0], MESSAGE[3], b"data: {"]
        ),
        min_size=1,
        max_size=5,
    ),
    st.lists(st.integers(0, 500)),
)
def test_cuts_do_not_matter_before_the_first_event_either(body, places):
    data = b"".join(body)
    places = sorted({0, len(data), *[place for place in places if place < len(data)]})
    assert outcome_of([data[start:end] for start, end in pairwise(places)]) == outcome_of([data])


@given(st.lists(st.binary(max_size=30) | st.sampled_from([*ANSWER, *CALL, event(error="e")]), max_size=9))
def test_total(pieces):
    """Whatever comes, there are events that end in ``Ended``, or an error of the transport."""
    try:
        events, _ = drive(pieces, retries=0)
    except (ResponseError, StreamInterruptedError):
        return
    assert isinstance(events[-1], Ended)


# --- real sockets ----------------------------------------------------------------------------------------------------

LIMIT = 10.0
"""Seconds until a wait for something that must happen is given up."""


class Line:
    """The server's end of one connection."""

    def __init__(self, sock):
        self.socket = sock

    def send(self, data):
        self.socket.sendall(data)

    def head(self, status=200, kind="text/event-stream", extra="Transfer-Encoding: chunked\r\n"):
        self.send(f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n{extra}\r\n".encode())

    def chunk(self, *pieces):
        for data in pieces:
            self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def last(self):
        self.send(b"0\r\n\r\n")

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def wait_gone(self):
        """Waits until the client has left; raises if it does not."""
        self.socket.settimeout(LIMIT)
        try:
            while self.socket.recv(4096):
                pass
        except ConnectionResetError:
            pass

    def trickle(self, data, pause=0.02):
        """Sends the same again and again, until the client leaves."""
        end = time.monotonic() + LIMIT
        try:
            while time.monotonic() < end:
                self.chunk(data)
                time.sleep(pause)
        except (BrokenPipeError, ConnectionResetError):
            return
        raise TimeoutError("the client does not leave")

    def request(self):
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._some()
        head, _, body = data.partition(b"\r\n\r\n")
        [length] = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        while len(body) < length:
            body += self._some()
        return body

    def _some(self):
        data = self.socket.recv(65536)
        if not data:
            raise EOFError
        return data


class Server:
    """Plays functions of a ``Line``, one for each request, whatever connection it comes on. What returns True goes on
    with the next request on the same connection."""

    def __init__(self, *plays):
        self.plays = list(plays)
        self.connections = 0
        self.failures = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/v1/chat/completions"
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _serve(self, sock):
        with sock:
            sock.settimeout(LIMIT)
            line = Line(sock)
            try:
                while True:
                    try:
                        line.request()
                    except (EOFError, ConnectionResetError):
                        return
                    if not self.plays.pop(0)(line):
                        return
            except Exception as error:
                self.failures.append(error)

    def close(self):
        with socket.socket() as waker:  # accept() does not notice that its socket is closed
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
            waker.close()
        for thread in self.threads:
            thread.join(LIMIT)
            assert not thread.is_alive()
        assert self.failures == []


@contextmanager
def server(*plays):
    with closing(Server(*plays)) as running:
        yield running


@pytest.fixture(params=["sync", "async"])
def fetch(request):
    """Fetches answers over a socket, one after the other with one client; short limits."""
    library = httpx2 if "httpx2" in request.param else httpx

    def collect(answers, outcome):
        return Outcome(events=join(outcome), answer=answers)

    def sync(url, times, stop_after, options):
        found = []
        with library.Client(trust_env=False) as client:
            for _ in range(times):
                with stream(client, url, {}, **options) as answer:
                    events = []
                    for event in answer:
                        events.append(event)
                        if len(events) == stop_after:
                            break
                    found.append(collect(answer, events))
        return found

    async def asynchronous(url, times, stop_after, options):
        found = []
        async with library.AsyncClient(trust_env=False) as client:
            for _ in range(times):
                async with astream(client, url, {}, **options) as answer:
                    events = []
                    async for event in answer:
                        events.append(event)
                        if len(events) == stop_after:
                            break
                    found.append(collect(answer, events))
        return found

    def fetch(url, times=1, stop_after=None, **options):
        options = {"retries": 0, "first_token": 5.0, "idle": 5.0, "clock": Hasty()} | options
        if request.param.startswith("async"):
            return asyncio.run(asynchronous(url, times, stop_after, options))
        return sync(url, times, stop_after, options)

    return fetch


with_httpx2 = pytest.mark.parametrize("fetch", ["sync", "async", "sync httpx2", "async httpx2"], indirect=True)


def whole(line):
    line.head()
    line.chunk(*ANSWER)
    line.last()
    return True


@with_httpx2
def test_socket_answer_and_reuse(fetch):
    with server(whole, whole, whole) as running:
        found = fetch(running.url, times=3)
    assert [each.events for each in found] == [ANSWER_EVENTS] * 3
    assert running.connections == 1


def test_socket_late_usage_and_reuse(fetch):
    def late(line):
        line.head()
        line.chunk(HI, STOP, DONE)
        time.sleep(0.05)
        line.chunk(event(choices=[], usage={"total_tokens": 3}))
        line.last()
        return True

    with server(late, whole) as running:
        first, second = fetch(running.url, times=2)
    assert first.events == [Text("Hi"), Ended("stop", {"total_tokens": 3})]
    assert (second.events, running.connections) == (ANSWER_EVENTS, 1)


@with_httpx2
def test_socket_never_ends(fetch, monkeypatch):
    monkeypatch.setattr(attempt_module, "TAIL_SECONDS", 0.2)

    def hang(line):
        line.head()
        line.chunk(*ANSWER)
        line.trickle(KEEP_ALIVE)

    def silent(line):
        line.head()
        line.chunk(*ANSWER)
        line.wait_gone()

    for play in (hang, silent):
        with server(play) as running:
            [found] = fetch(running.url)
        assert (found.events, found.answer.error) == (ANSWER_EVENTS, None)


def first_token_faults():
    def silent(line):
        line.wait_gone()

    def head_only(line):
        line.head()
        line.wait_gone()

    def keep_alives(line):
        line.head()
        line.trickle(KEEP_ALIVE)

    def empty_deltas(line):
        line.head()
        line.trickle(ROLE)

    def one_keep_alive(line):
        line.head()
        time.sleep(0.1)
        line.chunk(KEEP_ALIVE)
        line.wait_gone()

    def until_close(line):  # the body ends with the connection: a shut down socket looks like a good end
        line.head(extra="Connection: close\r\n")
        line.send(KEEP_ALIVE)
        line.wait_gone()

    return [silent, head_only, keep_alives, empty_deltas, one_keep_alive, until_close]


@pytest.mark.parametrize("play", first_token_faults())
def test_socket_first_token(fetch, play):
    began = time.monotonic()
    with server(play, whole) as running:
        [found] = fetch(running.url, first_token=0.25, retries=1)
    assert (found.events, found.answer.attempts) == (ANSWER_EVENTS, 2)
    assert time.monotonic() - began < LIMIT / 2
    with server(play) as running, pytest.raises(StreamTimeoutError) as caught:
        fetch(running.url, first_token=0.25)
    assert (caught.value.phase, caught.value.seconds) == ("first_token", 0.25)


@with_httpx2
@pytest.mark.parametrize("trickle", [False, True])
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("first_token", [0.4, 5.0])  # below idle, the client's own limit for a read takes a part
def test_socket_idle(fetch, trickle, chunked, first_token):
    def play(line):
        if chunked:
            line.head()
            line.chunk(*CALL[:3])
            (line.trickle(KEEP_ALIVE) if trickle else line.wait_gone())
        else:
            line.head(extra="Connection: close\r\n")
            line.send(b"".join(CALL[:3]))
            line.wait_gone()

    with server(play) as running:
        [found] = fetch(running.url, idle=0.4, first_token=first_token)
    assert isinstance(found.answer.error, StreamTimeoutError)
    assert (found.answer.error.phase, found.answer.error.seconds) == ("idle", 0.4)
    assert [type(each) for each in found.events[-2:]] == [ToolCallFailed, Ended]


def test_socket_long_thoughts(fetch):
    """Longer than the limit of the client for a read, which is 5 s by default, and longer than first_token."""

    def play(line):
        line.head()
        line.chunk(HI)
        time.sleep(0.6)
        line.chunk(*ANSWER[2:])
        line.last()
        return True

    with server(play) as running:
        [found] = fetch(running.url, first_token=0.3, idle=5.0)
    assert found.events == ANSWER_EVENTS


@with_httpx2
def test_socket_reset(fetch):
    def inside_a_chunk(line):
        line.head()
        line.chunk(*CALL[:3])
        time.sleep(0.1)  # so that what was sent is read before the reset, which would discard it
        line.send(b"400\r\ndata: {")
        time.sleep(0.1)
        line.reset()

    def close(line):
        line.head()
        line.chunk(*CALL[:3])

    for play in (inside_a_chunk, close):
        with server(play) as running:
            [found] = fetch(running.url)
        assert isinstance(found.answer.error, StreamInterruptedError)
        assert ArgumentDelta(0, ("a",), "x") in found.events
        assert [type(each) for each in found.events[-2:]] == [ToolCallFailed, Ended]


@with_httpx2
def test_socket_before_the_response(fetch):
    def reset(line):
        line.reset()

    def close(line):
        line.send(b"")

    def half_a_head(line):
        line.send(b"HTTP/1.1 200 OK\r\nContent-")

    for play in (reset, close, half_a_head):
        with server(play, whole) as running:
            [found] = fetch(running.url, retries=1)
        assert (found.events, found.answer.attempts) == (ANSWER_EVENTS, 2)
        with server(play) as running, pytest.raises(ConnectError, match=r"127\.0\.0\.1"):
            fetch(running.url)


def test_socket_nobody_listens(fetch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectError, match=r"127\.0\.0\.1"):
        fetch(f"http://127.0.0.1:{port}/chat/completions?key=secret")


def test_socket_idle_connection_was_closed(fetch):
    """The server drops the connection that the pool kept: that is no failed try."""

    def then_close(line):
        whole(line)

    with server(then_close, whole) as running:
        assert [each.events for each in fetch(running.url, times=2, retries=1)] == [ANSWER_EVENTS] * 2


@with_httpx2
def test_socket_the_caller_stops(fetch):
    gone = threading.Event()

    def play(line):
        line.head()
        line.chunk(HI)
        line.wait_gone()
        gone.set()

    with server(play, play) as running:
        first, second = fetch(running.url, times=2, stop_after=1)
        assert gone.wait(LIMIT)
    assert (first.events, second.events) == ([Text("Hi")], [Text("Hi")])
    assert running.connections == 2


def test_socket_error_body_that_never_ends(fetch, monkeypatch):
    monkeypatch.setattr(attempt_module, "REFUSED_SECONDS", 0.2)

    def play(line):
        line.head(status=400, kind="application/json")
        line.chunk(b'{"detail": "no"}')
        line.wait_gone()

    with server(play) as running, pytest.raises(ResponseError, match="no"):
        fetch(running.url)


def test_socket_cancelled_task():
    gone = threading.Event()

    def play(line):
        line.head()
        line.chunk(HI)
        line.wait_gone()
        gone.set()

    async def main(url):
        seen = asyncio.Event()

        async def consume(client):
            async with astream(client, url, {}) as answer:
                async for _ in answer:
                    seen.set()

        async with httpx.AsyncClient(trust_env=False) as client:
            task = asyncio.create_task(consume(client))
            await asyncio.wait_for(seen.wait(), LIMIT)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(gone.wait, LIMIT)  # before the client is closed

    with server(play) as running, warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main(running.url), debug=True)
        gc.collect()


def test_socket_cancelled_while_it_waits_for_the_first_token():
    def play(line):
        line.head()
        line.wait_gone()

    async def main(url):
        async with httpx.AsyncClient(trust_env=False) as client:
            with anyio.move_on_after(0.1) as scope:
                async with astream(client, url, {}):
                    pytest.fail("there was no token")
            assert scope.cancelled_caught

    with server(play) as running:
        asyncio.run(main(running.url))


def test_socket_many_at_once():
    """Each stream has its own deadline."""

    def silent(line):
        line.head()
        line.chunk(HI)
        line.wait_gone()

    async def main(url):
        async with httpx.AsyncClient(trust_env=False) as client:

            async def one(idle):
                async with astream(client, url, {}, idle=idle) as answer:
                    return [found async for found in answer], answer.error

            return await asyncio.gather(*[one(0.1 * number) for number in range(1, 6)])

    with server(*[silent] * 5) as running:
        found = asyncio.run(main(running.url))
    assert sorted(round(error.seconds, 1) for _, error in found) == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert all(events[0] == Text("Hi") and isinstance(events[-1], Ended) for events, _ in found)


@pytest.mark.parametrize("first", [True, False])
def test_socket_closed_by_another_thread(first):
    """Also while the read blocks."""

    def play(line):
        line.head()
        if not first:
            line.chunk(HI)
        line.wait_gone()

    with server(play) as running, httpx.Client(trust_env=False) as client:
        answer = stream(client, running.url, {}, retries=0)
        timer = threading.Timer(0.2, answer.close)
        timer.start()
        with answer as events:
            found = list(events)
        timer.join()
    assert found == ([] if first else [Text("Hi")])
    assert answer.error is None


def never(line):
    """No response at all."""
    line.wait_gone()


def late(line):
    """A response, once nobody waits for it."""
    time.sleep(0.6)
    line.head()
    line.wait_gone()


def busy(line):
    line.head(503, extra="Content-Length: 0\r\n")
    return True


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("fault", ["no response", "no response on a used connection", "a pause"])
def test_socket_closed_while_it_is_entered(fault, is_async):
    """Before the response, and between two tries: at once, and without an error."""
    plays = {
        "no response": [never],
        "no response on a used connection": [whole, late],
        "a pause": [busy, whole],
    }[fault]
    limits: Any = {"first_token": LIMIT * 3, "max_wait": LIMIT * 3}

    def blocking(url):
        with httpx.Client(trust_env=False) as client:
            if "used" in fault:
                with stream(client, url, {}) as events:
                    list(events)
            answer = stream(client, url, {}, clock=Patient(), **limits)
            timer = threading.Timer(0.2, answer.close)
            timer.start()
            with answer as events:
                found = list(events)
            timer.join()
            return found, answer

    async def asynchronous(url):
        async with httpx.AsyncClient(trust_env=False) as client:
            if "used" in fault:
                async with astream(client, url, {}) as events:
                    [each async for each in events]
            answer = astream(client, url, {}, clock=Patient(), **limits)

            async def close():
                await anyio.sleep(0.2)
                await answer.aclose()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(close)
                async with answer as events:
                    found = [each async for each in events]
            return found, answer

    with server(*plays) as running:
        start = time.monotonic()
        found, answer = anyio.run(asynchronous, running.url) if is_async else blocking(running.url)
        assert time.monotonic() - start < LIMIT
        assert (found, answer.error, answer.attempts) == ([], None, 1)


def test_socket_no_thread_is_left():
    with server(whole, whole) as running, httpx.Client(trust_env=False) as client:
        for _ in range(2):
            with stream(client, running.url, {}) as events:
                assert join(list(events)) == ANSWER_EVENTS
        end = time.monotonic() + LIMIT
        while any(each.name == "streamparse-watchdog" for each in threading.enumerate()):
            assert time.monotonic() < end
            time.sleep(0.01)


def test_socket_the_caller_is_slow():
    """What the caller does between two events is no silence of the server."""

    def play(line):
        line.head()
        line.chunk(*ANSWER[:2])
        time.sleep(0.5)
        line.chunk(*ANSWER[2:])
        line.last()
        return True

    with (
        server(play) as running,
        httpx.Client(trust_env=False) as client,
        stream(client, running.url, {}, idle=0.2) as events,
    ):
        found = [next(events)]
        time.sleep(0.6)
        found += list(events)
    assert join(found) == ANSWER_EVENTS


@pytest.mark.parametrize("first", [True, False])
def test_socket_closed_by_another_task(first):
    def play(line):
        line.head()
        if not first:
            line.chunk(HI)
        line.wait_gone()

    async def main(url):
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = astream(client, url, {}, retries=0)

            async def close():
                await asyncio.sleep(0.2)
                await answer.aclose()

            task = asyncio.create_task(close())
            async with answer as events:
                found = [each async for each in events]
            await task
            return found, answer.error

    with server(play) as running:
        found, error = asyncio.run(asyncio.wait_for(main(running.url), LIMIT))
    assert found == ([] if first else [Text("Hi")])
    assert error is None
