"""``streamparse agent``: as a process, against the local server with recorded turns, on real files.

Every wait is bounded: a process that says nothing is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import anyio
import pytest

import streamparse
from streamparse.agent.coding_tools import Root, coding_tools
from streamparse.agent.compaction import Compacted
from streamparse.agent.events import HistoryCompacted, LoopEnded, Nudged, Retried, ToolFinished, TurnStarted
from streamparse.agent.states import CallState
from streamparse.agent.turns import ToolResult
from streamparse.commands.agent import Permission
from streamparse.commands.agent_view import AgentView
from streamparse.commands.lines import Lines
from streamparse.commands.previews import MOST, preview
from streamparse.commands.sinks import live_view, text_log
from streamparse.demo.agent import ENDPOINT, FILES, TASK, turns
from streamparse.events import Ended, Text, ToolCall
from streamparse.server import Recording, Server
from streamparse.transport.recording import Header, Piece
from tests.clocks import run as run_async
from tests.conftest import ROOT

WAIT = 30  # seconds: no process needs a tenth of it
KEY = "sk-very-secret-0123"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text, encoding="utf-8")
    return root


def command(server: Server, project: Path, *more: str, task: str = TASK, path: str = ENDPOINT) -> list[str]:
    url = f"{server.url}{path}"
    return [sys.executable, "-m", "streamparse", "agent", task, "--url", url, "--root", str(project), *more]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "AGENT_KEY": KEY}


def run(*arguments: Any, stdin: str = "", recordings: Any = None, **options: Any) -> subprocess.CompletedProcess[str]:
    with Server(turns() if recordings is None else recordings, speed=float("inf")) as server:
        return subprocess.run(
            command(server, *arguments, **options),
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=WAIT,
            check=False,
            cwd=ROOT,
            env=environment(),
        )


def logged(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def answers(*texts: str, tools: Any = None) -> list[Recording]:
    """Recorded answers in the words of M2."""
    made = []
    for number, text in enumerate(texts):
        reason = "tool_calls" if "<invoke" in text else "stop"
        made.append(Recording(f"a{number}", Header(tools=tools, finish_reason=reason), [Piece(0.0, text)]))
    return made


def calling(name: str, **arguments: Any) -> str:
    return streamparse.render_calls([{"name": name, "arguments": arguments}])


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/completions"])
def test_a_recorded_conversation_on_every_endpoint(project, path):
    done = run(project, "--yes", path=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "-(-items // size)" in (project / "pages.py").read_text(encoding="utf-8")
    assert "diff      | -    return items // size\n" in done.stdout
    assert "diff      | +    return -(-items // size)" in done.stdout
    assert "command   | $ python3 -m unittest -q\n" in done.stdout
    assert "result    |   Exit code 0." in done.stdout
    assert done.stdout.endswith("done      | answered: the model answered; 4 turns, 4 calls\n")
    assert "\x1b" not in done.stdout


def test_the_log_holds_the_conversation_and_not_the_key(project, tmp_path):
    log = tmp_path / "log.jsonl"
    (project / "pages.py").write_text(FILES["pages.py"] + f"# {KEY}\n", encoding="utf-8")
    done = run(project, "--yes", "--log", str(log), "--key-env", "AGENT_KEY", "--model", "4_answer.jsonl-not")
    assert done.returncode == 0
    records = logged(log)
    assert [record["kind"] for record in records][-1] == "end"
    assert sum(record["kind"] == "request" for record in records) == 4
    last = next(record for record in reversed(records) if record["kind"] == "request")
    roles = [message["role"] for message in last["body"]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "tool"]
    assert KEY not in log.read_text(encoding="utf-8")
    assert "[redacted]" in log.read_text(encoding="utf-8")


@pytest.mark.parametrize(("typed", "edited"), [("y\ny\n", True), ("a\nYES\n", True), ("n\ny\n", False), ("", False)])
def test_it_asks_before_it_writes(project, typed, edited):
    done = run(project, stdin=typed)
    assert done.returncode == 0
    assert ("-(-items" in (project / "pages.py").read_text(encoding="utf-8")) is edited
    assert done.stderr.count("may it run?") == 2
    assert done.stdout.index("+    return -(-items") < done.stdout.index("== Turn 3")  # it was shown before


def test_always_is_for_one_tool(project):
    edits = [calling("write_file", path=f"{name}.txt", content=name) for name in "ab"]
    recorded = answers(*edits, calling("run_command", command="touch c"), "Done.", tools=TYPES)
    done = run(project, stdin="a\nn\n", recordings=recorded)
    assert done.stderr.count("may it run?") == 2  # the first file, and the command
    assert (project / "b.txt").exists()
    assert not (project / "c").exists()


def test_words_are_a_no_with_a_reason(project, tmp_path):
    log = tmp_path / "log.jsonl"
    done = run(project, "--log", str(log), stdin="use math.ceil\nn\n")
    assert done.returncode == 0
    results = [record["text"] for record in logged(log) if record["kind"] == "result"]
    assert results[2] == "Nothing was executed. The call was not allowed: the user said: use math.ceil."
    assert results[3] == "Nothing was executed. The call was not allowed: the user said no."


def test_nothing_outside_the_root(project, tmp_path):
    recorded = answers(calling("write_file", path="../evil.txt", content="x"), "I cannot.", tools=TYPES)
    done = run(project, "--yes", recordings=recorded)
    assert done.returncode == 0
    assert not (tmp_path / "evil.txt").exists()
    assert "write_file: rejected" in done.stdout


def test_max_turns(project):
    done = run(project, "--yes", "--max-turns", "2")
    assert done.returncode == 1
    assert done.stdout.endswith("error     | limit: the run took 2 turns, as many as it may; 2 turns, 3 calls\n")


def test_a_server_that_says_no(project):
    done = run(project, "--yes", recordings=turns()[:1])
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "error     | error: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--root", "nowhere/at/all"], "nowhere/at/all"),
        (["--key-env", "NO_SUCH_VARIABLE"], "expected a key"),
        (["--log", "nowhere/at/all.jsonl"], "cannot write nowhere/at/all.jsonl"),
        (["--max-turns", "0"], "expected a number from 1"),
        (["--wire", "text"], "invalid choice"),
        (["--url", "nonsense"], "--url: expected the endpoint"),
        (["--url", "http://[::bad"], "--url: expected the endpoint"),
    ],
)
def test_wrong_use(arguments, message):
    url = "http://127.0.0.1:1/v1/chat/completions"
    done = subprocess.run(
        [sys.executable, "-m", "streamparse", "agent", "x", "--url", url, *arguments],
        capture_output=True,
        encoding="utf-8",
        timeout=WAIT,
        check=False,
        cwd=ROOT,
        env=environment(),
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


# Ctrl-C


@contextlib.contextmanager
def running(*arguments: Any, recordings: Any, speed: float = float("inf")) -> Iterator[tuple[Any, Server]]:
    with Server(recordings, speed=speed) as server:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command(server, *arguments),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd=ROOT,
            env=environment(),
            encoding="utf-8",
        )
        try:
            yield process, server
        finally:
            process.kill()
            process.communicate(timeout=WAIT)


def wait_for(condition: Any) -> None:
    end = time.monotonic() + WAIT
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.01)


def interrupted(process: Any) -> tuple[int, str]:
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=WAIT)
    return process.returncode, errors


TYPES = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {key: {"type": "string"} for key in keys}},
        },
    }
    for name, keys in {"run_command": ["command"], "write_file": ["path", "content"]}.items()
]


def test_ctrl_c_while_a_command_runs(project, tmp_path):
    log = tmp_path / "log.jsonl"
    recorded = answers(calling("run_command", command="echo PRINTED; touch begun; sleep 1000"), "never", tools=TYPES)
    with running(project, "--yes", "--log", str(log), recordings=recorded) as (process, _):
        wait_for((project / "begun").exists)
        code, errors = interrupted(process)
    assert (code, errors) == (130, "")
    *_, result, end = logged(log)
    assert "Output:\nPRINTED\n" in result["text"]
    assert (result["state"], end["state"], end["reason"]) == ("in_doubt", "cancelled", "interrupted by the user")


def test_ctrl_c_while_the_model_talks(project, tmp_path):
    log = tmp_path / "log.jsonl"
    slow = Recording("slow", Header(), [Piece(0.0, "I think"), Piece(10_000.0, " more.")])
    with running(project, "--log", str(log), recordings=[slow], speed=1.0) as (process, server):
        wait_for(lambda: any(request["state"] == "playing" for request in server.requests))
        wait_for(lambda: log.exists() and log.read_text(encoding="utf-8"))
        assert interrupted(process)[0] == 130
        wait_for(lambda: server.requests[-1]["state"] == "gone")
    assert logged(log)[-1]["state"] == "cancelled"


def test_ctrl_c_while_it_asks(project):
    recorded = answers(calling("run_command", command="touch begun"), "never", tools=TYPES)
    with running(project, recordings=recorded) as (process, _):
        assert process.stderr.read(11) == "run_command"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=WAIT) == 130
    assert not (project / "begun").exists()


def test_a_tool_that_hangs_does_not_keep_the_program_from_ending():
    code = (
        "import threading, sys; from streamparse.commands import agent; agent._GRACE = 0.01; "
        "threading.Thread(target=threading.Event().wait).start(); sys.stdout.write('last words'); "
        "agent._leave_hung({threading.main_thread()}, 130)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=WAIT, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stdout) == (130, "last words")


# On a terminal


def test_on_a_terminal(project):
    from tests.test_cli import on_terminal

    with Server(turns(), speed=float("inf")) as server:
        code, output = on_terminal(*command(server, project, "--yes")[1:])
    assert code == 0
    assert b"\x1b[32m+    return -(-items // size)" in output
    assert output.rstrip().endswith(b"\x1b[?25h") or b"\x1b[?25h" in output[output.rindex(b"\x1b[?25l") :]


# Parts


def test_each_question_has_its_line():
    """Also where all of them are there at once; one that was given up leaves its line to the next."""
    reader, writer = os.pipe()

    async def main():
        with os.fdopen(reader, encoding="utf-8") as stream, os.fdopen(writer, "w", encoding="utf-8") as keys:
            lines = Lines(stream)
            with anyio.move_on_after(0):
                await lines.next()
            keys.write("first\nsecond\n")
            keys.close()
            return [await lines.next() for _ in range(4)]

    assert run_async(main) == ["first\n", "second\n", None, None]


def test_previews(tmp_path):
    (tmp_path / "a.py").write_text("a\nb\nc\n", encoding="utf-8")
    root = Root(tmp_path)

    def shown(name: str, **arguments: Any) -> tuple[str, list[str]]:
        found = preview(ToolCall("c", name, arguments), root)
        return found.label, found.lines

    assert shown("run_command", command="ls\npwd") == ("command", ["$ ls", "$ pwd"])
    edit = ["@@ a.py", "@@ -1,3 +1,3 @@", " a", "-b", "+B", " c"]
    assert shown("edit_file", path="a.py", old_text="b", new_text="B") == ("diff", edit)
    missing = shown("edit_file", path="a.py", old_text="x", new_text="y")
    assert missing == ("diff", ["@@ a.py", "-x", "+y"])
    assert shown("write_file", path="a.py", content="a\nb\nC\n")[1][-2:] == ["-c", "+C"]
    assert shown("write_file", path="new.py", content="n\n")[1] == ["@@ new.py", "@@ -0,0 +1 @@", "+n"]
    assert shown("write_file", path="../x", content="n\n")[1][-1] == "+n"
    assert shown("write_file", path="a.py", content="a\nb\nc\n")[1] == ["a.py: no line is changed"]
    assert shown("write_file", path="a.py", content="a\r\nb\r\nc\r\n")[1] == ["a.py: only line ends are changed"]
    assert shown("write_file", path="new.py", content="a\rb\n")[1][-1] == "+a\rb"
    assert shown("extract_function", path="a.py", start_line=1) == (
        "call",
        ['extract_function: path = "a.py"', "extract_function: start_line = 1"],
    )
    long = preview(ToolCall("c", "write_file", {"path": "b.py", "content": "x\n" * 200}), root)
    assert (len(long.lines), long.lines[-1]) == (202, "+x")
    assert (len(long.bounded.lines), long.bounded.lines[-1]) == (MOST + 1, "… 122 more lines")
    assert shown("run_command")[0] == "command"


def test_a_command_is_shown_whole_and_as_the_shell_reads_it(tmp_path):
    command = "".join(f"echo {number}\n" for number in range(500)) + "echo a\u2028\x0cb\rc"
    shown = preview(ToolCall("c", "run_command", {"command": command}), Root(tmp_path))
    assert "\n".join(line.removeprefix("$ ") for line in shown.lines) == command
    assert len(shown.bounded.lines) == MOST + 1


def test_an_extraction_is_shown_as_a_diff(tmp_path):
    text = "def f(x):\n    a = x + 1\n    b = a * 2\n    return b\n"
    (tmp_path / "a.py").write_text(text, encoding="utf-8")
    root = Root(tmp_path)
    arguments: dict[str, Any] = {"path": "a.py", "start_line": 2, "end_line": 3, "function_name": "g"}
    shown = preview(ToolCall("c", "extract_function", arguments), root)
    assert shown.label == "diff"
    assert shown.lines[0] == "@@ a.py"
    assert shown.lines[1].startswith("@@ -")
    assert "+    b = g(x)" in shown.lines
    assert "+def g(x):" in shown.lines
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == text
    for wrong in ({"path": 3}, {"function_name": "f"}, {"start_line": "2"}, {"more": 1}, {"path": "../a.py"}):
        shown = preview(ToolCall("c", "extract_function", {**arguments, **wrong}), root)
        assert shown.label == "call"


@pytest.mark.parametrize("make", [text_log, live_view])
def test_whoever_is_asked_sees_all_of_it(tmp_path, make, monkeypatch):
    """What stands at the end of a long command is what a bad one would hide."""
    call = ToolCall("c", "run_command", {"command": "true\n" * 300 + "evil " + "x" * 3000 + " last words"})
    (tool,) = (tool for tool in coding_tools(tmp_path) if tool.name == "run_command")
    for yes in (False, True):
        out = StringIO()
        permission = Permission(AgentView(partial(make, out)), Root(tmp_path), yes=yes)
        decision = run_async(partial(permission.approve, call, tool))
        shown = "".join(out.getvalue().split())
        assert decision.answer == ("allow" if yes else "ask")
        assert ("x" * 3000 + "lastwords" in shown) is not yes


def test_a_log_that_is_there_is_not_overwritten(project, tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text("precious\n", encoding="utf-8")
    done = run(project, "--yes", "--log", str(log))
    assert done.returncode == 2
    assert "is there already" in done.stderr
    assert log.read_text(encoding="utf-8") == "precious\n"


@pytest.mark.parametrize("make", [text_log, live_view])
def test_the_view_of_everything(make):
    out = StringIO()
    view = AgentView(lambda: make(out))
    view(TurnStarted(1, 1))
    view(Retried(1, 3))
    view(Text("Hm\x1b[2J"))
    view(Ended("length"))
    view(Nudged(1, "[Go on.]"))
    view(HistoryCompacted(1, Compacted(20_000, 5_000)))
    view(TurnStarted(2, 2))
    long = "\n".join(f"line {number}\x1b[31m" for number in range(40))
    view(ToolFinished(0, "see", ToolResult(id="c", state=CallState.OK, text=long), seconds=1.25))
    view(ToolFinished(0, "see", ToolResult(id="c", state=CallState.TIMEOUT, text="late"), seconds=300.0))
    view(LoopEnded(streamparse.agent.events.EndState.CANCELLED, "enough", "", 2, 1))
    shown = out.getvalue()
    for words in ("sent 3 times", "Go on.", "20,000 tokens", "see: ok, 1.", "28 more lines", "cancelled: enough"):
        assert words in shown
    assert "\x1b[2J" not in shown
    assert "\x1b[31m" not in shown
