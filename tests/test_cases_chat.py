"""The faults that people reported of other systems, OpenAI-style chunks: every case of ``../shared/cases``.

Read as ``test_cases_native`` reads its own: the cases state facts, ``CODES`` maps the codes that their author proposed,
and ``RULED`` names the numbered rule where one decides otherwise. Each case runs in every form that a chunk may have:
dicts, JSON text, bytes, objects with attributes."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from streamparse import Ended, Event, Failed, ToolCall, ToolCallFailed, ToolCallFinished
from streamparse.decoding.chat import ChatDecoder
from tests import test_cases_native as native
from tests.conftest import shared
from tests.test_cases_native import Result, Ruled

FILES = ("openai_delta", "reasoning", "truncation", "m2_xml")

CODES = {
    "trailing_json": "trailing_text",
    "stream_ended_without_finish": "stream_interrupted",
    "orphan_reasoning_close": "orphan_closer",
    "orphan_fragment_reattached": "orphan_fragment",
    "empty_placeholder_dropped": "empty_call",
    "finish_tool_calls_without_calls": "missing_call",
    "index_collision_split": "missing_id",  # C2, C4: what is outside the format is that nothing told the calls apart
}

M2 = frozenset({"B185", "B189"})
"""Cases about endpoints of this model whose chunks do not name it: the caller names the dialect (C9)."""

CUMULATIVE = frozenset({"B091"})

VALIDATED = (
    "the arguments are complete JSON, so the call is sealed; that a required one is missing is validation's to say"
)

RULED = {
    "B075": Ruled("C5", VALIDATED, {"calls": [{"name": "get_weather", "arguments": {}, "status": "complete"}]}),
    "B083": Ruled("C5", "the last fragment may come after the finish: that is no deviation", {"warnings": []}),
    "B094": Ruled(
        "T7",
        "a call of an undeclared tool is sealed and not trusted, so that the model can be told",
        {
            "calls": [
                {
                    "name": "get_weather<|channel|>commentary",
                    "arguments": {"city": "Oslo"},
                    "status": "suspect",
                    "error": "unknown_tool",
                }
            ],
            "executable": False,
        },
    ),
    "B237": Ruled(
        "C6",
        f"{VALIDATED}. That the answer was cut makes it suspect, also where nothing is required",
        {
            "calls": [
                {"name": "write_file", "arguments": {}, "status": "suspect", "warnings": ["empty_arguments"]},
            ]
        },
    ),
}


def load() -> list[Any]:
    lines = [line for name in FILES for line in shared("cases", f"{name}.jsonl").read_text("utf-8").splitlines()]
    cases = [json.loads(line) for line in lines]
    return [pytest.param(case, id=case["id"]) for case in cases if case["input"]["type"] == "openai_chunks"]


def attributes(value: Any) -> Any:
    """What an SDK makes of JSON: objects with attributes."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: attributes(each) for key, each in value.items()})
    return [attributes(each) for each in value] if isinstance(value, list) else value


FORMS: dict[str, Callable[[Any], Any]] = {
    "dicts": lambda chunk: chunk,
    "text": json.dumps,
    "bytes": lambda chunk: json.dumps(chunk, ensure_ascii=False).encode(),
    "objects": attributes,
}


def decode(case: dict[str, Any], form: str) -> list[Event]:
    decoder = ChatDecoder(
        tools=case.get("tools"),
        dialect="minimax_m2" if case["id"] in M2 else "auto",
        cumulative=("content",) if case["id"] in CUMULATIVE else (),
    )
    events = [event for chunk in case["input"]["chunks"] for event in decoder.feed(FORMS[form](chunk))]
    return events + decoder.close()


def code(word: str) -> str:
    return CODES.get(word, word)


def check_calls(result: Result, wanted: list[dict[str, Any]]) -> None:
    native.check_calls(
        result,
        [{**call, **({"error": code(call["error"])} if "error" in call else {})} for call in wanted],
    )
    for end, call in zip(result.ends, wanted, strict=True):
        if "id" in call:
            assert end.call.id == call["id"]
        if isinstance(end, ToolCallFinished) and end.call.verbatim is not None:
            assert json.loads(end.call.verbatim) == end.call.arguments


def check_errors(result: Result, wanted: list[str]) -> None:
    for word in wanted:
        name, _, reason = word.partition(":")
        errors = [event.error for event in result.events if isinstance(event, Failed | ToolCallFailed)]
        assert [error for error in errors if error.code == code(name) and reason in error.reason]


def check_warnings(result: Result, wanted: list[str]) -> None:
    assert {code(word) for word in wanted} <= result.codes


def check_usage(result: Result, wanted: dict[str, Any]) -> None:
    assert isinstance(result.events[-1], Ended)
    assert result.events[-1].usage == wanted


def check_ids(result: Result, _: Any) -> None:
    ids = [end.call.id for end in result.ends]
    assert all(ids)
    assert len(set(ids)) == len(ids)


def check_unrun(result: Result, executable: object) -> None:
    if executable is False:
        assert not [end for end in result.ends if isinstance(end.call, ToolCall) and end.call.trusted]


def check_orphans(result: Result, wanted: str) -> None:
    (end,) = result.ends
    assert isinstance(end, ToolCallFailed)
    assert end.call.raw == wanted


CHECKS: dict[str, Callable[[Result, Any], None]] = {
    **native.CHECKS,
    "calls": check_calls,
    "errors": check_errors,
    "warnings": check_warnings,
    "usage": check_usage,
    "ids": check_ids,
    "executable": check_unrun,
    "orphan_fragments_kept": check_orphans,
    "finish": native.said_elsewhere,  # whether calls were finished is in the events
    "final_events_before_end": native.said_elsewhere,  # test_nothing_is_sealed_because_it_parses
    "must_not_repair": native.said_elsewhere,  # the call is checked to fail
    "retryable": native.said_elsewhere,  # the agent's layer
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", load())
def test_case(case: dict[str, Any], form: str) -> None:
    ruled = RULED.get(case["id"])
    expected = {**case["expected"], **(ruled.expected if ruled else {})}
    if ruled and ruled.why == VALIDATED:  # not to be executed, which validation sees to
        expected.pop("executable", None)
    result = Result(decode(case, form))
    for key, wanted in expected.items():
        CHECKS[key](result, wanted)


def test_long_arguments_in_single_characters() -> None:
    """B098, the only case that is generated."""
    arguments = json.dumps({"content": "x" * 4096})
    decoder = ChatDecoder()
    events = decoder.feed(fragment("", id="c1", name="write"))
    for character in arguments:
        events += decoder.feed(fragment(character))
    events += decoder.close("tool_calls")
    (end,) = Result(events).ends
    assert end.call.arguments == json.loads(arguments)


def fragment(arguments: str, *, name: str | None = None, **words: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({} if name is None else {"name": name})}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": function, **words}]}}]}
