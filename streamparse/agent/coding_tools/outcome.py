"""What a coding tool returns, and what it raises: text for the model either way."""

from __future__ import annotations

import hashlib

import msgspec

from streamparse.errors import StreamparseError
from streamparse.tools.issues import ArgumentRejectedError


class Outcome(msgspec.Struct, frozen=True):
    """The result of one call.

    ``text`` is for the model. ``resource`` is the file that was read or written, relative to the root, None where it is
    no single file; ``before`` and ``after`` are its versions (``version_of``), None where there was or is no file.
    Equal versions: nothing was changed.
    """

    text: str
    resource: str | None = None
    before: str | None = None
    after: str | None = None

    def __str__(self) -> str:
        return self.text


class ToolError(StreamparseError):
    """A coding tool could not do what it was asked. The message is for the model: what, where, what was expected. It
    shows no path outside the root, unless the model itself wrote it."""


class StoppedError(ToolError, TimeoutError):
    """A command was stopped before its end. The message has what it had printed by then.

    A ``TimeoutError`` as well: this is how executors know that it may have taken effect (B10).
    """


class Rejected(ToolError, ArgumentRejectedError):  # noqa: N818  # its base says so
    """An argument fits the schema and cannot be right: the model's fault (B12). ``allowed`` is what would have been
    right, where that is known."""

    def __init__(self, argument: str, message: str, allowed: tuple[str, ...] = ()) -> None:
        ArgumentRejectedError.__init__(self, argument, allowed, message)
        self.message = message

    def __str__(self) -> str:
        return self.message


def version_of(data: bytes) -> str:
    """A name for this content: 16 hex digits. Equal content, equal version."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def plural(count: int, noun: str) -> str:
    """``1 line``, ``2 lines``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def clipped(text: str, limit: int) -> str:
    """``text``, or its start and how much is missing."""
    return text if len(text) <= limit else f"{text[:limit]}… [+{plural(len(text) - limit, 'character')}]"
