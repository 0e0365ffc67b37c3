"""What a turn of a dialogue can be (A9), and how a dialogue can end (A10)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class TurnClass(StrEnum):
    """What one turn is. Each has exactly one."""

    MALFORMED = "malformed"  # a call that could not be read
    UNFINISHED = "unfinished"  # cut, broken off, or over before there was more than reasoning
    PROSE_CALL = "prose_call"  # the call stands in the text (or the reasoning), where nobody executes it
    INVENTED_TOOL = "invented_tool"  # a tool that was never declared
    FOREIGN_TOOL = "foreign_tool"  # a declared tool, and not the one whose call was rejected
    REPEAT_IDENTICAL = "repeat_identical"  # arguments that were rejected before
    REPEAT_SAME_FIELD = "repeat_same_field"  # the field that was wrong is wrong again: rejected, or not what was asked
    NEW_ERROR = "new_error"  # that field is right, and now another one is rejected
    DRIFTED = "drifted"  # it fits, and a field that was right changed its value, or one came that nobody asked for
    FIXED = "fixed"
    USED = "used"  # the answer states what the tool returned
    IGNORED = "ignored"  # the answer does without it
    CONTRADICTS = "contradicts"  # the answer states something else in its place
    MISSING = "missing"  # what was due did not come: text in place of a call; no whole text, or a call, as the answer


PROPOSALS: Final = (
    TurnClass.MALFORMED,
    TurnClass.UNFINISHED,
    TurnClass.INVENTED_TOOL,
    TurnClass.FOREIGN_TOOL,
    TurnClass.PROSE_CALL,
    TurnClass.MISSING,
    TurnClass.REPEAT_IDENTICAL,
    TurnClass.REPEAT_SAME_FIELD,
    TurnClass.NEW_ERROR,
    TurnClass.DRIFTED,
    TurnClass.FIXED,
)
"""The classes of a turn in which a corrected call is due, the gravest first: of several calls, that one counts."""

ANSWERS: Final = (TurnClass.USED, TurnClass.IGNORED, TurnClass.CONTRADICTS, TurnClass.MISSING)
"""The classes of a turn in which the answer is due."""

REPEATS: Final = (TurnClass.REPEAT_IDENTICAL, TurnClass.REPEAT_SAME_FIELD)


class End(StrEnum):
    """How a dialogue ended."""

    RECOVERED = "recovered"  # the call was fixed, and the answer used its result
    LIMIT = "limit"  # as many turns were wrong as the case allows
    CYCLE = "cycle"  # after another proposal, one that had been rejected came again


GOOD: Final = (TurnClass.FIXED, TurnClass.USED, End.RECOVERED)
MIDDLE: Final = (TurnClass.NEW_ERROR, TurnClass.DRIFTED, TurnClass.IGNORED, TurnClass.MISSING)
"""How they are shown: what went well, and what nearly did. All others went wrong."""
