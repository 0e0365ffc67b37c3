"""What a repair may change: the reader against ``json-repair``, on the same dirty texts, and the time of a cut one.

    python -m benchmarks.compare_repair

Prints the Markdown table of docs/json.md. The reader stands at its highest tier, so that it tolerates all that it can;
``json-repair`` at its defaults. A cell is the value, or the error's code: no value at all.
"""

from __future__ import annotations

import importlib.metadata
import json
import time
from collections.abc import Callable
from typing import Any

import json_repair

from streamparse.decoding.arguments import JsonDecoder

SIZES = (100_000, 200_000, 400_000)
"""Characters of a string that was cut."""

REPEATS = 3

TEXTS: list[tuple[str, str]] = [
    ("cut in a string", '{"path": "/etc/host'),
    ("cut in a literal", '{"force": fal'),
    ("cut in a number", '{"limit": 1e-'),
    ("cut before a value", '{"path": '),
    ("cut in an array", '{"ids": [1, 2'),
    ("no object at all", "I cannot do that."),
    ("key given twice", '{"n": 1, "n": 2}'),
    ("two objects", '{"a": 1}{"b": 2}'),
    ("one brace too many", '{"a": 1}, "b": 2}'),
    ("no colon", '{"a" 1}'),
    ("no comma", '{"a": 1 "b": 2}'),
    ("quote not escaped", '{"a": "it"s"}'),
    ("leading zero", '{"zip": 01}'),
    ("number out of range", '{"n": 1e999}'),
    ("NaN", '{"n": NaN}'),
    ("one value in parentheses", "{'a': (1)}"),
    ("Windows path", r'{"p": "C:\temp\dir"}'),
    ("lone surrogate", r'{"a": "x\ud834"}'),
    ("comment, trailing comma", '{"a": 1, /* one */ }'),
    ("Python literals", "{'a': True, 'b': (1, None)}"),
    ("apostrophe in single quotes", r"{'a': 'it\'s'}"),
    ("unquoted key", "{a: 1}"),
    ("text around", 'Sure! {"a": 1} Done.'),
    ("JSON in a string", r'"{\"a\": 1}"'),
    ("illegal escapes", r'{"re": "\d+\s"}'),
    ("typographic quotes", "{“a”: “b”}"),
]


def ours(text: str) -> str:
    reader = JsonDecoder(repair=3)
    reader.feed(text)
    reader.close()
    if reader.error is not None:
        return f"*{reader.error.code}*"
    tier = max((deviation.tier for deviation in reader.deviations), default=0)
    return f"{code(shown(reader.value))} (tier {tier})"


def theirs(text: str) -> str:
    try:
        return code(shown(json_repair.loads(text)))
    except Exception as error:
        return f"*{type(error).__name__}*"


def shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()


def code(text: str) -> str:
    """A text as code in a cell of a table."""
    return f"`{text}`".replace("|", "\\|") if "`" not in text else f"`` {text} ``"


def table() -> str:
    version = importlib.metadata.version("json-repair")
    rows = [f"| | text | streamparse, `repair=3` | json-repair {version} |", "| --- | --- | --- | --- |"]
    rows += [f"| {name} | {code(text)} | {ours(text)} | {theirs(text)} |" for name, text in TEXTS]
    return "\n".join(rows)


def cut_string(size: int) -> str:
    return '{"content": "' + "hello, world; " * (size // 14)


def read_whole(text: str) -> None:
    reader = JsonDecoder(repair=3)
    reader.feed(text)
    reader.close()
    assert reader.state == "incomplete"


def read_in_pieces(text: str) -> None:
    reader = JsonDecoder(repair=3)
    for at in range(0, len(text), 4):
        reader.feed(text[at : at + 4])
    reader.close()
    assert reader.state == "incomplete"


READERS: list[tuple[str, Callable[[str], Any]]] = [
    ("streamparse, in one piece", read_whole),
    ("streamparse, 4 characters at a time", read_in_pieces),
    ("json-repair, in one piece", json_repair.loads),
]


def times() -> str:
    head = "| time of a string that was cut | " + " | ".join(f"{size // 1000} KB" for size in SIZES) + " |"
    rows = [head, "| --- |" + " --- |" * len(SIZES)]
    for name, read in READERS:
        rows.append(f"| {name} | " + " | ".join(f"{best(read, cut_string(size)):.1f} ms" for size in SIZES) + " |")
    return "\n".join(rows)


def best(read: Callable[[str], Any], text: str) -> float:
    """Milliseconds of CPU time."""
    spent = []
    for _ in range(REPEATS):
        start = time.process_time()
        read(text)
        spent.append(time.process_time() - start)
    return min(spent) * 1000


def main() -> None:
    print(table())
    print()
    print(times())


if __name__ == "__main__":
    main()
