"""Every recording in ``../shared/recordings`` from its bytes: as the provider sent it, and cut anew at every size.

What each has to decode to is checked in ``test_recordings`` and ``test_recordings_messages``; here it is that nothing
of it depends on how the bytes were cut, and that a stream which ends anywhere before its end seals nothing new."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from streamparse import Ended, Event, ToolCallFailed, ToolCallFinished, ToolCallStarted
from streamparse.transport.body import Body
from streamparse.transport.formats import recognise
from streamparse.transport.wires import Options, Wire
from tests.chunks import join
from tests.conftest import shared

WIRES = {
    "openai_sse": Wire.CHAT,
    "openai_chunks_jsonl": Wire.CHAT,
    "anthropic_sse": Wire.MESSAGES,
    "anthropic_chunks_jsonl": Wire.MESSAGES,
    "m2_raw": Wire.TEXT,
}
CUTS = 12
"""Places at which a recording is cut off."""


def load() -> list[Any]:
    lines = shared("recordings", "INDEX.jsonl").read_text("utf-8").splitlines()
    return [pytest.param(entry, id=entry["file"]) for entry in map(json.loads, lines)]


def read(entry: dict[str, Any]) -> bytes:
    return shared("recordings", entry["file"]).read_bytes()


def run(pieces: Iterable[bytes], whole: bytes, *, clean: bool = True) -> list[Event]:
    """Decoded as what it looks like, as `streamparse decode FILE` does it."""
    answer = recognise(whole, complete=True)
    assert answer is not None
    assert answer.wire is not None
    body = Body(Options().decoder(answer.wire), answer.framing)
    events = [event for piece in pieces for event in body.feed(piece)]
    return join(events + body.close(clean=clean))


def recut(data: bytes) -> Iterator[list[bytes]]:
    """One byte at a time, in sevens (no character of ours has so many), and at random."""
    for size in (1, 7):
        yield [data[at : at + size] for at in range(0, len(data), size)]
    chance = random.Random(len(data))
    pieces, at = [], 0
    while at < len(data):
        size = chance.choice((1, 2, 3, 5, 17, 64, 300, 1400))
        pieces.append(data[at : at + size])
        at += size
    yield pieces


@pytest.mark.parametrize("entry", load())
def test_the_wire_is_recognised(entry):
    answer = recognise(read(entry), complete=True)
    assert answer is not None
    assert answer.wire is WIRES[entry["wire"]]


@pytest.mark.parametrize("entry", load())
def test_cut_anew_at_byte_level(entry):
    data = read(entry)
    whole = run([data], data)
    assert isinstance(whole[-1], Ended)
    own = [event + b"\n\n" for event in data.split(b"\n\n")]  # its own boundaries, one event at a time
    own[-1] = own[-1][:-2]
    assert run(own, data) == whole
    for pieces in recut(data):
        assert run(pieces, data) == whole


@pytest.mark.parametrize("entry", load())
def test_cut_off_anywhere(entry):
    """E3, E4: what is sealed before the connection breaks is what the whole stream seals; the rest fails."""
    data = read(entry)
    sealed = [event for event in run([data], data) if isinstance(event, ToolCallFinished)]
    chance = random.Random(len(data))
    for at in sorted(chance.sample(range(len(data)), min(CUTS, len(data)))):
        events = run([data[:at]], data, clean=False)
        ends = [event for event in events if isinstance(event, ToolCallFinished)]
        assert [(end.call.name, end.call.arguments) for end in ends] == [
            (end.call.name, end.call.arguments) for end in sealed[: len(ends)]
        ]
        started = {event.index for event in events if isinstance(event, ToolCallStarted)}
        ended = {event.index for event in events if isinstance(event, ToolCallFinished | ToolCallFailed)}
        assert started <= ended
        assert isinstance(events[-1], Ended)


def test_there_are_recordings_of_every_wire():
    entries = [param.values[0] for param in load()]
    assert len(entries) >= 278
    assert {entry["wire"] for entry in entries} == WIRES.keys()
