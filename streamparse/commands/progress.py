"""A progress bar over many runs, and a table: with rich on a terminal, where it is installed, and without it anywhere.

The bar is on standard error, so that what is written to standard output is the same with and without it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO


@contextmanager
def progress(total: int) -> Iterator[Callable[[Any], None]]:
    """A function to call for each of ``total`` steps that is done. For one step, and without a terminal, no bar."""
    if total < 2 or not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        from streamparse.recovery_view import bar
    except ModuleNotFoundError:
        count = 0

        def told(_: Any) -> None:
            nonlocal count
            count += 1
            sys.stderr.write(f"\r{count} of {total}" + ("\n" if count == total else ""))
            sys.stderr.flush()

        yield told
        return
    with bar(sys.stderr, total) as step:
        yield step


def show_table(out: TextIO, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on ``out``. Cells are one line each, and safe for a terminal."""
    if out.isatty():
        try:
            from streamparse.recovery_view import table
        except ModuleNotFoundError:
            pass
        else:
            table(out, head, rows)
            return
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    for row in [head, *rows]:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        out.write(f"{line.rstrip()}\n")
