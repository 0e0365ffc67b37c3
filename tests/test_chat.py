"""OpenAI-style chunks: the rules C by number, and what every decoder promises, on this wire."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamparse
from streamparse import (
    ArgumentDelta,
    ArgumentValue,
    ChunkEncoder,
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
from streamparse.decoding import wire
from streamparse.decoding.chat import DONE, ChatDecoder
from streamparse.decoding.lenient import Told, told
from tests.chunks import check_chunking, join

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "count": {"type": "integer"},
                    "items": {"type": "array"},
                    "flag": {"type": "boolean"},
                },
            },
        },
    }
    for name in ("write", "write_all", "read")
]

M2 = "MiniMaxAI/MiniMax-M2.1"


def chunk(finish_reason: str | None = None, *, index: int = 0, **delta: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": index, "delta": delta, "finish_reason": finish_reason}]}


def call(
    arguments: Any = None,
    *,
    index: int | None = 0,
    id: str | None = None,  # noqa: A002 - the field's own name
    name: str | None = None,
) -> dict[str, Any]:
    function = {"arguments": arguments} | ({} if name is None else {"name": name})
    entry = {"function": function} | ({} if index is None else {"index": index}) | ({} if id is None else {"id": id})
    return chunk(tool_calls=[entry])


FINISH = chunk("tool_calls")


def run(*chunks: Any, close: str | None = None, **options: Any) -> list[Event]:
    decoder = ChatDecoder(**options)
    events = [event for each in chunks for event in decoder.feed(each)]
    return join(events + decoder.close(close))


def sealed(events: list[Event]) -> list[tuple[str, dict[str, Any]]]:
    return [(event.call.name, event.call.arguments) for event in events if isinstance(event, ToolCallFinished)]


def errors(events: list[Event]) -> list[ErrorCode]:
    return [event.error.code for event in events if isinstance(event, Failed | ToolCallFailed)]


def deviations(events: list[Event]) -> list[DeviationCode]:
    return [event.deviation.code for event in events if isinstance(event, Deviated)]


def text_of(events: list[Event], kind: type[Text] | type[Reasoning] = Text) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


def test_the_events_of_a_call():
    arguments = '{"text": "a\\nb", "items": [1, {"x": "y"}]}'
    events = run(call("", id="c1", name="write"), call(arguments), FINISH, DONE, tools=TOOLS)
    assert events == [
        ToolCallStarted(0, "c1", "write"),
        ArgumentDelta(0, ("text",), "a\nb"),
        ArgumentValue(0, ("text",), "a\nb"),
        ArgumentValue(0, ("items", 0), 1),
        ArgumentDelta(0, ("items", 1, "x"), "y"),
        ArgumentValue(0, ("items", 1, "x"), "y"),
        ArgumentValue(0, ("items", 1), {"x": "y"}),
        ArgumentValue(0, ("items",), [1, {"x": "y"}]),
        ToolCallFinished(0, ToolCall("c1", "write", json.loads(arguments), arguments)),
        Ended("tool_calls", None, True),
    ]


# C1 -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "odd",
    [
        {},
        [],
        None,
        3,
        "  ",
        "3",
        "[]",
        b"{}",
        object(),
        {"choices": None},
        {"choices": [None, 3, {}]},
        {"choices": [{"delta": 3}]},
        {"choices": [{"delta": {"content": 3, "tool_calls": 7}}]},
        {"choices": [{"delta": {"tool_calls": [None, {}, {"function": None}, {"function": {}}]}}]},
        {"choices": [{"delta": {"content": "", "reasoning_content": None}}], "usage": []},
        {1: 2},
    ],
    ids=repr,
)
def test_a_chunk_without_anything_known_is_skipped(odd):
    assert run(odd, FINISH | {"choices": [{"finish_reason": "stop"}]}) == [Ended("stop", None, True)]


def test_one_odd_field_costs_nothing_else():
    odd = {"choices": [{"index": "0", "delta": {"content": "hi", "reasoning": 3}, "finish_reason": "stop"}]}
    assert run(odd) == [Text("hi"), Ended("stop", None, True)]
    assert run(json.dumps(odd)) == run(odd)


def test_content_in_parts():
    parts = [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": [{"type": "text", "text": "b"}]}, "c", 3]
    assert run(chunk(content=parts), chunk("stop")) == [Text("a"), Reasoning("b"), Text("c"), Ended("stop")]


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "why"},
        {"reasoning": "why"},
        {"reasoning": "why", "reasoning_details": [{"type": "reasoning.text", "text": "why"}]},
        {"reasoning_details": [{"text": "w"}, {"text": "hy"}]},
        {"reasoning_content": "", "reasoning_details": [{"summary": "why"}]},
    ],
)
def test_reasoning_fields(delta):
    assert run(chunk(**delta), chunk("stop")) == [Reasoning("why"), Ended("stop")]


def test_cumulative_fields():
    snapshots = [chunk(reasoning_details=[{"text": "a"}]), chunk(reasoning_details=[{"text": "and"}])]
    assert text_of(run(*snapshots, chunk("stop")), Reasoning) == "aand"
    assert text_of(run(*snapshots, chunk("stop"), cumulative=["reasoning"]), Reasoning) == "and"


def test_other_choices_are_told_or_read():
    chunks = [chunk(content="a"), chunk(index=1, content="b"), chunk(index=1, content="b"), chunk("stop")]
    events = run(*chunks)
    assert text_of(events) == "a"
    assert deviations(events) == [DeviationCode.OTHER_CHOICE]
    decoders = [ChatDecoder(choice=index) for index in (0, 1)]
    for each in map(wire.read, chunks):
        for decoder in decoders:
            decoder.feed(each)
    assert [decoder.choices for decoder in decoders] == [[0, 1], [0, 1]]
    assert run(*chunks, choice=1, close="stop") == [Text("bb"), Ended("stop")]


def test_usage_from_an_sdk():
    class Usage:
        def model_dump(self):
            return {"total_tokens": 3}

    last = SimpleNamespace(choices=[], usage=Usage())
    assert run(chunk("stop"), last)[-1] == Ended("stop", {"total_tokens": 3}, True)


def test_surrogates_never_reach_an_event():
    events = run('{"choices": [{"delta": {"content": "\\ud83d"}, "finish_reason": "stop"}]}')
    assert events == [Text("\ufffd"), Ended("stop")]


def test_a_character_that_is_cut_in_two():
    """Two chunks, each with half of a surrogate pair, in any form that a chunk may have."""
    for form in (dict, json.dumps):
        for field, kind in (("content", Text), ("reasoning", Reasoning)):
            halves = [form({"choices": [{"delta": {field: half}}]}) for half in ("a\ud83d", "\ude00b")]
            assert run(*halves, chunk("stop")) == [kind("a😀b"), Ended("stop")]
    parts = [chunk(content=[{"type": "text", "text": half}]) for half in ("\ud83d", "\ude00")]
    assert run(*parts, chunk("stop")) == [Text("😀"), Ended("stop")]
    lost = run(chunk(content="\ud83d"), chunk(reasoning="x"), chunk(content="\ude00"), chunk("stop"))
    assert lost == [Text("\ufffd"), Reasoning("x"), Text("\ufffd"), Ended("stop")]
    called = run(chunk(content="\ud83d"), call("{}", id="a", name="read"), chunk(content="\ude00"), FINISH)
    assert [event.text for event in called if isinstance(event, Text)] == ["\ufffd", "\ufffd"]


def test_text_that_is_no_json_fails_what_may_have_lost_a_piece():
    events = run(call('{"text": "', id="c", name="write"), '{"choices": [{"del', call('x"}'), FINISH)
    assert errors(events) == [ErrorCode.INVALID_JSON, ErrorCode.INVALID_JSON]
    assert not sealed(events)


# C2, C3 ---------------------------------------------------------------------------------------------------------------


def test_another_id_on_a_used_index_opens_a_call():
    events = run(call("{}", id="a", name="read"), call("{}", id="b", name="read"), FINISH)
    assert sealed(events) == [("read", {}), ("read", {})]


def test_without_index_a_name_opens_and_its_repetition_does_not():
    first = [call('{"text": ', index=None, name="read"), call('"a"}', index=None, name="read")]
    events = run(*first, call("{}", index=None, name="write"), FINISH)
    assert sealed(events) == [("read", {"text": "a"}), ("write", {})]


def test_a_fragment_without_any_word_is_not_guessed_between_two_calls():
    two = [call("", id="a", name="read"), call("", id="b", name="read", index=1)]
    events = run(*two, call("{}", index=5), FINISH)
    assert errors(events) == [ErrorCode.MISSING_NAME]
    assert sealed(events) == [("read", {}), ("read", {})]


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize("first", ["", '{"cou'])
@pytest.mark.parametrize("tools", [TOOLS, None])
def test_an_id_that_comes_late_opens_no_call(index, first, tools):
    """C2: a *different* id opens a call; behind no id there is none. The id that was told stays."""
    rest = '{"count": 1}'.removeprefix(first)
    for name in (None, "read"):
        events = run(
            call(first, name="read", index=index),
            call(rest, id="c1", name=name, index=index),
            call(" ", id="c1", index=index),
            call('{"count": 2}', id="c2", name="read", index=index),
            FINISH,
            tools=tools,
        )
        assert sealed(events) == [("read", {"count": 1}), ("read", {"count": 2})]
        assert not errors(events)
        started = [event.id for event in events if isinstance(event, ToolCallStarted)]
        assert started == ["c1" if not first and tools is None else "call_0", "c2"]


def test_a_made_id_is_no_id_of_the_wire():
    made = call("", name="read")
    events = run(made, call('{"count": 1}'), call('{"count": 2}', id="call_0", name="read"), FINISH, tools=TOOLS)
    assert sealed(events) == [("read", {"count": 1}), ("read", {"count": 2})]
    assert DeviationCode.REPEATED_ID in deviations(events)


def test_an_id_and_a_name_behind_a_sealed_call_open_the_next():
    head = [call("{}", name="read"), FINISH]
    events = run(*head, call("", id="c", name="read"), call('{"count": 1}'), FINISH)
    assert sealed(events) == [("read", {}), ("read", {"count": 1})]


def test_an_id_behind_complete_arguments_harms_no_call():
    for index in (0, None):
        events = run(call("{}", name="read", index=index), call("{}x", id="c", index=index), FINISH)
        assert sealed(events) == [("read", {})]


@pytest.mark.parametrize("index", [0, None])
def test_one_id_for_several_calls(index):
    """C4: both are kept."""
    two = [call(f'{{"count": {count}}}', id="x", name="read", index=index) for count in (1, 2)]
    events = run(*two, FINISH)
    assert sealed(events) == [("read", {"count": 1}), ("read", {"count": 2})]
    assert deviations(events) == [DeviationCode.REPEATED_ID]
    again = [call(piece, id="x", name="read", index=index) for piece in ('{"count": 1}', '{"count"', ": 1}", "\n")]
    assert sealed(run(*again, FINISH)) == [("read", {"count": 1})]


def test_names_in_pieces():
    assert sealed(run(call(id="c", name="wri"), call(name="te"), call("{}"), FINISH)) == [("write", {})]
    restated = run(call(id="c", name="writ"), call(name="write"), call("{}"), FINISH, tools=TOOLS)
    assert sealed(restated) == [("write", {})]


def test_a_declared_name_starts_at_once_unless_it_begins_another():
    decoder = ChatDecoder(tools=TOOLS)
    assert decoder.feed(call("", id="a", name="read")) == [ToolCallStarted(0, "a", "read")]
    assert decoder.feed(call("", id="b", name="write", index=1)) == []
    assert decoder.feed(call("", name="_all", index=1)) == [ToolCallStarted(1, "b", "write_all")]


def test_another_name_in_the_arguments_is_no_longer_trusted():
    events = run(call("{", id="c", name="read"), call("}", name="write"), FINISH)
    (end,) = [event for event in events if isinstance(event, ToolCallFinished)]
    assert end.call.name == "read"
    assert not end.call.trusted
    assert deviations(events) == [DeviationCode.CONFLICTING_NAME]


def test_arguments_before_the_name_wait_for_it():
    events = run(call('{"text": "a', id="c"), call('b"}', name="read"), FINISH)
    assert events[:2] == [ToolCallStarted(0, "c", "read"), ArgumentDelta(0, ("text",), "ab")]
    assert sealed(events) == [("read", {"text": "ab"})]


# C4 -------------------------------------------------------------------------------------------------------------------


def test_ids_are_made_where_they_are_missing():
    events = run(call("{}", name="read"), FINISH, id_factory=lambda index: f"made-{index}")
    assert events[0] == ToolCallStarted(0, "made-0", "read")
    assert deviations(events) == [DeviationCode.MISSING_ID]


def test_a_repeated_id_is_told_and_both_calls_are_kept():
    events = run(call("{}", id="c", name="read"), call("{}", id="c", name="write", index=1), FINISH)
    assert sealed(events) == [("read", {}), ("write", {})]
    assert deviations(events) == [DeviationCode.REPEATED_ID]


# C5, C6, J4, E3 -------------------------------------------------------------------------------------------------------


def test_nothing_is_sealed_because_it_parses():
    decoder = ChatDecoder()
    events = decoder.feed(call("{}", id="a", name="read")) + decoder.feed(call("  "))
    assert not sealed(events)
    assert sealed(decoder.feed(call("{", id="b", name="read", index=1))) == [("read", {})]
    assert not sealed(decoder.feed(call("}", index=1)))
    assert sealed(decoder.feed(FINISH)) == [("read", {})]


def test_late_and_repeated_fragments():
    first = call('{"count": 1}', id="a", name="read")
    events = run(first, call('{"count": 1}'), FINISH, call('{"count": 1}'), call("x"))
    assert sealed(events) == [("read", {"count": 1})]
    repeated = DeviationCode.REPEATED_ARGUMENTS
    assert deviations(events) == [repeated, repeated, DeviationCode.LATE_FRAGMENT]


def test_arguments_repeated_whole_however_they_are_cut():
    text = '{"count": 1}'

    def decode(pieces: list[str]) -> list[Event]:
        return run(call("", id="a", name="read"), *map(call, pieces), FINISH)

    for raw in (text + text, f"{text} {text}\n"):
        events = check_chunking(decode, raw)
        assert sealed(events) == [("read", {"count": 1})]
        assert deviations(events) == [DeviationCode.REPEATED_ARGUMENTS]
    for raw in (text + text[:-1], text + '{"count": 2}', text + "x"):
        assert errors(check_chunking(decode, raw)) == [ErrorCode.TRAILING_TEXT]


@pytest.mark.parametrize("finish", ["tool_calls", "stop", "function_call", "tool_call", "eos"])
def test_no_arguments_are_an_empty_object_at_a_regular_end(finish):
    finishes = (finish, finish.upper())
    for word in finishes:
        assert sealed(run(call("", id="a", name="read"), chunk(word))) == [("read", {})]
    (end,) = [
        event for event in run(call("", id="a", name="read"), chunk(finish)) if isinstance(event, ToolCallFinished)
    ]
    assert end.call.arguments == {}
    assert end.call.arguments_json == "{}"


@pytest.mark.parametrize("last", [chunk("length"), DONE, chunk("content_filter"), chunk("error"), {}])
def test_no_arguments_are_truncation_anywhere_else(last):
    events = run(call("", id="a", name="read"), last)
    assert not sealed(events)
    assert len(errors(events)) == 1
    assert isinstance(events[-1], Ended)
    assert not events[-1].clean


def test_a_later_word_that_the_answer_was_cut_counts():
    """C6: an empty call that may have been cut is not {}."""
    events = run(call("", id="a", name="read"), chunk("tool_calls"), chunk("length"), DONE)
    assert errors(events) == [ErrorCode.UNTERMINATED_JSON]
    assert events[-1] == Ended("length", None, False)
    assert run(chunk("length"), chunk("stop"))[-1] == Ended("length")
    assert run(chunk("stop"), chunk("tool_calls"))[-1] == Ended("stop")


@pytest.mark.parametrize("word", ["null", "None", " "])
def test_words_that_are_no_finish_reason(word):
    events = run(call("{}", id="a", name="read"), chunk(word))
    assert errors(events) == [ErrorCode.STREAM_INTERRUPTED]
    assert events[-1] == Ended(None, None, False)
    assert run(chunk(word, content="a"), chunk("stop"))[-1] == Ended("stop")


def test_a_promise_in_capitals():
    assert errors(run(chunk("TOOL_CALLS", content="a"))) == [ErrorCode.MISSING_CALL]


def test_null_in_place_of_no_arguments():
    """C5: some servers write it for a tool without parameters."""

    def decode(pieces: list[str]) -> list[Event]:
        return run(call("", id="a", name="read"), *map(call, pieces), FINISH)

    events = check_chunking(decode, " null\n")
    assert sealed(events) == [("read", {})]
    assert deviations(events) == [DeviationCode.ARGUMENTS_NOT_TEXT]
    (end,) = [event for event in events if isinstance(event, ToolCallFinished)]
    assert end.call.arguments_json == "{}"
    assert end.call.trusted
    for cut in (chunk("length"), chunk("content_filter"), {}):
        assert not sealed(run(call("null", id="a", name="read"), cut))
    for other in ("nullnull", 'null{"count": 1}', "nul", '"null"', "None", object()):
        assert not sealed(run(call(other, id="a", name="read"), FINISH, repair=0))


def test_complete_but_interrupted():
    assert errors(run(call("{}", id="a", name="read"))) == [ErrorCode.STREAM_INTERRUPTED]
    assert errors(run(call("{}", id="a", name="read"), close="error")) == [ErrorCode.STREAM_INTERRUPTED]
    assert errors(run(chunk(content="half"))) == [ErrorCode.STREAM_INTERRUPTED]
    assert sealed(run(call("{}", id="a", name="read"), DONE)) == [("read", {})]
    assert run(chunk("stop"), close="error")[-1] == Ended("error", None, False)
    assert run(chunk("stop"), DONE, close="error") == [Ended("stop", None, True)]


@pytest.mark.parametrize(
    "cut",
    [
        {"finish_reason": "length"},
        {"finish_reason": "tool_calls", "native_finish_reason": "MAX_TOKENS"},
        {"finish_reason": "model_length"},
    ],
)
def test_cut_at_its_length(cut):
    calls = [call('{"count": 1}', id="a", name="read"), call('{"text": "x', id="b", name="write", index=1)]
    events = run(*calls, {"choices": [{**cut}]})
    assert sealed(events) == [("read", {"count": 1})]
    (failed,) = [event for event in events if isinstance(event, ToolCallFailed)]
    assert failed.error.code is ErrorCode.UNTERMINATED_JSON
    assert failed.call.arguments == {"text": "x"}
    assert failed.call.raw == '{"text": "x'
    told = "length" if "native_finish_reason" in cut else cut["finish_reason"]
    assert events[-1] == Ended(told, None, False)


# C7, C8, C10 ----------------------------------------------------------------------------------------------------------


def test_arguments_that_are_no_text():
    events = run(call({"text": "a", "count": 2}, id="a", name="read"), FINISH)
    assert sealed(events) == [("read", {"text": "a", "count": 2})]
    assert deviations(events) == [DeviationCode.ARGUMENTS_NOT_TEXT]
    assert errors(run(call(object(), id="a", name="read"), FINISH)) == [ErrorCode.NOT_AN_OBJECT]


MESSAGE = {
    "role": "assistant",
    "reasoning_content": "why",
    "content": "hi",
    "tool_calls": [
        {"id": "a", "function": {"name": "read", "arguments": '{"text": "x"}'}},
        {"id": "b", "function": {"name": "read", "arguments": "{}"}},
    ],
}


def test_a_whole_completion_gives_the_same_events():
    pieces = [chunk(reasoning_content="why"), chunk(content="hi")]
    pieces += [call('{"text": "x"}', id="a", name="read"), call("{}", id="b", name="read", index=1), FINISH]
    whole = {"choices": [{"index": 0, "message": MESSAGE, "finish_reason": "tool_calls"}], "usage": {"total_tokens": 1}}
    events = run(whole)
    assert events[:-1] == run(*pieces)[:-1]
    assert events[-1] == Ended("tool_calls", {"total_tokens": 1}, True)
    assert run(*pieces, whole) == events


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"error": {"code": 429, "message": "slow down"}}, "429 slow down"),
        ({"error": "no"}, "no"),
        ({"error": ["no", {"msg": "never"}]}, "no; never"),
        ({"error": {"x": 1}}, "an error without a message"),
        ({"base_resp": {"status_code": "1002", "status_msg": "rate limit"}}, "1002 rate limit"),
        ({"choices": [{"delta": {}, "error": {"message": "gone"}}]}, "gone"),
    ],
)
def test_errors_in_the_stream(error, words):
    events = run(call("{}", id="a", name="read"), error)
    assert [
        (event.error.code, event.error.reason) for event in events if isinstance(event, ToolCallFailed | Failed)
    ] == [(ErrorCode.PROVIDER_ERROR, words)] * 2
    assert not sealed(events)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            {"object": "error", "message": "too long", "type": "BadRequestError", "code": 400},
            "400 BadRequestError too long",
        ),
        ({"object": "error", "message": "too long", "code": None}, "too long"),
        ({"detail": "Not authenticated"}, "Not authenticated"),
        ({"detail": [{"loc": ["body", "tools"], "msg": "missing"}]}, "body.tools: missing"),
        ({"code": 401, "msg": "bad key", "data": None}, "401 bad key"),
        ({"code": "InvalidParameter", "message": "bad"}, "InvalidParameter bad"),
        ({"status": 429, "message": "slow down", "choices": []}, "slow down"),
        ({"type": "error", "message": "boom"}, "error boom"),
        ({"error": {"code": 502, "metadata": {}, "msg": "gone"}}, "502 gone"),
    ],
)
def test_errors_without_a_field_of_their_own(error, words):
    for form in (error, json.dumps(error), SimpleNamespace(**error), wire.read(json.dumps(error))):
        events = run(call("{}", id="a", name="read"), form, DONE)
        failures = [event.error for event in events if isinstance(event, ToolCallFailed | Failed)]
        assert [(each.code, each.reason) for each in failures] == [(ErrorCode.PROVIDER_ERROR, words)] * 2


@pytest.mark.parametrize(
    "given",
    [
        {"message": "warming up"},
        {"code": 0, "msg": "success"},
        {"code": 200, "message": "ok", "type": "error"},
        {"detail": ""},
        {"type": "status", "message": "queued", "status": "running"},
        {"choices": [{"delta": {"content": "a"}}], "message": "hi", "code": 7, "detail": "x"},
    ],
)
def test_what_is_no_error(given):
    events = run(given, chunk("stop"))
    assert not errors(events)
    assert run(json.dumps(given), chunk("stop")) == events
    assert text_of(events) == ("a" if "choices" in given else "")


def test_where_an_error_stands_makes_no_difference():
    error = {"code": 502, "message": "upstream"}
    found = [told({"error": error}), told({"choices": [{"delta": {}, "error": error}]}), told([{"error": error}])]
    assert found == [Told(("502",), "upstream")] * 3
    assert told({"message": "bad", "code": "x"}) == Told(("x",), "bad")
    bare = told({"message": "bad"})
    assert bare is not None
    assert not bare.certain
    assert told({"base_resp": {"status_code": 1002, "status_msg": "slow"}}) == Told(("1002",), "slow", minimax=True)
    assert told({"choices": [{"delta": {"content": "x"}}], "message": "hi"}) is None


@pytest.mark.parametrize(
    "late", ["garbage", {"error": {"message": "late"}}, {"detail": "late"}, call("{", id="z", name="read"), FINISH]
)
def test_nothing_behind_the_last_word_harms_a_whole_answer(late):
    """S: behind ``[DONE]`` only usage counts."""
    usage = {"choices": [], "usage": {"total_tokens": 3}}
    before = [chunk(content="a"), chunk("stop"), DONE]
    assert run(*before, late, usage) == [Text("a"), Ended("stop", {"total_tokens": 3}, True)]


def test_usage_in_other_places():
    moonshot = chunk("stop")
    moonshot["choices"][0]["usage"] = {"total_tokens": 3}
    groq = {**chunk("stop"), "x_groq": {"id": "r", "usage": {"total_tokens": 3}}}
    for last in (moonshot, groq):
        for form in (last, json.dumps(last)):
            assert run(form) == [Ended("stop", {"total_tokens": 3})]


def test_entries_without_function():
    flat = chunk(tool_calls=[{"index": 0, "id": "a", "name": "read", "arguments": '{"count"'}])
    more = chunk(tool_calls=[{"index": 0, "arguments": ": 1}"}])
    assert sealed(run(flat, more, FINISH)) == [("read", {"count": 1})]
    assert sealed(run(json.dumps(flat), json.dumps(more), FINISH)) == [("read", {"count": 1})]
    custom = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}
    (end,) = [event for event in run(chunk(tool_calls=[custom]), FINISH) if isinstance(event, ToolCallFailed)]
    assert (end.call.name, end.call.raw, end.error.code) == ("shell", "ls -l", ErrorCode.INVALID_JSON)


def test_a_character_of_an_argument_that_is_cut_in_two():
    """J2: as dicts and as JSON text, with whatever stands around it."""
    high, low = "\ud83d", "\ude00"
    for pieces in (
        ['{"text": "a' + high, low + 'b"}'],
        ['{"text": "a', high, low, 'b"}'],
        ["", '{"text": "a' + high, low + 'b"}'],
    ):
        for name in ("read", ""):
            head, *rest, last = pieces
            named = call(last, name="" if name else "read")  # at the end, it waits for the name
            chunks = [call(head, id="c", name=name), *map(call, rest), named, FINISH]
            for events in (run(*chunks), run(*map(json.dumps, chunks))):
                assert sealed(events) == [("read", {"text": "a\U0001f600b"})]
                assert not deviations(events)


@pytest.mark.parametrize(
    "pieces", [['{"text": "\ud83d', 'a"}'], ['{"text": "\ude00"}'], ['{"text": "\ud83d'], ["\ud83d"]]
)
def test_half_a_character_in_an_argument_fails_the_call(pieces):
    for last in (FINISH, chunk("length"), {}, {"error": "x"}):
        events = run(call("", id="c", name="read"), *map(call, pieces), last)
        assert not sealed(events)
        assert [type(event) for event in events if isinstance(event, ToolCallFailed)] == [ToolCallFailed]
        for event in events:
            assert streamparse.events.loads(streamparse.events.dumps(event)) is not None


def test_half_a_character_in_a_name_or_an_id():
    odd = "a\ud800"
    chunks: list[Any] = [
        call("{}", id=odd, name=odd),
        call("{}", id=odd, name="b\udfff", index=1),
        call("x\ud800", index=0),
        {"choices": [{"index": 0, "delta": {"function_call": {"name": odd, "arguments": "{}"}}, "finish_reason": odd}]},
    ]
    events = run(*chunks, "no JSON \ud800")
    assert [name for name, _ in sealed(events)] == ["a\ufffd", "b\ufffd", "a\ufffd"]
    for event in events:
        assert streamparse.events.loads(streamparse.events.dumps(event)) is not None
    assert run(*map(json.dumps, chunks), "no JSON \ud800") == events
    usage = {"total_tokens": 3, "details": [{odd: odd}]}
    sound = {"total_tokens": 3, "details": [{"a\ufffd": "a\ufffd"}]}
    assert run({**chunk("stop"), "usage": usage})[-1] == Ended("stop", sound)


def test_no_error():
    events = run({"error": None, "base_resp": {"status_code": 0}}, {"base_resp": {"status_code": "0"}}, chunk("stop"))
    assert events == [Ended("stop")]


def test_legacy_function_call():
    pieces = [
        chunk(function_call={"name": "read", "arguments": ""}),
        chunk(function_call={"arguments": '{"count": 1}'}),
    ]
    events = run(*pieces, chunk("function_call"))
    assert sealed(events) == [("read", {"count": 1})]
    assert not deviations(events)


# C9 -------------------------------------------------------------------------------------------------------------------

NATIVE = (
    '<minimax:tool_call>\n<invoke name="read">\n<parameter name="text">a</parameter>\n</invoke>\n</minimax:tool_call>'
)


def m2(*, content: str = "", reasoning_content: str = "") -> list[dict[str, Any]]:
    delta = {"content": content, "reasoning_content": reasoning_content}
    return [{"model": M2, "choices": [{"delta": {name: piece}}]} for name, text in delta.items() for piece in text]


def test_native_text_is_decoded_when_the_model_is_named():
    events = run(*m2(content="hi\n" + NATIVE), chunk("stop"), tools=TOOLS)
    assert events == [*streamparse.decode("hi\n" + NATIVE, tools=TOOLS)[:-1], Ended("stop")]
    for options in ({"dialect": None}, {}):
        chunks = m2(content=NATIVE) if options else [chunk(content=NATIVE)]
        assert text_of(run(*chunks, chunk("stop"), **options)) == NATIVE
    assert sealed(run(chunk(content=NATIVE), chunk("stop"), dialect="minimax_m2")) == [("read", {"text": "a"})]


@pytest.mark.parametrize("model", ["MiniMax-M2", "minimax/minimax-m2.5", "MiniMaxAI/MiniMax-M2.1", "MINIMAX_M2"])
def test_names_of_the_model(model):
    assert sealed(run({**chunk(content=NATIVE), "model": model}, chunk("stop"))) == [("read", {"text": "a"})]


def test_a_call_in_reasoning_counts_if_nothing_follows():
    reasoning = m2(reasoning_content=f"plan\n{NATIVE}")
    assert sealed(run(*reasoning, chunk("stop"))) == [("read", {"text": "a"})]
    followed = run(*reasoning, chunk(content="Done."), chunk("stop"))
    assert errors(followed) == [ErrorCode.CALL_IN_REASONING]
    assert text_of(followed) == "Done."


def test_native_text_that_was_cut_is_not_clean():
    """E2: the call stays sealed although its envelope was left open."""
    events = run(*m2(content=NATIVE.removesuffix("</minimax:tool_call>")), chunk("length"), tools=TOOLS)
    assert sealed(events) == [("read", {"text": "a"})]
    assert not errors(events)
    assert events[-1] == Ended("length", None, False)
    assert run(*m2(reasoning_content="why"), chunk("length"))[-1] == Ended("length")


def test_a_call_that_comes_again_is_reported_once():
    again = call('{"text": "a"}', id="c", name="read")
    events = run(*m2(content=NATIVE), again, FINISH, tools=TOOLS)
    assert sealed(events) == [("read", {"text": "a"})]
    assert deviations(events) == [DeviationCode.REPEATED_CALL]
    other = run(*m2(content=NATIVE), call('{"text": "b"}', id="c", name="read"), FINISH, tools=TOOLS)
    assert sealed(other) == [("read", {"text": "a"}), ("read", {"text": "b"})]
    assert ToolCallStarted(1, "c", "read") in other


def native(**values: str) -> str:
    parameters = "".join(f'<parameter name="{key}">{value}</parameter>\n' for key, value in values.items())
    return f'<minimax:tool_call>\n<invoke name="pay">\n{parameters}</invoke>\n</minimax:tool_call>'


@pytest.mark.parametrize(
    ("text", "value", "same"),
    [
        ("100", "100", True),
        ("100.0", "100", True),
        ("1e2", "100.0", True),
        ("true", "true", True),
        ("null", "null", True),
        ("abc", '"abc"', True),
        ("[1, 2.0]", "[1.0, 2]", True),
        ("100", "101", False),
        ("100", '"1e"', False),
        ("abc", '"abd"', False),
        ("1", "true", False),
    ],
)
def test_a_repeated_call_is_known_by_its_values(text, value, same):
    """C9: native text has no types."""
    again = call(f'{{"eur": {value}}}', id="c", name="pay")
    assert (len(sealed(run(*m2(content=native(eur=text)), again, FINISH))) == 1) is same


def test_a_structured_call_that_comes_again_in_the_text():
    """C9: both were told, and only the first may run unasked."""
    first, text = call('{"eur": 100}', id="c", name="pay"), m2(content=native(eur="100"))
    other = m2(content=native(eur="7"))
    for chunks in ([first, *text], [first, call("{}", id="d", name="read"), *text]):
        events = run(*chunks, FINISH, dialect="minimax_m2")
        ends = [event.call for event in events if isinstance(event, ToolCallFinished) and event.call.name == "pay"]
        assert sorted(end.trusted for end in ends) == [False, True]
        assert DeviationCode.REPEATED_CALL in deviations(events)
    assert DeviationCode.REPEATED_CALL not in deviations(run(first, *other, FINISH, dialect="minimax_m2"))


def test_a_call_that_comes_again_while_the_text_still_holds_it_back():
    """N5: the end of a call in the text is known only with the tag behind it."""
    again = call('{"text": "a"}', id="c", name="read")
    inside = NATIVE.removesuffix("\n</minimax:tool_call>")
    for last in (FINISH, DONE):
        events = run(*m2(content=inside), again, last, tools=TOOLS)
        assert sealed(events) == [("read", {"text": "a"})]
        assert deviations(events)[-1] == DeviationCode.REPEATED_CALL


def test_another_name_opens_a_call_although_the_id_is_repeated():
    for index in (0, None):
        two = [call("{}", id="c", name=name, index=index) for name in ("read", "write")]
        events = run(*two, FINISH)
        assert sealed(events) == [("read", {}), ("write", {})]
        assert deviations(events) == [DeviationCode.REPEATED_ID]


def test_an_orphan_closer_however_it_is_cut():
    def decode(pieces: list[str]) -> list[Event]:
        chunks = [chunk(content=piece) for piece in pieces]
        return run(chunk(reasoning_content="plan"), *chunks, chunk("stop"), dialect="minimax_m2")

    events = check_chunking(decode, "</think>\n\nAnswer")
    assert text_of(events) == "Answer"
    assert deviations(events) == [DeviationCode.ORPHAN_CLOSER]
    assert text_of(check_chunking(decode, "</thin")) == "</thin"


# The caller's side ----------------------------------------------------------------------------------------------------


def test_partial_views():
    decoder = ChatDecoder(tools=TOOLS)
    decoder.feed(call('{"text": "ab', id="c", name="read"))
    assert decoder.partial(0).arguments == {"text": "ab"}
    assert decoder.partial(0).raw == '{"text": "ab'
    decoder.feed(call('c"}'))
    decoder.feed(FINISH)
    assert decoder.partial(0).raw == '{"text": "abc"}'
    assert [each.name for each in decoder.calls] == ["read"]
    with pytest.raises(UsageError):
        decoder.partial(1)


def test_misuse():
    for options in ({"start": "x"}, {"cumulative": "content"}, {"cumulative": ["x"]}, {"repair": 4}):
        with pytest.raises(UsageError):
            ChatDecoder(**options)
    with pytest.raises(UnknownDialectError):
        ChatDecoder(dialect="no such")
    decoder = ChatDecoder()
    decoder.close()
    with pytest.raises(ClosedError):
        decoder.feed({})
    with pytest.raises(ClosedError):
        decoder.close()


def test_limits():
    limits = Limits(calls=2, arguments=20, name=5)
    calls = [call("{}", id=str(index), name="read", index=index) for index in range(4)]
    events = run(*calls, FINISH, limits=limits)
    assert len(sealed(events)) == 2
    assert errors(events) == [ErrorCode.LIMIT_EXCEEDED]
    long = run(call('{"text": "', id="a", name="read"), *[call("x" * 9)] * 9, call('"}'), FINISH, limits=limits)
    assert errors(long) == [ErrorCode.LIMIT_EXCEEDED]
    assert errors(run(call("{}", id="a", name="readers"), FINISH, limits=limits)) == [ErrorCode.LIMIT_EXCEEDED]


# Promises -------------------------------------------------------------------------------------------------------------

STRINGS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).filter(lambda text: "<" not in text)
VALUES = {
    "text": STRINGS,
    "count": st.integers(-1000, 1000),
    "flag": st.booleans(),
    "items": st.lists(
        st.one_of(st.integers(0, 9), STRINGS, st.dictionaries(STRINGS, st.booleans(), max_size=2)), max_size=3
    ),
}
CALLS = st.lists(
    st.tuples(st.sampled_from(["write", "read"]), st.fixed_dictionaries({}, optional=VALUES)), min_size=1, max_size=3
)


def shuffled(text: str, generator: random.Random) -> list[str]:
    pieces, at = [], 0
    while at < len(text):
        size = generator.choice((1, 1, 2, 3, 8, 30))
        pieces.append(text[at : at + size])
        at += size
    return pieces


def as_chunks(calls: list[tuple[str, str]], generator: random.Random) -> list[dict[str, Any]]:
    chunks = []
    for index, (name, arguments) in enumerate(calls):
        chunks.append(call("", index=index, id=f"call_{index}", name=name))
        chunks += [call(piece, index=index) for piece in shuffled(arguments, generator)]
    return chunks


def shape(events: list[Event]) -> list[Event]:
    """Without what is the wire's own: the verbatim text, the order of a seal and the next start, the end."""
    kept: list[Event] = []
    for event in join(events):
        if isinstance(event, ToolCallFinished):
            kept.append(ToolCallFinished(event.index, ToolCall(event.call.id, event.call.name, event.call.arguments)))
        elif not isinstance(event, Ended):
            kept.append(event)
    return kept


@given(CALLS, st.randoms(use_true_random=False))
def test_native_text_and_chunks_give_the_same_events(calls, generator):
    text = streamparse.render_calls([{"name": name, "arguments": arguments} for name, arguments in calls])
    native = shape(streamparse.decode(text, tools=TOOLS))
    written = [(name, json.dumps(arguments, ensure_ascii=generator.random() < 0.5)) for name, arguments in calls]
    chunks = as_chunks(written, generator)
    assert shape(run(*chunks, FINISH, tools=TOOLS)) == native
    in_content = [chunk(content=piece) for piece in shuffled(text, generator)]
    assert shape(run(*in_content, chunk("stop"), tools=TOOLS, dialect="minimax_m2")) == native
    encoder = ChunkEncoder()
    encoded = encoder.feed_all(streamparse.decode(text, tools=TOOLS))
    assert shape(run(*encoded, tools=TOOLS)) == native


@given(CALLS, st.integers(0, 40), st.randoms(use_true_random=False))
def test_chunking_never_matters(calls, cut, generator):
    written = [(name, json.dumps(arguments)) for name, arguments in calls]
    written[-1] = (written[-1][0], written[-1][1][:cut] + generator.choice(["", "x", "}", '"', " "]))
    whole = [
        each
        for index, (name, text) in enumerate(written)
        for each in (call("", index=index, id=f"call_{index}", name=name), call(text, index=index))
    ]
    end = generator.choice([FINISH, DONE, chunk("length"), {}])
    assert run(*as_chunks(written, generator), end) == run(*whole, end)


CUT = ("length",)
"""E2, N13: what was sealed at the end of native text that was cut is not trusted, and the answer is not clean."""

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.sampled_from(
        [
            "",
            "a",
            "b",
            "read",
            "write",
            "{",
            "}",
            '{"a": 1}',
            "{}",
            '"',
            "x",
            " ",
            "stop",
            "length",
            "error",
            "<think>",
            NATIVE,
            "0",
            "null",
            "\ud83d",
            "\ude00",
        ]
    )
)
KEYS = (
    "choices delta message index id function name arguments content reasoning reasoning_details tool_calls usage error "
    "finish_reason native_finish_reason function_call base_resp status_code text type model "
    "custom input x_groq detail msg code"
).split()
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


def shaped(delta: Any, finish: Any, extra: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"delta": delta, "finish_reason": finish}], **extra}


FRAGMENTS = st.fixed_dictionaries(
    {},
    optional={
        "index": SCALARS,
        "id": SCALARS,
        "function": st.fixed_dictionaries({}, optional={"name": SCALARS, "arguments": ANYTHING}),
    },
)
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": ANYTHING,
        "reasoning": SCALARS,
        "tool_calls": st.lists(FRAGMENTS, max_size=3),
        "function_call": ANYTHING,
    },
)
CHUNKS = (
    ANYTHING
    | st.builds(
        shaped,
        DELTAS,
        st.none() | SCALARS,
        st.dictionaries(st.sampled_from(["usage", "error", "base_resp", "model"]), ANYTHING, max_size=1),
    )
    | st.just(DONE)
)


@given(
    st.lists(CHUNKS, max_size=8),
    st.sampled_from([None, "stop", "error", "length"]),
    st.sampled_from(["auto", None, "minimax_m2"]),
)
def test_total_and_every_started_call_ends_once(chunks, finish, dialect):
    events = run(*chunks, close=finish, dialect=dialect)
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
    texts = [json.dumps(each) if not isinstance(each, str) else each for each in chunks]
    if not any(isinstance(each, str) and each != DONE for each in chunks):
        assert run(*texts, close=finish, dialect=dialect) == events


@pytest.mark.parametrize(("text", "tier"), [('{"text": "a",}', 1), ("{'text': 'a'}", 2)])
def test_what_was_repaired_is_written_as_json(text, tier):
    """``arguments_json`` goes into a history, where it has to be JSON; what was sent is in ``ToolCallFailed`` only."""
    events = run(call(text, id="c", name="read"), close="tool_calls", repair=tier)
    (end,) = [event for event in events if isinstance(event, ToolCallFinished)]
    assert end.call.verbatim is None
    assert json.loads(end.call.arguments_json) == {"text": "a"}
    assert end.call.trusted is (tier == 1)


def test_linear_in_fragments_and_in_calls():
    """A hang would be the failure: many fragments of one call, of calls that stay open, and of no call."""
    decoder = ChatDecoder()
    decoder.feed(call('{"text": "', id="c", name="read"))
    for _ in range(20_000):
        decoder.feed(call("abc"))
    for index in range(1, 5_000):
        decoder.feed(call("{", id=f"c{index}", name="read", index=index))
    for index in range(10_000, 15_000):
        decoder.feed(call("{", index=index))
    for _ in range(20_000):  # a finish in every chunk, while all of them are open
        decoder.feed({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    decoder.close()


@pytest.mark.parametrize("piece", ["y", " ", '{"text": "a"', "\ud83d"])
def test_linear_where_every_chunk_has_a_finish(piece):
    """C5: whether arguments were repeated is asked at each of them."""
    decoder = ChatDecoder()
    for count in (300_000, 1):
        decoder.feed(call('{"text": "' + "a" * count + '"}y', id="c", name="read", index=count))
        for _ in range(30_000):
            decoder.feed({"choices": [{**call(piece, index=count)["choices"][0], "finish_reason": "stop"}]})
    decoder.close()
