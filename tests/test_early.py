"""Early verdicts: what is rejected, at which character, on every wire; and that nothing valid ever is.

``json_early`` feeds arguments to a ``ChatDecoder`` and gives (character, path, code) for each rejection: the number of
argument characters that had come. The character is the verdict's point, so it is in every expectation."""

from __future__ import annotations

import io
import json
import random
from itertools import product
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamparse import (
    ArgumentDelta,
    ArgumentRejected,
    ArgumentValue,
    ChatDecoder,
    Event,
    IssueCode,
    MessagesDecoder,
    NativeDecoder,
    ToolCallFinished,
    UsageError,
    check,
    compile_tools,
)
from streamparse.commands.log import TextLog
from streamparse.commands.wording import rejection_words
from streamparse.decoding.early_patterns import matcher
from streamparse.decoding.early_watch import MOST
from streamparse.events import dumps, loads
from streamparse.tools.issues import Verdict
from streamparse.tools.observation import observation
from streamparse.transport.wires import Options, Wire
from tests.chunks import check_chunking, join


def tool(schema: Any, name: str = "f") -> list[dict[str, Any]]:
    return [{"name": name, "parameters": schema}]


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def delta(**function: str) -> dict[str, Any]:
    call = {"index": 0, "function": function}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}


FINISH = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}


def chat(schema: Any, chunks: list[str], name: str = "f", **options: Any) -> list[Event]:
    decoder = ChatDecoder(tools=tool(schema), early=True, dialect=None, **options)
    events = decoder.feed(delta(name=name, arguments=""))
    for chunk in chunks:
        events += decoder.feed(delta(arguments=chunk))
    return events + decoder.feed(FINISH) + decoder.close()


def messages(schema: Any, chunks: list[str], name: str = "f") -> list[Event]:
    decoder = MessagesDecoder(tools=tool(schema), early=True, dialect=None)
    block = {"type": "tool_use", "id": "call_0", "name": name, "input": {}}
    events = decoder.feed({"type": "content_block_start", "index": 0, "content_block": block})
    for chunk in chunks:
        part = {"type": "input_json_delta", "partial_json": chunk}
        events += decoder.feed({"type": "content_block_delta", "index": 0, "delta": part})
    events += decoder.feed({"type": "content_block_stop", "index": 0})
    events += decoder.feed({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
    return events + decoder.feed({"type": "message_stop"}) + decoder.close()


def markup(parameters: dict[str, str], name: str = "f") -> str:
    inner = "".join(f'<parameter name="{key}">{text}</parameter>\n' for key, text in parameters.items())
    return f'<minimax:tool_call>\n<invoke name="{name}">\n{inner}</invoke>\n</minimax:tool_call>'


def native(schema: Any, chunks: list[str], **options: Any) -> list[Event]:
    decoder = NativeDecoder(tools=tool(schema), early=True, **options)
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close("stop")


def rejections(events: list[Event]) -> list[ArgumentRejected]:
    return [event for event in events if isinstance(event, ArgumentRejected)]


def facts(events: list[Event]) -> list[tuple[Any, str]]:
    return [(event.path, event.issue.code.value) for event in rejections(events)]


def json_early(schema: Any, text: str, **options: Any) -> list[tuple[int, Any, str]]:
    """Where in the argument text each rejection came, its path and code. All chunkings are checked on the way."""
    check_chunking(lambda chunks: chat(schema, chunks, **options), text)
    decoder = ChatDecoder(tools=tool(schema), early=True, dialect=None, **options)
    decoder.feed(delta(name="f", arguments=""))
    found = []
    for place, char in enumerate(text, 1):
        found += [(place, *fact) for fact in facts(decoder.feed(delta(arguments=char)))]
    found += [(len(text) + 1, *fact) for fact in facts(decoder.feed(FINISH) + decoder.close())]
    return found


def text_early(schema: Any, value: str, key: str = "v", **options: Any) -> list[tuple[int, Any, str]]:
    """The same for the raw text of one native parameter; 0 is before it, the length plus one behind it."""
    text = markup({key: value})
    check_chunking(lambda chunks: native(schema, chunks, **options), text)
    decoder = NativeDecoder(tools=tool(schema), early=True, **options)
    start = text.index(value + "</parameter>") if value else text.index("</parameter>")
    found = []
    for place, char in enumerate(text, 1):
        shown = min(max(place - start, 0), len(value) + 1)
        found += [(shown, *fact) for fact in facts(decoder.feed(char))]
    decoder.close("stop")
    return found


# Names ----------------------------------------------------------------------------------------------------------------

TWO = [*tool(of(), "get_weather"), *tool(of(), "get_time")]


def named(text: str, tools: Any = TWO) -> list[tuple[int, str]]:
    """After how many characters of a native name it is rejected, and what of it is quoted."""
    whole = markup({}, text)
    events = check_chunking(
        lambda chunks: [
            *(decoder := NativeDecoder(tools=tools, early=True)).feed(""),
            *(event for chunk in chunks for event in decoder.feed(chunk)),
            *decoder.close("stop"),
        ],
        whole,
    )
    decoder, found = NativeDecoder(tools=tools, early=True), []
    for place, char in enumerate(whole, 1):
        found += [place - whole.index(text) for event in decoder.feed(char) if isinstance(event, ArgumentRejected)]
    quoted = [event.issue.value for event in rejections(events)]
    return list(zip(found, quoted, strict=True))


def test_native_name_that_no_tool_begins_with():
    assert named("get_wether") == [(7, '"get_wet"')]
    assert named("xyz") == [(1, '"x"')]


def test_native_name_that_is_only_the_beginning_of_one():
    assert named("get_") == [(6, '"get_"')]  # at the end of the tag


def test_declared_names_pass():
    assert named("get_weather") == named("get_time") == []


def test_name_in_odd_headers():
    """A quote that its line does not close is no quote (N4): the name ends at the blank."""
    tools = tool(of(), "get")
    for header in ("name='get'", "name=get", 'name="get x\n"', 'id="1" name="get"'):
        text = f"<minimax:tool_call>\n<invoke {header}>\n</invoke>\n</minimax:tool_call>"
        decoder = NativeDecoder(tools=tools, early=True)
        assert facts([event for char in text for event in decoder.feed(char)]) == [], header
    text = "<minimax:tool_call>\n<invoke name='other'>\n</invoke>\n</minimax:tool_call>"
    decoder = NativeDecoder(tools=tools, early=True)
    assert facts(decoder.feed(text)) == [((), "unknown_tool")]


def test_name_fragments_of_chunks():
    decoder = ChatDecoder(tools=TWO, early=True, dialect=None)
    assert facts(decoder.feed(delta(name="get_we"))) == []
    found = rejections(decoder.feed(delta(name="th")))
    assert [(event.index, event.issue.value) for event in found] == [(0, '"get_wet"')]
    events = decoder.feed(delta(name="er"))
    events += decoder.feed(delta(arguments='{"a": 1}')) + decoder.feed(FINISH) + decoder.close()
    assert facts(events) == []
    (finished,) = [event for event in events if isinstance(event, ToolCallFinished)]
    assert finished.index == 0


def test_name_that_only_begins_a_declared_one_is_rejected_at_its_end():
    decoder = ChatDecoder(tools=TWO, early=True, dialect=None)
    assert facts(decoder.feed(delta(name="get_"))) == []
    assert facts(decoder.feed(delta(arguments="{"))) == [((), "unknown_tool")]


def test_a_provider_s_own_tool_is_none_of_ours():
    decoder = MessagesDecoder(tools=TWO, early=True)
    block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    assert facts(decoder.feed({"type": "content_block_start", "index": 0, "content_block": block})) == []


def test_indexes_of_calls_that_were_rejected_before_they_started():
    decoder = ChatDecoder(tools=TWO, early=True, dialect=None)
    events = decoder.feed(delta(name="zap"))
    call = {"index": 1, "id": "b", "function": {"name": "get_time", "arguments": "{}"}}
    events += decoder.feed({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    events += decoder.feed(delta(arguments="{}")) + decoder.feed(FINISH) + decoder.close()
    ended = {event.call.name: event.index for event in events if isinstance(event, ToolCallFinished)}
    assert ended == {"zap": 0, "get_time": 1}
    assert [event.index for event in rejections(events)] == [0]


# Values of JSON -------------------------------------------------------------------------------------------------------

UNIT = of(unit={"type": "string", "enum": ["celsius", "fahrenheit", "cents"]})


def test_enum_at_the_first_character_that_no_member_shares():
    assert json_early(UNIT, '{"unit": "kelvin"}') == [(11, ("unit",), "not_in_enum")]
    assert json_early(UNIT, '{"unit": "cemt"}') == [(13, ("unit",), "not_in_enum")]
    assert json_early(UNIT, '{"unit": "celsiusx"}') == [(18, ("unit",), "not_in_enum")]
    assert json_early(UNIT, '{"unit": "cel"}') == [(14, ("unit",), "not_in_enum")]  # it may not end here
    assert json_early(UNIT, '{"unit": "cents"}') == []


def test_escapes_are_what_they_stand_for():
    assert json_early(UNIT, r'{"unit": "\u0063ents"}') == []
    assert json_early(UNIT, r'{"unit": "\u006bents"}') == [(16, ("unit",), "not_in_enum")]


def test_the_example_of_the_issue_says_what_is_allowed():
    (found,) = rejections(chat(UNIT, list('{"unit": "kelvin"}')))
    assert (found.issue.found, found.issue.value) == ("string", '"k"')
    assert found.issue.allowed == ('"celsius"', '"fahrenheit"', '"cents"')
    text = observation(Verdict("f", found.issue.level, (found.issue,)))
    assert 'unit: found string "k"; allowed: "celsius", "fahrenheit" or "cents"' in text


@pytest.mark.parametrize(
    ("schema", "value", "place"),
    [
        ({"type": "string"}, "3", 1),
        ({"type": "string"}, "null", 1),
        ({"type": "integer"}, '"3"', 1),
        ({"type": "boolean"}, '"true"', 1),
        ({"type": "array", "items": {}}, "{}", 1),
        ({"type": "object"}, "[]", 1),
        ({"type": ["string", "null"]}, "true", 1),
        ({"type": "integer"}, "2.5", 4),  # 2.5e1 is an integer
        ({"type": "integer"}, "false", 1),
        ({"const": True}, "false", 1),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, '"a"', 1),
        ({"allOf": [{"type": ["integer", "string"]}, {"type": ["integer", "null"]}]}, '"a"', 1),
        ({"type": "array"}, '"x"', 2),  # JSON may stand in a string where no string may
        ({"type": "array"}, '" x"', 3),
        ({"type": "object"}, '"[1]"', 2),
        ({"type": "object"}, '"{]"', 4),
        ({"type": "object"}, '""', 2),
    ],
)
def test_wrong_types(schema, value, place):
    start = len('{"v": ')
    assert json_early(of(v=schema), f'{{"v": {value}}}') == [(start + place, ("v",), _code(schema))]


def _code(schema: Any) -> str:
    return "not_in_enum" if "const" in schema else "wrong_type"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, "3.0"),
        ({"type": "integer"}, "1e3"),
        ({"type": "integer"}, "12345678901234567890123"),
        ({"type": "object"}, '"{}"'),
        ({"type": ["object", "null"]}, r'" {\"a\": [1]}"'),
        ({"type": "array"}, '"[1]"'),
        ({"type": "number"}, "3"),
        ({"type": "string", "nullable": True}, "null"),
        ({"type": "string", "enum": ["a"], "nullable": True}, "null"),
        ({"enum": [1, "a", None, [1], {"a": 1}]}, "1.0"),
        ({"enum": [1, "a", None, [1], {"a": 1}]}, '{"a": 1}'),
        ({"const": None}, "null"),
        ({"enum": [{}], "type": "object"}, "{}"),
        ({"properties": {"a": {}}}, "3"),  # JSON Schema: properties say nothing of what is no object
        ({}, "3"),
        (True, '"x"'),
        ({"type": None, "enum": None}, "3"),
        ({"type": "unheard-of"}, "3"),
        ({"$ref": "#/nowhere"}, "3"),
        ({"$id": "http://example.org/x", "type": "string"}, "3"),
        ({"not": {}}, "3"),
        ({"minLength": "x", "required": 7, "pattern": 3, "items": "a", "prefixItems": {}}, '"a"'),
    ],
)
def test_what_fits_or_cannot_be_told(schema, value):
    assert json_early(of(v=schema), f'{{"v": {value}}}') == []


@pytest.mark.parametrize(
    ("schema", "value", "place", "code"),
    [
        ({"maxLength": 3}, '"abcd"', 5, "too_long"),
        ({"maxLength": 3}, '"äöü😀"', 5, "too_long"),  # characters, as JSON Schema counts
        ({"minLength": 3}, '"ab"', 4, "too_short"),
        ({"pattern": "^[a-z]+$"}, '"a1"', 4, "pattern"),
        ({"minimum": 3}, "2", 2, "out_of_range"),
        ({"exclusiveMaximum": 3}, "3", 2, "out_of_range"),
        ({"multipleOf": 5}, "12", 3, "out_of_range"),
        ({"enum": [1, 12]}, "2", 2, "not_in_enum"),
        ({"maxItems": 1}, "[1, 2]", 5, "too_many"),
        ({"minItems": 1}, "[]", 2, "too_few"),
        ({"maxProperties": 1}, '{"a": 1, "b": 2}', 12, "too_many"),
        ({"minProperties": 1}, "{}", 2, "too_few"),
        ({"enum": [[1]]}, "[2]", 3, "not_in_enum"),
        (False, "1", 0, "forbidden"),  # its key is too much
    ],
)
def test_bounds(schema, value, place, code):
    start = len('{"v": ') if place else len('{"v"')
    assert json_early(of(v=schema), f'{{"v": {value}}}') == [(start + place, ("v",), code)]


def test_items():
    schema = of(v={"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}})
    assert json_early(schema, '{"v": ["a", 1, "b", 2, null]}') == [
        (16, ("v", 2), "wrong_type"),
        (24, ("v", 4), "wrong_type"),
    ]
    old = of(v={"items": [{"type": "string"}], "additionalItems": False})
    assert json_early(old, '{"v": ["a", 1]}') == [(13, ("v", 1), "forbidden")]


CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {}},
    "required": ["a"],
    "additionalProperties": False,
}


def test_undeclared_keys_where_they_are_forbidden():
    assert json_early(CLOSED, '{"a": 1, "x": {"y": 2}}') == [(12, ("x",), "extra")]
    assert json_early(of(o=CLOSED), '{"o": {"a": 1, "x": 2}}') == [(18, ("o", "x"), "extra")]
    free = {"type": "object", "properties": {"a": {}}}
    assert json_early(free, '{"x": 1}') == []
    patterned = {"patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": False}
    assert json_early(patterned, '{"x-a": "s", "y": 1}') == [(9, ("x-a",), "wrong_type"), (16, ("y",), "extra")]
    odd = {"patternProperties": {"(?<=x)-": {"type": "integer"}}, "additionalProperties": False}
    assert json_early(odd, '{"x-a": "s", "y": 1}') == []  # the pattern cannot be told
    typed = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert json_early(typed, '{"x": "s"}') == [(7, ("x",), "wrong_type")]


def test_missing_keys_at_the_close():
    assert json_early(CLOSED, '{"b": 1}') == [(8, ("a",), "missing")]
    nested = {**of(o={**of(a={}, b={"enum": ["x"]}), "required": ["a", "b"]}), "required": ["o", "p"]}
    assert json_early(nested, '{"o": {}, "q": 1}') == [
        (8, ("o", "a"), "missing"),
        (8, ("o", "b"), "missing"),
        (17, ("p",), "missing"),
    ]
    assert json_early(CLOSED, "") == [(1, ("a",), "missing")]  # C5: no arguments at all are {}


def test_once_per_path_and_nothing_inside_a_rejected_value():
    schema = of(v={"type": "array", "maxItems": 1, "items": {"type": "integer"}}, w={"type": "integer"})
    text = '{"v": ["a", "b", "c"], "w": "x"}'
    assert [fact[1:] for fact in json_early(schema, text)] == [
        (("v", 0), "wrong_type"),
        (("v",), "too_many"),
        (("w",), "wrong_type"),
    ]
    deep = of(v={"type": "string"})
    assert [fact[1:] for fact in json_early(deep, '{"v": {"v": [1, {"a": 2}]}}')] == [(("v",), "wrong_type")]


def test_the_call_goes_on():
    events = chat(UNIT, ['{"unit": "kelvin"}'])
    without = ChatDecoder(tools=tool(UNIT), dialect=None)
    plain = without.feed(delta(name="f", arguments="")) + without.feed(delta(arguments='{"unit": "kelvin"}'))
    plain += without.feed(FINISH) + without.close()
    assert join([event for event in events if not isinstance(event, ArgumentRejected)]) == join(plain)


def test_there_is_a_bound():
    schema = of(v={"items": {"type": "string"}})
    events = chat(schema, [json.dumps({"v": [1] * 500})])
    assert len(rejections(events)) == MOST


# Unions and references ------------------------------------------------------------------------------------------------

SHAPES = {
    "oneOf": [
        {**of(kind={"const": "circle"}, r={"type": "number"}), "required": ["kind", "r"]},
        {**of(kind={"const": "square"}, a={"type": "number"}), "required": ["kind", "a"]},
    ]
}


def test_unions_are_rejected_when_no_branch_is_left():
    assert json_early(of(s=SHAPES), '{"s": {"kind": "circle", "r": 1}}') == []
    found = json_early(of(s=SHAPES), '{"s": {"kind": "disc", "r": 1}}')
    assert found == [(17, ("s", "kind"), "not_in_enum")]
    (event,) = rejections(chat(of(s=SHAPES), ['{"s": {"kind": "disc"}}']))
    assert event.issue.allowed == ('"circle"', '"square"')


def test_the_last_branch_is_the_schema():
    text = '{"s": {"kind": "circle", "r": "1", "x": 2}}'
    assert json_early(of(s=SHAPES), text) == [(31, ("s", "r"), "wrong_type")]
    assert json_early(of(s=SHAPES), '{"s": {"kind": "square"}}') == [(24, ("s", "a"), "missing")]


def test_branches_of_arrays_and_unions_in_unions():
    lists = {"anyOf": [{"items": {"type": "integer"}, "type": "array"}, {"items": SHAPES, "type": "array"}]}
    assert json_early(of(v=lists), '{"v": [1, 2, "x"]}') == [(14, ("v", 2), "wrong_type")]
    assert json_early(of(v=lists), '{"v": [{"kind": "square", "a": 1}, {"kind": "c", "r": 2}]}') == [
        (47, ("v", 1, "kind"), "not_in_enum")  # at its end: a circle begins so
    ]
    assert json_early(of(v=lists), '{"v": [1, {}]}') == [(11, ("v", 1), "wrong_type")]


def test_constants_of_a_union_are_one_list():
    schema = of(v={"oneOf": [{"const": "red"}, {"const": "green"}, {"const": 3}]})
    assert json_early(schema, '{"v": "gray"}') == [(10, ("v",), "not_in_enum")]
    assert json_early(schema, '{"v": 4}') == [(8, ("v",), "not_in_enum")]


TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/node"}},
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 2},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            },
            "required": ["name"],
        }
    },
}


def test_recursive_schemas():
    text = '{"root": {"name": "a", "children": [{"name": "b", "next": {"name": "abc"}}, {"next": null}]}}'
    assert [fact[1:] for fact in json_early(TREE, text)] == [
        (("root", "children", 0, "next", "name"), "too_long"),
        (("root", "children", 1, "name"), "missing"),
    ]


def test_schemas_that_lead_in_circles():
    circle = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, **of(v={"$ref": "#/$defs/a"})}
    assert json_early(circle, '{"v": 1}') == []
    loop = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}, **of(v={"$ref": "#/$defs/a"})}
    assert json_early(loop, '{"v": 1}') == []


def test_unions_that_multiply_are_bounded():
    """Each level has two branches that cannot be told apart, each of which has the next level."""
    node = {
        "anyOf": [of(n={"$ref": "#/$defs/n"}, x={"type": "integer"}), of(n={"$ref": "#/$defs/n"}, y={"minimum": 3})]
    }
    schema = {"$defs": {"n": node}, **of(n={"$ref": "#/$defs/n"})}
    text = '{"n": ' * 40 + "{}" + "}" * 40
    assert json_early(schema, text) == []
    deep: Any = {"type": "integer"}
    for _ in range(900):
        deep = {"anyOf": [deep, deep]}
    assert facts(chat(of(v=deep), ['{"v": "x"}'])) in ([], [(("v",), "wrong_type")])


# Native text ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "text", "place", "code"),
    [
        ({"type": "string", "enum": ["celsius"]}, "kelvin", 1, "not_in_enum"),
        ({"type": "string", "enum": ["celsius"]}, "cel", 4, "not_in_enum"),
        ({"type": "string", "maxLength": 3}, "a<b>c", 4, "too_long"),
        ({"type": "integer"}, "three", 1, "wrong_type"),
        ({"type": "integer"}, " 3x", 3, "wrong_type"),
        ({"type": "integer"}, "3.5", 4, "wrong_type"),
        ({"type": "integer"}, "", 1, "wrong_type"),
        ({"type": "boolean"}, "yes", 1, "wrong_type"),
        ({"type": "boolean"}, "Trues", 5, "wrong_type"),
        ({"const": True}, "False", 1, "not_in_enum"),
        ({"type": ["integer", "null"]}, "Nope", 3, "wrong_type"),
        ({"type": "integer", "maximum": 5}, "7", 2, "out_of_range"),
        ({"anyOf": [{"type": "integer"}, {"enum": ["auto"]}]}, "all", 2, "not_in_enum"),
        ({"type": "object"}, "nothing", 1, "wrong_type"),
        ({"type": "array", "items": {"type": "integer"}}, '["a"]', 2, "wrong_type"),
        ({"type": ["array", "null"]}, "nil", 2, "wrong_type"),
    ],
)
def test_native_texts(schema, text, place, code):
    path = ("v", 0) if text == '["a"]' else ("v",)
    assert text_early(of(v=schema), text) == [(place, path, code)]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "integer"}, " 3 "),
        ({"type": "integer"}, "3.0"),
        ({"type": "integer"}, "1E3"),
        ({"type": "boolean"}, "TRUE"),
        ({"type": ["integer", "null"]}, "NULL"),
        ({"type": ["integer", "null"]}, "None"),
        ({"type": ["integer", "string"]}, "whatever"),
        ({"anyOf": [{"type": "integer"}, {"enum": ["auto"]}]}, "auto"),
        ({"anyOf": [{"type": "integer"}, {"enum": ["auto"]}]}, "12"),
        ({"enum": [1, "1"]}, "1"),
        ({"enum": ["true", "x"]}, "true"),
        ({"type": "string"}, "null"),
        ({}, "[1"),
        ({}, "[1]"),
        ({"type": ["object", "string"]}, '{"a": 1}'),
        ({"type": "number"}, "1" * 200),
    ],
)
def test_native_texts_that_fit(schema, text):
    assert text_early(of(v=schema), text) == []


def test_native_undeclared_and_missing():
    schema = {**CLOSED, "required": ["a", "b"]}
    assert text_early(schema, "x", key="zz") == [(0, ("zz",), "extra"), (2, ("a",), "missing"), (2, ("b",), "missing")]
    typed = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert text_early(typed, "xy", key="zz") == [(1, ("zz",), "wrong_type")]  # undeclared text is a string (T5)


def test_native_strings_keep_their_fast_path():
    """A string without rules streams as without early verdicts: one delta for each chunk."""
    schema = of(v={"type": "string"})
    decoder = NativeDecoder(tools=tool(schema), early=True)
    decoder.feed('<minimax:tool_call>\n<invoke name="f">\n<parameter name="v">ab')
    assert decoder.feed("cd") == [ArgumentDelta(0, ("v",), "cd")]
    assert decoder._fast[0]


def test_whitespace_strip():
    schema = of(v={"type": "string", "enum": ["a b"]}, w={"type": "integer"})
    assert text_early(schema, "  a b ", whitespace="strip") == []
    assert text_early(schema, "  a c ", whitespace="strip") == [(5, ("v",), "not_in_enum")]
    assert text_early(schema, " 3 ", key="w", whitespace="strip") == []


def test_calls_that_are_one_object():
    text = '<tool_call>\n{"name": "f", "arguments": {"unit": "kelvin", "o": 1}}\n</tool_call>'
    schema = {**UNIT, "additionalProperties": False}
    events = check_chunking(lambda chunks: native(schema, chunks, dialect="hermes"), text)
    assert facts(events) == [(("unit",), "not_in_enum"), (("o",), "extra")]
    assert [event.issue.path for event in rejections(events)] == [("unit",), ("o",)]
    unnamed = '<tool_call>\n{"arguments": {"unit": "kelvin"}, "name": "f"}\n</tool_call>'
    assert facts(check_chunking(lambda chunks: native(schema, chunks, dialect="hermes"), unnamed)) == []
    other = text.replace('"f"', '"g"')
    assert facts(check_chunking(lambda chunks: native(schema, chunks, dialect="hermes"), other)) == [
        ((), "unknown_tool")
    ]


def test_arguments_in_a_string_of_such_an_object():
    text = '<tool_call>\n{"name": "f", "arguments": "{\'unit\': \'cents\'}"}\n</tool_call>'
    events = check_chunking(lambda chunks: native(UNIT, chunks, dialect="hermes", repair=2), text)
    assert [event.call.arguments for event in events if isinstance(event, ToolCallFinished)] == [{"unit": "cents"}]
    assert facts(events) == []


def test_calls_in_reasoning_are_not_judged():
    """N13: whether such a call counts is only known behind it."""
    text = "<think>\n" + markup({"unit": "kelvin"}) + "</think>\n" + markup({"unit": "kelvin"})
    events = check_chunking(lambda chunks: native(UNIT, chunks), text)
    assert [event.index for event in rejections(events)] == [1]


def test_qwen_coder():
    text = "<tool_call>\n<function=f>\n<parameter=unit>\nkelvin\n</parameter>\n</function>\n</tool_call>"
    events = check_chunking(lambda chunks: native(UNIT, chunks, dialect="qwen3_coder"), text)
    assert facts(events) == [(("unit",), "not_in_enum")]
    other = text.replace("=f>", "=go>")
    events = check_chunking(lambda chunks: native(UNIT, chunks, dialect="qwen3_coder"), other)
    assert facts(events) == [((), "unknown_tool")]


def test_calls_in_the_text_of_an_endpoint():
    decoder = ChatDecoder(tools=tool(UNIT), early=True, dialect="minimax_m2")
    chunk = {"choices": [{"index": 0, "delta": {"content": markup({"unit": "kelvin"})}}]}
    events = decoder.feed(delta(name="f", arguments="")) + decoder.feed(chunk)
    found = rejections(events)
    assert [(event.index, event.path) for event in found] == [(1, ("unit",))]


# Tolerant reading -----------------------------------------------------------------------------------------------------


def test_kinds_come_from_the_reader():
    assert json_early(UNIT, "{'unit': 'kelvin'}", repair=2) == [(11, ("unit",), "not_in_enum")]
    assert json_early(UNIT, "{unit: 'cents'}", repair=2) == []
    assert json_early(of(v={"type": "integer"}), "{'v': True}", repair=2) == [(7, ("v",), "wrong_type")]
    assert json_early(of(v={"type": "array", "maxItems": 1}), "{'v': (1, 2)}", repair=2) == [(11, ("v",), "too_many")]
    assert json_early(UNIT, r'"{\"unit\": \"kelvin\"}"', repair=2) == [(15, ("unit",), "not_in_enum")]


def test_broken_json_is_another_matter():
    events = chat(of(v={"type": "string"}, w={"type": "string"}), ['{"v": 1, "w": tru}'])
    assert facts(events) == [(("v",), "wrong_type"), (("w",), "wrong_type")]
    assert not any(isinstance(event, ToolCallFinished) for event in events)


# Options --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decoder", [NativeDecoder, ChatDecoder, MessagesDecoder])
def test_early_needs_tools(decoder):
    with pytest.raises(UsageError, match="early=True needs tools"):
        decoder(early=True)
    with pytest.raises(UsageError, match="use True or False"):
        decoder(early="yes", tools=TWO)
    decoder(early=True, tools=compile_tools(TWO))


@pytest.mark.parametrize("wire", list(Wire))
def test_every_wire_takes_the_option(wire):
    with pytest.raises(UsageError, match="early=True needs tools"):
        Options(early=True).decoder(wire)
    Options(early=True, tools=TWO).decoder(wire)


def test_people_are_told():
    (rejected,) = rejections(chat(UNIT, ['{"unit": "kelvin"}']))
    words = 'unit: not_in_enum, found string "k"; allowed: "celsius", "fahrenheit", "cents"'
    assert rejection_words(rejected) == words
    out = io.StringIO()
    log = TextLog(out)
    log.show(chat(UNIT, ['{"unit": "kelvin"}']))
    assert f"rejected: {words}" in out.getvalue()


def test_off_by_default():
    decoder = ChatDecoder(tools=tool(UNIT), dialect=None)
    assert facts(decoder.feed(delta(name="g", arguments='{"unit": "kelvin"}'))) == []


def test_rejections_are_lines_of_a_log():
    for event in rejections(chat(UNIT, ['{"unit": "kelvin"}'])):
        assert loads(dumps(event)) == event


# Expressions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["^[a-z]+$", r"^\d{4}-\d{2}$", "a|b", "^(foo|bar)$", r"^[\w.-]+@x\.org$", "ab?"])
@pytest.mark.parametrize("text", ["", "a", "abc", "2024-05", "2024-5", "foo", "foobar", "a@x.org", "ab\n", "x"])
def test_patterns_as_the_validator_reads_them(pattern, text):
    match = matcher(pattern)
    assert match is not None
    if text.isprintable():
        assert match(text) is jsonschema_rs.validator_for({"pattern": pattern}).is_valid(text)
    else:
        assert match(text) is None


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(?=a)b", r"\bx", r"\p{L}", "a*b*c*d*", "[[a]&&b]", r"(a)\1", "(", 3, None]
)
def test_patterns_that_cannot_be_told(pattern):
    assert matcher(pattern) is None


# Properties -----------------------------------------------------------------------------------------------------------

KEYS = ("a", "b", "ab")
WORDS = ("", "a", "ab", "abc", "b", "{}", "[1]", "true", "1")
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 12), st.sampled_from([0.5, 3.0, -1.0, 2.5]), st.sampled_from(WORDS)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)),
    max_leaves=6,
)
types = st.sampled_from(["null", "boolean", "integer", "number", "string", "object", "array"])


def _keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keywords = st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(types, st.lists(types, min_size=1, max_size=3, unique=True)),
            "enum": st.lists(values, min_size=1, max_size=4, unique_by=json.dumps),
            "const": scalars,
            "maxLength": st.integers(0, 3),
            "minLength": st.integers(0, 2),
            "pattern": st.sampled_from(["^a", "b$", "[0-9]+"]),
            "minimum": st.integers(-2, 5),
            "exclusiveMaximum": st.integers(0, 9),
            "multipleOf": st.sampled_from([1, 2, 3, 0.5]),
            "maxItems": st.integers(0, 2),
            "minItems": st.integers(0, 2),
            "maxProperties": st.integers(0, 2),
            "minProperties": st.integers(0, 2),
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "properties": st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$", "x|(?=a)"]), inner, max_size=2),
            "additionalProperties": inner,
            "required": st.lists(st.sampled_from(KEYS), max_size=2, unique=True),
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y", "#"]),
        },
    )
    return st.one_of(st.booleans(), keywords.map(lambda each: dict(list(each.items())[:4])), keywords)


schemas = st.recursive(st.builds(lambda name: {"type": name}, types), _keywords, max_leaves=6)
roots = st.builds(
    lambda properties, x, y, extra: {
        **({} if extra is None else {"additionalProperties": extra}),
        "type": "object",
        "properties": properties,
        "$defs": {"x": x, "y": y},
    },
    st.dictionaries(st.sampled_from(KEYS), schemas, min_size=1, max_size=3),
    schemas,
    schemas,
    st.one_of(st.none(), schemas),
)
arguments = st.dictionaries(st.sampled_from(KEYS), values, max_size=3)


def _valid(schema: Any, value: Any) -> bool | None:
    try:
        return bool(jsonschema_rs.validator_for(schema).is_valid(value))
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError):
        return None


@settings(max_examples=400, deadline=None)
@given(roots, arguments, st.randoms(use_true_random=False))
def test_what_validates_is_never_rejected(schema, given_arguments, generator):
    """Soundness, for any cut of the text."""
    text = json.dumps(given_arguments)
    events = join(chat(schema, _cut(text, generator)))
    assert events == join(chat(schema, [text]))
    assert len({event.path for event in rejections(events)}) == len(rejections(events))
    if _circular(schema):
        return
    if _valid(schema, given_arguments):
        assert facts(events) == []


def _circular(schema: Any) -> bool:
    """References that lead back to the same value make the validator recurse without an end."""
    return '"$ref"' in json.dumps(schema["$defs"])


@settings(max_examples=150, deadline=None)
@given(roots, arguments)
def test_what_the_judge_accepts_is_never_rejected(schema, given_arguments):
    """Coercions included: ``3.0`` for an integer, JSON in a string. Only what the schema forbids by name is."""
    if _circular(schema):
        return
    events = chat(schema, [json.dumps(given_arguments)])
    (finished,) = [event for event in events if isinstance(event, ToolCallFinished)]
    try:
        verdict = check(finished, tool(schema))
    except ValueError:  # a schema that the judge refuses
        return
    if verdict.valid and not verdict.ignored:
        assert facts(events) == []


@settings(max_examples=150, deadline=None)
@given(roots, arguments)
def test_the_wires_agree(schema, given_arguments):
    text = json.dumps(given_arguments)
    assert rejections(chat(schema, [text])) == rejections(messages(schema, [text]))


@settings(max_examples=200, deadline=None)
@given(
    roots, st.dictionaries(st.sampled_from(KEYS), st.one_of(values.map(json.dumps), st.sampled_from(WORDS)), max_size=3)
)
def test_native_calls_that_validate_are_never_rejected(schema, texts):
    """By what the decoder reads, whatever the types make of the text (T)."""
    text = markup(texts)
    events = join(native(schema, [text]))
    assert events == join(native(schema, list(text)))
    if _circular(schema):
        return
    for event in events:
        if isinstance(event, ToolCallFinished) and _valid(schema, event.call.arguments):
            assert facts(events) == []


JSON_SCHEMA = of(
    a={"type": "array", "items": {"type": "integer", "minimum": 2}},
    b={"type": "object", "properties": {"u": {"enum": ["x", "yy"]}}, "required": ["u"], "additionalProperties": False},
    ab={"type": "integer", "maximum": 9},
)


@settings(max_examples=100, deadline=None)
@given(arguments)
def test_native_and_json_give_the_same_rejections(given_arguments):
    """For values whose text is JSON; what a scalar is, native text only says at its end."""
    given_arguments = {key: each for key, each in given_arguments.items() if isinstance(each, list | dict)}
    texts = {key: json.dumps(each) for key, each in given_arguments.items()}
    found = facts(native(JSON_SCHEMA, [markup(texts)]))
    assert found == facts(chat(JSON_SCHEMA, [json.dumps(given_arguments)]))


ALPHABET = 'ab"1tn[{'
SMALL = {
    "enum": {"type": "string", "enum": ["ab", "ba", "a"]},
    "boolean or word": {"anyOf": [{"type": "boolean"}, {"enum": ["b", "bb"]}]},
    "null or list": {"type": ["null", "array"], "items": {"enum": ["a"]}},
    "number": {"type": "integer"},
    "constants": {"enum": ["aa", None, True]},
}
ENDINGS = [
    "",
    'aa"',
    '[]"',
    '"',
    "b",
    'b"',
    'a"',
    'ba"',
    'bb"',
    "rue",
    "alse",
    "ull",
    "]",
    "]}",
    "1",
    '"]',
    'a"]',
    '"a"]',
    'bb"]',
]


@pytest.mark.parametrize("name", SMALL)
def test_rejected_exactly_when_no_completion_validates(name):
    """Brute force over all short texts: a rejection comes at the first character after which no small completion is
    valid, and not before. Inside JSON that stands in a string (B14) nothing is judged.
    """
    schema = of(v=SMALL[name])
    validator = jsonschema_rs.validator_for(schema)
    for size in range(1, 4):
        for letters in product(ALPHABET, repeat=size):
            prefix = '{"v": ' + "".join(letters)
            decoder = ChatDecoder(tools=tool(schema), early=True, dialect=None)
            events = decoder.feed(delta(name="f", arguments=prefix))
            if _broken(decoder) or "".join(letters).startswith(('"[', '"{')):
                continue
            rejected = bool(facts(events))
            assert rejected is not _completes(prefix, validator), prefix


def _broken(decoder: ChatDecoder) -> bool:
    (call,) = decoder._roster._open.values()
    return call._reader.error is not None


def _completes(prefix: str, validator: Any) -> bool:
    for ending in ENDINGS:
        for tail in ("}", ""):
            try:
                value = json.loads(prefix + ending + tail)
            except ValueError:
                continue
            if validator.is_valid(value) or _unpacks(value["v"], validator):
                return True
    return False


def _unpacks(value: Any, validator: Any) -> bool:
    try:
        inner = json.loads(value) if isinstance(value, str) else None
    except ValueError:
        return False
    return isinstance(inner, list | dict) and validator.is_valid({"v": inner})


def _cut(text: str, generator: random.Random) -> list[str]:
    pieces, at = [], 0
    while at < len(text):
        size = generator.choice((1, 2, 3, 7))
        pieces.append(text[at : at + size])
        at += size
    return pieces


def test_values_come_as_without():
    """A string that is looked at character by character is the same string."""
    schema = of(v={"type": "string", "maxLength": 5, "enum": ["abcdefgh", "abc"]})
    events = chat(schema, ['{"v": "abc', "def", 'ghi"}'])
    assert "".join(event.text for event in events if isinstance(event, ArgumentDelta)) == "abcdefghi"
    assert [event.value for event in events if isinstance(event, ArgumentValue)] == ["abcdefghi"]
    assert facts(events) == [(("v",), IssueCode.TOO_LONG)]


# Completeness ---------------------------------------------------------------------------------------------------------


def _understood(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas of which everything is told, by the close at the latest."""
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(types, st.lists(types, min_size=1, max_size=3, unique=True)),
            "enum": st.lists(values, min_size=1, max_size=4, unique_by=json.dumps),
            "maxLength": st.integers(0, 3),
            "minLength": st.integers(0, 2),
            "minimum": st.integers(-2, 5),
            "multipleOf": st.sampled_from([1, 2, 3]),
            "maxItems": st.integers(0, 2),
            "minItems": st.integers(0, 2),
            "items": inner,
            "properties": st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
            "additionalProperties": st.one_of(inner, st.just(False)),
            "required": st.lists(st.sampled_from(KEYS), max_size=2, unique=True),
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "$ref": st.just("#/$defs/x"),
        },
    )


told = st.recursive(st.builds(lambda name: {"type": name}, types), _understood, max_leaves=6)


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), told, min_size=1, max_size=3), st.builds(dict, type=types), arguments)
def test_what_does_not_validate_is_rejected(properties, target, given_arguments):
    """In the end, of schemas that are understood. Only JSON in a string may be what the schema wants."""
    schema = {"type": "object", "properties": properties, "$defs": {"x": target}}
    text = json.dumps(given_arguments)
    if '"{' in text or '"[' in text:
        return
    if _valid(schema, given_arguments) is False:
        assert facts(chat(schema, [text])) != []
