"""The cases of ``../shared/cases/loop.jsonl`` that are about what a loop does."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

from streamparse.agent.events import EndState, ToolFinished
from streamparse.agent.results import bounded
from streamparse.events import PartialToolCall, ToolCall
from streamparse.tools.observation import fingerprint
from tests.agents import calls, loop_of, only, played, results, says, tool
from tests.conftest import shared

CASES = {
    case["id"]: case
    for case in map(json.loads, (shared() / "cases" / "loop.jsonl").read_text(encoding="utf-8").splitlines())
}


def test_b264_a_timeout_after_a_write_was_sent_is_not_retried():
    """Nobody knows what became of it."""
    expected = CASES["B264"]["expected"]
    done: list[str] = []

    def charge(card):
        done.append(card)
        raise httpx.ReadTimeout("no answer")

    turn = calls(("charge_card", {"card": "1"}))
    charge_card = tool("charge_card", charge, "external", card=None)
    loop = loop_of([turn, turn, says("I do not know whether it was charged.")], [charge_card])
    played(loop)
    assert len(done) == 1 + expected["retries"]
    (first, text), (second, advice) = results(loop)
    assert (first, second) == ("in_doubt", "not_executed")
    assert expected["result"] == "outcome unknown; verify before repeating"
    assert "The outcome is unknown: it may have taken effect. Verify before you repeat it." in text
    assert "Verify that first" in advice


def test_b266_the_same_invalid_call_again_and_again():
    expected = CASES["B266"]["expected"]
    assert "never parsed" in expected["counts_also"]
    edit = tool("edit", lambda old: "done", "write", old=None)
    for arguments in ({"old": 1}, '{"old": "a', {}):
        loop = loop_of([calls(("edit", arguments))] * 5, [edit])
        ended, _ = played(loop)
        assert (ended.state, ended.turns) == (EndState.LIMIT, expected["after"])
        assert "This was the last attempt" in results(loop)[-1][1]  # it was told more firmly before it was stopped


def test_b267_the_same_call_in_any_order():
    assert CASES["B267"]["expected"] == {"same_call": True}
    given = [step.removesuffix(")").split("(") for step in CASES["B267"]["input"]["steps"]]
    marks = {fingerprint(ToolCall("", name, json.loads(text.replace("'", '"')))) for name, text in given}
    assert len(marks) == 1


@pytest.mark.parametrize("volatile", ["took {} s", "12:00:0{}", "2026-01-0{}", "<f at 0x7f00aa0{}>"])
def test_b267_nor_do_the_order_of_a_batch_and_volatile_output_matter(volatile):
    number = iter(range(1, 10))
    f = tool("f", lambda a, b: volatile.format(next(number)), a={"type": "integer"}, b={"type": "integer"})
    one, other = ("f", '{"a": 1, "b": 2}'), ("f", '{"b": 4, "a": 3}')
    ended, _ = played(loop_of([calls(one, other), calls(other, one), calls(one, other)], [f]))
    assert (ended.state, ended.turns) == (EndState.LIMIT, 3)


def test_b268_two_equal_calls_in_one_turn():
    case = CASES["B268"]
    (message,) = case["input"]["messages"]
    given = [(call["function"]["name"], call["function"]["arguments"]) for call in message["tool_calls"]]
    ids = [call["id"] for call in message["tool_calls"]]
    done: list[Any] = []

    def write(f, t):
        done.append((f, t))
        return "appended"

    append = tool("append", write, "write", f=None, t=None)
    loop = loop_of([calls(*given, ids=ids), says("Done.")], [append])
    _, events = played(loop)
    assert len(done) == len(case["expected"]["execute"])
    assert [event.repeats for event in only(events, ToolFinished)] == [None, "a"]
    assert "Not executed again: the call 'a' did the same" in results(loop)[1][1]


def test_b268_reads_are_not_kept_from_running_twice():
    """It is a matter of the tool: whoever rolls dice twice wants two numbers."""
    number = iter([3, 5])
    dice = tool("dice", lambda: str(next(number)))
    loop = loop_of([calls(("dice", {}), ("dice", {})), says("3 and 5.")], [dice])
    played(loop)
    assert [text for _, text in results(loop)] == ["3", "5"]


def test_b269_no_character_is_cut_in_half():
    expected = CASES["B269"]["expected"]
    output = "a" * 9 + "🦊" + "b" * 100
    call = ToolCall("c", "f", {})
    for size in range(1, 60):
        kept = bounded(call, output, size, None)
        assert kept.encode("utf-8").decode("utf-8") == kept
        left_out = re.search(r"\[… (\d+) of 110 characters left out …\]", kept)
        assert left_out
        assert len(kept) - len(left_out[0]) - 2 == 110 - int(left_out[1])
    assert bounded(call, output, 12, None).startswith(f"{expected['kept']}\n")
    loop = loop_of([calls(("f", {})), says("ok")], [tool("f", lambda: output)], max_text=12)
    played(loop)
    assert results(loop)[0][1].startswith(expected["kept"])


def test_a_call_that_could_not_be_read_is_known_by_its_text():
    assert fingerprint(PartialToolCall("1", "f", {}, '{"a')) == fingerprint(PartialToolCall("2", "f", {}, '{"a'))
