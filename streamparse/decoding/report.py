"""What a native decoder has to say: the outcome of its answer, with errors and deviations in the stream's own words."""

from __future__ import annotations

from streamparse.decoding.calls import OpenCall
from streamparse.decoding.outcome import Outcome
from streamparse.decoding.scanner import Scanner
from streamparse.events import Deviated, Deviation, DeviationCode, ErrorCode, ErrorDetail, Path
from streamparse.limits import EXCERPT


class Report(Outcome):
    """The outcome of one answer, and its words."""

    __slots__ = ("_scanner",)

    def __init__(self, scanner: Scanner) -> None:
        super().__init__()
        self._scanner = scanner

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
