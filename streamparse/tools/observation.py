"""What goes back to the model when a call was not executed, or its tool failed (A6, B12).

``observation`` names each field, what was found, what is allowed, the fields to keep, the attempt, and that nothing was
executed. It is at most ``SIZE`` characters for any input, and the same for the same input. Of an offending value some
characters always remain. The same call again, and the last attempt, are said more firmly.

The text is then linked to its call in the form of the wire: ``tool_message`` (OpenAI-style), ``tool_result``
(Anthropic-style), ``native_results`` (the text that M2's template renders).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import dropwhile
from typing import Any

from streamparse.errors import UsageError
from streamparse.events import PartialToolCall, ToolCall, json_text
from streamparse.tools.canonical import canonical
from streamparse.tools.issues import Issue, IssueCode, Verdict
from streamparse.tools.wording import clip, listed, place, plain, quoted, requoted

SIZE = 600
"""Characters of an observation (A6)."""

_ISSUES = 3
_NAME = 40
_LEGAL = 64
"""Characters of a tool's name that APIs allow."""

_KEEP = 70
_HINT = 80
_SHORT = 12
"""Characters below which the details of a line say nothing."""


_STEP = r"[^\s\\/:'\"<>|,;()]+"
_START = r"(?:\bfile://|(?<![\w./\\]))(?:[A-Za-z]:)?"
_HOMES = r"(?:home|Users|Documents and Settings)"
_HOST_PATH = re.compile(
    rf"""(?P<address>\b(?!file:)[A-Za-z][\w+.-]+://[^\s'"<>]*)"""  # no path of the host
    r"""|(?P<quote>['"`])(?:file://)?(?P<quoted>(?:[A-Za-z]:)?[\\/][^'"`\n]+)(?P=quote)"""  # may hold spaces
    rf"""|{_START}[\\/]+{_HOMES}[\\/]+{_STEP}(?:\ [A-Z]{_STEP}(?=[\\/\ ])){{0,2}}"""  # 'John Smith', without quotes
    rf"""(?P<rest>(?:[\\/]+{_STEP})*[\\/]*)"""
    rf"""|{_START}(?:[\\/]+{_STEP})+[\\/]+""",
)
"""Absolute paths. Of the last kind only the directory."""

_HOME = re.compile(rf"(?:[A-Za-z]:)?[\\/]+{_HOMES}[\\/]+[^\\/]+[\\/]*")
_FRAME = re.compile(r"\s+File \".*")
_TRACEBACK = "Traceback (most recent call last)"

_FORMAT_ADVICE = {
    IssueCode.TRUNCATED: "The call was truncated, probably by the output limit. Send a smaller call: split the work "
    "into several calls, or shorten the longest value.",
    IssueCode.INTERRUPTED: "The connection broke while the call was being sent; the call itself may be right. Send it "
    "again.",
    IssueCode.MALFORMED: "The call does not follow the tool-call format. Send it again in the documented format.",
    IssueCode.AMBIGUOUS_DELIMITER: "A closing tag is missing between two parameters. Close every parameter.",
    IssueCode.CALL_IN_REASONING: "The call stood inside the reasoning. Finish the reasoning, then send the call.",
    IssueCode.DUPLICATE_ARGUMENT: "An argument was given twice. Give every argument once.",
    IssueCode.INVALID_JSON: "The arguments could not be parsed as JSON. Send one correct JSON object.",
    IssueCode.TRAILING_TEXT: "Text follows the JSON arguments. Send one JSON object and nothing behind it.",
    IssueCode.NOT_AN_OBJECT: "The arguments are not a JSON object. Send one JSON object with named fields.",
    IssueCode.LIMIT_EXCEEDED: "The call is beyond a limit. Send one that stays within it.",
}
_WORDS = {
    IssueCode.EXTRA: "not a field of this tool",
    IssueCode.TOO_DEEP: "nested too deep",
    IssueCode.NOT_JSON: "no JSON value",
    IssueCode.TOO_LONG: "too long",
    IssueCode.TOO_SHORT: "too short",
    IssueCode.NOT_UNIQUE: "an item comes twice",
    IssueCode.BAD_NAME: "a field name is wrong",
}
"""Where the value alone does not show what is wrong with it."""


def observation(verdict: Verdict, *, attempt: int = 1, limit: int = 3, repeats: int = 0) -> str:
    """The text for a call that was not executed.

    ``attempt`` counts from 1 up to ``limit``; ``repeats`` says how often the identical call (``fingerprint``) came
    before. For a call that fits and is in doubt it says that it needs a confirmation. Raises ``UsageError`` for one
    that may be executed: there is nothing to say.
    """
    if verdict.executable:
        raise UsageError("the call may be executed: send its result, not an observation")
    head = f"{_opening(verdict)} (attempt {_number(attempt)} of {_number(limit)})."
    before = [head, *_firmness(repeats)]
    last = attempt >= limit
    after = [*([] if last else _keeping(verdict)), *filter(None, [_closing(verdict, last)])]
    room = SIZE - sum(len(line) + 1 for line in (*before, *after))
    return clip("\n".join([*before, *_issue_lines(verdict, room), *after]), SIZE)


def failure(name: str, error: BaseException | str, *, started: bool = True) -> str:
    """The text for a tool that failed by itself (B12): the kind and the words of its error, at most ``SIZE``
    characters, without a traceback and without directories of the host. ``started`` is false where it never ran."""
    if isinstance(error, BaseException):
        try:
            words = str(error)
        except Exception:  # an exception's own code may fail
            words = ""
        kind = type(error).__name__
        error = f"{kind}: {words}" if words else kind
    said = _without_traceback(error)[: 8 * SIZE]
    said = plain(_HOST_PATH.sub(_without_directory, " ".join(said.split()))) or "no reason was given"
    state = "" if started else " Nothing was executed."
    head = f"The tool {quoted(name, _NAME)} failed.{state} "
    return head + clip(said, SIZE - len(head))


def fingerprint(call: ToolCall | PartialToolCall) -> str:
    """Equal for two calls that ask for the same: name and arguments (``canonical``). A call that could not be read is
    known by its raw text."""
    if isinstance(call, PartialToolCall) and call.raw:
        return json_text([call.name, call.raw])
    try:
        return f"[{json_text(call.name)}, {canonical(call.arguments)}]"
    except (TypeError, ValueError, RecursionError):  # arguments that are no JSON are equal to nothing else
        return json_text([call.name, "unreadable", id(call)])


def tool_message(call_id: str, text: str) -> dict[str, Any]:
    """The result of a call as an OpenAI-style message."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def tool_result(call_id: str, text: str, *, is_error: bool = False) -> dict[str, Any]:
    """The result of a call as an Anthropic-style block, for the ``content`` of a user message."""
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return block | {"is_error": True} if is_error else block


def native_results(texts: Iterable[str]) -> str:
    """The results of one turn in call order, as M2's template writes them: without ids, unescaped."""
    return "\n".join(f"<response>{text}</response>" for text in texts)


def _opening(verdict: Verdict) -> str:
    name = quoted(verdict.tool, _LEGAL)
    state = "needs a confirmation" if verdict.valid else "was rejected"
    return f"The call {name} {state}. Nothing was executed"


def _firmness(repeats: int) -> list[str]:
    if repeats <= 0:
        return []
    if repeats == 1:
        return ["It is the same call as before. Unchanged, it is rejected again. Change this:"]
    return [f"The same call came {_number(repeats + 1)} times. Unchanged, it is rejected every time. Change this:"]


def _keeping(verdict: Verdict) -> list[str]:
    names = [place((key,), 30) for key in verdict.keep]
    return [f"Keep as they are: {listed(names, 0, _KEEP, 'and')}."] if names else []


def _closing(verdict: Verdict, last: bool) -> str:
    if last:
        return "This was the last attempt: do not call it again; tell the user what failed and why."
    if verdict.valid:
        return "Ask the user, or send the call again in the documented format."
    first = verdict.issues[0].code
    if first is IssueCode.UNKNOWN_TOOL:
        return "Call a tool that exists."
    return "" if first in _FORMAT_ADVICE else "Correct this and send the call again."


def _issue_lines(verdict: Verdict, room: int) -> list[str]:
    if verdict.valid:
        return [clip(f"- in doubt: {', '.join(verdict.doubts)}", room - 1)]
    issues = verdict.issues[:_ISSUES]
    more = len(verdict.issues) - len(issues) + verdict.more
    last = [f"+{more:,} more"] if more else []
    each = (room - sum(len(line) + 1 for line in last)) // len(issues) - 1
    return [*(_issue_line(issue, each) for issue in issues), *last]


def _issue_line(issue: Issue, room: int) -> str:
    """One issue in one line: the place, what was found, then a hint and as much of what is allowed as fits."""
    if issue.code in _FORMAT_ADVICE:
        where = f"At {place(issue.path, _HINT)}: " if issue.path else "Found: " if issue.hint else ""
        details = [f"{where}{clip(issue.hint, _HINT)}"] if where else []
        details += [f"expected {clip(each, _HINT)}" for each in issue.allowed]
        return _filled(f"- {_FORMAT_ADVICE[issue.code]}", "; ".join(details), room)
    line = f"- {_fact(issue, room)}"
    hint = clip(issue.hint, _HINT)
    wanted = _allowed(issue, room - len(line) - (len(hint) + 2 if hint else 0))
    if issue.allowed and not wanted:  # the hint has to go
        wanted, hint = _allowed(issue, room - len(line)), ""
    return clip(f"{line}{wanted}{f'; {hint}' if hint else ''}", room)


def _allowed(issue: Issue, room: int) -> str:
    left = room - len("; allowed: ")
    if not issue.allowed or left < min(len(issue.allowed[0]), 12):
        return ""
    return f"; allowed: {listed(issue.allowed, issue.more, left)}"


def _fact(issue: Issue, room: int) -> str:
    if issue.code is IssueCode.UNKNOWN_TOOL:
        return "there is no tool of this name"
    where = place(issue.path, max(room * 3 // 10, 12))
    if issue.code is IssueCode.MISSING:
        return f"{where}: missing" if issue.value else f"{where}: required, but missing"
    if issue.found == "null":
        return f"{where}: found null"
    words = f"{_WORDS[issue.code]}, " if issue.code in _WORDS else ""
    found = f"found {issue.found} {requoted(issue.value, max(room // 4, 12))}" if issue.found else issue.code.value
    return f"{where}: {words}{found}"


def _filled(line: str, details: str, room: int) -> str:
    """The line, and as much of the details as fits."""
    left = room - len(line) - 1
    return f"{line} {clip(details, left)}" if details and left > _SHORT else clip(line, room)


def _number(count: int) -> str:
    return str(count) if abs(count) < 10**6 else "very many"


def _without_traceback(text: str) -> str:
    """The text without the lines of a traceback: what stands before the first one, and the message behind the frames of
    the last one."""
    head, mark, _ = text.partition(_TRACEBACK)
    if not mark:
        return text
    lines = text.rpartition(_TRACEBACK)[2].splitlines()[1:]
    frames = [at for at, line in enumerate(lines) if _FRAME.match(line)]
    message = dropwhile(lambda line: not line.strip() or line[0].isspace(), lines[frames[-1] if frames else 0 :])
    return f"{head} {' '.join(message)}"


def _without_directory(match: re.Match[str]) -> str:
    """What may be told of a path: its last name; of the directory of a user nothing."""
    if match["address"] is not None:
        return match["address"]
    if match["quoted"] is not None:
        return f"{match['quote']}{_last_name(match['quoted'])}{match['quote']}"
    return _last_name(f"/home/-{match['rest']}") if match["rest"] is not None else "…/"


def _last_name(path: str) -> str:
    if _HOME.fullmatch(path):
        return "…"
    directory, _, name = path.replace("\\", "/").rstrip("/").rpartition("/")
    return f"…/{name}" if directory else path
