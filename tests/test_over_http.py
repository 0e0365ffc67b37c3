"""Every fault that the local server knows, over real HTTP, on every wire, with a blocking and an asynchronous client.

What was decoded before a fault is what the whole answer begins with; what runs when it comes fails; the end is in the
last event, or, where nothing had come yet, in an exception. Each wait has a limit of its own (``first_token``,
``idle``), and pytest's limit stands behind them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from streamparse import (
    ArgumentDelta,
    Deviated,
    DeviationCode,
    Ended,
    ErrorCode,
    Event,
    Failed,
    Reasoning,
    ResponseError,
    StreamInterruptedError,
    StreamTimeoutError,
    Text,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
    TransportError,
    astream,
    render_answer,
    stream,
)
from streamparse.commands.cutting import splitter
from streamparse.decoding.grammar import load
from streamparse.server import Recording, Server
from streamparse.transport.recording import Header, Piece
from tests.chunks import join

TOOLS = [
    {
        "name": "write_file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
    }
]
TEXT = render_answer(
    reasoning="Zwei Dateien: 中文 und 😀.\n",
    text="Ich schreibe beide.",
    calls=[
        ("write_file", {"path": "größe.md", "content": "Größe: 3 € 😀\n" * 4}),
        ("write_file", {"path": "b.md", "content": "Zweite Datei, 中文.\n" * 4}),
    ],
    opened=True,
    tools=TOOLS,
)
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "completions": "/v1/completions"}
QUICK: dict[str, Any] = {"first_token": 10.0, "idle": 10.0, "retries": 0}
"""Limits that are never reached: a hang would be told by them."""


class Result(NamedTuple):
    """What a caller saw: the events, and the exception, on entering or as ``error`` in the end."""

    events: list[Event]
    raised: TransportError | None
    error: TransportError | None
    attempts: int


def recording() -> Recording:
    cut = splitter("token", load("minimax_m2"))
    pieces = [Piece(0.001 * number, piece) for number, piece in enumerate(cut(TEXT))]
    header = Header(tools=TOOLS, start="reasoning", finish_reason="tool_calls")
    return Recording("answer", header, pieces)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server([recording()], speed=float("inf"), repeat=True) as running:
        yield running


def options(path: str, words: dict[str, Any]) -> dict[str, Any]:
    raw = {"start": "reasoning"} if path == "completions" else {}
    return {"tools": TOOLS, **QUICK, **raw, **words}


def request(path: str) -> dict[str, Any]:
    return {"model": "answer", "stream": True, **({"prompt": "x"} if path == "completions" else {"messages": []})}


def blocking(server: Server, path: str, fault: str, **words: Any) -> Result:
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        headers = {"x-streamparse-fault": fault} if fault else {}
        answer = stream(client, PATHS[path], request(path), headers=headers, **options(path, words))
        try:
            with answer as events:
                return Result(list(events), None, answer.error, answer.attempts)
        except TransportError as error:
            return Result([], error, answer.error, answer.attempts)


def asynchronous(server: Server, path: str, fault: str, **words: Any) -> Result:
    async def run() -> Result:
        async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
            headers = {"x-streamparse-fault": fault} if fault else {}
            answer = astream(client, PATHS[path], request(path), headers=headers, **options(path, words))
            try:
                async with answer as events:
                    return Result([event async for event in events], None, answer.error, answer.attempts)
            except TransportError as error:
                return Result([], error, answer.error, answer.attempts)

    return asyncio.run(run())


Run = Callable[..., Result]
BOTH = pytest.mark.parametrize("run", [blocking, asynchronous])
EACH = pytest.mark.parametrize("path", PATHS)


def told(events: list[Event]) -> list[Event]:
    """Without ids and layouts of JSON, which are each wire's own."""
    return [event for event in join(events) if not isinstance(event, Deviated)]


def prose(events: list[Event], kind: type[Text | Reasoning]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


def deltas(events: list[Event]) -> dict[tuple[Any, ...], str]:
    found: dict[tuple[Any, ...], str] = {}
    for event in events:
        if isinstance(event, ArgumentDelta):
            key = (event.index, *event.path)
            found[key] = found.get(key, "") + event.text
    return found


def check_beginning(found: list[Event], whole: list[Event]) -> None:
    """Nothing that was decoded before the fault is lost or different: it is what the whole answer begins with."""
    assert prose(whole, Text).startswith(prose(found, Text))
    assert prose(whole, Reasoning).startswith(prose(found, Reasoning))
    final = deltas(whole)
    assert all(final[key].startswith(text) for key, text in deltas(found).items())
    sealed = [event.call.arguments for event in found if isinstance(event, ToolCallFinished)]
    assert sealed == [event.call.arguments for event in whole if isinstance(event, ToolCallFinished)][: len(sealed)]
    started = [event.index for event in found if isinstance(event, ToolCallStarted)]
    ended = [event.index for event in found if isinstance(event, ToolCallFinished | ToolCallFailed)]
    assert sorted(started) == sorted(ended)
    assert isinstance(found[-1], Ended)


def check_interrupted(result: Result, whole: list[Event], error: type[TransportError]) -> None:
    assert result.raised is None
    assert isinstance(result.error, error)
    check_beginning(result.events, whole)
    last = result.events[-1]
    assert isinstance(last, Ended)
    assert (last.finish_reason, last.clean) == ("error", False)
    failed = [event for event in result.events if isinstance(event, ToolCallFailed)]
    assert {event.error.code for event in failed} <= {ErrorCode.STREAM_INTERRUPTED}
    codes = {event.error.code for event in result.events if isinstance(event, Failed)}
    assert failed or ErrorCode.STREAM_INTERRUPTED in codes or ErrorCode.UNCLOSED_REASONING in codes


@pytest.fixture(scope="module")
def whole(server: Server) -> dict[str, list[Event]]:
    """The answer without a fault, on each wire."""
    found = {path: blocking(server, path, "") for path in PATHS}
    for result in found.values():
        calls = [event.call for event in result.events if isinstance(event, ToolCallFinished)]
        assert [call.arguments["path"] for call in calls] == ["größe.md", "b.md"]
        assert prose(result.events, Text) == "Ich schreibe beide."
        assert prose(result.events, Reasoning) == "Zwei Dateien: 中文 und 😀.\n"
        assert (result.error, result.attempts) == (None, 1)
        assert result.events[-1].clean  # type: ignore[union-attr]
    return {path: result.events for path, result in found.items()}


# --- what must make no difference ------------------------------------------------------------------------------------

HARMLESS = [
    "split-utf8",
    "bom",
    "crlf",
    "cr",
    "drip",
    "keepalive=0.001",
    "slow-start=0.05",
    "no-done",
    "content-type=",
    "content-type=text/plain",
    "content-type=Text/Event-Stream; charset=latin-1",
    "bom,crlf,split-utf8,keepalive=0.001",
]


@BOTH
@EACH
@pytest.mark.parametrize("fault", HARMLESS)
def test_harmless(server, whole, run: Run, path, fault):
    result = run(server, path, fault)
    assert told(result.events) == told(whole[path])
    assert (result.error, result.raised) == (None, None)


@BOTH
@EACH
def test_without_the_last_blank_line(server, whole, run: Run, path):
    result = run(server, path, "no-blank")
    assert told(result.events) == told(whole[path])
    codes = [event.deviation.code for event in result.events if isinstance(event, Deviated)]
    assert codes.count(DeviationCode.UNTERMINATED_EVENT) == 1


# --- what breaks -----------------------------------------------------------------------------------------------------


def places(server: Server, path: str) -> list[int]:
    """Places in the body: inside the first event that says something, in the middle, shortly before the last event."""
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        size = len(client.post(PATHS[path], json=request(path)).content)
    return [size // 3, size // 2, size - size // 4]


@BOTH
@EACH
@pytest.mark.parametrize("third", [0, 1, 2])
def test_a_connection_that_breaks(server, whole, run: Run, path, third):
    result = run(server, path, f"cut={places(server, path)[third]}")
    check_interrupted(result, whole[path], StreamInterruptedError)


@BOTH
@EACH
@pytest.mark.parametrize("third", [0, 1, 2])
def test_a_body_that_ends_too_soon(server, whole, run: Run, path, third):
    """HTTP says that it is whole. The event stream, or the answer, does not."""
    result = run(server, path, f"close={places(server, path)[third]}")
    assert isinstance(result.error, StreamInterruptedError)
    check_beginning(result.events, whole[path])
    assert not result.events[-1].clean  # type: ignore[union-attr]


@BOTH
@EACH
def test_silence_in_the_middle(server, whole, run: Run, path):
    result = run(server, path, f"stall={places(server, path)[1]}", idle=0.3)
    check_interrupted(result, whole[path], StreamTimeoutError)
    assert isinstance(result.error, StreamTimeoutError)
    assert result.error.phase == "idle"


@BOTH
@EACH
def test_keep_alives_are_no_tokens(server, whole, run: Run, path):
    result = run(server, path, f"stall={places(server, path)[1]},keepalive=0.02", idle=0.3)
    check_interrupted(result, whole[path], StreamTimeoutError)


@BOTH
@EACH
def test_an_error_inside_the_stream(server, whole, run: Run, path):
    result = run(server, path, f"error-event={places(server, path)[1]}")
    check_beginning(result.events, whole[path])
    codes = {event.error.code for event in result.events if isinstance(event, Failed)}
    assert ErrorCode.PROVIDER_ERROR in codes
    assert not result.events[-1].clean  # type: ignore[union-attr]
    assert result.raised is None


# --- before the first event ------------------------------------------------------------------------------------------


@BOTH
@EACH
@pytest.mark.parametrize("fault", ["hang", "stall=0", "stall=0,keepalive=0.02", "slow-start=30"])
def test_no_first_token(server, run: Run, path, fault):
    result = run(server, path, fault, first_token=0.25, retries=1)
    assert isinstance(result.raised, StreamTimeoutError)
    assert (result.raised.phase, result.raised.retryable, result.attempts) == ("first_token", True, 2)


@BOTH
@EACH
def test_a_connection_that_breaks_at_once(server, run: Run, path):
    result = run(server, path, "cut=0")
    assert isinstance(result.raised, StreamInterruptedError)
    assert result.events == []


@BOTH
@EACH
def test_refused_first_and_then_not(whole, run: Run, path):
    with Server([recording()], speed=float("inf")) as fresh:  # it counts how often it has refused
        result = run(fresh, path, "first=429:0,times=2", retries=2)
    assert told(result.events) == told(whole[path])
    assert result.attempts == 3


@BOTH
@EACH
@pytest.mark.parametrize(
    ("fault", "status", "retryable"),
    [("status=401", 401, False), ("status=400", 400, False), ("status=503:0", 503, True), ("status=529", 529, True)],
)
def test_refused(server, run: Run, path, fault, status, retryable):
    result = run(server, path, fault)
    assert isinstance(result.raised, ResponseError)
    assert (result.raised.status, result.raised.retryable, result.attempts) == (status, retryable, 1)
    assert result.raised.body


@BOTH
@EACH
def test_an_error_with_a_good_status(server, run: Run, path):
    result = run(server, path, "json-error")
    assert isinstance(result.raised, ResponseError)
    assert (result.raised.status, result.raised.code, result.raised.retryable) == (200, "1002", True)


@BOTH
@EACH
def test_a_page_instead_of_an_answer(server, run: Run, path):
    result = run(server, path, "content-type=text/html")
    assert isinstance(result.raised, ResponseError)
    assert "text/html" in str(result.raised)


# --- the caller stops ------------------------------------------------------------------------------------------------


@EACH
def test_who_stops_cancels_the_generation(server, path):
    with (
        Server([Recording("slow", Header(tools=TOOLS), [Piece(0.0, "One "), Piece(60.0, "two.")])]) as slow,
        httpx.Client(base_url=slow.url, trust_env=False) as client,
    ):
        with stream(client, PATHS[path], {"model": "slow", "stream": True}, **QUICK) as events:
            assert next(events) == Text("One ")
        for _ in range(200):
            state = slow.requests[-1]["state"]
            if state == "gone":
                break
            client.get("/health")
        assert state == "gone"
