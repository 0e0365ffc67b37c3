"""The debug log: each request and each reply, with messages, calls and ids, as JSON Lines (B19).

One object a line; ``at`` is the time in seconds since the epoch, ``turn`` counts from 1 within a run::

    {"at": …, "kind": "request", "turn": 1, "wire": "chat", "body": {…}}
    {"at": …, "kind": "reply", "turn": 1, "text": …, "reasoning": …, "finish_reason": …, "usage": …, "error": …,
     "calls": [{"id": …, "name": …, "arguments": "as they came", "error": …}]}
    {"at": …, "kind": "result", "turn": 1, "id": …, "name": …, "state": …, "text": …, "seconds": …, "fault": …}
    {"at": …, "kind": "end", "state": …, "reason": …, "turns": …, "calls": …}

A ``result`` has ``hook_errors`` where ``approve`` or another hook of the caller raised.

``redact`` is given every string of a record, the keys inside its fields too, and returns what may be written. Nothing
is written without it: where it raises, the record has only its ``kind`` and ``turn``, and says so. Keys that it makes
equal are numbered. A log that cannot be written ends no run: ``error`` holds why, and nothing more is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, TypeAlias

import msgspec

from streamparse.agent.events import LoopEnded
from streamparse.agent.results import Execution
from streamparse.agent.turns import Turn
from streamparse.events import json_text
from streamparse.transport.pace import CLOCK, Clock

Redact: TypeAlias = Callable[[str], str]
"""A text -> the text that may be written."""


class DebugLog:
    """Writes one conversation. ``write`` takes a line with its end: ``file.write``, for one."""

    def __init__(self, write: Callable[[str], object], *, redact: Redact | None = None, clock: Clock = CLOCK) -> None:
        self.error: Exception | None = None
        self._write = write
        self._redact = redact
        self._clock = clock

    def request(self, turn: int, wire: str, body: Mapping[str, Any]) -> None:
        """What is sent."""
        self._put("request", turn, wire=wire, body=body)

    def reply(self, turn: int, answer: Turn | None, error: Exception | None) -> None:
        """What came. ``answer`` is None where nothing did."""
        calls = [] if answer is None else answer.calls
        self._put(
            "reply",
            turn,
            text="" if answer is None else answer.text,
            reasoning="" if answer is None else answer.reasoning,
            finish_reason=None if answer is None else answer.finish_reason,
            usage=None if answer is None else answer.usage,
            error=None if error is None else f"{type(error).__name__}: {error}",
            calls=[
                {
                    "id": call.id,
                    "name": call.call.name,
                    "arguments": call.raw,
                    "error": None if call.error is None else call.error.message,
                }
                for call in calls
            ],
        )

    def result(self, turn: int, execution: Execution) -> None:
        """What a call came to."""
        result = execution.result
        self._put(
            "result",
            turn,
            id=result.id,
            name=execution.call.name,
            state=result.state.value,
            text=result.text,
            seconds=round(execution.seconds, 6),
            fault=execution.fault,
            **({"hook_errors": execution.hook_errors} if execution.hook_errors else {}),
        )

    def end(self, ended: LoopEnded) -> None:
        """How the run ended."""
        self._put("end", None, state=ended.state.value, reason=ended.reason, turns=ended.turns, calls=ended.calls)

    def _put(self, kind: str, turn: int | None, **fields: Any) -> None:
        if self.error is not None:
            return
        head: dict[str, Any] = {"at": self._clock.date(), "kind": kind} | ({} if turn is None else {"turn": turn})
        try:
            shown = {key: _redacted(each, self._redact) for key, each in msgspec.to_builtins(fields).items()}
        except Exception as error:  # the hook is the caller's code
            shown = {"not_written": f"the redaction failed: {type(error).__name__}"}
        try:
            line = json_text({**head, **shown}).encode("utf-8", "backslashreplace").decode("utf-8")
            self._write(f"{line}\n")
        except Exception as error:  # a full disk, a closed file, and whatever a caller's own writer raises
            self.error = error


def _redacted(value: Any, redact: Redact | None) -> Any:
    """A copy with each string redacted."""
    if redact is None:
        return value
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        shown: dict[Any, Any] = {}
        for key, each in value.items():
            shown[_unused(redact(key) if isinstance(key, str) else key, shown)] = _redacted(each, redact)
        return shown
    return [_redacted(each, redact) for each in value] if isinstance(value, list | tuple) else value


def _unused(key: Any, shown: Mapping[Any, Any]) -> Any:
    if key not in shown:
        return key
    return next(f"{key}#{number}" for number in count(2) if f"{key}#{number}" not in shown)
