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
    run_cases,
    stock_case,
)
from streamparse.agent.recovery.mutation import KINDS
from streamparse.agent.recovery.vendors import accuracy, format_of, outcome_of, read_results
from streamparse.commands import progress, recover
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


def test_a14_recordings_of_several_runs(tmp_path):
    """Each run has its own: a dialogue never begins in the middle of another one."""
    once = ("--repeat", "2", "--limit", "1")
    saved(tmp_path, [RIGHT, ANSWER, RIGHT, ANSWER])
    done = run("--model", f"recorded:{tmp_path}", *once)
    assert done.returncode == 2
    assert "there are recordings of 1 run, and 2 are asked for" in done.stderr
    runs = tmp_path / "runs"
    for name, texts in {"1": [RIGHT, ANSWER], "2": [WRONG, RIGHT, ANSWER]}.items():
        (runs / name).mkdir(parents=True)
        saved(runs / name, texts)
    done = run("--model", f"recorded:{runs}", *once)
    assert (done.returncode, done.stderr) == (1, "")
    assert [line.split()[3:] for line in done.stdout.splitlines() if line.startswith("stock ")] == [
        ["fixed", "used", "recovered"],
        ["repeat_identical", "limit"],
    ]
    assert f"2 recordings left over in {runs / '2'}" in done.stdout


def test_a14_too_few_recordings_lose_no_dialogue(tmp_path):
    for name, texts in {"1": [RIGHT, ANSWER], "2": [WRONG]}.items():
        (tmp_path / name).mkdir()
        saved(tmp_path / name, texts)
    done = run("--model", f"recorded:{tmp_path}", "--repeat", "2", "--out", tmp_path / "report.json")
    assert (done.returncode, done.stderr) == (1, "")
    report = read_report(tmp_path / "report.json")
    assert [each.end for each in report.dialogues] == [End.RECOVERED]
    assert "the recordings end after 1 turn" in report.unmeasured[0].reason


def test_a_short_header_costs_no_report(tmp_path):
    """What is redacted is what a server or a model wrote, and no word of the report itself."""
    header = Header(start="reasoning", finish_reason="stop")
    texts = [f"Well.\n</think>\n\n{text}" for text in (RIGHT, f"{ANSWER} live")]
    recordings = [Recording(f"turn_{number}", header, [Piece(0.0, text)]) for number, text in enumerate(texts)]
    with Server(recordings, speed=float("inf")) as server:
        url = f"{server.url}/v1/chat/completions"
        done = run("--model", url, "--header", "X-Env: live", "--header", "X-Y: fixed", "--out", tmp_path / "r.json")
    assert (done.returncode, done.stderr) == (0, "")
    report = read_report(tmp_path / "r.json")
    assert report.conditions.source == "live"
    assert report.dialogues[0].turns[1].text == f"{ANSWER} [redacted]"


def test_a_report_that_is_too_deep(tmp_path):
    (tmp_path / "deep.json").write_text('{"conditions": {"sampling": ' + "[" * 100_000, encoding="utf-8")
    done = run("--metrics", tmp_path)
    assert done.returncode == 2
    assert "expected a recovery report" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_long_limit():
    done = run("--model", "scripted:repeats", "--limit", "50")
    assert (done.returncode, done.stderr) == (1, "")
    assert "classes: repeat_identical 50" in done.stdout


def test_all_cases_are_read_before_anything_is_asked(tmp_path):
    pack, out = tmp_path / "pack", tmp_path / "report.json"
    pack.mkdir()
    (pack / "1.json").write_text(case_text(STOCK), encoding="utf-8")
    right = json.loads(case_text(STOCK)) | {"name": "right", "prepared": {"arguments": STOCK.expected}}
    (pack / "2.json").write_text(json.dumps(right), encoding="utf-8")
    with Server([]) as server:
        done = run("--model", f"{server.url}/v1/chat/completions", "--pack", pack, "--out", out)
        assert server.requests == []
    assert done.returncode == 2
    assert "is right in the prepared call" in done.stderr
    assert not out.exists()


def test_the_report_is_written_after_each_dialogue(tmp_path, monkeypatch):
    out = tmp_path / "report.json"
    found = []

    def noted(cases: Any, make: Any, at: Any, *, progress: Any) -> Any:
        def told(done: Any) -> None:
            progress(done)
            found.append(len(read_report(out).dialogues))

        found.append(len(read_report(out).dialogues))
        return led(cases, make, at, progress=told)

    led = run_cases
    monkeypatch.setattr(recover, "run_cases", noted)
    recover.recover(recover.Options(model="scripted:recovers", repeat=2, out=str(out)), StringIO())
    assert found == [0, 1, 2]


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
        (("--metrics", ".", "--html", "page.html"), "--out and --html are for the dialogues"),
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
        (("--model", "scripted:recovers", "--sampling", '{"model": "x"}'), "'model' is no field of the sampling"),
        (("--model", "scripted:recovers", "--sampling", '{"wire": "x"}'), "'wire' is no field of the sampling"),
        (("--model", "scripted:recovers", "--sampling", '{"top_p": NaN}'), "finite numbers"),
        (("--model", "scripted:recovers", "--out", "same.json", "--html", "./same.json"), "give two files"),
        (("--verifier", os.devnull), "expected results, found none"),
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
    first, good, bad = done.stdout.split("\n\n")
    assert first == "2 reports"
    assert good.startswith("model scripted:recovers (scripted, wire chat), limit as each case says, sampling as the")
    assert "recovered: 1 of 1 dialogues: 100 % (95 % interval 21 to 100 %)\n" in good
    assert "repeats the error: 3 of 3 turns in which a call was due, cut ones included: 100 %" in bad
    for name, options in {"again": ("--limit", "2"), "hot": ("--sampling", '{"temperature": 1}')}.items():
        run("--model", "scripted:repeats", *options, "--out", tmp_path / f"{name}.json")
    (tmp_path / "copy.json").write_bytes((tmp_path / "recovers.json").read_bytes())
    done = run("--metrics", tmp_path)
    parts = done.stdout.split("\n\n")
    assert parts[0] == "5 reports, 1 of them the same as another one"
    assert sorted(part.split(", library")[0].split("), ", 1)[1] for part in parts[1:]) == [
        "limit 2, sampling as the server has it",
        "limit as each case says, sampling as the server has it",
        "limit as each case says, sampling as the server has it",
        'limit as each case says, sampling {"temperature": 1}',
    ]
    assert all("of 1 dialogues" in part for part in parts[1:])


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "streamparse.recovery_view", None)


def test_progress_without_a_terminal_and_for_one_step(monkeypatch):
    for total, err in ((3, StringIO()), (1, Terminal())):
        monkeypatch.setattr(sys, "stderr", err)
        with progress.progress(total) as told:
            told(None)
        assert err.getvalue() == ""


def test_progress_on_a_terminal_with_and_without_rich(monkeypatch):
    monkeypatch.setattr(sys, "stderr", err := Terminal())
    with progress.progress(2) as told:
        told(None)
        told(None)
    assert "2/2" in err.getvalue()
    without_rich(monkeypatch)
    monkeypatch.setattr(sys, "stderr", err := Terminal())
    with progress.progress(2) as told:
        told(None)
        told(None)
    assert err.getvalue() == "\r1 of 2\r2 of 2\n"


def test_a_table_with_and_without_rich(monkeypatch):
    rows = [["stock", "fixed used"], ["a longer name", ""]]
    plain = "case           turns\nstock          fixed used\na longer name\n"
    progress.show_table(out := StringIO(), ["case", "turns"], rows)
    assert out.getvalue() == plain
    progress.show_table(out := Terminal(), ["case", "turns"], rows)
    assert "fixed used" in re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert out.getvalue() != plain
    without_rich(monkeypatch)
    progress.show_table(out := Terminal(), ["case", "turns"], rows)
    assert out.getvalue() == plain


def test_the_progress_bar_and_the_table_on_a_terminal():
    out = Terminal()
    with bar(out, 3) as step:
        for _ in range(3):
            step(None)
    assert "3/3" in out.getvalue()
    shown = Terminal()
    table(shown, ["case", "turns"], [["[red]x[/red]", "fixed used"]])
    assert "[red]x[/red]" in re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue())


HABITS = {
    "recovers": "fixed used recovered",
    "second_try": "repeat_identical fixed used recovered",
    "repeats": "repeat_identical repeat_identical repeat_identical limit",
    "other_envelope": "repeat_identical repeat_identical repeat_identical limit",
    "prose": "prose_call prose_call prose_call limit",
    "same_field": "repeat_same_field repeat_same_field missing limit",
    "new_error": "new_error repeat_identical repeat_identical limit",
    "drifts": "drifted repeat_identical repeat_identical limit",
    "invents": "invented_tool invented_tool invented_tool limit",
    "other_tool": "foreign_tool foreign_tool foreign_tool limit",
    "malformed": "malformed malformed malformed limit",
    "cut": "unfinished unfinished unfinished limit",
    "reasons": "unfinished unfinished unfinished limit",
    "gives_up": "missing missing missing limit",
    "ignores": "fixed ignored ignored ignored limit",
    "contradicts": "fixed contradicts contradicts contradicts limit",
    "silent": "fixed missing missing missing limit",
    "cycles": "repeat_same_field repeat_same_field repeat_identical cycle",
}
"""What each scripted model is there for, by the classes of its turns, and the end."""


def test_every_habit_is_tried_by_the_command(tmp_path):
    """In one process, for speed: each scripted model leads to an end."""
    assert set(HABITS) == set(SCRIPTS)
    for name, classes in HABITS.items():
        for wire in ("chat", "messages", "text", "completions"):
            out = StringIO()
            recover.recover(recover.Options(model=f"scripted:{name}", wire=wire), out)
            [line] = [line for line in out.getvalue().splitlines() if line.startswith("stock")]
            assert line.split()[3:] == classes.split(), f"{name} on {wire}"


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
