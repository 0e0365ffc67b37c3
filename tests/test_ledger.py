"""The ledger: states, ids, order, and that what it holds can be sent (AGENT.md B2 to B5)."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamparse import (
    ChunkEncoder,
    Ended,
    NativeDecoder,
    PartialToolCall,
    Reasoning,
    Text,
    ToolCall,
    ToolCallFinished,
    UsageError,
    decode,
)
from streamparse.agent.adapters.openai import from_messages, to_messages
from streamparse.agent.compaction import Compactor
from streamparse.agent.healing import heal
from streamparse.agent.ledger import Ledger
from streamparse.agent.preflight import preflight
from streamparse.agent.reasons import MAX_REASON
from streamparse.agent.states import TRANSITIONS, CallState
from streamparse.agent.turns import ToolResult, Turn
from streamparse.decoding.chat import ChatDecoder
from tests.histories import answers, ledgers, settle

TWO = (
    "<minimax:tool_call>\n"
    '<invoke name="read_file">\n<parameter name="path">a.py</parameter>\n</invoke>\n'
    '<invoke name="now">\n</invoke>\n'
    "</minimax:tool_call>"
)


def calls(*ids: str) -> list:
    return [*(ToolCallFinished(index, ToolCall(id_, "f", {})) for index, id_ in enumerate(ids)), Ended("tool_calls")]


def taken(*ids: str) -> tuple[Ledger, Turn]:
    ledger = Ledger()
    turn = ledger.take(calls(*ids))
    assert turn is not None
    return ledger, turn


def finish(ledger: Ledger, id_: str, text: str, state: CallState = CallState.OK) -> None:
    ledger.record(ToolResult.of(ledger.start(id_), state, text))


# Turns from events


def test_an_answer_becomes_a_turn_as_it_streams():
    ledger = Ledger("Be short.")
    ledger.add_user("Read a.py")
    decoder = NativeDecoder(start="reasoning", id_factory=ledger.make_id)
    turns = [ledger.take(decoder.feed(piece)) for piece in ["I look", "\n</think>\n\nLet me see.\n", TWO]]
    assert turns == [None, None, None]
    assert ledger.is_answering
    turn = ledger.take(decoder.close("stop"))
    assert turn is not None
    assert (turn.text, turn.reasoning, turn.finish_reason) == ("Let me see.", "I look\n", "stop")
    assert [(call.name, call.state) for call in turn.calls] == [("read_file", "proposed"), ("now", "proposed")]
    assert ledger.open_calls == list(turn.calls)


def test_b2_content_null_beside_calls_is_normal():
    ledger, _ = taken("c1")
    finish(ledger, "c1", "ok")
    (assistant, _) = to_messages(ledger)
    assert assistant["content"] is None
    assert isinstance(assistant["tool_calls"][0]["function"]["arguments"], str)


def test_b3_ids_are_kept_verbatim_also_where_they_repeat_from_turn_to_turn():
    ledger = Ledger()
    for text in ("r1", "r2"):
        ledger.take(calls("functions.search:0"))
        finish(ledger, "functions.search:0", text)
    messages = to_messages(ledger)
    assert [m["tool_call_id"] for m in messages if m["role"] == "tool"] == ["functions.search:0"] * 2
    assert [m["content"] for m in messages if m["role"] == "tool"] == ["r1", "r2"]


def test_b3_made_ids_are_unique_in_the_conversation():
    ledger = Ledger()
    seen = []
    for _ in range(3):
        turn = ledger.take(decode(TWO, "minimax_m2", id_factory=ledger.make_id))
        assert turn is not None
        seen += [call.id for call in turn.calls]
        ledger.close_open("over")
    assert len(set(seen)) == 6


def test_b3_made_ids_avoid_those_that_are_there():
    ledger = Ledger()
    for _ in range(2):
        ledger.take(calls(ledger.make_id(0), "call_2_0"))
        ledger.close_open("over")
    assert ledger.make_id(0) == "call_2_0_d2"


def test_b3_one_result_per_call():
    ledger, _ = taken("c1")
    finish(ledger, "c1", "ok")
    with pytest.raises(UsageError, match="'c1' is ok and cannot become ok: it has its result"):
        ledger.record(ToolResult(id="c1", state=CallState.OK, text="again"))


def test_b4_results_finish_in_any_order_and_stand_in_call_order():
    ledger, turn = taken("a", "b", "c")
    for call in turn.calls:
        ledger.start(call)
    for id_ in ("c", "a", "b"):
        ledger.record(ToolResult(id=id_, state=CallState.OK, text=f"result {id_}"))
    ledger.add_user("go on")
    messages = to_messages(ledger)
    assert [m.get("content") for m in messages] == [None, "result a", "result b", "result c", "go on"]


def test_b4_what_is_said_meanwhile_stands_behind_the_results():
    ledger, _ = taken("a")
    ledger.add_user("wait")
    finish(ledger, "a", "ok")
    assert [m["role"] for m in to_messages(ledger)] == ["assistant", "tool", "user"]


def test_b5_nothing_is_sent_while_results_are_missing():
    ledger, _ = taken("a", "b")
    finish(ledger, "a", "ok")
    with pytest.raises(UsageError, match="calls wait for their results: 'b'"):
        to_messages(ledger)
    with pytest.raises(UsageError, match="calls wait for their results: 'b'"):
        ledger.take([Text("more")])
    ledger.take([])  # nothing begins


@pytest.mark.parametrize(
    ("verbatim", "sent"),
    [
        ('{"b":1,  "a":2.50}', '{"b":1,  "a":2.50}'),  # as it came: the server's cache knows this prompt
        ('{"a": 1,}', '{"a": 1}'),  # tolerated when it was read, written anew
        (None, '{"a": 1}'),
    ],
)
def test_b5_raw_arguments_are_kept_and_legal_json_is_sent(verbatim, sent):
    ledger = Ledger()
    ledger.take([ToolCallFinished(0, ToolCall("c", "f", {"a": 1}, verbatim)), Ended()])
    (call,) = ledger.calls
    assert call.raw == (verbatim or sent)
    assert call.wire_arguments == sent


def test_b5_numbers_are_exact():
    ledger = Ledger()
    ledger.take([ToolCallFinished(0, ToolCall("c", "f", {"n": 10**30})), Ended()])
    (call,) = ledger.calls
    assert call.wire_object == {"n": 10**30}


def test_b5_a_failed_call_is_part_of_the_history():
    """With {}: nothing that the model has not sent whole is shown as if it had."""
    ledger = Ledger()
    ledger.take(decode(TWO.replace("</parameter>\n</invoke>", "", 1)[:100], finish_reason="stop"))
    (call,) = ledger.calls
    assert isinstance(call.call, PartialToolCall)
    assert call.state is CallState.NOT_EXECUTED
    assert call.wire_arguments == "{}"
    assert "a.py" in call.raw
    assert ledger.open_calls == []
    assert preflight(to_messages(ledger)) == []


def test_b5_the_result_of_a_cut_call_names_the_true_cause():
    decoder = ChatDecoder()
    cut = '{"path":"x", "content": "' + "y" * 5000
    entry = {"index": 0, "id": "c", "function": {"name": "write_file", "arguments": cut}}
    events = (
        decoder.feed({"choices": [{"delta": {"tool_calls": [entry]}, "finish_reason": "length"}]}) + decoder.close()
    )
    ledger = Ledger()
    ledger.take(events)
    (call,) = ledger.calls
    assert call.result is not None
    assert "output limit" in call.result.text
    assert "Nothing was executed" in call.result.text
    assert len(call.result.text) <= MAX_REASON


def test_a_call_without_a_name_or_an_id_gets_both_on_the_wire():
    ledger = Ledger()
    ledger.take(decode(TWO.replace("read_file", "")))
    ledger.close_open("over")
    first, second = to_messages(ledger)[0]["tool_calls"]
    assert (first["function"]["name"], second["function"]["name"]) == ("unnamed", "now")
    assert first["id"]
    assert preflight(to_messages(ledger)) == []


def test_explain_replaces_the_text_for_failed_calls():
    ledger = Ledger(explain=lambda call, error, reason: f"{call.name}: {error.code}, {reason}")
    ledger.take(decode(TWO[:60], finish_reason="length"))
    (call,) = ledger.calls
    assert call.result is not None
    assert call.result.text == "read_file: unclosed_header, length"


def test_an_empty_answer_is_in_the_ledger_and_not_on_the_wire():
    ledger = Ledger()
    ledger.add_user("hi")
    turn = ledger.take([Ended("stop")])
    assert turn is not None
    assert turn.is_empty
    assert [m["role"] for m in to_messages(ledger)] == ["user"]


def test_reasoning_alone_is_said_to_be_no_answer():
    ledger = Ledger()
    ledger.take([Reasoning("hm"), Ended("length", None, False)])
    (message,) = to_messages(ledger)
    assert message["reasoning_content"] == "hm"
    assert message["content"].startswith("[no answer")


# States


PAIRS = [(before, after) for before in CallState for after in CallState]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_only_the_arrows_of_the_table(before, after):
    ledger, turn = taken("c")
    (call,) = turn.calls
    if before is not CallState.PROPOSED:
        if before is CallState.RUNNING or before not in TRANSITIONS[CallState.PROPOSED]:
            ledger.start(call)
        if before.is_end:
            ledger.record(ToolResult.of(call, before, "r"))
    allowed = after in TRANSITIONS.get(before, ())

    def move() -> None:
        ledger.start(call) if after is CallState.RUNNING else ledger.record(ToolResult.of(call, after, "r"))

    if allowed:
        move()
        assert call.state is after
    else:
        with pytest.raises(UsageError):
            move()
        assert call.state is before


def test_unknown_ids_name_the_known():
    ledger, _ = taken("a", "b")
    with pytest.raises(UsageError, match="no call 'x'; its calls: 'a', 'b'"):
        ledger.start("x")


def test_a_call_of_another_turn_has_its_result():
    ledger, first = taken("a")
    finish(ledger, "a", "ok")
    ledger.take(calls("a"))
    with pytest.raises(UsageError, match="none of the last turn"):
        ledger.start(first.calls[0])


def test_the_result_of_another_call():
    ledger, turn = taken("a", "b")
    ledger.start("a")
    with pytest.raises(UsageError, match="result of 'b'"):
        ledger.record(ToolResult(id="b", state=CallState.OK, text=""), turn.calls[0])


def test_repeated_ids_in_a_turn_are_told_apart_by_place():
    ledger, turn = taken("x", "x")
    ledger.start("x")
    ledger.start("x")
    for text in ("A", "B"):
        ledger.record(ToolResult(id="x", state=CallState.OK, text=text))
    assert [call.result.text for call in turn.calls if call.result] == ["A", "B"]
    assert [call.id for call in turn.calls] == ["x", "x"]
    assert [m["tool_call_id"] for m in to_messages(ledger)[1:]] == ["x", "x_d2"]


def test_b21_closing_gives_truthful_results():
    ledger = Ledger()
    names = ["read_file", "write_file", "read_file"]
    events = [ToolCallFinished(i, ToolCall(f"c{i}", name, {})) for i, name in enumerate(names)]
    ledger.take([*events, Ended()])
    ledger.start("c0")
    ledger.start("c1")
    closed = ledger.close_open("cancelled by the user", reads=["read_file"])
    assert [call.state for call in closed] == ["cancelled", "in_doubt", "cancelled"]
    texts = [call.result.text for call in closed if call.result]
    assert "Verify before you repeat it" in texts[1]
    assert "Nothing was executed" in texts[2]
    assert all("cancelled by the user" in text for text in texts)
    assert ledger.close_open("again") == []


def test_misuse_of_messages():
    ledger = Ledger("s")
    ledger.add_user("u")
    with pytest.raises(UsageError, match="belongs to the start"):
        ledger.add_system("late")
    for content in (None, [], ["text"], {"a": 1}):
        with pytest.raises(UsageError, match="neither"):
            ledger.add_user(content)  # type: ignore[arg-type]
    ledger.take([Text("a")])
    with pytest.raises(UsageError, match="an answer is not over"):
        ledger.add_user("u")
    with pytest.raises(UsageError, match="an answer is not over"):
        to_messages(ledger)
    ledger.take([Ended()])
    with pytest.raises(UsageError, match=r"no text; ToolResult\.of"):
        ledger.record(ToolResult(id="c", state=CallState.OK, text={"a": 1}))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no end of a call"):
        ledger.record(ToolResult(id="c", state=CallState.RUNNING, text=""))


def test_results_are_text_or_json_never_repr():
    _, turn = taken("c")
    (call,) = turn.calls
    values = {"a": "a", None: "", True: "true", ("é", 1): '["é", 1]', float("nan"): '"nan"', b"\xff": '"\ufffd"'}
    assert {value: ToolResult.of(call, CallState.OK, value).text for value in values} == values
    assert ToolResult.of(call, CallState.OK, {"ok": True, "set": {1}}).text == '{"ok": true, "set": "<set>"}'


def test_forget_takes_whole_entries_of_this_ledger():
    ledger, turn = taken("a")
    with pytest.raises(UsageError, match="open"):
        ledger.forget([turn])
    finish(ledger, "a", "ok")
    ledger.forget([turn])
    with pytest.raises(UsageError, match="only entries of this ledger"):
        ledger.forget([turn])
    assert to_messages(ledger) == []


# Properties


@given(ledgers())
def test_whatever_happened_it_can_be_sent_b5(ledger):
    messages = to_messages(ledger)
    assert preflight(messages) == []
    assert heal(messages).messages == messages
    json.dumps(messages, ensure_ascii=False, allow_nan=False).encode()


@given(ledgers())
def test_each_call_has_exactly_one_result_b3(ledger):
    messages = to_messages(ledger)
    proposed = sum(len(m.get("tool_calls", ())) for m in messages)
    assert proposed == sum(m["role"] == "tool" for m in messages) == len(list(ledger.calls))
    assert all(call.result is not None and call.result.state is call.state for call in ledger.calls)


@given(answers(), st.integers(0, 9), st.integers(0, 9))
def test_the_order_of_results_never_shows_b4(answer, one, other):
    def sent(seed: int) -> list:
        ledger = Ledger()
        ledger.take(answer)
        waiting = ledger.open_calls
        random.Random(seed).shuffle(waiting)
        for call in waiting:
            place = next(place for place, each in enumerate(ledger.calls) if each is call)
            ledger.record(ToolResult.of(ledger.start(call), CallState.OK, f"of {place}"), call)
        return to_messages(ledger)

    assert sent(one) == sent(other)


@given(answers())
def test_an_answer_is_the_same_however_it_is_taken(answer):
    whole, piecewise = Ledger(), Ledger()
    whole.take(answer)
    for event in answer:
        piecewise.take([event])
    for ledger in (whole, piecewise):
        settle(ledger, random.Random(1))
    assert to_messages(whole) == to_messages(piecewise)


@given(st.integers(0, 2**32), st.lists(answers(), max_size=8))
def test_turns_cancellations_compactions_and_heals_in_any_order_b5(seed, given_answers):
    chance = random.Random(seed)
    ledger = Ledger("s")
    compactor = Compactor(threshold=200, keep=1, summarize=lambda before, messages: f"{before}+{len(messages)}")
    for answer in given_answers:
        ledger.add_user("go on")
        ledger.take(answer)
        settle(ledger, chance)
        if chance.random() < 0.3:
            compactor.compact(ledger)
        if chance.random() < 0.2:
            messages = to_messages(ledger)
            chance.shuffle(messages)
            ledger = from_messages(heal(messages[: chance.randrange(9)]).messages)
            ledger.close_open("imported")
        messages = to_messages(ledger)
        assert preflight(messages) == []
        assert sum(m["role"] == "tool" for m in messages) == len(list(ledger.calls))


def test_encoded_chunks_and_native_text_give_the_same_history():
    """B6: who consumes events need not know the wire."""
    native = decode(TWO, finish_reason="stop")
    encoder, decoder = ChunkEncoder(), ChatDecoder()
    chunks = encoder.feed_all(native)
    ledgers_ = []
    for events in (native, [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()):
        ledger = Ledger()
        ledger.take(events)
        ledger.close_open("over")
        ledgers_.append([(call.name, call.wire_object) for call in ledger.calls])
    assert ledgers_[0] == ledgers_[1]
