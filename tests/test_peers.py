"""The test inputs of other parsers for this format, with what they expect. ``DIFFERENT`` names the rule where we do
not."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import pytest

from streamparse import Deviated, Event, Failed, NativeDecoder, Text, ToolCallFailed, ToolCallFinished
from tests.chunks import check_chunking
from tests.conftest import shared

DIFFERENT = {
    "T7: a call of an undeclared tool is kept, not trusted; peers drop it": (
        "TestNonStreaming::test_invalid_tool_name_is_rejected",
        "TestNonStreaming::test_mixed_tool_names_only_return_valid",
        "TestStreaming::test_streaming_invalid_tool_name_is_rejected",
        "test_minimax_m2_detector.py unknown_function_dropped",
        "test_minimax_m2_tool_index.py unknown_dropped_dense",
    ),
    "E3: a value without its closing tag is no value; the peer closes it at </invoke>": (
        "test_unclosed_last_parameter_is_preserved",
        "test_streaming_unclosed_last_parameter_is_preserved",
    ),
    "N2: text behind an envelope is text; the peer drops it": ("minimax_m2.rs prefix_and_trailing_ignored",),
    "N2: line breaks beside an envelope belong to the format; the peer keeps them": (
        "minimax_m2.rs template_whitespace_split7",
        "test_streaming_tool_call_fuzzer.py two-blocks-text-between",
    ),
    "T3: null is 'null' in any case and 'None'; the peer takes 'none' and 'nil', too": (
        'test_minimax_m2_nullable.py {"type": ["integer", "null"]} none',
        'test_minimax_m2_nullable.py {"type": ["integer", "null"]} nil',
    ),
}


def rule_for(source: str) -> str:
    name = base_name(source)
    return next((rule for rule, names in DIFFERENT.items() if any(name.endswith(end) for end in names)), "")


def base_name(source: str) -> str:
    """Without the way it was run, ``[stream]``."""
    return re.sub(r" \[\w+\]$", "", source)


def load() -> list[Any]:
    lines = shared("conformance", "peer_cases.jsonl").read_text("utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    return [pytest.param(case, id=f"{number}-{case['source'][-40:]}") for number, case in enumerate(cases)]


def starts_in_reasoning(case: dict[str, Any]) -> bool:
    """The case's own word, or a closing tag of reasoning that was never opened."""
    told = "starts inside" in case.get("note", "") or "[reasoning]" in case["source"]
    return told or ("</think>" in case["text"] and "<think>" not in case["text"])


def decode(case: dict[str, Any]) -> list[Event]:
    start: Literal["text", "reasoning"] = "reasoning" if starts_in_reasoning(case) else "text"

    def run(chunks: list[str]) -> list[Event]:
        decoder = NativeDecoder("minimax_m2", tools=case["tools"], start=start)
        return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()

    return check_chunking(run, case["text"])


@pytest.mark.parametrize("case", load())
def test_peer_case(case: dict[str, Any]) -> None:
    events = decode(case)
    calls = [{"name": e.call.name, "arguments": e.call.arguments} for e in events if isinstance(e, ToolCallFinished)]
    content = "".join(event.text for event in events if isinstance(event, Text))
    agrees = (case["expected_calls"] is None or calls == case["expected_calls"]) and (
        case["expected_content"] is None or content == case["expected_content"]
    )
    rule = rule_for(case["source"])
    assert agrees is not bool(rule), rule or f"{calls} {content!r}"
    if case["expected_calls"] is None and case["expected_content"] is None:
        assert any(isinstance(event, Failed | ToolCallFailed | Deviated) for event in events), "nothing was said"


def test_every_difference_is_met() -> None:
    sources = [base_name(case.values[0]["source"]) for case in load()]
    for names in DIFFERENT.values():
        for name in names:
            assert any(source.endswith(name) for source in sources), name
