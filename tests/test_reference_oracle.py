"""The vendor's reference rules, implemented here, against ``close="first", whitespace="strip"``.

Both must agree on well-formed documents. Where SEMANTICS.md decides otherwise on purpose, the input is excluded and the
rule named: see ``EXCLUDED`` and ``excluded``.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamparse import NativeDecoder

from .chunks import join
from .documents import CHARACTERS, KEYS, NAMES, SCALARS, chunkings, texts

# -- the rules ---------------------------------------------------------------------------------------------------------


def reference(text: str, tools: dict[str, dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """The calls of an answer, by the rules of REFERENCE.md. ``tools``: name -> properties."""
    calls = []
    for envelope in re.findall(r"<minimax:tool_call>(.*?)</minimax:tool_call>", text, re.DOTALL):
        for invoke in re.findall(r"<invoke name=(.*?)</invoke>", envelope, re.DOTALL):
            head, _, body = invoke.partition(">")
            name = _unquoted(head)
            properties = tools.get(name, {})
            arguments = {}
            for parameter in re.findall(r"<parameter name=(.*?)</parameter>", body, re.DOTALL):
                head, _, value = parameter.partition(">")
                key = _unquoted(head)
                arguments[key] = _typed(value.strip(), properties.get(key, {}).get("type", "string"))
            calls.append((name, arguments))
    return calls


def _unquoted(text: str) -> str:
    text = text.strip()
    for quote in "\"'":
        if len(text) > 1 and text[0] == text[-1] == quote:
            return text[1:-1]
    return text


def _typed(text: str, kind: str) -> Any:
    if text.lower() == "null":
        return None
    try:
        match kind:
            case "string":
                return text
            case "integer":
                return int(text)
            case "number":
                number = float(text)
                return int(number) if number.is_integer() else number
            case "boolean":
                return text.lower() in ("true", "1")
            case _:
                return json.loads(text)
    except ValueError:
        return text


# -- documents on which both agree -------------------------------------------------------------------------------------

EXCLUDED = {
    "N3": "an envelope in the middle of a line without an invoke, or inside reasoning",
    "N4": "a name with '>' in it, with quotes or white space at its ends, empty, or with other attributes",
    "N5": "a value that holds a tag of the format (the reference cuts at the first of each, whatever surrounds it)",
    "N7": "a value that holds a parameter's opening tag",
    "N8": "(none: whitespace='strip')",
    "N14": "a parameter that is given twice",
    "T1": "a string 'null'",
    "T2": "several types",
    "T3": "integers and booleans in other words than JSON's; numbers beyond a float",
    "T5": "an undeclared parameter, or one without a type, whose text is a JSON object or array",
    "J1": "duplicate keys, NaN and infinities in JSON",
}

TYPES = ("string", "integer", "number", "boolean", "object", "array")
SCHEMAS = st.sampled_from(TYPES) | st.none()  # None: not declared, or declared without a type

JSON = st.recursive(
    SCALARS | texts(max_size=3) | st.text(CHARACTERS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(CHARACTERS, max_size=3), inner, max_size=3),
    max_leaves=6,
)


def values(kind: str | None) -> st.SearchStrategy[str]:
    """The text of a value of a type, or text that is of no type."""
    strings = st.text(CHARACTERS) | texts()
    match kind:
        case "integer":
            return st.integers(-(10**30), 10**30).map(str) | st.sampled_from(["two", "1.5", "", "4 apples"])
        case "number":
            numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
            return numbers.map(json.dumps) | st.sampled_from(["many", "", "3.0", "1e3", "-0.5"])
        case "boolean":
            return st.sampled_from(["true", "false"])
        case "object" | "array":
            return JSON.map(lambda value: json.dumps(value, ensure_ascii=False)).filter(
                lambda text: text[0] == ("{" if kind == "object" else "[")
            ) | st.sampled_from(["{}", "[]", "{", "[1, ", "text"]).filter(lambda text: text not in _OTHER[kind])
        case _:
            return strings


_OTHER = {"object": ("[]",), "array": ("{}",)}

SPACES = st.sampled_from(["", "", " ", "\n", "\n\n  ", "\t"])


def excluded(text: str, kind: str | None) -> str:
    """The rule by which the two differ on a value, or an empty string."""
    bare = text.strip()
    if bare.lower() == "null":
        return "T1" if kind in (None, "string") else ""
    if kind is None:
        try:
            if isinstance(json.loads(bare), dict | list):
                return "T5"
        except ValueError:
            pass
    if kind in ("object", "array"):
        try:
            json.loads(bare)
        except ValueError:
            return "J6"  # the reference keeps the text; here the call fails
    return ""


@st.composite
def answers(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """A well-formed answer, the tools as a decoder takes them, and as the reference does."""
    kinds = {
        name: draw(st.dictionaries(KEYS, SCHEMAS, max_size=4))
        for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    }
    tools, properties = [], {}
    for name, parameters in kinds.items():
        declared = {key: ({} if kind is None else {"type": kind}) for key, kind in parameters.items()}
        tools.append({"type": "function", "function": {"name": name, "parameters": {"properties": declared}}})
        properties[name] = declared
    text = draw(st.sampled_from(["", "Let me see.\n", "first\n\n", "<b>\n"]))
    for _ in range(draw(st.integers(1, 2))):
        text += "<minimax:tool_call>\n"
        for _ in range(draw(st.integers(1, 3))):
            name = draw(st.sampled_from(sorted(kinds)))
            text += draw(headers("invoke", name)) + "\n"
            for key, kind in kinds[name].items():
                if draw(st.booleans()):
                    value = draw(SPACES) + draw(values(kind)) + draw(SPACES)
                    assume(not excluded(value, kind))
                    text += f"{draw(headers('parameter', key))}{value}</parameter>\n"
            text += "</invoke>\n"
        text += "</minimax:tool_call>" + draw(st.sampled_from(["", "\n", "\n\nDone.\n", " and\n"]))
    return text, tools, properties


def headers(tag: str, name: str) -> st.SearchStrategy[str]:
    """Ways to write a header that both read."""
    forms = ['<{0} name="{1}">', "<{0} name='{1}'>", "<{0} name={1}>", '<{0} name="{1}" >', "<{0} name= '{1}'>"]
    return st.sampled_from(forms).map(lambda form: form.format(tag, name))


def decoded(chunks: list[str], tools: Any) -> list[tuple[str, dict[str, Any]]]:
    """The sealed calls of the decoder in the reference's mode."""
    decoder = NativeDecoder("minimax_m2", tools=tools, close="first", whitespace="strip")
    for chunk in chunks:
        decoder.feed(chunk)
    decoder.close("stop")
    return [(call.name, call.arguments) for call in decoder.calls]


@given(st.data(), answers())
def test_the_reference_mode_reads_what_the_reference_reads(data, answer):
    text, tools, properties = answer
    expected = reference(text, properties)
    assert decoded([text], tools) == expected
    assert decoded(data.draw(chunkings(text)), tools) == expected


@given(answers())
def test_the_reference_mode_does_not_wait_for_a_chain(answer):
    """A value ends with its first closing tag, at once."""
    text, tools, _ = answer
    decoder = NativeDecoder("minimax_m2", tools=tools, close="first", whitespace="strip")
    for at, character in enumerate(text, 1):
        decoder.feed(character)
        if text[:at].endswith("</parameter>"):
            assert decoder._scanner.state.opaque != "VALUE"


@pytest.mark.parametrize("kind", [*TYPES, None])
def test_any_white_space_is_stripped(kind):
    """What ``str.strip`` calls white space, not only what JSON does."""
    samples = {"integer": "3", "number": "0.5", "boolean": "true", "object": '{"a": 1}', "array": "[1]"}
    value = samples.get(str(kind), "x")
    for space in ("\u2003", "\xa0", "\x0c", "\x85", "\x1f"):
        text, tools, properties = invoke(f"{space}{value}{space}", kind)
        assert decoded([text], tools) == reference(text, properties)


def test_the_default_mode_gives_the_same_calls_where_no_white_space_is_stripped():
    text = '<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">x</parameter>\n</invoke>\n</minimax:tool_call>'
    assert reference(text, {}) == [("f", {"a": "x"})]
    decoder = NativeDecoder("minimax_m2")
    assert join(decoder.feed(text) + decoder.close())
    assert [(call.name, call.arguments) for call in decoder.calls] == [("f", {"a": "x"})]


# -- where they differ, each by a rule ---------------------------------------------------------------------------------


def invoke(value: str, kind: str | None) -> tuple[str, list[dict[str, Any]], dict[str, Any]]:
    schema = {} if kind is None else {"type": kind}
    call = f'<invoke name="f">\n<parameter name="k">{value}</parameter>\n</invoke>'
    text = f"<minimax:tool_call>\n{call}\n</minimax:tool_call>"
    return text, [{"name": "f", "parameters": {"properties": {"k": schema}}}], {"f": {"k": schema}}


@pytest.mark.parametrize(
    ("rule", "value", "kind", "theirs", "ours"),
    [
        ("T1", "null", "string", None, "null"),
        ("T1", "NULL", "string", None, "NULL"),
        ("T3", "1_000", "integer", 1000, "1_000"),
        ("T3", "+3", "integer", 3, "+3"),
        ("T3", "1", "boolean", True, "1"),
        ("T3", "yes", "boolean", False, "yes"),
        ("T3", str(2**53 + 1), "number", 2**53, 2**53 + 1),
        ("T5", "[1]", None, "[1]", [1]),
        ("N5", "a</invoke>b", "string", "", "a</invoke>b"),
    ],
)
def test_where_the_rules_differ(rule, value, kind, theirs, ours):
    assert rule in EXCLUDED
    text, tools, properties = invoke(value, kind)
    if rule != "N5":
        assert reference(text, properties) == [("f", {"k": theirs})]
    assert decoded([text], tools) == [("f", {"k": ours})]
