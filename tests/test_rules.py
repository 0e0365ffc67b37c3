"""One example or two for each numbered rule of native text (N) and of the end (E). See docs/semantics.md."""

from __future__ import annotations

from typing import Any

import pytest

from streamparse import (
    ArgumentDelta,
    Deviated,
    Ended,
    Failed,
    NativeDecoder,
    Reasoning,
    Text,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
)
from tests.chunks import check_chunking

STRING = {"type": "string"}
TOOLS = [
    {
        "name": "write",
        "parameters": {
            "properties": {"path": STRING, "content": STRING, "n": {"type": "integer"}, "o": {"type": "object"}}
        },
    },
    {"name": "now", "parameters": {"properties": {}}},
]

OPEN, CLOSE = "<minimax:tool_call>", "</minimax:tool_call>"
NOW = '<invoke name="now">\n</invoke>'
NOW_CALL = f"{OPEN}\n{NOW}\n{CLOSE}"


def write(content: str, *more: str) -> str:
    inner = "\n".join([f'<parameter name="content">{content}</parameter>', *more])
    return f'{OPEN}\n<invoke name="write">\n{inner}\n</invoke>\n{CLOSE}'


def parameter(key: str, value: str) -> str:
    return f'<parameter name="{key}">{value}</parameter>'


def facts(text: str, *, finish_reason: str | None = None, **options: Any) -> list[Any]:
    """The events as short facts: text and reasoning as strings, calls by their end, errors and deviations by code."""

    def run(chunks: list[str]) -> list[Any]:
        decoder = NativeDecoder(tools=TOOLS, **options)
        return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close(finish_reason)

    return [fact for event in check_chunking(run, text) for fact in fact_of(event)]


def fact_of(event: Any) -> list[Any]:
    match event:
        case Text(text):
            return [text]
        case Reasoning(text):
            return [("thought", text)]
        case ToolCallFinished(_, call):
            return [(call.name, call.arguments) if call.trusted else (call.name, call.arguments, "untrusted")]
        case ToolCallFailed(_, call, error):
            return [(call.name, error.code.value)]
        case Failed(error):
            return [error.code.value]
        case Deviated(_, deviation):
            return [f"~{deviation.code}"]
        case _:
            return []


FILE = "<parameter>\n  <hello></hello>\n</parameter>"
QUOTED = f"Send this:\n{NOW_CALL}\nand wait."
PAIR = '<parameter name="size">8</parameter>'

RULES: list[tuple[str, str, dict[str, Any], list[Any]]] = [
    ("N1 redundant opener", "<think>a</think>b", {"start": "reasoning"}, [("thought", "a"), "b"]),
    ("N1 echo", f"]~!b[]~b]ai\n<think>a</think>\n{NOW_CALL}", {"start": "reasoning"}, [("thought", "a"), ("now", {})]),
    ("N2 margins", f"a\n\n{NOW_CALL}\n\n\nb", {}, ["a\n", ("now", {}), "\nb"]),
    ("N2 blanks that no line break ends", f"a {NOW_CALL} b", {}, ["a ", ("now", {}), " b"]),
    ("N2 end of turn", f"{NOW_CALL}[e~[\n", {}, [("now", {})]),
    ("N2 role marker ends the answer", "Hi.[e~[\n]~b]user\nMore?", {}, ["Hi.", "~special_token"]),
    ("N3 start of a line", f"x\n{OPEN}\n{NOW}\n{CLOSE}", {}, ["x", ("now", {})]),
    ("N3 amid a line, a call follows", f"x {OPEN}{NOW}{CLOSE}", {}, ["x ", ("now", {})]),
    ("N3 amid a line, none follows", f"write `{OPEN}` to start", {}, [f"write `{OPEN}` to start"]),
    ("N3 think amid a line", "say <think> first", {}, ["say <think> first"]),
    ("N3 think at a line", "a\n<think>b</think>c", {}, ["a\n", ("thought", "b"), "c"]),
    ("N3 in reasoning", f"a\n{OPEN} is a tag</think>b", {"start": "reasoning"}, [("thought", f"a\n{OPEN} is a tag"), "b"]),
    ("N3 quoted closer", "`</think>` ends</think>b", {"start": "reasoning"}, [("thought", "`</think>` ends"), "b"]),
    ("N3 other closer", "a\n</mm:think>b", {"start": "reasoning"}, [("thought", "a\n"), "~nonstandard_tag", "b"]),
    ("N3 other closer amid a line", "a </mm:think>b", {"start": "reasoning"}, [("thought", "a </mm:think>b"), "unclosed_reasoning"]),
    ("N4 quotes", f"{OPEN}<invoke  name='now' ></invoke>{CLOSE}", {}, [("now", {})]),
    ("N4 no quotes", f"{OPEN}<invoke name=now></invoke>{CLOSE}", {}, [("now", {})]),
    ("N4 > in quotes", f'{OPEN}<invoke name="a>b"></invoke>{CLOSE}', {}, ["~unknown_tool", ("a>b", {}, "untrusted")]),
    ("N4 a quote that no line closes", f'{OPEN}<invoke name="now>\n</invoke>{CLOSE}', {}, [("now", {})]),
    ("N4 other attributes", f'{OPEN}<invoke name="now" id="1"></invoke>{CLOSE}', {}, ["~extra_attribute", ("now", {})]),
    ("N4 no name", f"{OPEN}<invoke id='1'></invoke>{NOW}{CLOSE}", {}, ["~extra_attribute", ("", "missing_name"), ("now", {})]),
    ("N5 chain", write(FILE), {}, ["~delimiter_in_value", ("write", {"content": FILE})]),
    ("N5 quoted call", write(QUOTED), {}, ["~delimiter_in_value", ("write", {"content": QUOTED})]),
    ("N5 nesting", write(PAIR), {}, ["~delimiter_in_value", ("write", {"content": PAIR})]),
    ("N5 self-closed", write('<parameter name="a"/>'), {}, ["~delimiter_in_value", ("write", {"content": '<parameter name="a"/>'})]),
    ("N5 last resort", write('say <parameter name="x">'), {},
     ["~delimiter_in_value", ("write", {"content": 'say <parameter name="x">'}, "untrusted")]),
    ("N5 no last resort for an answer that was cut", write('say <parameter name="x">'), {"finish_reason": "length"},
     [("write", "unclosed_parameter")]),
    ("N5 stray text behind the call", write("a").replace(CLOSE, f"stray\n{CLOSE}"), {},
     [("write", {"content": "a"}), "~text_in_envelope"]),
    ("N5 blanks beyond any wait", write("a</parameter>" + " " * 1100 + "b"), {},
     ["~delimiter_in_value", ("write", {"content": "a</parameter>" + " " * 1100 + "b"})]),
    ("N6 tags in JSON strings", write("a", parameter("o", '{"x": "</parameter>\\n</invoke>"}')), {},
     [("write", {"content": "a", "o": {"x": "</parameter>\n</invoke>"}})]),
    ("N7 lost closing tag", write('a\n<parameter name="path">b'), {}, ["~delimiter_in_value", ("write", "ambiguous_delimiter")]),
    ("N7 given after all", write('a <parameter name="path">', parameter("path", "p")), {},
     ["~delimiter_in_value", ("write", {"content": 'a <parameter name="path">', "path": "p"})]),
    ("N7 first", write(FILE), {"close": "first"}, ["~text_in_envelope", ("write", {"content": "<parameter>\n  <hello></hello>\n"})]),
    ("N8 verbatim", write(" a\n", parameter("n", " 3\n")), {}, [("write", {"content": " a\n", "n": 3})]),
    ("N8 strip", write(" a\n"), {"whitespace": "strip"}, [("write", {"content": "a"})]),
    ("N9 entities", write("&lt;"), {}, [("write", {"content": "&lt;"})]),
    ("N9 CDATA", write("<![CDATA[x]]>"), {}, ["~cdata", ("write", {"content": "<![CDATA[x]]>"})]),
    ("N10 no call", f"{OPEN}oops{CLOSE}", {}, ["~text_in_envelope", "malformed_envelope"]),
    ("N10 between calls", f"{OPEN}{NOW}oops{NOW}{CLOSE}", {}, [("now", {}), "~text_in_envelope", ("now", {})]),
    ("N10 before a parameter", f'{OPEN}<invoke name="write">x{parameter("n", "1")}</invoke>{NOW}{CLOSE}', {},
     [("write", "malformed_call"), ("now", {})]),
    ("N11 text", NOW, {}, [NOW[:8], "~bare_invoke", NOW[8:]]),
    ("N11 call", NOW, {"bare_invoke": "call"}, [("now", {})]),
    ("N12 fence", f"```\n{NOW_CALL}\n```", {}, ["```", "~inside_code_fence", ("now", {}, "untrusted"), "```"]),
    ("N12 fence that was closed", f"```\n```\n{NOW_CALL}", {}, ["```\n```", ("now", {})]),
    ("N13 closed", f"a\n{NOW_CALL}</think>b", {"start": "reasoning"}, [("thought", "a"), ("now", "call_in_reasoning"), "b"]),
    ("N13 left open", f"a\n{NOW_CALL}", {"start": "reasoning"}, [("thought", "a"), "~unclosed_reasoning", ("now", {})]),
    ("N13 cut", f"a\n{NOW_CALL}", {"start": "reasoning", "finish_reason": "length"},
     [("thought", "a"), "~unclosed_reasoning", ("now", {}, "untrusted")]),
    ("T5 a tag in what would be a JSON string", write("a", parameter("z", '{"x": "')), {},
     ["~undeclared_argument", "~delimiter_in_value", ("write", {"content": "a", "z": '{"x": "'}, "untrusted")]),
    ("N14 equal", write("a", parameter("content", "a")), {}, ["~repeated_argument", ("write", {"content": "a"})]),
    ("N14 different", write("a", parameter("content", "b")), {}, [("write", "duplicate_argument")]),
    ("N15 no parameters", f'{OPEN}<invoke name="now"></invoke>{CLOSE}', {}, [("now", {})]),
    ("N16 foreign", "<tool_code>x", {}, ["<tool_code>", "~foreign_format", "x"]),
    ("N16 foreign inside", f"{OPEN}[TOOL_CALL]{CLOSE}", {}, ["~text_in_envelope", "malformed_envelope"]),
    ("E1 in a tag", "a <mini", {"finish_reason": "length"}, ["a ", "unclosed_tag"]),
    ("E1 in a tag, not cut", "a <mini", {}, ["a <mini"]),
    ("E1 in reasoning", "a", {"start": "reasoning"}, [("thought", "a"), "unclosed_reasoning"]),
    ("E1 in an envelope", OPEN, {}, ["unclosed_envelope"]),
    ("E1 in a name", f'{OPEN}<invoke name="n', {}, ["unclosed_header"]),
    ("E1 in a key", f'{OPEN}<invoke name="now"><parameter name="', {}, [("now", "unclosed_header")]),
    ("E1 in a value", write("ab")[:75], {}, [("write", "unclosed_parameter")]),
    ("E1 in a call", write("a").split("</invoke>")[0], {}, [("write", "unclosed_call")]),
    ("E2 sealed stays", f"{OPEN}{NOW}", {"finish_reason": "length"}, [("now", {}), "~unclosed_envelope"]),
    ("E2 waiting", write("a").split(CLOSE)[0], {"finish_reason": "length"},
     ["~unclosed_envelope", ("write", {"content": "a"}, "untrusted")]),
    ("E3 whatever the reason", write("ab")[:75], {"finish_reason": "tool_calls"}, [("write", "unclosed_parameter")]),
    ("E4 broken", write("ab")[:75], {"finish_reason": "error"}, [("write", "stream_interrupted")]),
    ("E4 broken while waiting", write("a").split(CLOSE)[0], {"finish_reason": "error"}, [("write", "stream_interrupted")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "expected"), [pytest.param(*rule[1:], id=rule[0]) for rule in RULES])
def test_rule(text, options, expected):
    assert facts(text, **options) == expected


def test_n17_ids_are_counted_or_made():
    decoder = NativeDecoder(id_factory=lambda index: f"turn7-{index}")
    events = decoder.feed(f"{OPEN}{NOW}{NOW}{CLOSE}")
    assert [event.id for event in events if isinstance(event, ToolCallStarted)] == ["turn7-0", "turn7-1"]
    assert [call.id for call in decoder.calls] == ["turn7-0", "turn7-1"]


def test_values_are_streamed():
    """B008: each chunk of a file is handed on at once; only what could be its end is held back."""
    decoder = NativeDecoder(tools=TOOLS)
    decoder.feed(f'{OPEN}\n<invoke name="write">\n')
    first = decoder.feed('<parameter name="path">a.txt</parameter>\n<parameter name="content">line 1\n')
    assert ArgumentDelta(0, ("content",), "line 1\n") in first
    assert decoder.feed("line 2\n") == [ArgumentDelta(0, ("content",), "line 2\n")]
    assert decoder.partial(0).arguments == {"path": "a.txt", "content": "line 1\nline 2\n"}
    assert decoder.feed("</para") == []
    assert decoder.feed("graph>") == [ArgumentDelta(0, ("content",), "</paragraph>")]


def test_partial_and_calls_at_every_stage():
    decoder = NativeDecoder(tools=TOOLS)
    text = write("ab")
    cut = text.index("b</")
    decoder.feed(text[:cut])
    assert decoder.partial(0).arguments == {"content": "a"}
    assert decoder.partial(0).raw == '<invoke name="write">\n<parameter name="content">a'
    assert decoder.calls == []
    decoder.feed(text[cut:])
    assert decoder.partial(0).arguments == {"content": "ab"}
    assert [call.arguments for call in decoder.calls] == [{"content": "ab"}]
    assert decoder.close() == [Ended(None, None, True)]


def test_message_of_a_cut_answer():
    """E1: what was open, and what would have been accepted, in the tags' own words."""
    text = write("ab")[:75]
    decoder = NativeDecoder(tools=TOOLS)
    decoder.feed(text)
    failed, ended = decoder.close("length")
    assert isinstance(failed, ToolCallFailed)
    assert failed.error.message == "end of stream at 75 in calls > call > argument; expected '</parameter>' or text"
    assert ended == Ended("length", None, False)


@pytest.mark.parametrize(
    ("before", "trusted"),
    [
        ("  ```xml\n", False),  # indented, as in a list
        ("````\n```\n", False),  # a fence of four holds one of three
        ("```\n```py\n", False),  # a run with a word closes nothing
        ("~~~\n```\n", False),
        ("```\n````\n", True),  # a longer run closes
        ("```\nx\n  ``` \n", True),
        ("a ``` b\n", True),  # amid a line it is none
        ("``\n", True),
    ],
)
def test_n12_fences_of_markdown(before, trusted):
    (call,) = [fact for fact in facts(before + NOW_CALL) if isinstance(fact, tuple)]
    assert (len(call) == 2) is trusted
