"""How events are said to people: places, sizes, errors, deviations, the last line. No colour and no layout.

What a model wrote may hold control characters, and a terminal obeys them. So whatever is shown to people goes through
``visible`` (line breaks and tabs stay) or ``one_line``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from sys import maxsize

from streamparse.events import (
    ArgumentRejected,
    Deviated,
    Deviation,
    Ended,
    ErrorDetail,
    Event,
    Failed,
    Path,
    Reasoning,
    Text,
    ToolCallFailed,
    ToolCallFinished,
    join_words,
)
from streamparse.wording import counted as counted
from streamparse.wording import place

# Controls (C0 without tab and line feed, DEL, C1), separators that some terminals take for line breaks, marks that turn
# the direction of text, invisible tags, and halves of surrogate pairs, which cannot be encoded.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
_BREAKS = {"\n": "\\n", "\t": "\\t"}


def visible(text: str) -> str:
    """``text`` with every character that could drive a terminal written as an escape: ``\\x1b[2J``."""
    return _UNSAFE.sub(lambda match: _escape(match[0]), text)


def one_line(text: str) -> str:
    """``visible``, and in one line."""
    return re.sub(r"[\n\t]", lambda match: _BREAKS[match[0]], visible(text))


def _escape(character: str) -> str:
    number = ord(character)
    if number == 0x0D:
        return "\\r"
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def path_words(path: Path) -> str:
    """``("todos", 0, "content")`` as ``todos[0].content``; a key that is no word in quotes, ``todos["a b"]``. Whole,
    however long."""
    return place(path, maxsize)


def value_words(value: object) -> str:
    """A value as JSON in one line."""
    return one_line(json.dumps(value, ensure_ascii=False))


def size_words(characters: int, lines: int) -> str:
    """The size of a text."""
    size = counted(characters, "character")
    return f"{counted(lines, 'line')}, {size}" if lines > 1 else size


def error_lines(error: ErrorDetail) -> Iterator[str]:
    """What is wrong and where; what was expected there; the text at the place."""
    argument = f", argument {path_words(error.path)}" if error.path else ""
    inside = f" in {' > '.join(error.open)}" if error.open else ""
    yield one_line(f"{error.reason} at {error.offset:,}{inside}{argument}")
    if error.expected:
        yield one_line(f"expected {join_words(error.expected)}")
    if error.excerpt:
        yield f"near {value_words(error.excerpt)}"


def deviation_words(deviation: Deviation) -> str:
    """One line about what was tolerated."""
    argument = f" in {path_words(deviation.path)}" if deviation.path else ""
    words = f"{deviation.code.value} at {deviation.offset:,}{argument}"
    if deviation.expected or deviation.found:
        words += f"; expected {deviation.expected or 'nothing'}, found {deviation.found or 'nothing'}"
    if deviation.tier:
        words += f"; tier {deviation.tier}"
    if deviation.detail:
        words += f": {json.dumps(deviation.detail, ensure_ascii=False)}"
    return one_line(words)


def rejection_words(rejected: ArgumentRejected) -> str:
    """One line about what cannot fit the tool's schema any more."""
    issue = rejected.issue
    where = path_words(rejected.path) if rejected.path else "the call"
    found = f", found {issue.found} {issue.value}".rstrip() if issue.found else ""
    allowed = f"; allowed: {', '.join(issue.allowed)}{f' and {issue.more:,} more' if issue.more else ''}"
    return one_line(f"{where}: {issue.code.value}{found}{allowed if issue.allowed else ''}")


@dataclass
class Tally:
    """Counts what came, for the last line."""

    text: int = 0
    reasoning: int = 0
    sealed: int = 0
    failed: int = 0
    errors: int = 0
    deviations: int = 0
    finish_reason: str | None = None
    clean: bool = True

    def count(self, event: Event) -> None:
        """One more event."""
        match event:
            case Text(text):
                self.text += len(text)
            case Reasoning(text):
                self.reasoning += len(text)
            case ToolCallFinished():
                self.sealed += 1
            case ToolCallFailed():
                self.failed += 1
            case Failed():
                self.errors += 1
            case Deviated():
                self.deviations += 1
            case Ended(reason, _, clean):
                self.finish_reason, self.clean = reason, clean
            case _:
                pass

    def words(self) -> str:
        """The last line: ``clean: 2 calls sealed; text 120, reasoning 340 characters; finish reason stop``."""
        return f"{'clean' if self.clean else 'not clean'}: {'; '.join(self._parts())}"

    def _parts(self) -> Iterable[str]:
        yield f"{counted(self.sealed, 'call')} sealed"
        if self.failed:
            yield f"{self.failed:,} failed"
        if self.errors:
            yield counted(self.errors, "error")
        if self.deviations:
            yield counted(self.deviations, "deviation")
        yield f"{counted(self.text, 'character')} of text, {self.reasoning:,} of reasoning"
        if self.finish_reason is not None:
            yield f"finish reason {one_line(self.finish_reason)}"
