"""The live view: an answer on a terminal while it comes. Needs rich (extra ``cli``); imported on first use.

What is complete is printed and scrolls away like any output. Below it a few lines are drawn anew while they grow: the
open line of prose, or the open calls with their arguments by path, a large string as its last lines with its size.
Nothing that grows is kept whole, so a long answer costs no more than a short one.

A thread of rich draws the growing lines; what it reads is guarded by a lock that is never held while printing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.text import Text as Line

from streamparse.commands.wording import (
    Tally,
    deviation_words,
    error_lines,
    one_line,
    path_words,
    rejection_words,
    size_words,
    value_words,
    visible,
)
from streamparse.events import (
    ArgumentDelta,
    ArgumentRejected,
    ArgumentValue,
    Deviated,
    Ended,
    ErrorDetail,
    Event,
    Failed,
    Path,
    Reasoning,
    Text,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
)

TAIL_LINES = 8
"""Lines of a large string that are shown: enough to follow, and several calls fit on a screen."""

MOST_ROWS = 60
"""Rows of one call that stay in the scrollback. The rest is counted."""

_LONGEST_LINE = 2_000  # of prose; a longer one is broken, so that the open line is bounded
_TAIL = 4_000  # characters of a growing string that are kept
_SHORT = 60  # characters of a string that stands beside its name
_REDRAWS = 12  # a second

_CURSOR = "▌"


class LiveView:
    """Shows events on ``out``, or on a console of the caller's. A context: on the way out the cursor is as it was."""

    def __init__(self, out: TextIO | None = None, *, console: Console | None = None) -> None:
        self.tally = Tally()
        self._console = console or Console(file=out, highlight=False)
        self._lock = threading.Lock()
        self._prose = _Prose()
        self._calls: dict[int, _Call] = {}
        self._last = ""  # what was printed last: prose or call; a blank line stands between different things
        self._live = Live(
            console=self._console,
            get_renderable=self._growing,
            refresh_per_second=_REDRAWS,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """What is still open, because the answer was broken off, stays where it is."""
        with self._lock:
            lines = list(self._spaced(self._end_prose()))
        lines += self._rows()
        self._live.stop()
        if lines:
            self._console.print(*lines, sep="\n")

    def show(self, events: Iterable[Event]) -> None:
        """More events."""
        lines: list[Line] = []
        with self._lock:
            for event in events:
                self.tally.count(event)
                lines += self._spaced(self._take(event))
        if lines:
            self._live.refresh()  # the growing lines without what is complete, before that is printed above them
            self._console.print(*lines, sep="\n")

    def heading(self, title: str, note: str) -> None:
        """What comes next, and what to look at."""
        self._console.print()
        self._console.print(Rule(Line(one_line(title), "bold"), align="left", style="cyan"))
        if note:
            self._console.print(Line(one_line(note), "cyan"))
        self._last = "heading"

    def remark(self, words: str, good: bool) -> None:
        """A word about what came."""
        mark, style = ("✓", "green") if good else ("✗", "bold red")
        self._console.print(*self._spaced([("remark", Line(f"{mark} {one_line(words)}", style))]), sep="\n")

    def block(self, label: str, lines: Iterable[str]) -> None:
        """Lines that are no event: a diff in its colours, an error in red, anything else dimmed."""
        shown = [Line(visible(line), _tone(label, line)) for line in lines]
        for line in shown:
            line.no_wrap = label != "error"
        if shown:
            self._console.print(*self._spaced((label, line) for line in shown), sep="\n")

    def _spaced(self, lines: Iterable[tuple[str, Line]]) -> Iterator[Line]:
        """The lines, with a blank one between different blocks."""
        for block, line in lines:
            if self._last not in ("", block):
                yield Line()
            self._last = block
            yield line

    # What is complete

    def _take(self, event: Event) -> Iterator[tuple[str, Line]]:
        """The lines that this event completes, each with the block that it belongs to."""
        match event:
            case Text(text):
                yield from self._say("text", text)
            case Reasoning(text):
                yield from self._say("reasoning", text)
            case ArgumentDelta(index, path, text):
                if index in self._calls:
                    self._calls[index].grow(path, text)
            case ArgumentValue(index, path, value):
                if index in self._calls:
                    self._calls[index].complete(path, value)
            case _:
                yield from self._end_prose()
                yield from self._take_whole(event)

    def _take_whole(self, event: Event) -> Iterator[tuple[str, Line]]:
        match event:
            case ToolCallStarted(index, identity, name):
                self._calls[index] = _Call(identity, name)
            case ToolCallFinished(index, sealed):
                yield from self._end_call(index, "sealed" if sealed.trusted else "sealed, not trusted", "green")
            case ToolCallFailed(index, partial, error):
                self._calls.setdefault(index, _Call(partial.id, partial.name))
                yield from self._end_call(index, "failed", "bold red")
                yield from ((f"call {index}", line) for line in _error_rows(error))
            case Failed(error):
                yield from (("error", line) for line in _error_rows(error))
            case Deviated(index, deviation):
                yield from self._note(index, "deviation", deviation_words(deviation))
            case ArgumentRejected(index):
                yield from self._note(index, f"call {index}", f"rejected: {rejection_words(event)}")
            case Ended():
                yield "end", Line(self.tally.words(), "bold green" if self.tally.clean else "bold red")
            case _:
                pass

    def _note(self, index: int | None, block: str, words: str) -> Iterator[tuple[str, Line]]:
        """A remark, which a call that is open keeps until its end."""
        line = Line(f"! {words}", "yellow")
        if index in self._calls:
            self._calls[index].notes.append(line)
        else:
            yield block, line

    def _say(self, block: str, text: str) -> Iterator[tuple[str, Line]]:
        if self._prose.block != block:
            yield from self._end_prose()
            self._prose.block = block
        yield from ((block, line) for line in self._prose.grow(text))

    def _end_prose(self) -> Iterator[tuple[str, Line]]:
        block = self._prose.block
        yield from ((block, line) for line in self._prose.end())

    def _end_call(self, index: int, verdict: str, style: str) -> Iterator[tuple[str, Line]]:
        call = self._calls.pop(index)
        rows = list(call.rows(verdict, style))
        yield from ((f"call {index}", row) for row in rows[:MOST_ROWS])
        if len(rows) > MOST_ROWS:
            yield f"call {index}", Line(f"    … {len(rows) - MOST_ROWS:,} more rows", "dim")
        yield from ((f"call {index}", note) for note in call.notes)

    # What grows

    def _growing(self) -> RenderableType:
        """The lines that are drawn anew, fewer than the screen has. Called by the thread of rich, too."""
        rows = self._rows()
        most = max(self._console.height - 4, 4)
        if len(rows) > most:
            rows = [rows[0], Line(f"    … {len(rows) - most + 2:,} rows above", "dim"), *rows[2 - most :]]
        return Group(*rows)

    def _rows(self) -> list[Line]:
        with self._lock:
            rows = [row for call in self._calls.values() for row in call.rows()]
            rows += self._prose.rows(self._console.width)
            blank = bool(rows) and self._last not in ("", self._prose.block)
            return [Line(), *rows] if blank else rows


class _Prose:
    """Text or reasoning: complete lines go, the open one stays."""

    def __init__(self) -> None:
        self.block = ""
        self._line = ""
        self._blank = 0  # blank lines, shown only when something follows
        self._begun = False

    def grow(self, text: str) -> Iterator[Line]:
        """The lines that are complete now."""
        *complete, rest = text.split("\n")
        for part in complete:
            yield from self._lines(self._line + part)
            self._line = ""
        self._line += rest
        while len(self._line) > _LONGEST_LINE:
            at = self._line.rfind(" ", 1, _LONGEST_LINE)
            at = at if at > 0 else _LONGEST_LINE
            yield from self._lines(self._line[:at])
            self._line = self._line[at:].removeprefix(" ")

    def end(self) -> Iterator[Line]:
        """Something else comes."""
        if self._line:
            yield from self._lines(self._line)
        self.block, self._line, self._blank, self._begun = "", "", 0, False

    def rows(self, width: int) -> list[Line]:
        """The open line: as much of its end as fills about three rows."""
        if not self._line:
            return []
        tail = visible(self._line[-3 * width :])
        return [*(Line() for _ in range(self._blank)), Line(tail + _CURSOR, self._style)]

    def _lines(self, text: str) -> Iterator[Line]:
        if not text.strip():
            self._blank += self._begun
            return
        yield from (Line() for _ in range(self._blank))
        self._begun, self._blank = True, 0
        yield Line(visible(text), self._style)

    @property
    def _style(self) -> str:
        return "dim italic" if self.block == "reasoning" else ""


class _Call:
    """A call: its arguments by path, in the order of their coming."""

    def __init__(self, identity: str, name: str) -> None:
        self.notes: list[Line] = []
        self._title = one_line(f"{name or '(no name)'}  ")
        self._identity = one_line(identity)
        self._cells: dict[Path, _String | str] = {}
        self._parents: set[Path] = set()

    def grow(self, path: Path, text: str) -> None:
        """More characters of the string at ``path``."""
        cell = self._cells.get(path)
        if not isinstance(cell, _String):
            cell = self._cells[path] = _String()
            self._enter(path)
        cell.grow(text)

    def complete(self, path: Path, value: object) -> None:
        """The value at ``path``. A list or an object whose parts have been shown needs no row."""
        cell = self._cells.get(path)
        if isinstance(value, str):
            if not isinstance(cell, _String):
                self.grow(path, value)
            string = self._cells[path]
            assert isinstance(string, _String)
            string.complete = True
        elif path not in self._parents:
            self._cells[path] = value_words(value)
            self._enter(path)

    def _enter(self, path: Path) -> None:
        self._parents.update(path[:depth] for depth in range(len(path)))

    def rows(self, verdict: str = "", style: str = "") -> Iterator[Line]:
        """The call in rows that are never wrapped; without a verdict it is still growing."""
        mark, colour = (
            ("✓", "green") if verdict.startswith("sealed") else ("✗", "bold red") if verdict else ("…", "cyan")
        )
        title = Line.assemble((f"{mark} ", colour), (self._title, "bold"), (self._identity, "dim"))
        if verdict:
            title.append(f"  {verdict}", style)
        yield _unwrapped(title)
        for path, cell in self._cells.items():
            name = f"  {path_words(path)}: "
            if isinstance(cell, str):
                yield _unwrapped(Line.assemble((name, "cyan"), cell))
            else:
                yield from cell.rows(name, bool(verdict))


class _String:
    """A string that grows: its end, and its size."""

    def __init__(self) -> None:
        self.complete = False
        self._tail = ""
        self._size = 0
        self._breaks = 0

    def grow(self, text: str) -> None:
        """More of it."""
        self._size += len(text)
        self._breaks += text.count("\n")
        self._tail += text[-_TAIL:]
        if len(self._tail) > 2 * _TAIL:
            self._tail = self._tail[-_TAIL:]

    def rows(self, name: str, over: bool) -> Iterator[Line]:
        """Beside its name, or its last lines below."""
        cut = "" if self.complete or not over else "  cut here"
        if self._size <= _SHORT and not self._breaks:
            words = value_words(self._tail)
            words = words if self.complete or over else words[:-1] + _CURSOR
            yield _unwrapped(Line.assemble((name, "cyan"), (words, "magenta"), (cut, "bold red")))
            return
        lines = self._tail.removesuffix("\n").split("\n")
        count = self._breaks + (not self._tail.endswith("\n"))
        yield _unwrapped(Line.assemble((name, "cyan"), (size_words(self._size, count), "bold"), (cut, "bold red")))
        if count > TAIL_LINES:
            yield Line(f"    … {count - TAIL_LINES:,} lines above", "dim")
        for line in lines[-TAIL_LINES:]:
            yield _unwrapped(Line.assemble(("    │ ", "dim"), visible(line[:1_000])))


def _error_rows(error: ErrorDetail) -> Iterator[Line]:
    yield Line(f"✗ {error.code.value}", "bold red")
    for words in error_lines(error):
        yield Line(f"    {words}", "red")


_DIFF = {"+": "green", "-": "red", "@": "cyan"}


def _tone(label: str, line: str) -> str:
    if label == "diff":
        return _DIFF.get(line[:1], "")
    return "bold red" if label == "error" else "dim"


def _unwrapped(line: Line) -> Line:
    line.no_wrap = True
    line.overflow = "ellipsis"
    return line
