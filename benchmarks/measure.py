"""Measuring on a noisy machine: CPU time in one process, work and floor in turns, the best of many rounds, ratios.

A ratio to a floor that was measured between the same rounds tells more than a time: these machines are shared, and
their clock changes from minute to minute by half."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamparse import ArgumentDelta, NativeDecoder

Work = Callable[[], Any]

PATH = ("content",)


def chunked(text: str, size: int = 4) -> list[str]:
    """The text in chunks of so many characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def wrap(chunk: str) -> list[ArgumentDelta]:
    """A feed that wraps each chunk into one event and does nothing else."""
    return [ArgumentDelta(0, PATH, chunk)]


def floor(chunks: Sequence[str]) -> None:
    """F: the least that any push decoder does for a chunk: a call, an event, a list."""
    feed = wrap
    for chunk in chunks:
        feed(chunk)


def bare_floor(chunks: Sequence[str]) -> None:
    """The same without the call and its list: the event alone, kept in one list."""
    events: list[ArgumentDelta] = []
    for chunk in chunks:
        events.append(ArgumentDelta(0, PATH, chunk))  # noqa: PERF401 - a comprehension is no consumer's loop


def feed_all(decoder: NativeDecoder, chunks: Sequence[str]) -> None:
    """A consumer's loop that looks at nothing."""
    feed = decoder.feed
    for chunk in chunks:
        feed(chunk)
    decoder.close()


@dataclass
class Table:
    """The figures of a run, in the order of measuring."""

    rows: list[tuple[str, str, str, str]] = field(default_factory=list)

    def add(self, name: str, figure: str, detail: str, target: str) -> None:
        """One line: what, the figure, how it came about, and what it should be."""
        self.rows.append((name, figure, detail, target))

    def text(self) -> str:
        """As a Markdown table, for benchmarks/README.md."""
        head = ("workload", "figure", "measured", "wanted")
        return "\n".join(
            ["| " + " | ".join(row) + " |" for row in (head, ("---",) * 4, *self.rows)],
        )


class Measure:
    """The fixture of the benchmarks. ``quick`` runs everything once and small, to see that it works."""

    def __init__(self, table: Table, benchmark: Any, quick: bool) -> None:
        self.table = table
        self.quick = quick
        self._benchmark = benchmark
        self._told = False

    def best(self, works: Sequence[Work], rounds: int = 25) -> list[float]:
        """The best CPU time of each piece of work in seconds; they take turns."""
        if self.quick:
            rounds = 1
        best = [math.inf] * len(works)
        gc.collect()
        for _ in range(rounds):
            for number, work in enumerate(works):
                start = time.process_time()
                work()
                best[number] = min(best[number], time.process_time() - start)
        if not self._told:  # for pytest-benchmark's own statistics, which take one workload a test
            self._told = True
            self._benchmark.pedantic(works[0], rounds=1 if self.quick else 3)
        return best

    def per_chunk(self, name: str, work: Work, chunks: Sequence[str], wanted: str, rounds: int = 25) -> None:
        """A workload's time per chunk, and its ratio to both floors on chunks of the same number."""
        like = chunked("x" * 40_000)
        ours, plain, bare = self.best([work, lambda: floor(like), lambda: bare_floor(like)], rounds)
        each, f, b = ours / len(chunks), plain / len(like), bare / len(like)
        detail = f"{each * 1e9:.0f} ns, F {f * 1e9:.0f} ns, bare loop {b * 1e9:.0f} ns ({each / b:.1f} of it)"
        self._benchmark.extra_info.update(ratio=each / f, ns=each * 1e9)
        self.table.add(name, f"{each / f:.2f} F", detail, wanted)

    def growth(self, name: str, work: Callable[[int], Work], sizes: Sequence[int], wanted: str) -> None:
        """The exponent with which the time grows between the smallest and the largest size (least squares)."""
        if self.quick:
            sizes = sizes[:2]
        times = [self.best([work(size)], rounds=5)[0] for size in sizes]
        xs, ys = [math.log(size) for size in sizes], [math.log(max(t, 1e-9)) for t in times]
        mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
        slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
        slope /= sum((x - mean_x) ** 2 for x in xs)
        detail = ", ".join(f"{size:,}: {t * 1e3:.2f} ms" for size, t in zip(sizes, times, strict=True))
        self._benchmark.extra_info.update(exponent=slope)
        self.table.add(name, f"exponent {slope:.2f}", detail, wanted)
