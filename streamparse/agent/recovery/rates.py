"""Rates: a count, what it is counted out of, and how little a small sample says. No percentage stands alone (A11)."""

from __future__ import annotations

from math import sqrt
from typing import Final

import msgspec

Z: Final = 1.959964
"""Standard deviations of a normal distribution within which 95 % lie."""


INDEPENDENT: Final = (
    "The intervals take each turn as an observation of its own. The turns of one dialogue depend on each other, so "
    "that those of rates over turns are narrower than they should be."
)
"""What has to be known of the intervals."""


class Rate(msgspec.Struct, frozen=True):
    """``count`` out of ``n``; ``of`` says in words what the ``n`` are. ``low`` and ``high`` bound the 95 % Wilson
    interval; for no observation at all it is everything from 0 to 1."""

    name: str
    count: int
    n: int
    of: str
    low: float
    high: float

    @property
    def words(self) -> str:
        """``7 of 9 dialogues: 78 % (95 % interval 45 to 94 %)``; without observations no percentage."""
        if not self.n:
            return f"0 of 0 {self.of}"
        share = f"{percent(self.count / self.n)} % (95 % interval {percent(self.low)} to {percent(self.high)} %)"
        return f"{self.count} of {self.n} {self.of}: {share}"


def percent(share: float) -> str:
    """A share in percent, rounded; what is nearly nothing or nearly all does not become so by that."""
    exact = 100 * share
    return f"{exact:.1f}" if 0 < exact < 1 or 99 < exact < 100 else f"{exact:.0f}"


def rate(name: str, count: int, n: int, of: str) -> Rate:
    """The rate, with its interval."""
    low, high = wilson(count, n)
    return Rate(name, count, n, of, round(low, 4), round(high, 4))


def wilson(count: int, n: int, z: float = Z) -> tuple[float, float]:
    """The Wilson score interval of a share: unlike the usual one it is right for few observations, and for none or all
    of them."""
    if not n:
        return 0.0, 1.0
    share = count / n
    scale = 1 + z * z / n
    middle = (share + z * z / (2 * n)) / scale
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / scale
    low = 0.0 if count == 0 else max(middle - half, 0.0)
    return low, 1.0 if count == n else min(middle + half, 1.0)


class Metrics(msgspec.Struct, frozen=True):
    """What many dialogues add up to (A12).

    ``classes``, ``levels`` and ``ends`` are counts. ``turns_to_recovery`` says in how many dialogues the call was fixed
    at the 1st, 2nd … turn, and ``median_turns`` is its median, None if none was fixed.
    """

    dialogues: int
    turns: int
    unmeasured: int
    rates: tuple[Rate, ...]
    classes: dict[str, int]
    levels: dict[str, int]
    ends: dict[str, int]
    turns_to_recovery: dict[str, int]
    median_turns: float | None = None
