"""A history made shorter is still one that a server takes, and says what it lacks (AGENT.md B18)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamparse import Ended, Reasoning, Text, ToolCall, ToolCallFinished, UsageError
from streamparse.agent.adapters.anthropic import to_anthropic
from streamparse.agent.adapters.openai import ChatStyle, to_messages
from streamparse.agent.compaction import SKELETON, Compactor
from streamparse.agent.healing import heal
from streamparse.agent.ledger import Ledger
from streamparse.agent.preflight import preflight
from streamparse.agent.recall import ResultCache
from streamparse.agent.skeleton import LINE, rank_of, skeleton
from streamparse.agent.states import CallState
from streamparse.agent.tokens import count_messages
from streamparse.agent.turns import Proposal, ToolResult
from tests import clocks
from tests.histories import ledgers

FILE = '''\
"""A module."""

import os

LIMIT = 3


class Reader:
    """Reads."""

    def read(self, path):
        # a remark about nothing
        with open(path) as file:
            for line in file:
                if line.strip():
                    yield line.strip().lower().replace("a", "b").replace("c", "d")


def main():
    pass
'''


def conversation(rounds: int, *, text: str = FILE * 5, ids: str = "c{}") -> Ledger:
    """One question and so many rounds, each of which reads a file of its own."""
    ledger = Ledger("system")
    ledger.add_user("the task")
    for number in range(rounds):
        call = ToolCall(ids.format(number), "read_file", {"path": f"f{number}.py"})
        ledger.take([Text(f"step {number}"), ToolCallFinished(0, call), Ended("tool_calls")])
        run(ledger, text, reads=[f"f{number}.py"])
    return ledger


def run(ledger: Ledger, text: str, *, reads: list[str] = [], wrote: list[str] = []) -> Proposal:  # noqa: B006
    (call,) = ledger.open_calls
    return ledger.record(ToolResult.of(ledger.start(call), CallState.OK, text, reads=reads, wrote=wrote))


def results(ledger: Ledger) -> list[str]:
    return [message["content"] for message in to_messages(ledger) if message["role"] == "tool"]


# Tokens


def test_b18_the_counter_is_replaceable():
    ledger = conversation(1)
    assert Compactor(counter=len).tokens(ledger) > 3 * Compactor().tokens(ledger)


def test_b18_cjk_counts_apart():
    latin, wide = ({"role": "user", "content": text * 100} for text in ("word", "漢字仮名"))
    assert count_messages([wide]) > 2 * count_messages([latin])


def test_b18_reasoning_names_and_arguments_count():
    message = {"role": "assistant", "content": "x" * 40, "reasoning_content": "y" * 40}
    function = {"name": "f" * 40, "arguments": json.dumps({"a": "z" * 31})}
    call = {"id": "a", "type": "function", "function": function}
    assert count_messages([message]) == 24
    assert count_messages([{**message, "tool_calls": [call]}]) == 24 + 4 + 10 + 10


# Skeletons


def test_b18_functions_classes_and_variables_first_comments_and_blanks_last():
    short = skeleton(FILE, 150)
    for line in ("8: class Reader:", "11: def read(self, path):", "19: def main():", "5: LIMIT = 3"):
        assert line in short.split("\n"), short
    assert "remark" not in short
    assert "…" in short


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("ValueError: no such key", "def f():"),
        ("E   assert 1 == 2", "def f():"),
        ("FAILED tests/test_a.py::test_b", "class A:"),
        ("error[E0382]: borrow of moved value", "fn main() {"),
        ("diff --git a/a.py b/a.py", "def f():"),
        ("src/main.rs:12: pub fn f() {", "x = 3"),
        ("export async function go(a, b) {", "const a = 3"),
        ("func (s *Server) Run() error {", "s.count++"),
        ("pub(crate) fn f() -> u8 {", "f();"),
        ("public static void main(String[] args) {", "go();"),
        ("int main(int argc, char **argv) {", "go();"),
        ("LIMIT = 3", "go()"),
        ("go()", "# a remark"),
        ("go()", "// a remark"),
    ],
)
def test_b18_ranks(better, worse):
    assert rank_of(better) < rank_of(worse)


def test_b18_line_numbers_are_those_of_the_file():
    """A page of a file has its numbers in front; they stay."""
    page = "\n".join(f"{number:>5}: {line}" for number, line in enumerate(FILE.split("\n"), 300))
    assert "307: class Reader:" in skeleton(page, 200).split("\n")


def test_b18_times_are_no_line_numbers():
    log = "\n".join(f"12:30:{second} something happened" for second in range(10, 20))
    assert skeleton(log, 1000).split("\n")[4] == "5: 12:30:14 something happened"


def test_long_lines_are_clipped():
    assert len(skeleton("x" * 5000, 1000)) <= LINE + 10


@given(st.text(alphabet=st.sampled_from("a #\n:1def \r\u2028"), max_size=400), st.integers(0, 300))
def test_a_skeleton_keeps_to_its_room(text, room):
    short = skeleton(text, room)
    assert len(short) <= max(room, 1)
    numbers = [int(line.split(":")[0]) for line in short.split("\n") if line not in ("…", "")]
    assert all(len(line) == 1 or line.strip() for line in short.split("\n")) or short == ""
    assert len(numbers) <= len(text.splitlines())


# Layers


def test_b18_nothing_happens_below_the_threshold():
    ledger = conversation(4)
    before = to_messages(ledger)
    done = Compactor(threshold=100_000).compact(ledger)
    assert (done.before, done.shortened, done.fits) == (done.after, (), True)
    assert to_messages(ledger) == before


def test_b18_old_results_become_skeletons_the_oldest_first():
    ledger = conversation(6)
    before = Compactor().tokens(ledger)
    compactor = Compactor(threshold=before - 1, target=before - 300, keep=2)  # one skeleton saves about 200
    done = compactor.compact(ledger)
    assert done.shortened == ("c0", "c1")
    texts = results(ledger)
    assert all(len(text) < SKELETON + 200 and "8: class Reader:" in text for text in texts[:2])
    assert texts[2:] == [FILE * 5] * 4
    assert "recall('c0')" in texts[0]
    assert done.after == compactor.tokens(ledger) <= compactor.target
    assert preflight(to_messages(ledger)) == []


def test_b18_the_last_turns_stay():
    ledger = conversation(4)
    done = Compactor(threshold=10, keep=3).compact(ledger)
    assert done.shortened == ("c0",)
    assert not done.fits
    assert Compactor(threshold=10, keep=9).compact(conversation(4)).shortened == ()


def test_b18_compacting_again_changes_nothing():
    ledger = conversation(4)
    compactor = Compactor(threshold=10, keep=1)
    compactor.compact(ledger)
    before = to_messages(ledger)
    assert compactor.compact(ledger).shortened == ()
    assert to_messages(ledger) == before


def test_b18_recall_gives_the_full_result():
    ledger = conversation(4)
    compactor = Compactor(threshold=10, keep=1)
    compactor.compact(ledger)
    recalled = compactor.recall("c1", ledger)
    assert recalled is not None
    assert (recalled.text, recalled.is_stale) == (FILE * 5, False)
    assert compactor.recall("c3", ledger) is None  # it still stands there
    assert compactor.recall("nothing", ledger) is None


def test_b18_a_recalled_result_is_stale_when_a_later_write_touched_its_resource():
    ledger = conversation(4)
    compactor = Compactor(threshold=10, keep=1)
    compactor.compact(ledger)
    for number, wrote in enumerate(["f0.py", "f1.py/part"]):
        ledger.take([ToolCallFinished(0, ToolCall(f"w{number}", "write_file", {})), Ended()])
        run(ledger, "ok", wrote=[wrote])
    stale = {handle: found.stale_by for handle in ("c0", "c1", "c2") if (found := compactor.recall(handle, ledger))}
    assert stale == {"c0": ("f0.py",), "c1": ("f1.py/part",), "c2": ()}
    shown = compactor.recall("c0", ledger)
    assert shown is not None
    assert shown.shown.startswith("[stale: f0.py was written since")
    ledger.take([ToolCallFinished(0, ToolCall("run", "run_command", {})), Ended()])
    run(ledger, "ok", wrote=["*"])
    last = compactor.recall("c2", ledger)
    assert last is not None
    assert last.stale_by == ("*",)


def test_b18_a_write_that_came_before_makes_nothing_stale():
    """Results finish in any order: what counts is which came first, and not which was called first."""
    ledger = Ledger()
    calls = [ToolCallFinished(0, ToolCall("r", "read_file", {})), ToolCallFinished(1, ToolCall("w", "write_file", {}))]
    ledger.take([*calls, Ended()])
    read, write = ledger.open_calls
    ledger.record(ToolResult.of(ledger.start(write), CallState.OK, "ok", wrote=["a"]))
    ledger.record(ToolResult.of(ledger.start(read), CallState.OK, FILE, reads=["a"]))
    assert ledger.writes_after(read) == []


def test_b18_ids_that_repeat_have_handles_of_their_own():
    ledger = conversation(4, ids="K")
    compactor = Compactor(threshold=10, keep=1)
    assert compactor.compact(ledger).shortened == ("K", "K#2", "K#3")


def test_b18_the_cache_is_bounded():
    ledger = conversation(3)
    cache = ResultCache(limit=25)
    calls = list(ledger.calls)
    assert [cache.put(call, "x" * 10) for call in calls] == ["c0", "c1", "c2"]
    assert [cache.recall(f"c{number}", ledger) is None for number in range(3)] == [True, False, False]


def test_b18_the_rolling_summary_takes_the_place_of_old_turns():
    ledger = conversation(8, text="short result")
    seen = []

    def summarize(before: str, messages: list) -> str:
        seen.append((before, messages))
        return f"{before}[{len(messages)} messages]"

    compactor = Compactor(threshold=120, target=100, keep=2, summarize=summarize)
    done = compactor.compact(ledger)
    messages = to_messages(ledger)
    assert done.dropped > 0
    assert messages[:3] == [
        {"role": "system", "content": "system"},
        {"role": "system", "content": f"[{2 * done.dropped} messages]"},
        {"role": "user", "content": "the task"},
    ]
    assert preflight(messages) == preflight(seen[0][1]) == []
    for number in range(8):
        ledger.take([ToolCallFinished(0, ToolCall(f"d{number}", "f", {})), Ended()])
        run(ledger, "more")
    compactor.compact(ledger)
    assert seen[1][0] == f"[{2 * done.dropped} messages]"


def test_b18_what_the_user_asked_last_always_stays():
    ledger = conversation(3)
    ledger.add_user("and now this")
    for keep in (0, 1):
        Compactor(threshold=0, keep=keep, summarize=lambda before, messages: "summary").compact(ledger)
        assert to_messages(ledger)[-1]["content"] == "and now this"
        assert to_anthropic(ledger)["messages"][0]["role"] == "user"


def test_b18_what_is_left_begins_with_what_the_user_asked_before_it():
    ledger = conversation(3)
    ledger.add_user("and now this")
    Compactor(threshold=0, keep=1, summarize=lambda before, messages: "sum").compact(ledger)
    contents = [m["content"] for m in to_messages(ledger) if m["role"] != "tool"]
    assert contents == ["system", "sum", "the task", "step 2", "and now this"]


def test_misuse():
    with pytest.raises(UsageError, match="target=9 must be between 0 and the threshold, which is 5"):
        Compactor(threshold=5, target=9)
    with pytest.raises(UsageError, match="keep=-1"):
        Compactor(keep=-1)
    with pytest.raises(UsageError, match="must return text, and returned NoneType"):
        Compactor(threshold=0, keep=0, summarize=lambda before, messages: None).compact(  # type: ignore[arg-type,return-value]
            conversation(2)
        )


# Properties


@given(ledgers(), st.integers(0, 400), st.integers(0, 4), st.booleans())
def test_after_any_compaction_the_history_can_be_sent_b18(ledger, threshold, keep, summarized):
    before = {(call.id, call.wire_arguments) for call in ledger.calls}
    compactor = Compactor(threshold=threshold, keep=keep, summarize=(lambda old, new: "sum") if summarized else None)
    done = compactor.compact(ledger)
    messages = to_messages(ledger)
    assert preflight(messages) == []
    assert heal(messages).messages == messages
    assert {(call.id, call.wire_arguments) for call in ledger.calls} <= before
    assert sum(m["role"] == "tool" for m in messages) == len(list(ledger.calls))
    assert done.after == compactor.tokens(ledger)
    assert done.fits is (done.after <= threshold)


@given(ledgers(), st.integers(0, 4))
def test_nothing_is_lost_by_skeletons_b18(ledger, keep):
    """Each result still stands in the history, or can be recalled whole."""
    full = [call.result.text for call in ledger.calls if call.result]
    compactor = Compactor(threshold=0, keep=keep)
    handles = iter(compactor.compact(ledger).shortened)
    for call, text in zip(ledger.calls, full, strict=True):
        assert call.result is not None
        if call.result.text != text:
            recalled = compactor.recall(next(handles), ledger)
            assert recalled is not None
            assert recalled.text == text
            assert len(call.result.text) < len(text)
    assert next(handles, None) is None


def test_b18_a_history_without_a_user_can_be_dropped_whole():
    ledger = Ledger()
    for number in range(3):
        ledger.take([Text(f"step {number}"), Ended()])
    done = Compactor(threshold=0, keep=1, summarize=lambda before, messages: "sum").compact(ledger)
    assert (done.dropped, [turn.text for turn in ledger.turns]) == (2, ["step 2"])


def test_b18_an_async_summarize_needs_acompact():
    async def summarize(before, messages):
        return "went"

    def long_ledger():
        ledger = Ledger()
        for number in range(4):
            ledger.add_user(f"{number} " + "word " * 400)
            ledger.take([Text("yes"), Ended("stop")])
        return ledger

    compactor = Compactor(threshold=100, keep=1, summarize=summarize)
    with pytest.raises(UsageError, match="acompact"):
        compactor.compact(long_ledger())
    ledger = long_ledger()
    done = clocks.run(lambda: compactor.acompact(ledger))
    assert (done.dropped > 0, ledger.summary) == (True, "went")


def test_b18_the_style_counts():
    ledger = Ledger()
    ledger.add_user("go")
    ledger.take([Reasoning("hm " * 500), Text("yes"), Ended("stop")])
    compactor = Compactor()
    assert compactor.tokens(ledger, ChatStyle(reasoning=None)) < compactor.tokens(ledger) - 100
