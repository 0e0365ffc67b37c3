"""Whether an answer without calls is an end, and which (B17). "No tool calls" alone is not "done"."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from streamparse.agent.events import EndState
from streamparse.agent.prose import prose_call
from streamparse.agent.turns import Turn
from streamparse.events import Deviation

CUT: Final = {
    "length": "the answer reached the output limit",
    "max_tokens": "the answer reached the output limit",
    "model_context_window_exceeded": "the answer reached the end of the context",
    "content_filter": "the provider's filter stopped the answer",
    "refusal": "the provider refused to go on",
    "pause_turn": "the provider paused the answer",
    "error": "the answer broke off",
}
"""Finish reasons of an answer that is not whole, in words."""


class Ending(msgspec.Struct, frozen=True):
    """How the run would end with this answer."""

    state: EndState
    reason: str


def ending_of(turn: Turn, names: Collection[str], deviations: Iterable[Deviation] = ()) -> Ending:
    """The end that an answer without calls makes. ``names`` are the declared tools; ``deviations`` are the text's."""
    unfinished = _unfinished(turn, names, deviations)
    if unfinished is not None:
        return Ending(EndState.UNFINISHED, unfinished)
    return Ending(EndState.ANSWERED, "the model answered")


def _unfinished(turn: Turn, names: Collection[str], deviations: Iterable[Deviation]) -> str | None:
    if turn.finish_reason in CUT:
        return CUT[turn.finish_reason]
    if not turn.clean:
        return "the answer could not be read whole"
    if not turn.text.strip():
        return "the answer is reasoning only" if turn.reasoning.strip() else "the answer is empty"
    if (found := prose_call(turn.text, names, deviations)) is not None:
        return f"the answer has a call in its text, which nobody executes: {found}"
    return None


def nudge(ending: Ending) -> str:
    """What the model is told, in the user's place, so that it goes on."""
    return f"[{ending.reason[0].upper()}{ending.reason[1:]}. Go on. To call a tool, send a tool call; else answer.]"
