"""The loop: the rows of part B of AGENT.md, each by its name, on a scripted model and a clock that stands still."""

from __future__ import annotations

import json
import re
import threading
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest

from streamparse import Ended, Text, ToolCallFinished, ToolCallStarted
from streamparse.agent.approval import Decision
from streamparse.agent.budgets import Budget
from streamparse.agent.compaction import Compactor
from streamparse.agent.diagnose import Cause, diagnose
from streamparse.agent.events import (
    AnswerStopped,
    CallJudged,
    EndState,
    HistoryCompacted,
    LoopEnded,
    Nudged,
    Retried,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from streamparse.agent.ledger import Ledger
from streamparse.agent.loop import ToolLoop
from streamparse.agent.models import HttpModel, Script
from streamparse.agent.reasons import why_not_executed
from streamparse.agent.request import Choice
from streamparse.errors import ConnectError, StreamInterruptedError, UsageError
from streamparse.events import ArgumentRejected as Doomed
from streamparse.events import ToolCall
from streamparse.tools.issues import ArgumentRejectedError
from streamparse.tools.lint import lint
from streamparse.transport.wires import Wire
from tests.agents import calls, check_history, chunk, loop_of, native, noted, only, played, results, says, tool
from tests.clocks import BACKENDS, FakeClock, run, until
from tests.conftest import ROOT, shared

ADD = tool("add", lambda a, b: str(a + b), a={"type": "integer"}, b={"type": "integer"})


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def gate():
    """What hanging threads wait for. It opens when the test is over, so that none is left behind."""
    event = threading.Event()
    yield event
    event.set()


def test_each_row_is_named():
    text = (shared() / "design" / "AGENT.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| (B\d+) \|", text, re.MULTILINE))
    named = set(re.findall(r"def test_(b\d+)_", (ROOT / "tests" / "test_loop.py").read_text(encoding="utf-8")))
    assert {row.lower() for row in rows} == named


# A whole run


@pytest.mark.parametrize("backend_", BACKENDS)
def test_a_run(backend_):
    loop = loop_of([calls(("add", {"a": 1, "b": 2}), text="Let me add."), says("It is 3.")], [ADD], system="Be exact.")
    events: list[Any] = []
    ended = run(lambda: loop.run("What is 1 + 2?", on_event=events.append), backend_)
    assert ended == LoopEnded(EndState.ANSWERED, "the model answered", "It is 3.", 2, 1)
    kinds = [
        type(event) for event in events if not isinstance(event, Text) and not type(event).__name__.startswith("A")
    ]
    assert kinds == [
        TurnStarted,
        ToolCallStarted,
        ToolCallFinished,
        CallJudged,
        Ended,
        ToolStarted,
        ToolFinished,
        TurnStarted,
        Ended,
        LoopEnded,
    ]
    assert events[-1] == ended
    assert [message["role"] for message in check_history(loop.ledger)] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


def test_a_conversation_goes_on():
    loop = loop_of([says("Hello."), calls(("add", {"a": 2, "b": 2})), says("4.")], [ADD])
    assert played(loop, "Hi")[0].turns == 1
    ended, _ = played(loop, "2 + 2?")
    assert (ended.text, ended.turns) == ("4.", 2)
    assert len(loop.ledger.turns) == 3


def test_a_run_without_a_task_goes_on_with_the_history():
    ledger = Ledger()
    ledger.add_user("Hi")
    loop = loop_of([says("Hello.")], ledger=ledger)
    assert played(loop, None)[0].text == "Hello."


def test_a_plain_function_is_a_tool():
    def shout(text: str) -> str:
        """Writes in capitals. You must call it when the user wants it loud."""
        return text.upper()

    loop = loop_of([calls(("shout", {"text": "hey"})), says("HEY")], [shout])
    played(loop)
    assert results(loop) == [("ok", "HEY")]


def test_run_sync():
    loop = loop_of([says("Hello.")])
    assert loop.run_sync("Hi").text == "Hello."


def test_one_run_at_a_time(backend):
    async def main():
        loop = loop_of([Script(content=says("a"), delay=1.0)])
        async with loop.stream("go"):
            await until(lambda: bool(loop.model.requests))
            with pytest.raises(UsageError, match="one run at a time"):
                await loop.run("another")

    run(main, backend)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"system": "x", "ledger": Ledger()}, "a ledger has its own"),
        ({"attempts": 0}, "attempts counts from 1"),
        ({"nudges": -1}, "nudges from 0"),
        ({"reads": 0}, "reads"),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(UsageError, match=message):
        loop_of([], **options)


@pytest.mark.parametrize(
    "words",
    [{"turns": 0}, {"calls": 0}, {"turns": True}, {"per_tool": {"f": -1}}, {"seconds": 0}, {"answer": float("inf")}],
)
def test_budgets_that_are_none(words):
    with pytest.raises(UsageError):
        Budget(**words)


# The stream


def test_the_stream_gives_the_same_events(backend):
    turns = [calls(("add", {"a": 1, "b": 2})), says("3.")]

    async def main():
        told: list[Any] = []
        await loop_of(turns, [ADD]).run("go", on_event=told.append)
        async with loop_of(turns, [ADD]).stream("go") as events:
            streamed = [event async for event in events]
            assert events.ended == streamed[-1]
        return told, streamed

    told, streamed = run(main, backend)
    assert streamed == told


def test_leaving_the_stream_cancels_the_run(backend):
    async def main():
        loop = loop_of([Script(content=says("abc"), size=1, delay=1.0)])
        async with loop.stream("go") as events:
            async for _ in events:
                break
        check_history(loop.ledger)
        return events.ended

    assert run(main, backend).state is EndState.CANCELLED


def test_cancelling_whoever_reads_the_stream(backend):
    async def main():
        loop = loop_of([Script(content=says("abc"), size=1, delay=1.0)])
        with anyio.CancelScope() as scope:
            async with loop.stream("go") as events:
                async for _ in events:
                    scope.cancel()
        assert scope.cancelled_caught
        check_history(loop.ledger)
        return loop.ledger.explain

    assert run(main, backend) is why_not_executed


def test_an_error_of_the_reader_is_its_own(backend):
    async def main():
        async with loop_of([Script(content=says("abc"), size=1, delay=1.0)]).stream("go"):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(main, backend)


def test_what_the_run_raises_comes_out_of_the_stream(backend):
    async def main():
        async with loop_of([]).stream("go") as events:
            async for _ in events:
                pass

    with pytest.raises(UsageError, match="one more was asked for"):
        run(main, backend)


# B1 to B6: requests, ids, order, wires


def test_b1_a_forced_choice_holds_for_one_turn():
    loop = loop_of([calls(("add", {"a": 1, "b": 2})), says("3.")], [ADD])
    played(loop, choice=Choice("named", "add"))
    first, second = loop.model.requests
    assert first["tool_choice"] == {"type": "function", "function": {"name": "add"}}
    assert second["tool_choice"] == "auto"
    assert first["tools"][0].keys() == {"type", "function"}


def test_b1_none_stays():
    loop = loop_of([says("cut", "length"), says("No.")], [ADD], nudges=1)
    played(loop, choice=Choice("none"))
    assert [request["tool_choice"] for request in loop.model.requests] == ["none", "none"]


def test_b1_a_choice_that_cannot_be_is_refused_before_anything_is_said():
    loop = loop_of([says("x")], [ADD])
    with pytest.raises(UsageError, match="names 'sub'"):
        played(loop, choice=Choice("named", "sub"))
    assert loop.ledger.entries == ()


def test_b2_content_null_beside_calls_is_normal():
    turn = calls(("add", {"a": 1, "b": 2}))
    turn[0] = chunk(content=None)
    loop = loop_of([turn, says("3.")], [ADD])
    played(loop)
    message = loop.model.requests[1]["messages"][1]
    assert message["content"] is None
    assert message["tool_calls"][0]["function"]["arguments"] == '{"a": 1, "b": 2}'


def test_b3_ids_and_reasoning_go_back_as_they_came():
    turn = [chunk(reasoning_content="Hm, add."), *calls(("add", {"a": 1, "b": 2}), ids=["functions.add:0"])]
    loop = loop_of([turn, says("3.")], [ADD])
    played(loop)
    assistant, result = loop.model.requests[1]["messages"][1:]
    assert assistant["tool_calls"][0]["id"] == result["tool_call_id"] == "functions.add:0"
    assert assistant["reasoning_content"] == "Hm, add."


def test_b3_made_ids_are_unique_over_the_conversation():
    loop = loop_of([native(("add", {"a": 1, "b": 2})), native(("add", {"a": 1, "b": 3})), "Done."], [ADD])
    played(loop)
    ids = [call.id for call in loop.ledger.calls]
    assert len(set(ids)) == 2


def test_b4_results_are_sent_in_call_order(backend):
    async def main():
        last = anyio.Event()
        events: list[Any] = []

        async def look(name):
            if name == "a":
                await last.wait()
            return name

        def told(event):
            events.append(event)
            if isinstance(event, ToolFinished) and event.index == 2:
                last.set()

        loop = loop_of(
            [calls(*(("look", {"name": name}) for name in "abc")), says("ok")], [tool("look", look, name=None)]
        )
        await loop.run("go", on_event=told)
        return [event.index for event in only(events, ToolFinished)], loop.model.requests[1]["messages"]

    finished, messages = run(main, backend)
    assert finished.index(2) < finished.index(0)
    assert [message["content"] for message in messages if message["role"] == "tool"] == ["a", "b", "c"]


def test_b5_broken_arguments_are_kept_and_legal_json_is_sent():
    loop = loop_of([calls(("add", '{"a": 1, b')), says("Sorry.")], [ADD])
    ended, events = played(loop)
    message = loop.model.requests[1]["messages"][1]
    assert message["tool_calls"][0]["function"]["arguments"] == "{}"
    assert next(iter(loop.ledger.calls)).raw == '{"a": 1, b'
    (judged,) = only(events, CallJudged)
    assert not judged.verdict.executable
    assert "could not be parsed as JSON" in results(loop)[0][1]
    assert ended.state is EndState.ANSWERED


@pytest.mark.parametrize("wire", [Wire.CHAT, Wire.MESSAGES, Wire.COMPLETIONS])
def test_b6_every_wire(wire):
    loop = loop_of([calls(("add", {"a": 1, "b": 2})), says("3.")], [ADD], scripted={"wire": wire}, system="Be exact.")
    assert played(loop)[0].text == "3."
    request = loop.model.requests[1]
    assert "model" not in request
    if wire is Wire.CHAT:
        assert request["messages"][-1] == {"role": "tool", "tool_call_id": "c0", "content": "3"}
    elif wire is Wire.MESSAGES:
        (block,) = request["messages"][-1]["content"]
        assert (block["type"], block["tool_use_id"]) == ("tool_result", "c0")
        assert request["tools"][0].keys() == {"name", "description", "input_schema"}
        assert "max_tokens" not in request  # that is the model's matter
    else:
        assert "<response>3</response>" in request["prompt"]
        assert '"name": "add"' in request["prompt"]


# B7 to B10: tools


def test_b7_the_coding_tools_in_a_loop(tmp_path):
    from streamparse.agent.coding_tools import coding_tools

    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    loop = loop_of(
        [
            calls(("read_file", {"path": "a.py"})),
            calls(("edit_file", {"path": "a.py", "old_text": "x = 1", "new_text": "x = 2"})),
            calls(("run_command", {"command": "cat a.py"})),
            calls(("read_file", {"path": "../secret"})),
            says("Done."),
        ],
        coding_tools(tmp_path, policy="allow"),
    )
    assert played(loop)[0].state is EndState.ANSWERED
    states = [state for state, _ in results(loop)]
    assert states == ["ok", "ok", "ok", "rejected"]
    assert "x = 2" in results(loop)[2][1]
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == "x = 2\n"


def test_b8_what_the_loop_sends_can_be_linted(tmp_path):
    from streamparse.agent.coding_tools import coding_tools

    loop = loop_of([says("Hi.")], coding_tools(tmp_path), compactor=Compactor())
    played(loop)
    sent = loop.model.requests[0]["tools"]
    assert len(sent) == 8  # the seven, and recall
    assert lint(sent).clean


def test_b9_a_command_that_failed_says_so(tmp_path):
    from streamparse.agent.coding_tools import coding_tools

    loop = loop_of(
        [calls(("run_command", {"command": "echo ouch >&2; exit 3"})), says("It failed.")],
        coding_tools(tmp_path, policy="allow"),
    )
    played(loop)
    assert re.match(r"Exit code 3\. Took \d", results(loop)[0][1])
    assert "ouch" in results(loop)[0][1]


def test_b10_a_tool_that_hangs_is_timed_out_and_the_run_goes_on(gate):
    """It hangs in a thread, which nobody can stop; a write is in doubt then."""

    async def main():
        clock = FakeClock()
        begun = threading.Event()

        def hang(name):
            begun.set()
            gate.wait()

        loop = loop_of(
            [calls(("hang", {"name": "a"})), calls(("hang", {"name": "a"})), says("Gave up.")],
            [tool("hang", hang, "write", name=None)],
            clock=clock,
        )
        async with anyio.create_task_group() as group:

            async def lapse():
                await until(begun.is_set)
                clock.advance(300)

            group.start_soon(lapse)
            ended = await loop.run("go")
        return loop, ended

    loop, ended = run(main)
    check_history(loop.ledger)
    (first, text), (second, advice) = results(loop)
    assert (first, second) == ("in_doubt", "not_executed")
    assert "timed out after 300 s; it may still be running" in text
    assert "still running" in advice
    assert ended.text == "Gave up."


# B11: watchdogs


def http_loop(handler: Any, tools: Any = (), **options: Any) -> tuple[Any, list[Any]]:
    seen: list[Any] = []

    def handle(request):
        seen.append(json.loads(request.content))
        return handler(len(seen))

    client = httpx.AsyncClient(transport=httpx.MockTransport(handle))
    model = HttpModel(client, "http://model.test/v1/chat/completions", model="m", clock=FakeClock(), **options)
    return ToolLoop(model, tools), seen


def streamed(chunks: Any) -> httpx.Response:
    body = "".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + "data: [DONE]\n\n"
    return httpx.Response(200, content=body, headers={"content-type": "text/event-stream"})


def test_b11_a_request_that_is_sent_again_is_told():
    class Quick(FakeClock):
        async def asleep(self, seconds: float) -> None:
            self.time += seconds

    loop, seen = http_loop(lambda number: httpx.Response(503) if number == 1 else streamed(says("Hello.")))
    loop.model._options["clock"] = Quick()
    ended, events = played(loop)
    assert ended.text == "Hello."
    assert only(events, Retried) == [Retried(1, 2)]
    assert seen[0] == seen[1]


def test_b11_watchdogs_are_options_of_the_model():
    client = httpx.AsyncClient(transport=httpx.MockTransport(lambda request: httpx.Response(200)))
    with pytest.raises(UsageError, match="first_token"):
        HttpModel(client, "http://model.test/v1/messages", first_token=0).stream({})
    with pytest.raises(UsageError, match="idle"):
        HttpModel(client, "http://model.test/v1/messages", idle=-1).stream({})


def test_b11_a_model_that_says_nothing_at_all_is_given_up():
    """Whatever the model does, one answer has a limit."""

    async def main():
        clock = FakeClock()
        loop = loop_of([Script(content=says("late"), delay=1e9)], clock=clock, budget=Budget(answer=60.0))
        async with anyio.create_task_group() as group:

            async def lapse():
                await until(lambda: clock.longest > 1e8)
                clock.advance(61)

            group.start_soon(lapse)
            return loop, await loop.run("go")

    loop, ended = run(main)
    check_history(loop.ledger)
    assert (ended.state, ended.reason) == (EndState.LIMIT, "an answer took longer than 60 s")


# B12 to B16: results


def test_b12_errors_go_to_the_model():
    def fail(name):
        raise RuntimeError("the disk is full")

    loop = loop_of([calls(("fail", {"name": "a"})), says("No luck.")], [tool("fail", fail, name=None)])
    _, events = played(loop)
    assert results(loop) == [("error", 'The tool "fail" failed. RuntimeError: the disk is full')]
    assert only(events, ToolFinished)[0].fault == "tool"


def test_b12_an_argument_that_the_tool_rejects_is_the_models_fault():
    def look(name):
        raise ArgumentRejectedError("name", ["a", "b"])

    asked = [calls(("look", {"name": f"n{number}"})) for number in range(4)]
    loop = loop_of([*asked, says("never")], [tool("look", look, name=None)])
    ended, events = played(loop)
    assert [event.fault for event in only(events, ToolFinished)] == ["model"] * 4
    first, second, third, _ = (text for _, text in results(loop))
    assert "attempt 1 of 3" in first
    assert "allowed: a or b" in first
    assert "attempt 2 of 3" in second
    assert "This was the last attempt" in third
    assert (ended.state, ended.reason) == (EndState.LIMIT, '"look" was called wrongly in 4 answers in a row; 3 may be')


def test_b13_the_same_write_in_one_request_runs_once():
    done: list[str] = []

    def append(f, t):
        done.append(t)
        return "appended"

    twice = calls(("append", '{"f": "x", "t": "y"}'), ("append", '{"t": "y", "f": "x"}'), ids=["a", "b"])
    loop = loop_of(
        [twice, says("Done."), calls(("append", {"f": "x", "t": "y"})), says("Again.")],
        [tool("append", append, "write", f=None, t=None)],
    )
    _, events = played(loop)
    assert done == ["y"]
    assert [event.repeats for event in only(events, ToolFinished)] == [None, "a"]
    assert "the call 'a' did the same" in results(loop)[1][1]
    played(loop, "once more")  # another request of the user
    assert done == ["y", "y"]


def test_b13_a_command_may_be_run_again(tmp_path):
    from streamparse.agent.coding_tools import coding_tools

    again = [calls(("run_command", {"command": "echo x >> log; wc -l < log"})) for _ in range(2)]
    loop = loop_of([*again, says("Done.")], coding_tools(tmp_path, policy="allow"))
    played(loop)
    assert (tmp_path / "log").read_text(encoding="utf-8") == "x\nx\n"


def test_b14_undeclared_fields_are_left_out_and_counted():
    sent = {"a": 1.0, "b": 2, "mood": "good"}
    loop = loop_of([calls(("add", sent)), says("3.")], [ADD])
    played(loop)
    assert results(loop) == [("ok", "3")]
    assert loop.undeclared == {"add": 1}
    strict = loop_of([calls(("add", sent)), says("No.")], [ADD], extra="reject")
    played(strict)
    assert results(strict)[0][0] == "rejected"
    assert strict.undeclared == {"add": 1}


def test_b14_a_drifted_name_is_missing_with_a_suggestion():
    look = tool("look", lambda start_line: "x", start_line={"type": "integer"})
    loop = loop_of([calls(("look", {"startLine": 2})), says("No.")], [look])
    played(loop)
    state, text = results(loop)[0]
    assert state == "rejected"
    assert "start_line: required, but missing" in text
    assert "startLine" in text


@pytest.mark.parametrize(
    "script",
    [
        Script(content=calls(("put", {"name": "a" * 40})), cut=30),
        f"```\n{native(('put', {'name': 'a'}))}\n```",
        Script(content=calls(("put", "{'name': 'a', 'n': None}")), fault_after=0),
    ],
    ids=["cut", "not trusted", "guessed"],
)
def test_b15_what_is_in_doubt_never_runs_a_write(script):
    done: list[str] = []
    loop = loop_of(
        [script, says("No.")],
        [noted(done)],
        scripted={"repair": 3},
    )
    played(loop)
    assert done == []
    assert [state for state, _ in results(loop)] in (["not_executed"], ["rejected"])


def test_b15_a_sealed_call_of_a_cut_turn_runs_and_the_cut_one_does_not():
    done: list[str] = []
    turn = calls(("put", {"name": "first"}), ("put", '{"name": "sec'), finish="length")
    loop = loop_of([turn, says("Half.")], [noted(done)])
    played(loop)
    assert done == ["first"]
    assert [state for state, _ in results(loop)] == ["ok", "not_executed"]
    assert "truncated" in results(loop)[1][1]


def test_b16_reads_run_together_and_writes_in_order(backend):
    async def main():
        log: list[str] = []

        async def step(name):
            log.append(f"+{name}")
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            log.append(f"-{name}")

        tools = [tool("see", step, name=None), tool("set", step, "write", name=None)]
        turn = calls(("see", {"name": "a"}), ("see", {"name": "b"}), ("set", {"name": "c"}), ("set", {"name": "d"}))
        await loop_of([turn, says("ok")], tools).run("go")
        return log

    log = run(main, backend)
    assert sorted(log[:2]) == ["+a", "+b"]
    assert log[4:] == ["+c", "-c", "+d", "-d"]


# B17: ends


UNFINISHED = {
    "cut": (says("It is", "length"), "the answer reached the output limit"),
    "reasoning only": ([chunk(reasoning_content="Hm."), chunk("stop")], "the answer is reasoning only"),
    "empty": ([chunk(content=""), chunk("stop")], "the answer is empty"),
    "blank": (says(" \n "), "the answer is empty"),
    "filtered": (says("I", "content_filter"), "the provider's filter stopped the answer"),
    "promised": ([chunk(content="I call it."), chunk("tool_calls")], "the answer could not be read whole"),
    "json": (says('{"name": "add", "arguments": {"a": 1, "b": 2}}'), "a call of add as JSON"),
    "code": (says("I'll add them:\n```python\nadd(a=1, b=2)\n```"), "a call of add as code"),
}


@pytest.mark.parametrize("name", UNFINISHED)
def test_b17_no_calls_is_not_done(name):
    turn, reason = UNFINISHED[name]
    ended, _ = played(loop_of([turn], [ADD]))
    assert ended.state is EndState.UNFINISHED
    assert reason in ended.reason


@pytest.mark.parametrize(
    "text",
    [
        "I used add(a=1, b=2), and it is 3.",
        'The body would be {"name": "sub", "arguments": {}}.',
        'Its JSON: {"name": "add"}',
        "print(3)",
        "Call add, then read the result.",
    ],
)
def test_b17_an_answer_that_mentions_a_tool_is_an_answer(text):
    assert played(loop_of([says(text)], [ADD]))[0].state is EndState.ANSWERED


def test_b17_an_unfinished_answer_is_nudged_as_often_as_it_may():
    turns = [says("It is", "length"), says("It", "length"), calls(("add", {"a": 1, "b": 2})), says("3", "length")]
    loop = loop_of(turns, [ADD], nudges=2)
    ended, events = played(loop)
    assert (ended.state, ended.turns) == (EndState.UNFINISHED, 4)
    assert [event.turn for event in only(events, Nudged)] == [1, 2]
    assert "output limit" in loop.model.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    "result", ["the same", "took 1.5 s", "at 12:00:01 on 2026-01-01T12:00:01Z", "<object at 0x7f00aa>"]
)
def test_b17_the_same_call_with_the_same_result_stops_it(result):
    """B267: the order of keys, the order of calls in a turn, and what changes by itself make no difference."""
    results_ = iter([result, result.replace("1", "2"), result.replace("1", "3").replace("aa", "bb")])
    look = tool("look", lambda a, b: next(results_), a=None, b=None)
    asked = ['{"a": "1", "b": "2"}', '{"b": "2", "a": "1"}', '{"a":"1",  "b":"2"}']
    ended, _ = played(loop_of([calls(("look", text)) for text in asked], [look]))
    assert (ended.state, ended.turns) == (EndState.LIMIT, 3)
    assert ended.reason == 'the same call of "look" came 3 times in a row, with the same result'


def test_b17_a_result_that_changes_is_progress():
    counter = iter(range(100))
    look = tool("look", lambda a: f"{next(counter)} %", a=None)
    turn = calls(("look", {"a": "x"}))
    assert played(loop_of([*[turn] * 9, says("Done.")], [look]))[0].state is EndState.ANSWERED
    ended, _ = played(loop_of([turn] * 10, [look]))
    assert "came 10 times in a row, with changing results" in ended.reason


def test_b17_a_cycle_stops_it():
    look = tool("look", lambda a: "same", a=None)
    turns = [calls(("look", {"a": name})) for name in "ab" * 3]
    ended, _ = played(loop_of(turns, [look]))
    assert (ended.state, ended.turns) == (EndState.LIMIT, 6)
    assert ended.reason == "the same 2 calls came 3 times over, with the same results"


def test_b17_the_same_invalid_call_stops_it():
    """B266: also one whose JSON never parsed, and an empty one."""
    for arguments in ({"a": "x"}, '{"a": 1', {}):
        loop = loop_of([calls(("add", arguments))] * 3, [ADD])
        ended, events = played(loop)
        assert (ended.state, ended.turns) == (EndState.LIMIT, 3)
        assert [event.attempt for event in only(events, CallJudged)] == [1, 2, 3]
        first, second, third = (text for _, text in results(loop))
        assert "attempt 1 of 3" in first
        assert "the same call as before" in second
        assert "This was the last attempt" in third


def test_b17_wrong_calls_of_one_tool_have_a_limit():
    turns = [calls(("add", {"a": "x" * number, "b": 1})) for number in range(1, 6)]
    ended, _ = played(loop_of(turns, [ADD], attempts=4))
    assert (ended.state, ended.turns) == (EndState.LIMIT, 5)
    assert ended.reason == '"add" was called wrongly in 5 answers in a row; 4 may be'
    invented = [calls((f"f{number}", {})) for number in range(4)]
    ended, _ = played(loop_of(invented, [ADD]))
    assert ended.reason == "a tool that does not exist was called wrongly in 4 answers in a row; 3 may be"


def test_b17_a_right_call_ends_the_row():
    wrong, right = calls(("add", {"a": "x", "b": 1})), calls(("add", {"a": 1, "b": 1}))
    ended, _ = played(loop_of([wrong, wrong, right, wrong, right, says("2")], [ADD]))
    assert ended.state is EndState.ANSWERED


def test_b17_budgets():
    turns = [calls(("add", {"a": number, "b": 1})) for number in range(9)]
    ended, _ = played(loop_of(turns, [ADD], budget=Budget(turns=4)))
    assert (ended.state, ended.reason) == (EndState.LIMIT, "the run took 4 turns, as many as it may")
    both = calls(("add", {"a": 1, "b": 1}), ("add", {"a": 2, "b": 1}))
    loop = loop_of([both], [ADD], budget=Budget(calls=1))
    ended, _ = played(loop)
    assert (ended.state, ended.calls) == (EndState.LIMIT, 1)
    assert [state for state, _ in results(loop)] == ["ok", "not_executed"]
    assert played(loop_of([turns[0], says("1.")], [ADD], budget=Budget(calls=1)))[0].state is EndState.ANSWERED
    loop = loop_of([*turns[:3], says("Enough.")], [ADD], budget=Budget(per_tool={"": 2}))
    assert played(loop)[0].state is EndState.ANSWERED
    assert results(loop)[2][1] == 'Nothing was executed. "add" may be called 2 times in this run. Go on without it.'


def test_b17_a_run_has_a_time():
    async def main():
        clock = FakeClock()
        loop = loop_of(
            [calls(("wait", {"name": "a"}), ("put", {"name": "b"}))],
            [tool("wait", lambda name: None, name=None), tool("put", lambda name: "x", "write", name=None)],
            clock=clock,
            budget=Budget(seconds=100.0),
        )

        async def forever(name):
            clock.advance(101)
            await anyio.sleep_forever()

        object.__setattr__(loop.tools[0], "function", forever)
        return loop, await loop.run("go")

    loop, ended = run(main)
    check_history(loop.ledger)
    assert (ended.state, ended.reason) == (EndState.LIMIT, "the run took longer than 100 s")
    assert [state for state, _ in results(loop)] == ["cancelled", "cancelled"]


def test_b17_an_error_of_the_transport_is_an_end():
    loop = loop_of([Script(content=says("x"), fault=ConnectError("no response from model.test"))])
    ended, _ = played(loop)
    assert ended == LoopEnded(EndState.ERROR, "no response from model.test", "", 1, 0)
    broken = loop_of(
        [Script(content=says("It is three"), size=2, fault=StreamInterruptedError("broke"), fault_after=3)]
    )
    ended, _ = played(broken)
    assert (ended.state, ended.reason) == (EndState.ERROR, "broke")
    assert ended.text == "It is "


def test_b17_a_stream_that_breaks_behind_a_call_goes_on():
    """What was sealed runs, what was not does not, and the model is asked again."""
    turn = Script(
        content=calls(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})),
        size=5,
        fault=StreamInterruptedError("broke"),
        fault_after=5,
    )
    loop = loop_of([turn, says("3.")], [ADD])
    ended, _ = played(loop)
    assert ended.state is EndState.ANSWERED
    assert [state for state, _ in results(loop)] == ["ok", "not_executed"]


# B18 to B20


def test_b18_a_history_that_grows_is_compacted_and_recalled():
    page = "\n".join(f"{number}: def f{number}(): return {number}" for number in range(400))
    look = tool("look", lambda name: f"{name}\n{page}", name=None)
    turns = [calls(("look", {"name": f"n{number}"}), ids=[f"call_{number}"]) for number in range(6)]
    turns += [
        calls(("recall", {"handle": "call_0"}), ids=["r"]),
        calls(("recall", {"handle": "nothing"}), ids=["r2"]),
        says("Done."),
    ]
    compactor = Compactor(threshold=15_000, keep=1)
    loop = loop_of(turns, [look], compactor=compactor)
    ended, events = played(loop)
    assert ended.state is EndState.ANSWERED
    done = only(events, HistoryCompacted)[0].done
    assert done.after < done.before
    sent = loop.model.requests[6]["messages"]
    assert "recall('call_0')" in sent[2]["content"]
    recalled, missing = results(loop)[6:]
    assert recalled == ("ok", f"n0\n{page}")
    assert missing[0] == "rejected"


def test_b18_dropped_turns_go_with_their_results():
    page = "word " * 2000
    look = tool("look", lambda name: f"{name} {page}", name=None)
    turns = [calls(("look", {"name": f"n{number}"})) for number in range(8)]
    compactor = Compactor(threshold=4_000, keep=1, summarize=lambda summary, gone: f"{summary}+{len(gone)}")
    loop = loop_of([*turns, says("Done.")], [look], compactor=compactor)
    played(loop)
    assert loop.ledger.summary.startswith("+")
    assert len(loop.ledger.turns) < 9


def test_b19_see_test_loop_log():
    """The debug log and the spans have a file of their own."""
    from tests import test_loop_log

    assert [name for name in vars(test_loop_log) if name.startswith("test_b19_")]


def test_b20_nothing_was_called():
    loop = loop_of([says("I cannot add.")], [ADD])
    played(loop, "hm", choice=Choice("none"))
    found = diagnose(loop.model.requests[0], loop.ledger.turns[-1])
    assert found[0].cause is Cause.TOOL_CHOICE


# B21: cancelling


def test_b21_cancelling_while_the_model_talks(backend):
    async def main():
        loop = loop_of([Script(content=calls(("add", {"a": 1, "b": 2}), text="Well."), size=2, delay=1.0)], [ADD])
        events: list[Any] = []
        async with anyio.create_task_group() as group:

            async def work():
                events.append(await loop.run("go", on_event=events.append))

            group.start_soon(work)
            while not only(events, ToolCallStarted):
                await until(lambda: loop.clock.longest > 0)
                loop.clock.advance(1.0)
                await anyio.lowlevel.checkpoint()
            loop.cancel("the user pressed a key")
        return loop, events

    loop, events = run(main, backend)
    check_history(loop.ledger)
    assert (events[-1].state, events[-1].reason) == (EndState.CANCELLED, "the user pressed a key")
    assert only(events, LoopEnded)[0] == events[-1]
    assert results(loop) == [
        (
            "not_executed",
            "Nothing was executed. The answer was stopped before the call was complete: the user pressed a key.",
        )
    ]


def test_b21_cancelling_while_a_tool_runs(backend):
    async def main():
        running = anyio.Event()

        async def wait(name):
            running.set()
            await anyio.sleep_forever()

        tools = [tool("wait", wait, "write", name=None), tool("see", name=None)]
        loop = loop_of([calls(("wait", {"name": "a"}), ("see", {"name": "b"}))], tools)
        async with anyio.create_task_group() as group:

            async def stop():
                await running.wait()
                loop.cancel()

            group.start_soon(stop)
            ended = await loop.run("go")
        return loop, ended

    loop, ended = run(main, backend)
    check_history(loop.ledger)
    assert (ended.state, ended.reason) == (EndState.CANCELLED, "cancelled by the user")
    (first, text), (second, other) = results(loop)
    assert (first, second) == ("in_doubt", "cancelled")
    assert "It may have taken effect" in text
    assert other == "Nothing was executed. The call had not begun: cancelled by the user."


@pytest.mark.parametrize("at", [TurnStarted, ToolCallStarted, CallJudged, Ended, ToolStarted, ToolFinished])
def test_b21_cancelling_from_a_callback(at, backend):
    """At any event: the run ends, and no history is broken."""

    async def main():
        loop = loop_of([calls(("add", {"a": 1, "b": 2}), ("add", {"a": 2, "b": 2})), says("never")], [ADD])
        ended = await loop.run("go", on_event=lambda event: loop.cancel() if isinstance(event, at) else None)
        return loop, ended

    loop, ended = run(main, backend)
    check_history(loop.ledger)
    assert ended.state is EndState.CANCELLED
    assert len(loop.model.requests) <= 1


@pytest.mark.parametrize("at", [TurnStarted, ToolCallStarted, CallJudged, Ended, ToolStarted, ToolFinished, LoopEnded])
def test_b21_a_callback_that_raises(at, backend):
    loop = loop_of([calls(("add", {"a": 1, "b": 2}), ("add", {"a": 2, "b": 2})), says("4")], [ADD])

    def told(event):
        if isinstance(event, at):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(lambda: loop.run("go", on_event=told), backend)
    check_history(loop.ledger)


def test_b21_cancelling_the_task(backend):
    async def main():
        running = anyio.Event()

        async def wait(name):
            running.set()
            await anyio.sleep_forever()

        loop = loop_of([calls(("wait", {"name": "a"})), says("after")], [tool("wait", wait, name=None)])
        events: list[Any] = []
        async with anyio.create_task_group() as group:

            async def work():
                await loop.run("go", on_event=events.append)

            group.start_soon(work)
            await running.wait()
            group.cancel_scope.cancel()
        check_history(loop.ledger)
        assert results(loop) == [("cancelled", "The call was stopped while it ran: cancelled. It changes nothing.")]
        assert events[-1].state is EndState.CANCELLED
        return await loop.run("go on")

    assert run(main, backend).text == "after"


# Calls that are not the loop's


def test_a_call_that_the_provider_runs_is_skipped():
    events = [
        {"type": "message_start", "message": {"role": "assistant", "content": [], "model": "m"}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "server_tool_use", "id": "s1", "name": "web_search"},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": '{"query": "x"}'},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Found."}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    loop = loop_of([events], [ADD], scripted={"wire": Wire.MESSAGES})
    ended, told = played(loop)
    assert (ended.state, ended.text, ended.calls) == (EndState.ANSWERED, "Found.", 0)
    assert only(told, CallJudged) == []
    assert loop.ledger.turns[0].calls == ()  # it has its result already, and is none of ours
    assert loop.ledger.turns[0].text == "Found."


def test_what_was_left_open_before_is_closed():
    ledger = Ledger()
    ledger.add_user("go")
    ledger.take([ToolCallFinished(0, ToolCall("c", "add", {"a": 1, "b": 2})), Ended("tool_calls")])
    loop = loop_of([says("ok")], [ADD], ledger=ledger)
    played(loop, "again")
    assert results(loop)[0][0] == "cancelled"


# Early verdicts

PLOT = tool("plot", lambda unit, style: "plotted", unit={"enum": ["celsius", "fahrenheit"]}, style=None)
EARLY: dict[str, Any] = {"scripted": {"early": True, "size": 4}, "stop_doomed": True}


@pytest.mark.parametrize("write", [calls, native])
def test_a_doomed_generation_is_stopped(write):
    wrong = {"unit": "kelvin", "style": "a long style " * 40}
    turns = [write(("plot", wrong)), write(("plot", {"unit": "celsius", "style": "x"})), says("Plotted.")]
    loop = loop_of(turns, [PLOT], **EARLY)
    ended, events = played(loop)
    assert ended.state is EndState.ANSWERED
    (stopped,) = only(events, AnswerStopped)
    assert stopped.observation == results(loop)[0][1]
    assert 'unit: found string "k' in stopped.observation
    assert "celsius" in stopped.observation
    assert not any("long style" in str(event) for event in events)
    assert [state for state, _ in results(loop)] == ["not_executed", "ok"]


def test_what_was_sealed_before_the_doomed_call_runs():
    turn = calls(("add", {"a": 1, "b": 2}), ("plot", {"unit": "kelvin", "style": "x"}), ("add", {"a": 2, "b": 2}))
    loop = loop_of([turn, says("3.")], [ADD, PLOT], **EARLY)
    played(loop)
    assert [state for state, _ in results(loop)] == ["ok", "not_executed"]


def test_a_tool_that_does_not_exist_dooms_an_answer():
    loop = loop_of([calls(("nothing", {"a": 1}), text="Hm."), says("Sorry.")], [PLOT], **EARLY)
    ended, events = played(loop)
    assert (ended.state, ended.text) == (EndState.ANSWERED, "Sorry.")
    assert "there is no tool of this name" in only(events, AnswerStopped)[0].observation
    assert len(results(loop)) == 1


def test_the_same_doomed_call_three_times_stops_it():
    loop = loop_of([calls(("plot", {"unit": "kelvin", "style": "x"}))] * 3, [PLOT], **EARLY)
    ended, _ = played(loop)
    assert (ended.state, ended.turns) == (EndState.LIMIT, 3)


def test_other_doomed_calls_are_other_calls():
    style = {"style": {"enum": ["thin", "bold"]}, "unit": {"enum": ["celsius"]}}
    plot = tool("plot", lambda style, unit: "plotted", **style)
    wrong = [{"style": "x"}, {"style": "thin", "unit": "x"}, {"style": "bold", "unit": "x"}]
    loop = loop_of([*(calls(("plot", each)) for each in wrong), says("Sorry.")], [plot], **EARLY)
    ended, events = played(loop)
    assert ended.state is EndState.ANSWERED
    assert "same call" not in only(events, AnswerStopped)[-1].observation


def test_an_undeclared_field_dooms_nothing_where_it_is_ignored():
    turn = calls(("plot", {"mood": "good", "unit": "celsius", "style": "x"}))
    loop = loop_of([turn, says("ok")], [PLOT], **EARLY)
    _, events = played(loop)
    assert only(events, Doomed)
    assert results(loop) == [("ok", "plotted")]
    loop = loop_of([turn, says("ok")], [PLOT], extra="reject", **EARLY)
    played(loop)
    assert results(loop)[0][0] == "not_executed"


def test_without_the_option_a_doomed_call_goes_on():
    loop = loop_of([calls(("plot", {"unit": "kelvin", "style": "x"})), says("ok")], [PLOT], scripted={"early": True})
    _, events = played(loop)
    assert only(events, AnswerStopped) == []
    assert only(events, Doomed)
    assert results(loop)[0][0] == "rejected"


# Approval


def test_approval_is_the_executors():
    put = tool("put", lambda name: "put", "write", name=None)
    loop = loop_of(
        [calls(("put", {"name": "a"})), says("No.")],
        [put],
        approve=lambda call, tool: Decision("deny", "not on a Friday"),
    )
    played(loop)
    assert results(loop) == [("not_executed", "Nothing was executed. The call was not allowed: not on a Friday.")]
