"""Event streams by rule S: cuts, ends, bounds, payloads, and what a response is.

The standard's algorithm is written down once more here (``by_the_book``), on the whole text and without a thought of
speed, and every stream of bytes has to come out as it says, in every cut.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
import tracemalloc
from collections.abc import Sequence
from typing import TypeAlias

import httpx
import httpx_sse
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamparse.errors import (
    ClosedError,
    EventTooLargeError,
    StreamInterruptedError,
    TransportError,
    UsageError,
)
from streamparse.limits import MAX_EVENT
from streamparse.transport.response import ResponseKind, check_response
from streamparse.transport.sse import (
    DONE,
    EventStream,
    SseEvent,
    aiter_events,
    iter_events,
    payloads,
)

BOM = b"\xef\xbb\xbf"


def read(
    *chunks: bytes, clean: bool = True, max_event: int = MAX_EVENT
) -> tuple[list[SseEvent], TransportError | None]:
    stream = EventStream(max_event=max_event)
    events = [event for chunk in chunks for event in stream.feed(chunk)]
    return events + stream.close(clean=clean), stream.error


def outcome(*chunks: bytes, clean: bool = True, max_event: int = MAX_EVENT) -> tuple[list[SseEvent], type | None]:
    """What must not depend on chunking. (The message does: it quotes what had arrived of a line too long.)"""
    events, error = read(*chunks, clean=clean, max_event=max_event)
    return events, None if error is None else type(error)


def data_of(*chunks: bytes) -> list[str]:
    return [event.data for event in read(*chunks)[0]]


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


# --- the standard once more, and streams to compare on ---------------------------------------------------------------


Fields: TypeAlias = tuple[str, str, str, int | None]


def by_the_book(body: bytes) -> list[Fields]:
    """Events by the standard's algorithm; what is not ended by a blank line is dropped."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    name, data, last_id = "", "", ""
    retry: int | None = None
    events: list[Fields] = []
    for line in re.split("\r\n|\r|\n", text)[:-1]:  # the last one was not ended
        field, _, value = line.partition(":")
        value = value[1:] if value[:1] == " " else value
        if not line:
            if data:
                events.append((name or "message", data[:-1], last_id, retry))
            name, data, retry = "", "", None
        elif field == "event":
            name = value
        elif field == "data":
            data += value + "\n"
        elif field == "id" and "\0" not in value:
            last_id = value
        elif field == "retry" and re.fullmatch("[0-9]+", value):
            retry = int(value)
    return events


def fields_of(event: SseEvent) -> Fields:
    return event.event, event.data, event.id, event.retry


PIECES = [
    *(b"\n", b"\n\n", b"\r", b"\r\n", b"\r\n\r\n", b"\r\r", b"\n\r"),
    *(b"data: ", b"data:", b"data", b"event: ", b"event:x", b"event", b"id: 7", b"id:", b"id", b"id: a\x00"),
    *(b"retry: 10", b"retry:+5", b"retry: 1_0", b"retry: \xd9\xa3", b"retry", b"retry:", b"retry: 5 ", b": ping", b":"),
    *(b'{"a": 1}', b'{"a":', b"1}", b"12", b"[DONE]", b"true", b'"x"', b" ", b"x", b"Data: 1", b" data: 1"),
    *(BOM, b"\xef", b"\xbb", "é豆🦀".encode(), b"\xf0\x9f", b"\x85", b"\x0b\x0c\x1c", "\u2028\u0085".encode(), b"\x00"),
]
EVENTS = [
    b"data: x\n\n",
    b"data: 1\r\n\r\n",
    b"event: e\ndata: y\n\n",
    b"id: 3\ndata: z\n\n",
    b": ping\n\n",
    b"data:\n\n",
]
bodies = st.builds(
    lambda mark, pieces: mark + b"".join(pieces),
    st.sampled_from([b"", b"", BOM, BOM + BOM]),
    st.lists(st.sampled_from(PIECES) | st.sampled_from(EVENTS) | st.binary(max_size=3), max_size=25),
)


@st.composite
def cut_bodies(draw) -> tuple[bytes, list[bytes]]:
    body = draw(bodies)
    places = sorted(draw(st.lists(st.integers(0, len(body)), max_size=8)))
    return body, [body[start:end] for start, end in zip([0, *places], [*places, len(body)], strict=True)]


# --- properties ------------------------------------------------------------------------------------------------------


@given(cut_bodies())
@example((b"data: a\r\n\r\n", [b"data: a\r", b"\n\r", b"", b"\n"]))
@example((b"\rdata: a\n\n", [b"", b"\r", b"data: a\n\n"]))
def test_events_are_those_of_the_standard_in_every_cut(body_and_chunks):
    body, chunks = body_and_chunks
    for pieces in ([body], chunks, bytewise(body)):
        events, _ = read(*pieces)
        assert [fields_of(event) for event in events if not event.unterminated] == by_the_book(body)


@given(cut_bodies(), st.booleans(), st.sampled_from([1, 2, 5, 9, 20, MAX_EVENT]))
def test_chunking_never_matters(body_and_chunks, clean, max_event):
    """Nor at the end, nor at a bound."""
    body, chunks = body_and_chunks
    whole = outcome(body, clean=clean, max_event=max_event)
    assert outcome(*chunks, clean=clean, max_event=max_event) == whole
    assert outcome(*bytewise(body), clean=clean, max_event=max_event) == whole


@given(cut_bodies())
def test_as_early_as_possible(body_and_chunks):
    """An event is out with the byte that ends its blank line, be it a CR whose LF may follow."""
    body, _ = body_and_chunks
    stream = EventStream()
    found: list[SseEvent] = []
    for at, byte in enumerate(bytewise(body), start=1):
        found += stream.feed(byte)
        assert len(found) == len(by_the_book(body[:at])), body[:at]


@given(st.lists(st.binary(max_size=30), max_size=10), st.booleans(), st.integers(1, 40))
def test_nothing_is_raised_on_any_bytes(chunks, clean, max_event):
    events, error = read(*chunks, clean=clean, max_event=max_event)
    for event in events:
        assert all(isinstance(payload, str) for payload in payloads(event))
    assert error is None or type(error) in (EventTooLargeError, StreamInterruptedError)
    start = b"".join(chunks)
    assert check_response(200, {}, start).kind in ResponseKind


one_line = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12)
names = one_line.map(lambda text: text or "message")
ids = one_line.filter(lambda text: "\0" not in text)
written_events = st.builds(
    SseEvent, names, st.lists(one_line, min_size=1, max_size=3).map("\n".join), ids, st.none() | st.integers(0, 10**9)
)


def write(events: Sequence[SseEvent], end: str, space: str) -> bytes:
    text = ""
    for event in events:
        fields = [("event", event.event), ("id", event.id), *(("data", line) for line in event.data.split("\n"))]
        if event.retry is not None:
            fields.append(("retry", str(event.retry)))
        # Without the space, a value that begins with one would lose it.
        text += "".join(f"{name}:{space or ' ' * value.startswith(' ')}{value}{end}" for name, value in fields) + end
    return text.encode()


@given(st.lists(written_events, max_size=6), st.sampled_from(["\n", "\r", "\r\n"]), st.sampled_from(["", " "]))
def test_round_trip(events, end, space):
    body = write(events, end, space)
    assert read(BOM + body) == (events, None)
    assert read(*bytewise(body)) == (events, None)


def by_httpx_sse(body: bytes) -> list[Fields]:
    headers = {"content-type": "text/event-stream; charset=utf-8"}
    source = httpx_sse.EventSource(httpx.Response(200, headers=headers, content=body))
    return [(event.event, event.data, event.id, event.retry) for event in source.iter_sse()]


RIGHT_LINES = [
    *("data: x", "data:y", "data", "data:  z", "data: é豆🦀\u2028\u0085\x0b", "data: \ufeff", "event: e", "event:"),
    *("id: 7", "id", "id: \0", "retry: 15", "retry: x", ": ping", "Data: x", "data : x", " data: x", "unknown"),
]


@given(st.lists(st.lists(st.sampled_from(RIGHT_LINES), max_size=4), max_size=6), st.sampled_from(["\n", "\r", "\r\n"]))
def test_equal_to_httpx_sse_where_it_is_right(blocks, end):
    """No mark, legal retries, each event with data and its blank line: then it is right, by its public door."""
    body = "".join(line + end for block in blocks for line in [*block, "data: .", ""]).encode()
    assert [fields_of(event) for event in read(body)[0]] == by_httpx_sse(body)


# --- cutting ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", range(len(b"data: \xe2\x9c\x85\r\n\r\n")))
def test_any_place_can_be_cut(at):
    body = b"data: \xe2\x9c\x85\r\n\r\ndata: 2\n\n"
    assert data_of(body[:at], body[at:]) == ["✅", "2"]


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"])
def test_only_cr_and_lf_end_lines(char):
    assert data_of(f"data: a{char}b\n\n".encode()) == [f"a{char}b"]


def test_a_cr_ends_its_line_at_once_and_swallows_one_lf():
    stream = EventStream()
    assert [event.data for event in stream.feed(b"data: a\r\r")] == ["a"]
    assert stream.feed(b"\n") == []
    assert stream.feed(b"data: b\r") == stream.feed(b"") == stream.feed(b"\n") == []
    assert [event.data for event in stream.feed(b"\r")] == ["b"]


@pytest.mark.parametrize("invalid", [b"\xff", b"\xe4\xb8", b"\xc0\x80", b"\xed\xa0\x80", b"\xf0\x9f\xa6"])
def test_invalid_bytes_become_replacement_characters(invalid):
    body = b"data: a" + invalid + b"b\n\n"
    assert data_of(body) == data_of(*bytewise(body)) == [body[6:-2].decode("utf-8", "replace")]


def test_plain_events_take_no_other_way_than_the_rest():
    """The fast path, with something open before it that it must not overlook."""
    plain = b"data: x\n\n"
    assert data_of(plain, plain + plain) == ["x", "x", "x"]
    assert data_of(plain, b"data: a\rdata: b\n\n") == ["x", "a\nb"]
    assert data_of(plain, b"data: a\r\rdata: b\n\n") == ["x", "a", "b"]
    assert data_of(b"data: a\n", plain) == ["a\nx"]
    assert data_of(b"data: a", plain) == ["adata: x"]
    assert data_of(b"\xef\xbb", plain) == []
    assert data_of(b"\r", plain, plain) == ["x", "x"]
    assert data_of(plain, b"data: a\n\r", plain) == ["x", "a", "x"]
    assert read(b"id: 7\n\n", plain)[0] == [SseEvent("message", "x", "7")]
    assert read(b"event: e\n", plain)[0] == [SseEvent("e", "x")]
    events, error = read(plain, b"data: 12345\n\n", b"data: 123456\n\n", plain, max_event=11)
    assert [event.data for event in events] == ["x", "12345"]
    assert isinstance(error, EventTooLargeError)


# --- the end ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b'data: {"a": 1}',
        b'data: {"a": 1}\n',
        b'data: {"a": 1}\r',
        b"data: [DONE]",
        b"data: [DONE] ",
        b"data: 12\n",
        b'data: {"a":\ndata: 1}',
        b'data: {"a": 1}\ndata: {"b": 2}',
        b"event: message\ndata: true",
        b'data: {"a": 1}\n: pi',
        b'data: {"long": ' + b"9" * 5000 + b"}",
    ],
)
def test_a_complete_event_without_its_blank_line_is_delivered(body):
    events, error = read(b"data: x\n\n" + body)
    assert error is None
    assert [event.unterminated for event in events] == [False, True]
    assert read(body, b"\n\n")[0] == [SseEvent("message", events[1].data)]


@pytest.mark.parametrize(
    "body",
    [
        b'data: {"a": ',
        b"data: [DONE",
        b"data: 12",
        b"data: -1.5",
        b"data: NaN\n",
        b"data: some text\n",
        b'data: {"a": 1}\ndata: {"b":',
        b"data:",
        b"data: \n",
        b"da",
        b"event: content_block_delta\n",
        b"event: mess",
        b"id: 7\n",
        b"\xef\xbb",
    ],
)
def test_else_the_stream_is_interrupted(body):
    lead = b"" if body.startswith(b"\xef") else b"data: x\n\n"
    events, error = read(lead + body)
    assert [event.data for event in events] == ["x"][: len(lead)]
    assert isinstance(error, StreamInterruptedError)
    assert "ended inside" in str(error)


@pytest.mark.parametrize("rest", [b"da", b"data", b"id: 7", b"event: err", b"\xff"])
def test_a_complete_event_is_kept_when_more_of_it_may_be_lost(rest):
    events, error = read(b'data: {"a": 1}\n' + rest)
    assert events == [SseEvent("message", '{"a": 1}', unterminated=True)]
    assert isinstance(error, StreamInterruptedError)


@pytest.mark.parametrize("body", [b"", b"\n", BOM, b": ping", b"data: x\n\n", b"data: x\r\r", b"data: x\n\n: pi"])
def test_clean_ends(body):
    assert read(body)[1] is None


@pytest.mark.parametrize(
    ("rest", "where"),
    [(b"", "between two events"), (b'data: {"a": 1}\n', "inside an event"), (b"data: [DONE]", "inside an event")],
)
def test_a_broken_connection_interrupts_wherever_it_breaks(rest, where):
    """E4. The open event may be complete, or not; nobody knows. What was out stays out."""
    events, error = read(b"data: x\n\n" + rest, clean=False)
    assert [event.data for event in events] == ["x"]
    assert isinstance(error, StreamInterruptedError)
    assert where in str(error)


def test_messages_quote_what_was_cut_and_not_more():
    _, error = read(b'data: {"id":"x",')
    assert str(error) == 'the event stream ended inside an event: \'data: {"id":"x",\''
    _, error = read(b"data: {" + b"x" * 5000)
    assert len(str(error)) < 300


def test_misuse():
    stream = EventStream()
    stream.close()
    with pytest.raises(ClosedError):
        stream.feed(b"")
    with pytest.raises(ClosedError):
        stream.close()
    with pytest.raises(UsageError, match="max_event"):
        EventStream(max_event=0)


# --- bounds and costs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 10**9])
@pytest.mark.parametrize(
    "body",
    [
        b"data: 12345\n\n",  # one byte too many
        b"data: 1\ndata\n\n",
        b"data: 1234567",
        b": a comment of any length is not kept, but read to its end",
        b"data: 1\n: ping",
        BOM + b"data: 12345\n\n",
    ],
)
def test_too_large(body, size):
    head = b"" if body.startswith(BOM) else b"data: x\n\n"
    chunks = [(head + body + b"\n\ndata: y\n\n")[at : at + size] for at in range(0, len(head + body) + 12, size)]
    events, error = read(*chunks, max_event=10)
    assert [event.data for event in events] == ["x"][: len(head)]
    assert isinstance(error, EventTooLargeError)
    assert "more than 10 bytes" in str(error)


def test_too_large_as_soon_as_it_is():
    """The open line counts with the lines before it."""
    stream = EventStream(max_event=10)
    assert stream.feed(b"data: 1\ndat") == []
    assert not stream.interrupted
    assert stream.feed(b"a") == []
    assert isinstance(stream.error, EventTooLargeError)
    assert stream.feed(b"\n\ndata: x\n\n") == stream.close() == []


@pytest.mark.parametrize("size", [1, 10**9])
def test_just_not_too_large(size):
    """Line ends, the byte order mark and comments do not count; each event counts anew."""
    body = BOM + b"data: 1234\r\n\r\n:ping\n\n:ping\n:ping\n:ping\n" + b"data:\ndata:\n\n" * 3 + b"data: 1234\n\n"
    assert data_of(body) == ["1234", "\n", "\n", "\n", "1234"]
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    assert read(*chunks, max_event=10) == read(body)


def test_the_default_bound_and_that_nothing_is_kept_behind_it():
    assert MAX_EVENT == 16 * 1024 * 1024
    piece = b"x" * 65536
    stream = EventStream()
    tracemalloc.start()
    stream.feed(b"data: ")
    fed = 0
    while stream.error is None:
        assert stream.feed(piece) == []
        fed += len(piece)
    for _ in range(100):
        stream.feed(piece)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert fed == MAX_EVENT
    assert peak < 2.5 * MAX_EVENT
    assert kept < 100_000


def test_comments_and_blank_lines_are_not_kept():
    stream = EventStream(max_event=1000)
    tracemalloc.start()
    for _ in range(20_000):
        stream.feed(b": ping\n")
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert stream.error is None
    assert kept < 20_000


def calls_of(body: bytes, size: int) -> int:
    """How many functions are called, in Python and in C."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    stream = EventStream()
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        for chunk in chunks:
            stream.feed(chunk)
    finally:
        sys.setprofile(before)
    stream.close()
    return count


@pytest.mark.parametrize("size", [1, 7, 10**9])
@pytest.mark.parametrize(
    "piece", [b"x", b"data: x\n", b"data: x\n\n", b"\r", b": ping\r\n", b"id: 1\n", b"event: x\ndata: y\n\n"]
)
def test_calls_are_linear(piece, size):
    first, second = (calls_of(b"data: " + piece * times, size) for times in (2_000, 4_000))
    assert second <= 2.1 * first + 100


@pytest.mark.parametrize("size", [1, 1000])
def test_a_long_line_is_not_copied_for_each_chunk(size):
    """Bytes allocated by a chunk do not grow with the line: but for the few times that the buffer itself grows."""
    stream = EventStream()
    stream.feed(b"data: " + b"x" * 4_000_000)
    chunk = b"y" * size
    large = 0
    tracemalloc.start()
    for _ in range(300):
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        stream.feed(chunk)
        _, peak = tracemalloc.get_traced_memory()
        large += peak - before > 100_000
    tracemalloc.stop()
    assert large <= 3


# --- iterators -------------------------------------------------------------------------------------------------------


async def _async(chunks):
    for chunk in chunks:
        yield chunk


def drain(chunks: Sequence[bytes], **options) -> tuple[list[SseEvent], TransportError | None]:
    """Through both iterators, which must agree."""
    found: list[SseEvent] = []
    error: TransportError | None = None
    try:
        for event in iter_events(chunks, **options):
            found.append(event)  # noqa: PERF402 - what came before an error counts
    except TransportError as raised:
        error = raised

    async def again() -> tuple[list[SseEvent], str]:
        events: list[SseEvent] = []
        try:
            async for event in aiter_events(_async(chunks), **options):
                events.append(event)  # noqa: PERF401
        except TransportError as raised:
            return events, repr(raised)
        return events, repr(None)

    assert asyncio.run(again()) == (found, repr(error))
    return found, error


@pytest.mark.parametrize(
    "body", [b"", b"data: x\n\ndata: y\n\n", b"data: x\n\ndata: [DONE]", b"data: x\n\ndata: {", b'data: {"a": 1}\nda']
)
def test_iterators(body):
    for chunks in ([body], bytewise(body)):
        events, error = drain(chunks)
        assert (events, repr(error)) == (read(body)[0], repr(read(body)[1]))


def test_iterators_raise_after_the_last_event():
    events, error = drain([b"data: x\n\ndata: 12345", b"data: y\n\n"], max_event=10)
    assert [event.data for event in events] == ["x"]
    assert isinstance(error, EventTooLargeError)


def test_iterators_read_no_further_than_asked():
    asked = []

    def chunks():
        for number in range(10):
            asked.append(number)
            yield b"data: x\n\n"

    events = iter_events(chunks())
    next(events)
    assert asked == [0]


def test_what_the_source_raises_passes_through():
    def chunks():
        yield b"data: x\n\n"
        raise httpx.ReadError("gone")

    events = iter_events(chunks())
    assert next(events).data == "x"
    with pytest.raises(httpx.ReadError):
        next(events)


def test_sources():
    body = b"data: x\r\n\r\ndata: y\n\n"
    response = httpx.Response(200, headers={"content-type": "text/event-stream; charset=latin-1"}, content=body)
    assert [event.data for event in iter_events(response.iter_bytes(3))] == ["x", "y"]
    assert [event.data for event in iter_events(io.BytesIO(body))] == ["x", "y"]


# --- payloads --------------------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("", []),
        (" ", []),
        ("\n\n", []),
        ("[DONE]", [DONE]),
        (" [DONE] ", [DONE]),
        ('{"a": 1}', ['{"a": 1}']),
        ('{"a":\n1}', ['{"a":\n1}']),
        ('{"a": 1}\n{"b": 2}', ['{"a": 1}', '{"b": 2}']),
        ('{"a": 1}\n\n{"b":\n2}\n[DONE]', ['{"a": 1}', '{"b":\n2}', DONE]),
        ('{"a": 1}\n{"b":', ['{"a": 1}', '{"b":']),
        ('{"a": 1} {"b": 2}\n{"c": 3}', ['{"a": 1} {"b": 2}\n{"c": 3}']),
        ("some text\nof two lines", ["some text\nof two lines"]),
        ('"[DONE]"', ['"[DONE]"']),
        ('{"a": "[DONE]"}', ['{"a": "[DONE]"}']),
        ("[[\n" * 3000, ["[[\n" * 3000]),
        ("[" * 100_000 + "\n" + "]" * 100_000, ["[" * 100_000 + "\n" + "]" * 100_000]),
    ],
)
def test_payloads(data, expected):
    found = payloads(SseEvent("message", data))
    assert found == expected


@given(st.lists(json_values, min_size=1, max_size=4), st.sampled_from([None, 1]))
def test_payloads_of_several_values(values, indent):
    """Each on its own lines, compact or pretty."""
    texts = [json.dumps(value, indent=indent) for value in values]
    found = payloads(SseEvent("message", "\n".join(texts)))
    assert [json.loads(text) for text in found] == values
    assert found == texts


# --- what a response is ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "content_type", "start", "kind"),
    [
        (200, "text/event-stream", b"", "event_stream"),
        (200, "text/event-stream; charset=utf-8", b"data: {", "event_stream"),
        (201, "Text/Event-Stream;charset=latin-1", b"", "event_stream"),
        (200, "text/event-stream, text/event-stream", b"", "event_stream"),
        (200, "text/event-stream", b'\n{"error": 1}', "json"),  # would be an empty stream
        (200, "application/json", b"", "json"),
        (200, "APPLICATION/JSON ; charset=utf-8", b'{"choices": []}', "json"),
        (200, "application/problem+json", b"{", "json"),
        (200, "application/json", b"data: {", "event_stream"),  # no JSON starts like this
        (200, None, b"data: {", "event_stream"),
        (200, None, b"d", "event_stream"),
        (200, "text/plain", BOM + b": ping\n\n", "event_stream"),
        (200, "application/octet-stream", b'  {"id"', "json"),
        (200, None, b"", "error"),
        (200, "text/plain", b"upstream is busy", "error"),
        (200, "text/html", b"<html>", "error"),
        (200, "text/html", b"data: x", "error"),
        (200, "text/event-streams", b"", "error"),
        (204, "text/event-stream", b"", "error"),
        (302, "text/event-stream", b"", "error"),
        (401, "application/json", b'{"error": {"message": "no"}}', "error"),
        (429, "text/event-stream", b"data: {}\n\n", "error"),
        (503, None, b"", "error"),
    ],
)
def test_check_response(status, content_type, start, kind):
    headers = {} if content_type is None else {"content-TYPE": content_type}
    check = check_response(status, headers, start)
    assert (check.kind, check.status) == (kind, status)
    assert bool(check.reason) == (kind == "error")
    assert check == check_response(status, list(headers.items()), start)
    assert check == check_response(status, httpx.Headers(headers), start)


def test_check_response_says_why():
    check = check_response(429, {"content-type": "Application/JSON; x=y"}, "é".encode() * 5000)
    assert (check.reason, check.media_type, check.excerpt) == ("HTTP status 429", "application/json", "é" * 200)
    check = check_response(200, {"content-type": "text/html"}, b"<html>")
    assert check.reason == "expected text/event-stream or application/json, found media type 'text/html'"
    assert check_response(200, {}).reason.endswith("found no media type and an empty body")
