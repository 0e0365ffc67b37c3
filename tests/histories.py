"""Random conversations, for the properties of the ledger and of whatever reads or shortens it."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from streamparse import (
    Ended,
    ErrorCode,
    ErrorDetail,
    Event,
    PartialToolCall,
    Reasoning,
    Text,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
)
from streamparse.agent.ledger import Ledger
from streamparse.agent.states import TRANSITIONS, CallState
from streamparse.agent.turns import ToolResult

TEXTS = ["", "hello", "line 1\nline 2", "日本語のテキスト", "\ud800 half", "<response>", "x" * 900]
CODE = "\n".join(f"{number}: def f{number}():\n    # a remark\n    return {number}" for number in range(60))
IDS = ["", "a", "b", "search:0", "\udc00"]
NAMES = ["read_file", "multiply\n", "", "a b"]
VERBATIM = [
    None,
    "{}",
    '{"a": 1}',
    '{"a":  1.50}',
    '{"a": 1,}',
    '{"a": 1',
    "[1]",
    '{"a": "\\ud800"}',
    '{"a": 1, "a": 2}',
]
ERROR = ErrorDetail(ErrorCode.UNTERMINATED_JSON, "end of text", 3)

ENDS = [state for state in CallState if state.is_end]


@st.composite
def answers(draw) -> list[Event]:
    """The events of one answer."""
    events: list[Event] = [Text(text) for text in draw(st.lists(st.sampled_from(TEXTS), max_size=2))]
    events += [Reasoning(text) for text in draw(st.lists(st.sampled_from(TEXTS), max_size=2))]
    for index in range(draw(st.integers(0, 3))):
        id_, name = draw(st.sampled_from(IDS)), draw(st.sampled_from(NAMES))
        events.append(ToolCallStarted(index, id_, name))
        kind = draw(st.sampled_from(["finished", "finished", "failed", "left"]))
        if kind == "finished":
            call = ToolCall(id_, name, {"a": draw(st.sampled_from(TEXTS))}, draw(st.sampled_from(VERBATIM)))
            events.append(ToolCallFinished(index, call))
        elif kind == "failed":
            events.append(ToolCallFailed(index, PartialToolCall(id_, name, {"a": "h"}, '{"a": "h'), ERROR))
    return [*events, Ended(draw(st.sampled_from(["stop", "tool_calls", "length", None])))]


def settle(ledger: Ledger, chance: random.Random) -> None:
    """Results for the open calls, in any order and in any state; or the run is closed in the middle of it."""
    calls = ledger.open_calls
    chance.shuffle(calls)
    for call in calls:
        state = chance.choice(ENDS)
        if state not in TRANSITIONS[CallState.PROPOSED] or chance.random() < 0.3:
            ledger.start(call)
            if state not in TRANSITIONS[CallState.RUNNING]:
                state = CallState.IN_DOUBT
        if chance.random() < 0.2:
            ledger.close_open("cancelled", reads=["read_file"])
            return
        value = chance.choice([*TEXTS, CODE, {"ok": True}, None, ["\ud800"]])
        names = chance.sample(["a.py", "src", "src/b.py", "*"], 1)
        ledger.record(
            ToolResult.of(call, state, value, reads=names, wrote=names if chance.random() < 0.3 else ()), call
        )


@st.composite
def ledgers(draw) -> Ledger:
    """A ledger without open calls."""
    ledger = Ledger(draw(st.sampled_from([None, "", "You write code."])))
    chance = random.Random(draw(st.integers(0, 2**32)))
    for _ in range(draw(st.integers(0, 6))):
        if draw(st.booleans()):
            ledger.add_user(draw(st.sampled_from([*TEXTS, [{"type": "text", "text": "part"}]])))
        else:
            ledger.take(draw(answers()))
            if draw(st.booleans()):
                ledger.add_user("wait")
            settle(ledger, chance)
    return ledger
