"""Where events go: JSON Lines for programs, a plain log, or the live view for people."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType
from typing import Literal, Protocol, Self, TextIO

from streamparse.commands.log import TextLog
from streamparse.commands.wording import Tally
from streamparse.errors import MissingExtraError
from streamparse.events import Event, dumps

Format = Literal["jsonl", "text", "live"]


class Sink(Protocol):
    """What takes events. A context: on the way out it leaves the terminal as it found it."""

    tally: Tally

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def show(self, events: Iterable[Event]) -> None:
        """More events. What they say is on its way when this returns."""


class View(Sink, Protocol):
    """A sink for people."""

    def heading(self, title: str, note: str) -> None:
        """What comes next, and what to look at."""

    def remark(self, words: str, good: bool) -> None:
        """A word about what came."""

    def block(self, label: str, lines: Iterable[str]) -> None:
        """Lines that are no event: ``"diff"``, in the unified form; ``"error"``; anything else."""


class JsonLines:
    """One event a line, as ``streamparse.events.dumps`` writes it, flushed after each ``show``."""

    def __init__(self, out: TextIO) -> None:
        self.tally = Tally()
        self._out = out

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, events: Iterable[Event]) -> None:
        """More events."""
        for event in events:
            self.tally.count(event)
            self._out.write(f"{dumps(event)}\n")
        self._out.flush()


def default_format(out: TextIO) -> Format:
    """The live view on a terminal that can move its cursor, a log on one that cannot, else JSON Lines."""
    if not out.isatty():
        return "jsonl"
    return "text" if os.environ.get("TERM") == "dumb" else "live"


def open_sink(form: Format, out: TextIO) -> Sink:
    """The sink of this form. Raises ``MissingExtraError`` for the live view without rich."""
    if form == "jsonl":
        encode_as(out, "utf-8")
        return JsonLines(out)
    return live_view(out) if form == "live" else text_log(out)


def text_log(out: TextIO, *, elide: int | None = None) -> View:
    """A plain log on ``out``."""
    encode_as(out, None)
    return TextLog(out, elide=elide)


def live_view(out: TextIO) -> View:
    """The live view on ``out``. Raises ``MissingExtraError`` without rich."""
    try:
        from streamparse.view import LiveView
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "rich":
            raise
        raise MissingExtraError(
            "the live view needs rich, which is in the extra 'cli': pip install 'streamparse-toolcalls[cli]'; "
            "or do without it: --format text, --format jsonl, demo --plain"
        ) from None
    encode_as(out, None)
    return LiveView(out)


def encode_as(out: TextIO, encoding: str | None) -> None:
    """Let nothing fail that ``out`` cannot encode: it is written as an escape (in JSON, the escape of JSON)."""
    reconfigure = getattr(out, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding=encoding, errors="backslashreplace")
