"""What can be wrong with a call, and the verdict on it."""

from __future__ import annotations

from typing import Any

import msgspec

from streamparse.errors import StreamparseError
from streamparse.events import Issue as Issue
from streamparse.events import IssueCode as IssueCode
from streamparse.events import Level, Path


class Ignored(msgspec.Struct, frozen=True):
    """A field that the tool does not declare, and that is not passed on. ``meant`` is the declared name that it
    resembles, if there is one (which is then perhaps missing)."""

    path: Path
    meant: str | None = None


class Coercion(msgspec.Struct, frozen=True):
    """A value that was read as the type that the schema wants: ``3.0`` as an integer, JSON in a string as an object."""

    path: Path
    found: str
    read_as: str


class Verdict(msgspec.Struct, frozen=True):
    """The judgement on one call.

    ``level`` is that of the first kind of fault in the order parse, representation, schema, tool; None where there is
    none. ``arguments`` are the ones to execute with: undeclared fields left out, coerced values in place; the
    call's own are never changed. ``doubts`` say why a call that fits is not to be relied on (B15): it is then no write.
    ``keep`` names the top-level fields that are right as they are. ``more`` counts issues beyond those listed, and
    ``undeclared`` all undeclared fields, of which ``ignored`` lists the first.
    """

    tool: str
    level: Level | None = None
    issues: tuple[Issue, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    coerced: tuple[Coercion, ...] = ()
    executable: bool = False
    arguments: dict[str, Any] = {}
    doubts: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    more: int = 0
    undeclared: int = 0

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong with the call."""
        return not self.issues

    @property
    def needs_confirmation(self) -> bool:
        """Whether the call fits, and yet must not run unasked: a write that is in doubt."""
        return self.valid and not self.executable


class ArgumentRejectedError(StreamparseError, ValueError):
    """Raised by a tool whose argument fits the schema and is wrong all the same: the model's fault, not the tool's
    (B12). ``path`` is the argument, a key or a path; ``allowed`` what would have been right, in a few words each."""

    def __init__(self, path: Path | str, allowed: tuple[str, ...] | list[str] | str = (), hint: str = "") -> None:
        self.path: Path = (path,) if isinstance(path, str) else tuple(path)
        self.allowed: tuple[str, ...] = (allowed,) if isinstance(allowed, str) else tuple(allowed)
        self.hint = hint
        super().__init__(f"{self.path}: allowed {self.allowed}; {hint}")
