"""A run on a terminal: each answer in the view of the decoder's events, and between them what the tools did."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from streamparse.agent.events import (
    AgentEvent,
    AnswerStopped,
    CallJudged,
    EndState,
    HistoryCompacted,
    LoopEnded,
    Nudged,
    Retried,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from streamparse.agent.states import CallState
from streamparse.commands.sinks import View
from streamparse.commands.wording import counted
from streamparse.events import Ended

SHOWN = 12
"""Lines of a result that are shown: its beginning and its end. The model gets all of it."""


class AgentView:
    """Give it to ``ToolLoop.run`` as ``on_event``. ``make`` makes a view for each answer, which counts its calls."""

    def __init__(self, make: Callable[[], View]) -> None:
        self._make = make
        self._view = make()
        self._is_open = False

    def __call__(self, event: AgentEvent) -> None:
        """Shows one event."""
        match event:
            case TurnStarted(turn):
                self._begin(turn)
            case Retried(_, attempts):
                self._view.block("again", [f"the request was sent {attempts} times"])
            case CallJudged(_, _, _, observation):
                self._block("refused", observation or "")
            case AnswerStopped(_, observation):
                self.close()
                self._block("stopped", observation)
            case ToolStarted():
                pass  # the call stands above, and what it does has been shown
            case ToolFinished():
                self._finished(event)
            case Nudged(_, text):
                self._block("nudge", text)
            case HistoryCompacted(_, done):
                self._block("compact", f"the history had {done.before:,} tokens, and has {done.after:,}")
            case LoopEnded():
                self.close()
                self._ended(event)
            case _:
                self._view.show([event])
                if isinstance(event, Ended):
                    self.close()

    def block(self, label: str, lines: Iterable[str]) -> None:
        """Lines between two answers."""
        self._view.block(label, lines)

    def close(self) -> None:
        """The answer is over: from here on the terminal is anybody's."""
        if self._is_open:
            self._is_open = False
            self._view.__exit__(None, None, None)

    def _begin(self, turn: int) -> None:
        self._view = self._make()
        self._view.heading(f"Turn {turn}", "")
        self._view.__enter__()
        self._is_open = True

    def _finished(self, event: ToolFinished) -> None:
        state = event.result.state
        if state in (CallState.REJECTED, CallState.NOT_EXECUTED) and event.seconds == 0:
            return  # why has been shown, or was answered by whoever said no
        head = f"{event.name}: {state.value}, {event.seconds:.1f} s"
        shown = _ends(event.result.text.splitlines())
        self._view.block("result" if state is CallState.OK else "error", [head, *shown])

    def _block(self, label: str, text: str) -> None:
        self._view.block(label, text.splitlines())

    def _ended(self, ended: LoopEnded) -> None:
        numbers = f"{counted(ended.turns, 'turn')}, {counted(ended.calls, 'call')}"
        label = "done" if ended.state is EndState.ANSWERED else "error"
        self._view.block(label, [f"{ended.state.value}: {ended.reason}; {numbers}"])


def _ends(lines: list[str]) -> list[str]:
    left_out = len(lines) - SHOWN
    if left_out <= 1:
        return [f"  {line}" for line in lines]
    tail = SHOWN // 3
    shown = [*lines[: SHOWN - tail], f"… {counted(left_out, 'more line')} …", *lines[-tail:]]
    return [f"  {line}" for line in shown]
