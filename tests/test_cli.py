"""The command line, run as people and programs run it: as a process, on files, pipes and terminals.

Every wait is bounded: a process that says nothing is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import streamparse
from streamparse.commands.cutting import pieces, special_tags, tokens
from streamparse.commands.log import TextLog
from streamparse.commands.sources import paced
from streamparse.commands.wording import one_line, path_words, visible
from streamparse.decoding.grammar import dialects, load
from streamparse.errors import UsageError
from streamparse.events import Event, dumps, loads
from streamparse.transport.recording import Header, Piece, RecordingReader, read, write
from streamparse.view import LiveView
from tests.chunks import join
from tests.conftest import ROOT

WAIT = 30  # seconds: no process needs a tenth of it

CALL = (
    "<minimax:tool_call>\n"
    '<invoke name="get_weather">\n<parameter name="city">Bern</parameter>\n<parameter name="days">3</parameter>\n'
    "</invoke>\n</minimax:tool_call>"
)
ANSWER = f"I think.\n</think>\n\nLet me see.\n{CALL}"
CUT_ANSWER = ANSWER[: ANSWER.index("ern</")]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
        },
    }
]
FOLDER = ROOT / "streamparse" / "demo"


def environment(**variables: str) -> dict[str, str]:
    """Ours, so that nothing of the caller's terminal or CI shows."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "COLUMNS", "LINES")}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **variables}


def run(*arguments: str | Path, stdin: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
    """The command, with what it wrote."""
    command = [sys.executable, "-m", "streamparse", *map(str, arguments)]
    return subprocess.run(
        command, input=stdin, capture_output=True, timeout=WAIT, check=False, cwd=ROOT, env=environment(**variables)
    )


@contextlib.contextmanager
def running(*arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command while it runs, with pipes. Killed at the end, if it is still there."""
    command = [sys.executable, "-m", "streamparse", *map(str, arguments)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT, env=environment(), bufsize=0)
    try:
        yield process
    finally:
        process.kill()
        process.wait(WAIT)
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def send(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def next_line(process: subprocess.Popen[bytes]) -> bytes:
    """One line of output, read byte by byte, so that nothing of the next one is taken away."""
    assert process.stdout is not None
    line = b""
    end = time.monotonic() + WAIT
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise TimeoutError(f"no line of output after {WAIT} seconds, only {line!r}")
        byte = os.read(process.stdout.fileno(), 1)
        if not byte:
            break
        line += byte
    return line


def events_of(output: bytes) -> list[Event]:
    return [loads(line) for line in output.splitlines()]


@pytest.fixture
def answer(tmp_path) -> Path:
    path = tmp_path / "answer.txt"
    path.write_text(ANSWER, encoding="utf-8", newline="\n")
    return path


@pytest.fixture
def tools(tmp_path) -> Path:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS), encoding="utf-8")
    return path


# Decode -------------------------------------------------------------------------------------------------------------


def test_a_file_as_json_lines(answer, tools):
    done = run("decode", answer, "--start", "reasoning", "--tools", tools, "--finish-reason", "stop")
    assert (done.returncode, done.stderr) == (0, b"")
    expected = streamparse.decode(ANSWER, tools=TOOLS, start="reasoning", finish_reason="stop")
    assert done.stdout.decode() == "".join(f"{dumps(event)}\n" for event in expected)


@pytest.mark.parametrize("chunk", ["1", "7", "token", "all"])
def test_cutting_makes_no_difference(answer, chunk):
    whole = run("decode", answer, "--start", "reasoning")
    cut = run("decode", answer, "--start", "reasoning", "--chunk", chunk)
    assert join(events_of(cut.stdout)) == join(events_of(whole.stdout))


def test_tools_may_stand_in_a_request(answer, tmp_path):
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"model": "m", "tools": TOOLS}), encoding="utf-8")
    done = run("decode", answer, "--start", "reasoning", "--tools", request)
    [call] = [event.call for event in events_of(done.stdout) if isinstance(event, streamparse.ToolCallFinished)]
    assert call.arguments == {"city": "Bern", "days": 3}


def test_a_dialect_by_name():
    text = b'<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    done = run("decode", "-", "--dialect", "hermes", stdin=text)
    assert [event.call.name for event in events_of(done.stdout) if isinstance(event, streamparse.ToolCallFinished)] == [
        "now"
    ]
    assert done.returncode == 0


def test_a_failed_call_is_exit_code_1(tmp_path):
    cut = tmp_path / "cut.txt"
    cut.write_text(CUT_ANSWER, encoding="utf-8")
    done = run("decode", cut, "--start", "reasoning", "--finish-reason", "length")
    assert (done.returncode, done.stderr) == (1, b"")
    failed, ended = events_of(done.stdout)[-2:]
    assert isinstance(failed, streamparse.ToolCallFailed)
    assert failed.error.code == "unclosed_parameter"
    assert ended == streamparse.Ended("length", None, False)


def test_an_error_without_a_call_is_exit_code_1():
    assert run("decode", "-", "--start", "reasoning", stdin=b"still thinking").returncode == 1


def test_bytes_that_are_no_utf8_and_a_byte_order_mark():
    done = run("decode", "-", stdin=b"\xef\xbb\xbfa\xff\xe2\x82")
    assert (
        "".join(event.text for event in events_of(done.stdout) if isinstance(event, streamparse.Text))
        == "a\ufffd\ufffd"
    )
    assert done.returncode == 0


def test_line_ends_are_data(tmp_path):
    path = tmp_path / "windows.txt"
    path.write_bytes(b"one\r\ntwo\rthree\n")
    assert join(events_of(run("decode", path).stdout))[0] == streamparse.Text("one\r\ntwo\rthree\n")


def test_output_does_not_depend_on_the_locale():
    done = run("decode", "-", stdin="日本 — ok".encode(), PYTHONIOENCODING="ascii", LC_ALL="C")
    assert events_of(done.stdout)[0] == streamparse.Text("日本 — ok")
    log = run("decode", "-", "--format", "text", stdin="日本".encode(), PYTHONIOENCODING="ascii", LC_ALL="C")
    assert log.stdout.startswith(rb"text      | \u65e5\u672c")


# Input that is still coming -----------------------------------------------------------------------------------------


def test_events_come_before_the_input_ends():
    with running("decode", "-", "--start", "reasoning") as process:
        send(process, b"I th")
        assert loads(next_line(process)) == streamparse.Reasoning("I th")
        send(process, b"ink\xe2\x80")
        assert loads(next_line(process)) == streamparse.Reasoning("ink")
        send(process, b"\xa6")  # the rest of a character
        assert loads(next_line(process)) == streamparse.Reasoning("…")
        send(process, b'</think>\n<minimax:tool_call>\n<invoke name="f">\n<parameter name="k">v')
        assert loads(next_line(process)) == streamparse.ToolCallStarted(0, "call_0", "f")
        send(process, b"alue</parameter>\n</invoke>")
        assert process.poll() is None
        assert process.stdin is not None
        process.stdin.close()
        rest = iter(lambda: next_line(process), b"")
        assert any(isinstance(loads(line), streamparse.ToolCallFinished) for line in rest)
        assert process.wait(WAIT) == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_read_as_it_comes(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with running("decode", pipe) as process, open(pipe, "wb", buffering=0) as writer:
        writer.write(b"Hello")
        assert loads(next_line(process)) == streamparse.Text("Hello")


def test_a_reader_that_goes_away(tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("text\n" * 200_000, encoding="utf-8")
    with running("decode", path, "--chunk", "5") as process:
        next_line(process)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(WAIT) == 141
        assert process.stderr.read() == b""


def test_interrupt():
    with running("decode", "-") as process:
        send(process, b"Hello")
        next_line(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_output_that_cannot_be_written(answer):
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "streamparse", "decode", answer]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, timeout=WAIT, check=False, cwd=ROOT, env=environment()
        )
    assert done.returncode == 2
    assert done.stderr.startswith(b"streamparse: cannot write: ")
    assert done.stderr.count(b"\n") == 1


# Wrong use ----------------------------------------------------------------------------------------------------------

BROKEN = {
    "no JSON": ('[\n  {"name": f}\n]', ["tools.json:2:12: expected JSON", "found 'f}'"]),
    "the end": ('[{"name": "f"},', ["tools.json:1:16: expected JSON", "found the end of the file"]),
    "no list": ('"f"', ["tools.json: expected a list of tool definitions, found a string"]),
    "an object": ('{"name": "f"}', ["tools.json: expected a list of tool definitions, found an object"]),
    "no name": ('[{"name": "f"}, {"parameters": {}}]', ["tools.json: tools[1]"]),
}


@pytest.mark.parametrize(("content", "words"), BROKEN.values(), ids=BROKEN)
def test_broken_tools(answer, tmp_path, content, words):
    path = tmp_path / "tools.json"
    path.write_text(content, encoding="utf-8")
    check_misuse(["decode", answer, "--tools", path], words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["COMMAND"]),
        (["frobnicate"], ["frobnicate"]),
        (["decode"], ["FILE"]),
        (["decode", "-", "--color"], ["--color"]),
        (["decode", "-", "--chunk", "0"], ["--chunk", "from 1, 'token' or 'all', not '0'"]),
        (["decode", "-", "--chunk", "words"], ["'token' or 'all', not 'words'"]),
        (["decode", "-", "--start", "middle"], ["--start", "'text'", "'reasoning'"]),
        (["decode", "-", "--speed", "-1"], ["expected a number above 0, not '-1'"]),
        (["decode", "-", "--speed", "nan"], ["expected a number above 0, not 'nan'"]),
        (["decode", "-", "--speed", "2"], ["--speed: expected a recording, and standard input is text"]),
        (["decode", "no such file"], ["cannot read no such file: No such file or directory"]),
        (["decode", "."], ["cannot read .: Is a directory"]),
        (["decode", "-", "--tools", "none.json"], ["cannot read none.json: No such file"]),
        (["decode", "-", "--dialect", "klingon"], ["no dialect 'klingon'", *dialects()]),
        (["grammar", "klingon"], ["no dialect 'klingon'", *dialects()]),
        (["grammar", "none.lark"], ["no dialect 'none.lark'"]),
    ],
)
def test_misuse(arguments, words):
    check_misuse(arguments, words)


def check_misuse(arguments: list, words: list[str]) -> None:
    done = run(*arguments)
    message = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b"")
    assert [word for word in words if word not in message] == []
    assert "Traceback" not in message


def test_misuse_is_told_without_waiting_for_input():
    with running("decode", "-", "--dialect", "klingon") as process:
        assert process.wait(WAIT) == 2


def test_help_and_version():
    assert b"decode" in run("--help").stdout
    assert run("--version").stdout.startswith(b"streamparse ")


def test_the_command_is_light():
    code = "import sys, streamparse.cli; print([name for name in ('rich', 'lark') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=WAIT, check=True, cwd=ROOT)
    assert done.stdout.strip() == b"[]"


# Recordings ---------------------------------------------------------------------------------------------------------

HEADER = Header(title="A call", start="reasoning", tools=TOOLS, finish_reason="stop")
PIECES = [Piece(0.0, "I think.\n</th"), Piece(0.01, "ink>\n\nLet me see."), Piece(0.02, f"\n{CALL}")]


@pytest.fixture
def recorded(tmp_path) -> Path:
    path = tmp_path / "call.jsonl"
    path.write_text(write(HEADER, PIECES), encoding="utf-8")
    return path


def test_a_recording_brings_its_options(recorded):
    done = run("decode", recorded)
    decoder = streamparse.NativeDecoder(tools=TOOLS, start="reasoning")
    expected = [event for piece in PIECES for event in decoder.feed(piece.text)] + decoder.close("stop")
    assert events_of(done.stdout) == expected
    assert run("decode", "-", stdin=recorded.read_bytes()).stdout == done.stdout
    assert run("decode", recorded, "--speed", "2").stdout == done.stdout


def test_options_come_before_the_recording(recorded):
    done = run("decode", recorded, "--start", "text", "--finish-reason", "length", "--chunk", "all")
    assert dumps(events_of(done.stdout)[0]).startswith('{"type": "text", "text": "I think.')
    assert events_of(done.stdout)[-1] == streamparse.Ended("length", None, True)


def test_recordings_are_read_as_they_come(recorded):
    with running("decode", "-") as process:
        send(process, b"".join(recorded.read_bytes().splitlines(keepends=True)[:2]))
        assert loads(next_line(process)) == streamparse.Reasoning("I think.\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"streamparse": "recording", "version": 2}', "line 1: expected the header"),
        ('{"streamparse": "transcript"}\n', "line 1: expected the header"),
        (write(HEADER, []) + '\n{"at": "soon", "text": ""}\n', "line 3: expected a piece"),
        (write(HEADER, []) + '{"at": 0.1, "te', "line 2: expected a piece"),
        (write(HEADER, [Piece(2, "a"), Piece(1, "b")]), "line 3: expected 'at' to be at least 2, found 1"),
    ],
)
def test_broken_recordings(tmp_path, text, words):
    path = tmp_path / "broken.jsonl"
    path.write_text(text, encoding="utf-8")
    done = run("decode", path)
    assert done.returncode == 2
    assert f"{path}, {words}" in done.stderr.decode()


def test_text_that_begins_like_a_recording():
    done = run("decode", "-", stdin=b'{"streamp')
    assert events_of(done.stdout)[0] == streamparse.Text('{"streamp')


@given(st.lists(st.text()), st.text(), st.randoms(use_true_random=False))
def test_recordings_read_back_in_any_pieces(texts, title, random):
    header, pieces_ = Header(title=title), [Piece(float(at), text) for at, text in enumerate(texts)]
    text = write(header, pieces_)
    assert read(text) == (header, pieces_)
    reader = RecordingReader()
    found = []
    while text:
        size = random.randint(1, 40)
        found += reader.feed(text[:size])
        text = text[size:]
    assert found + reader.close() == pieces_


def test_a_file_without_a_header():
    with pytest.raises(UsageError, match="line 1: expected the header"):
        read("\n")


def test_paced():
    now = 100.0
    waits = []

    def sleep(seconds: float) -> None:
        nonlocal now
        waits.append(round(seconds, 6))
        now += seconds

    recorded = [Piece(1.0, "a"), Piece(1.0, "b"), Piece(3.0, "c")]
    assert list(paced(recorded, 4.0, clock=lambda: now, sleep=sleep)) == recorded
    assert waits == [0.25, 0.5]
    assert list(paced(recorded, float("inf"), clock=lambda: now, sleep=sleep)) == recorded
    assert waits == [0.25, 0.5]


# Tokens -------------------------------------------------------------------------------------------------------------


def test_special_tags_come_from_the_table():
    tags = special_tags(load("minimax_m2"))
    assert {"<think>", "</think>", "<minimax:tool_call>", "</minimax:tool_call>"} <= set(tags)
    assert not {"<invoke ", "</invoke>", "<parameter ", "</parameter>", "</mm:think>", "\n"} & set(tags)
    assert {"<tool_call>", "</tool_call>"} <= set(special_tags(load("hermes")))
    assert {"<tool_call>", "</tool_call>"} <= set(special_tags(load("qwen3_coder")))


def test_tokens_look_like_tokens():
    cut = list(tokens('Sure, 12345 calls.</think>\n\n<invoke name="f">', special_tags(load("minimax_m2"))))
    assert cut == [
        "Sure",
        ",",
        " ",
        "123",
        "45",
        " calls",
        ".",
        "</think>",
        "\n\n",
        "<",
        "invoke",
        " name",
        '="',
        "f",
        '">',
    ]


@given(st.text(st.sampled_from("ab Z0_\n\t .,<>/=日é\u0301\r") | st.characters()))
def test_tokens_joined_are_the_text(text):
    for special in ((), special_tags(load("minimax_m2"))):
        cut = list(tokens(text, special))
        assert "".join(cut) == text
        assert "" not in cut


@given(st.lists(st.text()), st.sampled_from([None, 1, 3, "token", "all"]))
def test_pieces_joined_are_the_text(texts, cut):
    assert "".join(pieces(texts, cut, load("minimax_m2"))) == "".join(texts)


# What people read ---------------------------------------------------------------------------------------------------

NASTY = "\x1b[2J\x1b]0;owned\x07 \r\x9b31m \u202egnp.exe \u2028 \x7f\x00"


@given(st.text())
def test_nothing_that_is_shown_drives_a_terminal(text):
    shown = visible(text + NASTY)
    assert all(character in "\n\t" or character.isprintable() or ord(character) >= 0xA0 for character in shown)
    assert not set(shown) & set("\x1b\r\x9b\u202e\u2028\x7f")
    assert not set(one_line(text + NASTY)) & set("\n\t")
    shown.encode()


def test_a_log_and_a_view_of_control_characters():
    text = f'{NASTY}\n<minimax:tool_call>\n<invoke name="f{NASTY}">\n<parameter name="k{NASTY}">{NASTY}'
    log = run("decode", "-", "--format", "text", "--finish-reason", NASTY.replace("\0", ""), stdin=text.encode())
    assert not set(log.stdout.decode()) - {"\n"} & set("".join(map(chr, [*range(32), 0x7F, 0x9B, 0x202E, 0x2028])))
    assert rb"\x1b[2J" in log.stdout
    console = recording_console(color_system=None, force_terminal=False)
    with LiveView(console=console) as view:
        view.show(streamparse.decode(text))
    assert not set(shown(console)) & set("\x1b\r\x07\x9b\x7f\u202e\u2028")


@pytest.mark.parametrize(
    ("path", "words"),
    [(("a", 0, "b"), "a[0].b"), (("a b", "c"), '["a b"].c'), ((0,), "[0]"), ((), "arguments"), (("\n",), '["\\n"]')],
)
def test_path_words(path, words):
    assert path_words(path) == words


LOG = """\
reasoning | I think.
text      | Let me see.
call 0    | get_weather (call_0)
call 0    |   city: "Bern"
call 0    |   days: 3
call 0    | sealed
call 1    | write (call_1)
deviation | call 1: unknown_tool at 216: "write"
deviation | call 1: undeclared_argument at 241 in body: "body"
call 1    |   body:
call 1    |     one
call 1    |
call 1    |     two
call 1    |     (cut here: 3 lines, 8 characters)
call 1    | failed
error     | unclosed_parameter
"""


def test_the_log(tmp_path, tools):
    path = tmp_path / "answer.txt"
    more = '<invoke name="write">\n<parameter name="body">one\n\ntwo'
    path.write_text(ANSWER.replace("</minimax:tool_call>", more), encoding="utf-8", newline="\n")
    for chunk in ("all", "1"):
        options = ["--start", "reasoning", "--tools", tools, "--format", "text", "--chunk", chunk]
        done = run("decode", path, *options)
        lines = done.stdout.decode().splitlines(keepends=True)
        stable = [line for line in lines if not line.startswith("deviation")]
        assert "".join(stable[: LOG.count("\n") - 2]) == "".join(
            line for line in LOG.splitlines(keepends=True) if not line.startswith("deviation")
        )
        assert lines[-3].startswith("error     |   expected '</parameter>' or text")
        assert lines[-1].startswith("end       | not clean: 1 call sealed; 1 failed")
        assert done.returncode == 1


def test_a_log_with_long_strings_left_out():
    out = StringIO()
    content = "".join(f"line {number}\n" for number in range(20))
    text = CALL.replace("Bern", content)
    with TextLog(out, elide=2) as log:
        for event in streamparse.decode(text):
            log.show([event])
    lines = [line.removeprefix("call 0    | ") for line in out.getvalue().splitlines()]
    assert lines[1:-3] == [
        "  city:",
        "    line 0",
        "    line 1",
        "    … 16 more lines …",
        "    line 18",
        "    line 19",
        "    (20 lines, 150 characters)",
    ]


# The live view ------------------------------------------------------------------------------------------------------


def recording_console(**options) -> Console:
    return Console(file=StringIO(), width=60, height=24, record=True, highlight=False, legacy_windows=False, **options)


def shown(console: Console) -> str:
    return console.export_text(clear=False, styles=False)


def styled(console: Console, words: str) -> str:
    """The escape codes that stand before these words."""
    text = console.export_text(clear=False, styles=True)
    assert words in text
    return text[: text.index(words)].rpartition("\x1b")[2]


@pytest.fixture
def console() -> Console:
    return recording_console(force_terminal=True, color_system="standard", no_color=False)


def test_the_view_of_prose(console):
    with LiveView(console=console) as view:
        view.show(streamparse.decode("I think\nso.\n</think>\n\nHello\n\n\nyou", start="reasoning"))
    assert shown(console).split("\n")[:7] == ["I think", "so.", "", "Hello", "", "", "you"]
    assert "2;3m" in styled(console, "so.")
    assert "2;3m" not in styled(console, "you")


EDIT = {"name": "write", "parameters": {"properties": {"path": {"type": "string"}, "edits": {"type": "array"}}}}


def test_the_view_of_a_growing_call():
    decoder = streamparse.NativeDecoder(tools=[EDIT])
    console = recording_console(force_terminal=False)
    view = LiveView(console=console)

    def growing(text: str) -> list[str]:
        view.show(decoder.feed(text))
        with console.capture() as capture:
            console.print(view._growing())
        return [line.rstrip() for line in capture.get().splitlines()]

    assert growing('<minimax:tool_call>\n<invoke name="wri') == []
    assert growing('te">\n<parameter name="path">a') == ["… write  call_0", '  path: "a▌']
    lines = growing("".join(f"/{'b' * 70}\n{number}" for number in range(12)))
    assert lines[1] == "  path: 13 lines, 879 characters"
    assert lines[2] == "    … 5 lines above"
    assert lines[3] == "    │ 4/" + "b" * 51 + "…"
    assert lines[-1] == "    │ 11"
    assert len(lines) == 11
    lines = growing('</parameter>\n<parameter name="edits">[{"line": 7, "text": "x"}, {"line": 1')
    assert lines[-2:] == ["  edits[0].line: 7", '  edits[0].text: "x"']


def test_the_growing_lines_fit_on_the_screen():
    decoder = streamparse.NativeDecoder(tools=[EDIT])
    console = recording_console(force_terminal=False)
    view = LiveView(console=console)
    view.show(decoder.feed('<minimax:tool_call>\n<invoke name="write">\n<parameter name="edits">'))
    view.show(decoder.feed(json.dumps([list(range(100))])))
    with console.capture() as capture:
        console.print(view._growing())
    lines = capture.get().splitlines()
    assert len(lines) == console.height - 4
    assert lines[0].startswith("… write")
    assert lines[-1] == "  edits[0][99]: 99"


def test_the_view_of_an_error(console):
    with LiveView(console=console) as view:
        view.show(streamparse.decode(CUT_ANSWER, start="reasoning", finish_reason="length", tools=TOOLS))
    text = shown(console)
    assert '  city: "B"  cut here' in text
    assert "✗ unclosed_parameter" in text
    assert f"    end of stream at {len(CUT_ANSWER)} in calls > call > argument" in text
    assert "    expected '</parameter>' or text" in text
    assert "31m" in styled(console, "✗ unclosed_parameter")
    assert "31m" in styled(console, "    expected '</parameter>'")
    assert "not clean: 0 calls sealed; 1 failed" in text


def test_the_view_of_deviations(console):
    with LiveView(console=console) as view:
        view.show(streamparse.decode(ANSWER.replace("get_weather", "forecast"), start="reasoning", tools=TOOLS))
    assert "! unknown_tool at " in shown(console)
    assert "33m" in styled(console, "! unknown_tool")
    assert "✓ forecast  call_0  sealed, not trusted" in shown(console)


def test_a_long_line_of_prose_is_not_kept():
    console = recording_console(force_terminal=False)
    with LiveView(console=console) as view:
        for _ in range(2_000):
            view.show([streamparse.Text("word " * 4)])
        assert len(view._prose._line) <= 2_020
    assert shown(console).split() == ["word"] * 8_000


# A real terminal ----------------------------------------------------------------------------------------------------

pty = pytest.importorskip("pty", reason="no pseudo-terminals here")


def on_terminal(*command: str | Path, until: bytes = b"", **variables: str) -> tuple[int | None, bytes]:
    """The exit code and the output of a command on a terminal; without its end, once ``until`` was seen."""
    ours, theirs = pty.openpty()
    variables = {"COLUMNS": "80", "LINES": "24", **variables}
    process = subprocess.Popen(
        [sys.executable, *map(str, command)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env=environment(**variables),
    )
    os.close(theirs)
    output = b""
    end = time.monotonic() + WAIT
    try:
        while not (until and until in output):
            ready, _, _ = select.select([ours], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError(output.decode(errors="replace"))
            try:
                data = os.read(ours, 65536)
            except OSError:  # the terminal was hung up: the end
                break
            if not data:
                break
            output += data
        if until and until in output:
            process.send_signal(signal.SIGINT)
        return process.wait(WAIT), output
    finally:
        process.kill()
        process.wait(WAIT)
        os.close(ours)


def test_the_live_view_on_a_terminal(recorded):
    code, output = on_terminal("-m", "streamparse", "decode", recorded, "--chunk", "1", "--speed", "0.1")
    assert code == 0
    assert b"\x1b[?25l" in output  # the cursor is hidden, and comes back
    assert output.rindex(b"\x1b[?25h") > output.rindex(b"\x1b[?25l")
    assert "✓ ".encode() in output
    assert b"clean: 1 call sealed" in output


def test_a_terminal_without_a_movable_cursor(recorded):
    code, output = on_terminal("-m", "streamparse", "decode", recorded, TERM="dumb")
    assert code == 0
    assert output.startswith(b"reasoning | I think.\r\n")
    assert b"\x1b" not in output


def test_interrupted_on_a_terminal():
    code, output = on_terminal("-m", "streamparse", "demo", "--speed", "0.5", until=b"Page two")
    assert code == 130
    assert b"Traceback" not in output


def test_a_terminal_without_rich(recorded):
    code = "import sys; sys.modules['rich'] = None; from streamparse.cli import main; sys.exit(main(sys.argv[1:]))"
    status, output = on_terminal("-c", code, "decode", recorded)
    assert status == 2
    assert b"the live view needs rich, which is in the extra 'cli'" in output
    assert b"--format text" in output
    assert b"Traceback" not in output
    assert on_terminal("-c", code, "decode", recorded, "--format", "text")[0] == 0
