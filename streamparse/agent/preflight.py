"""Preflight: what a server would refuse in a list of OpenAI-style messages, before it is sent (B5).

The messages are looked at one by one (``shape``), and then as a sequence. Results belong to calls by position: to the
calls of the turn directly before them. Ids are compared within that turn only, never over the whole history (see
``ids``).

Results that stand in another order than their calls are a problem, too: servers pair them by id, but the prompt that a
template makes of them has none (B4).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from streamparse.agent.problems import Problem, ProblemCode
from streamparse.agent.shape import SYSTEM, calls_of, faults


def preflight(messages: Iterable[Any]) -> list[Problem]:
    """The problems in order of their places; an empty list for a history that can be sent. Never raises on content,
    and changes nothing: ``heal`` does."""
    messages = list(messages)
    problems = [
        Problem(code, position, id_) for position, message in enumerate(messages) for code, id_ in faults(message)
    ]
    problems += _Sequence().read(messages)
    return sorted(problems, key=lambda problem: problem.position)


class _Sequence:
    """Reads messages in order, and keeps the calls that wait for their results."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []
        self._started = False  # something that is no system message has come
        self._turn = 0  # the position of the last turn with calls
        self._order: deque[str] = deque()  # its calls from the first on that waits
        self._waiting: Counter[str] = Counter()
        self._answered: Counter[str] = Counter()
        self._early: Counter[str] = Counter()  # calls in the order that have their results before their turn
        self._late: dict[str, list[int]] = {}  # calls whose results did not come in time: id -> their turns

    def read(self, messages: list[Any]) -> list[Problem]:
        for position, message in enumerate(messages):
            role = message.get("role") if isinstance(message, dict) else None
            if role == "tool":
                id_ = message.get("tool_call_id")
                self._result(position, id_ if isinstance(id_, str) else "")
            else:
                self._close()
            if isinstance(role, str) and role in SYSTEM and self._started:
                self._tell(ProblemCode.MISPLACED_SYSTEM, position)
            self._started = self._started or not (isinstance(role, str) and role in SYSTEM)
            if role == "assistant":
                self._open(position, message)
        self._close()
        for id_, turns in self._late.items():
            for turn in turns:
                self._tell(ProblemCode.MISSING_RESULT, turn, id_)
        return self._problems

    def _open(self, position: int, message: Any) -> None:
        self._turn = position
        ids = (call.get("id") for call in calls_of(message))
        self._order = deque(id_ if isinstance(id_, str) else "" for id_ in ids)
        self._waiting = Counter(self._order)

    def _result(self, position: int, id_: str) -> None:
        if self._waiting[id_]:
            self._waiting[id_] -= 1
            self._answered[id_] += 1
            if not self._is_next(id_):
                self._tell(ProblemCode.UNORDERED_RESULT, position, id_)
        elif self._late.get(id_):
            self._late[id_].pop()
            self._tell(ProblemCode.SEPARATED_RESULT, position, id_)
        elif self._answered[id_]:
            self._tell(ProblemCode.REPEATED_RESULT, position, id_)
        else:
            self._tell(
                ProblemCode.UNKNOWN_ID if self._order or self._answered else ProblemCode.ORPHAN_RESULT, position, id_
            )

    def _is_next(self, id_: str) -> bool:
        """Whether this is the result of the first call that waits; it waits no longer."""
        while self._early[self._order[0]]:
            self._early[self._order.popleft()] -= 1
        if self._order[0] == id_:
            self._order.popleft()
            return True
        self._early[id_] += 1
        return False

    def _close(self) -> None:
        """What waits now comes too late, if it comes."""
        for id_ in self._waiting.elements():
            self._late.setdefault(id_, []).append(self._turn)
        self._order.clear()
        for counter in (self._waiting, self._answered, self._early):
            counter.clear()

    def _tell(self, code: ProblemCode, position: int, id_: str = "") -> None:
        self._problems.append(Problem(code, position, id_))
