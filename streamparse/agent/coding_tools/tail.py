"""The end of an output that may have no end: the last lines, and the error lines of what was cut.

Bytes come in pieces of any size. Kept are the last lines, each at most a fixed length, the line that is open, and a few
error lines: a fixed amount, however much is printed.
"""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple

from streamparse.agent.coding_tools.bounds import ERROR_LINES, LINE_CHARACTERS, PAGE_CHARACTERS, TAIL_LINES
from streamparse.agent.coding_tools.outcome import clipped, plural

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])|[\x00-\x08\x0b-\x1a\x1c-\x1f]"
)
_ERROR = re.compile(
    r"\b(?:error|errors|failed|failure|fatal|panic|panicked|exception|traceback|undefined reference|segmentation fault|"
    r"assertion|not found|no such file|permission denied|cannot)\b|\w(?:Error|Exception)\b|^(?:E  |FAIL|ERROR)",
    re.IGNORECASE,
)
_HARMLESS = re.compile(r"\b(?:0|no) (?:errors?|failed|failures?)\b", re.IGNORECASE)

_LINE_BYTES = 4 * LINE_CHARACTERS
"""Bytes of an open line that are kept."""


_WORDS = (
    b"error", b"fail", b"fatal", b"panic", b"exception", b"traceback", b"undefined", b"fault", b"assertion",
    b"not found", b"no such", b"denied", b"cannot", b"e  ",
)  # fmt: skip
"""Every line that ``_ERROR`` finds holds one of these: a piece of output without them needs no closer look."""


class _Line(NamedTuple):
    """A line as it came; decoded when it is shown. ``lost``: bytes that were not kept. ``plain``: it holds no error."""

    raw: bytes
    lost: int
    plain: bool

    @property
    def text(self) -> str:
        text = clipped(_ESCAPES.sub("", self.raw.decode("utf-8", "replace")), LINE_CHARACTERS)
        return f"{text}… [+{plural(self.lost, 'byte')}]" if self.lost else text


class Tail:
    """``feed`` it the output; ``lines`` and ``errors`` are what is left of it."""

    def __init__(self, keep: int = TAIL_LINES) -> None:
        self._keep = keep
        self._last: deque[_Line] = deque()
        self._open = bytearray()
        self._lost = 0  # bytes of the open line that were not kept
        self._first_errors: list[tuple[int, str]] = []
        self._last_errors: deque[tuple[int, str]] = deque(maxlen=ERROR_LINES)
        self._errors = 0
        self.total = 0
        """Complete lines so far, and after ``close`` all lines."""

    def feed(self, data: bytes) -> None:
        """More output."""
        first, *middle = data.split(b"\n")
        self._grow(first)
        if not middle:
            return
        self._end_line(plain=False)  # it may have begun in another piece, in the middle of a word
        last = middle.pop()
        plain = not _is_suspicious(data)
        if plain and len(middle) > self._keep:  # none of these is ever shown: they are only counted
            while self._last:
                self._cut()
            self.total += len(middle) - self._keep
            del middle[: -self._keep]
        for line in middle:
            self._grow(line)
            self._end_line(plain)
        self._grow(last)

    def close(self) -> None:
        """The output is over, perhaps within a line."""
        if self._open or self._lost:
            self._end_line(plain=False)

    def _grow(self, piece: bytes) -> None:
        if (turn := piece.rfind(b"\r", 0, -1)) >= 0:  # a progress bar: what was before it has been painted over
            self._open.clear()
            self._lost, piece = 0, piece[turn + 1 :]
        elif self._open.endswith(b"\r") and piece:
            self._open.clear()
            self._lost = 0
        room = max(0, _LINE_BYTES - len(self._open))
        self._open += piece[:room]
        self._lost += len(piece) - min(room, len(piece))
        if self._lost and piece.endswith(b"\r"):
            self._open[-1:] = b"\r"

    def _end_line(self, plain: bool) -> None:
        self._last.append(_Line(bytes(self._open), self._lost, plain))
        self._open.clear()
        self._lost = 0
        self.total += 1
        if len(self._last) > self._keep:
            self._cut()

    def _cut(self) -> None:
        """Let go of the oldest line that is kept."""
        line = self._last.popleft()
        if line.plain or not _is_suspicious(line.raw):
            return
        text = line.text
        if not _ERROR.search(text) or _HARMLESS.search(text):
            return
        self._errors += 1
        entry = (self.total - len(self._last), clipped(text, 300))
        if len(self._first_errors) < ERROR_LINES:
            self._first_errors.append(entry)
        else:
            self._last_errors.append(entry)

    def fit(self, characters: int = PAGE_CHARACTERS) -> None:
        """Let go of the oldest lines until so many characters are left; after ``close``."""
        size = sum(len(line.text) for line in self._last)
        while size > characters and len(self._last) > 1:
            size -= len(self._last[0].text)
            self._cut()

    @property
    def lines(self) -> list[str]:
        """The last lines."""
        return [line.text for line in self._last]

    @property
    def cut(self) -> int:
        """How many lines stood before them."""
        return self.total - len(self._last)

    @property
    def errors(self) -> list[str]:
        """The error lines among those that were cut, with their numbers; the first and the last of them."""
        shown = [f"{number}\t{line}" for number, line in (*self._first_errors, *self._last_errors)]
        if missing := self._errors - len(shown):
            shown.insert(ERROR_LINES, f"[{missing:,} error lines more]")
        return shown


def _is_suspicious(data: bytes) -> bool:
    lowered = data.lower()
    return any(word in lowered for word in _WORDS)
