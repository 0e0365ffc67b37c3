"""Judging a call: the time of a prepared check, against the validator alone."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.measure import Measure
from streamparse import ToolCall
from streamparse.tools.definition import Tool
from streamparse.tools.observation import observation
from streamparse.tools.validation import Judge

EDIT = Tool(
    "edit_file",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "start_line": {"type": "integer", "minimum": 1},
            "end_line": {"type": "integer", "minimum": 1},
            "mode": {"enum": ["replace", "insert", "delete"]},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 10},
            "options": {
                "type": "object",
                "properties": {"dry_run": {"type": "boolean"}, "encoding": {"type": "string", "maxLength": 20}},
                "required": ["dry_run"],
                "additionalProperties": False,
            },
        },
        "required": ["path", "start_line", "options"],
        "additionalProperties": False,
    },
)
RIGHT: dict[str, Any] = {
    "path": "src/a.py",
    "start_line": 1,
    "end_line": 20,
    "mode": "replace",
    "tags": ["x", "y"],
    "options": {"dry_run": True, "encoding": "utf-8"},
}
JUDGE = Judge([EDIT])
GENERATED = Tool(
    "edit_file",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "title": "Path"},
            "start_line": {"type": "integer", "minimum": 1},
            "ratio": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
            "mode": {"$ref": "#/$defs/Mode"},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
            "options": {"$ref": "#/$defs/Options"},
        },
        "required": ["path", "start_line", "options"],
        "$defs": {
            "Mode": {"enum": ["replace", "insert", "delete"], "title": "Mode", "type": "string"},
            "Options": {
                "type": "object",
                "title": "Options",
                "properties": {
                    "dry_run": {"type": "boolean"},
                    "encoding": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                },
                "required": ["dry_run"],
            },
        },
    },
)
"""As pydantic and msgspec write them: references, and optional fields as unions with null."""

FILLED: dict[str, Any] = {
    "path": "src/a.py",
    "start_line": 1,
    "ratio": 1.5,
    "mode": "replace",
    "tags": ["x", "y"],
    "options": {"dry_run": True, "encoding": None},
}
TIMES = 1000


@pytest.mark.parametrize(
    ("name", "tool", "arguments", "wanted"),
    [
        ("6 fields, 2 levels, valid", EDIT, RIGHT, "5 µs"),
        ("the same by a generated schema ($ref, or null), valid", GENERATED, FILLED, "5 µs"),
        ("the first with 200 KB of text, valid", EDIT, {**RIGHT, "tags": ["x" * 200_000]}, ""),
        ("one undeclared field and a whole float", EDIT, {**RIGHT, "start_line": 1.0, "zz": 1}, ""),
        ("one value not in its enum", EDIT, {**RIGHT, "mode": "append"}, ""),
    ],
)
def test_check(measure: Measure, name: str, tool: Tool, arguments: dict[str, Any], wanted: str) -> None:
    call = ToolCall("call_0", "edit_file", arguments)
    judge = Judge([tool])
    is_valid = judge._prepared["edit_file"]._schema.validator.is_valid

    def check() -> None:
        for _ in range(TIMES):
            judge.check(call)

    def floor() -> None:
        for _ in range(TIMES):
            is_valid(arguments)

    ours, bare = (seconds / TIMES * 1e6 for seconds in measure.best([check, floor], rounds=15))
    detail = f"is_valid alone {bare:.2f} µs ({ours / bare:.1f} of it)"
    measure.table.add(f"check: {name}", f"{ours:.2f} µs", detail, wanted)


def test_observation(measure: Measure) -> None:
    verdict = JUDGE.check(ToolCall("call_0", "edit_file", {**RIGHT, "mode": "append" * 10_000, "start_line": 0}))

    def work() -> None:
        for _ in range(100):
            observation(verdict)

    (seconds,) = measure.best([work], rounds=15)
    measure.table.add("observation of 2 issues, one of 60 KB", f"{seconds / 100 * 1e6:.0f} µs", "", "")
