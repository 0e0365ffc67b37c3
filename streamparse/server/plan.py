"""A plan: what is sent, and when. Faults are functions from plans to plans. Sans-IO.

``with_faults`` puts them together in one order, whatever the order in which they were asked for:

1. what the body says: ``error-event``, ``no-done``, ``no-blank``;
2. how it is written: ``crlf``, ``cr``, ``bom``;
3. the writes: ``drip``, ``split-utf8``;
4. the times: ``slow-start``, ``stall``, ``keepalive``;
5. the end: ``close``, ``cut``.

So ``stall``, ``close`` and ``cut`` count the bytes that go over the wire; the latter two also those of comments. From 4
on a plan may be endless, and is an iterator.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

from streamparse.server.faults import Faults, Stall
from streamparse.transport.recording import Piece
from streamparse.transport.sse import BOM


class Step(NamedTuple):
    """One write: ``data``, ``wait`` seconds after the one before it (of the first: after the headers). ``breaks``: the
    connection breaks behind it."""

    wait: float
    data: bytes
    breaks: bool = False


Plan: TypeAlias = list[Step]

Recut: TypeAlias = int | Literal["event"] | None
"""Writes of N bytes, of one event each, or as they were recorded."""

COMMENT = b": keep-alive\n\n"
"""What ``keepalive`` sends."""

EVENT_END = re.compile(rb"(?:(?>\r\n|\n|\r)){2}")


def plan_of(pieces: Iterable[Piece], speed: float = 1.0) -> Plan:
    """The plan of recorded pieces, ``speed`` times as fast; infinite: at once."""
    steps, at = [], 0.0
    for piece in pieces:
        steps.append(Step((piece.at - at) / speed, piece.data, piece.broken))
        at = piece.at
    return steps


def body(steps: Iterable[Step]) -> bytes:
    """All bytes of a plan."""
    return b"".join(step.data for step in steps)


def event_ends(data: bytes) -> list[int]:
    """Where the events of an event stream end."""
    return [match.end() for match in EVENT_END.finditer(data)]


def recut(steps: Plan, size: Recut) -> Plan:
    """The same bytes in other writes. Each comes when the last of its bytes was recorded."""
    if size is None:
        return steps
    data = body(steps)
    ends = event_ends(data) if size == "event" else range(size, len(data), size)
    bounds = iter([*ends, math.inf])
    bound, at, wait = next(bounds), 0, 0.0
    parts: list[bytes] = []
    written: Plan = []
    for step in steps:
        wait += step.wait
        rest = step.data
        while at + len(rest) >= bound:
            keep = int(bound) - at
            written.append(Step(wait, b"".join([*parts, rest[:keep]])))
            at, rest, wait, parts, bound = int(bound), rest[keep:], 0.0, [], next(bounds)
        parts.append(rest)
        at += len(rest)
    last = Step(wait, b"".join(parts), any(step.breaks for step in steps))
    return [*written, last] if last.data or last.breaks or last.wait else written


def with_faults(steps: Plan, faults: Faults, error_event: bytes = b"") -> Iterator[Step]:
    """The plan with these faults. ``error_event`` is an error in the provider's style, as an event."""
    if faults.error_event is not None:
        steps = fail_after(steps, faults.error_event, error_event)
    if faults.no_done:
        steps = without_done(steps)
    if faults.no_blank:
        steps = without_last_blank(steps)
    if faults.line_end is not None:
        steps = with_line_end(steps, faults.line_end)
    if faults.bom:
        steps = with_bom(steps)
    if faults.drip:
        steps = dripping(steps)
    elif faults.split_utf8:
        steps = split_characters(steps)
    if faults.slow_start:
        steps = [Step(faults.slow_start, b""), *steps]
    timed: Iterable[Step] = steps
    if faults.stall is not None:
        timed = stalled(timed, faults.stall)
    if faults.keepalive is not None:
        timed = kept_alive(timed, faults.keepalive)
    if faults.close is not None:
        timed = ended(timed, faults.close, breaks=False)
    if faults.cut is not None:
        timed = ended(timed, faults.cut, breaks=True)
    return iter(timed)


# What the body says ---------------------------------------------------------------------------------------------------


def _without(steps: Plan, gone: list[tuple[int, int]]) -> Plan:
    """The plan without the bytes in these ranges, which are in order. What else comes, comes when it did."""
    kept: Plan = []
    start, carried = 0, 0.0
    for wait, data, breaks in steps:
        parts, at, end = [], 0, start + len(data)
        for left, right in gone:
            parts.append(data[at : max(left - start, at)])
            at = max(right - start, at)
        left_over = b"".join([*parts, data[at:]])
        carried += wait
        if left_over or breaks or not data:
            kept.append(Step(carried, left_over, breaks))
            carried = 0.0
        start = end
    return kept


def fail_after(steps: Plan, after: int, error_event: bytes) -> Plan:
    """In place of all that stands behind the first event that ends at ``after`` or later: an error."""
    data = body(steps)
    end = next((end for end in [0, *event_ends(data)] if end >= after), len(data))
    unbroken = [step._replace(breaks=False) for step in steps]
    return [*_without(unbroken, [(end, len(data))]), Step(0.0, error_event)]


_DONE = re.compile(rb'(?:\A|[\r\n])(?:data: *(?:\[DONE\]|\{"type": ?"message_stop")|event: ?message_stop)')


def without_done(steps: Plan) -> Plan:
    """The plan without the events that say that nothing more comes."""
    data = body(steps)
    events = pairwise(sorted({0, *event_ends(data), len(data)}))
    return _without(steps, [(start, end) for start, end in events if _DONE.search(data[start:end])])


_LAST_BLANK = re.compile(rb"(?>\r\n|\n|\r)(\r\n|\n|\r)\Z")


def without_last_blank(steps: Plan) -> Plan:
    """The plan without the blank line at the end of its last event."""
    data = body(steps)
    last = _LAST_BLANK.search(data, max(len(data) - 4, 0))
    return _without(steps, [(last.start(1), len(data))]) if last else steps


# How it is written ----------------------------------------------------------------------------------------------------


def with_line_end(steps: Plan, end: bytes) -> Plan:
    """All lines end in ``end``, whatever ended them before."""
    written: Plan = []
    after_cr = False
    for wait, data, breaks in steps:
        plain = data.removeprefix(b"\n") if after_cr else data
        after_cr = data.endswith(b"\r") if data else after_cr
        plain = plain.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        written.append(Step(wait, plain.replace(b"\n", end), breaks))
    return written


def with_bom(steps: Plan) -> Plan:
    """A byte order mark first, at once."""
    return [Step(0.0, BOM), *steps]


# The writes -----------------------------------------------------------------------------------------------------------


def dripping(steps: Plan) -> Plan:
    """One byte a write."""
    return [part for step in steps for part in _parts(step, [bytes([byte]) for byte in step.data])]


_INSIDE = re.compile(rb"(?<=[\xc2-\xf4])(?=[\x80-\xbf])")


def split_characters(steps: Plan) -> Plan:
    """Each character of several bytes in two writes."""
    return [part for step in steps for part in _parts(step, _INSIDE.split(step.data))]


def _parts(step: Step, parts: list[bytes]) -> Iterator[Step]:
    """A write as several, at the same time."""
    if len(parts) < 2:
        yield step
        return
    yield Step(step.wait, parts[0])
    for part in parts[1:-1]:
        yield Step(0.0, part)
    yield Step(0.0, parts[-1], step.breaks)


# The times ------------------------------------------------------------------------------------------------------------


def stalled(steps: Iterable[Step], stall: Stall) -> Iterator[Step]:
    """Silence behind so many bytes, if there are as many."""
    left: int | None = stall.after
    for step in steps:
        if left is None or len(step.data) < left:
            yield step
            left = None if left is None else left - len(step.data)
        else:
            if left:
                yield Step(step.wait, step.data[:left])
            wait = stall.seconds if left else stall.seconds + step.wait
            yield Step(wait, step.data[left:], step.breaks)
            left = None


def kept_alive(steps: Iterable[Step], interval: float) -> Iterator[Step]:
    """A comment whenever nothing would come for longer than ``interval``. Not inside an event, which it would break."""
    tail = b""
    between = True
    for step in steps:
        wait = step.wait
        while between and wait > interval:
            yield Step(interval, COMMENT)
            wait -= interval
        yield step._replace(wait=wait)
        if step.data:
            tail = (tail + step.data)[-4:]
            between = tail == BOM or len(tail) in event_ends(tail)


# The end --------------------------------------------------------------------------------------------------------------


def ended(steps: Iterable[Step], after: int, *, breaks: bool) -> Iterator[Step]:
    """Nothing behind so many bytes, if there are as many: the end, or a connection that breaks."""
    left = after
    if not left:
        yield Step(0.0, b"", breaks)
        return
    for step in steps:
        if len(step.data) >= left:
            yield Step(step.wait, step.data[:left], breaks)
            return
        yield step
        left -= len(step.data)
