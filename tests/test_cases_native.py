"""The faults that people reported of other systems, native text: every case of ``../shared/cases`` that this wire can
read.

The cases state facts; the codes are proposals of their author. ``CODES`` maps them to the codes of the semantics, and
where a numbered rule decides otherwise than a case, ``RULED`` names the rule, says why, and gives what the rule
wants."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from streamparse import (
    Deviated,
    Ended,
    Event,
    Failed,
    NativeDecoder,
    Reasoning,
    Text,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
)
from tests.chunks import check_chunking
from tests.conftest import shared

FILES = ("m2_xml", "reasoning", "types", "truncation")
NATIVE = frozenset({"text", "text_chunks", "param_value"})

CODES = {
    "mismatched_close_tag": "ambiguous_delimiter",
    "duplicate_parameter": "duplicate_argument",
    "foreign_envelope:m1_tool_calls": "foreign_format:m1",
    "foreign_envelope:m3_namespace": "foreign_format:m3",
    "foreign_envelope:tool_call": "foreign_format:tool_call",
    "inside_closed_reasoning": "call_in_reasoning",
    "cdata_like_value": "cdata",
    "truncated_in_marker": "unclosed_tag",
    "unclosed_invoke_tag": "unclosed_header",
    "unclosed_parameter_tag": "unclosed_header",
    "unclosed_invoke": "unclosed_call",
    "undeclared_parameter": "undeclared_argument",
}


@dataclass(frozen=True)
class Ruled:
    """A case that a numbered rule decides: ``expected`` replaces the keys of the case's own."""

    rule: str
    why: str
    expected: dict[str, Any] = field(default_factory=dict)


RULED = {
    "B005": Ruled(
        "T7",
        "a call of an undeclared tool is sealed and not trusted, so that the model can be told; it is no failed call",
        {
            "calls": [
                {"name": "no_such_tool", "arguments": {"x": "1"}, "status": "suspect", "error": "unknown_tool"},
                {"name": "get_weather", "arguments": {"city": "Oslo"}, "status": "complete"},
            ]
        },
    ),
    "B010": Ruled(
        "N2",
        "the line break before an envelope and the white space behind it belong to the format, so the two texts are "
        "events of their own without line breaks at their ends",
        {"content_stripped": "Checking.Done."},
    ),
    "B030": Ruled(
        "N4",
        "single quotes, no quotes and blanks are the format's own variants, no deviation",
        {"calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}, "status": "complete"}], "warnings": []},
    ),
    "B183": Ruled("N3", "a closing tag between two backticks is text, so nothing is ambiguous", {"errors": []}),
    "B208": Ruled(
        "T6", "the text stays, `type_mismatch` is a deviation; validation rejects the call", {"status": "complete"}
    ),
    "B210": Ruled("T6", "as B208", {"status": "complete"}),
    "B216": Ruled("T2", "the first type whose canonical text this is", {"value": 42}),
    "B234": Ruled(
        "E2",
        "the call was still waiting for its chain when the stream was cut: sealed, not trusted",
        {
            "calls": [
                {
                    "name": "write_file",
                    "arguments": {"path": "a.py", "content": "print(1)\n"},
                    "status": "suspect",
                    "warnings": ["unclosed_envelope"],
                }
            ],
            "executable": False,
        },
    ),
    "B221": Ruled("T5", "undeclared is a deviation; validation decides about the call", {"status": "complete"}),
}


def load() -> list[Any]:
    directory = shared() / "cases"
    cases = [
        json.loads(line) for name in FILES for line in (directory / f"{name}.jsonl").read_text("utf-8").splitlines()
    ]
    return [pytest.param(case, id=case["id"]) for case in cases if case["input"]["type"] in NATIVE]


class Result:
    """The facts of an answer, as the cases name them."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.content = "".join(event.text for event in events if isinstance(event, Text))
        self.reasoning = "".join(event.text for event in events if isinstance(event, Reasoning))
        self.lines = [line for event in events if isinstance(event, Text) for line in event.text.split("\n")]
        self.ends = [event for event in events if isinstance(event, ToolCallFinished | ToolCallFailed)]
        self.ends.sort(key=lambda event: event.index)
        self.codes = {code for event in events for code in codes_of(event)}


def codes_of(event: Event) -> set[str]:
    match event:
        case Failed(error) | ToolCallFailed(_, _, error):
            return {error.code}
        case Deviated(_, deviation):
            return {deviation.code, f"{deviation.code}:{deviation.detail}"}
        case _:
            return set()


def decode_case(case: dict[str, Any], repair: int = 1) -> Result:
    given = case["input"]
    text = "".join(given["chunks"]) if given["type"] == "text_chunks" else given["text"]
    expected = case["expected"]
    start: Literal["text", "reasoning"] = "reasoning" if "reasoning" in expected.get("initial_state", "") else "text"

    def run(chunks: list[str]) -> list[Event]:
        decoder = NativeDecoder("minimax_m2", tools=case.get("tools"), start=start, repair=repair)
        events = [event for chunk in chunks for event in decoder.feed(chunk)]
        return events + decoder.close(given.get("finish_reason"))

    return Result(check_chunking(run, text))


def wanted_code(word: str) -> str:
    return CODES.get(word, word)


def check_call(end: ToolCallFinished | ToolCallFailed, wanted: dict[str, Any]) -> None:
    status = wanted["status"]
    assert end.call.name == wanted["name"]
    if wanted["arguments"] is not None:
        assert end.call.arguments == wanted["arguments"]
    codes = {deviation.code.value for deviation in end.call.deviations}
    if status in ("complete", "suspect"):
        assert isinstance(end, ToolCallFinished)
        assert end.call.trusted is (status == "complete")
    else:
        assert isinstance(end, ToolCallFailed)
        codes.add(end.error.code)
    if "error" in wanted:
        assert wanted_code(wanted["error"]) in codes
    if "dangling" in wanted:
        assert isinstance(end, ToolCallFailed)
        assert end.error.excerpt.endswith(wanted["dangling"])
    for warning in wanted.get("warnings", ()):
        assert wanted_code(warning) in codes


def check_calls(result: Result, wanted: list[dict[str, Any]]) -> None:
    assert len(result.ends) == len(wanted)
    for end, call in zip(result.ends, wanted, strict=True):
        check_call(end, call)


def check_flagged(result: Result, wanted: list[dict[str, Any]]) -> None:
    check_calls(result, [{**call, "status": "invalid"} for call in wanted])


def check_value(result: Result, wanted: Any) -> None:
    (end,) = result.ends
    assert isinstance(end.call, ToolCall)
    (value,) = end.call.arguments.values()
    assert json.dumps(value) == json.dumps(wanted)


def check_status(result: Result, wanted: str) -> None:
    (end,) = result.ends
    assert isinstance(end, ToolCallFinished) is (wanted == "complete")


def check_codes(result: Result, wanted: list[str]) -> None:
    if not wanted:
        assert not {code for code in result.codes if code != "delimiter_in_value"}
    for word in wanted:
        assert wanted_code(word) in result.codes


def check_never_run(result: Result, executable: object) -> None:
    if executable is False:
        assert all(isinstance(end, ToolCallFailed) or not end.call.trusted for end in result.ends)
    if executable is True:
        assert all(isinstance(end, ToolCallFinished) and end.call.trusted for end in result.ends)


def same(attribute: str, change: Callable[[Any], Any] = lambda text: text) -> Callable[[Result, Any], None]:
    def check(result: Result, wanted: Any) -> None:
        assert change(getattr(result, attribute)) == change(wanted)

    return check


def holds(attribute: str) -> Callable[[Result, Any], None]:
    def check(result: Result, wanted: Any) -> None:
        assert wanted in getattr(result, attribute)

    return check


def check_no_markup(result: Result, _: Any) -> None:
    assert "<mini" not in result.content
    assert "tool_call" not in result.content


def check_stripped_tokens(result: Result, tokens: list[str]) -> None:
    assert not any(token in result.content for token in tokens)


def check_preferred(result: Result, wanted: dict[str, Any]) -> None:
    check_facts(result, wanted)


def check_arguments_json(result: Result, wanted: str) -> None:
    (end,) = result.ends
    assert isinstance(end.call, ToolCall)
    assert end.call.arguments_json == wanted


def said_elsewhere(result: Result, _: Any) -> None:
    """Prose for readers, or a policy of layers above: that there is a result at all is the check."""
    assert isinstance(result.events[-1], Ended)


def check_raw_kept(result: Result, _: Any) -> None:
    excerpts = [event.error.excerpt for event in result.events if isinstance(event, Failed | ToolCallFailed)]
    assert result.content or any(excerpts)


CHECKS: dict[str, Callable[[Result, Any], None]] = {
    "calls": check_calls,
    "calls_flagged": check_flagged,
    "value": check_value,
    "status": check_status,
    "content": same("content"),
    "content_stripped": same("content", str.strip),
    "content_lines": same("lines", lambda lines: [line for line in lines if line]),
    "content_contains": holds("content"),
    "reasoning": same("reasoning"),
    "reasoning_stripped": same("reasoning", str.strip),
    "reasoning_contains": holds("reasoning"),
    "errors": check_codes,
    "error": lambda result, wanted: check_codes(result, [wanted]),
    "warnings": check_codes,
    "executable": check_never_run,
    "must_not_emit_as_content": check_no_markup,
    "stripped_tokens": check_stripped_tokens,
    "preferred": check_preferred,
    "arguments_json": check_arguments_json,
    "raw_kept": check_raw_kept,
    "initial_state": said_elsewhere,
    "no_exception": said_elsewhere,
    "events_before_close": said_elsewhere,  # test_values_are_streamed checks B008 itself
    "acceptable_alternative": said_elsewhere,
    "alternative_content": said_elsewhere,
    "repair_tier_proposal": said_elsewhere,  # test_proposals
    "rule": said_elsewhere,
    "signal": said_elsewhere,
    "note": said_elsewhere,
    "never": said_elsewhere,
}


def check_facts(result: Result, expected: dict[str, Any]) -> None:
    for key, wanted in expected.items():
        CHECKS[key](result, wanted)


@pytest.mark.parametrize("case", load())
def test_case(case: dict[str, Any]) -> None:
    ruled = RULED.get(case["id"])
    expected = {**case["expected"], **(ruled.expected if ruled else {})}
    check_facts(decode_case({**case, "expected": expected}), expected)


PROPOSED = {
    "B017": "N7: a swallowed parameter is never guessed",
    "B018": "N10, N16: tags without angle brackets are no call",
    "B039": "N16: a foreign envelope is no call",
}
"""Cases that propose to repair the tags. The tiers of J5 are about JSON: a rule says what tags are, at each tier."""


def test_proposals() -> None:
    cases = {case["id"]: case for (case,) in (param.values for param in load())}
    assert {name for name, case in cases.items() if "repair_tier_proposal" in case["expected"]} == PROPOSED.keys()
    for name in PROPOSED:
        results = [decode_case(cases[name], repair).events for repair in range(4)]
        assert all(events == results[1] for events in results)
        assert not any(isinstance(event, ToolCallFinished) for event in results[1])
