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
    └── TransportError         the answer did not arrive as it should have
        ├── EventTooLargeError      an event of an event stream is larger than the bound
        └── StreamInterruptedError  the stream ended where it must not end

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
    """The answer did not arrive as it should have. What was decoded before stays valid."""


class EventTooLargeError(TransportError):
    """An event of an event stream is larger than the bound. The message names the bound and quotes the start of the
    line."""


class StreamInterruptedError(TransportError):
    """The stream ended inside an event, or its connection broke. The message quotes the start of what was cut."""
