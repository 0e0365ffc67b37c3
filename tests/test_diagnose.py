"""Why nothing was called (AGENT.md B20): the five causes, in their order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamparse import Ended, Event, Text, ToolCall, ToolCallFinished, decode
from streamparse.agent.diagnose import Cause, diagnose
from streamparse.agent.ledger import Ledger
from streamparse.agent.turns import Turn

GOOD = {
    "name": "get_weather",
    "description": "You must call this when the user asks for the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CALL = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
EXAMPLE = [
    {"role": "user", "content": "How is the weather in Bern?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "rain"},
]
ASKED = {"role": "user", "content": "And the weather in Oslo now?"}


def request(**fields: Any) -> dict[str, Any]:
    """A request with which nothing is wrong, and what is changed of it."""
    body = {"tools": [{"type": "function", "function": GOOD}], "tool_choice": "auto", "messages": [*EXAMPLE, ASKED]}
    return {key: value for key, value in {**body, **fields}.items() if value is not ...}


def tool(**fields: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {**GOOD, **fields}}]


def causes(body: Any, answer: Any = "It rains.") -> list[str]:
    return [finding.cause for finding in diagnose(body, answer)]


def test_b20_nothing_is_wrong():
    assert diagnose(request(), "It rains.") == []


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        ("none", "it forbids calls"),
        ({"type": "none"}, "it forbids calls"),
        ("required", "the server ignored"),
        ({"type": "any"}, "the server ignored"),
        ({"type": "function", "function": {"name": "get_weather"}}, "the server ignored"),
        ({"type": "function", "function": {"name": "read"}}, "'read', which is none of the tools"),
        ({"type": "function", "name": "get_weather"}, "names no tool"),
        ({"type": "tool", "name": "read"}, "'read', which is none of the tools"),
        ("get_weather", "'get_weather' is unknown"),
        (["auto"], "is unknown"),
    ],
)
def test_b20_first_tool_choice(choice, found):
    (finding,) = diagnose(request(tool_choice=choice), "It rains.")
    assert finding.cause is Cause.TOOL_CHOICE
    assert found in finding.message


@pytest.mark.parametrize(
    "description",
    [None, "", "Weather.", "Gets the weather of a city, anywhere on earth.", "You may use this when weather matters."],
)
def test_b20_second_vague_descriptions(description):
    findings = diagnose(request(tools=tool(description=description)), "It rains.")
    assert {finding.cause for finding in findings} == {Cause.VAGUE_DESCRIPTION}
    assert findings[0].place == "tools[0] 'get_weather'"


@pytest.mark.parametrize(
    ("tools", "place", "found"),
    [
        (..., "tools", "the request has none"),
        ([], "tools", "the list is empty"),
        ({"get_weather": GOOD}, "tools", "no list"),
        ([GOOD], "tools[0]", "stand at the top level"),
        ([{"type": "function", "function": {"function": GOOD, **GOOD}}], "tools[0]", "three levels"),
        ([{"function": GOOD}], "tools[0]", "its type is not 'function'"),
        (tool(name=""), "tools[0]", "no name"),
        (["get_weather"], "tools[0]", "is str and no object"),
        ([{"type": "function", "parameters": {}, "function": {k: GOOD[k] for k in ("name", "description")}}],
         "tools[0]", "beside function"),
    ],
)  # fmt: skip
def test_b20_third_tools_missing_or_nested_wrongly(tools, place, found):
    finding = next(each for each in diagnose(request(tools=tools), "It rains.") if each.cause is Cause.TOOLS_MISSING)
    assert finding.place == place
    assert found in finding.message


def test_b20_third_the_legacy_field():
    (finding,) = diagnose(request(tools=..., functions=[GOOD]), "It rains.")
    assert "legacy" in finding.message


def test_b20_third_flat_tools_are_right_for_anthropic():
    flat = {"name": GOOD["name"], "description": GOOD["description"], "input_schema": GOOD["parameters"]}
    blocks = [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "get_weather", "input": {}}]}]
    body = request(tools=[flat], tool_choice={"type": "auto"}, messages=[*blocks, ASKED], max_tokens=100)
    assert causes(body) == []
    assert causes({**body, "tools": [flat, {"type": "function", "function": GOOD}]}) == [Cause.TOOLS_MISSING]


def test_b20_fourth_no_example_in_the_messages():
    (finding,) = diagnose(request(messages=[ASKED]), "It rains.")
    assert finding.cause is Cause.NO_EXAMPLE


@pytest.mark.parametrize("text", ["hi", "ok", "Tell me a joke about lions and tigers", ""])
def test_b20_fifth_an_unclear_instruction(text):
    (finding,) = diagnose(request(messages=[*EXAMPLE, {"role": "user", "content": text}]), "It rains.")
    assert finding.cause is Cause.UNCLEAR_INSTRUCTION
    assert finding.place == "messages[3]"


def test_b20_the_order_is_always_the_same():
    everything = request(
        tool_choice="none", tools=[*tool(description=""), GOOD], messages=[{"role": "user", "content": "hm"}]
    )
    assert list(dict.fromkeys(causes(everything))) == list(Cause)


CALLED: list[Event] = [ToolCallFinished(0, ToolCall("c", "f", {})), Ended()]


@pytest.mark.parametrize(
    ("answer", "called"),
    [
        ("text", False),
        (None, False),
        ([Text("a"), Ended()], False),
        (CALLED, True),
        (decode("<minimax:tool_call>\n<invoke name="), False),  # no name, so it is no call of anything yet
        ({"role": "assistant", "content": "a"}, False),
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, True),
        ({"choices": [{"message": {"tool_calls": [CALL]}}]}, True),
        ({"choices": [{"message": {"content": "a", "tool_calls": None}}]}, False),
        ({"content": [{"type": "tool_use", "id": "c"}]}, True),
        (Turn(text="a"), False),
        (Ledger().take(CALLED), True),
    ],
)
def test_answers_in_every_form(answer, called):
    assert (causes(request(tool_choice="none"), answer) == []) is called


garbage = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "function", "name", "role", "content", "tool_calls", "choices", "message"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("tools", "tool_choice", "messages", "max_tokens"), garbage))
    | garbage,
    garbage,
)
def test_no_request_makes_it_raise(body, answer):
    for finding in diagnose(body, answer):
        assert finding.message
