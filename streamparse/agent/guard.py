"""The guard: stops a model that goes round in circles (B17).

Theory. A run is a sequence of *steps*: each call with what it came to. It goes in circles when the last steps are one
and the same sequence three times over; a sequence of one is the same call with the same result, again and again. What
counts as the same:

* Calls are compared by what they ask for: the order of keys is nothing, and neither is the order of the calls of one
  turn, or one that stands twice in it. A call that could not be read is its raw text.
* Results are compared without what changes by itself: times, dates, durations, addresses in memory. Of a call that was
  refused only that counts: the words differ with the attempt.

A result that changes with each call may be progress (a build that is waited for), or may hide a circle. So the same
calls in ``LONGEST_ROW`` turns in a row stop the run whatever they return, unless the tool is ``repeatable``.

Memory: a few hundred digests, however long the run is.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from streamparse.agent.states import CallState
from streamparse.agent.turns import Proposal
from streamparse.tools.observation import fingerprint
from streamparse.tools.wording import clip, quoted

TIMES: Final = 3
"""How often a sequence comes before it is a circle."""

PERIOD: Final = 12
"""Steps of the longest sequence that is looked for: four turns with three calls each."""

LONGEST_ROW: Final = 10
"""Turns in a row that may ask for the very same, whatever comes of it."""

_REFUSED: Final = frozenset({CallState.REJECTED, CallState.NOT_EXECUTED})

_VOLATILE: Final = re.compile(
    r"""\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?  # a date, with its time
    | \b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b                                                 # a time
    | \b\d+(?:\.\d+)?\s?(?:[nmµu]s|s|secs?|seconds?|min|minutes?)\b                     # a duration
    | \b0x[0-9a-fA-F]{4,}\b                                                             # an address""",
    re.VERBOSE,
)


class Guard:
    """One for each run. ``repeatable`` are the names of tools that may be called again and again."""

    def __init__(self, repeatable: frozenset[str] = frozenset()) -> None:
        self._repeatable = repeatable
        self._steps: deque[tuple[bytes, bytes]] = deque(maxlen=TIMES * PERIOD)
        self._last: tuple[bytes, ...] = ()
        self._row = 0

    def saw(self, calls: Sequence[Proposal]) -> str | None:
        """One turn with calls, all of which have their results. The reason to stop, None if there is none."""
        steps = sorted({(_digest(fingerprint(call.call)), _digest(_outcome(call))) for call in calls})
        self._steps.extend(steps)
        asked = tuple(call for call, _ in steps)
        self._row = self._row + 1 if asked == self._last else 1
        self._last = asked
        if (period := self._period()) is not None:
            return _reason(calls, period, len(steps))
        if self._row >= LONGEST_ROW and not all(call.call.name in self._repeatable for call in calls):
            return f"the same {_what(calls)} came {self._row} times in a row, with changing results"
        return None

    def _period(self) -> int | None:
        """The length of the sequence that came three times, None if none did."""
        steps = list(self._steps)
        for period in range(1, len(steps) // TIMES + 1):
            tail = steps[-TIMES * period :]
            if all(tail[at] == tail[at + period] for at in range(len(tail) - period)):
                return period
        return None


def _outcome(call: Proposal) -> str:
    result = call.result
    if result is None or result.state in _REFUSED:
        return "refused"
    return f"{result.state}\n{_VOLATILE.sub('#', result.text)}"


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _what(calls: Sequence[Proposal]) -> str:
    names = sorted({call.call.name for call in calls})
    return f"call of {quoted(names[0], 40)}" if len(names) == 1 else f"calls of {clip(', '.join(names), 80)}"


def _reason(calls: Sequence[Proposal], period: int, width: int) -> str:
    if period <= width:
        return f"the same {_what(calls)} came {TIMES} times in a row, with the same result"
    return f"the same {period} calls came {TIMES} times over, with the same results"
