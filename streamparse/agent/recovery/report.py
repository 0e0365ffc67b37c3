"""What a recovery check leaves behind: the conditions, each dialogue turn by turn, and what it does not show (A11).

A report is JSON; ``report_text`` writes it, ``read_report`` reads it. The same turns give the same report, byte for
byte: nothing in it comes from a clock.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path as FilePath
from typing import Any, Final, Literal

import msgspec

from streamparse.agent.recovery.classes import End, TurnClass
from streamparse.agent.recovery.rates import Metrics
from streamparse.errors import UsageError
from streamparse.events import Level

STATEMENT: Final = (
    "Each dialogue shows one behaviour of one model under the conditions that are recorded here. The first call of "
    "each is prepared: the model did not make it. This proves no reliability in general, and it permits no execution "
    "without validation: a model that repaired this call can break the next one."
)
"""The fixed statement of what a report shows, and what it does not."""


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """Under which conditions: whatever else was different would be another experiment. ``source`` says whether the
    model is live, recorded or scripted; ``sampling`` holds the fields of the request that steer it."""

    model: str
    source: Literal["live", "recorded", "scripted"]
    wire: str
    library: str
    sampling: dict[str, Any] = {}
    limit: int | None = None
    repeat: int = 1
    first_call: Literal["prepared"] = "prepared"


class Misread(msgspec.Struct, frozen=True):
    """An error of the format, before it is blamed on the model (A13): what came, beside what is documented there."""

    code: str
    message: str
    expected: tuple[str, ...]
    raw: str


class CallReport(msgspec.Struct, frozen=True):
    """One call of a turn. ``issues`` are lines about what is wrong, ``observation`` is what went back for it.
    ``doubts`` say why a call that fits would not be executed unasked, were it a write (B15)."""

    id: str
    name: str
    arguments: str
    turn_class: TurnClass | None = msgspec.field(name="class", default=None)
    read: bool = True
    valid: bool | None = None
    corrected: bool | None = None
    level: Level | None = None
    issues: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    observation: str = ""


class TurnReport(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of the model. ``due`` is what it had to bring.

    ``read``, ``valid`` and ``corrected`` are three verdicts (A1): of the format, of the schema, of the correction; None
    where the one before it left nothing to judge. ``repeats``: it asks for what was rejected before, in whatever
    envelope (A2). ``pins_kept`` is None where no call of the tool could be read. ``cut``: the answer was not whole;
    ``mislabelled``: its finish reason and its calls do not agree. ``feedback`` is what the user side said to it.
    ``more_calls`` counts calls beyond those that are listed.
    """

    number: int
    due: Literal["call", "answer"]
    turn_class: TurnClass = msgspec.field(name="class")
    level: Level | None = None
    read: bool | None = None
    valid: bool | None = None
    corrected: bool | None = None
    repeats: bool = False
    tool_kept: bool = False
    pins_kept: bool | None = None
    cut: bool = False
    mislabelled: bool = False
    finish_reason: str | None = None
    text: str = ""
    reasoning: str = ""
    calls: tuple[CallReport, ...] = ()
    more_calls: int = 0
    misread: tuple[Misread, ...] = ()
    feedback: str = ""


class PreparedReport(msgspec.Struct, frozen=True, kw_only=True):
    """The wrong call that stands at the beginning: prepared, not observed."""

    origin: Literal["prepared"] = "prepared"
    raw: str
    level: Level
    calls: tuple[CallReport, ...]
    misread: tuple[Misread, ...] = ()


class Dialogue(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one case. ``end`` is None in the report of a check that is not over."""

    case: str
    kind: str
    title: str
    run: int
    digest: str
    limit: int
    tool: str
    user: str
    wrong_fields: tuple[str, ...]
    pins: tuple[str, ...]
    expected: str
    result: str
    prepared: PreparedReport
    turns: tuple[TurnReport, ...]
    end: End | None = None


class Unmeasured(msgspec.Struct, frozen=True):
    """A run that came to no end, because of the transport and not of the model. It is in no rate, and is counted."""

    case: str
    run: int
    reason: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All dialogues of one run of the command, and the metrics over them."""

    streamparse: Literal["recovery_report"] = "recovery_report"
    version: Literal[1] = 1
    conditions: Conditions
    dialogues: tuple[Dialogue, ...]
    unmeasured: tuple[Unmeasured, ...] = ()
    metrics: Metrics
    statement: str = STATEMENT

    @property
    def clean(self) -> bool:
        """Whether every dialogue ended well."""
        return not self.unmeasured and all(dialogue.end is End.RECOVERED for dialogue in self.dialogues)


def report_text(report: Report) -> str:
    """The report as JSON, indented."""
    return json.dumps(msgspec.to_builtins(report), ensure_ascii=False, indent=1) + "\n"


def read_report(source: str | PathLike[str]) -> Report:
    """The report in a file. Raises ``UsageError``, naming the file, for what is none."""
    path = FilePath(source)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Report)
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"{path}: expected a recovery report: {reason}") from None


def read_reports(folder: str | PathLike[str]) -> list[Report]:
    """The reports in a directory, in the order of their names: all its ``.json`` files. Raises as ``read_report``."""
    files = sorted(FilePath(folder).glob("*.json"))
    if not files:
        raise UsageError(f"{folder}: expected a directory with reports (*.json), found none")
    return [read_report(file) for file in files]
