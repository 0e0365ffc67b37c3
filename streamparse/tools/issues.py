"""What can be wrong with a call, and the verdict on it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from streamparse.errors import StreamparseError
from streamparse.events import Level, Path


class IssueCode(StrEnum):
    """What is wrong. The first group is said of an argument, the second of the whole call."""

    MISSING = "missing"  # a required field is not there
    WRONG_TYPE = "wrong_type"
    NOT_IN_ENUM = "not_in_enum"  # enum and const
    OUT_OF_RANGE = "out_of_range"  # minimum, maximum, multipleOf
    PATTERN = "pattern"  # pattern and format
    TOO_LONG = "too_long"  # characters of a string
    TOO_SHORT = "too_short"
    TOO_MANY = "too_many"  # items of an array, members of an object
    TOO_FEW = "too_few"
    NOT_UNIQUE = "not_unique"
    EXTRA = "extra"  # a field that is not declared
    BAD_NAME = "bad_name"  # propertyNames
    FORBIDDEN = "forbidden"  # not, or the schema false
    AMBIGUOUS = "ambiguous"  # several branches of a oneOf fit
    UNFIT = "unfit"  # any other rule of the schema
    TOO_DEEP = "too_deep"  # nested beyond the decoders' own limit
    NOT_JSON = "not_json"  # a value that JSON cannot hold: half a surrogate pair, NaN
    REJECTED = "rejected"  # the tool itself refused the argument (B12)

    UNKNOWN_TOOL = "unknown_tool"
    TRUNCATED = "truncated"  # E3, J4: the answer was cut inside the call
    INTERRUPTED = "interrupted"  # E4, C6, C8: the connection or the provider, not the model
    MALFORMED = "malformed"  # N4, N10, N16: the envelope or the tags
    AMBIGUOUS_DELIMITER = "ambiguous_delimiter"  # N7
    CALL_IN_REASONING = "call_in_reasoning"  # N13
    DUPLICATE_ARGUMENT = "duplicate_argument"  # N14, J3
    INVALID_JSON = "invalid_json"  # J2, J6
    TRAILING_TEXT = "trailing_text"  # J3
    NOT_AN_OBJECT = "not_an_object"  # J3
    LIMIT_EXCEEDED = "limit_exceeded"


class Issue(msgspec.Struct, frozen=True):
    """One thing that is wrong with a call, at one place.

    ``path`` is the argument, or the place where a missing one belongs; it is empty for the whole call. ``found`` is the
    JSON type and ``value`` a clipped JSON text of what stands there (objects and arrays only by their size; both empty
    where nothing does). ``allowed`` is what may stand there in words, a few entries at most, and ``more`` counts those
    that were left out. ``hint`` is a remark, such as the name that was meant. Every text is bounded, and none of them
    holds anything of another field.
    """

    code: IssueCode
    path: Path
    found: str = ""
    value: str = ""
    allowed: tuple[str, ...] = ()
    more: int = 0
    hint: str = ""
    level: Level = Level.SCHEMA


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
    ``keep`` names the top-level fields that are right as they are. ``more`` counts issues beyond those listed.
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

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong with the call."""
        return not self.issues

    @property
    def needs_confirmation(self) -> bool:
        """Whether the call fits, and yet must not run unasked: a write that is in doubt."""
        return self.valid and not self.executable


class ArgumentRejected(StreamparseError, ValueError):  # noqa: N818 - it says what happened, as B12 names it
    """Raised by a tool whose argument fits the schema and is wrong all the same: the model's fault, not the tool's
    (B12). ``path`` is the argument, a key or a path; ``allowed`` what would have been right, in a few words each."""

    def __init__(self, path: Path | str, allowed: tuple[str, ...] | list[str] | str = (), hint: str = "") -> None:
        self.path: Path = (path,) if isinstance(path, str) else tuple(path)
        self.allowed: tuple[str, ...] = (allowed,) if isinstance(allowed, str) else tuple(allowed)
        self.hint = hint
        super().__init__(f"{self.path}: allowed {self.allowed}; {hint}")
