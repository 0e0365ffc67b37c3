"""What a loop says while it works: the decoder's events as they come, and its own between them.

One run, in this order::

    TurnStarted
        [Retried]  the decoder's events … CallJudged …  Ended      CallJudged stands behind the end of each call
        ToolStarted … ToolFinished …                                in the order in which they happen
    [Nudged] [Compacted]  TurnStarted …
    LoopEnded                                                       once, and last

``index`` is the place of a call in its turn, as in the decoder's events. Closed, like those: ``match`` over
``AgentEvent`` can be exhaustive.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec

from streamparse.agent.compaction import Compacted
from streamparse.agent.results import Fault
from streamparse.agent.turns import ToolResult
from streamparse.events import Event
from streamparse.tools.issues import Verdict


class EndState(StrEnum):
    """How a run ended (B17)."""

    ANSWERED = "answered"
    UNFINISHED = "unfinished"  # cut, reasoning only, a call in prose
    LIMIT = "limit"  # a budget, or going round in circles
    CANCELLED = "cancelled"
    ERROR = "error"  # the model could not be reached, or its answer broke


class TurnStarted(msgspec.Struct, frozen=True, tag="turn_started"):
    """The model is asked. ``turn`` counts from 1 within the run; ``messages`` of the history go with the request."""

    turn: int
    messages: int


class Retried(msgspec.Struct, frozen=True, tag="retried"):
    """The request had to be sent ``attempts`` times before the first token came (B11)."""

    turn: int
    attempts: int


class CallJudged(msgspec.Struct, frozen=True, tag="call_judged"):
    """A call was sealed, or failed, and judged. ``observation`` is what the model gets instead of a result, None for a
    call that may run. ``attempt`` counts the answers in a row with wrong calls of this tool, this one included; 0 for
    a call that is right, and for one that broke off with the connection."""

    index: int
    id: str
    verdict: Verdict
    observation: str | None = None
    attempt: int = 0


class AnswerStopped(msgspec.Struct, frozen=True, tag="answer_stopped"):
    """The generation was ended early: the call at ``index`` could not become valid any more. ``observation`` is what
    the model is told of it."""

    index: int
    observation: str


class ToolStarted(msgspec.Struct, frozen=True, tag="tool_started"):
    """A tool begins to run."""

    index: int
    id: str
    name: str


class ToolFinished(msgspec.Struct, frozen=True, tag="tool_finished"):
    """A call of the turn has its result, run or not. See ``results.Execution`` for the fields."""

    index: int
    name: str
    result: ToolResult
    fault: Fault | None = None
    seconds: float = 0.0
    repeats: str | None = None
    hook_errors: tuple[str, ...] = ()


class Nudged(msgspec.Struct, frozen=True, tag="nudged"):
    """The answer was no end, and the model is told so: ``text`` is what is said in the user's place."""

    turn: int
    text: str


class HistoryCompacted(msgspec.Struct, frozen=True, tag="history_compacted"):
    """The history was above the threshold, and was shortened, or could not be (B18)."""

    turn: int
    done: Compacted


class LoopEnded(msgspec.Struct, frozen=True, tag="loop_ended"):
    """The run is over. ``reason`` says why, in one line; ``text`` is the visible text of the last answer; ``turns``
    and ``calls`` count answers and calls of this run."""

    state: EndState
    reason: str
    text: str = ""
    turns: int = 0
    calls: int = 0


LoopEvent: TypeAlias = (
    TurnStarted
    | Retried
    | CallJudged
    | AnswerStopped
    | ToolStarted
    | ToolFinished
    | Nudged
    | HistoryCompacted
    | LoopEnded
)
"""What the loop itself says."""

AgentEvent: TypeAlias = Event | LoopEvent
"""Everything that a run can say."""
