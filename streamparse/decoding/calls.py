"""One call on its way: what is known of it, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamparse.decoding.early_watch import Watch
from streamparse.decoding.envelope import Stray
from streamparse.decoding.pieces import Pieces
from streamparse.decoding.readers import Reader
from streamparse.decoding.repair import UNTRUSTED as UNTRUSTED_TIER
from streamparse.decoding.values import ANY, ToolTypes, ValueType
from streamparse.events import (
    Deviation,
    DeviationCode,
    ErrorDetail,
    PartialToolCall,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
)

UNTRUSTED = frozenset({DeviationCode.INSIDE_CODE_FENCE, DeviationCode.UNKNOWN_TOOL})
"""Deviations that make a call unsafe to run without asking (N12, T7); repairs from tier 2 on do, too (J5)."""


class OpenCall:
    """A call between its opening tag and its end.

    An error that is found on the way is kept in ``error`` and told when the call ends, so that ``ToolCallFailed``
    carries all that was decoded. Only a limit ends a call at once (``over``): behind it nothing is kept."""

    __slots__ = (
        "_raw",
        "_raw_room",
        "arguments",
        "deviations",
        "error",
        "id",
        "index",
        "key",
        "name",
        "offset",
        "over",
        "parameters",
        "reader",
        "rejected",
        "room",
        "snapshot",
        "started",
        "stray",
        "swallowed",
        "tool",
        "trusted",
        "verbatim",
        "watch",
    )

    def __init__(self, index: int, offset: int, room: int) -> None:
        self.index = index
        self.offset = offset  # of its opening tag
        self.id = ""
        self.name = ""
        self.tool: ToolTypes | None = None
        self.arguments: dict[str, Any] = {}
        self.deviations: list[Deviation] = []
        self.error: ErrorDetail | None = None
        self.trusted = True
        self.started = False  # ToolCallStarted was given
        self.over = False  # it ended before its closing tag
        self.parameters = 0  # that it was given, repetitions included
        self.key: str | None = None  # of the parameter whose value is open
        self.reader: Reader | None = None  # of that value
        self.room = room  # characters that its values may still take
        self.swallowed: list[tuple[str, str]] = []  # (key of a string, key of an opening tag inside it), for N7
        self.verbatim: str | None = None
        self.snapshot: Callable[[], dict[str, Any]] | None = None  # of a call that is one JSON object
        self.stray = Stray()
        self.watch: Watch | None = None  # of its arguments, for early verdicts
        self.rejected = False  # its name was
        self._raw: list[str | Pieces] = []
        self._raw_room = room  # of what is no value: tags, white space, stray text

    def keep_raw(self, text: str | Pieces) -> None:
        """Remember a piece of the call's text as it was received, or one that is still growing."""
        if self.over:
            return
        if isinstance(text, str):
            text = text[: self._raw_room]
            self._raw_room -= len(text)
        if text:
            self._raw.append(text)

    def type_of(self, key: str) -> ValueType | None:
        """The declared type of a parameter, or None."""
        return None if self.tool is None else self.tool.type_of(key)

    def missing(self, key: str) -> bool:
        """Whether the tool declares this parameter and the call does not have it yet (N5, N7)."""
        return key != self.key and key not in self.arguments and self.type_of(key) is not None

    def start(self, name: str, id_: str) -> None:
        """The name is certain."""
        self.name, self.id, self.started = name, id_, True

    def note(self, deviation: Deviation) -> None:
        """Remember a deviation, and what it means for trust."""
        self.deviations.append(deviation)
        if deviation.code in UNTRUSTED or deviation.tier >= UNTRUSTED_TIER:
            self.trusted = False

    def blame(self, error: ErrorDetail) -> None:
        """Remember why the call will fail. The first reason stays."""
        if self.error is None:
            self.error = error

    def partial(self) -> PartialToolCall:
        """The call so far; costs as much as the call is long."""
        arguments = dict(self.arguments) if self.snapshot is None else self.snapshot()
        if self.reader is not None and self.key is not None:
            certain, value = self.reader.partial()
            if certain and self.key not in arguments:
                arguments[self.key] = value
        raw = "".join(piece if isinstance(piece, str) else piece.text() for piece in self._raw)
        return PartialToolCall(self.id, self.name, arguments, raw, tuple(self.deviations))

    def swallowed_parameter(self) -> tuple[str, str] | None:
        """N7: a declared parameter whose opening tag stands inside a string, and which the call does not have."""
        return next((pair for pair in self.swallowed if pair[1] not in self.arguments), None)

    def seal(self) -> ToolCallFinished:
        """The call is complete, delimited and typed."""
        call = ToolCall(self.id, self.name, self.arguments, self.verbatim, tuple(self.deviations), self.trusted)
        self.over = True
        return ToolCallFinished(self.index, call)

    def fail(self, error: ErrorDetail) -> ToolCallFailed:
        """The call ends in its error state."""
        partial = self.partial()
        self.over = True
        self.reader = None
        return ToolCallFailed(self.index, partial, error)

    def end(self) -> ToolCallFinished | ToolCallFailed:
        """The closing tag came: sealed, unless something was wrong on the way."""
        return self.seal() if self.error is None else self.fail(self.error)


def declared_type(call: OpenCall, key: str) -> tuple[ValueType, bool]:
    """The type by which a parameter is read, and whether it is undeclared although the tool is known (T5, T7)."""
    if call.tool is None:
        return ANY, False
    found = call.tool.type_of(key)
    return (ANY, True) if found is None else (found, False)
