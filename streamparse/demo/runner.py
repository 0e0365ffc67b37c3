"""Plays the bundled recordings through a ``NativeDecoder``, and says whether they came out as expected.

On a terminal in the live view, at the speed of life; elsewhere, and in CI, as a log, at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import resources
from typing import TextIO

from streamparse.commands.sinks import View, default_format, live_view, text_log
from streamparse.commands.sources import paced
from streamparse.decoding.native import NativeDecoder
from streamparse.demo.expectation import differences
from streamparse.events import Event
from streamparse.transport.recording import Header, Piece, read

ELIDE = 12
"""Lines of a long string that the log shows from its start and from its end: a demo is read, not kept."""


def recordings() -> Iterator[tuple[str, Header, list[Piece]]]:
    """The bundled recordings, in the order of their names."""
    folder = resources.files("streamparse.demo")
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".jsonl"):
            header, pieces = read(file.read_text(encoding="utf-8"))
            yield file.name, header, pieces


def play_all(out: TextIO, *, speed: float | None = None, plain: bool = False) -> bool:
    """Play all of them on ``out``. Whether each came out as its header says; a failed call can be what is expected.

    ``speed``: 1 is the speed of life; by default that on a terminal, and no waiting elsewhere.
    """
    live = not plain and default_format(out) == "live" and not _in_ci()
    speed = speed or (1.0 if live else float("inf"))
    bundled = list(recordings())
    right = 0
    for number, (_, header, pieces) in enumerate(bundled, 1):
        view = _view(out, live)
        view.heading(f"{number}/{len(bundled)}  {header.title}", header.look)
        right += play(view, header, pieces, speed)
    good = right == len(bundled) > 0
    _view(out, live).remark(f"{right} of {len(bundled)} recordings came out as expected", good)
    return good


def _view(out: TextIO, live: bool) -> View:
    return live_view(out) if live else text_log(out, elide=ELIDE)


def play(view: View, header: Header, pieces: list[Piece], speed: float) -> bool:
    """Play one recording, and say in the view whether it came out as expected."""
    decoder = NativeDecoder(header.dialect, tools=header.tools, start=header.start)
    events: list[Event] = []
    with view:
        for piece in paced(pieces, speed):
            found = decoder.feed(piece.text)
            view.show(found)
            events += found
        found = decoder.close(header.finish_reason)
        view.show(found)
        events += found
    wrong = list(differences(header.expected or {}, events))
    for line in wrong:
        view.remark(line, False)
    if not wrong:
        view.remark(_praise(header), True)
    return not wrong


def _praise(header: Header) -> str:
    failed = (header.expected or {}).get("failed")
    return "as expected: this answer was cut, and nothing half-written was sealed" if failed else "as expected"


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")
