"""The neutral suite ``canitoolcall``: recorded outputs of two model families with the right result, strictly equal.

``MISSED`` names the fixtures that the rules of the semantics decide otherwise, each with its rule.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Literal

import pytest

from streamparse import Event, NativeDecoder, Reasoning, Text, ToolCallFinished
from tests.chunks import check_chunking

FAMILIES = {"qwen3-hermes": "hermes", "qwen3-xml": "qwen3_coder"}
SIZES = {"qwen3-hermes": 50, "qwen3-xml": 54}

MISSED = {
    "qwen3-xml/vllm-coder-missing-close-parameter": "N7: a value that holds a declared, missing parameter is ambiguous",
    "qwen3-xml/bug-missing-close-parameter-before-function": "E3: a value without its closing tag is no value",
}


def fixtures(family: str) -> list[dict[str, Any]]:
    directory = files("canitoolcall") / "_data" / "fixtures" / family
    texts = [file.read_text("utf-8") for file in directory.iterdir() if file.name.endswith(".jsonl")]
    return sorted((json.loads(line) for text in texts for line in text.splitlines()), key=lambda case: case["id"])


CASES = [pytest.param(case, id=case["id"]) for family in FAMILIES for case in fixtures(family)]


def run(case: dict[str, Any]) -> list[Event]:
    resumed = case.get("generation_prompt", "").rstrip().endswith("<think>")
    start: Literal["text", "reasoning"] = "reasoning" if resumed else "text"
    finish_reason = "length" if "truncated" in case["tags"] else "stop"

    def decode(chunks: list[str]) -> list[Event]:
        decoder = NativeDecoder(FAMILIES[case["family"]], tools=case["tools"], start=start)
        return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close(finish_reason)

    return check_chunking(decode, case["raw_output"])


def joined(events: list[Event], kind: type[Text | Reasoning]) -> str | None:
    return "".join(event.text for event in events if isinstance(event, kind)) or None


def result(events: list[Event]) -> dict[str, Any]:
    calls = [event.call for event in events if isinstance(event, ToolCallFinished)]
    return {
        "content": joined(events, Text),
        "reasoning_content": joined(events, Reasoning),
        "tool_calls": [{"name": call.name, "arguments": call.arguments} for call in calls],
    }


def agrees(case: dict[str, Any], found: dict[str, Any]) -> bool:
    """Strictly equal; where an error is expected, no call (the suite's outcome ``no_tool_calls``)."""
    if "expected" in case:
        wanted = {key: value or None if key != "tool_calls" else value for key, value in case["expected"].items()}
        return json.dumps(found, sort_keys=True) == json.dumps(wanted, sort_keys=True)
    return not found["tool_calls"] and "no_tool_calls" in case["expected_error"]["accept"]


@pytest.mark.parametrize("case", CASES)
def test_fixture(case: dict[str, Any]) -> None:
    found = result(run(case))
    assert agrees(case, found) is (case["id"] not in MISSED), found


def test_suite_is_whole() -> None:
    """A smaller suite must not look like a better result."""
    assert {family: len(fixtures(family)) for family in FAMILIES} == SIZES
    assert {case.id for case in CASES} >= MISSED.keys()
