"""One ledger on every wire, and back (AGENT.md B1, B2, B3, B5, B6)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamparse import Ended, Reasoning, Text, ToolCall, ToolCallFinished, UsageError, decode
from streamparse.agent.adapters.anthropic import BEGIN, from_anthropic, to_anthropic
from streamparse.agent.adapters.native import to_prompt
from streamparse.agent.adapters.openai import ChatStyle, from_messages, to_messages
from streamparse.agent.healing import heal
from streamparse.agent.ledger import Ledger
from streamparse.agent.mending import NO_ANSWER
from streamparse.agent.preflight import preflight
from streamparse.agent.request import AUTO, Choice, anthropic_request, chat_request, prompt_request
from streamparse.agent.states import CallState
from streamparse.agent.turns import ToolResult, Turn
from streamparse.tools.definition import Tool
from tests.histories import ledgers

READ = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [Tool("read_file", "Must be called before a file is changed.", READ), Tool("now", "Tells the time.")]


def conversation() -> Ledger:
    """Two user messages; behind each a turn with reasoning and two calls."""
    ledger = Ledger("You write Python.")
    for number in (1, 2):
        ledger.add_user(f"question {number}")
        calls = [ToolCall(f"r{number}", "read_file", {"path": "é.py", "n": [1, 2]}), ToolCall(f"n{number}", "now", {})]
        finished = [ToolCallFinished(index, call) for index, call in enumerate(calls)]
        ledger.take([Reasoning(f"thought {number}\n"), Text(f"text {number}"), *finished, Ended("tool_calls")])
        for call in reversed(ledger.open_calls):
            state = CallState.OK if call.name == "now" else CallState.ERROR
            ledger.record(ToolResult.of(ledger.start(call), state, f"result of {call.id}"))
    return ledger


# OpenAI


def test_b6_openai_messages():
    assert to_messages(conversation())[1:5] == [
        {"role": "user", "content": "question 1"},
        {
            "role": "assistant",
            "content": "text 1",
            "reasoning_content": "thought 1\n",
            "tool_calls": [
                {"id": "r1", "type": "function",
                 "function": {"name": "read_file", "arguments": '{"path": "é.py", "n": [1, 2]}'}},
                {"id": "n1", "type": "function", "function": {"name": "now", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "r1", "content": "result of r1"},
        {"role": "tool", "tool_call_id": "n1", "content": "result of n1"},
    ]  # fmt: skip


def silent(*ids: str) -> Ledger:
    """A turn of calls without text."""
    ledger = Ledger()
    ledger.take([*(ToolCallFinished(n, ToolCall(id_, "f", {})) for n, id_ in enumerate(ids)), Ended()])
    ledger.close_open("over")
    return ledger


@pytest.mark.parametrize("content", [None, ""])
def test_b6_content_beside_calls_by_provider(content):
    (message, _) = to_messages(silent("a"), ChatStyle(content_beside_calls=content))
    assert message["content"] == content


def test_b6_reasoning_by_provider():
    ledger = conversation()
    for field in ("reasoning_content", "reasoning"):
        assert [m[field] for m in to_messages(ledger, ChatStyle(reasoning=field)) if field in m] == [
            "thought 1\n",
            "thought 2\n",
        ]
    details = [m.get("reasoning_details") for m in to_messages(ledger, ChatStyle(reasoning="reasoning_details"))]
    assert details[2] == [{"type": "reasoning.text", "text": "thought 1\n"}]
    assert not any("reasoning" in key for m in to_messages(ledger, ChatStyle(reasoning=None)) for key in m)


def test_b3_reasoning_of_the_current_work_is_always_sent():
    messages = to_messages(conversation(), ChatStyle(all_reasoning=False))
    assert [m.get("reasoning_content") for m in messages if m["role"] == "assistant"] == [None, "thought 2\n"]


def test_b3_details_go_back_as_they_came():
    details = [{"type": "reasoning.encrypted", "data": "x", "index": 0}]
    ledger = Ledger()
    ledger.take([Reasoning("hm"), Text("a"), Ended()], details=details)
    assert to_messages(ledger, ChatStyle(reasoning="reasoning_details"))[0]["reasoning_details"] == details


def test_c4_repeated_ids_are_marked_unless_the_caller_wants_them_as_they_came():
    ids = [[call["id"] for call in to_messages(silent("x", "x"), style)[0]["tool_calls"]]
           for style in (ChatStyle(), ChatStyle(distinct_ids=False))]  # fmt: skip
    assert ids == [["x", "x_d2"], ["x", "x"]]


def test_the_summary_is_a_system_message():
    ledger = conversation()
    ledger.summary = "Before: nothing."
    assert [m["content"] for m in to_messages(ledger) if m["role"] == "system"] == [
        "You write Python.",
        "Before: nothing.",
    ]
    merged = to_messages(ledger, ChatStyle(merge_system=True))
    assert merged[0]["content"] == "You write Python.\n\nBefore: nothing."
    assert merged[1]["role"] == "user"


def test_import_says_what_is_wrong():
    with pytest.raises(UsageError, match=r"messages\[1\]: orphan_result 'x'.*heal"):
        from_messages([{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "x", "content": ""}])


def test_import_takes_calls_that_wait_at_the_end():
    messages = to_messages(silent("a", "b"))
    ledger = from_messages(messages[:2])
    assert [call.id for call in ledger.open_calls] == ["b"]
    with pytest.raises(UsageError, match="missing_result 'b'"):
        from_messages([*messages[:2], {"role": "user", "content": "x"}])


def test_import_keeps_reasoning_from_any_field_b3():
    for field, value in [("reasoning", "hm"), ("reasoning_details", [{"type": "reasoning.text", "text": "hm"}])]:
        (turn,) = from_messages([{"role": "assistant", "content": "a", field: value}]).turns
        assert turn.reasoning == "hm"


STYLES = st.builds(
    ChatStyle,
    content_beside_calls=st.sampled_from([None, ""]),
    reasoning=st.sampled_from(["reasoning_content", "reasoning", "reasoning_details", None]),
    all_reasoning=st.booleans(),
    merge_system=st.booleans(),
)


@given(ledgers(), STYLES)
def test_round_trip_openai_b6(ledger, style):
    messages = to_messages(ledger, style)
    assert preflight(messages) == []
    again = from_messages(messages)
    assert to_messages(again, style) == messages
    assert [call.id for call in again.calls] == [
        call["id"] for message in messages for call in message.get("tool_calls", ())
    ]


@given(ledgers())
def test_a_healed_history_is_the_ledgers_own_b5(ledger):
    """Damage that leaves the texts alone is mended to the same history."""
    messages = to_messages(ledger, ChatStyle(merge_system=True))
    damaged = [dict(m) for m in messages]
    damaged.sort(key=lambda m: m["role"] == "tool")  # all results at the end
    order = [[m["content"] for m in each if m["role"] == "user"] for each in (messages, heal(damaged).messages)]
    assert order[0] == order[1]
    assert len(from_messages(heal(damaged).messages).entries) == len(from_messages(messages).entries)


# Anthropic


def test_b6_anthropic_messages():
    history = to_anthropic(conversation())
    assert history["system"] == "You write Python."
    question, answer, results = history["messages"][:3]
    assert question == {"role": "user", "content": [{"type": "text", "text": "question 1"}]}
    assert answer["content"] == [
        {"type": "thinking", "thinking": "thought 1\n"},
        {"type": "text", "text": "text 1"},
        {"type": "tool_use", "id": "r1", "name": "read_file", "input": {"path": "é.py", "n": [1, 2]}},
        {"type": "tool_use", "id": "n1", "name": "now", "input": {}},
    ]
    assert results["content"] == [  # all in one turn, in front of what the user says next
        {"type": "tool_result", "tool_use_id": "r1", "content": "result of r1", "is_error": True},
        {"type": "tool_result", "tool_use_id": "n1", "content": "result of n1"},
        {"type": "text", "text": "question 2"},
    ]
    assert "thinking" not in json.dumps(to_anthropic(conversation(), unsigned_thinking=False))


def test_b3_thinking_goes_back_with_its_signature():
    details = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
    ]
    ledger = Ledger()
    ledger.take([Reasoning("hm"), Text("a"), Ended()], details=details)
    assert to_anthropic(ledger)["messages"][1]["content"][:2] == details


def test_anthropic_ids_are_legal_and_unique():
    ledger = Ledger()
    for _ in range(2):
        ledger.take([ToolCallFinished(0, ToolCall("search:0", "f", {})), Ended()])
        ledger.close_open("over")
    blocks = [block for message in to_anthropic(ledger)["messages"] for block in message["content"]]
    assert [block["id"] for block in blocks if "id" in block] == ["search_0", "search_0_d2"]
    assert [block["tool_use_id"] for block in blocks if "tool_use_id" in block] == ["search_0", "search_0_d2"]


def test_anthropic_blank_text_is_left_out():
    ledger = Ledger()
    ledger.add_user(" \n")
    ledger.take([Text("\n"), ToolCallFinished(0, ToolCall("c", "f", {})), Ended()])
    ledger.close_open("over")
    texts = [block["text"] for m in to_anthropic(ledger)["messages"] for block in m["content"] if "text" in block]
    assert texts == [BEGIN]


def test_anthropic_images():
    ledger = Ledger()
    ledger.add_user(
        [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        ]
    )
    assert [block["source"] for block in to_anthropic(ledger)["messages"][0]["content"]] == [
        {"type": "base64", "media_type": "image/png", "data": "AAAA"},
        {"type": "url", "url": "https://example.org/a.png"},
    ]


@given(ledgers())
def test_what_anthropic_refuses_is_never_sent_b5(ledger):
    messages = to_anthropic(ledger)["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"] * (
        len(messages) % 2
    )
    seen: list[str] = []
    for message, following in zip(messages, [*messages[1:], {"content": []}], strict=False):
        assert message["content"]
        assert all(block.get("text", "x") for block in message["content"])
        used = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        results = [block.get("tool_use_id") for block in following["content"][: len(used)]]
        assert used == results
        seen += used
    assert len(set(seen)) == len(seen) == len(list(ledger.calls))
    assert all(re.fullmatch("[a-zA-Z0-9_-]+", id_) for id_ in seen)
    json.dumps(messages, ensure_ascii=False, allow_nan=False).encode()


def facts(history: dict[str, Any]) -> list[Any]:
    """The blocks of each message, and its texts joined: two answers in a row are one assistant message."""
    found = [history.get("system")]
    for message in history["messages"]:
        blocks = message["content"]
        texts = ["".join(b[kind] for b in blocks if b["type"] == kind) for kind in ("thinking", "text")]
        texts[1] = texts[1].replace(NO_ANSWER, "")
        found.append([message["role"], texts, [b for b in blocks if b["type"].startswith("tool_")]])
    return found


@given(ledgers())
def test_round_trip_anthropic_b6(ledger):
    history = to_anthropic(ledger)
    again = from_anthropic(history["messages"], history.get("system"))
    assert facts(to_anthropic(again)) == facts(history)
    third = from_anthropic(to_anthropic(again)["messages"], history.get("system"))
    assert to_anthropic(third) == to_anthropic(again)


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([{"role": "tool", "content": "x"}], r"messages\[0\]: expected an object with the role"),
        ([{"role": "user", "content": 3}], r"messages\[0\]: expected content"),
        ([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}], r"messages\[0\].*no call 'x'"),
        ([{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f"}]}], r"messages\[0\].*input"),
    ],
)
def test_import_from_anthropic_says_what_is_wrong(messages, message):
    with pytest.raises(UsageError, match=message):
        from_anthropic(messages)


def test_a_history_that_begins_with_an_answer():
    ledger = Ledger()
    ledger.take([Text("hi"), Ended()])
    assert to_anthropic(ledger)["messages"][0] == {"role": "user", "content": [{"type": "text", "text": BEGIN}]}


# Native


def test_b6_native_prompt():
    assert to_prompt(conversation(), TOOLS, introduction="Tools:") == (
        "]~!b[]~b]system\n"
        "You write Python.\n\n"
        "Tools:\n\n<tools>\n"
        '<tool>{"name": "read_file", "description": "Must be called before a file is changed.", "parameters": '
        '{"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}</tool>\n'
        '<tool>{"name": "now", "description": "Tells the time.", "parameters": '
        '{"type": "object", "properties": {}}}</tool>\n'
        "</tools>\n\n"
        "A call is written like this:\n"
        "<minimax:tool_call>\n"
        '<invoke name="tool-name">\n<parameter name="parameter">value</parameter>\n</invoke>\n'
        "</minimax:tool_call>[e~[\n"
        "]~b]user\nquestion 1[e~[\n"
        "]~b]ai\ntext 1\n<minimax:tool_call>\n"
        '<invoke name="read_file">\n<parameter name="path">é.py</parameter>\n<parameter name="n">[1, 2]</parameter>\n'
        '</invoke>\n<invoke name="now">\n</invoke>\n'
        "</minimax:tool_call>[e~[\n"
        "]~b]tool\n<response>result of r1</response>\n<response>result of n1</response>[e~[\n"
        "]~b]user\nquestion 2[e~[\n"
        "]~b]ai\n<think>\nthought 2\n</think>\n\ntext 2\n<minimax:tool_call>\n"
        '<invoke name="read_file">\n<parameter name="path">é.py</parameter>\n<parameter name="n">[1, 2]</parameter>\n'
        '</invoke>\n<invoke name="now">\n</invoke>\n'
        "</minimax:tool_call>[e~[\n"
        "]~b]tool\n<response>result of r2</response>\n<response>result of n2</response>[e~[\n"
        "]~b]ai\n<think>\n"
    )


def test_native_answers_go_back_as_the_model_wrote_them():
    """The server's cache of the prompt holds only while the history is what was generated."""
    answer = (
        "I should look.\n</think>\n\nLet me see.\n<minimax:tool_call>\n"
        '<invoke name="read_file">\n<parameter name="path">a.py</parameter>\n</invoke>\n</minimax:tool_call>'
    )
    ledger = Ledger("s")
    ledger.add_user("q")
    before = to_prompt(ledger, TOOLS)
    ledger.take(decode(answer, tools=TOOLS, start="reasoning", finish_reason="stop"))
    ledger.close_open("over")
    assert to_prompt(ledger, TOOLS).startswith(f"{before}{answer}[e~[\n]~b]tool\n<response>")


@given(ledgers())
def test_native_results_stand_in_call_order_b4(ledger):
    prompt = to_prompt(ledger)
    assert prompt.endswith("]~b]ai\n<think>\n")
    assert prompt.count("</response>") == len(list(ledger.calls))
    texts = [f"<response>{text}</response>" for text in
             (m["content"] for m in to_messages(ledger) if m["role"] == "tool")]  # fmt: skip
    places: list[int] = []
    for text in texts:
        places.append(prompt.index(text, places[-1] + 1 if places else 0))
    assert places == sorted(places)


# Requests


def test_b1_tools_are_two_levels_deep():
    body = chat_request(conversation(), model="m", tools=TOOLS, temperature=0.5)
    assert body["tools"][0] == {
        "type": "function",
        "function": {"name": "read_file", "description": TOOLS[0].description, "parameters": READ},
    }
    assert (body["tool_choice"], body["temperature"], body["stream"]) == ("auto", 0.5, True)
    flat = anthropic_request(conversation(), model="m", max_tokens=9, tools=TOOLS)
    assert flat["tools"][0] == {"name": "read_file", "description": TOOLS[0].description, "input_schema": READ}
    assert flat["tool_choice"] == {"type": "auto"}


@pytest.mark.parametrize(
    ("choice", "chat", "anthropic", "sentence"),
    [
        (Choice("auto"), "auto", {"type": "auto"}, ""),
        (Choice("required"), "required", {"type": "any"}, "Your next answer must call a tool."),
        (Choice("none"), "none", {"type": "none"}, ""),
        (
            Choice("named", "now"),
            {"type": "function", "function": {"name": "now"}},
            {"type": "tool", "name": "now"},
            "Your next answer must call the tool now.",
        ),
    ],
)
def test_b1_choices(choice, chat, anthropic, sentence):
    ledger = conversation()
    assert chat_request(ledger, model="m", tools=TOOLS, choice=choice)["tool_choice"] == chat
    assert anthropic_request(ledger, model="m", max_tokens=1, tools=TOOLS, choice=choice)["tool_choice"] == anthropic
    prompt = prompt_request(ledger, model="m", tools=TOOLS, choice=choice)["prompt"]
    assert sentence in prompt
    assert ("<tools>" in prompt) is (choice.mode != "none")


def test_b1_a_forced_choice_is_reset_after_one_turn():
    assert Choice("required").after_turn() == Choice("named", "now").after_turn() == AUTO
    assert Choice("none").after_turn() == Choice("none")


def test_b1_choices_that_cannot_be():
    ledger = conversation()
    with pytest.raises(UsageError, match=r"'write', which is none of the tools: read_file, now"):
        chat_request(ledger, model="m", tools=TOOLS, choice=Choice("named", "write"))
    with pytest.raises(UsageError, match="needs tools"):
        chat_request(ledger, model="m", choice=Choice("required"))
    with pytest.raises(UsageError, match="use auto, required, none or named"):
        Choice("any")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a named choice"):
        Choice("named")
    assert "tool_choice" not in chat_request(ledger, model="m")


@given(ledgers())
def test_requests_are_json(ledger):
    bodies: list[dict[str, Any]] = [
        chat_request(ledger, model="m", tools=TOOLS),
        anthropic_request(ledger, model="m", max_tokens=1, tools=TOOLS),
        prompt_request(ledger, model="m", tools=TOOLS),
    ]
    for body in bodies:
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()


def test_turns_from_elsewhere():
    ledger = Ledger()
    ledger.add_turn(Turn(text="hi"))
    assert to_messages(ledger) == [{"role": "assistant", "content": "hi"}]
