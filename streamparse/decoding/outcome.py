"""What came of one answer: its events, feed by feed; how its calls ended; whether it was clean."""

from __future__ import annotations

from streamparse.events import (
    Deviated,
    Deviation,
    DeviationCode,
    ErrorDetail,
    Event,
    Failed,
    PartialToolCall,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
)
from streamparse.limits import EXCERPT


class Outcome:
    """Where the events of one answer are written. Each feed brings its own list (``begin``)."""

    __slots__ = ("_told", "clean", "events", "failed", "finished")

    def __init__(self) -> None:
        self.events: list[Event] = []  # of the feed that is running
        self.clean = True
        self.finished: dict[int, ToolCall] = {}
        self.failed: dict[int, PartialToolCall] = {}
        self._told: set[str] = set()

    def begin(self) -> list[Event]:
        """A new list of events, for a new feed."""
        self.events = []
        return self.events

    @property
    def calls(self) -> list[ToolCall]:
        """The sealed calls so far, in the order of their start."""
        return [self.finished[index] for index in sorted(self.finished)]

    def ended(self, index: int) -> PartialToolCall | None:
        """A snapshot of a call that has ended; None if it has not."""
        done = self.finished.get(index)
        if done is not None:
            return PartialToolCall(done.id, done.name, dict(done.arguments), done.arguments_json, done.deviations)
        return self.failed.get(index)

    def conclude(self, event: ToolCallFinished | ToolCallFailed) -> None:
        """The end of a call."""
        if isinstance(event, ToolCallFinished):
            self.finished[event.index] = event.call
        else:
            self.failed[event.index] = event.call
            self.clean = False
        self.events.append(event)

    def fail(self, error: ErrorDetail) -> None:
        """An error that belongs to no call."""
        self.clean = False
        self.events.append(Failed(error))

    def fail_once(self, topic: str, error: ErrorDetail) -> None:
        """The same, told once per answer."""
        if topic not in self._told:
            self._told.add(topic)
            self.fail(error)

    def tell(self, code: DeviationCode, offset: int, detail: str = "", index: int | None = None) -> None:
        """A deviation that belongs to no call, or to one that has ended."""
        self.events.append(Deviated(index, Deviation(code, offset, detail[:EXCERPT])))

    def tell_once(self, code: DeviationCode, offset: int, detail: str) -> None:
        """The same, told once per answer."""
        topic = f"{code}:{detail}"
        if topic not in self._told:
            self._told.add(topic)
            self.tell(code, offset, detail)
