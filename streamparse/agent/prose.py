"""A call in prose: the text spells it out, where nobody executes it (B17).

Said only where it is hardly anything else: what the decoder saw of a format that is none of its own, JSON that names a
declared tool and its arguments, or a last line that is a call in code. An answer that mentions a tool is an answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from typing import Any, Final

from streamparse.events import Deviation, DeviationCode

_SIGNS: Final = frozenset({DeviationCode.FOREIGN_FORMAT, DeviationCode.BARE_INVOKE})
_ARGUMENTS: Final = ("arguments", "parameters", "input", "args")

_LOOKED_AT: Final = 20_000
"""Characters from the end of a text that are searched."""

_TRIES: Final = 50
"""Braces at which JSON is tried."""

_CODE: Final = re.compile(r"`*\s*(?:print\()?(\w[\w.]*)\((.*)\)\)?;?\s*`*")


def prose_call(text: str, names: Collection[str], deviations: Iterable[Deviation] = ()) -> str | None:
    """What looks like a call in the text, in a few words; None if nothing does."""
    for deviation in deviations:
        if deviation.code in _SIGNS:
            return deviation.detail or deviation.code.value
    text = text[-_LOOKED_AT:]
    return _json(text, names) or _code(text, names)


def _json(text: str, names: Collection[str]) -> str | None:
    at, reader = text.find("{"), json.JSONDecoder()
    for _ in range(_TRIES):
        if at < 0:
            return None
        try:
            value, end = reader.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        if (name := _named(value)) in names:
            return f"a call of {name} as JSON"
        at = text.find("{", end)
    return None


def _named(value: dict[str, Any]) -> Any:
    """The name in what has the form of a call."""
    inner = value.get("function", value)
    if not isinstance(inner, dict) or not any(key in inner for key in _ARGUMENTS):
        return None
    name = inner.get("name")
    return name if isinstance(name, str) else None


def _code(text: str, names: Collection[str]) -> str | None:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("```")]
    if not lines:
        return None
    found = _CODE.fullmatch(lines[-1])
    if found is None or found[1] not in names:
        return None
    return f"a call of {found[1]} as code"
