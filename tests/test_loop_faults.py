"""What else can go wrong around a loop: connections, the provider's own tools, hooks, logs, and answers that only
mention a call. Each was wrong once."""

from __future__ import annotations

import json
import threading
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest

from streamparse.agent.budgets import Budget
from streamparse.agent.compaction import Compactor
from streamparse.agent.debuglog import DebugLog
from streamparse.agent.events import CallJudged, EndState, HistoryCompacted, LoopEnded, ToolFinished
from streamparse.agent.models import HttpModel, Script
from streamparse.errors import StreamInterruptedError, UsageError
from streamparse.transport.wires import Wire
from tests.agents import calls, check_history, loop_of, native, only, played, results, says, tool
from tests.clocks import BACKENDS, FakeClock, run

LOOK = tool("look", lambda name: f"saw {name}", name=None)
LINE = tool("line", lambda path, number: f"{path}:{number}", path=None, number={"type": "integer"})
WRONG = {"path": "a", "number": "x"}


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


# The connection (B12: its failures are not the model's)


def broken(after: int = 5) -> Script:
    return Script(
        content=native(("look", {"name": "a"}), text="Let me see. "),
        size=5,
        fault=StreamInterruptedError("connection reset"),
        fault_after=after,
    )


def test_b12_a_broken_connection_is_not_the_models_fault():
    loop = loop_of([broken(), broken(), broken(), says("Done.")], [LOOK])
    ended, events = played(loop)
    assert ended.state is EndState.ANSWERED
    assert [event.attempt for event in only(events, CallJudged)] == [0, 0, 0]
    for state, text in results(loop):
        assert state == "not_executed"
        assert "Send it again, whole" in text
        assert "attempt" not in text
        assert "same call" not in text


def test_b21_a_connection_that_always_breaks_ends_the_run():
    ended, _ = played(loop_of([broken()] * 5, [LOOK]))
    assert (ended.state, ended.reason, ended.turns) == (EndState.ERROR, "connection reset", 4)


# Attempts are answers: the model has seen the error of none of the calls that it writes together


def test_a6_wrong_calls_of_one_answer_are_one_attempt():
    loop = loop_of([calls(*[("line", {**WRONG, "path": f"f{number}"}) for number in range(6)]), says("Done.")], [LINE])
    ended, events = played(loop)
    assert ended.state is EndState.ANSWERED
    assert {event.attempt for event in only(events, CallJudged)} == {1}
    assert all("attempt 1 of 3" in text for _, text in results(loop))


def test_a6_the_same_wrong_call_twice_in_one_answer_is_no_repetition():
    loop = loop_of([calls(("line", WRONG), ("line", WRONG)), calls(("line", WRONG)), says("Done.")], [LINE])
    played(loop)
    first, second, third = (text for _, text in results(loop))
    assert first == second
    assert "the same call as before" in third


@pytest.mark.parametrize("order", [(0, 1, 1, 1, 1), (1, 1, 1, 1, 0), (1, 0, 1, 1, 1)])
def test_a6_a_right_call_beside_wrong_ones_counts_wherever_it_stands(order):
    mixed = calls(*[("line", {"path": f"p{at}", "number": "x" if wrong else 1}) for at, wrong in enumerate(order)])
    wrong = [calls(("line", {"path": "p", "number": "y" * at})) for at in range(1, 4)]
    ended, _ = played(loop_of([*wrong, mixed, says("Done.")], [LINE]))
    assert ended.state is EndState.ANSWERED


# The provider's own tools


SERVED: list[Any] = [
    {"type": "message_start", "message": {"role": "assistant", "content": [], "model": "m"}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": "s", "name": "web"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"q": "x"}'}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "look"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"name": "a"}'}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
]


def test_what_the_provider_ran_does_not_go_back_as_ours():
    loop = loop_of([SERVED, says("Done.")], [LOOK], scripted={"wire": Wire.MESSAGES})
    ended, events = played(loop)
    sent = json.dumps(loop.model.requests[1]["messages"])
    assert "Nothing was executed" not in sent
    assert '"web"' not in sent
    assert results(loop) == [("ok", "saw a")]
    assert [event.index for event in only(events, ToolFinished)] == [1]  # as the decoder counts
    assert ended.state is EndState.ANSWERED


@pytest.mark.parametrize("at", range(2, 4))
def test_what_the_provider_was_running_when_the_answer_broke_is_none_of_ours(at):
    loop = loop_of([SERVED[:at], says("Done.")], [LOOK], scripted={"wire": Wire.MESSAGES})
    played(loop)
    assert list(loop.ledger.calls) == []


# The stream


def test_a_second_stream_leaves_the_run_that_goes_on_alone(backend):
    async def main():
        begun, go_on = anyio.Event(), anyio.Event()
        ends: list[LoopEnded] = []

        async def slow(name):
            begun.set()
            await go_on.wait()

        loop = loop_of([calls(("slow", {"name": "a"})), says("Done.")], [tool("slow", slow, name=None)])

        async def first():
            ends.append(await loop.run("go"))

        async with anyio.create_task_group() as group:
            group.start_soon(first)
            await begun.wait()
            async with loop.stream("another") as events:
                with pytest.raises(UsageError, match="one run at a time"):
                    await anext(events)
            async with loop.stream("another"):
                pass
            go_on.set()
        return ends

    (ended,) = run(main, backend)
    assert ended.state is EndState.ANSWERED


# The caller's own code


def test_the_end_is_said_once_even_if_that_fails():
    said: list[Any] = []
    lines: list[str] = []

    def told(event):
        if isinstance(event, LoopEnded):
            said.append(event)
            raise RuntimeError("mine")

    loop = loop_of([says("Done.")], log=DebugLog(lines.append))
    with pytest.raises(RuntimeError, match="mine"):
        run(lambda: loop.run("go", on_event=told))
    assert len(said) == 1
    assert [json.loads(line)["kind"] for line in lines].count("end") == 1
    check_history(loop.ledger)


def test_b19_what_the_hooks_raise_is_in_the_event_and_in_the_log_and_not_for_the_model():
    lines: list[str] = []

    def approve(call, tool):
        raise KeyError("no such policy")

    loop = loop_of([calls(("look", {"name": "a"})), says("No.")], [LOOK], approve=approve, log=DebugLog(lines.append))
    _, events = played(loop)
    assert only(events, ToolFinished)[0].hook_errors == ("approve: KeyError: 'no such policy'",)
    assert json.loads(lines[2])["hook_errors"] == ["approve: KeyError: 'no such policy'"]
    assert "policy" not in results(loop)[0][1]


def test_approve_cannot_change_what_runs():
    def approve(call, tool):
        call.arguments["names"].append("b")
        return True

    show = tool("show", lambda names: ",".join(names), names={"type": "array", "items": {"type": "string"}})
    loop = loop_of([calls(("show", {"names": ["a"]})), says("Done.")], [show], approve=approve)
    played(loop)
    assert results(loop) == [("ok", "a")]


@pytest.mark.parametrize("error", [RuntimeError("the queue is full"), TypeError("bytes"), OSError("full")])
def test_b19_a_log_that_cannot_be_written_ends_no_run(error):
    def write(line):
        raise error

    log = DebugLog(write)
    assert played(loop_of([says("Done.")], log=log))[0].state is EndState.ANSWERED
    assert log.error is error


# Recall (B18)


def test_b18_recall_gives_whole_what_was_too_long_to_be_told():
    whole = "".join(f"line {number} {'x' * 50}\n" for number in range(300))
    loop = loop_of(
        [calls(("big", {"name": "a"}), ids=["c9"])],
        [tool("big", lambda name: whole, name=None)],
        compactor=Compactor(threshold=500, keep=1),
        max_text=2_000,
        budget=Budget(turns=60),
    )
    pieces: list[str] = []

    def more(request):
        last = request["messages"][-1]["content"]
        if "recall('c9') gives it whole" in last:
            return calls(("recall", {"handle": "c9"}), ids=["r0"])
        piece, _, rest = last.partition("\n[… characters ")
        pieces.append(piece)
        if not rest:
            return says("Done.")
        start = int(rest.rpartition("start=")[2].split()[0])
        return calls(("recall", {"handle": "c9", "start": start}), ids=[f"r{start}"])

    loop.model._turns += [more] * 30
    assert played(loop)[0].state is EndState.ANSWERED
    assert "".join(pieces) == whole
    assert len(pieces) > 5


def test_b18_an_old_result_is_stale_after_any_write_if_nobody_knows_what_was_read():
    held = {"value": "old"}

    def get(name):
        return held["value"] + "x" * 900

    def put(name):
        held["value"] = name
        return "put"

    loop = loop_of(
        [
            calls(("get", {"name": "a"}), ids=["g"]),
            calls(("put", {"name": "new"})),
            calls(("recall", {"handle": "g"})),
            says("Done."),
        ],
        [tool("get", get, name=None), tool("put", put, "write", name=None)],
        compactor=Compactor(threshold=10, keep=1),
    )
    played(loop)
    stale = results(loop)[2][1]
    assert stale.startswith("[stale: something ran that may have changed anything since; read it again")
    assert "*" not in stale


def test_b10_recall_verifies_nothing():
    runs: list[str] = []

    async def pay(name):
        runs.append(name)
        raise TimeoutError("lost")

    asked = [
        calls(("look", {"name": "a" * 900}), ids=["g"]),
        calls(("pay", {"name": "1"})),
        calls(("recall", {"handle": "g"})),
        calls(("pay", {"name": "1"})),
        calls(("look", {"name": "b"})),
        calls(("pay", {"name": "1"})),
        says("Done."),
    ]
    loop = loop_of(asked, [LOOK, tool("pay", pay, "external", name=None)], compactor=Compactor(threshold=10, keep=1))
    played(loop)
    assert [state for state, _ in results(loop)] == ["ok", "in_doubt", "ok", "not_executed", "ok", "in_doubt"]
    assert runs == ["1", "1"]


# The summary (B18)


def summarized(summarize: Any, backend: str = "asyncio", **options: Any) -> tuple[Any, LoopEnded, list[Any]]:
    events: list[Any] = []
    asked = [calls(("look", {"name": f"{at}" * 900}), ids=[f"c{at}"]) for at in range(3)]
    compactor = Compactor(threshold=50, keep=1, summarize=summarize)
    loop = loop_of([*asked, says("Done.")], [LOOK], compactor=compactor, **options)
    ended = run(lambda: loop.run("go", on_event=events.append), backend)
    check_history(loop.ledger)
    return loop, ended, only(events, HistoryCompacted)


def test_b18_summarize_may_be_async(backend):
    async def summarize(before, messages):
        await anyio.lowlevel.checkpoint()
        return f"{before}{len(messages)} went. "

    loop, ended, _ = summarized(summarize, backend)
    assert ended.state is EndState.ANSWERED
    assert "went" in loop.ledger.summary


def test_b18_a_summary_that_fails_ends_no_run(backend):
    def summarize(before, messages):
        raise RuntimeError("the other model is down")

    loop, ended, compacted = summarized(summarize, backend)
    assert ended.state is EndState.ANSWERED
    assert {event.done.problem for event in compacted} == {"summarize failed. RuntimeError: the other model is down"}
    assert loop.ledger.summary == ""
    assert len(loop.ledger.turns) == 4


def test_b21_a_summary_has_a_limit_and_blocks_nobody(backend):
    gate = threading.Event()
    clock = FakeClock()
    begun = threading.Event()

    def summarize(before, messages):
        begun.set()
        gate.wait(20)
        return "late"

    async def main():
        compactor = Compactor(threshold=50, keep=1, summarize=summarize, timeout=7)
        asked = [calls(("look", {"name": f"{at}" * 900}), ids=[f"c{at}"]) for at in range(3)]
        loop = loop_of([*asked, says("Done.")], [LOOK], compactor=compactor, clock=clock)
        events: list[Any] = []
        async with anyio.create_task_group() as group:

            async def lapse():
                while not any(isinstance(event, LoopEnded) for event in events):
                    await anyio.sleep(0.001)
                    if begun.is_set():
                        begun.clear()
                        clock.advance(7)

            group.start_soon(lapse)
            ended = await loop.run("go", on_event=events.append)
        return ended, only(events, HistoryCompacted)

    try:
        ended, compacted = run(main, backend)
    finally:
        gate.set()
    assert ended.state is EndState.ANSWERED
    assert {event.done.problem for event in compacted} == {"summarize took longer than 7 s"}


def test_b21_a_run_can_be_cancelled_while_it_is_summarized(backend):
    async def main():
        begun = anyio.Event()

        async def summarize(before, messages):
            begun.set()
            await anyio.sleep_forever()

        asked = [calls(("look", {"name": f"{at}" * 900}), ids=[f"c{at}"]) for at in range(3)]
        loop = loop_of([*asked, says("x")], [LOOK], compactor=Compactor(threshold=50, keep=1, summarize=summarize))
        async with anyio.create_task_group() as group:

            async def stop():
                await begun.wait()
                loop.cancel("enough")

            group.start_soon(stop)
            ended = await loop.run("go")
        check_history(loop.ledger)
        return ended

    ended = run(main, backend)
    assert (ended.state, ended.reason) == (EndState.CANCELLED, "enough")


# Calls in prose (B17): an answer that mentions a tool is an answer


@pytest.mark.parametrize(
    "text",
    [
        'M2 writes `<invoke name="look">` in front of a call.',
        'It begins with <invoke name="look"> and names each parameter.',
        "Call it like this:\n\n```python\nlook('a')\n```",
        "You can use look(name) for that.",
    ],
)
def test_b17_an_answer_that_mentions_a_call_is_an_answer(text):
    assert played(loop_of([text], [LOOK]))[0].state is EndState.ANSWERED


@pytest.mark.parametrize(
    "text",
    [
        '<invoke name="look">\n<parameter name="name">a</parameter>\n</invoke>',
        'I look.\n<invoke name="look">\n<parameter name="name">a</parameter>\n</invoke>\n',
        "I look now.\nlook('a')",
        "```python\nlook('a')\n```",
    ],
)
def test_b17_a_call_that_is_spelled_out_is_no_answer(text):
    assert played(loop_of([text], [LOOK]))[0].state is EndState.UNFINISHED


# Thinking that has to go back as it came (B3)


THOUGHT: list[Any] = [
    {"type": "message_start", "message": {"role": "assistant", "content": [], "model": "m"}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Look "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "first."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "SI"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "G=="}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "ENC"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "t", "name": "look"}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"name": "a"}'}},
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
]
SIGNED = [
    {"type": "thinking", "thinking": "Look first.", "signature": "SIG=="},
    {"type": "redacted_thinking", "data": "ENC"},
]


def test_b3_signed_thinking_goes_back_as_it_came():
    loop = loop_of([THOUGHT, says("Done.")], [LOOK], scripted={"wire": Wire.MESSAGES})
    played(loop)
    assistant = loop.model.requests[1]["messages"][1]["content"]
    assert assistant[:2] == SIGNED
    assert [block["type"] for block in assistant[2:]] == ["tool_use"]


def test_b3_signed_thinking_comes_over_http():
    body = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in THOUGHT)
    done = body.replace("tool_use", "text").replace('"name": "look"', '"text": "Done."')
    seen: list[Any] = []

    def handle(request):
        seen.append(json.loads(request.content))
        content = body if len(seen) == 1 else done
        return httpx.Response(200, content=content, headers={"content-type": "text/event-stream"})

    client = httpx.AsyncClient(transport=httpx.MockTransport(handle))
    loop = loop_of([], [LOOK], model=HttpModel(client, "http://model.test/v1/messages", model="m"))
    played(loop)
    assert seen[1]["messages"][1]["content"][:2] == SIGNED


@pytest.mark.parametrize("unsigned", [True, False])
def test_b3_thinking_without_a_signature_is_sent_where_it_is_wanted(unsigned):
    turn = [each for each in THOUGHT if "SI" not in str(each) and "G==" not in str(each) and "ENC" not in str(each)]
    loop = loop_of([turn, says("Done.")], [LOOK], scripted={"wire": Wire.MESSAGES}, unsigned_thinking=unsigned)
    played(loop)
    thinking = [block for block in loop.model.requests[1]["messages"][1]["content"] if block["type"] == "thinking"]
    assert thinking == ([{"type": "thinking", "thinking": "Look first."}] if unsigned else [])


def test_b3_thinking_of_an_answer_that_breaks_behind_a_call_goes_back_too():
    broken_ = Script(content=THOUGHT[:-2], fault=StreamInterruptedError("reset"), fault_after=99)
    loop = loop_of([broken_, says("Done.")], [LOOK], scripted={"wire": Wire.MESSAGES})
    played(loop)
    assert loop.model.requests[1]["messages"][1]["content"][:2] == SIGNED
