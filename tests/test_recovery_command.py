"""``streamparse recover``, as people run it; metrics over a directory; the results of verifiers; the bundled files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from scripts.make_recovery_pack import FOLDER, pack
from streamparse import UsageError
from streamparse.agent.recovery import (
    SCRIPTS,
    End,
    RecoveryCheck,
    TurnClass,
    bundled,
    case_text,
    read_pack,
    read_report,
    stock_case,
)
from streamparse.agent.recovery.mutation import KINDS
from streamparse.agent.recovery.vendors import accuracy, format_of, outcome_of, read_results
from streamparse.commands import recover
from streamparse.recovery_view import bar, table
from streamparse.server import Recording, Server
from streamparse.transport.recording import Header, Piece, write
from tests.conftest import ROOT
from tests.conversations import native, turns_of

WAIT = 60
STOCK = stock_case()
RIGHT = native(turns_of('calls get_weather {"location": "Bern, Switzerland", "unit": "celsius"}')[0])
WRONG = native(turns_of('calls get_weather {"location": "Bern, Switzerland", "unit": "kelvin"}')[0])
ANSWER = "It is 17.5 degrees celsius in Bern."


def run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "streamparse", "recover", *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        timeout=WAIT,
        check=False,
        cwd=ROOT,
        env={**os.environ, **variables},
    )


def saved(folder: Path, texts: list[str]) -> list[Path]:
    """Recordings, one for each text."""
    files = []
    for number, text in enumerate(texts):
        files.append(folder / f"{number}.jsonl")
        files[-1].write_text(write(Header(finish_reason="stop"), [Piece(0.0, text)]), encoding="utf-8")
    return files


def test_a14_the_stock_case_with_a_scripted_model(tmp_path):
    out, html = tmp_path / "report.json", tmp_path / "page.html"
    done = run("--model", "scripted:second_try", "--out", out, "--html", html)
    assert (done.returncode, done.stderr) == (0, "")
    assert "stock  enum   1    repeat_identical fixed used  recovered" in done.stdout
    assert "recovered: 1 of 1 dialogues: 100 % (95 % interval 21 to 100 %)" in done.stdout
    assert "proves no reliability in general" in done.stdout
    report = read_report(out)
    assert [dialogue.end for dialogue in report.dialogues] == [End.RECOVERED]
    assert (report.conditions.source, report.conditions.model) == ("scripted", "scripted:second_try")
    assert html.read_text("utf-8").startswith("<!doctype html>")
    again = tmp_path / "again.json"
    run("--model", "scripted:second_try", "--out", again)
    assert again.read_bytes() == out.read_bytes()


def test_a14_a_model_that_does_not_recover_exits_with_1():
    done = run("--model", "scripted:repeats", "--limit", "2")
    assert done.returncode == 1
    assert "repeat_identical repeat_identical  limit" in done.stdout


def test_a14_the_bundled_pack(tmp_path):
    out = tmp_path / "report.json"
    done = run("--model", "scripted:recovers", "--pack", "bundled", "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert [each.case for each in read_report(out).dialogues] == [case.name for case in bundled()]
    assert done.stdout.count("fixed used") == len(bundled())


def test_a14_a_case_and_a_pack_of_ones_own(tmp_path):
    case = tmp_path / "one.json"
    case.write_text(case_text(STOCK), encoding="utf-8")
    assert run("--model", "scripted:recovers", "--case", case).returncode == 0
    done = run("--model", "scripted:recovers", "--pack", tmp_path, "--repeat", "3")
    assert done.returncode == 0
    assert [line.split()[2] for line in done.stdout.splitlines() if line.startswith("stock ")] == ["1", "2", "3"]


def test_a14_a_recording(tmp_path):
    files = saved(tmp_path, [WRONG, RIGHT, ANSWER])
    for model in (f"recorded:{tmp_path}", "recorded:" + ",".join(map(str, files))):
        done = run("--model", model)
        assert (done.returncode, done.stderr) == (0, ""), model
        assert "repeat_identical fixed used" in done.stdout


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/completions"])
def test_a14_a_live_endpoint(tmp_path, path):
    said = [RIGHT, ANSWER]
    texts = [f"Well.\n</think>\n\n{text}" for text in said]
    header = Header(start="reasoning", finish_reason="stop")
    recordings = [Recording(f"turn_{number}", header, [Piece(0.0, text)]) for number, text in enumerate(texts)]
    out, html = tmp_path / "report.json", tmp_path / "page.html"
    with Server(recordings, speed=float("inf")) as server:
        done = run(
            *("--model", f"{server.url}{path}", "--name", "secret-model-sk-123", "--key-env", "KEY"),
            *("--sampling", '{"temperature": 0.2}', "--out", out, "--html", html),
            KEY="sk-123",
        )
        asked = server.requests
    assert (done.returncode, done.stderr) == (0, "")
    assert "fixed used" in done.stdout
    report = read_report(out)
    assert report.conditions.source == "live"
    assert report.conditions.sampling == {"temperature": 0.2}
    assert len(asked) == 2
    for file in (out, html):
        assert "sk-123" not in file.read_text("utf-8")  # a key that a model, or a name, repeats
        assert "[redacted]" in file.read_text("utf-8")


def test_a_transport_that_fails_is_not_measured(tmp_path):
    with Server([]) as server:
        done = run("--model", f"{server.url}/v1/chat/completions", "--out", tmp_path / "r.json")
    assert done.returncode == 1
    report = read_report(tmp_path / "r.json")
    assert report.dialogues == ()
    assert report.metrics.unmeasured == len(report.unmeasured) == 1
    assert "not measured" in done.stdout
    assert all("%" not in rate.words for rate in report.metrics.rates)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "needs one of --model, --metrics and --verifier"),
        (("--model", "scripted:recovers", "--metrics", "."), "needs one of"),
        (("--model", "gpt"), "expected a URL, scripted:NAME or recorded:FILE"),
        (("--model", "scripted:nobody"), "there is no scripted model 'nobody'; use one of recovers, second_try"),
        (("--model", "recorded:"), "expected a recording for each turn"),
        (("--model", "recorded:nowhere.jsonl"), "cannot read nowhere.jsonl"),
        (("--model", "scripted:recovers", "--case", "nowhere.json"), "cannot read nowhere.json"),
        (("--model", "scripted:recovers", "--case", "a", "--pack", "b"), "give one of them"),
        (("--model", "scripted:recovers", "--case", "pyproject.toml"), "pyproject.toml: expected a recovery case"),
        (("--model", "scripted:recovers", "--pack", "docs"), "expected a directory with cases"),
        (("--model", "scripted:recovers", "--out", "nowhere/r.json"), "cannot write nowhere/r.json"),
        (("--model", "scripted:recovers", "--limit", "0"), "expected a number from 1"),
        (("--model", "scripted:recovers", "--sampling", "[1]"), "expected a JSON object"),
        (("--model", "http://127.0.0.1:9/v1", "--key-env", "NO_SUCH_KEY"), "expected a key"),
        (("--metrics", "docs"), "expected a directory with reports"),
        (("--verifier", "pyproject.toml"), "pyproject.toml, line 1: expected a result"),
    ],
)
def test_wrong_use(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_changed_schema_is_told(tmp_path):
    case = tmp_path / "case.json"
    case.write_text(case_text(STOCK).replace('"fahrenheit"]', '"fahrenheit", "kelvin"]'), encoding="utf-8")
    done = run("--model", "scripted:recovers", "--case", case)
    assert done.returncode == 2
    assert "the tools have changed: their digest was" in done.stderr


def test_a12_metrics_over_a_directory(tmp_path):
    for habit in ("recovers", "repeats"):
        run("--model", f"scripted:{habit}", "--out", tmp_path / f"{habit}.json")
    done = run("--metrics", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2 reports\nrecovered: 1 of 2 dialogues: 50 % (95 % interval 9 to 91 %)\n")
    assert "repeats the error: 3 of 4 turns in which a call was due, cut ones included: 75 %" in done.stdout


def test_the_progress_bar_and_the_table_on_a_terminal():
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    with bar(out, 3) as step:
        for _ in range(3):
            step(None)
    assert "3/3" in out.getvalue()
    shown = Terminal()
    table(shown, ["case", "turns"], [["[red]x[/red]", "fixed used"]])
    assert "[red]x[/red]" in re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue())


def test_every_habit_is_tried_by_the_command(tmp_path):
    """In one process, for speed: each scripted model leads to an end."""
    for name in SCRIPTS:
        for wire in ("chat", "messages", "text", "completions"):
            out = StringIO()
            recover.recover(recover.Options(model=f"scripted:{name}", wire=wire), out)
            assert "stock" in out.getvalue()


# The page of the documentation


def test_the_examples_of_the_documentation_run():
    page = (ROOT / "docs" / "recovery.md").read_text("utf-8")
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "docs/recovery.md", "exec"), {"__name__": "docs_recovery"})
    [(command, shown)] = re.findall(r"```console\n\$ streamparse recover (.*?)\n(.*?)```", page, re.DOTALL)
    assert run(*command.split()).stdout == shown


def test_the_documentation_explains_every_class_and_kind():
    page = (ROOT / "docs" / "recovery.md").read_text("utf-8")
    for word in (*TurnClass, *End, *KINDS):
        assert f"`{word}`" in page, word


# The bundled files


def test_the_generator_makes_the_bundled_cases():
    made = {name: text.encode() for name, text in pack().items()}
    found = {path.name: path.read_bytes() for path in FOLDER.glob("*.json")}
    assert made == found, "run python -m scripts.make_recovery_pack"
    assert {case.name for case in read_pack(FOLDER)} == {case.name for case in bundled()}


@pytest.mark.parametrize("case", bundled(), ids=lambda case: case.name)
def test_a_case_says_what_a_person_needs(case):
    """The request names the right values, and the prepared call is wrong in the fields that it says."""
    check = RecoveryCheck(case)
    [call] = check.report().prepared.calls
    assert call.issues
    for fix in case.fixes:
        value: Any = case.expected
        for step in fix.path:
            value = value.get(step) if isinstance(value, dict) else value[step]
        if isinstance(value, str):
            assert value.casefold() in case.user.casefold()
        elif isinstance(value, int) and not isinstance(value, bool):
            assert str(value) in case.user
    for line in case_text(case).splitlines()[1:-1]:
        assert line.startswith("  "), "one field a line"


# The results of verifiers

TOOLS = [{"type": "function", "function": {"name": STOCK.tool, "parameters": STOCK.tools[0]["parameters"]}}]


def response(
    arguments: str | None, finish: str = "tool_calls", content: str | None = None, name: str = "get_weather"
) -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if arguments is not None:
        call = {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
        message["tool_calls"] = [call]
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


GOOD = '{"location": "Bern", "unit": "celsius"}'
BAD = '{"location": "Bern", "unit": "kelvin"}'
ROWS: list[tuple[Any, dict[str, Any]]] = [
    (response(GOOD), {"tool_calls_valid": True}),
    (response(GOOD), {"tool_calls_valid": True}),
    (response(BAD), {"tool_calls_valid": False}),
    (response(GOOD, name="guess"), {"tool_calls_valid": True}),  # not so: there is no such tool
    (response(GOOD, finish="stop"), {}),  # mislabelled: in no public denominator
    (response('{"location": "Be', finish="length"), {}),  # cut
    (response(None, finish="stop", content="Hello."), {}),  # nothing was due
    (response(None), {}),  # calls are promised, and none came
    (None, {"status": "failed"}),
]


def rows_file(folder: Path, *, minimax: bool = False) -> Path:
    lines = []
    for number, (answer, more) in enumerate(ROWS, 1):
        finish = answer["choices"][0]["finish_reason"] if answer else None
        row = {
            "data_index": number,
            "request": {"model": "m", "messages": [{"role": "user", "content": "?"}], "tools": TOOLS},
            "response": answer or {"error": "timeout"},
            "status": "success",
            "finish_reason": finish,
            "duration_ms": 12,
            **more,
        }
        if minimax:
            row.pop("tool_calls_valid", None)
            row["expected_tool_call"] = number != 7
        lines.append(json.dumps(row))
    path = folder / "results.jsonl"
    path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return path


def test_a12_schema_accuracy_in_the_public_way_and_in_ours(tmp_path):
    rows = read_results(rows_file(tmp_path))
    found = accuracy(rows)
    assert (found.format, found.rows, found.without_response) == ("k2", 9, 1)
    assert (found.public.count, found.public.n) == (2, 5)
    assert (found.ours.count, found.ours.n) == (3, 7)  # with the mislabelled and the cut one
    assert (found.cut.count, found.mislabelled.count) == (1, 2)
    assert found.disagreements == 1


def test_a12_the_other_verifier(tmp_path):
    rows = read_results(rows_file(tmp_path, minimax=True))
    assert format_of(rows) == "minimax"
    found = accuracy(rows)
    assert (found.public.count, found.public.n) == (2, 5)
    assert (found.ours.count, found.ours.n) == (3, 7)
    assert found.disagreements == 0
    due = [outcome.due for row in rows if (outcome := outcome_of(row))]
    assert due == [True] * 6 + [False, True]


def test_a12_the_command_reads_both(tmp_path):
    for minimax in (False, True):
        done = run("--verifier", rows_file(tmp_path, minimax=minimax))
        assert (done.returncode, done.stderr) == (0, "")
        assert "public definition: 2 of 5 responses with finish reason tool_calls: 40 %" in done.stdout
        assert "our denominator: 3 of 7 responses" in done.stdout


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"request": 1}', "\u2028", '{"request": {}, "response": []}'])
def test_rows_that_are_none(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"rows\.jsonl, line 2"):
        read_results(path)


@pytest.mark.parametrize(
    "row",
    [
        {"request": {"tools": "none"}, "response": response(GOOD)},
        {"request": {"tools": [{"name": ""}]}, "response": response(GOOD)},
        {"request": {}, "response": {"choices": []}},
        {"request": {}, "response": {"choices": None}},
    ],
)
def test_rows_that_cannot_be_judged(tmp_path, row):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    assert accuracy(read_results(path)).without_response == 1
