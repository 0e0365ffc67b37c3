"""What a decoder has to say: the events of the feed that is running, and the errors and deviations in the stream's
own words."""

from __future__ import annotations

from streamparse.decoding.calls import OpenCall
from streamparse.decoding.scanner import Scanner
from streamparse.events import (
    Deviated,
    Deviation,
    DeviationCode,
    ErrorCode,
    ErrorDetail,
    Event,
    Failed,
    PartialToolCall,
    Path,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
)
from streamparse.limits import EXCERPT


class Report:
    """The events of one answer, feed by feed; how its calls ended; whether it was clean."""

    __slots__ = ("_scanner", "_told", "clean", "events", "failed", "finished")

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self.events: list[Event] = []  # of the feed that is running; each feed brings its own list
        self.clean = True
        self.finished: dict[int, ToolCall] = {}
        self.failed: dict[int, PartialToolCall] = {}
        self._told: set[str] = set()

    @property
    def here(self) -> int:
        """The place of what the scanner gave last."""
        return self._scanner.offset

    def error(
        self, code: ErrorCode, reason: str, offset: int, excerpt: str = "", path: Path = (), *, late: bool = False
    ) -> ErrorDetail:
        """An error with what is open here and what would have been accepted (E1); ``late`` for one that is told when
        its place has passed, so that what may come here is beside the point."""
        state = self._scanner.state
        where = state.open or ((state.opaque.lower(),) if state.opaque else ())
        return ErrorDetail(code, reason, offset, where, () if late else state.expected, excerpt, path)

    def fail(self, error: ErrorDetail) -> None:
        """An error that belongs to no call."""
        self.clean = False
        self.events.append(Failed(error))

    def fail_once(self, topic: str, error: ErrorDetail) -> None:
        """The same, told once per answer."""
        if topic not in self._told:
            self._told.add(topic)
            self.fail(error)

    def tell(self, code: DeviationCode, offset: int, detail: str = "") -> None:
        """A deviation that belongs to no call."""
        self.events.append(Deviated(None, Deviation(code, offset, detail[:EXCERPT])))

    def tell_once(self, code: DeviationCode, offset: int, detail: str) -> None:
        """The same, told once per answer."""
        topic = f"{code}:{detail}"
        if topic not in self._told:
            self._told.add(topic)
            self.tell(code, offset, detail)

    def deviate(
        self,
        call: OpenCall,
        code: DeviationCode,
        *,
        offset: int = -1,
        path: Path = (),
        detail: str = "",
        expected: str = "",
        found: str = "",
    ) -> None:
        """A deviation of a call, here unless ``offset`` says otherwise."""
        place = self._scanner.offset if offset < 0 else offset
        self.note(call, Deviation(code, place, detail[:EXCERPT], path, expected, found))

    def note(self, call: OpenCall, deviation: Deviation) -> None:
        """A deviation of a call."""
        call.note(deviation)
        self.events.append(Deviated(call.index, deviation))

    def conclude(self, event: ToolCallFinished | ToolCallFailed) -> None:
        """The end of a call."""
        if isinstance(event, ToolCallFinished):
            self.finished[event.index] = event.call
        else:
            self.failed[event.index] = event.call
            self.clean = False
        self.events.append(event)
