"""Anthropic-style events: the rules A by number, and what every decoder promises, on this wire."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamparse
from streamparse import (
    ArgumentDelta,
    ArgumentValue,
    ClosedError,
    Deviated,
    DeviationCode,
    Ended,
    ErrorCode,
    Event,
    Failed,
    Limits,
    Reasoning,
    Text,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
    UnknownDialectError,
    UsageError,
)
from streamparse.decoding import blocks
from streamparse.decoding.chat import ChatDecoder
from streamparse.decoding.messages import MessagesDecoder
from tests.chunks import check_chunking, join
from tests.test_chat import NATIVE, SCALARS, shuffled

TOOLS = [
    {
        "name": name,
        "description": "…",
        "input_schema": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "count": {"type": "integer"}, "items": {"type": "array"}},
        },
    }
    for name in ("write", "write_all", "read")
]

M2 = "MiniMax-M2.1"
STOP = {"type": "message_stop"}
LATE, AGAIN = DeviationCode.LATE_FRAGMENT, DeviationCode.REPEATED_ARGUMENTS


def begin(model: str = "m", **usage: int) -> dict[str, Any]:
    message = {"id": "msg", "type": "message", "role": "assistant", "content": [], "model": model, "usage": usage}
    return {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}


def opened(block: dict[str, Any], index: int | None = 0) -> dict[str, Any]:
    return {"type": "content_block_start", "content_block": block} | ({} if index is None else {"index": index})


def tool(name: str | None = "read", id: str | None = "a", index: int | None = 0, **block: Any) -> dict[str, Any]:  # noqa: A002
    return opened({"type": "tool_use", "id": id, "name": name, "input": {}, **block}, index)


def delta(index: int | None = 0, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "delta": fields} | ({} if index is None else {"index": index})


def more(text: str, index: int | None = 0) -> dict[str, Any]:
    return delta(index, type="input_json_delta", partial_json=text)


def says(text: str, index: int | None = 0) -> dict[str, Any]:
    return delta(index, type="text_delta", text=text)


def thinks(text: str, index: int | None = 0) -> dict[str, Any]:
    return delta(index, type="thinking_delta", thinking=text)


def closed(index: int | None = 0) -> dict[str, Any]:
    return {"type": "content_block_stop"} | ({} if index is None else {"index": index})


def end(reason: str | None = "tool_use", **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}


def call(text: str = "{}", name: str = "read", id: str = "a", index: int = 0) -> list[dict[str, Any]]:  # noqa: A002
    return [tool(name, id, index), more("", index), more(text, index), closed(index)]


def run(*events: Any, close: str | None = None, **options: Any) -> list[Event]:
    decoder = MessagesDecoder(**options)
    found = [event for each in events for event in decoder.feed(each)]
    return join(found + decoder.close(close))


def sealed(events: list[Event]) -> list[tuple[str, dict[str, Any]]]:
    return [(event.call.name, event.call.arguments) for event in events if isinstance(event, ToolCallFinished)]


def errors(events: list[Event]) -> list[ErrorCode]:
    return [event.error.code for event in events if isinstance(event, Failed | ToolCallFailed)]


def deviations(events: list[Event]) -> list[DeviationCode]:
    return [event.deviation.code for event in events if isinstance(event, Deviated)]


def text_of(events: list[Event], kind: type[Text] | type[Reasoning] = Text) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


# A --------------------------------------------------------------------------------------------------------------------

ARGUMENTS = '{"text": "a\\nb",  "items": [1, {"x": "y"}]}'
ANSWER = [
    begin(input_tokens=3, output_tokens=1),
    opened({"type": "thinking", "thinking": "", "signature": ""}),
    {"type": "ping"},
    thinks("why"),
    delta(type="signature_delta", signature="s"),
    closed(),
    opened({"type": "text", "text": ""}, 1),
    says("hi", 1),
    closed(1),
    tool("write", "c1", 2),
    more("", 2),
    *[more(each, 2) for each in ("{", *ARGUMENTS[1:])],
    closed(2),
    end(output_tokens=9),
    STOP,
]
USAGE = {"input_tokens": 3, "output_tokens": 9}
EVENTS: list[Event] = [
    Reasoning("why"),
    Text("hi"),
    ToolCallStarted(0, "c1", "write"),
    ArgumentDelta(0, ("text",), "a\nb"),
    ArgumentValue(0, ("text",), "a\nb"),
    ArgumentValue(0, ("items", 0), 1),
    ArgumentDelta(0, ("items", 1, "x"), "y"),
    ArgumentValue(0, ("items", 1, "x"), "y"),
    ArgumentValue(0, ("items", 1), {"x": "y"}),
    ArgumentValue(0, ("items",), [1, {"x": "y"}]),
    ToolCallFinished(0, ToolCall("c1", "write", json.loads(ARGUMENTS), ARGUMENTS)),
    Ended("tool_use", USAGE, True),
]


def test_the_events_of_an_answer():
    assert run(*ANSWER, tools=TOOLS) == EVENTS
    assert run(*map(json.dumps, ANSWER), "[DONE]", tools=TOOLS) == EVENTS
    assert run(*(json.dumps(each).encode() for each in ANSWER), tools=TOOLS) == EVENTS
    assert run(*map(blocks.read, ANSWER), tools=TOOLS) == EVENTS


def test_a_call_starts_with_its_block_and_is_sealed_with_it():
    decoder = MessagesDecoder()
    assert decoder.feed(tool("write")) == [ToolCallStarted(0, "a", "write")]
    assert decoder.feed(more('{"text": "x"}'))[-1] == ArgumentValue(0, ("text",), "x")
    assert not decoder.calls
    assert sealed(decoder.feed(closed())) == [("write", {"text": "x"})]
    assert [each.name for each in decoder.calls] == ["write"]


CONTENT = [
    {"type": "thinking", "thinking": "why", "signature": "s"},
    {"type": "text", "text": "hi"},
    {"type": "tool_use", "id": "c1", "name": "write", "input": json.loads(ARGUMENTS)},
]
WHOLE = {"type": "message", "content": CONTENT, "model": "m", "stop_reason": "tool_use", "usage": USAGE}


def without_verbatim(events: list[Event]) -> list[Event]:
    """The text of arguments that came as an object is the library's own."""
    return [
        ToolCallFinished(event.index, ToolCall(event.call.id, event.call.name, event.call.arguments))
        if isinstance(event, ToolCallFinished)
        else event
        for event in events
    ]


def test_a_whole_message_gives_the_same_events():
    events = run(WHOLE)
    assert without_verbatim(events) == without_verbatim(EVENTS)
    (ended,) = [event for event in events if isinstance(event, ToolCallFinished)]
    assert json.loads(ended.call.arguments_json) == json.loads(ARGUMENTS)
    assert run({"type": "message_stop", "message": WHOLE}) == events


@pytest.mark.parametrize("last", [[WHOLE], [{"type": "message_stop", "message": WHOLE}], [STOP, WHOLE], [STOP, STOP]])
def test_a_trailing_whole_message_is_not_appended(last):
    assert run(*ANSWER[:-1], *last, tools=TOOLS) == EVENTS
    assert run(*ANSWER[:-2], WHOLE, tools=TOOLS) == EVENTS


def test_content_may_be_a_text():
    assert run({"type": "message", "content": "hi", "stop_reason": "end_turn"}) == [Text("hi"), Ended("end_turn")]


@pytest.mark.parametrize("pieces", [[], [more("")], [more(""), more(" ")]])
def test_no_arguments_are_an_empty_object(pieces):
    (sealing,) = [e for e in run(tool(), *pieces, closed(), end(), STOP) if isinstance(e, ToolCallFinished)]
    assert (sealing.call.arguments, sealing.call.arguments_json, sealing.call.trusted) == ({}, "{}", True)


@pytest.mark.parametrize("text", ["", "{}"])
def test_no_arguments_wait_until_the_answer_goes_on(text):
    """A block that was cut before its first argument is stopped like any other."""
    for after in (tool("write", "b", 1), opened({"type": "text", "text": ""}, 1), end(), end("end_turn"), STOP):
        decoder = MessagesDecoder()
        assert not sealed([event for each in call(text) for event in decoder.feed(each)])
        assert ("read", {}) in sealed(decoder.feed(after))


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_no_arguments_in_an_answer_that_was_cut(reason):
    events = run(*call("", id="a"), *call("", "write", "b", 1), end(reason), STOP)
    assert sealed(events) == [("read", {})]
    assert errors(events) == [ErrorCode.UNTERMINATED_JSON]
    assert events[-1] == Ended(reason, None, False)
    written = run(*call("{}"), end("max_tokens"), STOP)
    assert deviations(written) == [DeviationCode.EMPTY_ARGUMENTS]
    assert not [event for event in written if isinstance(event, ToolCallFinished) and event.call.trusted]


def test_a_whole_input_is_final():
    events = run(tool(input={"count": 2}), closed(), end(), STOP)
    assert sealed(events) == [("read", {"count": 2})]
    assert not deviations(events)


@pytest.mark.parametrize("stop", [[closed()], []])
@pytest.mark.parametrize(("text", "code"), [('{"count":2}', AGAIN), ('{"count":3}', LATE), ("x", LATE), ('{"c', LATE)])
def test_what_follows_a_whole_input(text, code, stop):
    def decode(pieces: list[str]) -> list[Event]:
        return run(tool(input={"count": 2}), *map(more, pieces), *stop, end(), STOP)

    events = check_chunking(decode, text)
    assert sealed(events) == [("read", {"count": 2})]
    assert deviations(events) == [code]
    assert [e.call.trusted for e in events if isinstance(e, ToolCallFinished)] == [code is AGAIN]


@pytest.mark.parametrize(("given", "arguments"), [('{"count": 2}', {"count": 2}), ([], {}), ("", {}), (None, {})])
def test_odd_inputs(given, arguments):
    assert sealed(run(tool(input=given), closed(), end())) == [("read", arguments)]
    assert errors(run(tool(input=[1]), closed(), end())) == [ErrorCode.NOT_AN_OBJECT]


def test_usage_is_merged():
    usage = {"output_tokens": 5, "input_tokens": None, "server_tool_use": {"n": 1}}
    events = run(begin(input_tokens=3, output_tokens=1), end("end_turn", **usage), STOP)
    assert events == [Ended("end_turn", {"input_tokens": 3, "output_tokens": 5, "server_tool_use": {"n": 1}})]
    late = run(end("end_turn"), STOP, {"type": "message_delta", "usage": {"output_tokens": 1}})
    assert late == [Ended("end_turn", {"output_tokens": 1})]


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use"])
def test_calls_that_the_provider_runs_are_told_and_not_trusted(kind):
    result = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "text", "text": "no"}]}
    search = [tool("web_search", "s", 0, type=kind), more('{"query": "x"}'), closed()]
    events = run(
        *search, opened(result, 1), says("no", 1), more("no", 1), closed(1), end("end_turn"), STOP, tools=TOOLS
    )
    assert sealed(events) == [("web_search", {"query": "x"})]
    assert deviations(events) == [DeviationCode.SERVER_TOOL]
    assert not text_of(events)
    (sealing,) = [event for event in events if isinstance(event, ToolCallFinished)]
    assert not sealing.call.trusted


@pytest.mark.parametrize(
    "odd",
    [
        {},
        [],
        None,
        3,
        "  ",
        "3",
        b"{}",
        object(),
        {"type": "ping"},
        {"type": 3},
        {"type": "content_block_start"},
        {"type": "content_block_start", "content_block": None},
        {"type": "content_block_start", "index": "x", "content_block": {"type": "redacted_thinking", "data": "x"}},
        {"type": "content_block_delta", "delta": 7},
        {"type": "content_block_delta", "delta": {"type": "citations_delta", "citation": {"cited_text": "x"}}},
        {"type": "content_block_delta", "delta": {"type": "news_delta", "text": "x"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": 3}},
        {"type": "content_block_stop", "index": 7},
        {"type": "message_start", "message": None},
        {"type": "message_delta", "usage": []},
        {"type": "text", "text": "x", "snapshot": "x"},
        {"choices": [{"index": 0, "delta": {"content": "x", "tool_calls": [{"index": 0}]}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"total_tokens": 3}},
        {"error": None, "base_resp": {"status_code": 0}},
    ],
    ids=repr,
)
def test_what_is_not_known_is_skipped(odd):
    assert run(odd, end("end_turn"), STOP) == [Ended("end_turn", None, True)]


def test_one_odd_field_costs_nothing_else():
    odd = [{**says("hi"), "index": "0", "usage": 3, "message": "x"}, {**end("end_turn"), "content": 3}]
    assert run(*odd) == [Text("hi"), Ended("end_turn")]
    assert run(*map(json.dumps, odd)) == run(*odd)


def test_text_at_the_start_of_a_block_counts():
    events = [opened({"type": "thinking", "thinking": "w"}), thinks("hy"), opened({"type": "text", "text": "h"}, 1)]
    assert run(*events, says("i", 1), end("end_turn")) == [Reasoning("why"), Text("hi"), Ended("end_turn")]


# Where a piece belongs ------------------------------------------------------------------------------------------------


def test_blocks_may_interleave():
    one, two = call('{"count": 1}'), call('{"text": "x"}', "write", "b", 1)
    mixed = [each for pair in zip(one, two, strict=True) for each in pair]
    assert sealed(run(*mixed, end(), STOP)) == [("read", {"count": 1}), ("write", {"text": "x"})]


@pytest.mark.parametrize("missing", ["start", "all", "not start"])
def test_without_an_index(missing):
    events = [*call('{"count": 1}'), *call('{"text": "x"}', "write", "b", 1)]
    for event in events:
        if missing == "all" or (event["type"] == "content_block_start") == (missing == "start"):
            del event["index"]
    assert sealed(run(*events, end(), STOP)) == [("read", {"count": 1}), ("write", {"text": "x"})]


def test_a_used_index():
    """A block that starts there ends the one before."""
    events = run(*call('{"count": 1}')[:-1], *call("{", "write", "b")[:-1], *call("{}", "read", "c"), end(), STOP)
    assert sealed(events) == [("read", {"count": 1}), ("read", {})]
    assert errors(events) == [ErrorCode.UNTERMINATED_JSON]


def test_a_start_that_is_repeated():
    """C3, C4: while the call runs it says nothing new; behind its end it is another call."""
    events = run(tool(), more('{"count": '), tool(), more("1}"), closed(), end(), STOP)
    assert (sealed(events), deviations(events)) == ([("read", {"count": 1})], [])
    events = run(*call('{"count": 1}'), *call('{"count": 2}'), end(), STOP)
    assert sealed(events) == [("read", {"count": 1}), ("read", {"count": 2})]
    assert deviations(events) == [DeviationCode.REPEATED_ID]


def test_deltas_for_an_index_that_never_started():
    assert run(says("hi", 7), thinks("why", 8), end("end_turn")) == [Text("hi"), Reasoning("why"), Ended("end_turn")]
    orphan = run(tool(), more('{"count": ', 1), more("1}", 1), closed(1), end(), STOP)
    assert sealed(orphan) == [("read", {"count": 1})]
    assert deviations(orphan) == [DeviationCode.ORPHAN_FRAGMENT]
    nobody = run(more('{"count": 1}', 1), closed(1), end(), STOP)
    (failed,) = [event for event in nobody if isinstance(event, ToolCallFailed)]
    assert (failed.error.code, failed.call.raw) == (ErrorCode.MISSING_NAME, '{"count": 1}')


def test_a_delta_that_does_not_fit_its_block_loses_nothing():
    events = run(tool(), says("hi"), more('{"count": 1}'), thinks("why"), closed(), end(), STOP)
    assert sealed(events) == [("read", {"count": 1})]
    assert (text_of(events), text_of(events, Reasoning)) == ("hi", "why")
    untyped = run(delta(text="hi"), delta(thinking="why"), tool(index=1), delta(1, partial_json="{}"), closed(1), end())
    assert (text_of(untyped), text_of(untyped, Reasoning), sealed(untyped)) == ("hi", "why", [("read", {})])


def test_a_block_without_type_and_with_a_name_is_a_call():
    assert sealed(run(tool(type=None), more('{"count": 1}'), closed(), end())) == [("read", {"count": 1})]


def test_missing_words():
    events = run(tool(id=None), closed(), end(), id_factory=lambda index: f"made-{index}")
    assert events[0] == ToolCallStarted(0, "made-0", "read")
    assert deviations(events) == [DeviationCode.MISSING_ID]
    assert errors(run(*call()[1:-1], tool(name=None), more("{}"), closed(), end())) == [ErrorCode.MISSING_NAME] * 2
    assert deviations(run(tool(name=""), closed(), end("end_turn"))) == [DeviationCode.EMPTY_CALL]


# The end of calls and answers -----------------------------------------------------------------------------------------


def test_a_block_that_stops_inside_its_arguments_fails_there():
    decoder = MessagesDecoder()
    decoder.feed(tool("write"))
    decoder.feed(more('{"text": "x'))
    (failed,) = decoder.feed(closed())
    assert isinstance(failed, ToolCallFailed)
    assert (failed.error.code, failed.call.arguments) == (ErrorCode.UNTERMINATED_JSON, {"text": "x"})
    assert decoder.feed(end("max_tokens")) == []
    assert decoder.close() == [Ended("max_tokens", None, False)]


def test_fragments_behind_the_stop():
    events = run(*call('{"count": 1}'), more('{"count": 1}'), more("x"), end(), STOP, more("y"))
    assert sealed(events) == [("read", {"count": 1})]
    assert deviations(events) == [AGAIN, LATE]
    waiting = run(*call(""), more('{"count": '), more("1}"), end(), STOP)
    assert sealed(waiting) == [("read", {"count": 1})]
    assert deviations(waiting) == [LATE, LATE]
    assert errors(run(*call(""), more('{"count": '), end(), STOP)) == [ErrorCode.UNTERMINATED_JSON]


def test_arguments_that_are_repeated_whole():
    text = '{"count": 1}'
    for pieces in (
        [text, text],
        [text + text],
        [text, " " + text[:4], text[4:]],
        [text[:3], text[3:] + text[:1], text[1:]],
    ):
        events = run(tool(), *map(more, pieces), closed(), end(), STOP)
        (sealing,) = [event for event in events if isinstance(event, ToolCallFinished)]
        assert (sealing.call.arguments, sealing.call.arguments_json.strip()) == ({"count": 1}, text)
        assert deviations(events) == [AGAIN]
    assert errors(run(tool(), more(text), more(text[:5]), closed(), end())) == [ErrorCode.TRAILING_TEXT]


@pytest.mark.parametrize("reason", ["tool_use", "end_turn", "max_tokens", "pause_turn", "refusal", None])
def test_a_block_without_its_stop(reason):
    """C6: complete arguments are sealed by whatever ends the answer; those that are open fail."""
    for last in ([end(reason)], [end(reason), STOP], [STOP]):
        if reason is None and len(last) == 1 and last != [STOP]:
            continue
        events = run(*call('{"count": 1}')[:-1], *call('{"text": "', "write", "b", 1)[:-1], *last)
        assert sealed(events) == [("read", {"count": 1})]
        assert errors(events) == [ErrorCode.UNTERMINATED_JSON]


def test_an_interrupted_stream():
    broken = ErrorCode.STREAM_INTERRUPTED
    for open_ in (call('{"count": 1}')[:-1], call(""), call("{}"), call('{"count": ')[:-1]):
        assert errors(run(*open_)) == [broken]
        assert errors(run(*open_, end(None), close="error")) == [broken]
    sealed_before = run(*call('{"count": 1}'))
    assert sealed(sealed_before) == [("read", {"count": 1})]
    assert errors(sealed_before) == [broken]
    assert errors(run(says("half"))) == [broken]
    assert run(end("end_turn"), close="error")[-1] == Ended("error", None, False)
    assert run(end("end_turn"), STOP, close="error") == [Ended("end_turn")]


def test_a_promised_call():
    assert errors(run(says("hi"), end("tool_use"), STOP)) == [ErrorCode.MISSING_CALL]
    assert errors(run(says("hi"), end("refusal"), STOP)) == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            "overloaded_error Overloaded",
        ),
        ({"type": "error", "error": "no"}, "no"),
        ({"type": "error"}, "an error without a message"),
        ({"type": "error", "error": {}}, "an error without a message"),
        ({"type": "error", "message": "gone"}, "error gone"),
        ({"error": {"message": "gone"}}, "gone"),
        ({"base_resp": {"status_code": "1002", "status_msg": "rate limit"}}, "1002 rate limit"),
    ],
)
def test_errors_in_the_stream(error, words):
    for form in (error, json.dumps(error)):
        events = run(*call('{"count": 1}')[:-1], form)
        failures = [event for event in events if isinstance(event, ToolCallFailed | Failed)]
        assert [(each.error.code, each.error.reason) for each in failures] == [(ErrorCode.PROVIDER_ERROR, words)] * 2
        assert not sealed(events)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"object": "error", "message": "too long", "code": 400}, "400 too long"),
        ({"detail": "Not authenticated"}, "Not authenticated"),
        ({"code": 401, "msg": "bad key"}, "401 bad key"),
    ],
)
def test_errors_without_a_field_of_their_own(error, words):
    for form in (error, json.dumps(error)):
        failures = [event.error.reason for event in run(form) if isinstance(event, Failed)]
        assert failures == [words]


@pytest.mark.parametrize("late", ["garbage", {"type": "error", "error": {"message": "late"}}, {"detail": "late"}])
def test_nothing_behind_the_last_word_harms_a_whole_answer(late):
    assert run(*ANSWER, late) == EVENTS


def test_a_later_word_that_the_answer_was_cut_counts():
    assert run(says("a"), end("end_turn"), end("max_tokens"), STOP)[-1] == Ended("max_tokens")
    assert run(says("a"), end("null"))[-1] == Ended(None, None, False)


def test_pieces_of_json_that_are_no_text():
    """C7: an object is the arguments."""
    whole = delta(type="input_json_delta", partial_json={"count": 1})
    for form in (whole, json.dumps(whole)):
        for before in ([], [more("")]):
            events = run(tool(), *before, form, closed(), end(), STOP)
            assert sealed(events) == [("read", {"count": 1})]
            assert deviations(events) == [DeviationCode.ARGUMENTS_NOT_TEXT]
    empty = delta(type="input_json_delta", partial_json={})
    assert sealed(run(tool(), empty, closed(), end(), STOP)) == [("read", {})]
    assert sealed(run(tool(), empty, more('{"count": 1}'), closed(), end(), STOP)) == [("read", {"count": 1})]
    for odd in (3, [1]):
        assert not sealed(run(tool(), delta(type="input_json_delta", partial_json=odd), closed(), end(), STOP))


def test_null_in_place_of_no_arguments():
    events = run(*call("null"), end(), STOP)
    assert sealed(events) == [("read", {})]
    assert deviations(events) == [DeviationCode.ARGUMENTS_NOT_TEXT]
    assert not sealed(run(*call("null"), end("max_tokens"), STOP))


def test_half_characters():
    """J2 in arguments; and nothing that cannot be encoded in an event."""
    high, low = "\ud83d", "\ude00"
    events = [tool(), more('{"text": "' + high), more(low + '"}'), closed(), end(), STOP]
    for found in (run(*events), run(*map(json.dumps, events))):
        assert sealed(found) == [("read", {"text": "\U0001f600"})]
    odd = [
        tool("a" + high, "b" + high),
        more("{}"),
        closed(),
        opened({"type": high + "tool_use", "name": high}, 1),
        closed(1),
        end(high),
        STOP,
    ]
    found = run(*odd)
    assert sealed(found) == [("a\ufffd", {}), ("\ufffd", {})]
    again = [tool("a", high), more("{"), tool(None, high), more("}"), closed(), end(), STOP]
    assert sealed(run(*again)) == sealed(run(*map(json.dumps, again))) == [("a", {})]
    for event in [*found, *run(tool(), more("{}"), closed(), more(high), end())]:
        assert streamparse.events.loads(streamparse.events.dumps(event)) is not None
    assert not sealed(run(tool(), more('{"text": "' + high), more('a"}'), closed(), end(), STOP))


def test_a_made_id_is_no_id_of_the_wire():
    two = [tool(id=None), more('{"count": 1}'), tool(id="call_0"), more('{"count": 2}'), closed(), end(), STOP]
    assert sealed(run(*two)) == [("read", {"count": 1}), ("read", {"count": 2})]


def test_text_that_is_no_json_fails_what_may_have_lost_a_piece():
    events = run(tool(), more('{"text": "'), '{"type": "content_bl', more('x"}'), closed(), end(), STOP)
    assert errors(events) == [ErrorCode.INVALID_JSON, ErrorCode.INVALID_JSON]
    assert not sealed(events)


# C9 -------------------------------------------------------------------------------------------------------------------


def m2(text: str, thinking: str = "") -> list[dict[str, Any]]:
    return [begin(M2), *(thinks(each) for each in thinking), *(says(each, 1) for each in text)]


def test_native_text_is_decoded_when_the_model_is_named():
    native = [*streamparse.decode("hi\n" + NATIVE, tools=TOOLS)[:-1], Ended("end_turn")]
    assert run(*m2("hi\n" + NATIVE), end("end_turn"), tools=TOOLS) == native
    whole = {**WHOLE, "model": M2, "content": [{"type": "text", "text": "hi\n" + NATIVE}], "stop_reason": "end_turn"}
    assert without_usage(run(whole, tools=TOOLS)) == native
    assert text_of(run(*m2(NATIVE), end("end_turn"), dialect=None)) == NATIVE
    assert text_of(run(says(NATIVE), end("end_turn"))) == NATIVE
    assert sealed(run(says(NATIVE), end("end_turn"), dialect="minimax_m2")) == [("read", {"text": "a"})]
    begun = run(says(f"why</think>{NATIVE}"), end("end_turn"), dialect="minimax_m2", start="reasoning")
    assert (text_of(begun, Reasoning), sealed(begun)) == ("why", [("read", {"text": "a"})])


def without_usage(events: list[Event]) -> list[Event]:
    return [Ended(each.finish_reason, None, each.clean) if isinstance(each, Ended) else each for each in events]


def test_a_call_in_thinking_counts_if_nothing_follows():
    assert sealed(run(*m2("", f"plan\n{NATIVE}"), end("end_turn"))) == [("read", {"text": "a"})]
    for after in ([says("Done.", 1)], call('{"count": 1}', index=1)):
        followed = run(*m2("", f"plan\n{NATIVE}"), *after, end("end_turn"), STOP)
        assert errors(followed) == [ErrorCode.CALL_IN_REASONING]


def test_a_call_that_comes_again_is_reported_once():
    events = run(*m2(NATIVE), *call('{"text": "a"}', index=2), end(), STOP, tools=TOOLS)
    assert sealed(events) == [("read", {"text": "a"})]
    assert deviations(events) == [DeviationCode.REPEATED_CALL]
    inside = NATIVE.removesuffix("\n</minimax:tool_call>")  # N5: its end is known only with the tag behind it
    again = run(*m2(inside), *call('{"text": "a"}', index=2), end(), STOP, tools=TOOLS)
    assert sealed(again) == [("read", {"text": "a"})]
    other = run(*m2(NATIVE), *call('{"text": "b"}', index=2), end(), STOP, tools=TOOLS)
    assert sealed(other) == [("read", {"text": "a"}), ("read", {"text": "b"})]


def test_a_character_that_is_cut_in_two():
    for halves in ([says("\ud83d"), says("\ude00")], [says("a\ud83d"), thinks(""), says("\ude00b")]):
        assert text_of(run(*halves, end("end_turn"))).strip("ab") == "😀"
    assert text_of(run(thinks("\ud83d"), thinks("\ude00"), end("end_turn")), Reasoning) == "😀"
    lost = run(says("\ud83d"), thinks("\ude00"), *call("{}", index=1), says("\ud83d"), end())
    assert [event.text for event in lost if isinstance(event, Text | Reasoning)] == ["\ufffd"] * 3


# The caller's side ----------------------------------------------------------------------------------------------------


def test_partial_views():
    decoder = MessagesDecoder(tools=TOOLS)
    decoder.feed(tool("write"))
    decoder.feed(more('{"text": "ab'))
    assert (decoder.partial(0).arguments, decoder.partial(0).raw) == ({"text": "ab"}, '{"text": "ab')
    decoder.feed(more('c"}'))
    decoder.feed(closed())
    assert decoder.partial(0).raw == '{"text": "abc"}'
    done = [decoder.done]
    decoder.feed(STOP)
    assert [*done, decoder.done] == [False, True]
    with pytest.raises(UsageError):
        decoder.partial(1)


def test_misuse():
    bad: list[dict[str, Any]] = [{"start": "x"}, {"repair": 4}]
    for options in bad:
        with pytest.raises(UsageError):
            MessagesDecoder(**options)
    with pytest.raises(UnknownDialectError):
        MessagesDecoder(dialect="no such")
    decoder = MessagesDecoder()
    decoder.close()
    with pytest.raises(ClosedError):
        decoder.feed({})
    with pytest.raises(ClosedError):
        decoder.close()


def test_limits():
    limits = Limits(calls=2, arguments=20, name=5)
    many = [each for index in range(4) for each in call('{"count": 1}', id=str(index), index=index)]
    events = run(*many, end(), limits=limits)
    assert len(sealed(events)) == 2
    assert errors(events) == [ErrorCode.LIMIT_EXCEEDED]
    long = run(tool(), more('{"text": "'), *[more("x" * 9)] * 9, more('"}'), closed(), end(), limits=limits)
    assert errors(long) == [ErrorCode.LIMIT_EXCEEDED]
    assert errors(run(*call("{}", "readers"), end(), limits=limits)) == [ErrorCode.LIMIT_EXCEEDED]
    late = run(tool(input={"count": 2}), *[more("x" * 9)] * 9, closed(), end(), limits=limits)
    assert deviations(late) == [LATE]


def test_unknown_tools():
    events = run(*call("{}", "other"), end(), tools=TOOLS)
    assert deviations(events) == [DeviationCode.UNKNOWN_TOOL]


# The SDK's own objects ------------------------------------------------------------------------------------------------


def client(events: list[dict[str, Any]]) -> anthropic.Anthropic:
    """The real client, in front of an endpoint that says these events."""
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    response = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    transport = httpx2.MockTransport(lambda request: response)
    return anthropic.Anthropic(api_key="none", http_client=httpx2.Client(transport=transport), max_retries=0)


REQUEST: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}


def raw_events(events: list[dict[str, Any]]) -> Iterator[Any]:
    with client(events) as sdk, sdk.messages.create(**REQUEST, stream=True) as stream:
        yield from stream


def helper_events(events: list[dict[str, Any]]) -> Iterator[Any]:
    with client(events) as sdk, sdk.messages.stream(**REQUEST) as stream:
        yield from stream


SERVER = [
    begin(input_tokens=1, output_tokens=1),
    opened({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
    more('{"query": "x"}'),
    closed(),
    opened({"type": "web_search_tool_result", "tool_use_id": "s", "content": []}, 1),
    closed(1),
    opened({"type": "text", "text": "", "citations": []}, 2),
    says("found", 2),
    closed(2),
    *call("", index=3),
    *call('{"a": {"b": [1, 2.5, null, "c"]}}', id="b", index=4),
    end("tool_use", output_tokens=3),
    STOP,
]


@pytest.mark.parametrize("objects", [raw_events, helper_events])
@pytest.mark.parametrize("events", [ANSWER, SERVER], ids=["answer", "server"])
def test_objects_of_the_sdk(objects, events):
    given = list(objects(events))
    if objects is helper_events:
        assert {each.type for each in given} >= {"text", "input_json"}
    assert run(*given) == run(*events)


def test_a_whole_message_of_the_sdk():
    with client(ANSWER) as sdk, sdk.messages.stream(**REQUEST) as stream:
        message = stream.get_final_message()
    assert without_verbatim(without_usage(run(message))) == without_verbatim(without_usage(EVENTS))
    assert run(*ANSWER, message) == EVENTS


# Promises -------------------------------------------------------------------------------------------------------------

CHARACTERS = st.characters(exclude_categories=["Cs"])
STRINGS = st.text(CHARACTERS, max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | STRINGS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=6,
)
BLOCKS = st.lists(
    st.tuples(st.just("text"), STRINGS)
    | st.tuples(st.just("thinking"), STRINGS)
    | st.tuples(st.sampled_from(["write", "read"]), st.dictionaries(STRINGS, VALUES, max_size=3)),
    max_size=4,
)


def streams(content: list[tuple[str, Any]], generator: random.Random) -> list[list[dict[str, Any]]]:
    """The events of each block, its text in pieces."""
    found = []
    for index, (kind, value) in enumerate(content):
        if kind in ("text", "thinking"):
            deltas = [(says if kind == "text" else thinks)(piece, index) for piece in shuffled(value, generator)]
            found.append([opened({"type": kind, kind: ""}, index), *deltas, closed(index)])
        else:
            text = json.dumps(value, ensure_ascii=generator.random() < 0.5)
            if not value and generator.random() < 0.5:
                text = ""
            pieces = [more(piece, index) for piece in ["", *shuffled(text, generator)]]
            found.append([tool(kind, f"id{index}", index), *pieces, closed(index)])
    return found


def interleaved(blocks_: list[list[dict[str, Any]]], generator: random.Random) -> list[dict[str, Any]]:
    """All events in an order that keeps that of each block, and in which blocks start one after the other."""
    mixed, waiting = [], list(blocks_)
    running: list[list[dict[str, Any]]] = []
    while waiting or running:
        if waiting and (not running or generator.random() < 0.3):
            running.append(list(waiting.pop(0)))
            mixed.append(running[-1].pop(0))
        else:
            block = generator.choice(running)
            mixed.append(block.pop(0))
            running = [each for each in running if each]
    return mixed


def of_call(events: list[Event], index: int) -> list[Event]:
    found = [event for event in events if getattr(event, "index", None) == index]
    return without_verbatim(join(found))


@given(BLOCKS, st.randoms(use_true_random=False))
def test_neither_the_pieces_nor_their_order_matter(content, generator):
    calls = [(kind, value) for kind, value in content if kind not in ("text", "thinking")]
    in_order = [event for block in streams(content, generator) for event in block]
    mixed = interleaved(streams(content, generator), generator)
    last = end("tool_use" if calls else "end_turn")
    one, other = run(*in_order, last, STOP), run(*mixed, last, STOP)
    for events in (one, other):
        assert sorted(map(repr, sealed(events))) == sorted(map(repr, calls))
        assert not errors(events)
        assert not deviations(events)
        assert sum(map(len, map(str, [text_of(events)]))) == sum(
            len(value) for kind, value in content if kind == "text"
        )
    for index in range(len(calls)):
        assert of_call(one, index) == of_call(other, index)
    assert text_of(one) == "".join(value for kind, value in content if kind == "text")
    assert text_of(one, Reasoning) == "".join(value for kind, value in content if kind == "thinking")
    assert one[-1] == other[-1] == Ended(last["delta"]["stop_reason"], None, True)


@given(st.dictionaries(STRINGS, VALUES, max_size=3), st.integers(0, 40), st.randoms(use_true_random=False))
def test_chunking_never_matters(arguments, cut, generator):
    text = json.dumps(arguments)[:cut] + generator.choice(["", "x", "}", '"', " ", json.dumps(arguments)])
    lasts = [[closed(), end(), STOP], [closed(), end("max_tokens")], [end()], [STOP], [closed()], []]
    last = generator.choice(lasts)
    whole = run(tool(), more(text), *last)
    assert run(tool(), *map(more, shuffled(text, generator)), *last) == whole


@given(
    st.dictionaries(STRINGS, VALUES, max_size=3), st.integers(0, 60), st.sampled_from(["max_tokens", "tool_use", None])
)
def test_a_truncated_call_is_never_sealed(arguments, cut, reason):
    text = json.dumps(arguments)[:-1][:cut]
    if not text:
        return
    for last in ([closed(), end(reason), STOP], [closed()], [end(reason)], [STOP], []):
        events = run(tool(), more(text), *last)
        assert not sealed(events)
        assert isinstance(events[-1], Ended)
        assert not events[-1].clean


KEYS = (
    "type index delta content_block message usage error base_resp content model stop_reason id name input text "
    "thinking partial_json status_code"
).split()
TYPES = st.sampled_from(
    "message_start content_block_start content_block_delta content_block_stop message_delta message_stop message error "
    "ping text_delta input_json_delta thinking_delta tool_use server_tool_use text thinking".split()
)
ANYTHING = st.recursive(
    SCALARS | TYPES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)
SMALL = st.sampled_from([0, 0, 1, 2, None, "1", -1])
PIECES = st.sampled_from(
    ["", "{", "}", '"count"', ": 1", "{}", '{"text": "a"}', "x", " ", NATIVE, "<think>", "null", "\ud83d", "\ude00"]
)
PARTS = st.one_of(
    st.builds(tool, st.sampled_from(["read", "write", "", None]), st.sampled_from(["a", "b", None]), SMALL),
    st.builds(lambda index, given: tool(index=index, input=given), SMALL, ANYTHING),
    st.builds(more, PIECES, SMALL),
    st.builds(says, PIECES, SMALL),
    st.builds(thinks, PIECES, SMALL),
    st.builds(closed, SMALL),
    st.builds(lambda kind, index: opened({"type": kind, "text": "x"}, index), TYPES, SMALL),
    st.builds(end, st.sampled_from(["tool_use", "end_turn", "max_tokens", "error", None])),
    st.just(STOP),
    st.just(WHOLE),
    st.just(begin(M2)),
)


@st.composite
def mutated(draw: st.DrawFn) -> list[Any]:
    """A good answer with events lost, doubled, moved and strange."""
    events: list[Any] = list(draw(st.sampled_from([ANSWER, SERVER, [*call(), *call("{}", "write", "b", 1), end()]])))
    for _ in range(draw(st.integers(0, 6))):
        place = draw(st.integers(0, len(events)))
        match draw(st.sampled_from(["lose", "double", "add", "change"])):
            case "lose":
                del events[place : place + 1]
            case "double":
                events[place:place] = events[place : place + 2]
            case "add":
                events.insert(place, draw(PARTS | ANYTHING))
            case "change" if place < len(events) and isinstance(events[place], dict):
                key = draw(st.sampled_from(KEYS))
                events[place] = {**events[place], key: draw(ANYTHING)}
    return events


CUT = ("length", "max_tokens")
"""E2, N13: as in ``test_chat``."""


@given(
    st.lists(PARTS | ANYTHING, max_size=10) | mutated(),
    st.sampled_from([None, "end_turn", "error", "max_tokens"]),
    st.sampled_from(["auto", None, "minimax_m2"]),
)
def test_total_and_every_started_call_ends_once(given_, finish, dialect):
    events = run(*given_, close=finish, dialect=dialect)
    started = [event.index for event in events if isinstance(event, ToolCallStarted)]
    ended = [event.index for event in events if isinstance(event, ToolCallFinished | ToolCallFailed)]
    assert len(set(started)) == len(started)
    assert len(set(ended)) == len(ended)
    assert set(started) <= set(ended)
    assert isinstance(events[-1], Ended)
    failures = any(isinstance(event, Failed | ToolCallFailed) for event in events)
    assert events[-1].clean is not failures or (events[-1].finish_reason in CUT and not events[-1].clean)
    for event in events:
        assert streamparse.events.loads(streamparse.events.dumps(event)) is not None
    if not any(isinstance(each, str) for each in given_):
        assert run(*map(json.dumps, given_), close=finish, dialect=dialect) == events


@given(st.lists(PARTS, max_size=10))
def test_the_wrong_wire_yields_nothing(events):
    """Neither decoder takes the other's payloads for its own, unless they hold an error."""
    found = [event for each in events for event in ChatDecoder(dialect=None).feed(each)]
    assert not found


def test_linear_in_fragments_and_in_calls():
    """A hang would be the failure: many pieces of one call, calls that stay open, pieces of no call."""
    decoder = MessagesDecoder()
    decoder.feed(tool())
    decoder.feed(more('{"text": "'))
    for _ in range(20_000):
        decoder.feed(more("abc"))
    for index in range(1, 5_000):
        decoder.feed(tool(id=f"c{index}", index=index))
        decoder.feed(more("{", index))
    for index in range(5_000, 10_000):
        for event in call("", id=f"c{index}", index=index):
            decoder.feed(event)
    for index in range(10_000, 15_000):
        decoder.feed(more("{", index))
    for _ in range(20_000):  # a stop reason in every event, while all of them are open
        decoder.feed({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
    decoder.close()


# Thinking that has to go back as it came


SIGNED = [
    opened({"type": "thinking", "thinking": "Lo", "signature": ""}),
    thinks("ok "),
    thinks("first."),
    delta(type="signature_delta", signature="SI"),
    delta(type="signature_delta", signature="G=="),
    closed(),
    opened({"type": "redacted_thinking", "data": "ENC"}, 1),
    closed(1),
    opened({"type": "thinking", "thinking": "Not signed."}, 2),
    closed(2),
]
AS_THEY_CAME = [
    {"type": "thinking", "thinking": "Look first.", "signature": "SIG=="},
    {"type": "redacted_thinking", "data": "ENC"},
]


def thought(*events: Any) -> list[dict[str, Any]]:
    decoder = MessagesDecoder()
    for each in events:
        decoder.feed(each)
    decoder.close()
    return decoder.thinking


@pytest.mark.parametrize(
    "form", [dict, json.dumps, lambda event: json.dumps(event).encode()], ids=["dict", "text", "bytes"]
)
def test_signed_thinking_is_kept_as_it_came(form):
    assert thought(*map(form, [begin(), *SIGNED, *call(index=3), end(), STOP])) == AS_THEY_CAME


def test_signed_thinking_of_a_whole_message():
    content = [*AS_THEY_CAME, {"type": "thinking", "thinking": "Not signed."}]
    assert (
        thought({"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"}) == AS_THEY_CAME
    )


def test_thinking_whose_signature_has_not_come_is_not_kept():
    assert thought(begin(), *SIGNED[:3]) == []
    assert thought(begin(), *SIGNED[:5]) == []  # there might have been more of it
    assert thought(begin(), *SIGNED[:5], SIGNED[6]) == AS_THEY_CAME[:1]  # its end got lost, but it has ended


@pytest.mark.parametrize("odd", [None, 3, {}, ["x"]])
def test_odd_signatures_are_none(odd):
    block = opened({"type": "thinking", "thinking": "x", "signature": odd})
    assert thought(begin(), block, delta(type="signature_delta", signature=odd)) == []
    assert thought(begin(), opened({"type": "redacted_thinking", "data": odd})) == []


def test_signatures_give_no_events():
    assert run(begin(), *SIGNED, end("end_turn"), STOP)[:-1] == [Reasoning("Look first.Not signed.")]
