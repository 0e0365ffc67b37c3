"""Events: one closed union of small frozen values, the same for every wire.

Every decoder answers ``feed`` and ``close`` with a list of these. Within one answer (one stream of a decoder):

* ``ToolCallStarted`` comes once per call, as soon as the name is certain;
* between it and the end of that call come ``ArgumentDelta`` (more characters of the string at ``path``) and
  ``ArgumentValue`` (the value at ``path`` is complete and typed); with ``early=True`` also ``ArgumentRejected`` (the
  value at ``path`` can fit the tool's schema no more);
* the call ends in exactly one of ``ToolCallFinished`` (sealed: complete, delimited, typed) and ``ToolCallFailed``
  (the explicit error state, with what was decoded so far);
* ``Ended`` is the last event of ``close``.

Events are tagged, so that a stream of them is also a JSON Lines log: ``dumps`` writes one line, ``loads`` reads it back
into an equal event.
"""

from __future__ import annotations

from enum import StrEnum
from json import dumps as _json_dumps
from json import loads as _json_loads
from typing import Any, TypeAlias

import msgspec

Path: TypeAlias = tuple[str | int, ...]
"""Where a value stands in a call's arguments: keys and list indexes from the outside in, ``("todos", 0, "content")``.
The empty path is the argument object itself."""


class Level(StrEnum):
    """Whose fault an error or deviation is; the five are never mixed (see *Codes* in the semantics)."""

    PARSE = "parse"
    REPRESENTATION = "representation"
    SCHEMA = "schema"
    TOOL = "tool"
    RECOVERY = "recovery"


class ErrorCode(StrEnum):
    """Why a call, or a stream, ended in an error state. The rule of the semantics stands behind each."""

    UNCLOSED_TAG = "unclosed_tag"  # E1: the stream was cut inside a tag in text
    UNCLOSED_REASONING = "unclosed_reasoning"  # E1
    UNCLOSED_ENVELOPE = "unclosed_envelope"  # E1: an envelope that holds no call was left open
    UNCLOSED_CALL = "unclosed_call"  # E1: cut after the last parameter of a call
    UNCLOSED_PARAMETER = "unclosed_parameter"  # E1: cut inside a value
    UNCLOSED_HEADER = "unclosed_header"  # E1: cut inside a name or a key
    MISSING_NAME = "missing_name"  # N4
    MALFORMED_ENVELOPE = "malformed_envelope"  # N10, N16
    MALFORMED_CALL = "malformed_call"  # N10
    AMBIGUOUS_DELIMITER = "ambiguous_delimiter"  # N7
    DUPLICATE_ARGUMENT = "duplicate_argument"  # N14
    CALL_IN_REASONING = "call_in_reasoning"  # N13
    INVALID_JSON = "invalid_json"  # J6
    UNTERMINATED_JSON = "unterminated_json"  # J4: the text ended inside the JSON value
    LONE_SURROGATE = "lone_surrogate"  # J2
    DUPLICATE_KEY = "duplicate_key"  # J3
    TRAILING_TEXT = "trailing_text"  # J3
    NOT_AN_OBJECT = "not_an_object"  # J3
    LIMIT_EXCEEDED = "limit_exceeded"
    STREAM_INTERRUPTED = "stream_interrupted"  # E4, C6
    PROVIDER_ERROR = "provider_error"  # C8: the stream itself carried an error
    MISSING_CALL = "missing_call"  # C8: the finish reason promises calls, and none came


class DeviationCode(StrEnum):
    """What was tolerated, or looked like a call and was none."""

    NONSTANDARD_TAG = "nonstandard_tag"  # N3
    SPECIAL_TOKEN = "special_token"  # N2
    EXTRA_ATTRIBUTE = "extra_attribute"  # N4
    DELIMITER_IN_VALUE = "delimiter_in_value"  # N5, N7
    CDATA = "cdata"  # N9
    TEXT_IN_ENVELOPE = "text_in_envelope"  # N10
    BARE_INVOKE = "bare_invoke"  # N11
    INSIDE_CODE_FENCE = "inside_code_fence"  # N12
    UNCLOSED_REASONING = "unclosed_reasoning"  # N13
    REPEATED_ARGUMENT = "repeated_argument"  # N14
    FOREIGN_FORMAT = "foreign_format"  # N16
    UNCLOSED_ENVELOPE = "unclosed_envelope"  # E2
    COERCED = "coerced"  # T3
    UNDECLARED_ARGUMENT = "undeclared_argument"  # T5
    TYPE_MISMATCH = "type_mismatch"  # T6
    UNKNOWN_TOOL = "unknown_tool"  # T7
    REPAIRED = "repaired"  # J5, with its tier
    MISSING_ID = "missing_id"  # C4
    REPEATED_ID = "repeated_id"  # C4
    LATE_FRAGMENT = "late_fragment"  # C5: for a call that has ended
    REPEATED_ARGUMENTS = "repeated_arguments"  # C5: the same text, whole, once more
    ARGUMENTS_NOT_TEXT = "arguments_not_text"  # C7
    REPEATED_CALL = "repeated_call"  # C9: a call in the text came again as a structured one
    ORPHAN_FRAGMENT = "orphan_fragment"  # C2: without id and name, on an unused index; it went to the only open call
    ORPHAN_CLOSER = "orphan_closer"  # C9: the text begins with the end of a reasoning that came in its own field
    NAME_TRIMMED = "name_trimmed"  # C3: white space around a name
    CONFLICTING_NAME = "conflicting_name"  # C3: another name, after the arguments had begun
    EMPTY_CALL = "empty_call"  # C3: an entry in which neither a name nor arguments ever came
    EMPTY_ARGUMENTS = "empty_arguments"  # C6: {} in an answer that was cut: perhaps nothing had been written yet
    SERVER_TOOL = "server_tool"  # A: the provider runs this call itself; whoever runs it again runs it twice
    OTHER_CHOICE = "other_choice"  # C1: the stream holds a choice that this decoder does not read
    UNTERMINATED_EVENT = "unterminated_event"  # S: the last event of the stream lacks its blank line, and is complete


_REPRESENTATION_ERRORS = frozenset(
    {
        ErrorCode.DUPLICATE_ARGUMENT,
        ErrorCode.INVALID_JSON,
        ErrorCode.UNTERMINATED_JSON,
        ErrorCode.LONE_SURROGATE,
        ErrorCode.DUPLICATE_KEY,
        ErrorCode.TRAILING_TEXT,
        ErrorCode.NOT_AN_OBJECT,
    }
)
_REPRESENTATION_DEVIATIONS = frozenset(
    {
        DeviationCode.REPEATED_ARGUMENT,
        DeviationCode.COERCED,
        DeviationCode.TYPE_MISMATCH,
        DeviationCode.REPAIRED,
        DeviationCode.ARGUMENTS_NOT_TEXT,
    }
)
_SCHEMA_DEVIATIONS = frozenset({DeviationCode.UNDECLARED_ARGUMENT, DeviationCode.UNKNOWN_TOOL})


class ErrorDetail(msgspec.Struct, frozen=True):
    """What is wrong, where, and what would have been accepted there.

    ``offset`` counts characters from the start of the stream (of the JSON text, for a ``JsonDecoder`` used alone).
    ``open`` names the rules that were open, outermost first. ``expected`` is in the format's own words: quoted tags,
    then kinds of text. ``excerpt`` is a bounded piece of the input at or just before the place; ``path`` names the
    argument, where there is one.
    """

    code: ErrorCode
    reason: str
    offset: int
    open: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    excerpt: str = ""
    path: Path = ()

    @property
    def level(self) -> Level:
        """The level of the code: ``representation`` for an argument's form, else ``parse``."""
        return Level.REPRESENTATION if self.code in _REPRESENTATION_ERRORS else Level.PARSE

    @property
    def message(self) -> str:
        """One line for people: ``end of stream at 214 in calls > call > argument; expected '</parameter>' or text``."""
        place = f" in {' > '.join(self.open)}" if self.open else ""
        expected = f"; expected {join_words(self.expected)}" if self.expected else ""
        return f"{self.reason} at {self.offset}{place}{expected}"


class Deviation(msgspec.Struct, frozen=True):
    """Something outside the format that was tolerated, with its place.

    ``offset`` as in ``ErrorDetail``. ``detail`` is the kind (``foreign_format``) or a bounded excerpt; ``expected`` and
    ``found`` are filled for types, ``found`` also with text that a repair dropped; ``tier`` is the tier of a repair
    (J5), else 0.
    """

    code: DeviationCode
    offset: int
    detail: str = ""
    path: Path = ()
    expected: str = ""
    found: str = ""
    tier: int = 0

    @property
    def level(self) -> Level:
        """The level of the code: ``representation`` for types and repairs, ``schema`` for undeclared, else
        ``parse``."""
        if self.code in _REPRESENTATION_DEVIATIONS:
            return Level.REPRESENTATION
        return Level.SCHEMA if self.code in _SCHEMA_DEVIATIONS else Level.PARSE


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


class ToolCall(msgspec.Struct, frozen=True):
    """A sealed call. ``trusted`` is false when a deviation makes it unsafe to run without asking."""

    id: str
    name: str
    arguments: dict[str, Any]
    verbatim: str | None = None
    deviations: tuple[Deviation, ...] = ()
    trusted: bool = True

    @property
    def arguments_json(self) -> str:
        """The arguments as JSON text: what the wire sent where the wire was JSON, else written from ``arguments``.

        Written on demand, so that a large file costs its JSON form only where somebody wants it.
        """
        return json_text(self.arguments) if self.verbatim is None else self.verbatim


class PartialToolCall(msgspec.Struct, frozen=True):
    """A call before its seal: a snapshot. ``arguments`` holds what is certain so far (strings may still grow), ``raw``
    the text of the arguments as it was received."""

    id: str
    name: str
    arguments: dict[str, Any]
    raw: str = ""
    deviations: tuple[Deviation, ...] = ()


class Text(msgspec.Struct, frozen=True, gc=False, tag="text"):
    """More visible text."""

    text: str


class Reasoning(msgspec.Struct, frozen=True, gc=False, tag="reasoning"):
    """More reasoning text."""

    text: str


class ToolCallStarted(msgspec.Struct, frozen=True, gc=False, tag="tool_call_started"):
    """A call began; its name is certain. ``index`` counts the calls of the answer from 0."""

    index: int
    id: str
    name: str


class ArgumentDelta(msgspec.Struct, frozen=True, gc=False, tag="argument_delta"):
    """More characters of the string at ``path``. The deltas at a path, joined, are the final string."""

    index: int
    path: Path
    text: str


class ArgumentValue(msgspec.Struct, frozen=True, tag="argument_value"):
    """The value at ``path`` is complete and typed."""

    index: int
    path: Path
    value: Any


class ArgumentRejected(msgspec.Struct, frozen=True, tag="argument_rejected"):
    """No continuation of the call can satisfy the tool's schema at ``path``; only with ``early=True``. The call goes on
    as it would without. The empty path is the name of a tool that is not declared, and may come before the start."""

    index: int
    path: Path
    issue: Issue


class ToolCallFinished(msgspec.Struct, frozen=True, tag="tool_call_finished"):
    """The call is sealed: complete, delimited, typed."""

    index: int
    call: ToolCall


class ToolCallFailed(msgspec.Struct, frozen=True, tag="tool_call_failed"):
    """The call ended in an error state; ``call`` is what was decoded so far. Never execute it."""

    index: int
    call: PartialToolCall
    error: ErrorDetail


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """An error that belongs to no call."""

    error: ErrorDetail


class Deviated(msgspec.Struct, frozen=True, tag="deviated"):
    """Something outside the format was tolerated. ``index`` is the call's, or None."""

    index: int | None
    deviation: Deviation


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The stream is over. ``clean`` is false when anything failed."""

    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    clean: bool = True


Event: TypeAlias = (
    Text
    | Reasoning
    | ToolCallStarted
    | ArgumentDelta
    | ArgumentValue
    | ArgumentRejected
    | ToolCallFinished
    | ToolCallFailed
    | Failed
    | Deviated
    | Ended
)
"""Everything that a decoder can say. Closed: ``match`` over it can be exhaustive."""

_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def dumps(event: Event) -> str:
    """One line of a JSON Lines log (no line break at its end)."""
    builtins = msgspec.to_builtins(event)
    line = json_text(builtins)
    try:
        line.encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can carry
        return _json_dumps(builtins)
    return line


def loads(line: str | bytes) -> Event:
    """The event that ``dumps`` wrote. Raises ``msgspec.DecodeError`` for anything else."""
    try:
        return _decoder.decode(line)
    except msgspec.DecodeError:
        if b"\\ud" not in (line.encode() if isinstance(line, str) else line).lower():
            raise
        event: Event = msgspec.convert(_json_loads(line), Event)  # msgspec's reader refuses lone surrogates
        return event


def json_text(value: Any) -> str:
    """JSON as the library writes it everywhere: ``", "`` and ``": "``, non-ASCII unescaped, integers exact."""
    return _json_dumps(value, ensure_ascii=False)


def join_words(words: tuple[str, ...]) -> str:
    """``("'</a>'", "text")`` as ``"'</a>' or text"``."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} or {words[-1]}"
