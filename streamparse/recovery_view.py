"""The progress bar and the table of ``recover`` on a terminal. Needs rich (extra ``cli``); imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

_GOOD = {"fixed", "used", "recovered"}
_MIDDLE = {"new_error", "drifted", "ignored", "missing"}


@contextmanager
def bar(out: TextIO, total: int) -> Iterator[Callable[[Any], None]]:
    """A bar on ``out`` while the block runs; the function moves it on by one."""
    columns = (TextColumn("dialogues"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=out), transient=True) as shown:
        task = shown.add_task("", total=total)
        yield lambda _: shown.advance(task)


def table(out: TextIO, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on ``out``, its classes in colour. Nothing in a cell is markup."""
    made = Table(*head)
    for row in rows:
        made.add_row(*map(_coloured, row))
    Console(file=out).print(made)


def _coloured(cell: str) -> Text:
    text = Text(cell)
    at = 0
    for word in cell.split(" "):
        style = "green" if word in _GOOD else "yellow" if word in _MIDDLE else "red" if word in _BAD else ""
        if style:
            text.stylize(style, at, at + len(word))
        at += len(word) + 1
    return text


_BAD = {
    "malformed",
    "unfinished",
    "prose_call",
    "invented_tool",
    "foreign_tool",
    "repeat_identical",
    "repeat_same_field",
    "contradicts",
    "limit",
    "cycle",
}
