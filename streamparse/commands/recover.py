"""``streamparse recover``: the recovery check on one case or many; metrics over reports; the results of verifiers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO

import anyio
import httpx
import msgspec

from streamparse.agent.models import HttpModel, RecordedModel
from streamparse.agent.models.base import Answer, IdFactory, Request
from streamparse.agent.recovery.case import RecoveryCase, read_case
from streamparse.agent.recovery.check import RecoveryCheck
from streamparse.agent.recovery.drive import MakeModel, library_version, report_of, run_cases
from streamparse.agent.recovery.metrics import measure_reports
from streamparse.agent.recovery.page import page
from streamparse.agent.recovery.rates import Metrics
from streamparse.agent.recovery.report import Conditions, Dialogue, Report, Unmeasured, read_reports, report_text
from streamparse.agent.recovery.scripted import scripted_model
from streamparse.agent.recovery.store import bundled, read_pack, stock_case
from streamparse.agent.recovery.vendors import accuracy, read_results
from streamparse.commands.record import request_headers
from streamparse.commands.sinks import encode_as
from streamparse.commands.wording import counted, one_line
from streamparse.errors import StreamInterruptedError, UsageError
from streamparse.events import json_text
from streamparse.transport.recorder import Redaction
from streamparse.transport.redaction import secrets_of
from streamparse.transport.wires import Wire, as_wire, wire_of_url

BUNDLED = "bundled"
"""The pack that comes with the library."""

UNNAMED = "unnamed"
"""The model's name in a request where nobody gave one."""

Told = Callable[[Dialogue | Unmeasured], None]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of ``recover``. ``model`` is a URL, ``scripted:NAME`` or ``recorded:FILE``."""

    model: str
    case: str | None = None
    pack: str | None = None
    limit: int | None = None
    repeat: int = 1
    out: str | None = None
    html: str | None = None
    wire: str | None = None
    name: str | None = None
    key_env: str | None = None
    headers: Sequence[str] = ()
    sampling: dict[str, Any] = field(default_factory=dict)


def recover(options: Options, out: TextIO) -> bool:
    """Run the check, write the report and the page, print a table. Whether every dialogue ended well.

    The report is written after each dialogue: whatever ends the run, what was seen is there. Raises ``UsageError`` for
    wrong use, before anything is asked.
    """
    encode_as(out, None)
    cases = _cases(options)
    _check(cases, options)
    run = _Run(cases, options)
    report = run.lead()
    if options.html is not None:
        _write(options.html, page(report))
    _show(report, out)
    _lines(out, run.left_over())
    return report.clean


def _cases(options: Options) -> list[RecoveryCase]:
    if options.case is not None and options.pack is not None:
        raise UsageError("--case and --pack: give one of them")
    if options.case is not None:
        return [read_case(options.case)]
    if options.pack is not None:
        return bundled() if options.pack == BUNDLED else read_pack(options.pack)
    return [stock_case()]


_OWN = ("choice", "ledger", "messages", "model", "prompt", "self", "stream", "style", "system", "tools", "wire")
"""Fields of a request that are the check's."""


def _check(cases: Sequence[RecoveryCase], options: Options) -> None:
    """Everything that can be known before the first request."""
    for case in cases:
        RecoveryCheck(case, limit=options.limit)
    for name in sorted(options.sampling.keys() & set(_OWN)):
        raise UsageError(f"--sampling: {name!r} is no field of the sampling; the check says it itself")
    try:
        json.dumps(options.sampling, allow_nan=False)
    except (ValueError, RecursionError):
        raise UsageError("--sampling: expected JSON, with finite numbers and not too deep") from None
    if options.out is not None and options.html is not None and _same_file(options.out, options.html):
        raise UsageError("--out and --html: give two files")


def _same_file(one: str, other: str) -> bool:
    return Path(one).resolve() == Path(other).resolve()


class _Run:
    """One run of the command: its model, its conditions, and what has been seen so far."""

    def __init__(self, cases: Sequence[RecoveryCase], options: Options) -> None:
        self._cases = cases
        self._options = options
        self._dialogues: list[Dialogue] = []
        self._unmeasured: list[Unmeasured] = []
        self._played: list[_Played] = []
        kind, _, self._rest = options.model.partition(":")
        if kind not in ("scripted", "recorded", "http", "https"):
            raise UsageError(f"--model {options.model!r}: expected a URL, scripted:NAME or recorded:FILE")
        self._kind = "live" if kind in ("http", "https") else kind
        self._wire = self._prepare()
        self._conditions = _conditions(options, self._kind, self._wire, self._name())

    def lead(self) -> Report:
        """All dialogues."""
        from streamparse.commands.progress import progress

        self._save()
        if self._options.html is not None:
            _write(self._options.html, "", mode="a")  # what cannot be written is told now, not after an hour of asking
        with progress(len(self._cases) * self._options.repeat) as told:
            return self._clean(anyio.run(self._lead, told))

    def left_over(self) -> list[str]:
        """What is to be said of recordings that nobody asked for: then the dialogue was another one."""
        return [f"{counted(each.left, 'recording')} left over in {each.name}" for each in self._played if each.left]

    def _prepare(self) -> Wire:
        """The wire; and whatever is needed for the models."""
        options = self._options
        if self._kind == "scripted":
            wire = Wire.CHAT if options.wire is None else as_wire(options.wire)
            for case in self._cases:
                scripted_model(self._rest, case, wire=wire)
            return wire
        if self._kind == "recorded":
            runs = len(self._cases) * options.repeat
            self._played = [_Played(name, files, options.wire) for name, files in _recordings(self._rest, runs)]
            return self._played[0].wire
        request_headers(options.model, options.headers, options.key_env)
        return wire_of_url(options.model) if options.wire is None else as_wire(options.wire)

    def _name(self) -> str:
        if self._kind == "scripted":
            return self._options.model
        return self._options.name or (UNNAMED if self._kind == "live" else Path(self._rest).name)

    async def _lead(self, told: Told) -> Report:
        def note(done: Dialogue | Unmeasured) -> None:
            if isinstance(done, Dialogue):
                self._dialogues.append(done)
            else:
                self._unmeasured.append(done)
            self._save()
            told(done)

        async with httpx.AsyncClient() as client:
            return await run_cases(self._cases, self._models(client), self._conditions, progress=note)

    def _models(self, client: httpx.AsyncClient) -> MakeModel:
        options, wire = self._options, self._wire
        if self._kind == "scripted":
            return lambda case: scripted_model(self._rest, case, wire=wire, limit=options.limit)
        if self._kind == "recorded":
            played = iter(self._played)
            return lambda _: next(played)
        headers = request_headers(options.model, options.headers, options.key_env)
        more: dict[str, Any] = {"start": "reasoning"} if wire is Wire.COMPLETIONS else {}
        model = HttpModel(client, options.model, wire=wire, headers=headers, **more)
        return lambda _: model

    def _save(self) -> None:
        if self._options.out is not None:
            report = report_of(self._conditions, self._dialogues, self._unmeasured)
            _write(self._options.out, report_text(self._clean(report)))

    def _clean(self, report: Report) -> Report:
        """The report without the secrets that were sent, should a server or a model have repeated them."""
        if self._kind != "live":
            return report
        headers = request_headers(self._options.model, self._options.headers, self._options.key_env)
        redaction = Redaction(secrets_of(self._options.model, headers))
        return msgspec.convert(_redacted(msgspec.to_builtins(report), redaction), Report)


_CLOSED = {
    *("streamparse", "source", "first_call", "origin", "class", "level", "due", "end", "wire", "library", "digest"),
    *("metrics", "statement", "limit", "run", "kind", "code"),
}
"""Fields of a report whose values are this library's words, or the case's: no free text that could hold a key."""


def _redacted(value: Any, redaction: Redaction) -> Any:
    if isinstance(value, dict):
        return {
            key: each if key in _CLOSED else redaction.value(each) if key == "sampling" else _redacted(each, redaction)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_redacted(each, redaction) for each in value]
    return redaction.value(value)


class _Played:
    """A recorded model for one run. That its recordings end too early says nothing of the model: the run is not
    measured."""

    def __init__(self, name: str, files: Sequence[Path], wire: str | None) -> None:
        self.name = name
        self._files = files
        self._model = RecordedModel(files, wire=wire)

    @property
    def wire(self) -> Wire:
        """How it has to be asked."""
        return self._model.wire

    @property
    def left(self) -> int:
        """Recordings that were not played."""
        return len(self._files) - len(self._model.requests)

    def stream(
        self, request: Request, *, tools: Iterable[Any] | None = None, id_factory: IdFactory | None = None
    ) -> Answer:
        """The next recording. Raises ``StreamInterruptedError`` where there is none any more."""
        if not self.left:
            raise StreamInterruptedError(f"the recordings end after {counted(len(self._files), 'turn')}: {self.name}")
        return self._model.stream(request, tools=tools, id_factory=id_factory)


def _conditions(options: Options, source: Any, wire: Wire, name: str) -> Conditions:
    return Conditions(
        model=name,
        source=source,
        wire=wire.value,
        library=library_version(),
        sampling=options.sampling,
        limit=options.limit,
        repeat=options.repeat,
    )


def _recordings(names: str, runs: int) -> list[tuple[str, list[Path]]]:
    """The recordings of each run. Files, separated by commas, or the recordings in a directory, in the order of their
    names, are those of one run; for several there is a directory with a directory for each."""
    found = [(name, _files(Path(name))) for name in filter(None, names.split(","))]
    if len(found) == 1 and not found[0][1] and Path(found[0][0]).is_dir():
        folders = sorted(each for each in Path(found[0][0]).iterdir() if each.is_dir())
        found = [(str(folder), _files(folder)) for folder in folders]
    elif found:
        found = [(names, [file for _, files in found for file in files])]
    if not found or not all(files for _, files in found):
        raise UsageError("--model recorded:FILE[,FILE…]: expected a recording for each turn, or a directory of them")
    if len(found) != runs:
        raise UsageError(
            f"recorded:{names}: there are recordings of {counted(len(found), 'run')}, and {runs} are asked for; "
            "expected a directory with a directory for each run"
        )
    return found


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.jsonl")) if path.is_dir() else [path]


def _write(name: str, text: str, *, mode: Literal["w", "a"] = "w") -> None:
    try:
        with open(name, mode, encoding="utf-8", newline="\n") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"cannot write {name}: {reason}") from None


# What is printed


def show_metrics(folder: str, out: TextIO) -> None:
    """The metrics over the reports in a directory. Raises ``UsageError`` for what is no report."""
    encode_as(out, None)
    files = read_reports(folder)
    reports = list({report_text(report): report for report in files}.values())
    copies = len(files) - len(reports)
    out.write(f"{counted(len(files), 'report')}{f', {copies} of them the same as another one' if copies else ''}\n")
    groups: dict[str, list[Report]] = {}
    for report in reports:
        groups.setdefault(_condition_line(report.conditions), []).append(report)
    for conditions, alike in groups.items():
        _lines(out, ["", conditions, *_metric_lines(measure_reports(alike))])


def _condition_line(conditions: Conditions) -> str:
    """Under which conditions; reports in which they differ are of different experiments, and in different rates."""
    limit = "as each case says" if conditions.limit is None else conditions.limit
    sampling = json_text(conditions.sampling) if conditions.sampling else "as the server has it"
    return (
        f"model {conditions.model} ({conditions.source}, wire {conditions.wire}), limit {limit}, sampling {sampling}, "
        f"library {conditions.library}"
    )


def show_accuracy(name: str, out: TextIO) -> None:
    """The schema accuracy in a file of a verifier. Raises ``UsageError``, with the line."""
    encode_as(out, None)
    rows = read_results(name)
    if not rows:
        raise UsageError(f"{name}: expected results, found none")
    found = accuracy(rows)
    rates = (found.public, found.ours, found.cut, found.mislabelled)
    out.write(f"{found.format}: {counted(found.rows, 'row')}, {found.without_response} of them cannot be judged\n")
    _lines(out, (f"{each.name}: {each.words}" for each in rates))
    out.write(f"the file and this library differ on {counted(found.disagreements, 'response')}\n")


def _show(report: Report, out: TextIO) -> None:
    from streamparse.commands.progress import show_table

    head = ["case", "wrong", "run", "turns", "end"]
    rows = [
        [each.case, each.kind, str(each.run), " ".join(turn.turn_class for turn in each.turns), each.end or "not over"]
        for each in report.dialogues
    ]
    rows += [[each.case, "", str(each.run), each.reason, "not measured"] for each in report.unmeasured]
    show_table(out, head, [[one_line(cell) for cell in row] for row in rows])
    _lines(out, _metric_lines(report.metrics))
    _lines(out, [report.statement])


def _metric_lines(metrics: Metrics) -> list[str]:
    lines = [f"{each.name}: {each.words}" for each in metrics.rates]
    fixed = ", ".join(f"{count} at turn {turn}" for turn, count in metrics.turns_to_recovery.items())
    median = "" if metrics.median_turns is None else f" (median {metrics.median_turns:g})"
    lines.append(f"calls fixed: {fixed or 'none'}{median}")
    lines.append("classes: " + (", ".join(f"{word} {count}" for word, count in metrics.classes.items()) or "none"))
    if metrics.unmeasured:
        lines.append(f"not measured, and in no rate: {counted(metrics.unmeasured, 'run')}")
    return lines


def _lines(out: TextIO, lines: Iterable[str]) -> None:
    out.writelines(f"{one_line(line)}\n" for line in lines)
