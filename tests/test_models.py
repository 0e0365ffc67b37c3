"""Models: scripted, recorded and live ones keep one contract, and decode as the decoders do."""

from __future__ import annotations

import json
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamparse
from streamparse import Ended, Reasoning, Text, ToolCallFailed, ToolCallFinished
from streamparse.agent.models import HttpModel, RecordedModel, Script, ScriptedModel
from streamparse.agent.recut import len_of, recut
from streamparse.errors import ConnectError, ResponseError, StreamInterruptedError, TransportError, UsageError
from streamparse.transport.recording import Header, Piece, write
from streamparse.transport.wires import Options, Wire
from tests.chunks import join
from tests.clocks import BACKENDS, FakeClock, Hasty, run

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "put",
            "parameters": {"type": "object", "properties": {"text": {"type": "string"}, "times": {"type": "integer"}}},
        },
    }
]
NATIVE = streamparse.render_calls([{"name": "put", "arguments": {"text": "a < b", "times": 3}}])
ARGUMENTS = '{"text": "a < b", "times": 3}'


def chat(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


CHUNKS = [
    chat(role="assistant", content=""),
    chat(reasoning_content="Let me put it."),
    chat(content="I put "),
    chat(content="it there."),
    chat(
        tool_calls=[{"index": 0, "id": "c1", "type": "function", "function": {"name": "put", "arguments": ARGUMENTS}}]
    ),
    {**chat("tool_calls"), "usage": {"total_tokens": 9}},
]
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"role": "assistant", "content": [], "model": "m"}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I put it there."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "c1", "name": "put"}},
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": ARGUMENTS},
    },
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
]
WIRES: dict[Wire, Any] = {Wire.TEXT: f"Well.\n{NATIVE}", Wire.CHAT: CHUNKS, Wire.MESSAGES: EVENTS}
REQUEST = {"messages": [{"role": "user", "content": "put it"}], "tools": TOOLS}


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


async def collect(answer: Any) -> list[Any]:
    """The events of an answer; no list is empty."""
    found: list[Any] = []
    async with answer:
        async for events in answer:
            assert events
            found += events
    return found


def asked(model: Any, backend: str = "asyncio", request: Any = REQUEST) -> list[Any]:
    return run(lambda: collect(model.stream(request)), backend)


def decoded(wire: Wire, content: Any, finish: str | None = None) -> list[Any]:
    decoder = Options(tools=TOOLS).decoder(wire)
    events = [event for piece in ([content] if isinstance(content, str) else content) for event in decoder.feed(piece)]
    return events + decoder.close(finish)


# Scripts


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("size", [None, 1, 2, 5, 1000])
def test_a_script_is_decoded_like_a_stream_however_it_is_cut(backend, wire, size):
    content = WIRES[wire]
    events = asked(ScriptedModel([content], size=size), backend)
    finish = "tool_calls" if wire is Wire.TEXT else None
    assert join(events) == join(decoded(wire, content, finish))
    (call,) = [event.call for event in events if isinstance(event, ToolCallFinished)]
    assert call.arguments == {"text": "a < b", "times": 3}
    assert events[-1].clean


def test_a_script_has_several_turns_and_remembers_what_it_was_asked(backend):
    def answer(request):
        return f"You said {request['messages'][-1]['content']}."

    model = ScriptedModel(["Hello.", answer, lambda request: Script(content="End.", finish="stop")], wire="messages")
    request = {"messages": [{"role": "user", "content": "this"}]}
    said = [asked(model, backend, request) for _ in range(2)]
    request["messages"].append({"role": "user", "content": "later"})
    said.append(asked(model, backend, request))
    assert [join(events)[0] for events in said] == [Text("Hello."), Text("You said this."), Text("End.")]
    assert [len(each["messages"]) for each in model.requests] == [1, 1, 2]
    assert model.wire is Wire.MESSAGES
    assert model.left == 0
    with pytest.raises(UsageError, match="3 turns, and one more"):
        model.stream(request)
    assert len(model.requests) == 3


@pytest.mark.parametrize("content", [3, [{"nothing": 1}], []])
def test_what_is_no_turn(content):
    with pytest.raises((UsageError, TypeError)):
        ScriptedModel([lambda request: content]).stream({})


@pytest.mark.parametrize("finish", ["length", None])
@pytest.mark.parametrize("wire", WIRES)
@given(st.data())
def test_a_script_that_is_cut_is_a_stream_that_was_cut(wire, finish, data):
    content = WIRES[wire]
    length = len(content) if isinstance(content, str) else sum(map(len_of, content))
    cut = data.draw(st.integers(0, length - 1), label="cut")
    size = data.draw(st.none() | st.integers(1, 9), label="size")
    events = asked(ScriptedModel([Script(content=content, size=size, cut=cut, finish=finish)]))
    assert isinstance(events[-1], Ended)
    assert events[-1].finish_reason == finish
    if isinstance(content, str):
        assert join(events) == join(decoded(wire, content[:cut], finish))
        return
    assert not [event for event in events if isinstance(event, ToolCallFinished)]
    whole = "".join(event.text for event in asked(ScriptedModel([content])) if isinstance(event, Text | Reasoning))
    said = "".join(event.text for event in events if isinstance(event, Text | Reasoning))
    assert said == whole[:cut]


def test_length_is_the_reason_of_a_cut(backend):
    events = asked(ScriptedModel([Script(content=CHUNKS, cut=40)]), backend)
    assert events[-1].finish_reason == "length"
    assert sum(isinstance(event, ToolCallFailed) for event in events) == 1


def test_a_cut_counts_characters():
    events = asked(ScriptedModel([Script(content=CHUNKS, cut=20)]))
    assert join(events)[:2] == [Reasoning("Let me put it."), Text("I put ")]
    assert "".join(event.text for event in events if isinstance(event, Text | Reasoning)) == "Let me put it.I put "


@pytest.mark.parametrize("wire", WIRES)
def test_a_fault_before_the_first_event_is_raised(backend, wire):
    error = ConnectError("no response from model.test")
    model = ScriptedModel([Script(content=WIRES[wire], fault=error), "Hello."])
    with pytest.raises(ConnectError):
        asked(model, backend)
    assert join(asked(model, backend))[0] == Text("Hello.")


@pytest.mark.parametrize("wire", WIRES)
@given(after=st.integers(1, 40))
def test_a_fault_after_events_closes_the_answer(wire, after):
    """E4: what was decoded is kept, running calls fail, and the answer says why."""

    async def main():
        answer = ScriptedModel(
            [Script(content=WIRES[wire], size=3, fault=StreamInterruptedError("broke"), fault_after=after)]
        ).stream(REQUEST)
        return await collect(answer), answer.error

    events, error = run(main)
    assert isinstance(error, StreamInterruptedError)
    assert isinstance(events[-1], Ended)
    if wire is not Wire.MESSAGES or after < 10:  # whose last word may have come by then
        assert not events[-1].clean
    plain = asked(ScriptedModel([Script(content=WIRES[wire], size=3)]))
    assert events[: min(after, len(plain) - 3)] == plain[: min(after, len(plain) - 3)]


def test_a_delay_is_waited_for_by_the_clock(backend):
    async def main():
        clock = Hasty()
        model = ScriptedModel([Script(content="abcdef", size=2, delay=1.5)], clock=clock)
        async with model.stream({}) as answer:
            return [clock.time - 1000.0 async for _ in answer]

    assert run(main, backend) == [1.5, 3.0, 4.5, 4.5]


def test_cancelling_a_model_that_says_nothing(backend):
    async def main():
        clock = FakeClock()
        model = ScriptedModel([Script(content="never", delay=10.0)], clock=clock)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def stop():
                    await anyio.wait_all_tasks_blocked()
                    scope.cancel()

                group.start_soon(stop)
                await collect(model.stream({}))
        return scope.cancelled_caught, clock.longest

    assert run(main, backend) == (True, 0.0)


def test_an_answer_that_is_left_gives_nothing_more(backend):
    async def main():
        answer = ScriptedModel(["abcdef"], size=1).stream({})
        async with answer:
            assert await anext(answer) == [Text("a")]
        with pytest.raises(StopAsyncIteration):
            await anext(answer)

    run(main, backend)


def test_options_go_to_the_decoder():
    model = ScriptedModel(["I think.\n</think>\n\nHello."], start="reasoning")
    assert join(asked(model))[:2] == [Reasoning("I think.\n"), Text("Hello.")]
    with pytest.raises(streamparse.UnknownDialectError):
        ScriptedModel(["Hello."], dialect="nonsense").stream({})


# Cutting chunks

USAGE: dict[str, Any] = {**chat("stop", content="the end", role="assistant"), "usage": {"total_tokens": 1}, "id": "x"}


@pytest.mark.parametrize("chunk", [*CHUNKS, *EVENTS, USAGE])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_recut_loses_nothing(chunk, size):
    pieces = recut(chunk, size)
    assert all(len_of(piece) <= size for piece in pieces)
    assert sum(map(len_of, pieces)) == len_of(chunk)
    wire = Wire.MESSAGES if "type" in chunk else Wire.CHAT
    assert join(decoded(wire, pieces, "stop")) == join(decoded(wire, [chunk], "stop"))


def test_recut_leaves_whole_what_it_does_not_know():
    unsure = chat(tool_calls=[{"id": "c", "function": {"name": "put", "arguments": ARGUMENTS}}])
    two = {"choices": [{"delta": {"content": "abc"}}, {"delta": {"content": "abc"}}]}
    parts = chat(content=[{"type": "text", "text": "abc"}])
    unknown: list[dict[str, Any]] = [unsure, two, parts, {"choices": []}, {}]
    for chunk in unknown:
        assert recut(chunk, 1) == [chunk]


# Recordings


def event_stream(chunks: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def recording(wire: Wire, *, broken: bool = False, **header: Any) -> str:
    content = WIRES[wire]
    body = content.encode() if isinstance(content, str) else event_stream(content)
    media_type = "text/plain" if wire is Wire.TEXT else "text/event-stream"
    size = len(body) // 4
    cuts = [body[at : at + size] for at in range(0, len(body), size)]
    pieces = [Piece.of(0.5 * number, cut) for number, cut in enumerate(cuts)]
    if broken:
        pieces = [*pieces[:2], Piece(2.0, broken=True)]
    words = {"request": REQUEST, "media_type": media_type, "finish_reason": "tool_calls"} | header
    return write(Header(wire=wire, **words), pieces)


@pytest.mark.parametrize("wire", WIRES)
def test_a_recording_of_any_wire_is_played(backend, wire, tmp_path):
    file = tmp_path / "one.jsonl"
    file.write_text(recording(wire), encoding="utf-8")
    model = RecordedModel([file, recording(wire)])
    assert model.wire is wire
    first, second = asked(model, backend), asked(model, backend)
    assert join(first) == join(second) == join(decoded(wire, WIRES[wire], "tool_calls"))
    assert model.requests == [REQUEST, REQUEST]
    with pytest.raises(UsageError, match="2 recordings, and one more"):
        model.stream(REQUEST)


def test_a_recording_without_tools_takes_those_of_the_request():
    plain = recording(Wire.TEXT, request=None)
    (call,) = [event.call for event in asked(RecordedModel([plain])) if isinstance(event, ToolCallFinished)]
    assert call.arguments == {"text": "a < b", "times": 3}
    (call,) = [event.call for event in asked(RecordedModel([plain]), request={}) if isinstance(event, ToolCallFinished)]
    assert call.arguments == {"text": "a < b", "times": "3"}


@pytest.mark.parametrize("wire", WIRES)
def test_a_recording_that_broke(wire):
    async def main():
        answer = RecordedModel([recording(wire, broken=True)]).stream(REQUEST)
        return await collect(answer), answer.error

    events, error = run(main)
    assert isinstance(error, StreamInterruptedError)
    assert not events[-1].clean


def test_a_recorded_error_is_raised(backend):
    page = write(Header(wire=Wire.CHAT, status=503, media_type="text/html"), [Piece(0.1, "<h1>busy</h1>")])
    with pytest.raises(ResponseError, match="busy") as caught:
        asked(RecordedModel([page]), backend)
    assert caught.value.status == 503


def test_the_pace_of_a_recording(backend):
    async def main():
        clock = Hasty()
        model = RecordedModel([recording(Wire.TEXT)], speed=2.0, clock=clock)
        await collect(model.stream(REQUEST))
        return clock.time

    pieces = -(-len(WIRES[Wire.TEXT]) // (len(WIRES[Wire.TEXT]) // 4))
    assert run(main, backend) == 1000.0 + (pieces - 1) * 0.5 / 2.0


def test_what_is_no_recording(tmp_path):
    (tmp_path / "x.jsonl").write_text("nonsense\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"x\.jsonl, line 1"):
        RecordedModel([tmp_path / "x.jsonl"])
    with pytest.raises(UsageError, match="cannot read"):
        RecordedModel([tmp_path / "nothing"])
    with pytest.raises(UsageError, match="speed"):
        RecordedModel([], speed=0)


# Live


def served(handler: Any, **options: Any) -> tuple[Any, list[httpx.Request]]:
    seen: list[httpx.Request] = []

    def handle(request):
        seen.append(request)
        return handler(request)

    client = httpx.AsyncClient(transport=httpx.MockTransport(handle))
    path = options.pop("path", "chat/completions")
    return HttpModel(client, f"http://model.test/v1/{path}", **options), seen


@pytest.mark.parametrize(("wire", "path"), [(Wire.CHAT, "chat/completions"), (Wire.MESSAGES, "messages")])
def test_a_live_model(backend, wire, path):
    def handler(request):
        return httpx.Response(200, content=event_stream(WIRES[wire]), headers={"content-type": "text/event-stream"})

    model, seen = served(
        handler, path=path, model="m2", sampling={"temperature": 0.5, "top_p": 0.9}, headers={"x-team": "blue"}
    )
    events = asked(model, backend, {**REQUEST, "temperature": 1.0})
    assert join(events) == join(decoded(wire, WIRES[wire]))
    assert model.wire is wire
    body = json.loads(seen[0].content)
    assert body.pop("max_tokens", None) == (16_384 if wire is Wire.MESSAGES else None)  # which that wire wants
    assert body == {"model": "m2", "temperature": 1.0, "top_p": 0.9, "stream": True, **REQUEST}
    assert seen[0].headers["x-team"] == "blue"


def test_a_live_model_that_refuses(backend):
    model, seen = served(lambda request: httpx.Response(401, json={"error": {"message": "no key"}}))
    with pytest.raises(ResponseError, match="no key"):
        asked(model, backend)
    assert len(seen) == 1


def test_a_live_model_that_breaks_off(backend):
    class Breaks(httpx.AsyncByteStream):
        async def __aiter__(self):
            yield event_stream(CHUNKS[:3]).removesuffix(b"data: [DONE]\n\n")
            raise httpx.ReadError("gone")

    headers = {"content-type": "text/event-stream"}
    model, _ = served(lambda request: httpx.Response(200, stream=Breaks(), headers=headers))

    async def main():
        answer = model.stream(REQUEST)
        return await collect(answer), answer.error

    events, error = run(main, backend)
    assert isinstance(error, TransportError)
    assert join(events)[:2] == [Reasoning("Let me put it."), Text("I put ")]
    assert not events[-1].clean


def test_b11_retries_before_the_first_token_belong_to_the_transport(backend):
    responses = [httpx.Response(503, json={"error": {"message": "busy"}}), None]

    def handler(request):
        return responses.pop(0) or httpx.Response(
            200, content=event_stream(CHUNKS), headers={"content-type": "text/event-stream"}
        )

    model, seen = served(handler, clock=Hasty())
    assert asked(model, backend)[-1].clean
    assert len(seen) == 2
