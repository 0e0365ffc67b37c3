"""Native text: time per chunk, growth, the slowest feed, throughput, memory."""

from __future__ import annotations

import gc
import time
import tracemalloc
from functools import partial

import pytest

from benchmarks.measure import Measure, chunked, feed_all
from streamparse import NativeDecoder, compile_tools

WRITE = {
    "name": "write_file",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
}
WEATHER = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"type": "string"}},
    },
}
EDIT = {
    "name": "edit_file",
    "parameters": {"type": "object", "properties": {"edits": {"type": "array", "items": {"type": "object"}}}},
}
TOOLS = compile_tools([WRITE, WEATHER, EDIT])  # once for many answers, as a server does it

PROGRAM = 'def area(shape):\n    """Square metres."""\n    return shape.width * shape["height"]\n\n\n'
PAGE = '<div class="card"><p>A line of text.</p></div>\n'
PROSE = "The file has two parts, and the second one is what the test looks at. "


def fill(text: str, size: int) -> str:
    return (text * (size // len(text) + 1))[:size]


def envelope(inner: str) -> str:
    return f"<minimax:tool_call>\n{inner}</minimax:tool_call>"


def write_call(content: str) -> str:
    return envelope(
        f'<invoke name="write_file">\n<parameter name="path">a.py</parameter>\n'
        f'<parameter name="content">{content}</parameter>\n</invoke>\n'
    )


def short_call(number: int) -> str:
    return (
        f'<invoke name="get_weather">\n<parameter name="city">Town {number}</parameter>\n'
        f'<parameter name="days">{number}</parameter>\n<parameter name="unit">celsius</parameter>\n</invoke>\n'
    )


def edit_call(size: int) -> str:
    edits = '{"path": "src/a.py", "old": "x = 1\\n", "new": "x = 2  # \\"two\\"\\n"}'
    count = size // len(edits)
    return envelope(
        f'<invoke name="edit_file">\n<parameter name="edits">[{", ".join([edits] * count)}]</parameter>\n</invoke>\n'
    )


def decode(chunks: list[str]) -> None:
    feed_all(NativeDecoder(tools=TOOLS), chunks)


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("string parameter, 100 KB", write_call(fill(PROGRAM, 100_000)), "3 F"),
        ("string parameter full of tags, 100 KB", write_call(fill(PAGE, 100_000)), ""),
        ("10 calls, 3 short parameters each", envelope("".join(map(short_call, range(10)))), "3 µs"),
        ("text, 100 KB", fill(PROSE, 100_000), ""),
        ("list of edit objects (JSON parameter), 100 KB", edit_call(100_000), ""),
    ],
)
def test_time_per_chunk(measure: Measure, name: str, text: str, wanted: str) -> None:
    chunks = chunked(text)
    measure.per_chunk(f"{name}, 4-character chunks", lambda: decode(chunks), chunks, wanted)


def test_throughput(measure: Measure) -> None:
    for name, line in (("program text", PROGRAM), ("text full of tags", PAGE)):
        text = write_call(fill(line, 100_000 if measure.quick else 10_000_000))
        (seconds,) = measure.best([partial(decode, [text])], rounds=5)
        measure.table.add(
            f"one chunk of 10 MB, {name}", f"{len(text) / seconds / 1e6:.0f} MB/s", f"{seconds * 1e3:.1f} ms", "50 MB/s"
        )


SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
COUNTS = (10, 100, 1000, 10_000)


def parameters(count: int) -> str:
    pairs = "".join(f'<parameter name="p{number}">{number}</parameter>\n' for number in range(count))
    return envelope(f'<invoke name="f">\n{pairs}</invoke>\n')


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "sizes", "size"),
    [
        ("value of n characters, 4-character chunks", lambda n: write_call(fill(PROGRAM, n)), SIZES, 4),
        ("value of n characters, 1-character chunks", lambda n: write_call(fill(PROGRAM, n)), SIZES[:3], 1),
        ("n parameters, 4-character chunks", parameters, COUNTS, 4),
        ("n calls, 4-character chunks", lambda n: envelope("".join(map(short_call, range(n)))), COUNTS, 4),
        ("n calls, 1-character chunks", lambda n: envelope("".join(map(short_call, range(n)))), COUNTS[:3], 1),
        ("`<` n times, 1-character chunks", lambda n: write_call("<" * n), SIZES[:3], 1),
        ("`</parameter` repeated, 1-character chunks", lambda n: write_call(fill("</parameter", n)), SIZES[:3], 1),
        (
            "`</parameter>\\n` repeated, 1-character chunks",
            lambda n: write_call(fill("</parameter>\n", n)),
            SIZES[:3],
            1,
        ),
        (
            "`</parameter>\\n` repeated, 4-character chunks",
            lambda n: write_call(fill("</parameter>\n", n)),
            SIZES[:3],
            4,
        ),
        (
            "`</parameter></invoke>` and blanks, 1-character chunks",
            lambda n: write_call(fill("</parameter></invoke>" + " " * 900 + "x", n)),
            SIZES[:3],
            1,
        ),
    ],
)
def test_growth(measure: Measure, name: str, text, sizes, size: int) -> None:
    def work(count: int):
        chunks = chunked(text(count), size)
        return lambda: decode(chunks)

    measure.growth(name, work, sizes, "1.05")


def test_slowest_feed(measure: Measure) -> None:
    """The best of several runs for each feed, then the slowest of all feeds: what no luck explains away."""
    chunks = chunked(write_call(fill(PROGRAM, 40_000 if measure.quick else 1_000_000)))
    best = [1e9] * (len(chunks) + 1)
    for _ in range(1 if measure.quick else 7):
        decoder = NativeDecoder(tools=TOOLS)
        gc.collect()
        gc.disable()
        for number, chunk in enumerate(chunks):
            start = time.perf_counter()
            decoder.feed(chunk)
            best[number] = min(best[number], time.perf_counter() - start)
        gc.enable()
        decoder.close()
    slowest = max(best[:-1])
    where = best.index(slowest)
    measure.table.add(
        "slowest feed while 1 MB streams", f"{slowest * 1e3:.3f} ms", f"feed {where:,} of {len(chunks):,}", "1 ms"
    )
    measure.best([lambda: None])


@pytest.mark.parametrize(
    ("name", "text"),
    [("program text", fill(PROGRAM, 1_000_000)), ("beyond Latin", fill("Größe: 面積 = 幅 × 高さ\n", 1_000_000))],
)
def test_peak_memory(measure: Measure, name: str, text: str) -> None:
    """The chunks are made while they are fed, so that only the decoder's memory counts."""
    whole = write_call(text)
    size = len(text) * (1 if text.isascii() else 2)
    decoder = NativeDecoder(tools=TOOLS)
    tracemalloc.start()
    base = tracemalloc.get_traced_memory()[0]
    for at in range(0, len(whole), 4):
        decoder.feed(whole[at : at + 4])
    decoder.close()
    peak = tracemalloc.get_traced_memory()[1] - base
    tracemalloc.stop()
    measure.table.add(
        f"peak memory, 1 M characters of {name}", f"{peak / size:.2f} of the value", f"{peak / 1e6:.1f} MB", "3"
    )
    measure.best([lambda: None])
