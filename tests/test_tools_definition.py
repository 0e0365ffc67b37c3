"""Tools: every form they are written in, functions, and what is refused with its place."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import functools
from collections import OrderedDict
from types import MappingProxyType, SimpleNamespace
from typing import Annotated, Any, Literal, Optional, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamparse import NativeDecoder, ToolCallFinished, ToolDefinitionError, compile_tools
from streamparse.events import ToolCall
from streamparse.tools.definition import Tool, as_tools, digest
from streamparse.tools.docstrings import read_docstring
from streamparse.tools.functions import tool_from_function
from streamparse.tools.schema import Schema
from streamparse.tools.validation import check

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FORMS: dict[str, Any] = {
    "openai": {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}},
    "flat": {"name": "f", "description": "d", "parameters": SCHEMA},
    "anthropic": {"name": "f", "description": "d", "input_schema": SCHEMA},
    "mcp": {"name": "f", "description": "d", "inputSchema": SCHEMA, "annotations": None},
    "mapping": MappingProxyType({"name": "f", "description": "d", "parameters": MappingProxyType(SCHEMA)}),
    "object": SimpleNamespace(name="f", description="d", inputSchema=SCHEMA),
    "tool": Tool("f", "d", SCHEMA),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_tool(form):
    assert Tool.of(FORMS[form]) == Tool("f", "d", SCHEMA, effect="write")


@pytest.mark.parametrize("write", [Tool.to_openai, Tool.to_anthropic, Tool.to_mcp])
def test_what_is_written_reads_back(write):
    tool = Tool("f", "d", SCHEMA, effect="read", idempotent=True, destructive=False)
    again = Tool.of(write(tool))
    assert (again.name, again.description, again.parameters) == ("f", "d", SCHEMA)
    if write is Tool.to_mcp:
        assert again == tool


@pytest.mark.parametrize(
    ("hints", "effect"),
    [
        ({}, "write"),
        ({"readOnlyHint": True, "openWorldHint": True}, "read"),
        ({"readOnlyHint": False}, "write"),
        ({"openWorldHint": True}, "external"),
        ({"readOnlyHint": "yes", "openWorldHint": 1}, "write"),
    ],
)
def test_hints_of_mcp(hints, effect):
    definition = {"name": "f", "inputSchema": SCHEMA, "annotations": {**hints, "idempotentHint": True}}
    assert Tool.of(definition).effect == effect
    assert Tool.of(definition).idempotent is True
    assert Tool.of(definition).destructive is None
    assert Tool.of(definition, effect="read").effect == "read"
    spaced = {**definition, "annotations": SimpleNamespace(**hints)}
    assert Tool.of(spaced).effect == effect


def test_a_tool_without_a_schema_takes_nothing():
    assert Tool.of({"name": "now"}).parameters == {"type": "object", "properties": {}}


def test_nobody_changes_a_tool_later():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    tool = Tool("f", "", schema)
    before = digest([tool])
    schema["properties"]["a"]["type"] = "integer"  # type: ignore[index]
    tool.to_openai()["function"]["parameters"]["properties"].clear()
    tool.to_mcp()["inputSchema"].clear()
    assert digest([tool]) == before
    with pytest.raises(dataclasses.FrozenInstanceError):
        tool.name = "g"  # type: ignore[misc]


def test_decoders_take_tools():
    tool = Tool("f", "", {"type": "object", "properties": {"n": {"type": "integer"}}})
    assert compile_tools([tool]) == compile_tools([tool.to_openai()])
    text = '<minimax:tool_call>\n<invoke name="f">\n<parameter name="n">3</parameter>\n</invoke>\n</minimax:tool_call>'
    decoder = NativeDecoder(tools=[tool])
    calls = [each.call for each in decoder.feed(text) + decoder.close() if isinstance(each, ToolCallFinished)]
    assert calls[0].arguments == {"n": 3}


def properties(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


BROKEN = [
    (properties(a={"type": "strng"}), "#/properties/a/type", "a type name"),
    (properties(a={"type": ["string", "string"]}), "#/properties/a/type", "a type name"),
    (properties(a={"type": ["strng"]}), "#/properties/a/type", "type name"),
    (properties(a=3), "#/properties/a", "a schema"),
    (properties(a={"enum": {}}), "#/properties/a/enum", "a list of values"),
    (properties(a={"pattern": "("}), "#/properties/a/pattern", "a regular expression"),
    (properties(a={"minimum": "3"}), "#/properties/a/minimum", "a number"),
    (properties(a={"maxLength": -1}), "#/properties/a/maxLength", "an integer from 0"),
    (properties(a={"anyOf": []}), "#/properties/a/anyOf", "a list of schemas"),
    (properties(a={"anyOf": [{"type": "x"}]}), "#/properties/a/anyOf/0/type", "a type name"),
    (properties(a={"items": [{}]}), "#/properties/a/items", "a schema"),
    ({"type": "object", "required": "a"}, "#/required", "a list of different strings"),
    ({"type": "object", "properties": []}, "#/properties", "an object of schemas"),
    (properties(a={"$ref": "#/$defs/no"}), "#/properties/a/$ref", "a reference into the same schema"),
    (properties(a={"$ref": "https://example.org/s"}), "#/properties/a/$ref", "a reference into the same schema"),
    ({"$schema": "https://example.org/s", "type": "object"}, "#/$schema", "JSON Schema draft"),
    ({"type": "string"}, "#/type", "'object'"),
    (properties(a={"default": {1: 2}}), "#/properties/a/default", "string keys"),
    (properties(a={"const": object()}), "#/properties/a/const", "a JSON value"),
    (properties(a={"description": "\ud800"}), "#", "JSON"),
    (properties(**{"": properties(a={"type": "x"})}), "#/properties", "an object of schemas"),
    (properties(**{"007": {"type": "x"}}), "#/properties/007/type", "a type name"),
    ([], "#", "an object"),
    ("x", "#", "an object"),
]


@pytest.mark.parametrize(("schema", "pointer", "expected"), BROKEN, ids=[str(row[0])[:60] for row in BROKEN])
def test_a_broken_schema_is_refused_with_its_place(schema, pointer, expected):
    with pytest.raises(ToolDefinitionError) as caught:
        Tool("f", "", schema)
    message = str(caught.value)
    assert f" {pointer} of its parameters must be " in message
    assert expected in message
    assert '"f"' in message


def test_a_schema_without_end_is_refused():
    endless: dict[str, Any] = {"type": "object"}
    endless["properties"] = {"a": endless}
    with pytest.raises(ToolDefinitionError, match="nested at most 64 deep"):
        Tool("f", "", endless)


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({"type": "string", "nullable": True}, [None, "a"], [3]),
        ({"type": "string", "enum": ["a"], "nullable": True}, [None, "a"], ["b"]),
        ({"$ref": "#/$defs/s", "nullable": True}, [None, "a"], [3]),
        ({"type": "string", "title": None, "enum": None}, ["a"], [None]),
        ({"const": None}, [None], ["a"]),
    ],
)
def test_liberties_of_sdks(schema, valid, invalid):
    tool = Tool("f", "", {**properties(v=schema, w=None), "$defs": {"s": {"type": "string"}}})
    for value in valid:
        assert check(ToolCall("c", "f", {"v": value}), [tool]).valid, value
    for value in invalid:
        assert not check(ToolCall("c", "f", {"v": value}), [tool]).valid, value


def test_old_drafts_say_so():
    old = "http://json-schema.org/draft-07/schema#"
    tool = Tool("f", "", {"$schema": old, **properties(a={"items": [{"type": "integer"}], "additionalItems": False})})
    assert check(ToolCall("c", "f", {"a": [3.0]}), [tool]).arguments == {"a": [3]}
    assert not check(ToolCall("c", "f", {"a": ["x"]}), [tool]).valid


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ([{"name": "f"}, {}], r"tools\[1\]: a tool needs a non-empty string"),
        ([{"name": " "}], r"tools\[0\]: a tool needs"),
        ([3], r"tools\[0\]: not a tool definition \(3\)"),
        ([{"name": "f", "description": 3}], "its description must be text"),
        ({"name": "f"}, "tools must be a list"),
        ([Tool("f"), {"name": "f"}], r"tools\[1\] repeats the name"),
    ],
)
def test_what_is_no_list_of_tools(tools, message):
    with pytest.raises(ToolDefinitionError, match=message):
        as_tools(tools)


def test_an_unknown_effect():
    with pytest.raises(ToolDefinitionError, match="effect must be one of read, write, external"):
        Tool("f", effect="delete")  # type: ignore[arg-type]


# The digest (A7).


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "mcp_toolset", "mcp_server_name": "x"},
        {"type": "web_search_preview"},
        {"type": "mcp", "server_url": "x"},
    ],
)
def test_a_tool_of_the_provider_is_no_tool_of_ours(definition):
    """Decoders get the tools of a request as they are, and pass it over; to judge its calls would be wrong."""
    known = compile_tools([FORMS["openai"], definition, {"name": "g"}])
    assert list(known) == ["f", "g"]
    with pytest.raises(ToolDefinitionError, match=r"tools\[0\].*of the provider"):
        as_tools([definition])
    with pytest.raises(ToolDefinitionError, match=r"tools\[2\] repeats the name 'f' of tools\[1\]"):
        compile_tools([definition, FORMS["openai"], FORMS["flat"]])


def test_a_named_tool_of_the_provider():
    """Its calls come, without a schema: nothing of them can be judged."""
    bash = {"type": "bash_20250124", "name": "bash"}
    assert list(compile_tools([bash])) == ["bash"]
    with pytest.raises(ToolDefinitionError, match="bash_20250124"):
        Tool.of(bash)
    assert Tool.of({"type": "custom", "name": "f", "input_schema": SCHEMA}).parameters == SCHEMA


@pytest.mark.parametrize(
    "nameless", [{"type": "function"}, {"type": "custom"}, {}, {"type": "x", "parameters": SCHEMA}]
)
def test_a_tool_of_ours_has_a_name(nameless):
    with pytest.raises(ToolDefinitionError, match="name"):
        compile_tools([nameless])


def test_strict_is_kept():
    tool = Tool.of({"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}})
    assert tool.to_openai()["function"]["strict"] is True
    assert "strict" not in Tool("f").to_openai()["function"]


def test_the_digest_sees_what_the_model_sees():
    base = digest([FORMS["openai"]])
    assert len(base) == 64
    assert {digest([form]) for form in FORMS.values()} == {base}
    turned = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}
    changed = [
        Tool("g", "d", SCHEMA),
        Tool("f", "D", SCHEMA),
        Tool("f", "d", turned),
        Tool("f", "d", {**SCHEMA, "required": []}),
    ]
    assert len({base, *(digest([tool]) for tool in changed)}) == 5
    pair = [Tool("a"), Tool("b")]
    assert digest(pair) != digest(pair[::-1])


@given(st.dictionaries(st.text(max_size=3), st.sampled_from(["string", "integer"]), max_size=4))
def test_the_digest_is_that_of_the_json_form(types):
    schema = {"type": "object", "properties": {key: {"type": name} for key, name in types.items()}}
    tool = Tool("f", "", schema)
    assert digest([tool]) == digest([tool.to_mcp()]) == digest([Tool("f", "", OrderedDict(schema))])


# Functions.


class Unit(enum.Enum):
    CELSIUS = "celsius"
    KELVIN = "kelvin"


@dataclasses.dataclass
class Place:
    """Where."""

    city: str
    country: str = "CH"


class Options(TypedDict, total=False):
    days: int


class Point(msgspec.Struct):
    x: float


def weather(
    place: Place,
    unit: Unit,
    mode: Literal["short", "long"] = "short",
    limit: Annotated[int, msgspec.Meta(ge=1, description="at most so many")] = 3,
    options: Options | None = None,
    points: list[Point] | None = None,
) -> str:
    """Look up the weather. You must call this when the user asks for a forecast.

    Args:
        place: Where to look,
            on earth.
        unit (Unit): Of the temperature.
        limit: not used, since the type says it

    Returns:
        A text.
    """
    return f"{place.city} {place.country} {unit.name} {mode} {limit} {options} {points}"


def test_a_function_is_a_tool():
    tool = tool_from_function(weather, effect="read")
    assert tool.name == "weather"
    assert tool.description == "Look up the weather. You must call this when the user asks for a forecast."
    fields = tool.parameters["properties"]
    assert list(fields) == ["place", "unit", "mode", "limit", "options", "points"]
    assert fields["place"] == {"$ref": "#/$defs/Place", "description": "Where to look, on earth."}
    assert set(fields["mode"]["enum"]) == {"short", "long"}
    assert fields["mode"]["default"] == "short"
    assert fields["limit"] == {"type": "integer", "minimum": 1, "description": "at most so many", "default": 3}
    assert fields["options"]["default"] is None
    assert tool.parameters["required"] == ["place", "unit"]


def test_a_call_is_judged_and_run():
    tool = tool_from_function(weather)
    sent = {"place": {"city": "Bern"}, "unit": "kelvin", "limit": 2.0, "points": [{"x": 1}], "zz": 1}
    verdict = check(ToolCall("c", "weather", sent), [tool])
    assert verdict.executable
    assert tool.call(verdict.arguments) == "Bern CH KELVIN short 2 None [Point(x=1.0)]"
    refused = check(ToolCall("c", "weather", {**sent, "limit": 0, "unit": "rankine"}), [tool])
    assert {(issue.code.value, issue.path) for issue in refused.issues} == {
        ("out_of_range", ("limit",)),
        ("not_in_enum", ("unit",)),
    }


def test_async_functions_and_methods():
    async def wait(seconds: float) -> float:
        """Wait."""
        return seconds

    class Clock:
        def tick(self, times: int = 1) -> int:
            """Tick."""
            return times

        def __call__(self, hour: int) -> int:
            return hour

    assert asyncio.run(tool_from_function(wait).call({"seconds": 1})) == 1
    assert tool_from_function(Clock().tick).call({}) == 1
    assert tool_from_function(Clock(), name="clock").call({"hour": 3}) == 3


@dataclasses.dataclass
class Job:
    """Run a job."""

    name: str
    tries: int = 1


def between(start: datetime.datetime, ends: list[datetime.date], counts: dict[int, str] | None = None) -> Any:
    """What happened.

    Args:
        start: From here on.
    """
    return start, ends, counts


def test_partials_and_classes():
    bound = tool_from_function(functools.partial(between, counts={}), name="bound")
    assert bound.description == "What happened."
    assert bound.parameters["required"] == ["start", "ends"]
    job = tool_from_function(Job)
    assert (job.name, job.description) == ("Job", "Run a job.")
    assert job.call({"name": "a"}) == Job("a")
    point = tool_from_function(Point)
    assert point.call({"x": 1}) == Point(1)
    assert point.description == ""


def test_keys_that_are_numbers():
    tool = tool_from_function(between)
    arguments = {"start": "2020-01-01T00:00:00Z", "ends": ["2020-01-01"], "counts": {"1": "x"}}
    assert check(ToolCall("c", "between", arguments), [tool]).executable
    assert tool.call(arguments)[2] == {1: "x"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": "soon"}, "^start: Invalid"),
        ({"ends": ["2020-01-01", "x"]}, "^ends.*: Invalid"),
        ({"counts": {"a": "x"}}, "^counts"),
    ],
)
def test_a_conversion_that_fails_names_the_parameter(change, message):
    arguments = {"start": "2020-01-01T00:00:00Z", "ends": ["2020-01-01"], **change}
    with pytest.raises(msgspec.ValidationError, match=message):
        tool_from_function(between).call(arguments)


def test_optional_without_a_default_is_required():
    def f(a: Optional[int]) -> None:  # noqa: UP045 - as people write it
        """Nothing."""

    tool = tool_from_function(f)
    assert tool.parameters["required"] == ["a"]
    assert check(ToolCall("c", "f", {"a": None}), [tool]).valid


def many(*values: int) -> None: ...
def more(**fields: int) -> None: ...
def positional(a: int, /) -> None: ...
def untyped(a) -> None: ...
def exotic(a: complex) -> None: ...
def dangling(a: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (many, r"'many': parameter 'values' takes any number"),
        (more, r"'more': parameter 'fields' takes any field"),
        (positional, r"'a' is positional-only"),
        (untyped, r"'a' has no type"),
        (exotic, r"'exotic': parameter 'a': .*complex"),
        (dangling, r"annotations cannot be read: .*Nowhere"),
    ],
)
def test_functions_that_are_no_tools(function, message):
    with pytest.raises(ToolDefinitionError, match=message):
        tool_from_function(function)


def test_a_tool_without_a_function_cannot_be_called():
    with pytest.raises(ToolDefinitionError, match="no function"):
        Tool("f").call({})


GOOGLE = """Do it.

    More of it.

    Args:
        a: the first: thing
            goes on
        b (int, optional): the second

    Raises:
        ValueError: never
    """
NUMPY = """Do it.

    More of it.

    Parameters
    ----------
    a : int
        the first: thing
        goes on
    b, c : str
        the second

    Returns
    -------
    int
        a: not a parameter
    """
SPHINX = """Do it.

    More of it.

    :param a: the first: thing
        goes on
    :param int b: the second
    :type b: int
    :returns: a
    """


def test_parentheses_and_dashes_in_docstrings():
    text = "Do it.\n\nFirst\n---\nThen.\n\nArgs:\n    a (dict[str, tuple(int, int)]): the map\n    b: the rest"
    assert read_docstring(text) == ("Do it.\n\nFirst\n---\nThen.", {"a": "the map", "b": "the rest"})


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_docstrings(text):
    description, fields = read_docstring(text)
    assert description == "Do it.\n\nMore of it."
    assert fields["a"] == "the first: thing goes on"
    assert fields["b"] == "the second"
    assert fields.keys() <= {"a", "b", "c"}


@given(st.text(alphabet="aA :-\n\tArgs:Parameters(", max_size=80) | st.none())
def test_any_docstring_can_be_read(text):
    description, fields = read_docstring(text)
    assert isinstance(description, str)
    assert all(key for key in fields)


def test_schema_walks_are_finite():
    """A reference to itself is the same node, however deep one goes."""
    schema = Schema({"type": "object", "properties": {"a": {"$ref": "#"}}}, "t")
    node = schema.root
    for _ in range(50):
        field = node.field("a")
        assert field is not None
        node = field
    assert len(schema._nodes) == 2
