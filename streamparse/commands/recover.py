"""``streamparse recover``: the recovery check on one case or many; metrics over reports; the results of verifiers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO
from urllib.parse import urlsplit

import anyio
import httpx
import msgspec

from streamparse.agent.models import HttpModel, Model, RecordedModel
from streamparse.agent.recovery.case import RecoveryCase, read_case
from streamparse.agent.recovery.drive import library_version, run_cases
from streamparse.agent.recovery.metrics import measure_reports
from streamparse.agent.recovery.page import page
from streamparse.agent.recovery.rates import Metrics
from streamparse.agent.recovery.report import Conditions, Dialogue, Report, Unmeasured, read_reports, report_text
from streamparse.agent.recovery.scripted import scripted_model
from streamparse.agent.recovery.store import bundled, read_pack, stock_case
from streamparse.agent.recovery.vendors import accuracy, read_results
from streamparse.commands.record import request_headers, secrets_of
from streamparse.commands.sinks import encode_as
from streamparse.commands.wording import counted, one_line
from streamparse.errors import UsageError
from streamparse.transport.recorder import Redaction
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

    Raises ``UsageError`` for wrong use, before anything is asked.
    """
    encode_as(out, None)
    cases = _cases(options)
    for name in filter(None, (options.out, options.html)):
        _write(name, "", mode="a")  # what cannot be written is told now, and not after an hour of asking
    report = _clean(_run(cases, options), options)
    if options.out is not None:
        _write(options.out, report_text(report))
    if options.html is not None:
        _write(options.html, page(report))
    _show(report, out)
    return report.clean


def _cases(options: Options) -> list[RecoveryCase]:
    if options.case is not None and options.pack is not None:
        raise UsageError("--case and --pack: give one of them")
    if options.case is not None:
        return [read_case(options.case)]
    if options.pack is not None:
        return bundled() if options.pack == BUNDLED else read_pack(options.pack)
    return [stock_case()]


def _run(cases: Sequence[RecoveryCase], options: Options) -> Report:
    from streamparse.commands.progress import progress

    kind, _, rest = options.model.partition(":")
    with progress(len(cases) * options.repeat) as told:
        if kind == "scripted":
            wire = Wire.CHAT if options.wire is None else as_wire(options.wire)
            conditions = _conditions(options, "scripted", wire, options.model)
            return _led(cases, lambda case: scripted_model(rest, case, wire=wire), conditions, told)
        if kind == "recorded":
            recorded = RecordedModel(_recordings(rest), wire=options.wire)
            conditions = _conditions(options, "recorded", recorded.wire, options.name or Path(rest).name)
            return _led(cases, lambda _: recorded, conditions, told)
        if kind not in ("http", "https"):
            raise UsageError(f"--model {options.model!r}: expected a URL, scripted:NAME or recorded:FILE")
        return anyio.run(_live, cases, options, told)


def _led(cases: Sequence[RecoveryCase], make: Callable[[RecoveryCase], Model], at: Conditions, told: Told) -> Report:
    async def main() -> Report:
        return await run_cases(cases, make, at, progress=told)

    return anyio.run(main)


async def _live(cases: Sequence[RecoveryCase], options: Options, told: Told) -> Report:
    headers = request_headers(options.model, options.headers, options.key_env)
    wire = wire_of_url(options.model) if options.wire is None else as_wire(options.wire)
    more: dict[str, Any] = {"start": "reasoning"} if wire is Wire.COMPLETIONS else {}
    async with httpx.AsyncClient() as client:
        model = HttpModel(client, options.model, wire=wire, headers=headers, **more)
        conditions = _conditions(options, "live", wire, options.name or UNNAMED)
        return await run_cases(cases, lambda _: model, conditions, progress=told)


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


def _recordings(names: str) -> list[Path]:
    """The files, separated by commas; of a directory all recordings in it, in the order of their names."""
    files = []
    for name in filter(None, names.split(",")):
        path = Path(name)
        files += sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files:
        raise UsageError("--model recorded:FILE[,FILE…]: expected a recording for each turn, or a directory of them")
    return files


def _clean(report: Report, options: Options) -> Report:
    """The report without the secrets that were sent, should a server or a model have repeated them."""
    if urlsplit(options.model).scheme not in ("http", "https"):
        return report
    headers = request_headers(options.model, options.headers, options.key_env)
    redaction = Redaction(secrets_of(options.model, headers))
    return msgspec.convert(redaction.value(msgspec.to_builtins(report)), Report)


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
    reports = read_reports(folder)
    out.write(f"{counted(len(reports), 'report')}\n")
    _lines(out, _metric_lines(measure_reports(reports)))


def show_accuracy(name: str, out: TextIO) -> None:
    """The schema accuracy in a file of a verifier. Raises ``UsageError``, with the line."""
    encode_as(out, None)
    found = accuracy(read_results(name))
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
