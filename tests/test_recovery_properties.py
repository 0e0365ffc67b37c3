"""What holds for every dialogue of the recovery check, whatever a model says."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streamparse.agent.preflight import preflight
from streamparse.agent.recovery import (
    Conditions,
    End,
    RecoveryCheck,
    TurnClass,
    bundled,
    case_of,
    case_text,
    measure,
    page,
    report_text,
    stock_case,
    wilson,
)
from streamparse.agent.recovery.classes import ANSWERS, PROPOSALS
from streamparse.agent.recovery.drive import report_of
from streamparse.events import PartialToolCall, ToolCall
from streamparse.tools.canonical import canonical, same
from streamparse.tools.observation import SIZE, fingerprint
from streamparse.transport.wires import Wire
from tests.conversations import Turn, chunks, events, native

CASES = bundled()
STOCK = stock_case()

# Whatever a model may say: right and wrong calls in every envelope, text, and rubbish.

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
UNITS = st.sampled_from(["celsius", "fahrenheit", "kelvin", "rankine", ["celsius"], 3, None])
PLACES = st.sampled_from(["Bern, Switzerland", "Basel, Switzerland", 5])
ARGUMENTS = (
    st.fixed_dictionaries({"location": PLACES, "unit": UNITS})
    | st.fixed_dictionaries({"unit": UNITS})
    | st.dictionaries(st.sampled_from(["location", "unit", "mood"]), VALUES, max_size=3)
)
NAMES = st.sampled_from(["get_weather"] * 4 + ["get_time", "guess"])
CALLS = st.tuples(NAMES, ARGUMENTS.map(json.dumps))
TEXTS = st.sampled_from(
    [
        "",
        "It is 17.5 degrees.",
        "It is 20 degrees.",
        "No.",
        "get_weather(unit='kelvin')",
        '{"location": "Bern, Switzerland", "unit": "kelvin"}',
        "<invoke name=",
        "[TOOL_CALL] {tool => 'get_weather'}",
    ]
) | st.text(max_size=30)
TURNS = st.builds(Turn, st.sampled_from(["", "Hm."]), TEXTS, st.lists(CALLS, max_size=2), st.booleans())
NATIVE = st.one_of(
    TURNS.map(native),
    st.text(max_size=60),
    st.builds(lambda turn, at: native(turn)[: at % 300], TURNS, st.integers(0, 300)),
)
WAYS = ["stop", "length", "tool_calls", "error", None]
SAID = st.tuples(NATIVE | TURNS.map(chunks) | TURNS.map(events), st.sampled_from(WAYS))


def led(said: list[Any], limit: int) -> RecoveryCheck:
    check = RecoveryCheck(STOCK, limit=limit)
    for content, finish in said:
        if check.is_over:
            break
        check.read(content, finish_reason=finish)
    return check


@given(st.lists(SAID, min_size=6, max_size=6), st.integers(1, 4))
def test_any_sequence_of_turns_ends_within_the_limit_in_exactly_one_end(said, limit):
    check = led(said, limit)
    assert len(check.turns) <= limit + 1
    assert check.end in set(End)
    wrong = [turn for turn in check.turns if turn.turn_class not in (TurnClass.FIXED, TurnClass.USED)]
    assert len(wrong) <= limit
    assert (check.end is End.RECOVERED) is (check.turns[-1].turn_class is TurnClass.USED)
    assert (check.end is End.LIMIT) <= (len(wrong) == limit)


@given(st.lists(SAID, max_size=5))
def test_classes_are_exhaustive_and_exclusive(said):
    check = led(said, 5)
    for turn in check.turns:
        assert turn.turn_class in (PROPOSALS if turn.due == "call" else ANSWERS)
        assert (turn.level is None) is (turn.turn_class in (TurnClass.FIXED, TurnClass.USED))
        assert turn.corrected is not True or turn.valid
        assert turn.valid is not True or turn.read
    dues = [turn.due for turn in check.turns]
    assert dues == sorted(dues, reverse=True)  # calls first, then answers
    fixed = [turn for turn in check.turns if turn.turn_class is TurnClass.FIXED]
    assert len(fixed) == ("answer" in dues or check.due == "answer")
    assert sum(measure([check.report()]).classes.values()) == len(check.turns)


@given(st.lists(SAID, max_size=5))
def test_what_goes_back_is_bounded_and_the_history_legal(said):
    check = RecoveryCheck(STOCK, limit=5)
    for content, finish in said:
        if check.is_over:
            break
        request = check.request(model="m")
        assert preflight(request["messages"]) == []
        for wire in (Wire.MESSAGES, Wire.COMPLETIONS):
            json.dumps(check.request(wire, model="m"), ensure_ascii=False).encode()
        turn = check.read(content, finish_reason=finish)
        for text in (turn.feedback, *(call.observation for call in turn.calls)):
            assert len(text) <= SIZE


@given(st.lists(SAID, max_size=4))
def test_reports_are_deterministic(said):
    conditions = Conditions(model="m", source="scripted", wire="chat", library="1")
    one, other = (report_of(conditions, [led(said, 3).report()]) for _ in range(2))
    assert report_text(one).encode() == report_text(other).encode()
    assert page(one).encode() == page(other).encode()


@given(SAID, st.sampled_from(CASES))
def test_every_case_takes_every_turn(said, case):
    content, finish = said
    turn = RecoveryCheck(case).read(content, finish_reason=finish)
    assert turn.turn_class in PROPOSALS


def test_the_files_are_the_cases():
    for case in CASES:
        assert case_of(case_text(case)) == case


# Canonical equality: key order, white space, 2.0 against 2, and nothing else.


def equal(one: Any, other: Any) -> bool:
    """The same, told in another way."""
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return isinstance(one, str) and isinstance(other, str) and one == other


SMALL = st.recursive(
    st.sampled_from([0, 0.0, 1, 1.0, True, False, None, "", "1", "1.0", "a", "A", 1.5, 2, 2.0, 10**20, 1e20]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abA"), inner, max_size=2),
    max_leaves=4,
)


@given(SMALL, SMALL)
def test_canonical_equality_is_equality(one, other):
    assert (canonical(one) == canonical(other)) is equal(one, other)
    assert same(one, other) is equal(one, other)


@given(VALUES, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_white_space_and_the_order_of_keys_are_nothing(value, indent, ordered):
    written = json.dumps(turned(value), indent=indent, sort_keys=ordered)
    assert canonical(json.loads(written)) == canonical(value)


def turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: turned(each) for key, each in reversed(value.items())}
    return [turned(each) for each in value] if isinstance(value, list) else value


def test_the_same_call_is_known_everywhere():
    """Receipts, the loop and the check have one notion of it."""
    one, other = (ToolCall("", "f", {"b": number, "a": [1]}) for number in (2, 2.0))
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one) != fingerprint(ToolCall("", "f", {"b": "2", "a": [1]}))
    assert fingerprint(PartialToolCall("", "f", {}, "{")) != fingerprint(one)


def test_numbers_that_python_refuses_to_write():
    huge = 10**5000
    assert canonical(huge) == canonical(10**5000) != canonical(huge + 1)
    assert not same({1: 2}, {1: 2})
    assert not same(object(), object())


# Intervals.


@given(st.integers(0, 50), st.integers(0, 50))
def test_an_interval_holds_its_share(count, more):
    n = count + more
    low, high = wilson(count, n)
    assert 0 <= low <= high <= 1
    if n:
        assert low <= count / n <= high
        assert (low == 0) is (count == 0)
        assert (high == 1) is (count == n)


def test_known_intervals():
    """Computed by hand: p = 1/2 and n = 10; nothing of 10."""
    assert [round(each, 3) for each in wilson(5, 10)] == [0.237, 0.763]
    assert [round(each, 3) for each in wilson(0, 10)] == [0.0, 0.278]
    assert wilson(0, 0) == (0.0, 1.0)
