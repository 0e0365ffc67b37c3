"""Calls in prose: the text spells one out, where nobody executes it (B17, A2).

Said only where it is hardly anything else: what the decoder saw of a format that is none of its own, JSON that names a
declared tool and its arguments, or a text that ends with calls in code. An answer that mentions a tool is an answer,
and so is one that shows such a call in a fence, unless the fence is all of it, or the line before it says that the
model is about to do this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import msgspec

from streamparse.events import Deviation, DeviationCode

SIGNS: Final = frozenset({DeviationCode.FOREIGN_FORMAT, DeviationCode.BARE_INVOKE})
"""Deviations of a text that say that a call stands in it."""

LOOKED_AT: Final = 20_000
"""Characters from the end of a text that are searched: a call that was meant stands there."""

_ARGUMENTS: Final = ("arguments", "parameters", "input", "args")

_TRIES: Final = 50
"""Braces at which JSON is tried, and lines at the end that are read as code."""

_CODE: Final = re.compile(r"`*\s*(?:print\()?(\w[\w.]*)\((.*)\)\)?;?\s*`*")
_INVOKE: Final = re.compile(r"^[ \t]*<invoke\b[^>\n]*>\s*<(?:parameter\b|/invoke>)", re.MULTILINE)
_FENCED: Final = re.compile(r"^```[^\n]*\n.*?^```[ \t]*$", re.MULTILINE | re.DOTALL)
_NEXT: Final = re.compile(r"\b(?:i(?:['\u2019]ll| will|['\u2019]m| am)|let me|let['\u2019]s|calling)\b", re.IGNORECASE)
_KEYWORD: Final = re.compile(r"""(\w+)\s*[=:]\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^,()\s]+)""")


class Spelled(msgspec.Struct, frozen=True):
    """A call in a text: the tool, the arguments where they can be read, its form (``JSON``, ``code``), and the place in
    the text where it begins."""

    name: str
    arguments: dict[str, Any] | None = None
    form: str = ""
    at: int = 0


def prose_call(text: str, names: Collection[str], deviations: Iterable[Deviation] = ()) -> str | None:
    """What looks like a call in the text, in a few words; None if nothing does."""
    bare = _unfenced(text[-LOOKED_AT:])
    for deviation in deviations:
        if deviation.code in SIGNS and (deviation.code is not DeviationCode.BARE_INVOKE or _is_invoke(bare)):
            return deviation.detail or deviation.code.value
    json_ = (each for each in spelled(text, names) if each.form == "JSON")
    code = (each for each in spelled(bare, names) if each.form == "code")
    found = next(json_, None) or next(code, None)
    return None if found is None else f"a call of {found.name} as {found.form}"


def _unfenced(text: str) -> str:
    """The text without what it shows in fences; as it is where that is all, or is announced as the next step."""
    rest = _FENCED.sub("", text).rstrip()
    return rest if rest and not _NEXT.search(rest.splitlines()[-1]) else text


def _is_invoke(text: str) -> bool:
    """Whether the text ends with a call in tags, whole or cut off."""
    found = _INVOKE.search(text)
    if found is None:
        return False
    _, closed, behind = text[found.start() :].rpartition("</invoke>")
    return not closed or not behind.replace("</minimax:tool_call>", "").strip("` \t\r\n")


def spelled(text: str, names: Collection[str]) -> Iterator[Spelled]:
    """The calls of these tools that the text spells out: first those in JSON, then those in code at its end."""
    before = max(len(text) - LOOKED_AT, 0)
    text = text[before:]
    for at, value in objects(text):
        found = _named(value)
        if found is not None and found[0] in names:
            yield Spelled(*found, "JSON", before + at)
    for at, name, inner in _code(text):
        if name not in names:
            return
        arguments = {key: _value(word) for key, word in _KEYWORD.findall(inner)}
        yield Spelled(name, arguments or None, "code", before + at)


def objects(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects in a text, and where they begin; those within another one are a part of it."""
    at, reader = text.find("{"), json.JSONDecoder()
    for _ in range(_TRIES):
        if at < 0:
            return
        try:
            value, end = reader.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        yield at, value
        at = text.find("{", end)


def _named(value: dict[str, Any]) -> tuple[str, dict[str, Any] | None] | None:
    """Name and arguments of what has the form of a call."""
    inner = value.get("function", value)
    if not isinstance(inner, dict):
        return None
    key = next((key for key in _ARGUMENTS if key in inner), None)
    name = inner.get("name")
    if key is None or not isinstance(name, str):
        return None
    return name, _object(inner[key])


def _object(arguments: Any) -> dict[str, Any] | None:
    """The arguments; some write them as text."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    return arguments if isinstance(arguments, dict) else None


def _code(text: str) -> list[tuple[int, str, str]]:
    """Place, name and arguments of the calls with which a text ends, one on each line; fences do not count."""
    found: list[tuple[int, str, str]] = []
    end = len(text)
    for line in reversed(text.splitlines(keepends=True)[-_TRIES:]):
        end -= len(line)
        bare = line.strip()
        if not bare or bare.startswith("```"):
            continue
        call = _CODE.fullmatch(bare)
        if call is None:
            break
        found.append((end, call[1], call[2]))
    return found[::-1]


def _value(word: str) -> Any:
    if word.startswith("'"):
        return word[1:-1]
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        return word
