"""What a call came to: the value or error of a tool as the text for the model, bounded, and true (B12, B21)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec

from streamparse.agent.legal import text_of
from streamparse.agent.states import CallState
from streamparse.agent.turns import ToolResult
from streamparse.decoding.jsontext import printable
from streamparse.errors import StreamparseError
from streamparse.events import PartialToolCall, ToolCall
from streamparse.tools.issues import ArgumentRejectedError
from streamparse.tools.observation import failure, observation
from streamparse.tools.validation import Judge
from streamparse.tools.wording import clip, plain

Fault: TypeAlias = Literal["model", "tool"]
"""Whose fault an error is (B12): the arguments were wrong, or the tool failed by itself."""

Keep: TypeAlias = Callable[[ToolCall, str], str | None]
"""Takes the whole text of a result that is too long, and says how the model gets at it: ``'recall("call_1") shows all
of it'``; None if it cannot."""

Refused: TypeAlias = Callable[[ToolCall, ArgumentRejectedError], str]
"""The text for a call whose argument the tool itself refused; the default does not know which attempt it was."""

MAX_TEXT: Final = 32_000
"""Characters of a result: about 8,000 tokens, which a conversation can bear a few times over."""

MAX_WORDS: Final = 300
"""Characters of the error of a hook."""

NO_OUTPUT: Final = "(no output)"
"""A result is never empty: some servers refuse that, and a model takes it for a failure."""


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one call of a turn. ``index`` is its place in the turn, ``result`` goes to the ledger.

    ``fault`` is None where nobody is to blame. ``seconds`` is how long it ran. ``repeats`` is the id of the call whose
    receipt this is (B13): nothing ran, and it is no error. ``hook_errors`` are what ``approve``, ``ask`` and the
    tool's ``resource`` and ``version`` raised, for the log: the model is not told.
    """

    index: int
    call: ToolCall | PartialToolCall
    result: ToolResult
    fault: Fault | None = None
    seconds: float = 0.0
    repeats: str | None = None
    hook_errors: tuple[str, ...] = ()


class Told(msgspec.Struct, frozen=True):
    """What a tool returned or raised, in words. ``ran`` is false where calling it ran nothing."""

    state: CallState
    text: str
    fault: Fault | None = None
    resource: str | None = None
    ran: bool = True


def told_value(name: str, value: Any) -> Told:
    """The text of what a tool returned: text, bytes that are text, the ``text`` of a struct, or JSON."""
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        words = f"Nothing was executed. The tool {name!r} returned a generator, which runs nothing by itself."
        return Told(CallState.ERROR, words, "tool", ran=False)
    named = _own_text(value, "resource")
    text = value if isinstance(value, str) else _own_text(value, "text")
    if text is None:
        try:
            text = _written(value)
        except Exception:  # it may be any object, and what reads it is its own code
            kind = type(value).__name__
            words = f"The tool {name!r} ran to its end, and returned a {kind}, which is no text and no JSON."
            return Told(CallState.ERROR, words, "tool", named)
    return Told(CallState.OK, printable(text) if text.strip() else NO_OUTPUT, None, named)


def _own_text(value: Any, name: str) -> str | None:
    """A text among the attributes of what a tool returned: its own code, which may raise anything."""
    try:
        found = getattr(value, name, None)
    except Exception:
        return None
    return found if isinstance(found, str) else None


def _written(value: Any) -> str:
    """Bytes have to be text: in base64 nobody would know them again."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8")
    return text_of(msgspec.to_builtins(value))


def told_error(call: ToolCall, error: BaseException, refused: Refused | None = None) -> Told:
    """The text of what a tool raised (B12). Errors of this library are written for the reader, and stay as they are."""
    if isinstance(error, ArgumentRejectedError):
        own = type(error).__str__ is not ArgumentRejectedError.__str__
        text = _words(error) if own else (refused or _refused)(call, error)
        return Told(CallState.REJECTED, printable(text), "model")
    if isinstance(error, StreamparseError) and (words := _words(error)):
        return Told(CallState.ERROR, printable(words), "tool")
    if isinstance(error, BaseExceptionGroup):
        inner = "; ".join(f"{type(each).__name__}: {_words(each)}" for each in error.exceptions)
        return Told(CallState.ERROR, failure(call.name, f"{_words(error)}: {inner}"), "tool")
    return Told(CallState.ERROR, failure(call.name, error), "tool")


def words_of(error: BaseException) -> str:
    """Type and message of what a caller's own code raised, in a line."""
    return clip(plain(f"{type(error).__name__}: {_words(error)}"), MAX_WORDS).removesuffix(": ")


def _refused(call: ToolCall, error: ArgumentRejectedError) -> str:
    return observation(Judge(()).refused(call, error))


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an exception's own code may fail
        return type(error).__name__


_UNSENT: Final = frozenset(
    {
        "ConnectionRefusedError",
        "gaierror",
        *("ConnectTimeout", "PoolTimeout", "ConnectError", "LocalProtocolError", "UnsupportedProtocol"),
        *("NewConnectionError", "ClientConnectorError"),
    }
)
"""Nothing was sent."""

_BROKEN: Final = frozenset(
    {
        *("ReadError", "WriteError", "CloseError", "RemoteProtocolError", "ReadTimeout", "WriteTimeout"),
        *("IncompleteRead", "IncompleteReadError", "ProtocolError", "ChunkedEncodingError"),
        *("ServerDisconnectedError", "ClientOSError", "ClientPayloadError"),
        *("BrokenResourceError", "EndOfStream", "ConnectionClosed"),
    }
)
"""It was sent, and the answer did not come."""

_VAGUE: Final = frozenset({"ConnectionError", "APIConnectionError"})
"""One or the other: what stands behind them says which, and where nothing does, it may have been sent."""

_LINKS: Final = 50
"""Errors behind an error that are looked at."""


def is_outcome_unknown(error: BaseException) -> bool:
    """Whether a write that failed like this may have taken effect all the same: it was sent, and the answer did not
    come. Told by the names of the classes, which clients have in common, of the error, of those it comes from, and of
    those in a group."""
    vague = False
    for each in _behind(error):
        if isinstance(each, BaseExceptionGroup):
            return any(map(is_outcome_unknown, each.exceptions))
        names = {kind.__name__ for kind in type(each).__mro__}
        if names & _UNSENT:
            return False
        if names & _BROKEN or isinstance(each, ConnectionError | TimeoutError):
            return True
        vague = vague or bool(names & _VAGUE) or any("Timeout" in name for name in names)
    return vague


def _behind(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was raised from, or while what was handled, and so on."""
    next_: BaseException | None = error
    for _ in range(_LINKS):
        if next_ is None:
            return
        yield next_
        next_ = next_.__cause__ or (None if next_.__suppress_context__ else next_.__context__)


def bounded(call: ToolCall, text: str, size: int, keep: Keep | None) -> str:
    """The text in about ``size`` characters: its start, its end, and how much is left out between them."""
    if len(text) <= size:
        return text
    how = keep(call, text) if keep is not None else None
    tail = size // 4
    left_out = f"[… {len(text) - size:,} of {len(text):,} characters left out{f'; {how}' if how else ''} …]"
    return f"{text[: size - tail]}\n{left_out}\n{text[len(text) - tail :]}"
