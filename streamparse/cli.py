"""The command line: the commands, their options and the exit codes.

Exit codes: 0 clean; 1 something in the answer failed; 2 wrong use, or a file that cannot be read or written; 130
interrupted; 141 the reader of the output went away. Weight (lark, rich) is loaded by what needs it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

from streamparse.errors import StreamparseError, UsageError
from streamparse.version import installed_version

if TYPE_CHECKING:
    from streamparse.commands.cutting import Cut
    from streamparse.commands.serve import Recut

OK, FAILED, MISUSE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. ``SystemExit`` for help, and for options that cannot be read."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except StreamparseError as error:
        return _misuse(str(error))
    except BrokenPipeError:
        _silence(sys.stdout)
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        _silence(sys.stdout)
        return _misuse(f"cannot write: {error.strerror or error}")
    return code


def _misuse(message: str) -> int:
    sys.stderr.write(f"streamparse: {message}\n")
    return MISUSE


def _silence(stream: TextIO) -> None:
    """What is still buffered goes nowhere, so that the interpreter does not complain at its end."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="streamparse", description="Decode the tool calls of a language model.")
    parser.add_argument(
        "--version", action="version", version=f"streamparse {installed_version() or '(not installed)'}"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_decode(commands.add_parser("decode", help="decode an answer, from a file or as it arrives"))
    _add_grammar(commands.add_parser("grammar", help="print the state table of a dialect"))
    dialects = commands.add_parser("dialects", help="list the dialects")
    dialects.set_defaults(run=_run_dialects)
    _add_demo(commands.add_parser("demo", help="play the bundled recordings"))
    _add_serve(commands.add_parser("serve", help="play recordings over HTTP, as a provider would answer"))
    _add_record(commands.add_parser("record", help="send a request, and record the answer as it arrives"))
    _add_lint(commands.add_parser("lint", help="advice on tool definitions"))
    _add_recover(commands.add_parser("recover", help="does a model fix an argument that was rejected?"))
    _add_agent(commands.add_parser("agent", help="work on a task with the coding tools"))
    return parser


def _add_decode(parser: argparse.ArgumentParser) -> None:
    words = "raw output of a model, a recording, an event stream, or chunks as JSON (Lines); - is standard input"
    parser.add_argument("file", metavar="FILE", help=words)
    wires = ["chat", "completions", "messages", "text"]
    parser.add_argument("--wire", choices=wires, help="what the chunks of FILE are (default: what it looks like)")
    parser.add_argument("--dialect", help="a name from `streamparse dialects`, or a .lark file (default: minimax_m2)")
    parser.add_argument("--tools", metavar="JSON", help="a file with tool definitions: they type the arguments")
    parser.add_argument("--start", choices=["text", "reasoning"], help="what the answer begins in (default: text)")
    parser.add_argument("--chunk", type=_cut, metavar="N|token|all", help="cut the input (default: as it comes)")
    parser.add_argument("--format", choices=["jsonl", "text"], help="default: a live view on a terminal, else jsonl")
    parser.add_argument("--finish-reason", metavar="WORD", help="the provider's: stop, length, tool_calls, error, …")
    parser.add_argument("--speed", type=_speed, metavar="X", help="play a recording in its own time, X times as fast")
    parser.set_defaults(run=_run_decode)


def _add_grammar(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dialect", metavar="DIALECT", help="a name from `streamparse dialects`, or a .lark file")
    parser.add_argument("--mermaid", action="store_true", help="as a Mermaid state diagram")
    parser.set_defaults(run=_run_grammar)


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--speed", type=_speed, metavar="X", help="X times as fast as recorded (no terminal: at once)")
    parser.add_argument("--plain", action="store_true", help="a log instead of the live view")
    parser.set_defaults(run=_run_demo)


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="a recording, an .sse file, chunks as JSON, raw text")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8000, help="0 is a free one (default: 8000)")
    parser.add_argument(
        "--speed", type=_speed, default=1.0, metavar="X", help="X times as fast as recorded; inf: at once"
    )
    parser.add_argument(
        "--chunk", type=_recut, metavar="N|event|as-recorded", help="writes of N bytes, or of one event"
    )
    parser.add_argument("--fault", action="append", default=[], metavar="SPEC", help="what goes wrong: docs/serve.md")
    parser.add_argument("--raw", action="store_true", help="raw text stays raw text in delta.content")
    parser.add_argument("--repeat", action="store_true", help="start again when all files were played")
    parser.set_defaults(run=_run_serve)


def _add_record(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="the endpoint, such as http://127.0.0.1:8000/v1/chat/completions")
    parser.add_argument("--request", required=True, metavar="FILE", help="the request as JSON; - is standard input")
    parser.add_argument("--out", required=True, metavar="FILE", help="where the recording goes")
    parser.add_argument("--header", action="append", default=[], metavar="'K: V'", help="sent, and never written")
    parser.add_argument("--key-env", metavar="NAME", help="the environment variable with the key")
    parser.add_argument("--redact", action="append", default=[], metavar="REGEX", help="what else is not written")
    parser.add_argument("--format", choices=["jsonl", "text"], help="default: a live view on a terminal, else jsonl")
    parser.set_defaults(run=_run_record)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 65536):
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 65535, not {text!r}")
    return int(text)


def _recut(text: str) -> Recut:
    if text == "event":
        return "event"
    if text == "as-recorded":
        return None
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number of bytes from 1, 'event' or 'as-recorded', not {text!r}")
    return number


def _add_lint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="JSON", help="a file with tool definitions")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="default: text")
    parser.set_defaults(run=_run_lint)


def _add_recover(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="URL|scripted:NAME|recorded:FILE", help="the model that is checked")
    parser.add_argument("--case", metavar="FILE", help="one case (default: the stock case)")
    parser.add_argument("--pack", metavar="DIR", help="a directory of cases; 'bundled' are those of the library")
    parser.add_argument("--limit", type=_count, metavar="N", help="turns that may be wrong (default: each case's own)")
    parser.add_argument("--repeat", type=_count, metavar="N", default=1, help="runs of each case (default: 1)")
    parser.add_argument("--out", metavar="FILE", help="where the report goes, as JSON")
    parser.add_argument("--html", metavar="FILE", help="where the page goes")
    wires = ["chat", "completions", "messages", "text"]
    parser.add_argument("--wire", choices=wires, help="how the model is asked (default: what the URL looks like)")
    parser.add_argument("--name", metavar="MODEL", help="the model's name in the requests")
    parser.add_argument("--header", action="append", default=[], metavar="'K: V'", help="sent, and never written")
    parser.add_argument("--key-env", metavar="NAME", help="the environment variable with the key")
    parser.add_argument("--sampling", type=_object, default={}, metavar="JSON", help="such as '{\"temperature\": 0}'")
    parser.add_argument("--metrics", metavar="DIR", help="no model: the metrics over the reports in a directory")
    parser.add_argument("--verifier", metavar="FILE", help="no model: schema accuracy in a verifier's JSON Lines")
    parser.set_defaults(run=_run_recover)


def _add_agent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="what to do, in words")
    parser.add_argument("--url", required=True, help="the endpoint, such as http://127.0.0.1:8000/v1/chat/completions")
    parser.add_argument("--root", default=".", metavar="DIR", help="the directory of the project (default: .)")
    parser.add_argument("--yes", action="store_true", help="do not ask before writes and commands")
    parser.add_argument("--model", metavar="NAME", help="the model's name in the requests")
    wires = ["chat", "completions", "messages"]
    parser.add_argument("--wire", choices=wires, help="how the model is asked (default: what the URL looks like)")
    parser.add_argument("--key-env", metavar="NAME", help="the environment variable with the key")
    parser.add_argument("--log", metavar="FILE", help="where each request and reply is written, as JSON Lines")
    parser.add_argument("--max-turns", type=_count, metavar="N", default=50, help="answers of the model (default: 50)")
    parser.add_argument("--plain", action="store_true", help="a log instead of the live view")
    parser.set_defaults(run=_run_agent)


def _count(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, not {text!r}")
    return number


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object, not {text!r}")
    return value


def _cut(text: str) -> Cut:
    if text == "token":
        return "token"
    if text == "all":
        return "all"
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number of characters from 1, 'token' or 'all', not {text!r}")
    return number


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not speed > 0:
        raise argparse.ArgumentTypeError(f"expected a number above 0, not {text!r}")
    return speed


def _run_decode(options: argparse.Namespace) -> int:
    from streamparse.commands.decode import Options, decode
    from streamparse.transport.wires import Wire

    clean = decode(
        Options(
            file=options.file,
            wire=None if options.wire is None else Wire(options.wire),
            dialect=options.dialect,
            tools=options.tools,
            start=options.start,
            cut=options.chunk,
            form=options.format,
            finish_reason=options.finish_reason,
            speed=options.speed,
        )
    )
    return OK if clean else FAILED


def _run_grammar(options: argparse.Namespace) -> int:
    from streamparse.commands.grammar import print_grammar

    print_grammar(options.dialect, sys.stdout, mermaid=options.mermaid)
    return OK


def _run_dialects(_: argparse.Namespace) -> int:
    from streamparse.commands.grammar import print_dialects

    print_dialects(sys.stdout)
    return OK


def _run_demo(options: argparse.Namespace) -> int:
    from streamparse.demo.runner import play_all

    return OK if play_all(sys.stdout, speed=options.speed, plain=options.plain) else FAILED


def _run_serve(options: argparse.Namespace) -> int:
    from streamparse.commands.serve import serve

    serve(
        options.files,
        host=options.host,
        port=options.port,
        speed=options.speed,
        chunk=options.chunk,
        faults=options.fault,
        raw=options.raw,
        repeat=options.repeat,
    )
    return OK


def _run_record(options: argparse.Namespace) -> int:
    from streamparse.commands.record import Options, record

    clean = record(
        Options(
            url=options.url,
            request=options.request,
            out=options.out,
            headers=options.header,
            key_env=options.key_env,
            redact=options.redact,
            form=options.format,
        )
    )
    return OK if clean else FAILED


def _run_lint(options: argparse.Namespace) -> int:
    from streamparse.commands.lint import lint_file

    return OK if lint_file(options.file, sys.stdout, form=options.format) else FAILED


def _run_recover(options: argparse.Namespace) -> int:
    from streamparse.commands import recover

    if [options.model, options.metrics, options.verifier].count(None) != 2:
        raise UsageError("recover needs one of --model, --metrics and --verifier")
    if options.model is None and (options.out or options.html):
        raise UsageError("--out and --html are for the dialogues of a --model")
    if options.metrics is not None:
        recover.show_metrics(options.metrics, sys.stdout)
        return OK
    if options.verifier is not None:
        recover.show_accuracy(options.verifier, sys.stdout)
        return OK
    clean = recover.recover(
        recover.Options(
            model=options.model,
            case=options.case,
            pack=options.pack,
            limit=options.limit,
            repeat=options.repeat,
            out=options.out,
            html=options.html,
            wire=options.wire,
            name=options.name,
            key_env=options.key_env,
            headers=options.header,
            sampling=options.sampling,
        ),
        sys.stdout,
    )
    return OK if clean else FAILED


def _run_agent(options: argparse.Namespace) -> int:
    from streamparse.commands.agent import Options, agent

    done = agent(
        Options(
            task=options.task,
            url=options.url,
            root=options.root,
            yes=options.yes,
            model=options.model,
            wire=options.wire,
            key_env=options.key_env,
            log=options.log,
            max_turns=options.max_turns,
            plain=options.plain,
        ),
        sys.stdout,
    )
    return OK if done else FAILED
