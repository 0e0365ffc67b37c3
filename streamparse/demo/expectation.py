"""Whether a recording was decoded as its header says.

``expected`` in the header holds all of these, compared with what came, exactly::

    {"reasoning": "…", "text": "…", "clean": true,
     "calls": [{"name": "…", "arguments": {…}}],        the sealed calls, in order
     "failed": [{"name": "…", "code": "…"}],            the failed ones
     "deviations": ["…"]}                               codes, in order
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from streamparse.events import (
    Deviated,
    Ended,
    Event,
    Failed,
    Reasoning,
    Text,
    ToolCallFailed,
    ToolCallFinished,
    json_text,
)

_SHOWN = 60  # characters of a difference on each side of it


def outcome(events: Iterable[Event]) -> dict[str, Any]:
    """What came, in the form of ``expected``. Text is joined, so that chunks make no difference."""
    prose = {"reasoning": "", "text": ""}
    found: dict[str, Any] = {"calls": [], "failed": [], "deviations": [], "clean": None}
    for event in events:
        match event:
            case Reasoning(text):
                prose["reasoning"] += text
            case Text(text):
                prose["text"] += text
            case ToolCallFinished(_, call):
                found["calls"].append({"name": call.name, "arguments": call.arguments})
            case ToolCallFailed(_, call, error):
                found["failed"].append({"name": call.name, "code": error.code.value})
            case Failed(error):
                found["failed"].append({"name": None, "code": error.code.value})
            case Deviated(_, deviation):
                found["deviations"].append(deviation.code.value)
            case Ended(_, _, clean):
                found["clean"] = clean
            case _:
                pass
    return prose | found


def differences(expected: dict[str, Any], events: Iterable[Event]) -> Iterator[str]:
    """One line for each thing that came out differently; compared as JSON text, so that 1, 1.0 and true differ."""
    found = outcome(events)
    for key in [*found, *(expected.keys() - found.keys())]:
        wanted, got = json_text(expected.get(key)), json_text(found.get(key))
        if wanted != got:
            at = _first_difference(wanted, got)
            yield f"{key}: expected {_around(wanted, at)}, found {_around(got, at)}"


def _first_difference(left: str, right: str) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(left), len(right)))


def _around(text: str, at: int) -> str:
    start, end = max(at - _SHOWN, 0), at + _SHOWN
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
