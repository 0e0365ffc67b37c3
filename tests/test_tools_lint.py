"""Advice on tool definitions, and the command."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamparse import ToolDefinitionError
from streamparse.cli import main
from streamparse.tools.lint import Report, estimate_tokens, lint
from tests.test_tools_definition import BROKEN

GOOD = {
    "name": "get_weather",
    "description": "Looks up the weather of one place. You must call this when the user asks for a forecast.",
    "parameters": {
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "City and country, such as 'Bern, CH'"},
            "unit": {"enum": ["celsius", "fahrenheit"]},
        },
        "required": ["location", "unit"],
    },
}


def codes(*tools: Any) -> set[str]:
    return {finding.code for finding in lint(tools).findings}


def described(text: str) -> dict[str, Any]:
    return {**GOOD, "description": text}


def with_parameter(schema: Any, **root: Any) -> dict[str, Any]:
    properties = {**GOOD["parameters"]["properties"], "p": schema}  # type: ignore[index]
    return {**GOOD, "parameters": {**GOOD["parameters"], "properties": properties, **root}}  # type: ignore[dict-item]


def test_a_good_tool_has_no_findings():
    report = lint([GOOD])
    assert report.findings == ()
    assert report.clean
    assert report.tokens == {"get_weather": report.tokens_per_round}
    assert 60 < report.tokens_per_round < 180


@pytest.mark.parametrize(
    ("tool", "code"),
    [
        (described(""), "no_description"),
        (described("Weather when asked"), "short_description"),
        (described("Looks up the weather of one place in the world."), "no_trigger"),
        (described("You may use this when the user asks for a forecast."), "weak_trigger"),
        (described("Handles various weather things. Call it when needed."), "vague"),
        ({**GOOD, "name": "get weather"}, "invalid_name"),
        ({**GOOD, "name": "g" * 65}, "invalid_name"),
        ({**GOOD, "name": "get_weather_v2"}, "unstable_name"),
        (with_parameter({"description": "anything"}), "untyped"),
        (with_parameter({"type": "string"}), "no_parameter_description"),
        (with_parameter({"type": "array", "description": "d"}), "untyped_items"),
        (with_parameter({"type": ["string", "number"], "description": "d"}), "mixed_types"),
        (with_parameter({"type": "string", "description": "d"}, required=["q"]), "undeclared_required"),
        ({**GOOD, "description": "You must call this when asked. " + "x" * 1000}, "long_definition"),
        ({**GOOD, "parameters": {"type": "object", "properties": {
            key: {"type": "string", "description": "d"} for key in "abcdef"}}}, "many_optional"),
    ],
)  # fmt: skip
def test_each_finding(tool, code):
    assert code in codes(tool)
    assert codes(tool) <= {code, "no_trigger", "vague", "short_description", "no_parameter_description"} | codes(GOOD)


@pytest.mark.parametrize("name", ["run_test", "read_only_test", "make_copy"])
def test_a_verb_and_its_object_are_a_stable_name(name):
    assert "unstable_name" not in codes({**GOOD, "name": name})


def test_parameters_of_branches_get_advice():
    branches = [{"properties": {"one": {"type": "string"}}}, {"properties": {"two": {"description": "anything"}}}]
    tool = {**GOOD, "parameters": {"type": "object", "anyOf": branches}}
    assert {(each.code, each.path) for each in lint([tool]).findings} == {
        ("no_parameter_description", "one"),
        ("untyped", "two"),
    }


def test_nullable_and_described_by_reference_is_fine():
    schema = {"anyOf": [{"$ref": "#/$defs/d"}, {"type": "null"}], "description": "the day"}
    assert codes(with_parameter(schema, **{"$defs": {"d": {"type": "string"}}})) == set()


def test_triggers_in_other_scripts():
    assert "no_trigger" not in codes(described("查询一个城市的天气。当用户询问天气预报时必须调用。"))
    assert "short_description" not in codes(described("查询天气。当用户询问时必须调用。"))


def test_the_whole_list():
    many = [{**GOOD, "name": f"tool{chr(97 + number)}"} for number in range(11)]
    assert codes(*many) == {"many_tools"}
    assert codes(*many[:10]) == set()
    assert codes(GOOD, {**GOOD, "name": "getWeather"}) == {"similar_name"}
    twice = lint([GOOD, GOOD])
    assert [finding.code for finding in twice.findings] == ["repeated_name"]
    assert not twice.clean
    assert twice.tokens_per_round == 2 * lint([GOOD]).tokens_per_round


@pytest.mark.parametrize("broken", [row[0] for row in BROKEN] + [3], ids=range(len(BROKEN) + 1))
def test_broken_definitions_are_errors_beside_the_others(broken):
    report = lint([{"name": "f", "parameters": broken}, GOOD])
    assert [(finding.severity, finding.code, finding.tool) for finding in report.findings] == [
        ("error", "broken_definition", "tools[0]")
    ]
    assert list(report.tokens) == ["get_weather"]


def test_what_is_no_list():
    with pytest.raises(ToolDefinitionError, match="tools must be a list"):
        lint({"name": "f"})


KEYS = st.sampled_from(["name", "type", "properties", "a", "function", "enum", "items", "required", "$ref"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)


@given(st.lists(JSON | JSON.map(lambda each: {"name": "f", "parameters": each}), max_size=4))
def test_any_list_of_anything_gives_a_report(tools):
    assert isinstance(lint(tools), Report)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("天气", 2), ("天气abcd", 3)])
def test_tokens_are_estimated_from_characters(text, tokens):
    assert estimate_tokens(text) == tokens


# The command.


def run(tmp_path, capsys, tools, *options):
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(tools), "utf-8")
    code = main(["lint", str(path), *options])
    return code, capsys.readouterr()


def test_the_command_is_clean(tmp_path, capsys):
    code, said = run(tmp_path, capsys, {"tools": [GOOD]})
    assert code == 0
    assert said.out.splitlines()[-1].startswith("0 errors, 0 warnings; about ")


def test_warnings_are_no_failure(tmp_path, capsys):
    code, said = run(tmp_path, capsys, [described("")])
    assert code == 0
    assert "warning: get_weather: say what it does" in said.out


def test_errors_are(tmp_path, capsys):
    code, said = run(tmp_path, capsys, [{"name": "\x1b[2J", "parameters": {"type": "nope"}}])
    assert code == 1
    assert "error: tools[0]" in said.out
    assert "\x1b" not in said.out


def test_json(tmp_path, capsys):
    code, said = run(tmp_path, capsys, [described("")], "--format", "json")
    assert code == 0
    report = json.loads(said.out)
    assert report["findings"][0]["code"] == "no_description"
    assert report["tokens_per_round"] > 0


def test_a_file_that_is_none(tmp_path, capsys):
    code, said = run(tmp_path, capsys, 3)
    assert code == 2
    assert "expected a list of tool definitions" in said.err
