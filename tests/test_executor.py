"""The executor: one true result for each call, whatever tools do. The rows of B that it has a part in are named."""

from __future__ import annotations

import asyncio
import errno
import functools
import threading
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import anthropic
import anyio
import anyio.lowlevel
import httpx
import msgspec
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamparse
from streamparse.agent.approval import Decision
from streamparse.agent.executor import Executor
from streamparse.agent.jobs import Job
from streamparse.agent.ledger import Ledger
from streamparse.agent.models import Script, ScriptedModel
from streamparse.agent.receipts import Receipts
from streamparse.agent.results import is_outcome_unknown
from streamparse.agent.states import TRANSITIONS, CallState
from streamparse.errors import StreamparseError, UsageError
from streamparse.events import Deviation, DeviationCode, PartialToolCall, ToolCall
from streamparse.tools.functions import tool_from_function
from streamparse.tools.issues import ArgumentRejectedError
from streamparse.tools.validation import Judge
from tests.clocks import BACKENDS, FakeClock, run, until

OK, ERROR, REJECTED = CallState.OK, CallState.ERROR, CallState.REJECTED
TIMEOUT, CANCELLED, IN_DOUBT, NOT_EXECUTED = (
    CallState.TIMEOUT,
    CallState.CANCELLED,
    CallState.IN_DOUBT,
    CallState.NOT_EXECUTED,
)


def tool(name: str, function: Callable[..., Any], effect: str = "read", **more: Any) -> Any:
    return SimpleNamespace(name=name, function=function, effect=effect, **more)


def job(name: str, id_: str = "", /, *, trusted: bool = True, deviations: Any = (), **arguments: Any) -> Job:
    call = ToolCall(id_ or f"c_{name}", name, arguments, deviations=tuple(deviations), trusted=trusted)
    return Job(call)


def states(executions: Any) -> list[CallState]:
    return [each.result.state for each in executions]


def texts(executions: Any) -> list[str]:
    return [each.result.text for each in executions]


async def forever() -> None:
    await anyio.sleep_forever()


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def gate():
    """What hanging threads wait for. It opens when the test is over, so that none is left behind."""
    event = threading.Event()
    yield event
    event.set()


async def lapse(clock: FakeClock, turn: Any, started: Callable[[], bool], seconds: float = 300.0) -> Any:
    """The results of a turn whose time runs out once ``started``."""
    async with anyio.create_task_group() as group:

        async def end() -> None:
            await until(started)
            clock.advance(seconds)

        group.start_soon(end)
        return await turn.run()


# B16: together, and one after the other


def test_b16_reads_run_together(backend):
    async def main():
        here: list[int] = []
        all_here = anyio.Event()

        async def meet(number):
            here.append(number)
            if len(here) == 3:
                all_here.set()
            await all_here.wait()
            return str(number)

        executor = Executor([tool("meet", meet)], clock=FakeClock())
        return await executor.run([job("meet", f"c{number}", number=number) for number in range(3)])

    assert texts(run(main, backend)) == ["0", "1", "2"]


def test_b16_reads_have_a_limit(backend):
    async def main():
        active, most = 0, 0

        async def look(number):
            nonlocal active, most
            active += 1
            most = max(most, active)
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            active -= 1

        executor = Executor([tool("look", look)], reads=2, clock=FakeClock())
        await executor.run([job("look", f"c{number}", number=number) for number in range(7)])
        return most

    assert run(main, backend) == 2


@pytest.mark.parametrize("effect", ["write", "external"])
def test_b16_program_order(backend, effect):
    """A write waits for all before it, and all behind it wait for the write."""

    async def main():
        log: list[str] = []

        async def step(name):
            log.append(f"+{name}")
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            log.append(f"-{name}")

        executor = Executor([tool("read", step), tool("write", step, effect)], clock=FakeClock())
        kinds = ["read:a", "read:b", "write:c", "write:d", "read:e"]
        jobs = [job(kind.split(":")[0], kind, name=kind[-1]) for kind in kinds]
        done = await executor.run(jobs)
        return log, [each.call.id for each in done], kinds

    log, ids, kinds = run(main, backend)
    assert sorted(log[:2]) == ["+a", "+b"]
    assert sorted(log[2:4]) == ["-a", "-b"]
    assert log[4:] == ["+c", "-c", "+d", "-d", "+e", "-e"]
    assert ids == kinds


def test_b4_results_finish_in_any_order_and_are_returned_in_call_order(backend):
    async def main():
        second = anyio.Event()
        finished: list[int] = []

        async def first():
            await second.wait()

        async def other():
            return None

        def on_result(execution):
            finished.append(execution.index)
            second.set()

        executor = Executor([tool("first", first), tool("other", other)], clock=FakeClock())
        done = await executor.run([job("first"), job("other")], on_result=on_result)
        return finished, [each.index for each in done]

    assert run(main, backend) == ([1, 0], [0, 1])


# B10: time


def test_b10_a_read_times_out_after_300_seconds(backend):
    async def main():
        clock = FakeClock()

        async def hang():
            clock.advance(299.0)
            await anyio.wait_all_tasks_blocked()
            clock.advance(1.0)
            await forever()

        executor = Executor([tool("hang", hang)], clock=clock)
        return await executor.run([job("hang")])

    (execution,) = run(main, backend)
    assert execution.result.state is TIMEOUT
    assert execution.result.is_error
    assert execution.result.text == 'The tool "hang" timed out after 300 s; it was stopped.'
    assert execution.seconds == 300.0
    assert execution.fault == "tool"


def test_b10_a_tool_may_have_its_own_limit(backend):
    async def main():
        clock = FakeClock()

        async def hang():
            clock.advance(2.0)
            await forever()

        return await Executor([tool("hang", hang, timeout=2)], clock=clock).run([job("hang")])

    assert "after 2 s" in texts(run(main, backend))[0]


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_b21_there_is_no_waiting_for_ever(timeout):
    with pytest.raises(UsageError, match="timeout"):
        Executor([], timeout=timeout)
    with pytest.raises(UsageError, match="'x'"):
        Executor([tool("x", forever, timeout=timeout)])


def test_b10_a_thread_may_still_be_running(backend, gate):
    async def main():
        clock, began = FakeClock(), threading.Event()

        def block():
            began.set()
            gate.wait()

        executor = Executor([tool("block", block)], clock=clock)
        return await lapse(clock, executor.turn([job("block")]), began.is_set)

    (execution,) = run(main, backend)
    assert execution.result.state is TIMEOUT
    assert execution.result.text.endswith("timed out after 300 s; it may still be running.")


def blocking(clock: FakeClock, gate: threading.Event, **more: Any) -> tuple[Executor, list[str], threading.Event]:
    """An executor with a write that blocks while its text is ``"slow"``, another, and a read."""
    log: list[str] = []
    began = threading.Event()

    def write(text):
        log.append(text)
        if text == "slow":
            began.set()
            gate.wait()
        return f"wrote {text}"

    async def look():
        return "nothing there"

    tools = [tool("write", write, "write", **more), tool("look", look)]
    return Executor(tools, clock=clock), log, began


def test_b10_a_write_in_a_thread_is_in_doubt_and_nothing_else_is_written(backend, gate):
    async def main():
        clock = FakeClock()
        executor, log, began = blocking(clock, gate)
        turn = executor.turn([job("write", "a", text="slow"), job("look"), job("write", "b", text="other")])
        first = await lapse(clock, turn, began.is_set)
        again = await executor.run([job("write", "c", text="slow")])
        return first, again, log

    first, again, log = run(main, backend)
    assert states(first) == [IN_DOUBT, OK, NOT_EXECUTED]
    assert "timed out after 300 s; it may still be running. It may have taken effect. Verify" in texts(first)[0]
    assert "'a' was given up, and is still running" in texts(first)[2]
    assert states(again) == [NOT_EXECUTED]
    assert "Do not repeat it" in texts(again)[0]
    assert log == ["slow"]


def test_b10_a_write_that_was_done_after_its_time_is_not_repeated(backend, gate):
    async def main():
        clock = FakeClock()
        executor, log, began = blocking(clock, gate)
        await lapse(clock, executor.turn([job("write", "a", text="slow")]), began.is_set)
        gate.set()
        again: list[Any] = []
        while not again or again[0].result.state is NOT_EXECUTED:  # until the thread is over
            await anyio.sleep(0.001)
            again = await executor.run([job("write", "b", text="slow")])
        third = await executor.run([job("write", "c", text="slow")])
        return [*again, *third], log

    again, log = run(main, backend)
    assert states(again) == [OK, OK]
    assert [each.repeats for each in again] == ["a", "a"]
    assert "was done after that" in texts(again)[0]
    assert log == ["slow"]


def test_b10_a_resource_that_is_not_touched_may_be_written_meanwhile(backend, gate):
    async def main():
        clock = FakeClock()
        executor, log, began = blocking(clock, gate, resource=lambda arguments: f"dir/{arguments['text']}")
        turn = executor.turn([job("write", "a", text="slow"), job("write", "b", text="other")])
        return await lapse(clock, turn, began.is_set), log

    done, log = run(main, backend)
    assert states(done) == [IN_DOUBT, OK]
    assert log == ["slow", "other"]


class ReadTimeout(Exception):  # noqa: N818 - as clients name it
    pass


def doubtful(clock: Any, error: BaseException) -> tuple[Executor, list[str]]:
    """An executor with a write whose first run ends in ``error``, and a read."""
    log: list[str] = []

    async def pay(amount):
        log.append("pay")
        if len(log) == 1:
            raise error
        return "paid"

    async def look():
        return "no payment"

    return Executor([tool("pay", pay, "external"), tool("look", look)], clock=clock), log


@pytest.mark.parametrize(
    "error", [ReadTimeout("no answer"), TimeoutError(), ConnectionResetError(), BrokenPipeError()], ids=repr
)
def test_b10_a_write_in_doubt_is_verified_before_it_is_repeated(backend, error):
    async def main():
        executor, log = doubtful(FakeClock(), error)
        pay, look = job("pay", amount=3), job("look")
        turns = [await executor.run(jobs) for jobs in ([pay], [look, pay], [pay], [pay])]
        return turns, log

    turns, log = run(main, backend)
    assert [states(turn) for turn in turns] == [[IN_DOUBT], [OK, NOT_EXECUTED], [OK], [OK]]
    assert "Verify before you repeat it" in texts(turns[0])[0]
    assert "Verify that first, with a tool that reads" in texts(turns[1])[1]
    assert texts(turns[2]) == ["paid"]
    assert turns[3][0].repeats == "c_pay"
    assert log == ["pay", "pay"]


def test_b10_without_a_look_a_write_stays_in_doubt(backend):
    async def main():
        executor, log = doubtful(FakeClock(), TimeoutError())
        turns = [await executor.run([job("pay", "first", amount=3)]) for _ in range(4)]
        executor.new_request()
        turns.append(await executor.run([job("pay", amount=3)]))
        other = await executor.run([job("pay", amount=4)])
        doubts = [write.id for write in executor.receipts.doubts]
        executor.receipts.settle("first")
        return turns, other, doubts, await executor.run([job("pay", amount=3)]), log

    turns, other, doubts, settled, log = run(main, backend)
    assert [states(turn)[0] for turn in turns] == [IN_DOUBT, *[NOT_EXECUTED] * 4]
    assert states(other) == [OK]
    assert doubts == ["first"]
    assert states(settled) == [OK]
    assert len(log) == 3


def test_b10_what_the_model_could_not_know_is_no_verification(backend):
    """A read that it asked for before it was told of the doubt."""

    async def main():
        executor, log = doubtful(FakeClock(), TimeoutError())
        pay, look = job("pay", amount=3), job("look")
        return [states(await executor.run(jobs)) for jobs in ([pay, look], [pay], [look], [pay])], log

    assert run(main, backend) == ([[IN_DOUBT, OK], [NOT_EXECUTED], [OK], [OK]], ["pay", "pay"])


@pytest.mark.parametrize("error", [ConnectionRefusedError(), ValueError("no")], ids=repr)
def test_an_error_that_says_that_nothing_was_done_is_no_doubt(backend, error):
    async def main():
        executor, log = doubtful(FakeClock(), error)
        return [states(await executor.run([job("pay", amount=3)])) for _ in range(2)], log

    assert run(main, backend) == ([[ERROR], [OK]], ["pay", "pay"])


def test_b10_a_coroutine_that_writes_and_times_out_is_in_doubt_but_over(backend):
    async def main():
        clock = FakeClock()
        log: list[str] = []

        async def write(text):
            log.append(text)
            if text == "slow":
                clock.advance(300)
                await forever()

        executor = Executor([tool("write", write, "write")], clock=clock)
        done = await executor.run([job("write", "a", text="slow"), job("write", "b", text="other")])
        return done, log

    done, log = run(main, backend)
    assert states(done) == [IN_DOUBT, OK]
    assert "it was stopped. It may have taken effect." in texts(done)[0]
    assert log == ["slow", "other"]


def test_doubts_do_not_grow_without_end():
    receipts = Receipts()
    for number in range(3000):
        write = receipts.begin(f"c{number}", f"k{number}", ["*"])
        receipts.in_doubt(write, None)
    assert len(receipts.doubts) == 1024
    assert receipts.doubts[-1].id == "c2999"


# B12: errors


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("even this")


class OwnError(StreamparseError):
    pass


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("no such city: Atlantis"), ["ValueError: no such city: Atlantis"]),
        (KeyError(), ["KeyError"]),
        (SilentError(), ["SilentError"]),
        (FileNotFoundError(2, "No such file", "/srv/secret/place/a.txt"), ["FileNotFoundError", "a.txt"]),
        (SystemExit(3), ["SystemExit", "3"]),
        (ExceptionGroup("two things", [ValueError("one"), OSError("other")]), ["two things", "one", "other"]),
        (OwnError("line 1: near miss\nline 2: another"), ["line 1: near miss\nline 2: another"]),
        (StopIteration("over"), ["over"]),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("in_thread", [True, False])
def test_b12_the_text_of_an_error_is_the_result(backend, error, expected, in_thread):
    def sync():
        raise error

    async def coroutine():
        raise error

    if isinstance(error, StopIteration) and not in_thread:
        expected = ["StopIteration"]  # Python turns it into a RuntimeError

    async def main():
        executor = Executor([tool("t", sync if in_thread else coroutine, "write")], clock=FakeClock())
        return await executor.run([job("t")]), executor.tallies

    (execution,), tallies = run(main, backend)
    assert execution.result.state is ERROR
    assert execution.result.is_error
    assert execution.fault == "tool"
    for words in expected:
        assert words in execution.result.text
    assert "Traceback" not in execution.result.text
    assert "/srv" not in execution.result.text
    assert tallies == {"t": {"error": 1, "tool_fault": 1}}


def test_b12_an_error_is_bounded(backend):
    async def fail():
        raise ValueError("x" * 100_000)

    async def own():
        raise OwnError("y" * 100_000)

    async def main():
        return await Executor([tool("a", fail), tool("b", own)], max_text=1000).run([job("a"), job("b")])

    assert all(len(text) < 1200 for text in texts(run(main, backend)))


class ExplainedError(ArgumentRejectedError):
    def __str__(self):
        return "the fragment stands on lines 3 and 9: make it longer"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ArgumentRejectedError("unit", ["celsius", "fahrenheit"]), ["unit", "kelvin", "celsius", "fahrenheit"]),
        (ExplainedError("old"), ["lines 3 and 9"]),
    ],
)
def test_b12_a_rejected_argument_is_the_models_fault(backend, error, expected):
    async def look(unit):
        raise error

    async def main():
        executor = Executor([tool("look", look)])
        return await executor.run([job("look", unit="kelvin")]), executor.tallies

    (execution,), tallies = run(main, backend)
    assert execution.result.state is REJECTED
    assert execution.fault == "model"
    assert tallies == {"look": {"rejected": 1, "model_fault": 1}}
    for words in expected:
        assert words in execution.result.text


def test_b12_arguments_that_cannot_be_converted_are_the_models_fault(backend):
    ran: list[int] = []

    def put(number: int) -> None:
        ran.append(number)

    async def main():
        return await Executor([tool_from_function(put)]).run([job("put", number="many")])

    (execution,) = run(main, backend)
    assert (execution.result.state, execution.fault, ran) == (REJECTED, "model", [])
    assert "Expected `int`" in execution.result.text


def test_arguments_that_the_function_does_not_take_are_an_error(backend):
    async def main():
        return await Executor([tool("look", lambda place: place)]).run([job("look", city="here")])

    (execution,) = run(main, backend)
    assert execution.result.state is ERROR
    assert "city" in execution.result.text


def test_a_tool_that_cancels_itself_harms_nobody():
    """Under asyncio; with trio it cannot be done."""

    async def main():
        async def stray():
            raise asyncio.CancelledError

        async def fine():
            await anyio.lowlevel.checkpoint()
            return "fine"

        return await Executor([tool("stray", stray), tool("fine", fine)]).run([job("stray"), job("fine")])

    assert states(run(main)) == [ERROR, OK]


def test_b21_a_task_that_asyncio_cancels_leaves_no_call_open():
    """Not every embedder cancels by scopes."""

    async def main():
        begun = asyncio.Event()

        async def hang():
            begun.set()
            await forever()

        turn = Executor([tool("hang", hang), tool("write", hang, "write")]).turn([job("hang"), job("write")])
        task = asyncio.ensure_future(turn.run())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return turn.executions

    assert states(run(main)) == [CANCELLED, CANCELLED]


# What a tool returns


class Text(msgspec.Struct):
    text: str
    resource: str | None = None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", "plain"),
        ({"ok": True}, '{"ok": true}'),
        ([1, None, "ä"], '[1, null, "ä"]'),
        (Text("of a struct"), "of a struct"),
        (None, "(no output)"),
        ("  \n", "(no output)"),
        (3, "3"),
        ("half \ud800", "half \ufffd"),
    ],
)
def test_b274_results_are_text(backend, value, expected):
    async def main():
        return await Executor([tool("t", lambda: value)]).run([job("t")])

    assert texts(run(main, backend)) == [expected]


def test_a_result_that_is_no_text_says_that_the_tool_ran_and_is_not_repeated(backend):
    ran: list[int] = []

    def odd():
        ran.append(1)
        return object()

    async def main():
        return await Executor([tool("odd", odd, "write")]).run([job("odd", "a"), job("odd", "b")])

    done = run(main, backend)
    assert states(done) == [ERROR, OK]
    assert "ran to its end, and returned a object" in texts(done)[0]
    assert ran == [1]


def test_a_function_that_returns_an_awaitable_is_awaited(backend):
    async def answer():
        return "late"

    async def main():
        return await Executor([tool("t", lambda: answer())]).run([job("t")])

    assert texts(run(main, backend)) == ["late"]


def test_b21_an_awaitable_that_nobody_awaits_any_more_is_closed(backend, gate):
    """Else Python would warn, and the call be said to have returned a coroutine."""

    async def main():
        clock, began = FakeClock(), threading.Event()
        made: list[Any] = []

        async def answer():
            return "late"

        def late():
            began.set()
            gate.wait()
            made.append(answer())
            return made[0]

        executor = Executor([tool("late", late, "write")], clock=clock)
        (execution,) = await lapse(clock, executor.turn([job("late")]), began.is_set)
        gate.set()
        await until(lambda: bool(made) and made[0].cr_frame is None)
        again = await executor.run([job("late")])
        return execution, again[0]

    execution, again = run(main, backend)
    assert execution.result.state is IN_DOUBT
    assert again.result.state is NOT_EXECUTED
    assert "ended in doubt" in again.result.text


def test_b269_a_long_result_is_bounded_and_the_whole_is_kept(backend):
    whole = "".join(f"line {number} 🦊\n" for number in range(5000))
    kept: dict[str, str] = {}

    def keep(call, text):
        kept[call.id] = text
        return f'recall("{call.id}") shows all of it'

    async def main():
        return await Executor([tool("t", lambda: whole)], max_text=1000, keep=keep).run([job("t")])

    (text,) = texts(run(main, backend))
    assert kept == {"c_t": whole}
    assert len(text) < 1200
    head, marker, tail = text.partition(f"\n[… {len(whole) - 1000:,} of {len(whole):,} characters left out; ")
    assert marker
    assert whole.startswith(head)
    assert tail.startswith('recall("c_t") shows all of it …]\n')
    assert whole.endswith(tail.split("…]\n", 1)[1])


# B13: receipts


def writer(**more: Any) -> tuple[Executor, list[str]]:
    log: list[str] = []

    def write(path, text):
        log.append(f"{path}={text}")
        return f"wrote {path}"

    return Executor([tool("write", write, "write", **more)]), log


def writes(*what: str) -> list[Job]:
    return [
        job("write", f"c{number}", path=each.split("=")[0], text=each.split("=")[1]) for number, each in enumerate(what)
    ]


def test_b13_the_same_write_runs_once(backend):
    async def main():
        executor, log = writer()
        first = job("write", "a", path="x", text="1")
        again = job("write", "b", text="1", path="x")  # the order of keys says nothing (B268)
        done = await executor.run([first, again])
        later = await executor.run([first])
        executor.new_request()
        return done + later + await executor.run([first]), log

    done, log = run(main, backend)
    assert states(done) == [OK] * 4
    assert [each.repeats for each in done] == [None, "a", "a", None]
    assert "wrote x" in texts(done)[1]
    assert "Not executed again" in texts(done)[1]
    assert not done[1].result.is_error
    assert done[1].result.wrote == ()
    assert log == ["x=1", "x=1"]


def test_b13_a_tool_may_say_that_it_can_be_repeated(backend):
    async def main():
        executor, log = writer(repeatable=True)
        return await executor.run(writes("x=1", "x=1")), log

    done, log = run(main, backend)
    assert log == ["x=1", "x=1"]
    assert [each.repeats for each in done] == [None, None]


def test_b13_a_b_a_runs_three_times(backend):
    async def main():
        executor, log = writer()
        return await executor.run(writes("x=1", "x=2", "x=1")), log

    done, log = run(main, backend)
    assert log == ["x=1", "x=2", "x=1"]
    assert [each.repeats for each in done] == [None] * 3


def test_b13_another_resource_changes_nothing(backend):
    async def main():
        executor, log = writer(resource=lambda arguments: arguments["path"])
        return await executor.run(writes("x=1", "y=1", "x=1", "x/z=1", "x=1")), log

    done, log = run(main, backend)
    assert log == ["x=1", "y=1", "x/z=1", "x=1"]
    assert done[2].repeats == "c0"
    assert done[0].result.wrote == ("x",)


@pytest.mark.parametrize("in_thread", [True, False])
def test_b13_a_change_from_outside_changes_the_version(backend, in_thread):
    async def main():
        versions = {"x": 1}

        async def version(resource):
            return versions[resource]

        executor, log = writer(
            resource=lambda arguments: arguments["path"], version=versions.__getitem__ if in_thread else version
        )
        await executor.run(writes("x=1", "x=1"))
        assert log == ["x=1"]
        versions["x"] = 2
        await executor.run(writes("x=1", "x=1"))
        del versions["x"]
        await executor.run(writes("x=1", "x=1"))
        return log

    assert run(main, backend) == ["x=1"] * 3


def test_b13_a_write_that_failed_leaves_no_receipt(backend):
    async def main():
        executor, log = doubtful(FakeClock(), ValueError("no"))
        return states(await executor.run([job("pay", "a", amount=1), job("pay", "b", amount=1)])), log

    assert run(main, backend) == ([ERROR, OK], ["pay", "pay"])


def test_b13_what_a_write_turned_out_to_change_counts(backend):
    async def main():
        log: list[str] = []

        def edit(path):
            log.append(path)
            return Text("edited", resource=path)

        tools = [tool("edit", edit, "write"), tool("show", lambda path: Text("shown", resource=path))]
        executor = Executor(tools)
        return await executor.run([job("edit", path="x"), job("show", path="x")])

    done = run(main, backend)
    assert done[0].result.wrote == ("x",)
    assert done[1].result.reads == ("x",)


def test_b13_nothing_is_known_of_a_resource_that_cannot_be_named(backend):
    async def main():
        executor, log = writer(resource=lambda arguments: arguments["nothing"])
        return await executor.run(writes("x=1", "y=1", "x=1")), log

    done, log = run(main, backend)
    assert len(log) == 3
    assert done[0].result.wrote == ("*",)


# B15: what never runs


def deviation(code: DeviationCode, tier: int = 0) -> Deviation:
    return Deviation(code, 0, tier=tier)


DOUBTS = [
    {"trusted": False},
    {"trusted": False, "deviations": [deviation(DeviationCode.INSIDE_CODE_FENCE)]},
    {"deviations": [deviation(DeviationCode.REPAIRED, 2)]},
    {"deviations": [deviation(DeviationCode.REPAIRED, 1), deviation(DeviationCode.REPAIRED, 3)]},
]


@pytest.mark.parametrize("effect", ["read", "write", "external"])
@pytest.mark.parametrize("doubt", DOUBTS)
def test_b15_a_doubtful_call_never_runs_a_write(backend, effect, doubt):
    async def main():
        ran: list[str] = []
        executor = Executor([tool("t", lambda: ran.append("t"), effect)], approve=lambda call, tool: True)
        return await executor.run([job("t", **doubt)]), ran

    done, ran = run(main, backend)
    assert ran == (["t"] if effect == "read" else [])
    assert states(done) == [OK if effect == "read" else NOT_EXECUTED]
    if effect != "read":
        assert "Nothing was executed. The call could not be read reliably" in texts(done)[0]


def test_b15_tier_1_changes_no_meaning(backend):
    async def main():
        executor = Executor([tool("t", lambda: "ran", "write")])
        return await executor.run([job("t", deviations=[deviation(DeviationCode.REPAIRED, 1)])])

    assert texts(run(main, backend)) == ["ran"]


@pytest.mark.parametrize("effect", ["read", "write"])
@pytest.mark.parametrize(
    ("given", "state", "words"),
    [
        (Job(PartialToolCall("c", "t", {"a": 1}, '{"a": 1')), NOT_EXECUTED, "not complete"),
        (Job(ToolCall("c", "t", {}), refusal="the unit is wrong"), REJECTED, "the unit is wrong"),
        (Job(ToolCall("c", "nothing", {})), REJECTED, 'no tool "nothing"'),
        (job("t", trusted=False, deviations=[deviation(DeviationCode.SERVER_TOOL)]), NOT_EXECUTED, "provider"),
    ],
)
def test_b15_what_is_not_sealed_or_refused_never_runs(backend, effect, given, state, words):
    async def main():
        ran: list[str] = []
        started: list[int] = []
        done = await Executor([tool("t", lambda: ran.append("t"), effect)]).run([given], on_start=started.append)
        assert started == []
        return done, ran

    done, ran = run(main, backend)
    assert ran == []
    assert states(done) == [state]
    assert words in texts(done)[0]
    assert done[0].result.is_error


def test_a_verdict_makes_a_job():
    def put(number: int) -> None:
        """Put it."""

    judge = Judge([tool_from_function(put)])
    fits = ToolCall("a", "put", {"number": 3.0, "extra": 1})
    assert Job.judged(fits, judge.check(fits)) == Job(fits, {"number": 3})
    wrong = ToolCall("b", "put", {"number": "x"})
    rejected = Job.judged(wrong, judge.check(wrong))
    assert rejected.state is REJECTED
    assert "number" in (rejected.refusal or "")
    doubtful_call = ToolCall("c", "put", {"number": 3}, trusted=False)
    doubted = Job.judged(doubtful_call, judge.check(doubtful_call), "why not")
    assert (doubted.state, doubted.refusal) == (NOT_EXECUTED, "why not")


# Approval


@pytest.mark.parametrize(
    ("approve", "ask", "runs", "words"),
    [
        ("allow", None, True, ""),
        (True, None, True, ""),
        ("deny", None, False, "it was denied"),
        (False, None, False, "it was denied"),
        (None, None, False, "it was denied"),
        ("yes", None, False, "it was denied"),
        (Decision("deny", "not on a Friday"), None, False, "not on a Friday"),
        ("ask", None, False, "nobody can be asked"),
        ("ask", "allow", True, ""),
        ("ask", Decision("deny", "no, thank you"), False, "no, thank you"),
        ("ask", "ask", False, "it was denied"),
        (ValueError("/srv/secret"), None, False, "could not be answered (ValueError)"),
    ],
)
@pytest.mark.parametrize("in_thread", [True, False])
def test_approval(backend, approve, ask, runs, words, in_thread):
    def hook(answer):
        def sync(call, tool):
            assert (call.arguments, tool.name) == ({"x": 1}, "t")
            if isinstance(answer, Exception):
                raise answer
            return answer

        async def coroutine(call, tool):
            return sync(call, tool)

        return sync if in_thread else coroutine

    async def main():
        ran: list[int] = []
        executor = Executor(
            [tool("t", lambda x: ran.append(x), "write")],
            approve=hook(approve),
            ask=None if ask is None else hook(ask),
        )
        call = ToolCall("c", "t", {"x": 1, "extra": 2})
        return await executor.run([Job(call, {"x": 1})]), ran

    done, ran = run(main, backend)
    assert ran == ([1] if runs else [])
    assert states(done) == [OK if runs else NOT_EXECUTED]
    if not runs:
        assert texts(done)[0].startswith("Nothing was executed. The call was not allowed: ")
        assert words in texts(done)[0]


def test_b21_no_answer_is_a_no(backend, gate):
    async def main():
        clock, asked = FakeClock(), threading.Event()

        def approve(call, tool):
            asked.set()
            gate.wait()

        executor = Executor([tool("t", lambda: "ran", "write")], approve=approve, clock=clock)
        return await lapse(clock, executor.turn([job("t")]), asked.is_set, 600.0)

    done = run(main, backend)
    assert states(done) == [NOT_EXECUTED]
    assert "nobody answered within 600 s" in texts(done)[0]


def test_approvals_come_one_at_a_time(backend):
    async def main():
        asking = most = 0

        async def approve(call, tool):
            nonlocal asking, most
            asking += 1
            most = max(most, asking)
            await anyio.lowlevel.checkpoint()
            asking -= 1
            return True

        executor = Executor([tool("t", lambda number: "ran")], approve=approve)
        await executor.run([job("t", f"c{number}", number=number) for number in range(4)])
        return most

    assert run(main, backend) == 1


# B21: cancelling


def cancelled(backend: str, tools: Any, jobs: list[Job], begun: Callable[[], bool], outside: bool) -> list[Any]:
    """The results of a turn that is cancelled once ``begun``, by ``cancel`` or from outside."""

    async def main():
        turn = Executor(tools).turn(jobs)
        finished: list[int] = []
        turn._on_result = lambda execution: finished.append(execution.index)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def stop():
                    await until(begun)
                    if outside:
                        scope.cancel()
                    else:
                        turn.cancel("the user pressed Escape")

                group.start_soon(stop)
                await turn.run()
        assert scope.cancelled_caught is outside
        assert sorted(finished) == list(range(len(jobs)))
        return turn.executions

    return run(main, backend)


@pytest.mark.parametrize("outside", [True, False])
def test_b21_cancelling_tells_the_truth_of_each_call(backend, gate, outside):
    begun: set[str] = set()

    async def fine():
        return "fine"

    async def hang():
        begun.add("hang")
        await forever()

    def block():
        begun.add("block")
        gate.wait()

    tools = [tool("fine", fine), tool("hang", hang), tool("block", block), tool("write", fine, "write")]
    jobs = [job("fine"), job("hang"), job("block"), job("write")]
    done = cancelled(backend, tools, jobs, lambda: begun == {"hang", "block"}, outside)
    assert states(done) == [OK, CANCELLED, CANCELLED, CANCELLED]
    assert texts(done)[0] == "fine"
    assert "It changes nothing." in texts(done)[1]
    assert "still be running" not in texts(done)[1]
    assert texts(done)[2].endswith("It may still be running.")
    assert texts(done)[3].startswith("Nothing was executed.")
    assert ("Escape" in texts(done)[3]) is not outside


@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize("in_thread", [True, False])
def test_b21_a_write_that_is_cancelled_is_in_doubt(backend, gate, outside, in_thread):
    begun: list[int] = []

    def block():
        begun.append(1)
        gate.wait()

    async def hang():
        begun.append(1)
        await forever()

    done = cancelled(
        backend,
        [tool("write", block if in_thread else hang, "write")],
        [job("write", "a"), job("write", "b")],
        lambda: bool(begun),
        outside,
    )
    assert states(done) == [IN_DOUBT, CANCELLED]
    assert "It may have taken effect" in texts(done)[0]
    assert texts(done)[0].endswith("Verify before you repeat it.")


def test_b21_a_turn_that_was_cancelled_before_it_ran(backend):
    async def main():
        turn = Executor([tool("t", lambda: "ran", "write")]).turn([job("t")])
        turn.cancel("too late")
        return await turn.run()

    done = run(main, backend)
    assert states(done) == [CANCELLED]
    assert "too late" in texts(done)[0]


def test_b21_a_callback_that_fails_leaves_no_call_open(backend):
    async def main():
        def fail(index):
            raise RuntimeError("the caller's own")

        turn = Executor([tool("t", lambda: "ran", "write")]).turn([job("t", "a"), job("t", "b")], on_start=fail)
        with pytest.raises(ExceptionGroup):
            await turn.run()
        return turn.executions

    assert states(run(main, backend)) == [CANCELLED, CANCELLED]


# Misuse


def test_misuse(backend):
    with pytest.raises(UsageError, match="two tools"):
        Executor([tool("t", forever), tool("t", forever)])
    with pytest.raises(UsageError, match="no function"):
        Executor([tool("t", None)])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at least 1"):
        Executor([], reads=0)

    async def main():
        async def nested():
            return await executor.run([])

        executor = Executor([tool("t", nested)])
        turn = executor.turn([])
        assert await turn.run() == []
        with pytest.raises(UsageError, match="once"):
            await turn.run()
        return await executor.run([job("t")])

    assert "one turn at a time" in texts(run(main, backend))[0]


# With its neighbours


def test_a_turn_of_a_model_goes_through_the_judge_and_the_executor_into_the_ledger(backend):
    def put(number: int) -> str:
        """Put it."""
        if number == 4:
            raise ArgumentRejectedError("number", ["3"])
        return f"put {number}"

    tools = [tool_from_function(put)]
    said = streamparse.render_calls([{"name": "put", "arguments": {"number": each}} for each in (3, 4, "x", 3)])
    model = ScriptedModel([Script(content=said.removesuffix("</minimax:tool_call>") + '<invoke name="put">', size=9)])

    async def main():
        ledger, executor, judge = Ledger(), Executor(tools), Judge(tools)
        turn = None
        async with model.stream({"messages": []}, tools=tools) as answer:
            async for events in answer:
                turn = ledger.take(events)
        assert turn is not None
        calls = turn.open_calls
        sealed = [call.call for call in calls if isinstance(call.call, ToolCall)]
        jobs = [Job.judged(call, judge.check(call)) for call in sealed]
        done = await executor.run(jobs, on_start=lambda index: ledger.start(calls[index]))
        for call, execution in zip(calls, done, strict=True):
            ledger.record(execution.result, call)
        return ledger

    ledger = run(main, backend)
    assert ledger.open_calls == []
    assert [call.state for call in ledger.calls] == [OK, REJECTED, REJECTED, OK, NOT_EXECUTED]


# All of it at random

BEHAVIOURS = ["ok", "raise", "doubt", "hang", "thread", "thread raises", "thread hangs"]


class Plan(msgspec.Struct, frozen=True):
    effect: str
    behaviour: str
    trusted: bool
    argument: int


class World:
    """Tools that do what the plan says, and see what must not be."""

    def __init__(self, plans: list[Plan], clock: FakeClock) -> None:
        self.plans = plans
        self.clock = clock
        self.gate = threading.Event()
        self.faults: list[str] = []
        self.ran: list[str] = []
        self._active: set[str] = set()
        self._lock = threading.Lock()

    def tools(self) -> list[Any]:
        return [tool(f"t{number}", self._function(number), plan.effect) for number, plan in enumerate(self.plans)]

    def jobs(self) -> list[Job]:
        return [
            Job(ToolCall(f"c{number}", f"t{number}", {"argument": plan.argument}, trusted=plan.trusted))
            for number, plan in enumerate(self.plans)
        ]

    def _enter(self, number: int) -> None:
        with self._lock:
            plan, name = self.plans[number], f"t{number}"
            self.ran.append(name)
            if plan.effect == "read":
                return
            if self._active:
                self.faults.append(f"{name} overlaps {self._active}")
            if not plan.trusted:
                self.faults.append(f"{name} is not trusted")
            self._active.add(name)

    def _leave(self, number: int) -> None:
        with self._lock:
            self._active.discard(f"t{number}")

    def _function(self, number: int) -> Callable[..., Any]:
        behaviour = self.plans[number].behaviour

        async def coroutine(argument):
            self._enter(number)
            try:
                await anyio.lowlevel.checkpoint()
                if behaviour == "hang":
                    await forever()
                if behaviour == "doubt":
                    raise TimeoutError("no answer")
                if behaviour == "raise":
                    raise ValueError("broken")
                return "done"
            finally:
                self._leave(number)

        def in_thread(argument):
            self._enter(number)
            try:
                if behaviour == "thread hangs":
                    self.gate.wait()
                if behaviour == "thread raises":
                    raise ValueError("broken")
                return "done"
            finally:
                self._leave(number)

        return in_thread if behaviour.startswith("thread") else coroutine


PLANS = st.lists(
    st.builds(
        Plan,
        st.sampled_from(["read", "write", "external"]),
        st.sampled_from(BEHAVIOURS),
        st.sampled_from([True, True, True, False]),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("backend", BACKENDS)
@given(turns=st.lists(PLANS, min_size=1, max_size=2), stop=st.none() | st.tuples(st.booleans(), st.integers(0, 8)))
def test_each_call_has_one_true_result_whatever_happens(backend, turns, stop):
    """Also when the turn is cancelled, from inside or outside, at the beginning or the end of any call."""
    clock = FakeClock()
    worlds = [World(plans, clock) for plans in turns]

    async def main():
        for world in worlds:
            executor = Executor(world.tools(), clock=clock)
            for _ in range(2):  # the second time, what was done has receipts, and what was not has doubts
                await one_turn(executor, world)

    async def one_turn(executor, world):
        started: list[int] = []
        finished: list[int] = []
        moments = 0
        scope = anyio.CancelScope()

        def moment():
            nonlocal moments
            if stop is not None and moments == stop[1]:
                scope.cancel() if stop[0] else turn.cancel()
            moments += 1

        def on_start(index):
            started.append(index)
            moment()

        def on_result(execution):
            finished.append(execution.index)
            moment()

        async def time_passes():
            while True:
                await anyio.wait_all_tasks_blocked()
                clock.advance(clock.longest)
                await anyio.sleep(0.0005)

        ran_before = Counter(world.ran)
        turn = executor.turn(world.jobs(), on_start=on_start, on_result=on_result)
        async with anyio.create_task_group() as group:
            group.start_soon(time_passes)
            with scope:
                await turn.run()
            group.cancel_scope.cancel()

        done = turn.executions
        assert [each.index for each in done] == list(range(len(world.plans)))
        assert [each.result.id for each in done] == [f"c{number}" for number in range(len(world.plans))]
        assert sorted(finished) == list(range(len(world.plans)))
        for number, (execution, plan) in enumerate(zip(done, world.plans, strict=True)):
            state = execution.result.state
            before = CallState.RUNNING if number in started else CallState.PROPOSED
            assert state in TRANSITIONS[before], (plan, state)
            assert execution.result.text
            ran = (Counter(world.ran) - ran_before)[f"t{number}"]
            assert ran <= 1
            if "Nothing was executed" in execution.result.text or execution.repeats is not None:
                assert not ran, (plan, execution)
            if state is IN_DOUBT:
                assert ran
                assert plan.effect != "read"
            if state is OK and execution.repeats is None:
                assert ran
                assert plan.behaviour in ("ok", "thread")
            if state is CANCELLED:
                assert stop is not None

    try:
        run(main, backend)
    finally:
        for world in worlds:
            world.gate.set()
    for world in worlds:
        assert world.faults == []


def test_hundreds_of_turns_keep_nothing(backend):
    """B21, the soak in small: the executor's own memory depends on the tools and on what is in doubt."""

    async def main():
        executor = Executor([tool("t", lambda number: "ran", "write")], clock=FakeClock())
        for number in range(300):
            executor.new_request()
            await executor.run([job("t", number=number), job(f"no{number}")])
        return executor

    executor = run(main, backend)
    assert len(executor.receipts._receipts) == 1
    assert executor.tallies == {"t": {"ok": 300}, "": {"rejected": 300, "model_fault": 300}}


# What a tool returns and raises may be any object


class Closed:
    """Whatever it is asked for, it raises."""

    def __getattr__(self, name):
        raise KeyError(name)


class Unread:
    @property
    def text(self):
        raise RuntimeError("not read")


class Incomparable:
    def __eq__(self, other):
        raise RuntimeError("not comparable")

    def __hash__(self):
        return 0


@pytest.mark.parametrize("value", [Closed(), Unread()], ids=["closed", "unread"])
def test_b12_an_odd_value_is_an_error_and_no_doubt(backend, value):
    async def main():
        executor = Executor([tool("put", lambda: value, "write")], clock=FakeClock())
        return await executor.run([job("put", "a")]), executor

    (done,), executor = run(main, backend)
    assert done.result.state is ERROR
    assert "ran to its end" in done.result.text
    assert executor.receipts.doubts == []


def test_b13_versions_that_cannot_be_compared_say_nothing(backend):
    done: list[str] = []

    async def main():
        put = tool(
            "put",
            lambda path: done.append(path),
            "write",
            resource=lambda arguments: arguments["path"],
            version=lambda resource: Incomparable(),
        )
        executor = Executor([put], clock=FakeClock())
        return [*await executor.run([job("put", "a", path="x")]), *await executor.run([job("put", "b", path="x")])]

    assert states(run(main, backend)) == [OK, OK]
    assert done == ["x"]


@pytest.mark.parametrize(
    ("value", "state", "words"),
    [(b"caf\xc3\xa9", OK, "café"), (b"\xff\xfe", ERROR, "returned a bytes"), (memoryview(b"x"), OK, "x")],
)
def test_b12_bytes_are_text_or_nothing(value, state, words):
    (done,) = run(lambda: Executor([tool("t", lambda: value)], clock=FakeClock()).run([job("t")]))
    assert done.result.state is state
    assert words in done.result.text


def generated():
    yield 1


async def generated_async():
    yield 1


class Generating:
    def __call__(self):
        yield 1


@pytest.mark.parametrize("function", [generated, generated_async, Generating(), functools.partial(generated)])
def test_a_generator_is_no_tool(function):
    with pytest.raises(UsageError, match="is a generator"):
        Executor([tool("t", function)])


@pytest.mark.parametrize("function", [generated, generated_async])
def test_a_generator_that_is_returned_ran_nothing_and_leaves_no_receipt(backend, function):
    async def main():
        executor = Executor([tool("put", lambda: function(), "write")], clock=FakeClock())
        return [*await executor.run([job("put", "a")]), *await executor.run([job("put", "b")])]

    done = run(main, backend)
    assert states(done) == [ERROR, ERROR]
    assert all(text.startswith("Nothing was executed.") for text in texts(done))
    assert [each.repeats for each in done] == [None, None]


class Given(BaseException):
    """As ``pytest.fail`` raises: no ``Exception``."""


@pytest.mark.parametrize("in_thread", [True, False])
def test_b12_whatever_a_tool_raises_is_its_result(backend, in_thread):
    def fail():
        raise Given("up")

    async def fail_async():
        raise Given("up")

    async def main():
        return await Executor([tool("t", fail if in_thread else fail_async)], clock=FakeClock()).run([job("t")])

    (done,) = run(main, backend)
    assert (done.result.state, done.fault) == (ERROR, "tool")
    assert "Given: up" in done.result.text


# B10: which errors leave a write in doubt


def raised_from(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def raised_within(error: Exception, context: Exception) -> Exception:
    error.__context__ = context
    return error


REQUEST: Any = httpx.Request("POST", "http://tool.test")  # these clients want one of another version


@pytest.mark.parametrize(
    ("error", "unknown"),
    [
        (TimeoutError(), True),
        (BrokenPipeError(), True),
        (OSError(errno.EPIPE, "broken pipe"), True),
        (OSError(errno.ETIMEDOUT, "timed out"), True),
        (OSError(errno.ENOSPC, "full"), False),
        (ConnectionRefusedError(), False),
        (httpx.ReadError("x"), True),
        (httpx.ReadTimeout("x"), True),
        (httpx.CloseError("x"), True),
        (httpx.RemoteProtocolError("x"), True),
        (httpx.ConnectError("x"), False),
        (httpx.ConnectTimeout("x"), False),
        (httpx.PoolTimeout("x"), False),
        (httpx.UnsupportedProtocol("x"), False),
        (openai.APIConnectionError(request=REQUEST), True),
        (openai.APITimeoutError(request=REQUEST), True),
        (anthropic.APIConnectionError(request=REQUEST), True),
        (anthropic.APITimeoutError(request=REQUEST), True),
        (raised_from(openai.APIConnectionError(request=REQUEST), httpx.ConnectError("x")), False),
        (raised_from(openai.APIConnectionError(request=REQUEST), httpx.ReadError("x")), True),
        (raised_from(openai.APITimeoutError(request=REQUEST), httpx.ConnectTimeout("x")), False),
        (anyio.BrokenResourceError(), True),
        (ValueError("x"), False),
        (raised_from(RuntimeError("api"), ConnectionResetError("peer")), True),
        (raised_within(RuntimeError("api"), ConnectionResetError("peer")), True),
        (raised_from(RuntimeError("api"), ConnectionRefusedError()), False),
        (ExceptionGroup("g", [ValueError("x"), ConnectionResetError()]), True),
        (ExceptionGroup("g", [ExceptionGroup("h", [raised_from(ValueError("x"), TimeoutError())])]), True),
        (ExceptionGroup("g", [ValueError("x")]), False),
    ],
    ids=repr,
)
def test_b10_an_error_that_leaves_a_write_in_doubt(error, unknown):
    assert is_outcome_unknown(error) is unknown

    async def fail():
        raise error

    (done,) = run(lambda: Executor([tool("put", fail, "write")], clock=FakeClock()).run([job("put")]))
    assert done.result.state is (IN_DOUBT if unknown else ERROR)


def test_b10_errors_that_come_from_each_other_in_a_circle():
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert not is_outcome_unknown(first)


def test_b10_a_look_elsewhere_verifies_nothing(backend):
    runs: list[str] = []

    def put(path):
        runs.append(path)
        raise TimeoutError

    async def main():
        by_path: Any = {"resource": lambda arguments: arguments["path"]}
        executor = Executor(
            [tool("put", put, "write", **by_path), tool("look", lambda path: path, **by_path)], clock=FakeClock()
        )
        done: list[Any] = []
        for each in [("put", "a"), ("look", "b"), ("put", "a"), ("look", "a"), ("put", "a")]:
            done += await executor.run([job(each[0], f"c{len(done)}", path=each[1])])
        return done

    assert states(run(main, backend)) == [IN_DOUBT, OK, NOT_EXECUTED, OK, IN_DOUBT]
    assert runs == ["a", "a"]


def test_errors_of_hooks_are_kept(backend):
    def resource(arguments):
        raise KeyError("path")

    def version(name):
        raise ValueError("no hash")

    async def main():
        executor = Executor(
            [
                tool("put", lambda path: "put", "write", resource=resource),
                tool("see", lambda path: "x", "write", resource=lambda arguments: arguments["path"], version=version),
            ],
            clock=FakeClock(),
        )
        return await executor.run([job("put", path="x"), job("see", path="y")])

    assert [each.hook_errors for each in run(main, backend)] == [
        ("resource: KeyError: 'path'",),
        ("version: ValueError: no hash",),
    ]
