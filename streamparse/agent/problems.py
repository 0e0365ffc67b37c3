"""What can be wrong with a list of messages: the codes, and what each wants instead."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec


class ProblemCode(StrEnum):
    """Why a server would refuse a history."""

    NOT_A_MESSAGE = "not_a_message"
    NOT_JSON = "not_json"
    UNKNOWN_ROLE = "unknown_role"
    MISPLACED_SYSTEM = "misplaced_system"
    CONTENT_NOT_TEXT = "content_not_text"
    EMPTY_TURN = "empty_turn"
    MALFORMED_CALL = "malformed_call"
    BAD_NAME = "bad_name"
    BAD_ARGUMENTS = "bad_arguments"
    MISSING_ID = "missing_id"
    REPEATED_ID = "repeated_id"
    MISSING_RESULT = "missing_result"
    SEPARATED_RESULT = "separated_result"
    UNORDERED_RESULT = "unordered_result"
    REPEATED_RESULT = "repeated_result"
    UNKNOWN_ID = "unknown_id"
    ORPHAN_RESULT = "orphan_result"


EXPECTED: Final = {
    ProblemCode.NOT_A_MESSAGE: "an object with role and content",
    ProblemCode.NOT_JSON: "JSON values without NaN, lone surrogates or cycles",
    ProblemCode.UNKNOWN_ROLE: "system, developer, user, assistant or tool",
    ProblemCode.MISPLACED_SYSTEM: "system messages at the start only",
    ProblemCode.CONTENT_NOT_TEXT: "text (a result takes nothing else), or a list of content parts",
    ProblemCode.EMPTY_TURN: "an assistant turn with text or calls",
    ProblemCode.MALFORMED_CALL: "tool_calls: a list, not empty, of {id, type: function, function: {name, arguments}}",
    ProblemCode.BAD_NAME: "a name without white space, not empty",
    ProblemCode.BAD_ARGUMENTS: "arguments that are the text of a JSON object",
    ProblemCode.MISSING_ID: "a call id that is text, not empty",
    ProblemCode.REPEATED_ID: "an id of its own for each call of a turn",
    ProblemCode.MISSING_RESULT: "one result for each call",
    ProblemCode.SEPARATED_RESULT: "results directly behind the turn that proposed the calls",
    ProblemCode.UNORDERED_RESULT: "results in the order of the calls",
    ProblemCode.REPEATED_RESULT: "no second result for a call",
    ProblemCode.UNKNOWN_ID: "a tool_call_id that a call of the turn before it has",
    ProblemCode.ORPHAN_RESULT: "a result only where a call waits for it",
}


class Problem(msgspec.Struct, frozen=True):
    """One thing that a server would refuse. ``position`` is that of the message in the list, ``id`` the call's, where
    there is one."""

    code: ProblemCode
    position: int
    id: str = ""

    @property
    def expected(self) -> str:
        """What should be there."""
        return EXPECTED[self.code]

    @property
    def message(self) -> str:
        """One line for people: ``messages[3]: orphan_result 'c1'; expected a result only where …``."""
        of = f" {self.id!r}" if self.id else ""
        return f"messages[{self.position}]: {self.code}{of}; expected {self.expected}"
