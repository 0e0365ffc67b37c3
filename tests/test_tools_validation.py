"""The judgement on decoded calls: each code once, the rules B14 and B15, then the properties."""

from __future__ import annotations

import copy
import json
import math
import sys
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamparse import (
    DeviationCode,
    ErrorCode,
    ErrorDetail,
    JsonDecoder,
    Level,
    NativeDecoder,
    PartialToolCall,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    ToolDefinitionError,
    UsageError,
)
from streamparse.events import Deviation, json_text
from streamparse.tools.definition import Tool
from streamparse.tools.issues import ArgumentRejectedError, Issue, Verdict
from streamparse.tools.names import meant
from streamparse.tools.observation import observation
from streamparse.tools.schema import Node, Schema
from streamparse.tools.shaping import walk
from streamparse.tools.validation import Judge, check
from streamparse.tools.wording import shown
from tests.conftest import shared


def tool(properties: dict[str, Any], required: Any = (), effect: Any = "write", **more: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required), **more}
    return Tool("f", parameters=schema, effect=effect)


def call(arguments: dict[str, Any], name: str = "f", **more: Any) -> ToolCall:
    return ToolCall("call_0", name, arguments, **more)


def judge(schema: dict[str, Any], value: Any, **more: Any) -> Verdict:
    """The verdict on one field ``v``."""
    return check(call({"v": value}), [tool({"v": schema}, **more)])


def facts(verdict: Verdict) -> list[tuple[str, tuple[str | int, ...]]]:
    return [(issue.code.value, issue.path) for issue in verdict.issues]


STRING = {"type": "string"}
INTEGER = {"type": "integer"}
UNIT = {"enum": ["celsius", "fahrenheit"]}
WEATHER = tool({"location": STRING, "unit": UNIT}, ["location", "unit"], effect="read")
KEYED = {"type": "object", "properties": {"a": INTEGER, "b": STRING}, "required": ["a"]}


def test_a_right_call_is_executable_with_a_copy_of_its_arguments():
    arguments = {"location": "Bern", "unit": "celsius"}
    verdict = check(call(arguments), [WEATHER])
    assert verdict.valid
    assert verdict.executable
    assert verdict.level is None
    assert verdict.arguments == arguments
    assert verdict.arguments is not arguments


CODES = [
    (UNIT, "kelvin", "not_in_enum", ('"celsius"', '"fahrenheit"')),
    ({"const": 3}, 4, "not_in_enum", ("3",)),
    (UNIT, 3, "wrong_type", ('"celsius"', '"fahrenheit"')),
    (STRING, ["a"], "wrong_type", ("string",)),
    ({"type": ["string", "null"]}, 3, "wrong_type", ("null", "string")),
    (INTEGER, 2.5, "wrong_type", ("integer",)),
    (INTEGER, "3", "wrong_type", ("integer",)),
    ({"type": "integer", "minimum": 1, "maximum": 9}, 0, "out_of_range", ("at least 1 and at most 9",)),
    ({"type": "number", "exclusiveMaximum": 1}, 1, "out_of_range", ("less than 1",)),
    ({"type": "integer", "multipleOf": 5}, 4, "out_of_range", ("a multiple of 5",)),
    ({"pattern": "^a"}, "b", "pattern", ("text that matches ^a",)),
    ({"maxLength": 1}, "ab", "too_long", ("at most 1 character",)),
    ({"minLength": 2}, "a", "too_short", ("at least 2 characters",)),
    ({"maxItems": 1}, [1, 2], "too_many", ("at most 1 item",)),
    ({"minItems": 1}, [], "too_few", ("at least 1 item",)),
    ({"minProperties": 1}, {}, "too_few", ("at least 1 member",)),
    ({"uniqueItems": True}, [1, 1], "not_unique", ("each item only once",)),
    ({"not": STRING}, "a", "forbidden", ("anything but what the schema's 'not' describes",)),
    ({"anyOf": [STRING, {"type": "null"}]}, 3, "wrong_type", ("string", "null")),
    ({"anyOf": [{"enum": ["a"]}, {"const": "b"}, {"type": "null"}]}, "c", "not_in_enum", ('"a"', '"b"', "null")),
    ({"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 3, "ambiguous", ("exactly one of the 2 forms, not 2 at once",)),
]


@pytest.mark.parametrize(("schema", "value", "code", "allowed"), CODES, ids=[f"{row[2]}-{row[1]!r}" for row in CODES])
def test_each_code(schema, value, code, allowed):
    verdict = judge(schema, value)
    assert facts(verdict) == [(code, ("v",))]
    issue = verdict.issues[0]
    assert set(issue.allowed) == set(allowed)
    assert not verdict.executable
    assert verdict.level is (Level.REPRESENTATION if code == "wrong_type" else Level.SCHEMA)
    assert issue.found


def test_a_missing_field_says_what_belongs_there():
    verdict = check(call({"location": "Bern"}), [WEATHER])
    assert facts(verdict) == [("missing", ("unit",))]
    assert verdict.issues[0].allowed == ('"celsius"', '"fahrenheit"')
    assert verdict.keep == ("location",)


@pytest.mark.parametrize("drifted", ["startLine", "StartLine", "start-line", "startline", "start_lin", "strat_line"])
def test_b14_a_drifted_name_is_missing_with_a_suggestion(drifted):
    verdict = check(call({drifted: 3}), [tool({"start_line": INTEGER, "end_line": INTEGER}, ["start_line"])])
    assert facts(verdict) == [("missing", ("start_line",))]
    assert f'"{drifted}"' in verdict.issues[0].hint
    assert [(each.path, each.meant) for each in verdict.ignored] == [((drifted,), "start_line")]


DRY = tool({"path": STRING, "dry_run": {"type": "boolean"}, "end_line": INTEGER}, ["path"])


@pytest.mark.parametrize("drifted", ["dryRun", "DryRun", "dry-run", "dryrun", "DRY_RUN"])
def test_b14_a_drifted_name_of_an_optional_field_is_not_dropped(drifted):
    """The write would run without what the model asked for."""
    verdict = check(call({"path": "x", drifted: True}), [DRY])
    assert facts(verdict) == [("missing", ("dry_run",))]
    assert f'"{drifted}"' in verdict.issues[0].hint
    assert verdict.issues[0].allowed == ("boolean",)
    assert not verdict.executable
    assert verdict.keep == ("path",)
    assert Judge([DRY], extra="keep").check(call({"path": "x", drifted: True})).executable


def test_b14_all_drifted_names_are_told():
    tools = [tool({"start_line": INTEGER, "end_line": INTEGER, "a": KEYED}, ["start_line"])]
    verdict = check(call({"startLine": 1, "endLine": 2, "a": {"a": 1, "B": "x"}}), tools)
    assert facts(verdict) == [("missing", ("a", "b")), ("missing", ("end_line",)), ("missing", ("start_line",))]
    many = {f"junk{number}": 1 for number in range(100)}
    assert not check(call({"path": "x", **many, "dryRun": True}), [DRY]).valid
    rejected = Judge(tools, extra="reject").check(call({"start_line": 1, "endLine": 2}))
    assert facts(rejected) == [("extra", ("endLine",))]


def test_b14_the_name_itself_wins():
    assert check(call({"path": "x", "dry_run": True, "dryRun": False}), [DRY]).executable


@pytest.mark.parametrize(("name", "doubtful"), [("dry_rum", True), ("dryrn", True), ("dry_run_of_all", False)])
def test_a_name_that_is_only_close_is_a_doubt(name, doubtful):
    verdict = check(call({"path": "x", name: True}), [DRY])
    assert verdict.valid
    assert verdict.needs_confirmation is doubtful
    assert any(name in each for each in verdict.doubts) is doubtful


@pytest.mark.parametrize(
    ("word", "known", "likely"),
    [
        ("us-eats-2", ["us-east-1", "us-east-2"], "us-east-2"),
        ("valeu_3", ["value_0", "value_3"], "value_3"),
        ("valeu_37", [f"value_{number}" for number in range(50)], "value_37"),
        ("start-line", ["start_lin", "start_line"], "start_line"),
        ("desc", ["description", "path"], "description"),
        ("mode", ["node_count", "size"], None),
    ],
)
def test_the_closest_name_is_meant(word, known, likely):
    assert meant(word, known) == likely
    assert meant(word, known[::-1]) == likely


def test_another_word_is_no_suggestion():
    verdict = check(call({"path": 3}), [tool({"start_line": INTEGER}, ["start_line"])])
    assert verdict.issues[0].hint == ""


@pytest.mark.parametrize("more", [{}, {"additionalProperties": False}], ids=["absent", "false"])
def test_b14_undeclared_fields_are_ignored_and_noted(more):
    given_ = {"a": 1, "zz": {"deep": [1]}}
    verdict = check(call(given_), [tool({"a": INTEGER}, **more)])
    assert verdict.executable
    assert verdict.arguments == {"a": 1}
    assert [each.path for each in verdict.ignored] == [("zz",)]
    assert given_ == {"a": 1, "zz": {"deep": [1]}}


def test_b14_undeclared_fields_can_be_rejected_or_kept():
    tools = [tool({"limit": INTEGER, "a": {"type": "object", "properties": {}}})]
    arguments = {"limt": 1, "a": {"x": 1}}
    rejected = Judge(tools, extra="reject").check(call(arguments))
    assert facts(rejected) == [("extra", ("a", "x")), ("extra", ("limt",))]
    assert '"limit"' in rejected.issues[1].hint
    assert not rejected.executable
    kept = Judge(tools, extra="keep").check(call(arguments))
    assert kept.executable
    assert kept.arguments == arguments


def test_kept_fields_that_the_schema_forbids_are_issues():
    tools = [tool({"limit": INTEGER}, additionalProperties=False)]
    verdict = Judge(tools, extra="keep").check(call({"limt": 1}))
    assert facts(verdict) == [("extra", ("limt",))]
    assert verdict.issues[0].allowed == ('"limit"',)


OTHER = {"$anchor": "other", "properties": {"xx": INTEGER}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": True, "properties": {"a": STRING}},
        {"type": "object", "additionalProperties": INTEGER},
        {"type": "object", "patternProperties": {"^x": INTEGER}, "properties": {}},
        {"allOf": [{"properties": {"a": INTEGER}}, {"properties": {"xx": INTEGER}}]},
        {"$ref": "#/properties/w"},
        {"anyOf": [{"properties": {"a": INTEGER}, "required": ["a"]}, {"properties": {"xx": INTEGER}}]},
        {"properties": {"a": STRING}, "if": {"required": ["xx"]}, "then": {"properties": {"xx": INTEGER}}},
        {"properties": {"a": STRING}, "dependentSchemas": {"a": {"properties": {"xx": INTEGER}}}},
        {"properties": {"a": STRING}, "minProperties": 1},
        {"properties": {"a": STRING}, "$ref": "#other"},
        {"properties": {"a": STRING}, "$dynamicRef": "#other"},
    ],
    ids=json_text,
)
def test_what_is_declared_anywhere_stays(schema):
    verdict = check(call({"v": {"xx": 1}}), [tool({"v": schema, "w": OTHER})])
    assert verdict.valid
    assert verdict.arguments == {"v": {"xx": 1}}
    assert verdict.ignored == ()


def test_draft_7_declares_by_dependencies_and_ids():
    draft = {"$schema": "http://json-schema.org/draft-07/schema#"}
    more: dict[str, Any] = {"a": {"properties": {"xx": INTEGER}}, "xx": ["a"]}
    verdict = check(call({"a": "1", "xx": 1.0}), [tool({"a": STRING}, dependencies=more, **draft)])
    assert verdict.executable
    assert verdict.arguments == {"a": "1", "xx": 1}
    base = {"$id": "#base", "properties": {"xx": INTEGER}}
    verdict = check(
        call({"a": "1", "xx": 1}), [tool({"a": STRING}, allOf=[{"$ref": "#base"}], definitions={"b": base}, **draft)]
    )
    assert verdict.arguments == {"a": "1", "xx": 1}


@pytest.mark.parametrize("wrap", [lambda schema: schema, lambda schema: {"properties": {"v": schema}}])
def test_an_object_that_forbids_fields_ignores_them(wrap):
    """With ``properties: {}`` beside it, it always did."""
    value = {"reason": "x"} if wrap({}) == {} else {"v": {"reason": "x"}}
    verdict = check(
        call(value),
        [Tool("f", parameters={"type": "object", **wrap({"type": "object", "additionalProperties": False})})],
    )
    assert verdict.executable
    assert verdict.undeclared == 1
    assert "x" not in json.dumps(verdict.arguments)


def test_whatever_comes_last_is_looked_at_like_the_rest():
    schema = {"type": "array", "items": {"type": "object", "properties": {"x": INTEGER}}}
    items = [{"x": 1}] * 60_000 + [{"x": 2.0, "evil": 1}]
    rejected = Judge([tool({"v": schema})], extra="reject").check(call({"v": items}))
    assert facts(rejected) == [("extra", ("v", 60_000, "evil"))]
    assert json.dumps(judge(schema, items).arguments["v"][-1]) == '{"x": 2}'


def test_all_undeclared_fields_are_counted():
    tools = [tool({"a": {}})]
    arguments: dict[str, Any] = {f"k{number}": 1 for number in range(1000)}
    rejected = Judge(tools, extra="reject").check(call(arguments))
    assert len(rejected.issues) + rejected.more == 1000
    assert check(call(arguments), tools).undeclared == 1000


def test_b14_whole_floats_are_integers():
    verdict = judge(INTEGER, 3.0)
    assert verdict.executable
    assert type(verdict.arguments["v"]) is int
    assert [(each.path, each.found, each.read_as) for each in verdict.coerced] == [(("v",), "number", "integer")]


@pytest.mark.parametrize("schema", [{"type": "number"}, {}, {"type": ["integer", "number"]}, {"enum": [3.0]}], ids=str)
def test_floats_stay_floats_where_they_may(schema):
    verdict = judge(schema, 3.0)
    assert verdict.executable
    assert type(verdict.arguments["v"]) is float
    assert verdict.coerced == ()


def test_json_in_a_string_only_where_a_container_is_wanted():
    wanted = judge(KEYED, '{"a": 3.0, "zz": 1}')
    assert wanted.executable
    assert wanted.arguments == {"v": {"a": 3}}
    assert [each.path for each in wanted.coerced] == [("v",), ("v", "a")]
    assert judge(STRING, '{"a": 1}').arguments == {"v": '{"a": 1}'}
    assert judge({}, '{"a": 1}').arguments == {"v": '{"a": 1}'}
    assert judge({"type": ["object", "string"]}, '{"a": 1}').arguments == {"v": '{"a": 1}'}
    assert judge({"type": "array"}, "[1]").arguments == {"v": [1]}


@pytest.mark.parametrize("union", ["anyOf", "oneOf"])
def test_json_in_a_string_decides_between_branches(union):
    branches = [
        {"type": "object", "properties": {"p": {"type": kind}}, "required": ["p"]} for kind in ("object", "array")
    ]
    assert judge({union: branches}, {"p": "[1]"}).arguments == {"v": {"p": [1]}}
    assert judge({union: branches}, {"p": '{"x": 1}'}).arguments == {"v": {"p": {"x": 1}}}
    assert facts(judge({union: branches}, {"p": "[1"})) == [("wrong_type", ("v", "p"))]


def test_whole_floats_of_any_size():
    verdict = judge(INTEGER, 1e19)
    assert type(verdict.arguments["v"]) is int
    assert verdict.arguments["v"] == 10**19


@pytest.mark.parametrize(
    "text",
    ['{"a": 1', '{"a": 1, "a": 2}', '{"a": NaN}', "[1]", "x", "", "3", "{" * 5000, r'{"a": "\ud800"}', '{"a": 1e999}'],
)
def test_what_is_no_such_json_stays_a_string(text):
    verdict = judge({"type": "object"}, text)
    assert facts(verdict) == [("wrong_type", ("v",))]
    assert verdict.arguments == {"v": text}
    assert verdict.coerced == ()


CIRCLE = {
    "type": "object",
    "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
    "required": ["kind", "radius"],
    "additionalProperties": False,
}
SQUARE = {
    "type": "object",
    "properties": {"kind": {"enum": ["square", "box"]}, "side": {"type": "number"}, "name": STRING, "colour": STRING},
    "required": ["kind", "side", "name", "colour"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("union", ["anyOf", "oneOf"])
def test_only_the_branch_that_was_meant_is_reported(union):
    schema = {union: [CIRCLE, SQUARE, {"type": "null"}]}
    assert facts(judge(schema, {"kind": "circle"})) == [("missing", ("v", "radius"))]
    discriminated = judge(schema, {"kind": "box", "radius": 1})
    assert {path for _, path in facts(discriminated)} == {("v", "side"), ("v", "name"), ("v", "colour")}
    missing = judge(schema, {"radius": 1})
    assert facts(missing) == [("missing", ("v", "kind"))]
    assert missing.issues[0].allowed == ('"circle"', '"square"', '"box"')
    unknown = judge(schema, {"kind": "triangle"})
    assert facts(unknown) == [("not_in_enum", ("v", "kind"))]
    assert set(unknown.issues[0].allowed) == {'"circle"', '"square"', '"box"'}
    assert facts(judge(schema, {"kind": 3})) == [("wrong_type", ("v", "kind"))]
    assert facts(judge(schema, {"kind": "circle", "radius": "1"})) == [("wrong_type", ("v", "radius"))]


@pytest.mark.parametrize("union", ["anyOf", "oneOf"])
def test_fields_of_another_branch_are_undeclared(union):
    verdict = judge({union: [CIRCLE, SQUARE]}, {"kind": "circle", "radius": 1, "side": 2})
    assert verdict.executable
    assert verdict.arguments == {"v": {"kind": "circle", "radius": 1}}


@pytest.mark.parametrize("union", ["anyOf", "oneOf"])
@pytest.mark.parametrize("size", [2, 65, 300])
def test_a_discriminator_decides_among_any_number_of_branches(union, size):
    branches = [
        {"type": "object", "properties": {"kind": {"const": number}, f"f{number}": INTEGER}, "required": ["kind"]}
        for number in range(size)
    ]
    last = size - 1
    assert facts(judge({union: branches}, {"kind": last, f"f{last}": "x"})) == [("wrong_type", ("v", f"f{last}"))]
    kept = judge({union: branches}, {"kind": last, f"f{last}": 1.0, "f0": 1})
    assert kept.arguments == {"v": {"kind": last, f"f{last}": 1}}


def test_one_of_several_fields():
    either = [{"required": ["id"]}, {"required": ["name"]}]
    tools = [tool({"id": STRING, "name": STRING}, anyOf=either)]
    issue = check(call({}), tools).issues[0]
    assert (issue.path, issue.hint) == (("id",), 'or "name" in its place')
    drifted = check(call({"Name": "x"}), tools)
    assert facts(drifted) == [("missing", ("name",))]
    both = check(call({"id": "x", "name": "y"}), [tool({"id": STRING, "name": STRING}, oneOf=either)])
    assert both.issues[0].allowed == ('exactly one of "id" or "name", not 2 at once',)


def test_null_for_an_optional_field():
    verdict = check(call({"a": None, "b": None}), [tool({"a": STRING, "b": STRING}, ["a"])])
    assert [issue.hint for issue in verdict.issues] == ["", "leave it out if there is no value"]


def test_constants_of_the_schema_are_shown_whole():
    assert judge({"const": {"x": 1}}, {"x": 2}).issues[0].allowed == ('{"x": 1}',)


def test_bounds_of_draft_4():
    draft = {"$schema": "http://json-schema.org/draft-04/schema#"}
    bounds = {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False}
    verdict = check(call({"v": 0}), [tool({"v": bounds}, ["v"], **draft)])
    assert verdict.issues[0].allowed == ("more than 0 and at most 9",)


def test_a_union_inside_a_union():
    inner = {"anyOf": [INTEGER, {"type": "array", "items": INTEGER}]}
    schema = {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"x": inner}}]}
    assert facts(judge(schema, {"x": [1, "a"]})) == [("wrong_type", ("v", "x", 1))]
    assert set(judge(schema, {"x": "a"}).issues[0].allowed) == {"integer", "array"}


EXPRESSION: dict[str, Any] = {
    "oneOf": [
        {"properties": {"op": {"const": "all"}, "of": {"type": "array", "items": {"$ref": "#/$defs/x%25/y"}}}},
        {"properties": {"op": {"const": "not"}, "of": {"$ref": "#/$defs/x%25/y"}}},
        {"properties": {"op": {"enum": ["eq", "ne"]}, "field": STRING}, "required": ["field"]},
    ]
}


def test_a_union_that_refers_to_itself():
    for branch in EXPRESSION["oneOf"]:
        branch |= {"type": "object", "required": ["op", *branch.get("required", ())]}
    tools = [tool({"v": {"$ref": "#/$defs/x%25/y"}}, **{"$defs": {"x%": {"y": EXPRESSION}}})]
    bad = {"op": "all", "of": [{"op": "not", "of": {"op": "eq"}}, {"op": "ne", "field": 3}]}
    assert facts(check(call({"v": bad}), tools)) == [
        ("missing", ("v", "of", 0, "of", "field")),
        ("wrong_type", ("v", "of", 1, "field")),
    ]


def test_unions_inside_conditions_count():
    limited = {"properties": {"n": {"maximum": 5}}}
    schema = {"if": {"properties": {"k": {"anyOf": [{"const": "a"}, {"const": "b"}]}}}, "then": limited}
    assert facts(judge(schema, {"k": "b", "n": 9})) == [("out_of_range", ("v", "n"))]
    assert judge(schema, {"k": "c", "n": 9}).valid
    assert facts(judge({"not": {"anyOf": [INTEGER, STRING]}}, 3)) == [("forbidden", ("v",))]


def test_names_of_digits_and_no_name():
    schema = {"properties": {"0": {"properties": {"": {"items": INTEGER}}}, "007": UNIT}}
    assert facts(judge(schema, {"0": {"": [1, "x"]}, "007": "k"})) == [
        ("wrong_type", ("v", "0", "", 1)),
        ("not_in_enum", ("v", "007")),
    ]


def test_names_that_differ_in_zeros_only():
    verdict = check(call({"007": "x", "7": 3}), [tool({"007": INTEGER, "7": {"type": "integer", "maximum": 9}})])
    assert facts(verdict) == [("wrong_type", ("007",))]
    assert verdict.keep == ("7",)
    verdict = check(call({"007": 3, "7": "x"}), [tool({"007": INTEGER, "7": UNIT})])
    assert facts(verdict) == [("not_in_enum", ("7",))]


def test_long_enums_are_shortened_around_the_nearest():
    names = [f"zone_{number:03}" for number in range(500)]
    issue = judge({"enum": names}, "zone_42O").issues[0]
    assert len(issue.allowed) == 8
    assert issue.more == 492
    assert '"zone_420"' in issue.allowed
    assert issue.hint == 'did you mean "zone_420"?' or "zone_42" in issue.hint
    numbers = judge({"enum": list(range(500))}, 1000).issues[0]
    assert numbers.allowed == tuple(map(str, range(492, 500)))


def test_unknown_tool_names_the_nearest_first():
    tools = [Tool(name) for name in ("write_file", "get_weather", "read_file")]
    verdict = check(call({}, "getWeather"), tools)
    assert facts(verdict) == [("unknown_tool", ())]
    assert verdict.issues[0].allowed[0] == '"get_weather"'
    assert verdict.issues[0].hint == 'did you mean "get_weather"?'
    assert not verdict.executable
    assert check(call({}, "x"), []).issues[0].allowed == ()


# B15: what is in doubt never runs a write.

REPAIRED = (Deviation(DeviationCode.REPAIRED, 0, tier=2),)


@pytest.mark.parametrize("doubtful", [{"trusted": False}, {"deviations": REPAIRED}], ids=["not trusted", "tier 2"])
@pytest.mark.parametrize(("effect", "runs"), [("read", True), ("write", False), ("external", False)])
@pytest.mark.parametrize("extra", [{}, {"zz": 1}], ids=["tidy", "shaped"])
def test_b15_doubtful_calls_never_write(doubtful, effect, runs, extra):
    verdict = check(call({"a": 1, **extra}, **doubtful), [tool({"a": INTEGER}, effect=effect)])
    assert verdict.valid
    assert verdict.executable is runs
    assert verdict.needs_confirmation is not runs
    assert verdict.doubts


def test_b15_harmless_deviations_are_no_doubt():
    coerced = (Deviation(DeviationCode.COERCED, 0), Deviation(DeviationCode.REPAIRED, 0, tier=1))
    verdict = check(call({"a": 1}, deviations=coerced), [tool({"a": INTEGER})])
    assert verdict.executable
    assert verdict.doubts == ()


@pytest.mark.parametrize("code", ErrorCode)
def test_a_failed_call_has_the_level_of_its_error(code):
    error = ErrorDetail(code, "what is wrong", 3, expected=("'}'",), excerpt="abc")
    verdict = check(ToolCallFailed(0, PartialToolCall("call_0", "f", {"a": 1}), error), [tool({"a": STRING})])
    assert len(verdict.issues) == 1
    assert verdict.level is error.level
    assert not verdict.executable
    assert verdict.keep == ()


@pytest.mark.parametrize(
    ("code", "issue"),
    [("unclosed_parameter", "truncated"), ("unterminated_json", "truncated"), ("invalid_json", "invalid_json"),
     ("stream_interrupted", "interrupted"), ("malformed_call", "malformed"), ("duplicate_key", "duplicate_argument")],
)  # fmt: skip
def test_codes_of_failed_calls(code, issue):
    failed = ToolCallFailed(0, PartialToolCall("c", "f", {}), ErrorDetail(ErrorCode(code), "", 0))
    assert check(failed, []).issues[0].code == issue


def test_a_tool_can_refuse_an_argument():
    judge_ = Judge([WEATHER])
    sent = call({"location": "Atlantis", "unit": "celsius"})
    verdict = judge_.refused(sent, ArgumentRejectedError("location", ["a city that exists"]))
    assert facts(verdict) == [("rejected", ("location",))]
    assert verdict.level is Level.TOOL
    assert verdict.issues[0].value == '"Atlantis"'
    assert verdict.keep == ("unit",)
    assert facts(judge_.refused(sent, ArgumentRejectedError(("no", 3), "x"))) == [("rejected", ("no", 3))]


SECRET = "ßecret"
BROKEN = [
    '{"v": "ßecret", "w": "a" "b"}',
    '{"v": "ßecret", "w": [nope]}',
    r'{"v": "ßecret", "w": "\d"}',
    '{"v": "ßecret", "w": "ab',
    '{"v": "ßecret", "v": "ßecret"}',
    '{"v": "ßecret"} {"v": "ßecret"}',
    '{"v": "ßecret", "w": ' + "9" * 5000 + "}",
    '{"v": "ßecret", "w": ' + "[" * 200 + "}",
    '["ßecret"',
    '{"v": "ßecret", "w": {"deep": tru}}',
]


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_a_call_that_could_not_be_read_names_the_place_and_no_value(text):
    reader = JsonDecoder()
    reader.feed(text)
    reader.close()
    assert reader.error is not None
    failed = ToolCallFailed(0, PartialToolCall("c", "f", {"v": SECRET}, text), reader.error)
    verdict = check(failed, [tool({"v": STRING, "w": STRING})])
    assert SECRET not in "".join(texts(verdict.issues[0]))
    assert verdict.issues[0].path == reader.error.path[:12]
    assert verdict.issues[0].hint
    assert SECRET not in observation(verdict)


def test_events_are_taken_as_they_come():
    text = '<minimax:tool_call>\n<invoke name="f">\n<parameter name="n">x</parameter>\n</invoke>\n</minimax:tool_call>'
    tools = [tool({"n": INTEGER})]
    decoder = NativeDecoder(tools=tools)
    events = decoder.feed(text) + decoder.close()
    finished = next(event for event in events if isinstance(event, ToolCallFinished))
    assert facts(check(finished, tools)) == [("wrong_type", ("n",))]


def test_misuse():
    with pytest.raises(UsageError, match="extra must be"):
        Judge([], extra="drop")  # type: ignore[arg-type]
    with pytest.raises(ToolDefinitionError, match=r"tools\[1\].*repeats"):
        Judge([{"name": "f"}, {"name": "f"}])


# Arguments that no schema foresees.

RECURSIVE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}, "$defs": {
    "n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}, "v": {"anyOf": [
        {"$ref": "#/$defs/n"}, INTEGER]}}, "additionalProperties": {"$ref": "#/$defs/n"}}}}  # fmt: skip


def nested(depth: int, key: str = "next") -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {key: value}
    return value


@pytest.mark.parametrize("key", ["next", "v", "x"])
@pytest.mark.parametrize("depth", [10, 120])
def test_recursive_schemas(depth, key):
    value = {"next": nested(depth, key)}
    verdict = check(call(value), [Tool("f", parameters=RECURSIVE)])
    assert verdict.valid
    assert verdict.arguments == value


DEEP_SCHEMAS = [
    RECURSIVE,
    {"$ref": "#"},
    {"type": "object", "properties": {"next": {}}},
    {"type": "object", "properties": {"next": {"enum": [{"next": 1}]}}},
    {"allOf": [{"$ref": "#/$defs/n"}], "$defs": RECURSIVE["$defs"]},
]


@pytest.mark.parametrize("schema", DEEP_SCHEMAS, ids=range(5))
@pytest.mark.parametrize("depth", [200, 2000, 100_000])
def test_depth_never_raises(schema, depth):
    value = {"next": nested(depth)}
    verdict = check(call(value), [Tool("f", parameters=schema)])
    assert isinstance(verdict, Verdict)
    while value:  # taken apart here, because the interpreter's own way recurses
        value = value.popitem()[1]


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, "\ud800", {"\ud800": 1}, {1: 2}, {"a": {1, 2}}, object(), b"x", 10**5000, (1, 2), 1j],
    ids=repr if sys.get_int_max_str_digits() == 0 else lambda value: type(value).__name__,
)
@pytest.mark.parametrize("schema", [{}, STRING, INTEGER, {"type": "object"}, KEYED, UNIT], ids=json_text)
def test_values_that_are_no_json_never_raise(schema, value):
    verdict = judge(schema, value)
    assert isinstance(verdict, Verdict)
    if schema in (INTEGER, UNIT) and value != 10**5000:
        assert not verdict.executable


UNREADABLE = [math.nan, math.inf, "\ud800", ["\ud800"], {"\ud800": 1}, {1: 2}, {"a": {1, 2}}, object(), b"x", (1, 2)]


@pytest.mark.parametrize("value", UNREADABLE, ids=range(len(UNREADABLE)))
@pytest.mark.parametrize("beside", [{}, {"zz": 1}, {"n": 3.0}], ids=["tidy", "undeclared", "coerced"])
@pytest.mark.parametrize(
    "schema", [{}, {"type": "object"}, {"type": "array"}, {"type": ["string", "object", "null"]}], ids=json_text
)
def test_the_verdict_on_a_value_does_not_depend_on_others(schema, beside, value):
    verdict = check(call({"n": 1, "v": value, **beside}), [tool({"v": schema, "n": INTEGER})])
    assert not verdict.executable
    assert set(verdict.keep) <= {"n"}
    if schema == {}:
        assert [code for code, _ in facts(verdict)] == ["not_json"]


@pytest.mark.parametrize("beside", [{}, {"zz": 1}], ids=["tidy", "undeclared"])
def test_depth_does_not_depend_on_others(beside):
    sent = call({"v": nested(128), **beside})
    assert facts(check(sent, [tool({"v": {}})]))[0][0] == "too_deep"
    assert check(call({"v": nested(127), **beside}), [tool({"v": {}})]).valid


# Properties.

NAMES = st.sampled_from(["a", "b", "start_line", "startLine", "c d", "é", "", "0", "007"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 10), st.sampled_from([1.0, 2.5, -3.0, 1e300]), st.text(max_size=4),
    st.sampled_from(["a", "b", '{"a": 1}', "[1, 2.0]", "celsius"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)
LEAVES = st.one_of(
    st.sampled_from([{}, True, {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}]),
    st.sampled_from([{"type": ["string", "null"]}, {"type": ["integer", "array"]}, {"type": "object"}]),
    st.sampled_from([{"$ref": "#/$defs/node"}, {"$ref": "#/$defs/leaf"}, {"const": "a"}, {"enum": ["a", 1, None]}]),
    st.sampled_from([{"type": "integer", "minimum": 1, "maximum": 5}, {"multipleOf": 2}, {"pattern": "^a"}]),
    st.sampled_from([{"maxLength": 2, "minLength": 1}, {"maxItems": 1}, {"not": {"type": "null"}}, {"nullable": True}]),
    st.sampled_from([{"type": "string", "nullable": True}, {"minProperties": 2}, {"uniqueItems": True}]),
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    objects = st.fixed_dictionaries(
        {"properties": st.dictionaries(NAMES, inner, max_size=4)},
        optional={
            "type": st.just("object"),
            "required": st.lists(NAMES, max_size=3, unique=True),
            "additionalProperties": st.booleans() | inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^s", "^zz"]), inner, max_size=1),
            "minProperties": st.just(1),
        },
    )
    arrays = st.fixed_dictionaries({"items": inner}, optional={"type": st.just("array"), "minItems": st.just(1)})
    unions = st.builds(
        lambda key, branches: {key: branches},
        st.sampled_from(["anyOf", "oneOf", "allOf"]),
        st.lists(inner, min_size=1, max_size=3),
    )
    conditions = st.builds(lambda a, b: {"if": a, "then": b}, inner, inner)
    return st.one_of(objects, objects, arrays, unions, conditions)


SCHEMAS = st.recursive(LEAVES, containers, max_leaves=8)
NODE = {"type": "object", "properties": {"a": {"$ref": "#/$defs/node"}, "b": {"type": "integer"}}}


@st.composite
def tools_and_calls(draw: st.DrawFn) -> tuple[Tool, dict[str, Any]]:
    """A tool with a generated schema, and arguments that often have to do with it."""
    properties = draw(st.dictionaries(NAMES, SCHEMAS, min_size=1, max_size=4))
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if draw(st.booleans()):
        parameters["required"] = draw(st.lists(NAMES, max_size=3, unique=True))
    if draw(st.booleans()):
        parameters["additionalProperties"] = False
    parameters["$defs"] = {"node": NODE, "leaf": draw(LEAVES.filter(lambda leaf: leaf != {"$ref": "#/$defs/leaf"}))}
    arguments = draw(st.dictionaries(NAMES | st.sampled_from(sorted(properties)), VALUES, max_size=5))
    return Tool("f", parameters=parameters), arguments


def drifted(issue: Issue) -> bool:
    """Whether it says that an optional field was sent by another name."""
    return issue.code == "missing" and bool(issue.value)


def same(left: Any, right: Any) -> bool:
    return json.dumps(left) == json.dumps(right)


@given(tools_and_calls(), st.sampled_from(["ignore", "reject", "keep"]))
def test_the_validator_has_the_last_word(pair, extra):
    """Issues if and only if jsonschema-rs refuses the resulting arguments (or something undeclared was rejected)."""
    tool_, arguments = pair
    before = copy.deepcopy(arguments)
    checked = Judge([tool_], extra=extra)
    verdict = checked.check(call(arguments))
    assert same(arguments, before)
    rejected = (extra == "reject" and bool(verdict.ignored)) or any(map(drifted, verdict.issues))
    valid = checked._prepared["f"]._schema.validator.is_valid(verdict.arguments)
    assert verdict.valid is (valid and not rejected)
    if "nullable" not in json.dumps(tool_.parameters):
        assert valid is jsonschema_rs.validator_for(tool_.parameters).is_valid(verdict.arguments)
    assert verdict.executable is verdict.valid
    assert (verdict.level is None) is verdict.valid


@given(tools_and_calls())
def test_shaping_is_idempotent_and_deterministic(pair):
    tool_, arguments = pair
    first = check(call(arguments), [tool_])
    assert check(call(arguments), [tool_]) == first
    again = check(call(first.arguments), [tool_])
    assert same(again.arguments, first.arguments)
    assert again.valid is (first.valid or all(map(drifted, first.issues)))
    assert again.coerced == ()


@given(tools_and_calls())
def test_what_is_valid_as_it_is_stays_valid(pair):
    """Shaping never breaks a call: what the validator takes, the judge takes (but for drifted names)."""
    tool_, arguments = pair
    if jsonschema_rs.validator_for(tool_.parameters).is_valid(arguments):
        assert all(map(drifted, check(call(arguments), [tool_]).issues))
        assert Judge([tool_], extra="keep").check(call(arguments)).valid


@given(tools_and_calls(), st.sampled_from(["ignore", "reject", "keep"]))
def test_the_quick_way_says_the_same(pair, extra):
    tool_, arguments = pair
    quick, slow = Judge([tool_], extra=extra), Judge([tool_], extra=extra)
    slow._prepared["f"]._tidy = lambda _: False
    assert quick.check(call(arguments)) == slow.check(call(arguments))


GENERATED = {
    "type": "object",
    "properties": {
        "ratio": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
        "tags": {"anyOf": [{"type": "array", "items": STRING}, {"type": "null"}]},
        "mode": {"$ref": "#/$defs/Mode"},
        "shape": {"oneOf": [{"$ref": "#/$defs/Circle"}, {"$ref": "#/$defs/Square"}]},
        "sizes": {"type": "object", "additionalProperties": INTEGER},
        "free": {},
    },
    "$defs": {
        "Mode": {"enum": ["fast", "slow"], "title": "Mode", "type": "string"},
        "Circle": CIRCLE,
        "Square": SQUARE,
    },
}
TIDY: dict[str, Any] = {
    "ratio": 1.5, "tags": ["é"], "mode": "fast", "shape": {"kind": "circle", "radius": 1}, "sizes": {"a": 1},
    "free": {"deep": [1.5, None]},
}  # fmt: skip
UNTIDY: list[dict[str, Any]] = [
    {"ratio": math.nan}, {"tags": ["\ud800"]}, {"shape": {"kind": "circle", "radius": 1, "side": 1}}, {"zz": 1},
    {"sizes": {"a": 1.0}}, {"sizes": {"\ud800": 1}}, {"free": {"deep": [math.inf]}},
]  # fmt: skip


def test_generated_schemas_take_the_quick_way():
    """It is the validator's time, and a little more."""
    prepared = Judge([Tool("f", parameters=GENERATED)])._prepared["f"]
    assert prepared._tidy(TIDY)
    assert prepared._tidy({**TIDY, "ratio": None, "tags": None})
    assert prepared.check(call(TIDY)).executable
    for change in UNTIDY:
        assert not prepared._tidy({**TIDY, **change}), change


def spoken_of(nodes: list[Node]) -> list[Node]:
    """The nodes, and all that hold together with them or are branches of theirs."""
    seen: dict[str, Node] = {}
    while nodes:
        node = nodes.pop()
        if node.pointer not in seen:
            seen[node.pointer] = node
            nodes += [*node.alike(), *(branch for union in node.unions for branch in union)]
    return list(seen.values())


def below(node: Node, step: str | int) -> list[Node]:
    if isinstance(step, int):
        item = node.item(step)
        return [item] if item else []
    found = [node.properties[step]] if step in node.properties else []
    found += [each for matches, each in node.patterns if matches(step)]
    return found + ([node.rest] if isinstance(node.rest, Node) else [])


@given(tools_and_calls())
def test_issues_are_in_order_and_their_paths_exist(pair):
    """Each path is a value of the arguments, or names a field that is missing from an object that is there; and the
    schema has it, or it is a field that is missing or forbidden."""
    tool_, arguments = pair
    verdict = check(call(arguments), [tool_])
    keys = [[(isinstance(step, str), step) for step in issue.path] for issue in verdict.issues]
    assert keys == sorted(keys)
    assert len({(issue.code, issue.path, issue.allowed) for issue in verdict.issues}) == len(verdict.issues)
    for issue in verdict.issues:
        parent: Any = verdict.arguments
        nodes = [Schema(tool_.parameters, "f").root]
        for step in issue.path[:-1]:
            parent = parent[step]
            nodes = [each for node in spoken_of(nodes) for each in below(node, step)]
            assert nodes
        if issue.code == "missing":
            assert issue.path[-1] not in parent
            assert issue.found == ""
            spoken = spoken_of(nodes)
            required = [node.value.get("required", ()) for node in spoken]
            names = [node.properties for node in spoken] if drifted(issue) else required
            assert any(issue.path[-1] in each for each in names)
        elif issue.path:
            assert shown(parent[issue.path[-1]]) == issue.value
            nodes = [each for node in spoken_of(nodes) for each in below(node, issue.path[-1])]
            assert nodes or issue.code in ("extra", "forbidden")


@given(tools_and_calls())
def test_issues_are_complete(pair):
    """Where there are no unions, every error of the validator is at the place of an issue, and the other way round."""
    tool_, arguments = pair
    written = json.dumps(tool_.parameters)
    assume(not any(word in written for word in ("anyOf", "oneOf", "nullable")))
    verdict = check(call(arguments), [tool_])
    assume(not any(key in ("", "0", "007") for path in paths(verdict.arguments) for key in path))  # its own way of them
    errors = jsonschema_rs.validator_for(tool_.parameters).iter_errors(verdict.arguments)
    places = {issue.path[:-1] if issue.code in ("missing", "extra") else issue.path for issue in verdict.issues}
    assert places == {tuple(error.instance_path) for error in errors}


def paths(value: Any) -> list[tuple[str | int, ...]]:
    return [path for path, _, _ in walk(value)]


def texts(issue: Any) -> list[str]:
    return [issue.found, issue.value, issue.hint, *issue.allowed]


@given(tools_and_calls(), st.text(min_size=1, max_size=300))
def test_texts_are_bounded(pair, text):
    tool_, arguments = pair
    verdict = check(call(dict.fromkeys(arguments, text * 200) | {"a": {text * 200: text * 200}}), [tool_])
    for issue in verdict.issues:
        assert len(issue.allowed) <= 8
        assert all(len(each) <= 200 for each in texts(issue))
        assert all(each.isprintable() for each in texts(issue))


def marked(value: Any) -> Any:
    """The same, with a mark instead of every text."""
    if isinstance(value, dict):
        return {key: marked(each) for key, each in value.items()}
    return (
        [marked(each) for each in value] if isinstance(value, list) else "ßecret" if isinstance(value, str) else value
    )


@given(tools_and_calls())
def test_no_value_of_another_field_leaks(pair):
    """A text shows only in the issue about the very place where it stands."""
    tool_, arguments = pair
    verdict = check(call(marked(arguments)), [tool_])
    for issue in verdict.issues:
        at: Any = verdict.arguments
        for step in issue.path:
            at = at.get(step) if isinstance(at, dict) else at[step]
        if at != "ßecret":
            assert "ßecret" not in "".join(texts(issue))


def test_very_many_issues_are_counted():
    verdict = judge({"type": "array", "items": INTEGER}, ["x"] * 1000)
    assert len(verdict.issues) + verdict.more == 1000
    assert len(verdict.issues) == 64


def test_hostile_calls_cost_no_more_than_their_size():
    """Each of these took minutes with a suggestion for every error, or with Python's own regular expressions."""
    enum = {"enum": [f"member_{number}" for number in range(500)]}
    keys = {f"key_{number}": 1 for number in range(20_000)}
    pattern = {"type": "object", "patternProperties": {"^(a+)+$": {"type": "string"}}, "properties": {}}
    assert judge({"type": "array", "items": enum}, ["x"] * 20_000).more == 20_000 - 64
    assert judge({"type": "object", "properties": {}, "required": [f"k{number}" for number in range(64)]}, keys).issues
    closed = tool({"v": {"type": "object", "properties": {}, "additionalProperties": False}})
    assert Judge([closed], extra="keep").check(call({"v": keys})).more == 20_000 - 64
    assert judge(pattern, {"a" * 5000 + "!": 1}).valid
    zeros = {"0" * number + "7": "x" for number in range(1500)}
    assert not judge({"type": "object", "additionalProperties": INTEGER}, zeros).valid


def test_json_in_strings_in_json_has_an_end():
    value: Any = {}
    for _ in range(9):
        value = {"next": json.dumps(nested(20) | {"next": value})}
    verdict = check(call(value), [Tool("f", parameters=RECURSIVE)])
    assert isinstance(verdict, Verdict)


def test_branching_recursion_takes_no_exponential_time():
    """Each level has several branches that fit equally badly."""
    branch = {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}, "x": INTEGER}}
    schema = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"anyOf": [branch, {**branch, "required": ["q"]}, {**branch, "title": "c"}]}},
    }
    value: dict[str, Any] = {"x": "bad", "extra": 1}
    for _ in range(14):
        value = {"next": value, "extra": 1}
    verdict = check(call({"next": value}), [Tool("f", parameters=schema)])
    assert not verdict.valid


# The shared cases that are about validation.


def cases(name: str) -> list[dict[str, Any]]:
    lines = shared("cases", f"{name}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", ["B075", "B237", "B094", "B221"])
def test_shared_case(name):
    case = next(each for kind in ("types", "openai_delta", "truncation") for each in cases(kind) if each["id"] == name)
    expected = case["expected"]["calls"][0] if "calls" in case["expected"] else case["expected"]
    code, _, fields = expected["error"].partition(":")
    arguments = expected.get("arguments", {case["input"].get("param"): expected.get("value")})
    sent = call(arguments, expected.get("name", "f"))
    verdict = Judge(case["tools"], extra="reject").check(sent)
    wanted = {"missing_required": "missing", "unknown_tool": "unknown_tool", "undeclared_parameter": "extra"}[code]
    assert {each for each, _ in facts(verdict)} == {wanted}
    if fields:
        assert {path[0] for _, path in facts(verdict)} == set(fields.split(","))
    if "suggestion" in expected:
        assert expected["suggestion"] in verdict.issues[0].hint
    assert not verdict.executable
