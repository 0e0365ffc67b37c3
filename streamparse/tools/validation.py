"""The judgement on a decoded call, before anything is executed.

``Judge`` compiles the tools once; ``check`` judges one call. jsonschema-rs says whether arguments are valid, on the
shape that ``shaping`` gives them; what is wrong becomes issues (``explain``). So a call is valid if and only if the
validator accepts ``Verdict.arguments``, no field was sent by another spelling of its name, and, with
``extra="reject"``, nothing undeclared was sent.

Three questions stay apart: whether the format could be read (a ``ToolCallFailed`` could not), whether the arguments fit
(``issues``), and whether the call may run (``executable``). A call that fits and is in doubt (not ``trusted``, or read
at a repair tier of 2 or more) may run only if its tool changes nothing (B15).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

from streamparse.errors import UsageError
from streamparse.events import (
    DeviationCode,
    ErrorCode,
    ErrorDetail,
    Level,
    PartialToolCall,
    Path,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    join_words,
)
from streamparse.limits import DEFAULT_LIMITS
from streamparse.tools.definition import Tool, as_tools
from streamparse.tools.explain import ALLOWED, Explainer, allowed_words, by_another_name, order
from streamparse.tools.issues import ArgumentRejectedError, Ignored, Issue, IssueCode, Verdict
from streamparse.tools.names import close, meant, nearest
from streamparse.tools.schema import Node, Schema
from streamparse.tools.shaping import Drifted, Shaper, Unreadable, unreadable
from streamparse.tools.tidy import tidy_check
from streamparse.tools.wording import VALUE, clip, plain, shown, type_word

Extra: TypeAlias = Literal["ignore", "reject", "keep"]
"""What becomes of undeclared fields: left out and noted (B14), an issue each, or passed on as they are (where the
schema itself allows them). One that is left out and whose name was meant for a declared field is an issue all the
same."""

_DOUBTFUL_TIER = 2
"""J5, B15: from this tier of repair on, what was read is a guess."""

_KEPT = 16
"""Names of right fields that a verdict lists."""

_PATHS = 12
"""Steps of a path that an issue about unreadable values keeps."""

_LEVELS = (Level.PARSE, Level.REPRESENTATION, Level.SCHEMA, Level.TOOL, Level.RECOVERY)


class Judge:
    """The declared tools, compiled. Make one for a set of tools, and check every call with it.

    ``tools`` take every form that ``Tool.of`` reads. Raises ``ToolDefinitionError`` for one that is broken.
    """

    def __init__(self, tools: Iterable[Any], *, extra: Extra = "ignore") -> None:
        if extra not in ("ignore", "reject", "keep"):
            raise UsageError(f"extra must be 'ignore', 'reject' or 'keep', not {shown(extra)}")
        self.tools = as_tools(tools)
        self._prepared = {name: _Prepared(tool, extra) for name, tool in self.tools.items()}

    def check(self, call: ToolCall | ToolCallFinished | ToolCallFailed) -> Verdict:
        """The verdict on a call. Never raises, whatever the arguments are, and never changes them."""
        if isinstance(call, ToolCallFinished):
            call = call.call
        if isinstance(call, ToolCallFailed):
            return self._failed(call.call, call.error)
        prepared = self._prepared.get(call.name)
        return self._unknown(call) if prepared is None else prepared.check(call)

    def refused(self, call: ToolCall, error: ArgumentRejectedError) -> Verdict:
        """The verdict on a call whose argument the tool itself refused while it ran (B12)."""
        value, found = _look_up(call.arguments, error.path)
        allowed = tuple(clip(plain(str(each)), VALUE) for each in error.allowed[:ALLOWED])
        issue = Issue(
            IssueCode.REJECTED,
            error.path[:_PATHS],
            type_word(value) if found else "",
            shown(value) if found else "",
            allowed,
            max(len(error.allowed) - ALLOWED, 0),
            clip(plain(error.hint), 2 * VALUE),
            Level.TOOL,
        )
        prepared = self._prepared.get(call.name)
        keep = _right(call.arguments, [issue], prepared.names if prepared else None)
        return Verdict(call.name, Level.TOOL, (issue,), arguments=dict(call.arguments), keep=keep)

    def _unknown(self, call: ToolCall | PartialToolCall) -> Verdict:
        names = nearest(call.name, self.tools)
        likely = meant(call.name, names)
        issue = Issue(
            IssueCode.UNKNOWN_TOOL,
            (),
            "string",
            shown(call.name),
            tuple(shown(name) for name in names[:ALLOWED]),
            len(names[ALLOWED:]),
            f"did you mean {shown(likely)}?" if likely else "",
        )
        return Verdict(call.name, Level.SCHEMA, (issue,), arguments=dict(call.arguments))

    def _failed(self, call: PartialToolCall, error: ErrorDetail) -> Verdict:
        """A call that could not be read. What was decoded of it is not judged: it is not what the model meant."""
        issue = Issue(
            _FAILURES.get(error.code, IssueCode.MALFORMED),
            error.path[:_PATHS],
            "",
            "",  # nothing is quoted: before the place stand the values of other fields
            (clip(plain(join_words(error.expected[:ALLOWED])), 2 * VALUE),) if error.expected else (),
            0,
            clip(plain(error.reason), 2 * VALUE),
            error.level,
        )
        return Verdict(call.name, error.level, (issue,), arguments=dict(call.arguments))


def check(call: ToolCall | ToolCallFinished | ToolCallFailed, tools: Judge | Iterable[Any]) -> Verdict:
    """``Judge.check``, with tools in any form. For more than one call, make the ``Judge`` once."""
    return (tools if isinstance(tools, Judge) else Judge(tools)).check(call)


_UNTOUCHED: Final = Shaper(strip=False)
"""For arguments that were not shaped."""


class _Prepared:
    """One tool, ready to judge its calls."""

    def __init__(self, tool: Tool, extra: Extra) -> None:
        self._tool = tool
        self._extra = extra
        self._schema = Schema(tool.parameters, f"tool {shown(tool.name)}")
        self._is_valid = self._schema.validator.is_valid
        self._tidy = tidy_check(self._schema.root)
        self._harmless = tool.effect == "read"
        self.names = _names(self._schema.root)

    def check(self, call: ToolCall) -> Verdict:
        """The verdict on a call of this tool. The quick way is for what is right as it is."""
        arguments = call.arguments
        try:  # in this order: what is tidy is not nested too deep for the validator
            if self._tidy(arguments) and self._is_valid(arguments):
                if call.trusted and not call.deviations:
                    return Verdict(call.name, executable=True, arguments=arguments.copy())
                return self._verdict(call, arguments.copy(), [], 0)
        except (ValueError, RecursionError):  # values that JSON cannot hold
            pass
        return self._judge(call)

    def _judge(self, call: ToolCall) -> Verdict:
        lost = unreadable(call.arguments)
        if lost is not None:
            return self._verdict(call, dict(call.arguments), [_lost(lost)], 0)
        try:
            return self._judge_readable(call)
        except (ValueError, RecursionError):  # JSON in strings in JSON …; a caller deep inside its own recursion
            return self._verdict(call, dict(call.arguments), [Issue(IssueCode.TOO_DEEP, ())], 0)

    def _judge_readable(self, call: ToolCall) -> Verdict:
        shaper = Shaper(strip=self._extra != "keep")
        shaped = shaper.shape(self._schema.root, call.arguments)
        if shaper.coerced and unreadable(shaped):
            raise RecursionError
        needed = shaper.undeclared and not shaper.drifted and not self._is_valid(shaped)
        if needed and self._fits_unstripped(call.arguments):
            # The fields were not declared, and yet needed (minProperties, not, a pattern of their names): they stay.
            shaper = Shaper(strip=False)
            shaped = shaper.shape(self._schema.root, call.arguments)
        found: list[Issue] = []
        more = 0
        if not self._is_valid(shaped):
            found, more = Explainer(self._schema, shaped, shaper.ignored).issues()
            found = found or [Issue(IssueCode.UNFIT, (), allowed=("what the schema describes",))]
        if self._extra == "reject":
            found = sorted([*found, *(_rejected(each, call.arguments) for each in shaper.ignored)], key=order)
            more += shaper.undeclared - len(shaper.ignored)
        elif shaper.drifted:
            known = {issue.path for issue in found}
            found = sorted([*found, *(_drifted(each) for each in shaper.drifted if each.path not in known)], key=order)
        return self._verdict(call, shaped, found, more, shaper)

    def _fits_unstripped(self, arguments: dict[str, Any]) -> bool:
        return self._is_valid(Shaper(strip=False).shape(self._schema.root, arguments))

    def _verdict(
        self, call: ToolCall, arguments: dict[str, Any], found: list[Issue], more: int, shaper: Shaper = _UNTOUCHED
    ) -> Verdict:
        doubts = _doubts(call) if found else (*_doubts(call), *_slips(shaper.ignored))
        return Verdict(
            call.name,
            min((issue.level for issue in found), key=_LEVELS.index, default=None),
            tuple(found),
            tuple(shaper.ignored),
            tuple(shaper.coerced),
            not found and (self._harmless or not doubts),
            arguments,
            doubts,
            _right(arguments, found, self.names) if found else (),
            more,
            shaper.undeclared,
        )


def _names(root: Node) -> set[str] | None:
    """The fields that a schema declares anywhere at its top; None where others may stand there."""
    nodes = list(root.reachable())
    if any(node.opaque or node.patterns or (node.rest is not None and node.rest is not False) for node in nodes):
        return None
    closed = any("properties" in node.value or node.rest is False for node in nodes)
    return {name for node in nodes for name in node.properties} if closed else None


def _doubts(call: ToolCall) -> tuple[str, ...]:
    """Why what was read is perhaps not what was meant."""
    doubts = [
        f"repaired at tier {each.tier}" if each.code is DeviationCode.REPAIRED else each.code.value
        for each in call.deviations
        if each.tier >= _DOUBTFUL_TIER
    ]
    if not call.trusted and not doubts:
        doubts = ["not trusted", *(each.code.value for each in call.deviations)]
    return tuple(dict.fromkeys(doubts[:_KEPT]))


def _slips(ignored: Collection[Ignored]) -> list[str]:
    """Fields that were left out, and whose names are a few letters off one that is absent: perhaps it was meant."""
    likely = ((str(each.path[-1]), each.meant) for each in ignored if each.meant is not None)
    words = (f"{shown(sent)} left out, perhaps meant for {shown(name)}" for sent, name in likely if close(sent, name))
    return list(islice(words, _KEPT))


def _lost(lost: Unreadable) -> Issue:
    """A value that cannot be read as an issue."""
    place = tuple(step if isinstance(step, int) else str(step) for step in lost.path[:_PATHS])
    if lost.deep:
        words = f"nested at most {DEFAULT_LIMITS.depth} deep"
        return Issue(IssueCode.TOO_DEEP, place, type_word(lost.value), shown(lost.value), (words,))
    return Issue(IssueCode.NOT_JSON, place, type_word(lost.value), shown(lost.value), ("a JSON value",))


def _rejected(ignored: Ignored, arguments: dict[str, Any]) -> Issue:
    """An undeclared field as an issue."""
    value, found = _look_up(arguments, ignored.path)
    hint = f"did you mean {shown(ignored.meant)}?" if ignored.meant else ""
    words = ("only declared fields",)
    return Issue(IssueCode.EXTRA, ignored.path, type_word(value) if found else "", shown(value), words, hint=hint)


def _drifted(each: Drifted) -> Issue:
    """A declared field that is not there, because it was sent by another spelling of its name. ``value`` is that one,
    which tells the issue from a field that is missing."""
    words = allowed_words(each.node)
    listed = tuple(words[:ALLOWED])
    hint = by_another_name(each.sent)
    return Issue(IssueCode.MISSING, each.path, "", shown(each.sent), listed, len(words[ALLOWED:]), hint)


def _right(arguments: dict[str, Any], found: list[Issue], names: Collection[str] | None) -> tuple[str, ...]:
    """The top-level fields in which nothing is wrong, of those that are declared (None: all are); none where something
    is wrong with all of them together."""
    if any(not issue.path for issue in found):
        return ()
    wrong = {issue.path[0] for issue in found}
    right = (key for key in arguments if key not in wrong and isinstance(key, str) and (names is None or key in names))
    return tuple(clip(key, VALUE) for key in islice(right, _KEPT))


def _look_up(value: Any, path: Path) -> tuple[Any, bool]:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None, False
    return value, True


_FAILURES = {
    ErrorCode.UNCLOSED_TAG: IssueCode.TRUNCATED,
    ErrorCode.UNCLOSED_REASONING: IssueCode.TRUNCATED,
    ErrorCode.UNCLOSED_ENVELOPE: IssueCode.TRUNCATED,
    ErrorCode.UNCLOSED_CALL: IssueCode.TRUNCATED,
    ErrorCode.UNCLOSED_PARAMETER: IssueCode.TRUNCATED,
    ErrorCode.UNCLOSED_HEADER: IssueCode.TRUNCATED,
    ErrorCode.UNTERMINATED_JSON: IssueCode.TRUNCATED,
    ErrorCode.STREAM_INTERRUPTED: IssueCode.INTERRUPTED,
    ErrorCode.PROVIDER_ERROR: IssueCode.INTERRUPTED,
    ErrorCode.MISSING_NAME: IssueCode.MALFORMED,
    ErrorCode.MALFORMED_ENVELOPE: IssueCode.MALFORMED,
    ErrorCode.MALFORMED_CALL: IssueCode.MALFORMED,
    ErrorCode.MISSING_CALL: IssueCode.MALFORMED,
    ErrorCode.AMBIGUOUS_DELIMITER: IssueCode.AMBIGUOUS_DELIMITER,
    ErrorCode.CALL_IN_REASONING: IssueCode.CALL_IN_REASONING,
    ErrorCode.DUPLICATE_ARGUMENT: IssueCode.DUPLICATE_ARGUMENT,
    ErrorCode.DUPLICATE_KEY: IssueCode.DUPLICATE_ARGUMENT,
    ErrorCode.INVALID_JSON: IssueCode.INVALID_JSON,
    ErrorCode.LONE_SURROGATE: IssueCode.INVALID_JSON,
    ErrorCode.TRAILING_TEXT: IssueCode.TRAILING_TEXT,
    ErrorCode.NOT_AN_OBJECT: IssueCode.NOT_AN_OBJECT,
    ErrorCode.LIMIT_EXCEEDED: IssueCode.LIMIT_EXCEEDED,
}
