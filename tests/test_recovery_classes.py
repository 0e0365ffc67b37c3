"""What a class, a repetition and a metric rest on: the doubtful cases, told row by row (A2, A4, A8 to A12)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from streamparse.agent.models import Script, ScriptedModel
from streamparse.agent.prose import prose_call, spelled
from streamparse.agent.recovery import (
    End,
    Fix,
    Prepared,
    RecoveryCase,
    RecoveryCheck,
    bundled,
    generate,
    measure,
    run_case_sync,
    stock_case,
)
from streamparse.agent.recovery.vendors import Row, outcome_of
from streamparse.errors import StreamInterruptedError, UsageError
from tests.conversations import Turn, chunks, native, turns_of

STOCK = stock_case()
PLACE = '"location": "Bern, Switzerland"'
KELVIN = f'calls get_weather {{{PLACE}, "unit": "kelvin"}}'
RANKINE = f'calls get_weather {{{PLACE}, "unit": "rankine"}}'
CELSIUS = f'calls get_weather {{{PLACE}, "unit": "celsius"}}'
ELSEWHERE = 'calls get_weather {"location": "Basel, Switzerland", "unit": "celsius"}'
PROSE = 'says get_weather(location="Bern, Switzerland", unit="{}")'


def said(text: str, finish: str | None = "stop") -> list[dict[str, Any]]:
    return [{"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}]


def talk(*contents: Any, case: RecoveryCase = STOCK, **options: Any) -> RecoveryCheck:
    check = RecoveryCheck(case, **options)
    for content in contents:
        check.request(model="m")
        check.read(chunks(turns_of(content)[0]) if isinstance(content, str) else content)
    return check


# A4: what nobody asked for is a drift, at any depth.

LETTER = {
    "name": "send",
    "parameters": {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "prio": {"enum": ["low", "high"]},
            "everyone": {"type": "boolean"},
            "copies": {"type": "integer", "default": 1},
            "at": {"type": "object", "properties": {"hour": {"type": "integer"}, "silent": {"type": "boolean"}}},
        },
        "required": ["to", "prio"],
    },
}
[SEND] = generate(LETTER, arguments={"to": "ada", "prio": "high", "at": {"hour": 9}}, kinds=["enum"])


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, "fixed"),
        ({"everyone": True}, "drifted"),
        ({"at": {"hour": 9, "silent": True}}, "drifted"),
        ({"copies": 1}, "fixed"),  # its default: no other call
        ({"copies": 2}, "drifted"),
        ({"mood": "good"}, "fixed"),  # undeclared: the tool never sees it (B14)
    ],
)
def test_a4_a_field_that_nobody_asked_for_is_a_drift(more, expected):
    turn = talk(f"calls send {json.dumps({**SEND.expected, **more})}", case=SEND).turns[0]
    assert turn.turn_class == expected
    assert turn.pins_kept is (expected == "fixed")
    if expected == "drifted":
        wanted = "it was right before" if "at" in more else "allowed: to leave it out; nobody asked for it"
        assert wanted in turn.calls[0].observation


# A2: a call in prose, and what is none.


@pytest.mark.parametrize(
    "text",
    [
        "I am sorry: get_weather does not support the unit kelvin.",
        "The tool get_weather was rejected, because its unit must be one of a list. I cannot answer.",
        'The tool answered {"location": "Bern"} is missing something.',
        "I called get_weather(location, unit) and it failed. What should I do?",
        "I will not call get_weather with the unit kelvin.",
        "Let me say it plainly. The unit of get_weather is unknown to me.",
    ],
)
def test_a2_a_refusal_is_no_call_in_prose(text):
    turn = talk(said(text)).turns[0]
    assert (turn.turn_class, turn.repeats) == ("missing", False)
    assert prose_call(text, ["get_weather", "get_time"]) is None


CALL = '{"name": "get_weather", "arguments": {"unit": "%s", "location": "Bern, Switzerland"}}'


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ('get_weather(location="Bern", unit="kelvin")', True),  # as a structured call with this place would be
        ('get_weather(location="Bern", unit="celsius")', False),
        ('{"unit": "kelvin"}', True),
        ('```json\n{"unit": "kelvin"}\n```', True),
        ("I will call get_weather with the unit kelvin.", True),
        (f"I sent {CALL % 'kelvin'}, which was wrong. Now: {CALL % 'celsius'}", False),  # the last one counts
        (f"Not {CALL % 'celsius'}, but {CALL % 'kelvin'}", True),
        (f'{CALL % "kelvin"}\n\nget_weather(location="Bern, Switzerland", unit="celsius")', False),
        (
            f'{CALL % "celsius"}\n<invoke name="get_weather">\n<parameter name="unit">kelvin</parameter>\n</invoke>',
            True,
        ),
        ("word " * 6000 + CALL % "kelvin", True),  # the end of a text is searched
    ],
)
def test_a2_a_repetition_does_not_depend_on_the_envelope(text, repeats):
    turn = talk(said(text)).turns[0]
    assert (turn.turn_class, turn.repeats) == ("prose_call", repeats)


def test_a2_where_a_call_is_searched():
    assert talk(said(CALL % "kelvin" + " word" * 6000)).turns[0].turn_class == "missing"
    assert [each.at for each in spelled("x" * 30_000 + CALL % "kelvin", ["get_weather"])] == [30_000]


def test_a2_calls_in_the_reasoning_and_in_the_text():
    """N13: the reasoning is provisional. What the text comes to counts."""
    kelvin, celsius = native(turns_of(KELVIN)[0]), PROSE.format("celsius").removeprefix("says ")
    turn = RecoveryCheck(STOCK).read(f"<think>\n{kelvin}\n</think>\n\n{celsius}")
    assert (turn.turn_class, turn.repeats) == ("prose_call", False)


@pytest.mark.parametrize(
    ("arguments", "repeats"),
    [
        ('{"unit": "kelvin", "location": "Be', True),
        ('{"unit": "rankine", "location": "Be', True),
        ('{"location": "Bern, Switzerland", "unit": "cel', False),  # it may have become right
        ('{"location": "Be', False),
    ],
)
def test_a2_a_call_that_was_cut_repeats_what_is_whole_in_it(arguments, repeats):
    turn = talk(chunks(Turn("", "", [("get_weather", arguments + "xx")], True))).turns[0]
    assert (turn.turn_class, turn.repeats) == ("unfinished", repeats)


def test_a2_a_repetition_beside_a_call_of_another_tool():
    turn = talk(f"{KELVIN}\ncalls guess {{}}").turns[0]
    assert (turn.turn_class, turn.repeats) == ("invented_tool", True)


def test_a2_words_where_nothing_was_rejected_yet():
    """The prepared call could not be read: there is no value that could come again."""
    [case] = [case for case in bundled() if case.name == "02_web_search_unclosed_json"]
    turn = talk(said("I will call web_search with the language en."), case=case).turns[0]
    assert (turn.turn_class, turn.repeats) == ("prose_call", False)


def test_a2_words_with_both_values_are_no_repetition():
    turn = talk(said("I will call get_weather, the unit is celsius and was kelvin.")).turns[0]
    assert (turn.turn_class, turn.repeats) == ("prose_call", False)


def test_a2_a_drifted_call_again_is_identical():
    assert [turn.turn_class for turn in talk(ELSEWHERE, ELSEWHERE).turns] == ["drifted", "repeat_identical"]


def test_a5_the_level_of_an_error_of_the_tool():
    [case] = [case for case in bundled() if case.name == "10_find_route_refused"]
    turn = talk(f"calls find_route {json.dumps(case.prepared.arguments)}", case=case).turns[0]
    assert (turn.turn_class, turn.valid, turn.level) == ("repeat_identical", True, "recovery")
    wrong = {**case.expected, "mode": "rail"}
    turn = talk(f"calls find_route {json.dumps(wrong)}", case=case).turns[0]
    assert (turn.turn_class, turn.level) == ("new_error", "schema")
    stale = {**(case.prepared.arguments or {}), "origin": "Bern"}
    turn = talk(f"calls find_route {json.dumps(stale)}", case=case).turns[0]
    assert (turn.turn_class, turn.level) == ("repeat_same_field", "recovery")


def test_a6_a_repetition_in_prose_is_told_more_firmly():
    check = talk(PROSE.format("kelvin"), PROSE.format("kelvin"))
    assert "the same call as before" in check.turns[0].feedback
    assert "came 3 times" in check.turns[1].feedback
    assert "the same call" not in talk(PROSE.format("celsius")).turns[0].feedback


@pytest.mark.parametrize("last", [CELSIUS, 'calls get_weather {"broken" 1}', f"{CELSIUS}\ncut"])
def test_a6_a_call_in_place_of_the_answer_is_told_what_is_due(last):
    check = talk(CELSIUS, last)
    [call] = check.turns[-1].calls
    assert check.turns[-1].turn_class == "missing"
    assert call.observation == "Not executed: the result of the corrected call stands above. Answer the user with it."
    assert check.request(model="m")["messages"][-1]["content"] == call.observation


# A8: the answer.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is not 17.5 degrees but 30.", "contradicts"),
        ("It isn't 17.5 degrees.", "ignored"),
        ("It is 17.5 degrees. No wait, it is 30 degrees.", "contradicts"),
        ("It is 30 degrees. No wait, it is 17.5 degrees.", "used"),
        ("It is 17.5 degrees. No wait, that is celsius, as you wished.", "used"),
        ("Es sind 17,5 Grad.", "used"),
        ("Es sind 18,5 Grad.", "contradicts"),
        ("It is 1,017 degrees.", "contradicts"),
        ("1. I looked it up.\n2. It is nice.", "ignored"),
        ("1. I looked it up.\n2. It is 17.5.", "used"),
        ("I looked it up at 10:30, it is warm.", "ignored"),
        ("On 2026-03-14 it is warm.", "ignored"),
        ("Bern (celsius) is warm.", "ignored"),
    ],
)
def test_a8_the_default_predicate(text, expected):
    assert talk(CELSIUS, said(text)).turns[-1].turn_class == expected


def test_a8_only_a_value_that_is_missing_can_be_contradicted():
    """A word that is missing is not contradicted by a number."""
    answer = msgspec.structs.replace(STOCK.answer, contains=("sunny",))
    case = msgspec.structs.replace(STOCK, result={"sky": "sunny"}, answer=answer)
    assert talk(CELSIUS, said("It is 30 degrees."), case=case).turns[-1].turn_class == "ignored"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("01_get_forecast_enum", "The highest is 14 and the lowest is 6.", "used"),
        ("01_get_forecast_enum", "The highest is 6 and the lowest is 14.", "contradicts"),
        ("10_find_route_enum", "It takes 61 minutes, with 2 changes.", "used"),
        ("10_find_route_enum", "61 minutes with 3 changes", "contradicts"),
    ],
)
def test_a8_several_values(name, text, expected):
    [case] = [case for case in bundled() if case.name == name]
    right = f"calls {case.tool} {json.dumps(case.expected)}"
    assert talk(right, said(text), case=case).turns[-1].turn_class == expected


def test_a8_a_call_in_the_reasoning_of_the_answer():
    call = native(turns_of(CELSIUS)[0])
    check = RecoveryCheck(STOCK)
    check.read(call)
    turn = check.read(f"<think>\nI sent {call}\n</think>\n\nIt is 17.5 degrees.")
    assert (turn.turn_class, check.end) == ("used", End.RECOVERED)


@pytest.mark.parametrize(
    ("text", "expected"), [("It is 1", "missing"), ("It is 17.5", "missing"), ("It is 17.5 degrees in B", "used")]
)
def test_a12_an_answer_that_was_cut_is_not_blamed_for_what_it_did_not_say(text, expected):
    check = talk(CELSIUS, said(text, "length"))
    turn = check.turns[-1]
    assert (turn.turn_class, turn.cut) == (expected, True)
    assert turn.level == (None if expected == "used" else "parse")
    rates = {(rate.name, rate.of): (rate.count, rate.n) for rate in measure([check.report()]).rates}
    assert rates["cut", "turns in which an answer was due"] == (1, 1)
    assert rates["cut", "turns in which a call was due, cut ones included"] == (0, 1)


# A9, A10


def test_a9_whether_a_call_may_run_is_another_question():
    """A1: a right call in a code fence is right for a tool that reads and for one that writes."""
    for name in ("04_transfer_money_enum", "01_get_forecast_enum"):
        [case] = [case for case in bundled() if case.name == name]
        call = native(Turn("", "", [(case.tool, json.dumps(case.expected))], False))
        turn = RecoveryCheck(case).read(f"```\n{call}\n```")
        assert (turn.turn_class, turn.read, turn.valid, turn.misread) == ("fixed", True, True, ())
        assert turn.calls[0].doubts


def test_a10_a_call_that_was_never_rejected_makes_no_cycle():
    check = talk(PROSE.format("celsius"), RANKINE, PROSE.format("celsius"))
    assert check.end is End.LIMIT
    assert talk(PROSE.format("kelvin"), RANKINE, PROSE.format("kelvin"), limit=9).end is End.CYCLE
    assert talk(f"{CELSIUS}\ncut", RANKINE, f"{CELSIUS}\ncut", limit=9).end is None


def test_a10_broken_calls_that_come_again_make_a_cycle():
    one, other = 'calls get_weather {"location" 1}', 'calls get_weather {"unit" 1}'
    assert talk(one, other, one, limit=9).end is End.CYCLE


def test_a11_calls_that_are_not_listed_are_counted():
    turn = talk("\n".join([KELVIN] * 20)).turns[0]
    assert (len(turn.calls), turn.more_calls) == (16, 4)


# A12: labels, medians, connections.


def finished(arguments: str, reason: str | None) -> list[dict[str, Any]]:
    made = chunks(Turn("", "", [("get_weather", arguments)], False))
    made[-1]["choices"][0]["finish_reason"] = reason
    return made


@pytest.mark.parametrize(
    ("content", "cut", "mislabelled"),
    [
        (finished('{"location" "Bern"}', "tool_calls"), False, False),  # a call came, and is broken
        (finished(f'{{{PLACE}, "unit": "celsius"}}', "length"), True, False),
        (finished(f'{{{PLACE}, "unit": "celsius"}}', "stop"), False, True),
        (said("Hm.", "tool_calls"), False, True),
        (said("Hm.", "TOOL_CALLS"), False, True),
    ],
)
def test_a12_mislabelled(content, cut, mislabelled):
    turn = talk(content).turns[0]
    assert (turn.cut, turn.mislabelled) == (cut, mislabelled)


@pytest.mark.parametrize(
    ("arguments", "reason", "mislabelled"),
    [
        ('{"location" 1}', "tool_calls", False),
        ("{}", "length", False),
        ("{}", "stop", True),
        (None, "tool_calls", True),
    ],
)
def test_a12_mislabelled_in_the_results_of_a_verifier(arguments, reason, mislabelled):
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}] if arguments else []
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    response = {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}
    found = outcome_of(Row(request={"tools": [{"name": "f", "parameters": {"type": "object"}}]}, response=response))
    assert found is not None
    assert found.mislabelled is mislabelled


def test_a12_the_median_of_turns():
    scripts = [[CELSIUS], [CELSIUS], [KELVIN, KELVIN, CELSIUS]]
    found = measure([talk(*script, limit=9).report() for script in scripts])
    assert (found.turns_to_recovery, found.median_turns) == ({"1": 2, "3": 1}, 1.0)


def test_a12_a_broken_connection_is_no_turn_of_the_model():
    cut = Script(content="It may be", fault=StreamInterruptedError("the connection broke"), fault_after=1)
    with pytest.raises(StreamInterruptedError):
        run_case_sync(STOCK, ScriptedModel([cut]))


# Cases.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"expected": {**STOCK.expected, "unit": "rankine"}}, "its own tool rejects expected"),
        (
            {"prepared": Prepared(arguments={"location": "Basel", "unit": "kelvin"})},
            "is not right in the prepared call",
        ),
        ({"prepared": Prepared(arguments=STOCK.expected)}, "unit is a fix, and is right in the prepared call"),
        ({"fixes": (Fix(()),)}, "has an empty path"),
        ({"pins": ((),)}, "has an empty path"),
    ],
)
def test_cases_that_contradict_themselves(change, message):
    with pytest.raises(UsageError, match=message):
        msgspec.structs.replace(STOCK, **change).__post_init__()


@pytest.mark.parametrize("value", ["tool", "parameter", "invoke", "minimax", "name", "a > b", "two\nlines"])
def test_a12_generated_cases_are_cases(value):
    for name in ("a", "tool", "invoke"):
        tool = {"name": "f", "parameters": {"type": "object", "properties": {name: {"type": "string"}}}}
        for case in generate(tool, arguments={name: value}):
            check = RecoveryCheck(case)
            content = native(Turn("", "", [("f", json.dumps(case.expected))], False))
            assert check.read(content).turn_class == "fixed", case.kind


def test_a12_a_tool_without_fields():
    cases = generate({"name": "f", "parameters": {"type": "object", "properties": {}}}, arguments={})
    assert {case.kind for case in cases} <= {"extra"}


def test_a6_a_call_that_fits_and_is_not_what_was_asked_for():
    turn = talk(f'calls get_weather {{{PLACE}, "unit": "fahrenheit"}}').turns[0]
    assert "allowed: what the user asked for; it fits the tool" in turn.calls[0].observation
