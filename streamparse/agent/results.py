"""What a call came to: the value or error of a tool as the text for the model, bounded, and true (B12, B21)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import msgspec

from streamparse.agent.legal import text_of
from streamparse.agent.states import CallState
from streamparse.agent.turns import ToolResult
from streamparse.decoding.jsontext import printable
from streamparse.errors import StreamparseError
from streamparse.events import PartialToolCall, ToolCall
from streamparse.tools.issues import ArgumentRejected
from streamparse.tools.observation import failure, observation
from streamparse.tools.validation import Judge

Fault: TypeAlias = Literal["model", "tool"]
"""Whose fault an error is (B12): the arguments were wrong, or the tool failed by itself."""

Keep: TypeAlias = Callable[[ToolCall, str], str | None]
"""Takes the whole text of a result that is too long, and says how the model gets at it: ``'recall("call_1") shows all
of it'``; None if it cannot."""

Refused: TypeAlias = Callable[[ToolCall, ArgumentRejected], str]
"""The text for a call whose argument the tool itself refused; the default does not know which attempt it was."""

MAX_TEXT: Final = 32_000
"""Characters of a result: about 8,000 tokens, which a conversation can bear a few times over."""

NO_OUTPUT: Final = "(no output)"
"""A result is never empty: some servers refuse that, and a model takes it for a failure."""


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one call of a turn. ``index`` is its place in the turn, ``result`` goes to the ledger.

    ``fault`` is None where nobody is to blame. ``seconds`` is how long it ran. ``repeats`` is the id of the call whose
    receipt this is (B13): nothing ran, and it is no error.
    """

    index: int
    call: ToolCall | PartialToolCall
    result: ToolResult
    fault: Fault | None = None
    seconds: float = 0.0
    repeats: str | None = None


class Told(msgspec.Struct, frozen=True):
    """What a tool returned or raised, in words."""

    state: CallState
    text: str
    fault: Fault | None = None
    resource: str | None = None


def told_value(name: str, value: Any) -> Told:
    """The text of what a tool returned: text, the ``text`` of a struct, or JSON."""
    resource = getattr(value, "resource", None)
    named = resource if isinstance(resource, str) else None
    text = value if isinstance(value, str) else getattr(value, "text", None)
    if not isinstance(text, str):
        try:
            text = text_of(msgspec.to_builtins(value))
        except (TypeError, ValueError, RecursionError):
            kind = type(value).__name__
            words = f"The tool {name!r} ran to its end, and returned a {kind}, which is no text and no JSON."
            return Told(CallState.ERROR, words, "tool", named)
    return Told(CallState.OK, printable(text) if text.strip() else NO_OUTPUT, None, named)


def told_error(call: ToolCall, error: BaseException, refused: Refused | None = None) -> Told:
    """The text of what a tool raised (B12). Errors of this library are written for the reader, and stay as they are."""
    if isinstance(error, ArgumentRejected):
        own = type(error).__str__ is not ArgumentRejected.__str__
        text = _words(error) if own else (refused or _refused)(call, error)
        return Told(CallState.REJECTED, printable(text), "model")
    if isinstance(error, StreamparseError) and (words := _words(error)):
        return Told(CallState.ERROR, printable(words), "tool")
    if isinstance(error, BaseExceptionGroup):
        inner = "; ".join(f"{type(each).__name__}: {_words(each)}" for each in error.exceptions)
        return Told(CallState.ERROR, failure(call.name, f"{_words(error)}: {inner}"), "tool")
    return Told(CallState.ERROR, failure(call.name, error), "tool")


def _refused(call: ToolCall, error: ArgumentRejected) -> str:
    return observation(Judge(()).refused(call, error))


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an exception's own code may fail
        return type(error).__name__


_UNSENT: Final = frozenset({"ConnectTimeout", "PoolTimeout", "ConnectionRefusedError"})
_BROKEN: Final = frozenset({"ConnectionError", "TimeoutError", "ReadError", "WriteError", "RemoteProtocolError"})


def is_outcome_unknown(error: BaseException) -> bool:
    """Whether a write that failed like this may have taken effect all the same: it was sent, and the answer did not
    come. Told by the names of the classes, which clients have in common."""
    names = {each.__name__ for each in type(error).__mro__}
    if names & _UNSENT:
        return False
    return bool(names & _BROKEN) or any("Timeout" in name for name in names)


def bounded(call: ToolCall, text: str, size: int, keep: Keep | None) -> str:
    """The text in about ``size`` characters: its start, its end, and how much is left out between them."""
    if len(text) <= size:
        return text
    how = keep(call, text) if keep is not None else None
    tail = size // 4
    left_out = f"[… {len(text) - size:,} of {len(text):,} characters left out{f'; {how}' if how else ''} …]"
    return f"{text[: size - tail]}\n{left_out}\n{text[len(text) - tail :]}"
