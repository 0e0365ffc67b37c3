"""The progress bar and the table of ``recover`` on a terminal. Needs rich (extra ``cli``); imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from streamparse.agent.recovery.classes import GOOD, MIDDLE, End, TurnClass

_KNOWN = {*TurnClass, *End}


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
        style = "" if word not in _KNOWN else "green" if word in GOOD else "yellow" if word in MIDDLE else "red"
        if style:
            text.stylize(style, at, at + len(word))
        at += len(word) + 1
    return text
