"""Provider streams: bytes -> payloads -> chunks -> events, in process; growth; what SDKs take for the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import httpx2
import msgspec
import openai
import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk

from benchmarks.measure import Measure, Work
from streamparse.decoding.chat import ChatDecoder
from streamparse.transport.body import Body
from streamparse.transport.framing import FramingKind
from streamparse.transport.sse import EventStream
from streamparse.transport.wires import Options, Wire

EVENTS = 10_000
NETWORK = 16_384
"""Bytes that a client gets from the network at most at once."""

PROSE = "The file has two parts, and the second one is what the test looks at. "


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """A chunk as large providers send it: about 350 bytes."""
    return {
        "id": "chatcmpl-7f3c2a9e5d1b4c8fa6e0",
        "object": "chat.completion.chunk",
        "created": 1764500000,
        "model": "gpt-x-mini-2026-07-18",
        "service_tier": "default",
        "system_fingerprint": "fp_5d1b4c8fa6",
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
        "usage": None,
        "obfuscation": "xKq3ZpT8",
    }


def call_delta(arguments: str, **words: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "function": {"arguments": arguments}, **words}]}


@cache
def deltas(count: int) -> list[dict[str, Any]]:
    """Half text, half the arguments of one call, in tokens of 4 characters."""
    text = (PROSE * (count // 17 + 1))[: 2 * count]
    arguments = json.dumps({"path": "notes.txt", "content": text})
    found: list[dict[str, Any]] = [{"content": text[at : at + 4]} for at in range(0, len(text), 4)]
    opening = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "write_file", "arguments": ""}}
    found.append({"tool_calls": [opening]})
    found += [call_delta(arguments[at : at + 4]) for at in range(0, len(arguments), 4)]
    return found


@cache
def events(count: int = EVENTS) -> list[bytes]:
    """The event stream, one item per event."""
    chunks = [chunk(delta) for delta in deltas(count)] + [chunk({}, "tool_calls")]
    return [*(f"data: {json.dumps(each)}\n\n".encode() for each in chunks), b"data: [DONE]\n\n"]


def network(pieces: Sequence[bytes]) -> list[bytes]:
    """The same bytes as a fast network delivers them."""
    whole = b"".join(pieces)
    return [whole[at : at + NETWORK] for at in range(0, len(whole), NETWORK)]


# What does it ---------------------------------------------------------------------------------------------------------


def floor(whole: bytes) -> None:
    """The least: split at blank lines, decode the JSON."""
    decode = msgspec.json.decode
    for block in whole.split(b"\n\n"):
        if block[:6] == b"data: " and block != b"data: [DONE]":
            decode(block[6:])


def decode_all(pieces: Sequence[bytes]) -> None:
    body = Body(Options().decoder(Wire.CHAT), FramingKind.EVENT_STREAM)
    for piece in pieces:
        body.feed(piece)
    last = body.close()[-1]
    assert last.clean  # type: ignore[union-attr]


def split_all(pieces: Sequence[bytes]) -> None:
    """Our event stream alone, without decoding what is in the events."""
    stream = EventStream()
    for piece in pieces:
        stream.feed(piece)
    stream.close()


def chunks_only(payloads: Sequence[bytes]) -> None:
    """Our decoder alone, on payloads."""
    decoder = ChatDecoder()
    for payload in payloads:
        decoder.feed(payload)
    decoder.close()


def sdk(pieces: Sequence[bytes]) -> None:
    """The openai SDK over the same bytes: its event stream and its models, no accumulation."""

    class Bytes(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield from pieces

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Bytes())

    with httpx2.Client(transport=httpx2.MockTransport(answer)) as http:
        client = openai.OpenAI(api_key="none", base_url="http://localhost/v1", http_client=http)
        for _ in client.chat.completions.create(model="m", messages=[], stream=True):
            pass


# Per event ------------------------------------------------------------------------------------------------------------


def test_per_event(measure: Measure) -> None:
    pieces = events(500 if measure.quick else EVENTS)
    whole, arriving = b"".join(pieces), network(pieces)
    payloads = [piece[6:-2] for piece in pieces]
    works: dict[str, Work] = {
        "floor": lambda: floor(whole),
        "one read per event": lambda: decode_all(pieces),
        "16 KiB reads": lambda: decode_all(arriving),
        "its event stream alone": lambda: split_all(arriving),
        "its decoder alone": lambda: chunks_only(payloads),
    }
    times = measure.best(list(works.values()), rounds=15)
    count, least = len(pieces), times[0]
    size = len(whole) / count
    sdk_time = measure.best([lambda: sdk(arriving)], rounds=2)[0]
    for (name, _), spent in zip(list(works.items())[1:], times[1:], strict=True):
        wanted = "6 times, 5 µs" if "read" in name else ""
        tell(measure, f"{count:,} events of {size:.0f} bytes, {name}", spent, least, count, wanted)
    tell(measure, "the openai SDK on the same bytes, 16 KiB reads", sdk_time, least, count, "")


def tell(measure: Measure, name: str, spent: float, least: float, count: int, wanted: str) -> None:
    each, floor_each = spent / count * 1e6, least / count * 1e6
    detail = f"{each:.2f} µs per event, floor {floor_each:.2f} µs"
    measure.table.add(name, f"{spent / least:.1f} times the floor", detail, wanted)


# Growth ---------------------------------------------------------------------------------------------------------------


def long_line(size: int) -> Work:
    """One event with a line of ``size`` bytes, as it comes from the network."""
    line = f"data: {json.dumps(chunk({'content': 'x' * size}))}\n\n".encode()
    pieces = [line[at : at + 1400] for at in range(0, len(line), 1400)]
    return partial(_decode_unfinished, pieces)


def _decode_unfinished(pieces: Sequence[bytes]) -> None:
    body = Body(Options().decoder(Wire.CHAT), FramingKind.EVENT_STREAM)
    for piece in pieces:
        body.feed(piece)
    body.close()


def fragments(size: int) -> list[dict[str, Any]]:
    """Arguments of ``size`` characters in fragments of 3, as dicts."""
    text = (PROSE * (size // len(PROSE) + 1))[:size]
    arguments = json.dumps({"content": text})
    opening = {"index": 0, "id": "c", "function": {"name": "write_file", "arguments": ""}}
    cut = [call_delta(arguments[at : at + 3]) for at in range(0, len(arguments), 3)]
    deltas = [{"tool_calls": [opening]}, *cut]
    return [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]


def ours(size: int) -> Work:
    given = fragments(size)

    def run() -> None:
        decoder = ChatDecoder()
        for each in given:
            decoder.feed(each)
        decoder.close("tool_calls")

    return run


def sdk_accumulates(size: int) -> Work:
    """What the openai SDK's stream helper does with the same fragments: it keeps a snapshot of the completion."""
    from openai.lib.streaming.chat import ChatCompletionStreamState
    from openai.types.chat import ChatCompletionChunk

    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    made = [ChatCompletionChunk.model_validate({**head, **each}) for each in fragments(size)]

    def run() -> None:
        state = ChatCompletionStreamState()
        for each in made:
            state.handle_chunk(each)

    return run


def langchain_accumulates(size: int) -> Work:
    """What langchain does: message chunks added up, whose arguments it parses again at each step."""
    calls = [each["choices"][0]["delta"]["tool_calls"][0] for each in fragments(size)]
    made = [_message_chunk(call) for call in calls]

    def run() -> None:
        total = made[0]
        for each in made[1:]:
            total = total + each

    return run


def _message_chunk(call: dict[str, Any]) -> AIMessageChunk:
    function = call["function"]
    part = tool_call_chunk(name=function.get("name"), args=function["arguments"], id=call.get("id"), index=0)
    return AIMessageChunk(content="", tool_call_chunks=[part])


def test_a_long_line(measure: Measure) -> None:
    measure.growth("one line of n bytes in 1,400-byte reads", long_line, [100_000, 1_000_000, 10_000_000], "linear")


def test_arguments_in_fragments(measure: Measure) -> None:
    measure.growth("arguments of n characters, 3-character fragments", ours, [1_000, 10_000, 100_000], "linear")


@pytest.mark.parametrize(
    ("name", "work", "sizes"),
    [
        ("openai SDK", sdk_accumulates, [1_000, 10_000, 100_000]),
        ("langchain-core", langchain_accumulates, [1_000, 3_000, 10_000]),  # 100,000 would take it minutes
    ],
)
def test_arguments_in_fragments_elsewhere(
    measure: Measure, name: str, work: Callable[[int], Work], sizes: Sequence[int]
) -> None:
    measure.growth(f"{name}, the same fragments", work, sizes, "")
