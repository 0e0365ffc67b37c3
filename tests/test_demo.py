"""The bundled recordings: made by the generator, decoded as their headers say at every cut, played by the demo."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import StringIO
from itertools import pairwise

import msgspec
import pytest

from scripts.make_recordings import FOLDER, SCRIPTS, raw_text, recording, recordings
from streamparse import NativeDecoder
from streamparse.commands.cutting import special_tags, tokens
from streamparse.commands.sinks import text_log
from streamparse.decoding.grammar import load
from streamparse.demo import agent, runner
from streamparse.demo.expectation import differences, outcome
from streamparse.events import ArgumentValue, Event, ToolCallFailed
from streamparse.server import Recording
from streamparse.transport.recording import Header, Piece, read
from tests.conftest import ROOT

BUNDLED = {each.name: (each.header, each.pieces) for each in runner.recordings()}
EACH = pytest.mark.parametrize(("header", "pieces"), BUNDLED.values(), ids=BUNDLED)


def test_the_generator_makes_the_bundled_files():
    made = {name: text.encode() for name, text in recordings().items()}
    turns = [f"agent_turns/{turn.name}" for turn in agent.turns()]
    assert list(made) == [*(f"{name}.jsonl" for name in BUNDLED), *turns]
    assert len(turns) == 4
    for name, content in made.items():
        assert (FOLDER / name).read_bytes() == content, f"{name}: run python -m scripts.make_recordings"


def test_the_generator_checks():
    done = subprocess.run(
        [sys.executable, "-m", "scripts.make_recordings", "--check"],
        capture_output=True,
        timeout=60,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_seed_changes_the_timing_only():
    one, other = (read(recording(replace(SCRIPTS[0], seed=seed)))[1] for seed in (1, 2))
    assert [piece.text for piece in one] == [piece.text for piece in other]
    assert [piece.at for piece in one] != [piece.at for piece in other]


# Decoding


def decode(header: Header, texts: Iterator[str] | list[str]) -> list[Event]:
    decoder = NativeDecoder(header.dialect, tools=header.tools, start=header.start)
    return [event for text in texts for event in decoder.feed(text)] + decoder.close(header.finish_reason)


def cuts(header: Header, pieces: Sequence[Piece]) -> Iterator[list[str]]:
    own = [piece.text for piece in pieces]
    text = "".join(own)
    yield own
    yield [text]
    yield list(text)
    chance = random.Random(7)
    for _ in range(3):
        places = [0, *sorted(chance.sample(range(1, len(text)), k=40)), len(text)]
        yield [text[start:end] for start, end in pairwise(places)]


@EACH
def test_each_decodes_as_expected_at_every_cut(header, pieces):
    for texts in cuts(header, pieces):
        assert outcome(decode(header, texts)) == header.expected
        assert list(differences(header.expected, decode(header, texts))) == []


@EACH
def test_pieces_are_tokens_and_time_goes_on(header, pieces):
    text = "".join(piece.text for piece in pieces)
    assert [piece.text for piece in pieces] == list(tokens(text, special_tags(load(header.dialect))))
    times = [piece.at for piece in pieces]
    assert times == sorted(times)
    assert 0 < times[0] < 1
    gaps = [after - before for before, after in pairwise(times)]
    assert max(gaps) < 0.5
    assert len({round(gap, 3) for gap in gaps}) > 3  # jitter


def test_what_the_recordings_show():
    expected = {header.title: header.expected or {} for header, _ in BUNDLED.values()}
    parallel, large, cut, typed = expected.values()
    assert parallel["reasoning"].count("\n\n") > 0
    assert [call["name"] for call in parallel["calls"]] == ["read_file", "search", "run_command"]
    content = large["calls"][0]["arguments"]["content"]
    assert 8_000 <= len(content) <= 20_000
    assert content.count("</parameter>") > 10
    assert content.count("<minimax:tool_call>\n<invoke ") >= 2
    assert [call["code"] for call in cut["failed"]] == ["unclosed_parameter"]
    assert len(cut["calls"]) == 1
    arguments = {**typed["calls"][0]["arguments"], **typed["calls"][1]["arguments"]}
    assert [type(arguments[key]) for key in ("edits", "dry_run", "timeout", "env", "stdin")] == [
        list,
        bool,
        float,
        dict,
        type(None),
    ]


def test_typed_arguments_come_by_path():
    header, pieces = BUNDLED["4_typed_arguments"]
    events = decode(header, [piece.text for piece in pieces])
    values = {event.path: event.value for event in events if isinstance(event, ArgumentValue) and event.index == 0}
    assert values["edits", 0, "start_line"] == 18
    assert values["edits", 2, "replacement"].startswith("    # A cursor")
    paths = list(values)
    assert paths.index(("edits", 0, "start_line")) < paths.index(("edits", 1, "end_line")) < paths.index(("edits",))


def test_a_cut_value_names_its_place():
    header, pieces = BUNDLED["3_cut_stream"]
    [error] = [event.error for event in decode(header, [p.text for p in pieces]) if isinstance(event, ToolCallFailed)]
    assert error.offset == len(raw_text(SCRIPTS[2]))
    assert error.open == ("calls", "call", "argument")
    assert "'</parameter>'" in error.expected


# Playing


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "streamparse", "demo", *arguments],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        cwd=ROOT,
    )


def test_the_demo_without_a_terminal_is_quick():
    start = time.monotonic()
    done = demo()
    assert time.monotonic() - start < 20
    assert (done.returncode, done.stderr) == (0, "")
    for header, _ in BUNDLED.values():
        assert header.title in done.stdout
        assert header.look in done.stdout
    assert "call 1    | failed\nerror     | unclosed_parameter\n" in done.stdout
    assert "as expected: this answer was cut" in done.stdout
    assert "\ndemo      | 4 of 4 recordings came out as expected\n" in done.stdout
    mended = done.stdout[done.stdout.index("== An agent") :].splitlines()
    assert "diff      | +    return -(-items // size)  # rounded up: what is left over needs a page, too" in mended
    assert any(re.match(r"result    \|   Exit code 0\. Took \d", line) for line in mended)
    assert "demo      | the agent mended the project, and its tests pass" in mended
    recovery = done.stdout[done.stdout.index("== The recovery check") :].splitlines()
    assert [line.split()[-1] for line in recovery if "| turn " in line] == ["repeat_identical", "fixed", "used"]
    assert done.stdout.endswith("demo      | the stock case ended: recovered, after 3 turns\n")
    assert "\x1b" not in done.stdout


def test_the_demo_on_a_terminal_takes_less_than_40_seconds():
    assert 15 < sum(pieces[-1].at for _, pieces in BUNDLED.values()) < 38


def test_the_demo_in_ci_has_no_live_view(monkeypatch):
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("TERM", "xterm")
    assert runner.play_all(out)
    assert "\x1b" not in out.getvalue()


def test_the_demo_goes_over_http_on_every_wire():
    out = StringIO()
    assert runner.play_all(out, plain=True)
    asked = [line.split("/", 3)[3] for line in out.getvalue().splitlines() if "POST http://" in line]
    assert set(asked) == {"v1/chat/completions", "v1/completions", "v1/messages"}
    assert len(asked) == len(BUNDLED) + 1  # and the agent


def test_an_agent_that_mends_nothing_fails_the_demo(monkeypatch):
    out = StringIO()
    monkeypatch.setattr(agent, "FILES", {**agent.FILES, "pages.py": "def page_count(items, size):\n    return 0\n"})
    assert not agent.play_agent(lambda: text_log(out), float("inf"))
    assert "edit_file: rejected" in out.getvalue()
    assert "the agent ended" in out.getvalue()


def play_wrong(*wrong: Recording) -> tuple[bool, str]:
    """Whether the demo of these recordings is content, and what it shows."""
    out = StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "recordings", lambda: iter(wrong))
        patch.setattr(runner, "PARTS", ())
        return runner.play_all(out), out.getvalue()


def test_a_difference_is_told():
    header, pieces = BUNDLED["4_typed_arguments"]
    expected = dict(header.expected or {}, text="Three edits in two goes, then the tests.", more=1)
    good, shown = play_wrong(Recording("a", msgspec.structs.replace(header, expected=expected), pieces))
    assert not good
    lines = [line for line in shown.splitlines() if line.startswith(("error     | text", "error     | more"))]
    assert lines[0].startswith('error     | text: expected "Three edits in two goes, then the tests."')
    assert lines[0].endswith('found "Three edits in one go, then the tests."')
    assert lines[1] == "error     | more: expected 1, found null"


def test_a_difference_fails_the_demo():
    header, pieces = BUNDLED["3_cut_stream"]
    wrong = msgspec.structs.replace(header, expected={})
    good, shown = play_wrong(Recording("a", header, pieces), Recording("b", wrong, pieces))
    assert not good
    assert "1 of 2 recordings came out as expected" in shown
    assert not play_wrong()[0]
