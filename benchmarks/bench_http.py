"""Over loopback HTTP: what `stream` costs beside httpx-sse alone, and many streams in one process.

The server runs in a process of its own and writes one event at a time, so that the CPU time measured here is the
client's."""

from __future__ import annotations

import asyncio
import gc
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import httpx
import httpx_sse
import pytest

import streamparse
from benchmarks.bench_wires import events
from benchmarks.measure import Measure
from streamparse.transport.recording import Header, Piece, write
from streamparse.transport.wires import Wire

COUNT = 2_000  # events of one stream
MANY = 200  # streams at once
FEW = 250  # events of each of them
PACE = 0.05  # seconds between two events: 20 tokens a second
REQUEST = {"model": "answer", "stream": True, "messages": []}
PATH = "/v1/chat/completions"
START = 30.0  # seconds that the server may take


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that writes as fast as it can."""
    folder = tmp_path_factory.mktemp("answers")
    for name, count in {"answer": COUNT, "short": FEW}.items():
        Path(folder, f"{name}.sse").write_bytes(b"".join(events(count)))
    yield from serving(folder, "answer.sse", "short.sse", "--speed", "inf", "--chunk", "event")


@pytest.fixture(scope="module")
def paced_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that writes an event every ``PACE`` seconds."""
    folder = tmp_path_factory.mktemp("paced")
    pieces = [Piece.of(number * PACE, event) for number, event in enumerate(events(FEW // 2))]
    header = Header(wire=Wire.CHAT, media_type="text/event-stream")
    Path(folder, "short.jsonl").write_text(write(header, pieces), encoding="utf-8")
    yield from serving(folder, "short.jsonl")


def serving(folder: Path, *arguments: str) -> Iterator[str]:
    command = [sys.executable, "-m", "streamparse", "serve", *arguments, "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found is not None, "the server did not start"
            yield found[0]
        finally:
            server.terminate()
            server.wait(START)


# One stream -----------------------------------------------------------------------------------------------------------


def ours(client: httpx.Client) -> None:
    with streamparse.stream(client, PATH, REQUEST) as answer:
        for _ in answer:
            pass
    assert answer.error is None


def sse_alone(client: httpx.Client) -> None:
    """httpx-sse: events as text, nothing decoded."""
    with httpx_sse.connect_sse(client, "POST", PATH, json=REQUEST) as source:
        for _ in source.iter_sse():
            pass


def sse_and_json(client: httpx.Client) -> None:
    """httpx-sse, and the JSON in its events decoded: what anybody needs who uses it."""
    with httpx_sse.connect_sse(client, "POST", PATH, json=REQUEST) as source:
        for event in source.iter_sse():
            if event.data != "[DONE]":
                event.json()


async def ours_async(client: httpx.AsyncClient) -> None:
    async with streamparse.astream(client, PATH, REQUEST) as answer:
        async for _ in answer:
            pass


async def sse_alone_async(client: httpx.AsyncClient) -> None:
    async with httpx_sse.aconnect_sse(client, "POST", PATH, json=REQUEST) as source:
        async for _ in source.aiter_sse():
            pass


def test_one_write_per_event(measure: Measure, url: str) -> None:
    with httpx.Client(base_url=url, trust_env=False) as client:
        works = [lambda: ours(client), lambda: sse_alone(client), lambda: sse_and_json(client)]
        own, alone, read = measure.best(works, rounds=15)
    tell(measure, "one write per event, blocking", own, alone, read)


def test_one_write_per_event_async(measure: Measure, url: str) -> None:
    async def run() -> tuple[float, float]:
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            best = [float("inf"), float("inf")]
            for _ in range(1 if measure.quick else 15):
                for number, work in enumerate((ours_async, sse_alone_async)):
                    start = time.process_time()
                    await work(client)
                    best[number] = min(best[number], time.process_time() - start)
            return best[0], best[1]

    own, alone = asyncio.run(run())
    measure.best([lambda: None], rounds=1)
    tell(measure, "one write per event, asynchronous", own, alone)


def tell(measure: Measure, name: str, own: float, alone: float, read: float | None = None) -> None:
    each = f"{own / COUNT * 1e6:.1f} µs per event, httpx-sse {alone / COUNT * 1e6:.1f} µs"
    beside = "" if read is None else f", with its JSON {read / COUNT * 1e6:.1f} µs"
    measure.table.add(name, f"{own / alone:.2f} times httpx-sse", each + beside, "1.3")


# Many streams ---------------------------------------------------------------------------------------------------------


async def one_of_many(client: httpx.AsyncClient, started: asyncio.Barrier, gaps: list[float]) -> float:
    """One stream; its longest wait between two events goes to ``gaps``. Returns when it ended.

    Streams begin together, with what had arrived by then: to connect takes a client longer than to read. So the first
    events do not count, and neither does the last, which waits for the end of the response: httpcore's pool takes
    milliseconds for each of many connections that end at once."""
    longest, count = 0.0, 0
    async with streamparse.astream(client, PATH, {**REQUEST, "model": "short"}) as answer:
        await started.wait()
        last = time.perf_counter()
        async for event in answer:
            now = time.perf_counter()
            count += 1
            if count > FEW // 4 and not isinstance(event, streamparse.Ended):
                longest = max(longest, now - last)
            last = now
    assert answer.error is None
    gaps.append(longest)
    return last


async def many(url: str, count: int) -> tuple[float, float, list[float], list[float]]:
    """The time of ``count`` streams, the share of it in which the process worked, their longest waits, their ends."""
    limits = httpx.Limits(max_connections=count)
    gaps: list[float] = []
    barrier = asyncio.Barrier(count + 1)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=120, trust_env=False) as client:
        running = [asyncio.create_task(one_of_many(client, barrier, gaps)) for _ in range(count)]
        await barrier.wait()
        start, worked = time.perf_counter(), time.process_time()
        ends = await asyncio.gather(*running)
        spent = time.perf_counter() - start
        busy = (time.process_time() - worked) / spent
    return spent, busy, gaps, [end - start for end in ends]


def test_many_streams_at_once(measure: Measure, url: str) -> None:
    """As fast as it goes: all that one process can take."""
    count = 20 if measure.quick else MANY
    spent, _, _, ends = asyncio.run(many(url, count))
    measure.best([lambda: None], rounds=1)
    rate = count * FEW / spent
    measure.table.add(f"{count} streams at once, events a second", f"{rate:,.0f}", f"{spent:.1f} s in all", "")
    detail = f"first ends after {min(ends):.1f} s, last after {max(ends):.1f} s"
    measure.table.add("the last of them ends, in shares", f"{max(ends) / (sum(ends) / count):.2f}", detail, "")


def test_many_streams_at_their_pace(measure: Measure, paced_url: str) -> None:
    """As models write: how long a stream waits for an event because of the others."""
    count = 20 if measure.quick else MANY
    _, busy, gaps, _ = asyncio.run(many(paced_url, count))
    measure.best([lambda: None], rounds=1)
    words = f"{count} streams, an event every {PACE * 1e3:.0f} ms: longest wait"
    detail = f"median of the streams' longest {median(gaps) * 1e3:.0f} ms; the process is busy for {busy:.0%}"
    measure.table.add(words, f"{max(gaps) * 1e3:.0f} ms", detail, "")


def test_memory_per_stream(measure: Measure, url: str) -> None:
    """What a stream holds while it runs, with the client's own buffers; beside it, a plain response of the client."""
    count = 5 if measure.quick else 50

    async def held(plain: bool) -> float:
        limits = httpx.Limits(max_connections=count)
        async with httpx.AsyncClient(base_url=url, limits=limits, timeout=120, trust_env=False) as client:
            gc.collect()
            tracemalloc.start()
            opened = [await _open(client, plain) for _ in range(count)]
            size = tracemalloc.get_traced_memory()[0] / count
            tracemalloc.stop()
            for each in opened:
                await each.aclose()
        return size

    async def both() -> tuple[float, float]:
        await held(False)  # what is loaded once is no stream's
        return await held(False), await held(True)

    own, client_only = asyncio.run(both())
    measure.best([lambda: None], rounds=1)
    detail = f"a plain response of the client, with what it has read: {client_only / 1024:.1f} KiB"
    measure.table.add("memory of a stream, with its response", f"{own / 1024:.1f} KiB", detail, "")


async def _open(client: httpx.AsyncClient, plain: bool) -> streamparse.AsyncAnswerStream | httpx.Response:
    if plain:
        request = client.build_request("POST", PATH, json=REQUEST)
        response = await client.send(request, stream=True)
        await anext(response.aiter_bytes())
        return response
    answer = streamparse.astream(client, PATH, REQUEST)
    await answer.__aenter__()
    await anext(answer)
    return answer
