"""run_command: real processes, and limits on all they can do."""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
import time
import tracemalloc
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamparse import UsageError
from streamparse.agent.coding_tools import (
    CodingTool,
    DeniedError,
    Rejected,
    Root,
    Shell,
    StoppedError,
    ToolError,
    coding_tools,
    run_command,
)
from streamparse.agent.coding_tools.bounds import LINE_CHARACTERS, TAIL_LINES
from streamparse.agent.coding_tools.environment import scrubbed
from streamparse.agent.coding_tools.process import Running
from streamparse.agent.coding_tools.tail import Tail
from streamparse.agent.executor import Executor
from streamparse.agent.jobs import Job
from streamparse.agent.states import CallState
from streamparse.events import ToolCall
from tests.clocks import BACKENDS

PYTHON = sys.executable


@pytest.fixture(name="root")
def root_fixture(tmp_path):
    with Root(tmp_path) as root:
        yield root


def run(root, command, **options):
    return run_command(root, command, policy="allow", **options).text


def alive(pid: int) -> bool:
    """Whether the process runs; one that is dead and not collected does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def gone(pid: int, limit: float = 10) -> bool:
    """Whether the process is gone, soon."""
    end = time.monotonic() + limit
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.01)
    return not alive(pid)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def test_output_exit_code_and_time(root):
    text = run(root, "echo out; echo err >&2; exit 3")
    assert re.fullmatch(r"Exit code 3\. Took \d+\.\d s\nOutput:\nout\nerr", text)
    assert re.fullmatch(r"Exit code 0\. Took \d+\.\d s\nNo output\.", run(root, "true"))


def test_runs_in_the_project_directory(root, tmp_path):
    assert run(root, "pwd").endswith(os.path.realpath(tmp_path))


def test_standard_input_is_closed(root):
    assert run(root, "cat; read x; echo $?").endswith("Output:\n1")


def test_has_no_terminal_to_ask_on(root):
    assert "no" in run(root, "(exec </dev/tty) 2>/dev/null && echo yes || echo no")


def test_signals_are_named(root):
    assert run(root, "kill -9 $$").startswith("Killed by signal SIGKILL")


def test_last_lines_and_errors_of_what_was_cut(root):
    script = "for i in $(seq 1 1000); do [ $i = 7 ] && echo 'src/a.c:7: error: bad' || echo line $i; done"
    text = run(root, script)
    assert "Error lines in the 700 lines that are not shown:\n7\tsrc/a.c:7: error: bad\n" in text
    assert f"Output, the last {TAIL_LINES} of 1,000 lines:\nline 701\n" in text
    assert text.endswith("\nline 1000")


def test_timeout_keeps_the_partial_output_and_kills_the_group(root):
    text = run(root, "sleep 60 & echo $!; echo partial; sleep 60", timeout=0.3)
    assert text.startswith(
        "Timed out after 0.3 s: the command and its process group were killed. The output is partial."
    )
    pid, word = text.splitlines()[-2:]
    assert word == "partial"
    assert gone(int(pid))


def test_a_tiny_timeout_is_a_timeout(root):
    assert run(root, "sleep 60", timeout=1e-6).startswith("Timed out after 1e-06 s")


def test_who_ignores_the_request_to_end_is_killed(root, tmp_path):
    script = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)\n"
    (tmp_path / "stubborn.py").write_text(script)
    seen: list[bytes] = []
    running = Running(
        [PYTHON, "stubborn.py"], directory=str(tmp_path), environment=scrubbed(), sink=seen.append, grace=0.05
    )
    ended = running.wait(0.5)
    assert ended.how == "timeout"
    assert ended.code == -9
    assert gone(running.pid)


def test_a_background_child_that_holds_the_output_is_not_waited_for(root):
    started = time.monotonic()
    text = run(root, "sleep 60 & echo $!")
    assert time.monotonic() - started < 20  # not 60
    assert text.startswith("Exit code 0")
    assert "left a process running in the background, which was stopped" in text
    assert gone(int(text.splitlines()[-1]))


def test_a_background_child_that_floods_the_output_is_not_waited_for(root):
    text = run(root, "yes & echo $!")
    assert text.startswith("Exit code 0")
    assert "stopped" in text


def test_who_left_the_group_is_not_waited_for(root, tmp_path):
    """It has a session of its own and still holds the pipe."""
    script = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    print(os.getpid(), flush=True)\n    time.sleep(60)\n"
    )
    (tmp_path / "daemon.py").write_text(script + "time.sleep(0.2)\n")
    text = run(root, f"{PYTHON} daemon.py")
    assert text.startswith("Exit code 0")
    pid = int(text.splitlines()[-1])
    assert alive(pid)
    os.kill(pid, 9)
    assert "has left its process group. That one was not stopped, and may still run" in text
    assert "was stopped" not in text


@pytest.mark.parametrize("command", ["setsid sleep 60 & echo $!; sleep 0.2", "setsid sleep 60 & echo $!; sleep 60"])
def test_a_process_is_said_to_be_stopped_only_if_it_was(root, command):
    """Both one that was left behind and one that has a session of its own; the command may end, or be stopped."""
    text = run(root, f"sleep 60 & echo $!; {command}", timeout=0.6)
    inside, outside = map(int, text.splitlines()[-2:])
    assert gone(inside)
    assert alive(outside)
    os.kill(outside, 9)
    assert "may still run" in text
    assert "which was stopped" not in text


def test_a_child_that_takes_a_moment_to_die_was_stopped(root):
    for _ in range(20):
        assert "[It left a process running in the background, which was stopped.]" in run(root, "sleep 60 & sleep 60 &")


def test_memory_is_bounded(root):
    """20 MB in lines, and 20 MB in one line."""
    tracemalloc.start()
    text = run(
        root, "yes 'a line of some length' | head -c 20000000; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end"
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000_000
    assert len(text) < 40_000
    assert text.endswith("\nend")
    assert "x… [+" in text


def test_many_error_lines_are_bounded(root):
    text = run(root, "for i in $(seq 1 2000); do echo error $i; done")
    assert "1\terror 1\n" in text
    assert "1700\terror 1700\n" in text
    assert "[1,660 error lines more]" in text


def test_environment_holds_no_keys(root, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("GITHUB_TOKEN", "ghp-secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@proxy")
    monkeypatch.setenv("LC_ALL", "C")
    text = run(root, "env", environment={"MINE": "given"})
    assert "secret" not in text
    assert "MINE=given" in text
    assert "LC_ALL=C" in text
    assert "PATH=" in text
    assert "GIT_TERMINAL_PROMPT=0" in text


def test_policy_decides(root, tmp_path):
    asked: list[str] = []

    def policy(command):
        return {"a": "allow", "q": "ask"}.get(command[-1], "deny")

    def ask(command):
        asked.append(command)
        return command.startswith("touch yes")

    shell = Shell(root, policy=policy, ask=ask)
    shell.run("touch a")
    shell.run("touch yes-q")
    for command, why in (("touch no-q", "user did not approve"), ("touch d", "policy of this project")):
        with pytest.raises(DeniedError, match=f"was not run.*{why}"):
            shell.run(command)
    assert asked == ["touch yes-q", "touch no-q"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "yes-q"]


def test_without_a_word_nothing_runs(root, tmp_path):
    silent: list[dict[str, Any]] = [{}, {"policy": "ask"}, {"policy": "deny"}]
    for options in silent:
        with pytest.raises(DeniedError):
            run_command(root, "touch x", **options)
    assert list(tmp_path.iterdir()) == []


def test_options_that_cannot_be(root):
    wrong: list[dict[str, Any]] = [{"policy": "maybe"}, {"timeout": 0}, {"timeout": float("nan")}]
    for options in wrong:
        with pytest.raises(UsageError):
            Shell(root, **options)
    with pytest.raises(UsageError, match="policy"):
        Shell(root, policy=lambda command: "perhaps").run("true")


@pytest.mark.parametrize("command", ["", "  ", "echo \0", "echo \ud800", "x" * 200_000])
def test_commands_that_cannot_be(root, command):
    with pytest.raises(Rejected) as caught:
        run(root, command)
    assert caught.value.path == ("command",)


def test_a_root_that_is_gone(root, tmp_path):
    tmp_path.rename(f"{tmp_path}-moved")
    with pytest.raises(ToolError, match="moved or replaced"):
        run(root, "true")
    os.rename(f"{tmp_path}-moved", tmp_path)


def test_kill_from_another_thread(root):
    execution = Shell(root, policy="allow").start("echo before; sleep 60 & echo $!; sleep 60")
    timer = threading.Timer(0.2, execution.kill)
    timer.start()
    text = execution.wait().text
    timer.join()
    assert text.startswith("Cancelled: the command and its process group were killed. The output is partial.")
    assert "before" in text
    assert gone(int(text.splitlines()[-1]))
    execution.kill()  # once it is over this does nothing
    assert execution.wait().text == text


def test_a_command_that_nobody_waits_for_is_ended_and_collected(root):
    execution = Shell(root, policy="allow").start("sleep 60")
    pid = execution._running.pid
    execution.kill()
    assert gone(pid)


def test_cancelling_the_async_call_ends_the_command(root, tmp_path):
    shell = Shell(root, policy="allow")

    async def main():
        with anyio.move_on_after(0.3) as scope:
            await shell.arun("echo $$ > pid; sleep 60")
        return scope.cancelled_caught

    assert anyio.run(main)
    assert not alive(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_cancelled_call_of_the_tool_tells_what_was_printed(root, tmp_path, backend):
    tool = next(tool for tool in coding_tools(root, policy="allow") if tool.name == "run_command")
    assert tool.function is not None
    function = tool.function

    async def main():
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def call():
                    with pytest.raises(StoppedError) as caught:
                        await function(command="echo PRINTED; touch begun; sleep 60")
                    return caught.value

                async def cancel():
                    while not (tmp_path / "begun").exists():
                        await anyio.sleep(0.01)
                    scope.cancel()

                group.start_soon(cancel)
                return await call()

    text = str(anyio.run(main, backend=backend))
    assert text.startswith("Cancelled: the command and its process group were killed. The output is partial.")
    assert text.endswith("Output:\nPRINTED\nWhat it had done by then stays.")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("how", ["cancel", "timeout", "task"])
def test_the_model_is_told_what_a_stopped_command_had_printed(root, tmp_path, backend, how):
    """By ``cancel`` of the turn, by the executor's own limit, and by the cancellation of its caller."""
    shell = Shell(root, policy="allow")
    limit = 0.5 if how == "timeout" else 60.0
    tool = CodingTool("run_command", "", {}, "external", function=shell.acall, timeout=limit, root=root)
    call = ToolCall("c", "run_command", {"command": "echo PRINTED; touch begun; sleep 60"})

    async def main():
        turn = Executor([tool]).turn([Job(call=call)])
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(turn.run)
                while how != "timeout" and not (tmp_path / "begun").exists():
                    await anyio.sleep(0.01)
                if how == "cancel":
                    turn.cancel("enough")
                elif how == "task":
                    scope.cancel()
        assert scope.cancelled_caught is (how == "task")
        return turn.executions

    (execution,) = anyio.run(main, backend=backend)
    assert execution.result.state is CallState.IN_DOUBT
    assert "\nPRINTED\n" in execution.result.text
    assert "Verify before you repeat it." in execution.result.text
    assert "may still be running" not in execution.result.text


def test_async_call_returns_the_outcome(root):
    assert anyio.run(Shell(root, policy="allow").arun, "echo hello").text.endswith("hello")


def test_no_descriptor_is_lost(root):
    gc.collect()  # what other tests left
    before = open_files()
    for command in ("true", "sleep 60 &", "echo x"):
        run(root, command)
    run(root, "sleep 60", timeout=0.05)
    assert open_files() <= before


# The tail


def tail_of(data: bytes, cuts=(), keep=TAIL_LINES) -> Tail:
    tail, start = Tail(keep), 0
    for cut in (*sorted(cuts), len(data)):
        tail.feed(data[start:cut])
        start = cut
    tail.close()
    return tail


@given(st.lists(st.text("ab \r\n\x1b[m", max_size=10)).map("".join), st.data())
def test_chunking_never_matters(text, data):
    raw = text.encode()
    cuts = data.draw(st.lists(st.integers(0, len(raw)), max_size=6))
    whole, cut = tail_of(raw, keep=3), tail_of(raw, cuts, keep=3)
    assert (whole.lines, whole.total, whole.cut, whole.errors) == (cut.lines, cut.total, cut.cut, cut.errors)


@given(st.lists(st.sampled_from(["a", "error 1", "x failed", "E   assert", "0 errors", ""]), max_size=40), st.data())
def test_error_lines_are_those_of_what_was_cut(lines, data):
    raw = "".join(f"{line}\n" for line in lines).encode()
    tail = tail_of(raw, data.draw(st.lists(st.integers(0, len(raw)), max_size=6)), keep=5)
    wanted = ("error 1", "x failed", "E   assert")
    numbered = [f"{number}\t{line}" for number, line in enumerate(lines[:-5], 1) if line in wanted]
    assert tail.errors == numbered
    assert tail.cut == len(lines[:-5])


@given(st.lists(st.text("abcé", max_size=5), max_size=20))
def test_tail_is_the_last_lines(lines):
    tail = tail_of("".join(f"{line}\n" for line in lines).encode(), keep=4)
    assert tail.lines == lines[-4:]
    assert tail.total == len(lines)


def test_tail_shows_what_a_terminal_would():
    assert tail_of(b"10%\r20%\r100%\nnext\r\n").lines == ["100%", "next"]
    assert tail_of(b"\x1b[31mred\x1b[0m \x1b]0;title\x07x\n").lines == ["red x"]
    assert tail_of(b"\xff\xfe\n").lines == ["\ufffd\ufffd"]


def test_a_long_line_is_clipped():
    (line,) = tail_of(b"x" * 1_000_000 + b"\n").lines
    assert line.startswith("x" * LINE_CHARACTERS + "…")
    assert len(line) < LINE_CHARACTERS + 100


def test_error_lines():
    wanted = [
        "E   assert 1",
        "ValueError: no",
        "make: *** [all] Error 2",
        "thread panicked",
        "FAILED tests/a.py",
        "a: not found",
    ]
    harmless = ["0 errors", "no error", "terrors", "mirror", "the end"]
    tail = tail_of("".join(f"{line}\n" for line in (*wanted, *harmless, "last")).encode(), keep=1)
    assert [line.split("\t")[1] for line in tail.errors] == wanted
