"""The faults that people reported of other agents' loops: the cases of ``../shared/cases/loop.jsonl`` that are about
histories, ids, results and messages. Those about what a loop does are in ``test_loop_cases``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from streamparse import Ended, ToolCall, ToolCallFinished
from streamparse.agent.adapters.native import to_prompt
from streamparse.agent.adapters.openai import ChatStyle, from_messages, to_messages
from streamparse.agent.healing import heal
from streamparse.agent.ledger import Ledger
from streamparse.agent.preflight import preflight
from streamparse.agent.reasons import why_not_executed
from streamparse.decoding.chat import ChatDecoder
from streamparse.events import ToolCallFailed
from tests.conftest import shared

CODES = {
    "result_not_adjacent": "separated_result",
    "duplicate_id_in_turn": "repeated_id",
    "empty_id": "missing_id",
    "valid_if_positional": "valid",
}

ELSEWHERE = frozenset({"B264", "B266", "B267", "B268", "B269"})
"""What a loop does: ``test_loop_cases``."""

MESSAGES = [{"role": "user", "content": "go"}]


def load() -> list[Any]:
    lines = (shared() / "cases" / "loop.jsonl").read_text("utf-8").splitlines()
    return [pytest.param(case, id=case["id"]) for case in map(json.loads, lines) if case["id"] not in ELSEWHERE]


CASES = load()


def healed(case: dict[str, Any]) -> list[dict[str, Any]]:
    """The case's history as it is sent: mended, read into a ledger, and written."""
    mended = heal(case["input"]["messages"]).messages
    sent = to_messages(from_messages(mended))
    assert preflight(sent) == []
    return sent


def arguments(messages: list[dict[str, Any]]) -> list[str]:
    return [call["function"]["arguments"] for message in messages for call in message.get("tool_calls") or ()]


def pairs(messages: list[dict[str, Any]]) -> list[list[str]]:
    return [[message["tool_call_id"], message["content"]] for message in messages if message["role"] == "tool"]


def check_check(case: dict[str, Any], wanted: str) -> None:
    """The problem that preflight must name, or that there is none."""
    word, _, id_ = wanted.partition(":")
    code = CODES.get(word, word)
    found = [(problem.code.value, problem.id) for problem in preflight(case["input"]["messages"])]
    if code == "valid":
        assert found == []
        assert heal(case["input"]["messages"]).messages == case["input"]["messages"]
    else:
        assert code in [each for each, _ in found]
        assert not id_ or (code, id_) in found
        healed(case)


def check_pairing(case: dict[str, Any], wanted: list[list[str]]) -> None:
    assert pairs(healed(case)) == wanted


def check_results_kept(case: dict[str, Any], wanted: int) -> None:
    assert len(pairs(healed(case))) == wanted


def check_outgoing(case: dict[str, Any], wanted: dict[str, str]) -> None:
    """B256: which content stands beside calls is the provider's matter."""
    assert wanted == {"bedrock": "content null"}
    (message, _) = to_messages(from_messages(case["input"]["messages"]), ChatStyle(content_beside_calls=None))
    assert message["content"] is None


def check_outgoing_arguments(case: dict[str, Any], wanted: str) -> None:
    assert wanted == "valid JSON object text"
    sent = healed(case)
    assert [json.loads(text) for text in arguments(sent)] == [{}]
    broken = case["input"]["messages"][0]["tool_calls"][0]["function"]["arguments"]
    assert broken in pairs(sent)[0][1]


def check_kept_reasoning(case: dict[str, Any], wanted: str) -> None:
    assert wanted == "reasoning of the turns after the last user message"
    (given,) = (message["reasoning_content"] for message in case["input"]["messages"] if "reasoning_content" in message)
    ledger = from_messages(case["input"]["messages"])
    assert to_messages(ledger, ChatStyle(all_reasoning=False))[0]["reasoning_content"] == given
    assert f"<think>\n{given}\n</think>" in to_prompt(ledger)


def check_outgoing_name(case: dict[str, Any], wanted: str) -> None:
    (call,) = healed(case)[0]["tool_calls"]
    assert call["function"]["name"] == wanted


def check_outgoing_content(case: dict[str, Any], wanted: str) -> None:
    assert [content for _, content in pairs(healed(case))] == [wanted]


def observation_of(case: dict[str, Any]) -> str:
    """B271: what the model is told of its call."""
    (step,) = case["input"]["steps"]
    reason = step.split()[1].rstrip(",")
    text = step.split("arguments '")[1].rstrip("'")
    decoder = ChatDecoder()
    call = {"index": 0, "id": "c", "function": {"name": "write_file", "arguments": text}}
    events = decoder.feed({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": reason}]}) + decoder.close()
    (failed,) = (event for event in events if isinstance(event, ToolCallFailed))
    return why_not_executed(failed.call, failed.error, reason)


def check_observation(case: dict[str, Any], wanted: list[str]) -> None:
    assert [word for word in wanted if word not in observation_of(case)] == []


def check_not_observed(case: dict[str, Any], wanted: str) -> None:
    assert wanted not in observation_of(case)


def check_length(case: dict[str, Any], wanted: int) -> None:
    assert len(observation_of(case)) <= wanted


# What the cases say in prose, and what it comes to here.


def fix_orphan(case: dict[str, Any]) -> None:
    sent = healed(case)
    assert [message["role"] for message in sent] == ["user", "user", "user"]
    assert "ok" in sent[1]["content"]


def fix_order(case: dict[str, Any]) -> None:
    assert [message["role"] for message in healed(case)] == ["assistant", "tool", "user"]


def fix_repeated(case: dict[str, Any]) -> None:
    assert pairs(healed(case)) == [["x", "A"], ["x_d2", "B"]]
    assert healed(case) == healed(case)


def fix_empty(case: dict[str, Any]) -> None:
    (first, a), (second, b) = pairs(healed(case))
    assert (a, b) == ("A", "B")
    assert "" not in (first, second)
    assert first != second


def fix_broken(case: dict[str, Any]) -> None:
    assert arguments(healed(case)) == ["{}"]


FIXES: dict[str, Callable[[dict[str, Any]], None]] = {
    "drop it or turn it into a text note; never send as role tool": fix_orphan,
    "move the user message after the result": fix_order,
    "rename later occurrences deterministically (x, x_d2) in call and result, in order": fix_repeated,
    "generate distinct ids at decode time and reuse them for results": fix_empty,
    "replay '{}' or drop call+result as a pair, keep the raw text in the error observation": fix_broken,
}


def check_fix(case: dict[str, Any], wanted: str) -> None:
    FIXES[wanted](case)


def check_never(case: dict[str, Any], wanted: str) -> None:
    assert wanted == "send the raw broken string"
    broken = case["input"]["messages"][0]["tool_calls"][0]["function"]["arguments"]
    assert broken not in arguments(healed(case))


def rule_cut(case: dict[str, Any]) -> None:
    """A ledger has no other place for a cut: a turn goes with its results (see test_compaction)."""
    assert pairs(healed(case)) == []


def rule_pairing(case: dict[str, Any]) -> None:
    assert pairs(healed(case)) == pairs(case["input"]["messages"])


def rule_made_ids(case: dict[str, Any]) -> None:
    """Ids that this library makes are unique over the conversation, also over one that was imported."""
    ledger = from_messages(case["input"]["messages"])
    assert ledger.make_id(0) not in [call.id for call in ledger.calls]
    again = Ledger()
    made = []
    for _ in range(3):
        again.take([ToolCallFinished(0, ToolCall(again.make_id(0), "f", {})), Ended()])
        again.close_open("over")
        made = [call.id for call in again.calls]
    assert len(set(made)) == 3


def rule_opposite(case: dict[str, Any]) -> None:
    ledger = from_messages(case["input"]["messages"])
    contents = [to_messages(ledger, ChatStyle(content_beside_calls=each))[0]["content"] for each in (None, "")]
    assert contents == [None, ""]


def rule_mapping(case: dict[str, Any]) -> None:
    """Text for servers, a mapping for the template: converted where it is written."""
    ledger = from_messages(case["input"]["messages"])
    assert arguments(to_messages(ledger)) == ['{"command":"ls"}']
    assert '<parameter name="command">ls</parameter>' in to_prompt(ledger)


RULES: dict[str, Callable[[dict[str, Any]], None]] = {
    "a cut may only fall before an assistant message with calls or after its last result": rule_cut,
    "pair by position (outstanding calls), never by a global id set": rule_pairing,
    "generated ids must be unique across the conversation, not per run": rule_made_ids,
    "opposite of the previous case": rule_opposite,
    "M2 template needs a mapping (it iterates items), other templates need text; convert at render time only": (
        rule_mapping
    ),
}


def check_rule(case: dict[str, Any], wanted: str) -> None:
    RULES[wanted](case)


CHECKS: dict[str, Callable[[dict[str, Any], Any], None]] = {
    "check": check_check,
    "fix": check_fix,
    "rule": check_rule,
    "never": check_never,
    "pairing": check_pairing,
    "results_kept": check_results_kept,
    "outgoing": check_outgoing,
    "outgoing_arguments_must_be": check_outgoing_arguments,
    "outgoing_must_keep": check_kept_reasoning,
    "outgoing_name": check_outgoing_name,
    "outgoing_content": check_outgoing_content,
    "observation_contains": check_observation,
    "observation_must_not": check_not_observed,
    "max_chars": check_length,
}


@pytest.mark.parametrize("case", CASES)
def test_case(case):
    for key, wanted in case["expected"].items():
        CHECKS[key](case, wanted)


def test_cases_that_are_elsewhere_exist():
    ids = [json.loads(line)["id"] for line in (shared() / "cases" / "loop.jsonl").read_text("utf-8").splitlines()]
    assert set(ids) >= ELSEWHERE
    assert len(CASES) + len(ELSEWHERE) == len(ids)
