"""Events as a plain log: complete lines, each with a label, without colours or cursor tricks.

::

    reasoning | The user wants the tests to pass.
    call 0    | write_file (call_0)
    call 0    |   path: "notes.md"
    call 0    |   content:
    call 0    |     # Notes
    call 0    |     (12 lines, 340 characters)
    call 0    | sealed
    end       | clean: 1 call sealed; …

A line is written when it is complete, a value of one line when the value is. Nothing is kept but the open line (and,
with ``elide``, a few lines of the open value).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from types import TracebackType
from typing import Self, TextIO

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

SHORT = 100
"""Characters of a string that is shown beside its name, in quotes. Longer ones, and several lines, stand below."""

_LABEL = 9


class TextLog:
    """Writes events to ``out``. ``elide``: of a long string only so many lines from its start and from its end."""

    def __init__(self, out: TextIO, *, elide: int | None = None) -> None:
        self.tally = Tally()
        self._out = out
        self._elide = elide
        self._prose = ""  # the label of the open line
        self._line: list[str] = []
        self._strings: dict[tuple[int, Path], _String] = {}
        self._parents: set[tuple[int, Path]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._end_prose()

    def show(self, events: Iterable[Event]) -> None:
        """More events."""
        for event in events:
            self.tally.count(event)
            self._show(event)
        self._out.flush()

    def heading(self, title: str, note: str) -> None:
        """What comes next, and what to look at."""
        self._out.write(f"\n== {one_line(title)}\n")
        self._lines("look", [note] if note else [])

    def remark(self, words: str, good: bool) -> None:
        """A word about what came."""
        self._lines("demo" if good else "error", [one_line(words)])
        self._out.flush()

    def block(self, label: str, lines: Iterable[str]) -> None:
        """Lines that are no event."""
        self._end_prose()
        self._lines(label, map(visible, lines))
        self._out.flush()

    def _show(self, event: Event) -> None:
        match event:
            case Text(text):
                self._say("text", text)
            case Reasoning(text):
                self._say("reasoning", text)
            case ArgumentDelta(index, path, text):
                self._grow(index, path, text)
            case _:
                self._end_prose()
                self._show_whole(event)

    def _show_whole(self, event: Event) -> None:
        match event:
            case ToolCallStarted(index, identity, name):
                self._lines(f"call {index}", [one_line(f"{name} ({identity})")])
            case ArgumentValue(index, path, value):
                self._value(index, path, value)
            case ArgumentRejected(index):
                self._lines(f"call {index}", [f"rejected: {rejection_words(event)}"])
            case ToolCallFinished(index, call):
                self._lines(f"call {index}", ["sealed" if call.trusted else "sealed, not trusted"])
            case ToolCallFailed(index, _, error):
                self._cut_strings(index)
                self._lines(f"call {index}", ["failed"])
                self._error(error)
            case Failed(error):
                self._error(error)
            case Deviated(index, deviation):
                where = "" if index is None else f"call {index}: "
                self._lines("deviation", [where + deviation_words(deviation)])
            case Ended():
                self._lines("end", [self.tally.words()])
            case _:
                pass

    # Lines

    def _lines(self, label: str, lines: Iterable[str]) -> None:
        for line in lines:
            self._out.write(f"{label:<{_LABEL}} | {line}".rstrip() + "\n")

    def _error(self, error: ErrorDetail) -> None:
        self._lines("error", [error.code.value, *(f"  {line}" for line in error_lines(error))])

    # Prose

    def _say(self, label: str, text: str) -> None:
        if label != self._prose:
            self._end_prose()
            self._prose = label
        *complete, rest = text.split("\n")
        for part in complete:
            self._line.append(part)
            self._end_line()
        self._line.append(rest)

    def _end_line(self) -> None:
        self._lines(self._prose, [visible("".join(self._line))])
        self._line.clear()

    def _end_prose(self) -> None:
        if any(self._line):
            self._end_line()
        self._line.clear()
        self._prose = ""

    # Arguments

    def _grow(self, index: int, path: Path, text: str) -> None:
        string = self._strings.get((index, path))
        if string is None:
            self._end_prose()
            string = self._strings[index, path] = _String(path_words(path), self._elide)
            self._parents.update((index, path[:depth]) for depth in range(len(path)))
        self._argument(index, string.grow(text))

    def _value(self, index: int, path: Path, value: object) -> None:
        string = self._strings.pop((index, path), None)
        if string is None and isinstance(value, str):
            string = _String(path_words(path), self._elide)
            self._argument(index, string.grow(value))
        if string is not None:
            self._argument(index, string.end(value))
        elif (index, path) not in self._parents:  # else its parts have been shown
            self._argument(index, [f"{path_words(path)}: {value_words(value)}"])
        self._parents.update((index, path[:depth]) for depth in range(len(path)))

    def _cut_strings(self, index: int) -> None:
        for key in [key for key in self._strings if key[0] == index]:
            self._argument(index, self._strings.pop(key).cut())

    def _argument(self, index: int, lines: Iterable[str]) -> None:
        self._lines(f"call {index}", (f"  {line}" for line in lines))


class _String:
    """A string that grows. Each method returns the lines that are certain now."""

    def __init__(self, name: str, elide: int | None) -> None:
        self._name = name
        self._elide = elide
        self._line: list[str] = []
        self._size = 0  # characters
        self._width = 0  # characters of the open line
        self._count = 0  # complete lines
        self._long = False
        self._kept: deque[str] = deque(maxlen=elide or 0)  # the last lines, where they are elided

    def grow(self, text: str) -> list[str]:
        """More of it."""
        self._size += len(text)
        *complete, rest = text.split("\n")
        lines: list[str] = []
        if not self._long and (complete or self._width + len(rest) > SHORT):
            self._long = True
            lines.append(f"{self._name}:")
        for part in complete:
            self._line.append(part)
            lines += self._end_line()
        self._line.append(rest)
        self._width += len(rest)
        return lines

    def end(self, value: object) -> list[str]:
        """It is complete."""
        if not self._long:
            return [f"{self._name}: {value_words(value)}"]
        return [*self._last_lines(), f"  ({size_words(self._size, self._count)})"]

    def cut(self) -> list[str]:
        """It will never be complete."""
        if not self._long:
            return [f"{self._name}: {value_words(''.join(self._line))} (cut here)"]
        return [*self._last_lines(), f"  (cut here: {size_words(self._size, self._count)})"]

    def _end_line(self) -> list[str]:
        line = f"  {visible(''.join(self._line))}"
        self._line.clear()
        self._width = 0
        self._count += 1
        if self._elide is None or self._count <= self._elide:
            return [line]
        self._kept.append(line)
        return []

    def _last_lines(self) -> list[str]:
        open_line = self._end_line() if any(self._line) else []
        if self._elide is None:
            return open_line
        left_out = self._count - self._elide - len(self._kept)
        note = [f"  … {left_out:,} more lines …"] if left_out > 0 else []
        return [*open_line, *note, *self._kept]
