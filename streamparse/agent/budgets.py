"""Budgets: how much a run, and each tool in it, may use up (B17)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from streamparse.agent.jobs import seconds
from streamparse.agent.reasons import NOT_EXECUTED
from streamparse.errors import UsageError
from streamparse.tools.wording import quoted

TURNS: Final = 50
"""Answers in a run: a long task of a coding agent takes some thirty."""

CALLS: Final = 200
"""Calls in a run: four in each of its turns."""

SECONDS: Final = 3600.0
"""An hour for a run: many builds and test runs, and no night."""

ANSWER: Final = 1200.0
"""Twenty minutes for one answer: 60,000 tokens at a slow 50 a second. Silence ends it much earlier (``HttpModel``)."""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one run.

    ``turns`` and ``calls`` count answers and calls; ``per_tool`` has calls by name, and ``""`` for every tool that is
    not named. ``seconds`` is for the whole run, ``answer`` for one answer of the model. Raises ``UsageError`` for
    limits that are none: nothing may go on for ever (B21).
    """

    turns: int = TURNS
    calls: int = CALLS
    per_tool: Mapping[str, int] = {}
    seconds: float = SECONDS
    answer: float = ANSWER

    def __post_init__(self) -> None:
        per_tool = [(f"per_tool[{name!r}]", count, 0) for name, count in self.per_tool.items()]
        for name, count, least in (("turns", self.turns, 1), ("calls", self.calls, 1), *per_tool):
            if isinstance(count, bool) or not isinstance(count, int) or count < least:
                raise UsageError(f"{name} must be a whole number from {least}, found {count!r}")
        seconds("seconds", self.seconds)
        seconds("answer", self.answer)


class Spending:
    """What a run has used up."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.turns = 0
        self.calls = 0
        self._by_tool: Counter[str] = Counter()
        self._exceeded = False

    def refusal(self, name: str) -> str | None:
        """Counts a call that is about to run. Why it may not, for the model; None if it may."""
        if self.calls >= self.budget.calls:
            self._exceeded = True
            return f"{NOT_EXECUTED} This run may make {self.budget.calls} calls, and they are used up."
        most = self.budget.per_tool.get(name, self.budget.per_tool.get(""))
        if most is not None and self._by_tool[name] >= most:
            times = "once" if most == 1 else f"{most} times"
            return f"{NOT_EXECUTED} {quoted(name)} may be called {times} in this run. Go on without it."
        self.calls += 1
        self._by_tool[name] += 1
        return None

    @property
    def spent(self) -> str | None:
        """Which limit of the run ends it, None if none does: after the last call there may still be an answer."""
        if self.turns >= self.budget.turns:
            return f"the run took {self.turns} turns, as many as it may"
        if self._exceeded:
            return f"the run made {self.calls} calls, as many as it may"
        return None
