"""What a server would refuse is named, and mended (AGENT.md B5)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamparse.agent.healing import heal
from streamparse.agent.mending import LOST, NO_ANSWER
from streamparse.agent.preflight import preflight
from streamparse.agent.problems import EXPECTED, ProblemCode
from tests.conftest import ROOT

USER = {"role": "user", "content": "go"}


def call(id_: Any, arguments: Any = "{}", name: Any = "f") -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def turn(*calls: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **fields}


def result(id_: Any, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": content}


def found(messages: list[Any]) -> list[str]:
    return [
        f"{problem.position} {problem.code}{':' if problem.id else ''}{problem.id}" for problem in preflight(messages)
    ]


NOTE = {"role": "user", "content": "[a result without its call; its id was c9]\nok"}

# Messages, what preflight says of them, what they become.
TABLE: list[Any] = [
    ("nothing", [], [], []),
    ("a whole round", [USER, turn(call("a"), call("b")), result("a"), result("b"), USER], [],
     [USER, turn(call("a"), call("b")), result("a"), result("b"), USER]),
    ("ids repeat from round to round", [turn(call("K")), result("K", "1"), turn(call("K")), result("K", "2")], [],
     [turn(call("K")), result("K", "1"), turn(call("K")), result("K", "2")]),
    ("missing at the end", [turn(call("a"))], ["0 missing_result:a"], [turn(call("a")), result("a", LOST)]),
    ("missing before the user", [turn(call("a"), call("b")), result("b"), USER],
     ["0 missing_result:a", "1 unordered_result:b"],
     [turn(call("a"), call("b")), result("a", LOST), result("b"), USER]),
    ("separated", [turn(call("a")), USER, result("a")], ["2 separated_result:a"], [turn(call("a")), result("a"), USER]),
    ("the result of the latest turn", [turn(call("K")), turn(call("K")), result("K")], ["0 missing_result:K"],
     [turn(call("K")), result("K", LOST), turn(call("K")), result("K")]),
    ("out of order", [turn(call("a"), call("b")), result("b", "B"), result("a", "A")], ["1 unordered_result:b"],
     [turn(call("a"), call("b")), result("a", "A"), result("b", "B")]),
    ("orphan", [USER, result("c9")], ["1 orphan_result:c9"], [USER, NOTE]),
    ("before its call", [USER, result("a"), turn(call("a"))], ["1 orphan_result:a", "2 missing_result:a"],
     [USER, turn(call("a")), result("a")]),
    ("unknown id", [turn(call("a")), result("c9"), result("a")], ["1 unknown_id:c9"],
     [turn(call("a")), result("a"), NOTE]),
    ("a second result", [turn(call("a")), result("a"), result("a", "2")], ["2 repeated_result:a"],
     [turn(call("a")), result("a"), {"role": "user", "content": "[a second result of the call a]\n2"}]),
    ("repeated id", [turn(call("x"), call("x"), call("x_d2")), result("x", "A"), result("x", "B"), result("x_d2", "C")],
     ["0 repeated_id:x"],
     [turn(call("x"), call("x_d3"), call("x_d2")), result("x", "A"), result("x_d3", "B"), result("x_d2", "C")]),
    ("empty ids", [turn(call(""), call(None)), result("", "A"), result(None, "B")], ["0 missing_id", "0 missing_id"],
     [turn(call("call_healed_0"), call("call_healed_1")), result("call_healed_0", "A"), result("call_healed_1", "B")]),
    ("a result without an id", [turn(call("a")), {"role": "tool", "content": "ok"}],
     ["0 missing_result:a", "1 unknown_id"], [turn(call("a")), result("a")]),
    ("an id that is a number", [turn(call(5)), result(5)], ["0 missing_id"], [turn(call("5")), result("5")]),
    ("broken arguments", [turn(call("a", '{"x": "ls')), result("a", "bad JSON")], ["0 bad_arguments:a"],
     [turn(call("a")), result("a", 'bad JSON\n[the arguments were no JSON object]\n{"x": "ls')]),
    ("arguments as an object", [turn(call("a", {"x": 1})), result("a")], ["0 bad_arguments:a"],
     [turn(call("a", '{"x": 1}')), result("a")]),
    ("arguments that are tolerated", [turn(call("a", '{"x": 1,}')), result("a")], ["0 bad_arguments:a"],
     [turn(call("a", '{"x": 1}')), result("a")]),
    ("arguments of tier 2 are not guessed", [turn(call("a", "{'x': 1}")), result("a")], ["0 bad_arguments:a"],
     [turn(call("a")), result("a", "ok\n[the arguments were no JSON object]\n{'x': 1}")]),
    ("no arguments", [turn(call("a", ""), call("b", None)), result("a"), result("b")],
     ["0 bad_arguments:a", "0 bad_arguments:b"], [turn(call("a"), call("b")), result("a"), result("b")]),
    ("arguments that are an array", [turn(call("a", "[1]")), result("a")], ["0 bad_arguments:a"],
     [turn(call("a")), result("a", "ok\n[the arguments were no JSON object]\n[1]")]),
    ("a result that is JSON", [turn(call("a")), result("a", {"ok": True})], ["1 content_not_text"],
     [turn(call("a")), result("a", '{"ok": true}')]),
    ("a result in parts",
     [turn(call("a")), result("a", [{"type": "text", "text": "o"}, {"type": "text", "text": "k"}])],
     ["1 content_not_text"], [turn(call("a")), result("a")]),
    ("a name with a line break", [turn(call("a", name="f\n")), result("a")], ["0 bad_name:a"],
     [turn(call("a")), result("a")]),
    ("no name", [turn(call("a", name="")), result("a")], ["0 bad_name:a"],
     [turn(call("a", name="unnamed")), result("a")]),
    ("an empty turn", [USER, {"role": "assistant", "content": ""}], ["1 empty_turn"], [USER]),
    ("empty calls", [{"role": "assistant", "content": "hi", "tool_calls": []}], ["0 malformed_call"],
     [{"role": "assistant", "content": "hi"}]),
    ("reasoning alone", [{"role": "assistant", "content": None, "reasoning_content": "hm"}], ["0 empty_turn"],
     [{"role": "assistant", "content": NO_ANSWER, "reasoning_content": "hm"}]),
    ("a flat call", [turn({"id": "a", "name": "f", "arguments": {}}), result("a")],
     ["0 malformed_call", "1 orphan_result:a"], [turn(call("a")), result("a")]),
    ("the legacy form", [{"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
                         {"role": "function", "name": "f", "content": "ok"}],
     ["0 empty_turn", "0 malformed_call", "1 unknown_role"],
     [turn(call("call_healed_0")), {"role": "tool", "name": "f", "content": "ok", "tool_call_id": "call_healed_0"}]),
    ("what is no call", [{"role": "assistant", "content": "a", "tool_calls": ["f()"]}], ["0 malformed_call"],
     [{"role": "assistant", "content": "a\n[unreadable call]\nf()"}]),
    ("a late system message", [USER, {"role": "system", "content": "now"}], ["1 misplaced_system"],
     [USER, {"role": "user", "content": "[system message]\nnow"}]),
    ("an unknown role", [{"role": "critic", "content": "bad", "score": 3}], ["0 unknown_role"],
     [{"role": "user", "content": '[message with the role critic]\nbad\n{"score": 3}'}]),
    ("no message", ["text", None, 3], ["0 not_a_message", "1 not_a_message", "2 not_a_message"],
     [{"role": "user", "content": "[not a message]\ntext"}, {"role": "user", "content": "[not a message]\n3"}]),
    ("user content that is null", [{"role": "user", "content": None}], ["0 content_not_text"], []),
    ("user content that is JSON", [{"role": "user", "content": {"a": 1}}], ["0 content_not_text"],
     [{"role": "user", "content": '{"a": 1}'}]),
    ("a lone surrogate", [{"role": "user", "content": "\ud83e half"}], ["0 not_json"],
     [{"role": "user", "content": "\ufffd half"}]),
    ("NaN", [{"role": "user", "content": "x", "score": float("nan")}], ["0 not_json"],
     [{"role": "user", "content": "x", "score": "nan"}]),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "problems", "healed"), [pytest.param(*row[1:], id=row[0]) for row in TABLE])
def test_b5_table(messages, problems, healed):
    before = copy.deepcopy(messages)
    assert found(messages) == problems
    done = heal(messages)
    assert done.messages == healed
    assert bool(done.repairs) == bool(problems)
    assert repr(messages) == repr(before)  # (NaN equals nothing)
    assert preflight(done.messages) == []


def test_every_code_stands_in_the_table():
    assert {code.split()[1].split(":")[0] for row in TABLE for code in row[2]} == set(ProblemCode) == set(EXPECTED)


def test_every_code_is_documented():
    page = (ROOT / "docs" / "ledger.md").read_text("utf-8")
    assert [code for code in ProblemCode if f"`{code}`" not in page] == []


def test_problems_and_repairs_in_words():
    messages = [USER, turn(call("a", "{"))]
    assert [problem.message for problem in preflight(messages)] == [
        "messages[1]: bad_arguments 'a'; expected arguments that are the text of a JSON object",
        "messages[1]: missing_result 'a'; expected one result for each call",
    ]
    assert [repair.message for repair in heal(messages).repairs] == [
        "messages[1]: bad_arguments 'a': kept the broken text in the result",
        "messages[1]: missing_result 'a': said that it was lost",
    ]


def test_the_same_call_twice_is_no_repetition_of_a_result_b5():
    """Results of equal ids and equal text are all kept."""
    rounds = [each for _ in range(4) for each in (turn(call("K")), result("K", "same"))]
    assert heal(rounds).messages == rounds


def test_cycles_and_depth_are_cut():
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: Any = "end"
    for _ in range(5000):
        deep = [deep]
    messages = [{"role": "user", "content": cycle}, {"role": "tool", "content": deep}, {"a": deep}, deep]
    assert {problem.code for problem in preflight(messages)} >= {"not_json", "not_a_message"}
    assert preflight(heal(messages).messages) == []


# Properties: any garbage, and histories that are nearly right


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3)
garbage = st.recursive(
    scalars | st.sampled_from([object(), {1}, "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
    max_leaves=8,
)
ids = st.sampled_from(["a", "b", "K", "", None, 5, ["a"]]) | garbage
names = st.sampled_from(["f", "f\n", "", None, 3]) | garbage
arguments = st.sampled_from(["{}", '{"a": 1}', '{"a": 1,}', '{"a', "", None, "[]", {"a": 1}, '{"a":1,"a":2}']) | garbage
functions = st.fixed_dictionaries({}, optional={"name": names, "arguments": arguments}) | garbage
entries = (
    st.builds(call, ids, arguments, names)
    | st.fixed_dictionaries({}, optional={"id": ids, "type": st.just("function") | garbage, "function": functions})
    | st.fixed_dictionaries({"name": names, "arguments": arguments}, optional={"id": ids})
    | garbage
)
contents = (
    st.sampled_from(["", "text", None, [{"type": "text", "text": "part"}], [{"type": "image_url"}], {"a": 1}]) | garbage
)
roles = st.sampled_from(["system", "developer", "user", "assistant", "tool", "function", "critic", None]) | garbage
messages_ = (
    st.fixed_dictionaries(
        {},
        optional={
            "role": roles,
            "content": contents,
            "tool_calls": st.lists(entries, max_size=3) | garbage,
            "tool_call_id": ids,
            "function_call": functions,
            "reasoning_content": st.sampled_from(["", "hm"]) | garbage,
        },
    )
    | st.builds(turn, entries, entries)
    | st.builds(result, ids, contents)
    | st.just(USER)
    | garbage
)
histories = st.lists(messages_, max_size=7)


@given(histories)
def test_healing_ends_and_leaves_nothing_to_refuse_b5(messages):
    problems, done = preflight(messages), heal(messages)
    assert preflight(done.messages) == []
    assert bool(done.repairs) == bool(problems)
    json.dumps(done.messages, allow_nan=False, ensure_ascii=False).encode()


@given(histories)
def test_healing_is_deterministic_and_idempotent_b5(messages):
    once = heal(messages)
    assert repr(heal(messages)) == repr(once)
    twice = heal(once.messages)
    assert twice.messages == once.messages
    assert twice.repairs == []


@given(histories)
def test_healing_changes_nothing_that_it_is_given(messages):
    before = copy.deepcopy(messages)
    done = heal(messages)
    assert _frozen(messages) == _frozen(before)
    if not done.repairs:
        assert done.messages == messages


def _frozen(value: Any) -> str:
    return repr(value).split(" at 0x")[0]


ROLES = ["system", "user", "assistant", "tool", "function", "critic"]


@given(st.data())
def test_healing_loses_no_text_b5(data):
    """Every message is marked; each mark is still there, once or more."""
    marks = iter(f"mark{number}." for number in range(1000))
    messages: list[Any] = []
    for _ in range(data.draw(st.integers(0, 7))):
        kind = data.draw(st.sampled_from(["turn", "result", "other", "bare"]))
        if kind == "turn":
            broken = data.draw(st.sampled_from(['{{"a": "{}"}}', '{{"a": "{}', "{}", '["{}"]']))
            calls = [call(data.draw(st.sampled_from(["a", "b", ""])), broken.format(next(marks))) for _ in range(2)]
            messages.append(turn(*calls, content=next(marks), reasoning_content=next(marks)))
        elif kind == "result":
            content = data.draw(st.sampled_from([lambda m: m, lambda m: {"a": m}, lambda m: [m, None]]))(next(marks))
            messages.append(result(data.draw(st.sampled_from(["a", "b", "c", "", None])), content))
        elif kind == "other":
            content = data.draw(st.sampled_from([lambda m: m, lambda m: {"a": m}]))(next(marks))
            messages.append({"role": data.draw(st.sampled_from(ROLES)), "content": content})
        else:
            messages.append(next(marks))
    used = int(next(marks).removeprefix("mark").removesuffix("."))
    healed = json.dumps(heal(messages).messages)
    assert [number for number in range(used) if f"mark{number}." not in healed] == []
    assert preflight(heal(messages).messages) == []
