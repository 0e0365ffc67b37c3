"""Exceptions. Decoding never raises on input; these say that the *caller* (or a file of theirs) is wrong, or, below
``TransportError``, that the *stream* is.

::

    StreamparseError
    ├── UsageError             a call that cannot be right: feed after close, an unknown option or dialect
    │   ├── ClosedError        feed or close after close
    │   ├── UnknownDialectError
    │   └── MissingExtraError  an optional dependency is not installed
    ├── GrammarError           a .lark file that cannot be read or cannot be streamed
    ├── ToolDefinitionError    a tool definition that has no name, or whose schema is no schema
    ├── ArgumentRejectedError  raised by a tool: its argument is wrong, the model's fault (streamparse.tools.issues)
    └── TransportError         the answer did not arrive as it should have
        ├── EventTooLargeError      an event of an event stream, or a body, is larger than the bound
        ├── StreamInterruptedError  the stream ended where it must not end, or its connection broke
        ├── ConnectError            no connection came about, or it broke before the response
        ├── StreamTimeoutError      nothing came for too long
        └── ResponseError           the server answered with an error, or with what is no answer

Any other exception that leaves the library is a bug.
"""

from __future__ import annotations


class StreamparseError(Exception):
    """Base of all exceptions of this library."""


class UsageError(StreamparseError, ValueError):
    """The call cannot be right. The message says what to do instead."""


class ClosedError(UsageError):
    """``feed`` or ``close`` after ``close``. A decoder reads one answer; make a new one for the next."""


class UnknownDialectError(UsageError):
    """No grammar file has this name."""


class MissingExtraError(UsageError):
    """An optional dependency is not installed. The message names the extra."""


class GrammarError(StreamparseError, ValueError):
    """A grammar that Lark cannot read, or that cannot be streamed. The message names the file, the place and the
    reason."""


class ToolDefinitionError(StreamparseError, ValueError):
    """A tool definition that cannot be used. The message names the tool's position in the list and what is missing."""


class TransportError(StreamparseError):
    """The answer did not arrive as it should have. What was decoded before stays valid.

    ``retryable``: the same request may succeed later. Whether it may be sent again is another question: not once
    something of the answer has been acted on.
    """

    retryable: bool = False


class EventTooLargeError(TransportError):
    """An event of an event stream is larger than the bound, or a body that is read whole. The message names the bound
    and quotes the start of the line."""


class StreamInterruptedError(TransportError):
    """The stream ended inside an event or inside a JSON body, or its connection broke. The message quotes the start of
    what was cut."""

    retryable = True


class ConnectError(TransportError):
    """No connection came about, or it broke before the response. The message names the host, never the whole URL, which
    may hold a key."""

    retryable = True


class StreamTimeoutError(TransportError):
    """Nothing came for too long. ``phase`` is ``"first_token"`` or ``"idle"``; ``seconds`` is the limit."""

    retryable = True

    def __init__(self, phase: str, seconds: float) -> None:
        waited = "no token" if phase == "first_token" else "nothing more"
        super().__init__(f"{waited} within {seconds:g} s")
        self.phase = phase
        self.seconds = seconds


class ResponseError(TransportError):
    """The server answered with an error, or with something that is no answer of a model.

    ``status`` is the HTTP status; ``code`` is the provider's own word for it (``rate_limit_exceeded``, ``1002``), empty
    if there is none; ``body`` is the start of the body, at most ``EXCERPT`` characters; ``retry_after`` is in seconds,
    None where the server does not say. The request and its headers are never in it.
    """

    def __init__(
        self,
        reason: str,
        *,
        status: int,
        code: str = "",
        body: str = "",
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.code = code
        self.body = body
        self.retryable = retryable
        self.retry_after = retry_after
