"""The JSON reader against a floor, and against those who parse the whole buffer again at each delta.

    python -m benchmarks.bench_arguments

One process, CPU time, the best of several repeats that take turns; documents of 100 KB in chunks of 4 characters; path
events at every depth. Absolute times are of the machine; what counts is the ratio to F (``measure.floor``: a call that
returns a list with one event), measured in the same run. f is ``measure.bare_floor``: the event alone.

Rivals have no state: at each delta they parse all that has come. Their total is the mean over a few buffer lengths,
times the number of deltas; to run it out would take an hour.
"""

from __future__ import annotations

import importlib
import json
import math
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks.measure import bare_floor, chunked, floor
from streamparse.decoding.arguments import JsonDecoder

SIZE = 100_000
CHUNK = 4
REPEATS = 9
RIVAL_SECONDS = 2.5
"""CPU time that one rival gets for one document."""

PROSE = "The model writes a file, and the reader hands on each character while the stream is still running. "
CODE = '''def load(path: str, *, strict: bool = True) -> dict[str, Any]:
    """Read a configuration file; raises `ConfigError("no such file")`."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as error:
        raise ConfigError(f"cannot read {path!r}: {error}") from error
    if strict and not isinstance(data, dict):
        raise ConfigError("the top level has to be an object")
    return {key.strip(): value for key, value in data.items()}


'''

# Documents ------------------------------------------------------------------------------------------------------------


def filled(make: Callable[[int], Any], size: int) -> list[Any]:
    """``make(0), make(1), ...`` until their JSON is so long."""
    items: list[Any] = []
    length = 0
    while length < size:
        items.append(make(len(items)))
        length += len(json.dumps(items[-1])) + 2
    return items


def one_string(size: int) -> Any:
    return {"path": "notes.txt", "content": (PROSE * (size // len(PROSE) + 1))[:size]}


def program_text(size: int) -> Any:
    pieces = filled(lambda n: CODE.replace("load", f"load_{n}"), size)
    return {"path": "config.py", "content": "".join(pieces)}


def edit_objects(size: int) -> Any:
    lines = CODE.splitlines(keepends=True)

    def edit(n: int) -> Any:
        old = "".join(lines[n % 10 : n % 10 + 2])
        return {"path": f"src/module_{n}.py", "old": old, "new": old.replace("data", "payload"), "line": n % 500}

    return {"edits": filled(edit, size)}


def dense(size: int) -> Any:
    draw = random.Random(1)

    def word() -> str:
        return "".join(draw.choices("abcdefgh", k=draw.randrange(3, 9)))

    def row(n: int) -> Any:
        return [draw.randrange(10**6), round(draw.random() * 1000, 4), word()]

    return {"rows": filled(row, size)}


WORKLOADS: list[tuple[str, Callable[[int], Any], float]] = [
    ("one string, no escapes", one_string, 2.5),
    ("program text, escapes", program_text, 6),
    ("list of edit objects", edit_objects, 8),
    ("dense numbers, short strings", dense, 14),
]


def chunks_of(make: Callable[[int], Any], size: int = SIZE, chunk: int = CHUNK) -> list[str]:
    return chunked(json.dumps(make(size)), chunk)


# Ours against the floor -----------------------------------------------------------------------------------------------


def read(chunks: list[str]) -> None:
    reader = JsonDecoder()
    feed = reader.feed
    for chunk in chunks:
        feed(chunk)
    reader.close()
    assert reader.state == "complete", reader.error


def seconds(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def against_the_floor() -> None:
    cut = {name: chunks_of(make) for name, make, _ in WORKLOADS}
    plain = cut[WORKLOADS[0][0]]
    runs: dict[str, Callable[[], Any]] = {"F": lambda: floor(plain), "f": lambda: bare_floor(plain)}
    runs |= {name: partial(read, chunks) for name, chunks in cut.items()}
    best = dict.fromkeys(runs, math.inf)
    for _ in range(REPEATS):  # in turn, so that a slow second of the machine meets all of them
        for name, run in runs.items():
            best[name] = min(best[name], seconds(run) / len(cut.get(name, plain)))
    print(f"{'100 KB in 4-character chunks':32}{'ns/chunk':>10}{'MB/s':>7}{'x F':>7}{'limit':>7}{'x f':>7}")
    limits = {name: limit for name, _, limit in WORKLOADS}
    for name, each in best.items():
        limit = limits.get(name, "")
        speed = CHUNK / each / 1e6
        ratios = f"{each / best['F']:7.2f}{limit:>7}{each / best['f']:7.2f}"
        print(f"{name:32}{each * 1e9:10.0f}{speed:7.1f}{ratios}")


def growth() -> None:
    """Time grows as size to the power of this; 1 is linear. The floor's own exponent (caches) is taken off."""
    print("\ngrowth exponent of time over that of F, 20 KB to 2 MB")
    cases: list[tuple[str, Callable[[int], Any], int]] = [
        *((name, make, CHUNK) for name, make, _ in WORKLOADS),
        ("one string, 1-character chunks", one_string, 1),
        ("program text, 100-character chunks", program_text, 100),
    ]
    for name, make, size in cases:
        small, large = chunks_of(make, 20_000, size), chunks_of(make, 2_000_000, size)
        ratios = [best_of(5, read, chunks) / best_of(5, floor, chunks) for chunks in (small, large)]
        print(f"{name:32}{1 + math.log(ratios[1] / ratios[0], 100):10.3f}")


def slowest_feed() -> None:
    """The longest of 250,000 feeds, and the one with the closing quote; the best of three runs, as the rest is the
    machine's."""
    chunks = [*chunks_of(one_string, 1_000_000)]
    worst = []
    for _ in range(3):
        reader, longest = JsonDecoder(), 0.0
        for chunk in chunks:
            start = time.perf_counter()
            reader.feed(chunk)
            longest = max(longest, time.perf_counter() - start)
        worst.append(longest)
    print(f"\nslowest feed while 1 MB streams   {min(worst) * 1e6:8.0f} us  (limit 1000)")


def memory() -> None:
    print("\npeak memory over the final value, 1 MB (limit 3)")
    for name, make, _ in WORKLOADS:
        chunks = chunks_of(make, 1_000_000, 100)
        tracemalloc.start()
        reader = JsonDecoder()
        for chunk in chunks:
            reader.feed(chunk)
        final, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(f"{name:32}{peak / final:10.2f}")


# Rivals ---------------------------------------------------------------------------------------------------------------

Parse = Callable[[str], Any]


def rivals() -> Iterator[tuple[str, Parse | None]]:
    """Name and parser of a buffer; None if it is not installed."""
    makers: list[tuple[str, str, Callable[[Any], Parse]]] = [
        ("jiter", "jiter", lambda m: lambda text: m.from_json(text.encode(), partial_mode="trailing-strings")),
        ("pydantic-core", "pydantic_core", lambda m: lambda text: m.from_json(text, allow_partial="trailing-strings")),
        ("partial-json-parser", "partial_json_parser", lambda m: lambda text: m.loads(text)),
        ("json-repair", "json_repair", lambda m: lambda text: m.loads(text)),
        ("langchain-core", "langchain_core.utils.json", lambda m: lambda text: m.parse_partial_json(text)),
    ]
    for name, module, make in makers:
        try:
            yield name, make(importlib.import_module(module))
        except ImportError:
            yield name, None


def at_each_delta(parse: Parse, chunks: list[str]) -> tuple[float, int]:
    """Seconds to parse the buffer at each delta, from a few buffer lengths; and how many of these it refused."""
    text, spent, refused = "".join(chunks), [], 0
    for share in (0.5, 0.1, 0.9, 0.3, 0.7):
        prefix = text[: int(len(text) * share)]
        start = time.process_time()
        try:
            parse(prefix)
        except Exception:
            refused += 1
        spent.append(time.process_time() - start)
        if sum(spent) > RIVAL_SECONDS:
            break
    return sum(spent) / len(spent) * len(chunks), refused


def throttled(parse: Parse, chunks: list[str]) -> int:
    """Parse only when the buffer has grown by a tenth: the honest rival. Its view is stale, and says no verdict."""
    buffer, due, parsed = "", 1.0, 0
    for chunk in chunks:
        buffer += chunk
        if len(buffer) >= due:
            parse(buffer)
            parsed += 1
            due = len(buffer) * 1.1
    return parsed


def against_rivals() -> None:
    names = [name for name, _, _ in WORKLOADS[1:3]]
    cuts = [chunks_of(make) for _, make, _ in WORKLOADS[1:3]]
    print("\nall deltas of 100 KB, seconds (rivals parse the buffer again at each)")
    print(f"{'':32}" + "".join(f"{name:>24}" for name in names))
    tell("streamparse", [f"{best_of(5, read, chunks):.3f}" for chunks in cuts])
    for name, parse in rivals():
        if parse is None:
            print(f"{name:32}   not installed")
            continue
        totals = [at_each_delta(parse, chunks) for chunks in cuts]
        tell(name, [f"{total:.1f}" + (f" ({refused} of 5 refused)" if refused else "") for total, refused in totals])
        if name == "jiter":
            tell("jiter, only at each x1.1", [f"{best_of(5, throttled, parse, chunks):.4f}" for chunks in cuts])


def tell(name: str, cells: list[str]) -> None:
    print(f"{name:32}" + "".join(f"{cell:>24}" for cell in cells))


def best_of(repeats: int, run: Callable[..., Any], *arguments: Any) -> float:
    return min(seconds(lambda: run(*arguments)) for _ in range(repeats))


# Views that the end contradicts ---------------------------------------------------------------------------------------

CORPUS = [
    {"city": "Zürich", "days": 12, "units": None},
    {"n": -12.5e3, "ok": True, "off": False, "list": [10, 200, 3000]},
    {"path": "C:\\temp\\new", "text": 'say "hi"\n\ttab \u00e9 \U0001f600', "k\u00e9y\\": "v"},
    {"edits": [{"old": "a = 1", "new": "a = 100", "line": 42}, {"old": "", "new": "x", "line": 0}], "dry": True},
    {"nested": {"a": {"b": [[1, 22], [], {}]}}, "big": 2512292042121000001, "empty": ""},
]


def agrees(view: Any, final: Any) -> bool:
    """Whether the final value is the view and more: strings longer, keys and items more, nothing else changed."""
    if isinstance(view, str):
        return isinstance(final, str) and final.startswith(view)
    if isinstance(view, dict):
        return isinstance(final, dict) and all(key in final and agrees(view[key], final[key]) for key in view)
    if isinstance(view, list):
        return isinstance(final, list) and len(view) <= len(final) and all(map(agrees, view, final))
    return type(view) is type(final) and bool(view == final)


def our_view(text: str) -> Any:
    reader = JsonDecoder()
    reader.feed(text)
    return reader.partial


def contradictions() -> None:
    texts = [json.dumps(value, ensure_ascii=ascii_) for value in CORPUS for ascii_ in (True, False)]
    prefixes = [(text[:end], json.loads(text)) for text in texts for end in range(1, len(text))]
    print(f"\nof {len(prefixes)} prefixes: a view that the final value contradicts, and no view at all")
    for name, parse in [("streamparse", our_view), *rivals()]:
        if parse is None:
            print(f"{name:32}   not installed")
            continue
        wrong = silent = 0
        for prefix, final in prefixes:
            try:
                view = parse(prefix)
            except Exception:
                view = None
            if view is None or view == "":
                silent += 1
            elif not agrees(view, final):
                wrong += 1
        print(f"{name:32}{wrong:10}{silent:10}")


def main() -> None:
    against_the_floor()
    slowest_feed()
    memory()
    growth()
    contradictions()
    against_rivals()


if __name__ == "__main__":
    main()
