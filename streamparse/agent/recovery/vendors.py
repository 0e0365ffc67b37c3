"""Schema accuracy in the public way, and in ours (A12): the results of two verifiers of providers, read as they are.

Both write JSON Lines, one request with its response each::

    {"data_index": 1, "request": {"messages": […], "tools": […]}, "response": {"choices": […]}, "status": "success",
     "finish_reason": "tool_calls", "tool_calls_valid": true}

K2-Vendor-Verifier adds ``tool_calls_valid``, its own judgement; MiniMax-Provider-Verifier adds ``expected_tool_call``,
whether a call was to come. The public figure is: responses whose calls are all valid, out of those that finish with
``tool_calls``. A call that was cut, or stands under another finish reason, is in no denominator there; in ours it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import msgspec

from streamparse.agent.recovery.rates import Rate, rate
from streamparse.agent.recovery.telling import mislabelled
from streamparse.decoding.chat import ChatDecoder
from streamparse.decoding.roster import LENGTH, PROMISES, judged
from streamparse.errors import ToolDefinitionError, UsageError
from streamparse.events import Ended, Event, Failed, ToolCall, ToolCallFailed, ToolCallFinished, ToolCallStarted
from streamparse.tools.definition import Tool, as_tools
from streamparse.tools.schema import Schema
from streamparse.tools.validation import Judge

Format = Literal["k2", "minimax"]


class Row(msgspec.Struct, frozen=True):
    """A line of such a file. What it does not name is ignored."""

    request: dict[str, Any]
    response: dict[str, Any] | None = None
    status: str = "success"
    finish_reason: str | None = None
    tool_calls_valid: bool | None = None
    expected_tool_call: bool | None = None


class Outcome(msgspec.Struct, frozen=True):
    """One response. ``promised``: it finishes with ``tool_calls``; ``valid_publicly`` is judged by the schema alone, as
    there; ``valid`` is judged as everywhere in this library. ``due``: a call was promised, begun, or expected, or the
    answer was cut. ``said``: what the file itself says."""

    promised: bool
    valid_publicly: bool
    due: bool
    valid: bool
    cut: bool
    mislabelled: bool
    said: bool | None = None


class Accuracy(msgspec.Struct, frozen=True):
    """The figures over a file. ``public`` and ``ours`` are the two rates; ``disagreements`` counts responses on whose
    validity the file and we differ; ``without_response`` were never answered, or cannot be judged."""

    format: Format
    rows: int
    without_response: int
    public: Rate
    ours: Rate
    cut: Rate
    mislabelled: Rate
    disagreements: int


def read_results(source: str | PathLike[str]) -> list[Row]:
    """The rows of a file of either verifier. Raises ``UsageError``, naming the file and the line."""
    path = Path(source)
    try:
        lines = path.read_bytes().splitlines()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"cannot read {path}: {reason}") from None
    return [_row(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]


def _row(line: bytes, place: str) -> Row:
    try:
        return msgspec.json.decode(line, type=Row)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        expected = 'a result {"request": {…}, "response": {…}, "status": "…", "finish_reason": "…"}'
        raise UsageError(f"{place}: expected {expected}: {error}") from None


def format_of(rows: Iterable[Row]) -> Format:
    """Which verifier wrote the rows, by the field that only one of them has."""
    return "minimax" if any(row.expected_tool_call is not None for row in rows) else "k2"


def accuracy(rows: Iterable[Row]) -> Accuracy:
    """The figures over these rows."""
    rows = list(rows)
    outcomes = [outcome for row in rows if (outcome := outcome_of(row)) is not None]
    promised = [outcome for outcome in outcomes if outcome.promised]
    due = [outcome for outcome in outcomes if outcome.due]
    ours = "responses in which a call was promised, begun or expected, cut and mislabelled ones included"
    return Accuracy(
        format_of(rows),
        len(rows),
        len(rows) - len(outcomes),
        rate(
            "schema accuracy, public definition",
            sum(each.valid_publicly for each in promised),
            len(promised),
            "responses with finish reason tool_calls",
        ),
        rate("schema accuracy, our denominator", sum(each.valid for each in due), len(due), ours),
        rate("cut", sum(each.cut for each in due), len(due), ours),
        rate("mislabelled", sum(each.mislabelled for each in due), len(due), ours),
        sum(each.said is not None and each.promised and each.said is not each.valid_publicly for each in outcomes),
    )


def outcome_of(row: Row) -> Outcome | None:
    """What a row comes to; None for one that has no response, or whose tools are none."""
    if row.response is None or row.status != "success" or not row.response.get("choices"):
        return None
    try:
        tools = as_tools(row.request.get("tools") or ())
    except ToolDefinitionError:
        return None
    strict = _events(row.response, tools, repair=0, dialect=None)
    ours = _events(row.response, tools, repair=1, dialect="auto")
    reason = row.finish_reason or next(event.finish_reason for event in ours if isinstance(event, Ended))
    begun = any(isinstance(event, ToolCallStarted) for event in ours)
    cut = judged(reason) in (LENGTH, None)
    promised = reason in PROMISES
    sealed = any(isinstance(event, ToolCallFinished) for event in ours)
    return Outcome(
        promised=promised,
        valid_publicly=_fits(strict, tools),
        due=promised or begun or row.expected_tool_call is True or (cut and bool(tools)),
        valid=_is_valid(ours, tools),
        cut=cut,
        mislabelled=mislabelled(reason, begun=begun, sealed=sealed),
        said=row.tool_calls_valid,
    )


def _events(response: Mapping[str, Any], tools: Mapping[str, Tool], *, repair: int, dialect: str | None) -> list[Event]:
    decoder = ChatDecoder(tools=list(tools.values()), repair=repair, dialect=dialect)
    return decoder.feed(response) + decoder.close()


def _calls(events: Iterable[Event]) -> Iterator[ToolCall | None]:
    """The calls; None for one that failed."""
    for event in events:
        if isinstance(event, ToolCallFinished):
            yield event.call
        elif isinstance(event, ToolCallFailed | Failed):
            yield None


def _fits(events: list[Event], tools: Mapping[str, Tool]) -> bool:
    """Whether there are calls, and the schema alone accepts all of them."""
    calls = list(_calls(events))
    return bool(calls) and all(call is not None and _accepts(tools.get(call.name), call) for call in calls)


def _accepts(tool: Tool | None, call: ToolCall) -> bool:
    if tool is None:
        return False
    try:
        return bool(Schema(tool.parameters, "tool").validator.is_valid(call.arguments))
    except (ValueError, RecursionError):
        return False


def _is_valid(events: list[Event], tools: Mapping[str, Tool]) -> bool:
    judge = Judge(list(tools.values()))
    calls = list(_calls(events))
    return bool(calls) and all(call is not None and judge.check(call).valid for call in calls)
