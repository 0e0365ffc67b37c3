"""The way back: calls -> dialect text, and events -> OpenAI-style chunks.

The renderer is tested against texts written by hand (``BY_HAND``, the only place here that knows a tag) and against the
decoder; the chunks against what the decoder sealed, for whole, cut and damaged answers in any chunking.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamparse.decoding.arguments import JsonDecoder
from streamparse.decoding.encode import ChunkEncoder, render_answer, render_calls, to_chat_completion
from streamparse.decoding.fragments import ArgumentWriter, escaped
from streamparse.decoding.grammar import load
from streamparse.decoding.native import NativeDecoder
from streamparse.errors import ClosedError, UnknownDialectError, UsageError
from streamparse.events import (
    ArgumentDelta,
    ArgumentValue,
    Deviated,
    Deviation,
    DeviationCode,
    Ended,
    ErrorCode,
    ErrorDetail,
    Failed,
    PartialToolCall,
    Reasoning,
    Text,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
    json_text,
)
from tests.conftest import ROOT

DIALECTS = ["minimax_m2", "hermes", "qwen3_coder"]


def tool(name: str, **properties: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


def texts(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def minimax_m2(name: str, arguments: dict[str, Any]) -> str:
    inner = "".join(f'<parameter name="{key}">{texts(value)}</parameter>\n' for key, value in arguments.items())
    return f'<minimax:tool_call>\n<invoke name="{name}">\n{inner}</invoke>\n</minimax:tool_call>'


def hermes(name: str, arguments: dict[str, Any]) -> str:
    return f"<tool_call>\n{json_text({'name': name, 'arguments': arguments})}\n</tool_call>"


def qwen3_coder(name: str, arguments: dict[str, Any], head: str = "\n", tail: str = "\n") -> str:
    inner = "".join(f"<parameter={key}>{head}{texts(value)}{tail}</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"


BY_HAND = {"minimax_m2": minimax_m2, "hermes": hermes, "qwen3_coder": qwen3_coder}
"""One call, in an envelope of its own."""


def pieces(text: str, cuts: Iterable[int]) -> list[str]:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


def read(text: str, dialect: str, tools: Any = None, cuts: Iterable[int] = (), **options: Any) -> list[Any]:
    """The events of a text that comes in pieces."""
    reason = options.pop("reason", None)
    decoder = NativeDecoder(dialect, tools=tools, **options)
    return [event for piece in pieces(text, cuts) for event in decoder.feed(piece)] + decoder.close(reason)


def sealed(events: list[Any]) -> list[tuple[str, str]]:
    """Name and arguments of the sealed calls; nothing if anything failed."""
    if any(isinstance(event, ToolCallFailed | Failed) for event in events):
        return []
    return [(event.call.name, json_text(event.call.arguments)) for event in events if type(event) is ToolCallFinished]


def as_text(calls: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, str]]:
    return [(name, json_text(arguments)) for name, arguments in calls]


# The renderer: what a text looks like

CALLS = [("search_web", {"query_tag": ["technology", "é"], "limit": 3, "note": " a <b> & \n"}), ("now", {})]

CANONICAL = {
    "minimax_m2": """\
<minimax:tool_call>
<invoke name="search_web">
<parameter name="query_tag">["technology", "é"]</parameter>
<parameter name="limit">3</parameter>
<parameter name="note"> a <b> & \n</parameter>
</invoke>
<invoke name="now">
</invoke>
</minimax:tool_call>""",
    "hermes": """\
<tool_call>
{"name": "search_web", "arguments": {"query_tag": ["technology", "é"], "limit": 3, "note": " a <b> & \\n"}}
</tool_call>
<tool_call>
{"name": "now", "arguments": {}}
</tool_call>""",
    "qwen3_coder": """\
<tool_call>
<function=search_web>
<parameter=query_tag>
["technology", "é"]
</parameter>
<parameter=limit>
3
</parameter>
<parameter=note>
 a <b> & \n
</parameter>
</function>
<function=now>
</function>
</tool_call>""",
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_canonical_text(dialect):
    assert render_calls(CALLS, dialect) == CANONICAL[dialect]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_envelope_for_each_call(dialect):
    alone = [BY_HAND[dialect](name, arguments) for name, arguments in CALLS]
    assert render_calls(CALLS, dialect, grouped=False) == "\n".join(alone)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_calls_are_no_text(dialect):
    assert render_calls([], dialect) == render_answer(dialect=dialect) == ""


CALL = ("f", {"a": "x", "b": [1]})


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("call_0", *CALL),
        PartialToolCall("call_0", *CALL),
        CALL,
        {"function": {"name": "f", "arguments": '{"a": "x", "b": [1]}'}, "id": "call_0", "type": "function"},
        {"function": {"name": "f", "arguments": {"a": "x", "b": [1]}}},
        {"name": "f", "arguments": {"a": "x", "b": (1,)}},
    ],
    ids=["ToolCall", "PartialToolCall", "pair", "JSON text", "object", "inner object"],
)
def test_forms_of_a_call(call):
    assert render_calls([call]) == minimax_m2(*CALL)


def test_arguments_may_be_missing_or_empty_text():
    calls: list[dict[str, Any]] = [
        {"function": {"name": "f", "arguments": ""}},
        {"function": {"name": "f"}},
        {"name": "f"},
    ]
    assert [render_calls([call]) for call in calls] == [minimax_m2("f", {})] * 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("f", "str is no call"),
        (3, "int is no call"),
        ({"arguments": {}}, "needs a name"),
        ({"function": "f"}, "needs a name"),
        (("", {}), "needs a name, and '' is none"),
        ((3, {}), "needs a name, and 3 is none"),
        (("f", [1]), "the arguments of 'f' must be an object"),
        (("f", {1: 2}), "the arguments of 'f' must be an object with names as keys"),
        ({"name": "f", "arguments": '{"a": '}, "the arguments of 'f' are not JSON"),
        ({"name": "f", "arguments": "[1]"}, "the arguments of 'f' must be an object"),
        (("f", {"a": {1, 2}}), "'a' of 'f' cannot be written as JSON"),
        (("f", {"a": float("nan")}), "'a' of 'f' cannot be written as JSON"),
    ],
)
def test_what_is_no_call(call, message):
    for check in (True, False):
        with pytest.raises(UsageError, match=re.escape(message)):
            render_calls([call], check=check)


def test_unknown_dialect():
    with pytest.raises(UnknownDialectError, match="minimax_m2"):
        render_calls([CALL], "m4")


def test_a_dialect_is_only_a_file(tmp_path):
    grammar = """
start: (TEXT | thought | group)*
thought: "[[" REASONING* "]]"
group: "{{" one* "}}"
one: "@" NAME* ":" part* "."
part: "#" KEY* "=" VALUE* ";"
HEAD_VALUE: /\\n{0,2}/
AFTER_CALLS: /([ \\t]*\\n){0,1}/
%declare TEXT REASONING NAME KEY VALUE
%ignore /\\s+/
"""
    for ours, theirs in [("thought", "reasoning"), ("group", "calls"), ("one", "call"), ("part", "argument")]:
        grammar = re.sub(rf"\b{ours}\b", theirs, grammar)
    path = tmp_path / "tiny.lark"
    path.write_text(grammar)
    answer = render_answer(reasoning="hm", text="Hi", calls=[("f", {"k": "v"}), ("g", {})], dialect=str(path))
    assert answer == "[[hm]]Hi{{\n@f:\n#k=\n\nv;\n.\n@g:\n.\n}}"
    assert "}}\n{{" in render_calls([CALL, CALL], str(path), grouped=False)
    with pytest.raises(UsageError, match="no reasoning to start in"):
        render_answer(text="Hi", dialect=str(path), opened=True)


def test_a_dialect_without_calls_or_reasoning(tmp_path):
    path = tmp_path / "tiny.lark"
    path.write_text("start: TEXT*\n%declare TEXT\n")
    with pytest.raises(UsageError, match="dialect 'tiny' has no calls"):
        render_calls([CALL], str(path))


def test_no_tag_is_written_in_python():
    tags = {tag.text for dialect in DIALECTS for _, tag in load(dialect).all_tags()} - {">", "\n"}
    for module in ("encode", "render", "layout", "chunks", "fragments"):
        source = (ROOT / "streamparse" / "decoding" / f"{module}.py").read_text(encoding="utf-8")
        assert [tag for tag in tags if tag.strip() in source] == []


# The renderer: names


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("f", 'name="f"'),
        ("a>b", 'name="a>b"'),
        ("it's", 'name="it\'s"'),
        ('say "hi"', "name='say \"hi\"'"),
        (" f ", 'name=" f "'),
        ("a=b", 'name="a=b"'),
        ("größe", 'name="größe"'),
    ],
)
def test_names_as_attributes(name, header):
    text = render_calls([(name, {name: "x"})])
    assert f"<invoke {header}>" in text
    assert f"<parameter {header}>" in text


@pytest.mark.parametrize("name", ["a\nb", "\"'", ""])
def test_names_that_no_attribute_holds(name):
    for check in (True, False):
        with pytest.raises(UsageError, match=r"parameter name .* cannot be written"):
            render_calls([("f", {name: "x"})], check=check)


def test_names_that_are_too_long():
    with pytest.raises(UsageError, match=r"is not found .*more than 1024 characters"):
        render_calls([("f" * 2000, {})])


@pytest.mark.parametrize(
    ("name", "header"), [("f", "f"), (" f ", '" f "'), ('"f"', '""f""'), ("'f'", "\"'f'\""), ("a\nb", "a\nb")]
)
def test_bare_names(name, header):
    assert f"<function={header}>" in render_calls([(name, {})], "qwen3_coder")


def test_bare_names_that_hold_the_end():
    with pytest.raises(UsageError, match="holds '>'"):
        render_calls([("a>b", {})], "qwen3_coder")


def test_names_in_a_payload():
    assert sealed(read(render_calls([('a>\n"b', {'"': 1})], "hermes"), "hermes")) == [('a>\n"b', '{"\\"": 1}')]
    with pytest.raises(UsageError, match="its name reads back as 'f'"):
        render_calls([(" f", {})], "hermes")


# The renderer: what would not read back

END = "</parameter>\n</invoke>\n</minimax:tool_call>"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (f"x{END}", "argument 'a' reads back as 'x'"),
        ('<parameter name="q">', "argument 'a' reads back as"),
        ('x</parameter>\n<parameter name="c">y', "argument 'a' reads back as 'x'"),
    ],
)
def test_values_that_end_their_call(value, message):
    with pytest.raises(UsageError, match=message):
        render_calls([("f", {"a": value, "b": "y"})])
    assert value in render_calls([("f", {"a": value, "b": "y"})], check=False)


def test_a_quoted_call_can_be_written():
    quoted = minimax_m2("g", {"k": "v", "l": ""})
    calls = [("f", {"a": quoted, "b": "</parameter>, </invoke>"})]
    assert sealed(read(render_calls(calls), "minimax_m2")) == as_text(calls)


def test_lost_delimiters_need_the_tools():
    """N7: what is harmless to a reader without tools names a parameter that the tool declares."""
    call = ("f", {"a": '<parameter name="b">x</parameter>'})
    assert render_calls([call])
    with pytest.raises(UsageError, match=r"not found .*closing tag was lost"):
        render_calls([call], tools=[tool("f", a={"type": "string"}, b={"type": "string"})])


def test_without_tools_types_are_not_compared():
    calls = [("f", {"n": 3, "s": "3", "t": True, "z": None, "j": '["x"]', "d": 1.5})]
    assert render_calls(calls)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, 3),
        ({"type": "string"}, ["x"]),
        ({"type": "integer"}, 3.0),
        ({"type": ["string", "integer"]}, "3"),
        ({"type": ["string", "null"]}, "null"),
        ({}, '["x"]'),
        ({}, 3),
    ],
)
def test_with_tools_types_are_compared(schema, value):
    tools = [tool("f", a=schema)]
    assert render_calls([("f", {"a": value})])
    with pytest.raises(UsageError, match="argument 'a' reads back as"):
        render_calls([("f", {"a": value})], tools=tools)
    assert render_calls([("f", {"a": value})], "hermes", tools=tools)  # JSON carries its types


def test_what_models_wrote_can_be_written_again(shared):
    """History: the calls of other systems' cases, quoted calls and broken siblings included."""
    lines = shared("cases", "m2_xml.jsonl").read_text(encoding="utf-8").splitlines()
    written = 0
    for case in map(json.loads, lines):
        text = case["input"].get("text") or "".join(
            piece for piece in case["input"].get("chunks", ()) if isinstance(piece, str)
        )
        events = read(text, "minimax_m2", case.get("tools"))
        calls = [event.call for event in events if type(event) is ToolCallFinished]
        again = read(render_calls(calls, tools=case.get("tools")), "minimax_m2", case.get("tools"))
        assert sealed(again) == as_text([(call.name, call.arguments) for call in calls])
        written += len(calls)
    assert written > 20


# The renderer: whole answers


def test_answers():
    calls: list[Any] = [("now", {})]
    call = minimax_m2("now", {})
    assert render_answer(reasoning="hm\n", text="Hi", calls=calls) == f"<think>hm\n</think>\n\nHi\n{call}"
    assert render_answer(reasoning="hm\n", text="Hi", calls=calls, opened=True) == f"hm\n</think>\n\nHi\n{call}"
    assert render_answer(reasoning="hm\n", calls=calls, opened=True) == f"hm\n</think>\n\n{call}"
    assert render_answer(text="Hi", calls=calls) == f"Hi\n{call}"
    assert render_answer(text="Hi", opened=True) == "</think>\n\nHi"
    assert render_answer(reasoning="hm", opened=True) == "hm</think>"
    assert render_answer(reasoning="") == "<think></think>"
    assert render_answer(text="Hi") == "Hi"


def test_answers_with_margins():
    call = hermes("now", {})
    answer = render_answer(reasoning="hm", text="Hi", calls=[("now", {})], dialect="hermes")
    assert answer == f"<think>\nhm\n</think>\n\nHi\n{call}"
    answer = render_answer(reasoning="hm", text="Hi ", calls=[("now", {})], dialect="hermes", opened=True)
    assert answer == f"hm\n</think>\n\nHi \n\n{call}"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"text": minimax_m2("f", {})}, "1 calls are found instead of 0"),
        ({"text": "a\n<think>\nb"}, "the reasoning reads back as"),
        ({"text": "a]~b]user\nb"}, "the text reads back as 'a'"),
        ({"reasoning": "a</think>b"}, "the reasoning reads back as 'a'"),
        ({"reasoning": "<think>a", "opened": True}, "the reasoning reads back as 'a'"),
    ],
)
def test_answers_that_read_as_something_else(parts, message):
    with pytest.raises(UsageError, match=message):
        render_answer(**parts)
    assert render_answer(**parts, check=False)


# The renderer: properties

TAGS = sorted({tag.text for dialect in DIALECTS for _, tag in load(dialect).all_tags()})
PIECES = [
    *TAGS,
    '<parameter name="a">',
    '<parameter name="q">',
    "<parameter=a>",
    "</parameter>\n",
    *[write("g", {"a": "x"}) for write in BY_HAND.values()],
    *["\n", "\r", " ", "\t", '"', "'", "\\", "{", "[", "]", "}", "é", "😀", "\u2028", "\x00", "`", "```\n"],
    *["null", "true", "3", "042", "1.5", '{"a": "b"}', '["x"]', '["'],
]
strings = st.one_of(st.lists(st.sampled_from(PIECES), max_size=5).map("".join), st.text(max_size=12))
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), strings)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(strings, inner, max_size=3)),
    max_leaves=8,
)
lists = st.lists(values, max_size=3)
objects = st.dictionaries(strings, values, max_size=3)

PARAMETERS: list[tuple[dict[str, Any], st.SearchStrategy[Any]]] = [
    ({"type": "string"}, strings),
    ({"type": "string"}, strings),
    ({"type": "integer"}, st.integers()),
    ({"type": "number"}, st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))),
    ({"type": "boolean"}, st.booleans()),
    ({"type": "object"}, objects),
    ({"type": "array"}, lists),
    ({"type": ["array", "object"]}, st.one_of(lists, objects)),
    ({"type": ["string", "null"]}, st.one_of(strings, st.none())),
    ({"type": ["string", "integer"]}, st.one_of(strings, st.integers())),
    ({"anyOf": [{"type": "object"}, {"type": "string"}]}, st.one_of(objects, strings)),
    ({"enum": ["a", "null", 3]}, st.sampled_from(["a", "null", 3])),
    ({}, st.one_of(strings, lists, objects)),
]
KEYS = ["a", "b", "c", "path"]


@st.composite
def tools_and_calls(draw: Any) -> tuple[list[Any], list[tuple[str, dict[str, Any]]]]:
    """A few tools, and calls of them whose values their schemas allow."""
    declared = {
        name: {key: draw(st.sampled_from(PARAMETERS)) for key in draw(st.lists(st.sampled_from(KEYS), unique=True))}
        for name in draw(st.lists(st.sampled_from(["f", "g", "get_weather"]), min_size=1, max_size=2, unique=True))
    }
    tools = [tool(name, **{key: schema for key, (schema, _) in keys.items()}) for name, keys in declared.items()]
    calls = []
    for name in draw(st.lists(st.sampled_from(sorted(declared)), min_size=1, max_size=3)):
        keys = draw(st.permutations(sorted(declared[name])))
        chosen = keys[: draw(st.integers(0, len(keys)))]
        calls.append((name, {key: draw(declared[name][key][1]) for key in chosen}))
    return tools, calls


places = st.lists(st.integers(0, 1 << 16), max_size=8)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(made=tools_and_calls(), cuts=places, grouped=st.booleans())
def test_what_is_rendered_reads_back(dialect, made, cuts, grouped):
    tools, calls = made
    try:
        text = render_calls(calls, dialect, tools=tools, grouped=grouped)
    except UsageError:
        text = render_calls(calls, dialect, tools=tools, grouped=grouped, check=False)
        assert sealed(read(text, dialect, tools)) != as_text(calls)
    else:
        assert sealed(read(text, dialect, tools, cuts)) == as_text(calls)
        assert sealed(read(text, dialect, tools, range(len(text)))) == as_text(calls)


def hand_written(dialect: str, name: str, arguments: dict[str, Any]) -> list[str]:
    """All texts that a person would try for a call; the canonical one first."""
    if dialect != "qwen3_coder":
        return [BY_HAND[dialect](name, arguments)]
    return [qwen3_coder(name, arguments, head, tail) for head in ("\n", "") for tail in ("\n", "")]


@pytest.mark.parametrize("dialect", DIALECTS)
@given(parameter=st.sampled_from(PARAMETERS).flatmap(lambda pair: st.tuples(st.just(pair[0]), pair[1])))
@example(parameter=({"type": "string"}, "x\r"))
@example(parameter=({"type": "string"}, "\n\n"))
@example(parameter=({"type": "string"}, END))
@example(parameter=({"type": "string"}, "\ud800"))
def test_what_is_refused_has_no_text(dialect, parameter):
    """Not only the canonical text: none that a person would try."""
    schema, value = parameter
    tools = [tool("f", a=schema, z={"type": "string"})]
    call = ("f", {"a": value})
    written = hand_written(dialect, *call)
    try:
        text = render_calls([call], dialect, tools=tools)
    except UsageError:
        for text in written:
            assert sealed(read(text, dialect, tools)) != as_text([call])
    else:
        assert text in written
        assert text == written[0] or value.endswith("\r")


plain = st.text("ab \n\r\t<`é", max_size=8)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(reasoning=st.none() | plain, text=plain, opened=st.booleans(), calls=st.booleans(), cuts=places)
def test_answers_read_back(dialect, reasoning, text, opened, calls, cuts):
    given_calls = [("f", {"a": "x"})] * calls
    answer = render_answer(reasoning=reasoning, text=text, calls=given_calls, dialect=dialect, opened=opened)
    events = read(answer, dialect, cuts=cuts, start="reasoning" if opened else "text")
    assert "".join(event.text for event in events if type(event) is Reasoning) == (reasoning or "")
    assert "".join(event.text for event in events if type(event) is Text) == text
    assert sealed(events) == as_text(given_calls)


# The chunks: one call, by hand


def deltas(chunks: list[Any]) -> list[Any]:
    return [choice["delta"] for chunk in chunks for choice in chunk["choices"]]


def fragments(chunks: list[Any]) -> dict[str, str]:
    """Joined arguments by id, as a client puts them together: by index."""
    ids: dict[int, str] = {}
    joined: dict[str, str] = {}
    for delta in deltas(chunks):
        for entry in delta.get("tool_calls", ()):
            if "id" in entry:
                assert entry["index"] == len(ids)
                assert entry["type"] == "function"
                assert entry["function"]["arguments"] == ""
                ids[entry["index"]] = entry["id"]
                joined[entry["id"]] = ""
            else:
                assert set(entry["function"]) == {"arguments"}
                assert entry["function"]["arguments"]
                joined[ids[entry["index"]]] += entry["function"]["arguments"]
    return joined


ONE_CALL: list[Any] = [
    Reasoning("hm"),
    Text("Hi"),
    ToolCallStarted(0, "call_0", "f"),
    ArgumentDelta(0, ("todos", 0, "content"), 'a"'),
    ArgumentDelta(0, ("todos", 0, "content"), "b"),
    ArgumentValue(0, ("todos", 0, "content"), 'a"b'),
    ArgumentValue(0, ("todos", 0, "done"), False),
    ArgumentValue(0, ("todos", 0), {"content": 'a"b', "done": False}),
    ArgumentValue(0, ("todos", 1), {}),
    ArgumentValue(0, ("todos",), [{"content": 'a"b', "done": False}, {}]),
    ArgumentValue(0, ("é",), ""),
    ToolCallFinished(0, ToolCall("call_0", "f", {"todos": [{"content": 'a"b', "done": False}, {}], "é": ""})),
    Ended("stop", {"total_tokens": 7}),
]


def test_one_call():
    chunks = ChunkEncoder(id="c", model="m", created=5, choice=2).feed_all(ONE_CALL)
    for chunk in chunks:
        head = {"id": "c", "object": "chat.completion.chunk", "created": 5, "model": "m"}
        assert {name: chunk[name] for name in head} == head
        assert all(choice["index"] == 2 for choice in chunk["choices"])
    assert deltas(chunks)[:4] == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "hm"},
        {"content": "Hi"},
        {"tool_calls": [{"index": 0, "id": "call_0", "type": "function", "function": {"name": "f", "arguments": ""}}]},
    ]
    assert [delta["tool_calls"][0]["function"]["arguments"] for delta in deltas(chunks)[4:-1]] == [
        '{"todos": [{"content": "a\\"',
        "b",
        '"',
        ', "done": false',
        "}",
        ", {}",
        "]",
        ', "é": ""',
        "}",
    ]
    assert [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]][-2:] == [None, "tool_calls"]
    assert chunks[-2]["streamparse"] == {"finish_reason": "stop"}
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == {"total_tokens": 7}
    json.dumps(chunks)


def test_one_call_as_a_completion():
    completion = to_chat_completion(ONE_CALL, id="c", model="m", created=5, reasoning_field="reasoning")
    function = {"name": "f", "arguments": '{"todos": [{"content": "a\\"b", "done": false}, {}], "é": ""}'}
    message = {
        "role": "assistant",
        "content": "Hi",
        "reasoning": "hm",
        "tool_calls": [{"id": "call_0", "type": "function", "function": function}],
    }
    assert completion == {
        "id": "c",
        "object": "chat.completion",
        "created": 5,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"total_tokens": 7},
        "streamparse": {"finish_reason": "stop"},
    }


def test_content_is_null_only_beside_calls():
    def content(events: list[Any]) -> Any:
        return to_chat_completion(events)["choices"][0]["message"]["content"]

    call = ToolCallFinished(0, ToolCall("call_0", "f", {}))
    assert content([Ended()]) == ""
    assert content([Text("Hi"), Ended()]) == "Hi"
    assert content([ToolCallStarted(0, "call_0", "f"), call, Ended()]) is None


def test_an_empty_answer():
    chunks = ChunkEncoder().feed_all([Ended("stop")])
    assert deltas(chunks) == [{"role": "assistant", "content": ""}, {}]
    assert "streamparse" not in chunks[-1]


def test_reasoning_field():
    chunks = ChunkEncoder(reasoning_field="reasoning").feed_all([Reasoning("hm"), Text("")])
    assert deltas(chunks)[1:] == [{"reasoning": "hm"}]


def test_a_call_that_is_known_only_at_its_end():
    call = ToolCall("x", "f", {"a": 1, "b": [2]}, verbatim='{"a":1,"b":[2]}')
    for started in ([], [ToolCallStarted(3, "x", "f")], [ToolCallStarted(3, "x", "f"), ArgumentValue(3, ("a",), 1)]):
        chunks = ChunkEncoder().feed_all([*started, ToolCallFinished(3, call), Ended()])
        assert fragments(chunks) == {"x": '{"a": 1, "b": [2]}'}


def test_the_argument_object_may_be_announced():
    value = {"a": 1}
    for events in ([ArgumentValue(0, (), value)], [ArgumentValue(0, ("a",), 1), ArgumentValue(0, (), value)]):
        writer = ArgumentWriter(0)
        assert "".join(writer.value(event.path, event.value) for event in events) == '{"a": 1'
        assert writer.finish(value) == "}"


def test_calls_are_counted_without_gaps():
    """The limit of calls, or a call without a name, takes an index and starts nothing."""
    events: list[Any] = [ToolCallStarted(1, "b", "f"), ToolCallStarted(4, "e", "f"), ArgumentValue(1, ("k",), 1)]
    assert fragments(ChunkEncoder().feed_all(events)) == {"b": '{"k": 1', "e": ""}


# The chunks: what goes wrong

ERROR = ErrorDetail(ErrorCode.UNCLOSED_PARAMETER, "end of stream", 7, ("call",), ("'</x>'",), "abc")
PARTIAL = PartialToolCall("call_0", "f", {})


@pytest.mark.parametrize(
    "events",
    [[], [ArgumentValue(0, ("a",), 1)], [ArgumentDelta(0, ("a",), "x")], [ArgumentDelta(0, ("a", 0), "x")]],
    ids=["nothing", "a value", "half a string", "half a list"],
)
def test_a_failed_call_is_never_closed(events):
    end: list[Any] = [ToolCallFailed(0, PARTIAL, ERROR), Ended("tool_calls", clean=False)]
    chunks = ChunkEncoder().feed_all([ToolCallStarted(0, "call_0", "f"), *events, *end])
    [arguments] = fragments(chunks).values()
    assert arguments.startswith("{")
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        json.loads(arguments)
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    assert chunks[-1]["streamparse"] == {
        "errors": [
            {
                "tool_call_id": "call_0",
                "level": "parse",
                "code": "unclosed_parameter",
                "reason": "end of stream",
                "offset": 7,
                "open": ("call",),
                "expected": ("'</x>'",),
                "excerpt": "abc",
                "message": "end of stream at 7 in call; expected '</x>'",
            }
        ],
        "finish_reason": "tool_calls",
    }


def test_a_call_in_reasoning_stays_open():
    """N13: it was announced, and fails only when the reasoning ends; the call behind it is sealed all the same."""
    call = minimax_m2("f", {"a": "x"})
    events = read(f"<think>\n{call}\n</think>\n\n{call}", "minimax_m2")
    chunks = ChunkEncoder().feed_all(events)
    assert fragments(chunks) == {"call_0": '{"a": "x"', "call_1": '{"a": "x"}'}
    assert chunks[-1]["streamparse"]["errors"][0]["code"] == "call_in_reasoning"
    assert [call["id"] for call in to_chat_completion(events)["choices"][0]["message"]["tool_calls"]] == ["call_1"]


def test_deviations_and_distrust_are_told():
    deviation = Deviation(DeviationCode.UNKNOWN_TOOL, 0, "f")
    events: list[Any] = [
        ToolCallStarted(0, "call_0", "f"),
        Deviated(0, deviation),
        Deviated(None, Deviation(DeviationCode.FOREIGN_FORMAT, 3, "m1")),
        ToolCallFinished(0, ToolCall("call_0", "f", {}, deviations=(deviation,), trusted=False)),
        Ended("tool_calls"),
    ]
    extension = {
        "deviations": [
            {"tool_call_id": "call_0", "level": "schema", "code": "unknown_tool", "offset": 0, "detail": "f"},
            {"tool_call_id": None, "level": "parse", "code": "foreign_format", "offset": 3, "detail": "m1"},
        ],
        "untrusted": ["call_0"],
    }
    assert ChunkEncoder().feed_all(events)[-1]["streamparse"] == extension
    assert to_chat_completion(events)["streamparse"] == extension


def test_a_call_that_failed_before_it_started():
    events: list[Any] = [ToolCallFailed(0, PartialToolCall("", "", {}), ERROR), Ended("stop", clean=False)]
    chunks = ChunkEncoder().feed_all(events)
    assert fragments(chunks) == {}
    assert chunks[-1]["streamparse"]["errors"][0]["tool_call_id"] is None
    assert to_chat_completion(events)["streamparse"] == chunks[-1]["streamparse"]


FINISHED = ToolCallFinished(0, ToolCall("call_0", "f", {}))


@pytest.mark.parametrize(
    ("given_reason", "events", "sent"),
    [
        (None, [], "stop"),
        ("stop", [], "stop"),
        ("tool_calls", [], "stop"),
        ("end_turn", [], "stop"),
        ("length", [], "length"),
        ("max_tokens", [], "length"),
        ("error", [], "length"),
        ("content_filter", [], "content_filter"),
        ("refusal", [], "content_filter"),
        (None, [FINISHED], "tool_calls"),
        ("stop", [FINISHED], "tool_calls"),
        ("function_call", [FINISHED], "tool_calls"),
        ("length", [FINISHED], "length"),
        ("content_filter", [FINISHED], "content_filter"),
        ("stop", [Failed(ERROR)], "length"),
        ("tool_calls", [FINISHED, ToolCallFailed(1, PARTIAL, ERROR)], "length"),
        ("content_filter", [ToolCallFailed(0, PARTIAL, ERROR)], "length"),
    ],
)
def test_finish_reasons(given_reason, events, sent):
    events = [*events, Ended(given_reason)]
    last = ChunkEncoder().feed_all(events)[-1]
    completion = to_chat_completion(events)
    assert last["choices"][0]["finish_reason"] == completion["choices"][0]["finish_reason"] == sent
    told = given_reason if given_reason != sent else None
    assert last.get("streamparse", {}).get("finish_reason") == told


def test_an_answer_that_is_not_clean_is_not_whole():
    assert ChunkEncoder().feed(Ended("stop", clean=False))[-1]["choices"][0]["finish_reason"] == "length"


def test_misuse():
    start = ToolCallStarted(0, "x", "f")
    encoder = ChunkEncoder()
    with pytest.raises(UsageError, match="call 0, which is not open"):
        encoder.feed(ArgumentDelta(0, ("a",), "x"))
    encoder.feed(start)
    with pytest.raises(UsageError, match="started twice"):
        encoder.feed(start)
    encoder.feed(Ended())
    for event in (Text("x"), ArgumentDelta(0, ("a",), "x"), ArgumentValue(0, ("a",), "x"), Ended()):
        with pytest.raises(ClosedError):
            encoder.feed(event)
    with pytest.raises(UsageError, match="has no end"):
        to_chat_completion([Text("x")])


@pytest.mark.parametrize(
    "events",
    [
        [ArgumentDelta(0, ("a",), "x")],
        [ArgumentValue(0, ("a", 0), 1)],
        [ArgumentValue(0, ("a", 1), 1), ArgumentValue(0, ("a",), [1])],
        [ArgumentValue(0, ("a",), 1), ArgumentValue(0, ("a",), 1)],
        [ArgumentDelta(0, ("a",), "x"), ArgumentDelta(0, ("b",), "x")],
        [ArgumentValue(0, ("a", 0), 1), ArgumentValue(0, ("a", "b"), 1), ArgumentValue(0, ("a",), [1])],
        [ArgumentValue(0, ("a", 0), 1), ArgumentValue(0, ("a",), "[1")],
    ],
)
def test_events_that_do_not_add_up(events):
    """A sealed call is never sent as something else than it is."""
    encoder = ChunkEncoder()
    encoder.feed_all([ToolCallStarted(0, "x", "f"), *events])
    with pytest.raises(UsageError, match="do not add up"):
        encoder.feed(ToolCallFinished(0, ToolCall("x", "f", {"a": [1]})))


def test_a_value_that_turns_out_broken():
    """J6: told as JSON, then as text. What was sent stays, and stays open."""
    events: list[Any] = [
        ArgumentDelta(0, ("a", "k"), "x"),
        ArgumentValue(0, ("a",), '{"k": "x'),
        ArgumentValue(0, ("b",), 1),
    ]
    encoder = ChunkEncoder()
    chunks = encoder.feed_all([ToolCallStarted(0, "x", "f"), *events, ToolCallFailed(0, PARTIAL, ERROR)])
    assert fragments(chunks) == {"x": '{"a": {"k": "x'}


# The chunks: properties


@given(text=strings, cuts=places)
def test_escaping_needs_no_context(text, cuts):
    assert "".join(map(escaped, pieces(text, cuts))) == json_text(text)[1:-1]


@given(value=objects, cuts=places, indent=st.sampled_from([None, 1]))
def test_path_events_of_any_object(value, cuts, indent):
    """Without a dialect: whatever the layout and the chunks, the fragments are the canonical text."""
    text = json.dumps(value, indent=indent)
    reader, writer = JsonDecoder(), ArgumentWriter(0)
    written = ""
    for piece in pieces(text, cuts):
        for event in reader.feed(piece):
            if isinstance(event, ArgumentDelta):
                written += writer.delta(event.path, event.text)
            elif isinstance(event, ArgumentValue):
                written += writer.value(event.path, event.value)
            assert json_text(value).startswith(written)
    assert written + writer.finish(reader.value) == json_text(value)


@st.composite
def answers(draw: Any) -> tuple[str, str, Any]:
    """Dialect, text and tools of an answer: whole, cut, or damaged."""
    dialect = draw(st.sampled_from(DIALECTS))
    tools, calls = draw(tools_and_calls())
    reasoning, text = draw(st.none() | plain), draw(plain)
    answer = render_answer(reasoning=reasoning, text=text, calls=calls, dialect=dialect, check=False)
    kind = draw(st.sampled_from(["whole", "cut", "without", "with"]))
    at = draw(st.integers(0, len(answer)))
    if kind == "cut":
        answer = answer[:at]
    elif kind == "without":
        answer = answer[:at] + answer[at + draw(st.integers(1, 20)) :]
    elif kind == "with":
        answer = answer[:at] + draw(st.sampled_from(PIECES)) + answer[at:]
    return dialect, answer, draw(st.sampled_from([tools, None]))


@given(made=answers(), cuts=places, reason=st.sampled_from([None, "stop", "length", "tool_calls"]))
@example(made=("minimax_m2", minimax_m2("f", {"a": {}}), [tool("f", a={"type": "object"})]), cuts=[], reason=None)
@example(made=("minimax_m2", minimax_m2("f", {"a": '["x"] y'}), [tool("f", a={"type": "array"})]), cuts=[], reason=None)
def test_chunks_say_what_the_events_say(made, cuts, reason):
    dialect, answer, tools = made
    events = read(answer, dialect, tools, cuts, reason=reason)
    chunks = ChunkEncoder().feed_all(events)
    assert deltas(chunks)[0] == {"role": "assistant", "content": ""}
    for kind, name in ((Text, "content"), (Reasoning, "reasoning_content")):
        joined = "".join(delta.get(name, "") for delta in deltas(chunks))
        assert joined == "".join(event.text for event in events if isinstance(event, kind))
    joined_arguments = fragments(chunks)
    for event in events:
        if isinstance(event, ToolCallFinished):
            assert joined_arguments[event.call.id] == json_text(event.call.arguments)
            assert event.call.verbatim is not None or joined_arguments[event.call.id] == event.call.arguments_json
        if isinstance(event, ToolCallFailed) and event.call.id:
            assert joined_arguments[event.call.id].startswith("{")
            assert_no_json(joined_arguments[event.call.id])
    check_end(events, chunks)
    if cuts:
        whole = read(answer, dialect, tools, reason=reason)
        assert fragments(ChunkEncoder().feed_all(whole)) == joined_arguments


def assert_no_json(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        json.loads(text)


def check_end(events: list[Any], chunks: list[Any]) -> None:
    """The last chunk, and that the completion is what the chunks add up to."""
    failed = any(isinstance(event, ToolCallFailed | Failed) for event in events)
    finish_reason = chunks[-1]["choices"][0]["finish_reason"]
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks[:-1])
    assert not failed or finish_reason == "length"
    completion = to_chat_completion(events)
    assert completion.get("streamparse") == chunks[-1].get("streamparse")
    assert completion["choices"][0]["finish_reason"] == finish_reason
    message = completion["choices"][0]["message"]
    assert (message["content"] or "") == "".join(delta.get("content", "") for delta in deltas(chunks))
    joined = fragments(chunks)
    for call in message.get("tool_calls", ()):
        assert call["function"]["arguments"] == joined[call["id"]]
    if not failed:
        assert [call["id"] for call in message.get("tool_calls", ())] == list(joined)


def test_fragments_cost_their_own_length():
    """Twenty times the deltas take about twenty times as long; what grows with the text would take four hundred."""

    def seconds(count: int) -> float:
        events = [ArgumentDelta(0, ("items", 0, "content"), "abc\n")] * count
        encoder = ChunkEncoder()
        encoder.feed(ToolCallStarted(0, "x", "f"))
        start = time.process_time()
        for event in events:
            encoder.feed(event)
        return time.process_time() - start

    few, many = min(seconds(2_000) for _ in range(5)), min(seconds(40_000) for _ in range(3))
    assert many < 80 * few


def test_the_docs_name_what_there_is():
    text = (ROOT / "docs" / "encode.md").read_text(encoding="utf-8")
    for name in ("render_calls", "render_answer", "ChunkEncoder", "to_chat_completion"):
        assert f"`{name}" in text
