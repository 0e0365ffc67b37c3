"""N5: whether a closing tag ends its value. Read off the state table; no tag and no list of followers stands here.

A *chain* starts behind the closing tag and follows the tags that come next, over white space, from state to state. It
is right when it reaches a tag that opens something, or a state where free text may stand (then anything may follow).
It is wrong at anything else. Where the chain has left the call, stray text may follow (N10): then the next tag of the
call's structure decides, and it must be one that may come there."""

from __future__ import annotations

import re
from typing import TypeAlias

from streamparse.decoding.plan import Plan, structure
from streamparse.decoding.table import Role, Table, Tag
from streamparse.decoding.verdict import DATA, TAKE, WAIT, Verdict
from streamparse.limits import LOOKAHEAD

Answer: TypeAlias = tuple[Verdict, bool, bool]
"""Verdict; whether the end of the stream cut the chain short; whether it was the last resort."""

Stall: TypeAlias = tuple[Plan, frozenset[str], int]
"""Why nothing can be said yet: at this place stands one of these beginnings of a tag of this state."""

_SPACE = re.compile(r"\s*").match
_DATA: Answer = (DATA, False, False)
_WAIT: Answer = (WAIT, False, False)
_ASSUMED: Answer = (TAKE, True, False)
_RIGHT: Answer = (TAKE, False, False)
_LAST_RESORT: Answer = (TAKE, False, True)


def past_space(buffer: str, start: int) -> int:
    """The next non-blank place, or -1 where the white space is longer than anyone should wait for."""
    at = _SPACE(buffer, start).end()  # type: ignore[union-attr]
    return at if at - start <= LOOKAHEAD else -1


class Chains:
    """The chains of one scanner. Holds no text."""

    __slots__ = ("_plans", "_structure", "cut_short", "stall")

    def __init__(self, table: Table, plans: tuple[Plan, ...]) -> None:
        self._plans = plans
        self._structure = structure(table)
        self.cut_short = False  # the answer is known to have been cut: its end is no last resort
        self.stall: Stall | None = None  # of the last answer, if it was WAIT at the beginning of a tag

    def judge(self, closer: Tag, buffer: str, end: int, final: bool, last: bool) -> Answer:
        """Follow the chain behind ``closer``, which ends at ``end``. ``last``: only the last resort counts."""
        plan, at = self._plans[closer.target], end
        self.stall = None
        while True:
            at = past_space(buffer, at)
            if at < 0 or at - end > LOOKAHEAD:
                return _DATA
            if plan.opaque:
                return self._end_of_answer(plan, buffer, at, final) if last else _RIGHT
            if at == len(buffer):
                return self._at_end(final, last)
            match = plan.match(buffer, at)
            if match is None:
                begun = plan.begun_closers if last else plan.begun_own
                if plan.ends_in(begun, buffer, at):
                    self.stall = (plan, begun, at)
                    return self._at_end(final, last)
                if plan is self._plans[closer.target]:
                    return _DATA
                at, answer = self._past_stray(buffer, at, end, final, last)
                if answer is not None:
                    return answer
                match = plan.match(buffer, at)
                if match is None:
                    return _DATA
            tag = plan.tags[match[0]]
            if tag.text in plan.lost:
                return _DATA
            if tag.role is Role.OPEN:
                return _DATA if last else _RIGHT
            plan, at = self._plans[tag.target], match.end()

    def _at_end(self, final: bool, last: bool) -> Answer:
        """The chain is right so far, and the buffer ends."""
        if not final:
            return _WAIT
        return _DATA if last else _ASSUMED

    def _past_stray(self, buffer: str, at: int, end: int, final: bool, last: bool) -> tuple[int, Answer | None]:
        """The next tag of a call's structure behind stray text, or the answer where none comes in time."""
        found = self._structure.search(buffer, at, end + LOOKAHEAD)
        if found is not None:
            return found.start(), None
        if len(buffer) - end >= LOOKAHEAD:
            return at, _DATA
        return at, self._at_end(final, last)

    def _end_of_answer(self, plan: Plan, buffer: str, at: int, final: bool) -> Answer:
        """Last resort: nothing but the end of the stream or the end-of-turn marker may follow."""
        if at == len(buffer):
            if not final:
                return _WAIT
            return _DATA if self.cut_short else _LAST_RESORT
        match = plan.match(buffer, at)
        if match is not None:
            return _LAST_RESORT if plan.tags[match[0]].terminal == "END_OF_TURN" else _DATA
        marks = (tag.text for tag in plan.tags.values() if tag.terminal == "END_OF_TURN")
        if not final and any(len(buffer) - at < len(mark) and mark.startswith(buffer[at:]) for mark in marks):
            return _WAIT
        return _DATA
