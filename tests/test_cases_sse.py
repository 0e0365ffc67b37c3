"""Event streams that others got wrong: the conformance suite, and the faults in ``cases/sse.jsonl``.

The suite (``conformance/event_stream.jsonl``) is run whole and in chunks of 1, 2, 3 and 7 bytes, and through httpx-sse
alone, to see that what is worked around is still what is wrong with it. Of the faults, each fact is either checked here
or stands in ``ABOVE``, with the layer that decides it.
"""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import httpx
import httpx_sse
import pytest

from streamparse.errors import StreamInterruptedError
from streamparse.transport.response import ResponseKind, check_response
from streamparse.transport.sse import DONE, EventStream, SseEvent, payloads
from tests.conftest import shared


def lines_of(*parts: str) -> list[dict[str, Any]]:
    with shared(*parts).open(encoding="utf-8") as file:  # not str.splitlines: U+2028 is in some of them
        return [json.loads(line) for line in file]


SUITE = {case["name"]: case for case in lines_of("conformance", "event_stream.jsonl")}
CASES = {case["id"]: case for case in lines_of("cases", "sse.jsonl")}


def cut(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


def run(chunks: list[bytes]) -> tuple[list[SseEvent], EventStream]:
    stream = EventStream()
    events = [event for chunk in chunks for event in stream.feed(chunk)]
    return events + stream.close(), stream


# --- the conformance suite -------------------------------------------------------------------------------------------

ENDS_INSIDE_AN_EVENT = {"wpt-data-before-final-empty-line", "x-no-final-blank", "x-no-final-blank-nl"}
"""The standard drops their last event without a word; by S the stream is interrupted, which is said."""

RETRIES = {"wpt-retry": 3000, "wpt-retry-bogus": 3000, "wpt-retry-empty": None, "x-retry-weird": None}


def test_suite_is_complete():
    assert len(SUITE) == 53
    assert SUITE.keys() >= ENDS_INSIDE_AN_EVENT | RETRIES.keys()


@pytest.mark.parametrize("size", [10**9, 1, 2, 3, 7], ids=["whole", "1", "2", "3", "7"])
@pytest.mark.parametrize("name", SUITE)
def test_conformance(name, size):
    case = SUITE[name]
    events, stream = run(cut(b64decode(case["body_b64"]), size))
    assert [[event.event, event.data, event.id] for event in events] == case["expect"]
    assert stream.interrupted == (name in ENDS_INSIDE_AN_EVENT)
    assert not any(event.unterminated for event in events)
    if name in RETRIES:
        assert events[0].retry == RETRIES[name]


WORKED_AROUND = {
    "wpt-bom": "a byte order mark hides the first field",
    "ld-bom-data-bom": "a byte order mark hides the first field",
    "x-keepalive-after-id": "a blank line yields an event once an id was seen",
    "x-event-without-data": "an event without data is yielded",
    "x-retry-only": "an event without data is yielded",
}


@pytest.mark.parametrize("name", SUITE)
def test_httpx_sse_alone(name):
    """It is right wherever nothing is worked around. When it gets better than that, a workaround can go."""
    case = SUITE[name]
    headers = {"content-type": "text/event-stream; charset=utf-8"}
    response = httpx.Response(200, headers=headers, content=b64decode(case["body_b64"]))
    found = [[event.event, event.data, event.id] for event in httpx_sse.EventSource(response).iter_sse()]
    assert (found == case["expect"]) == (name not in WORKED_AROUND)


# --- faults of other systems -----------------------------------------------------------------------------------------

ABOVE = {
    ("B166", "errors"): "ChatDecoder, C8: an error inside the stream",
    ("B167", "errors"): "ChatDecoder, C8: an error inside the stream",
    ("B167", "finish"): "ChatDecoder, C8",
    ("B170", "calls"): "ChatDecoder, C8: an error in a whole body",
    ("B170", "errors"): "ChatDecoder, C8: base_resp",
    ("B170", "retryable"): "transport.http: which provider errors are worth another try",
    ("B174", "content"): "ChatDecoder: the text of the answer",
}
"""Facts about what is in the payloads. This layer hands the payloads over; who decodes them decides."""


def check_events(case, events, stream):
    assert [{"event": event.event, "data": event.data} for event in events] == case["expected"]["events"]


def check_errors(case, events, stream):
    assert case["expected"]["errors"] == ["unterminated_event"]
    assert isinstance(stream.error, StreamInterruptedError)


def check_warnings(case, events, stream):
    assert case["expected"]["warnings"] == ["event_without_blank_line"]
    assert [event.unterminated for event in events] == [False] * (len(events) - 1) + [True]


CHECKS = {"events": check_events, "errors": check_errors, "warnings": check_warnings}


def test_each_fact_is_checked_here_or_above():
    assert len(CASES) == 19
    facts = {(name, key) for name, case in CASES.items() for key in case["expected"]}
    assert facts >= ABOVE.keys()
    assert {key for name, key in facts - ABOVE.keys()} <= CHECKS.keys()


@pytest.mark.parametrize("size", [None, 10**9, 1, 2, 3, 7], ids=["as sent", "whole", "1", "2", "3", "7"])
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case["input"]["type"] == "sse_bytes"])
def test_case(name, size):
    case = CASES[name]
    chunks = [bytes.fromhex(chunk) for chunk in case["input"]["chunks_hex"]]
    events, stream = run(chunks if size is None else cut(b"".join(chunks), size))
    checked = [key for key in case["expected"] if (name, key) not in ABOVE]
    for key in checked:
        CHECKS[key](case, events, stream)
    if "errors" not in checked:
        assert stream.error is None
    if "warnings" not in checked:
        assert not any(event.unterminated for event in events)


def test_case_json_body_with_a_good_status():
    """B170: the body goes to the decoder as a whole, and is not read as a stream without events."""
    [case] = [case["input"] for case in CASES.values() if case["input"]["type"] == "http_response"]
    body = case["body"].encode()
    assert check_response(case["status"], case["headers"], body).kind is ResponseKind.JSON
    assert check_response(case["status"], {"Content-Type": "text/event-stream"}, body).kind is ResponseKind.JSON


def test_case_text_that_looks_like_done():
    """B174: only an event that is nothing else says it, and what follows is still read."""
    events, _ = run([bytes.fromhex(chunk) for chunk in CASES["B174"]["input"]["chunks_hex"]])
    assert [payloads(event) == [DONE] for event in events] == [False, True, False]


def test_case_empty_data_has_no_payload():
    """B159: an event with empty data is one; the layer above sees nothing of it."""
    events, _ = run([bytes.fromhex(chunk) for chunk in CASES["B159"]["input"]["chunks_hex"]])
    assert [payloads(event) for event in events] == [[], ["x"]]
