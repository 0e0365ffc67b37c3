"""The structured calls of one answer, and how they end (rules C5, C6, C8, E3).

Theory. Where a piece of a call belongs is a matter of the wire: ``assembly`` knows fragments of chunks, ``blockcalls``
knows content blocks. What the end of an answer means for a call that is still open is the same on both, and stands
here, with the finish reasons that decide it.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamparse.decoding.account import Account
from streamparse.decoding.lenient import sound
from streamparse.decoding.wirecall import Settings, WireCall
from streamparse.events import DeviationCode, ErrorCode

LENGTH = "length"
"""What a finish reason is judged as if the answer was cut at its length."""

_CUT = frozenset({LENGTH, "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})
"""C6, A: the words by which it was, in lower case."""

_REGULAR = frozenset(
    """
    tool_calls tool_call function_call stop tool_use end_turn stop_sequence pause_turn eos eos_token complete completed
    """.split()
)
"""C5: the finish reasons by which no arguments at all are ``{}``, in lower case."""

PROMISES = frozenset({"tool_calls", "tool_call", "function_call", "tool_use"})
"""C8: the finish reasons that say that there are calls."""

BROKEN = frozenset({"error"})
"""E4: finish reasons by which nothing more can be sealed."""


_NO_REASON = frozenset({"", "null", "none"})
"""What servers write for a finish reason that is none, in lower case."""


def said(finish_reason: str | None) -> str | None:
    """A finish reason as the provider wrote it; None where that is none (C5)."""
    if finish_reason is None or finish_reason.strip().lower() in _NO_REASON:
        return None
    return sound(finish_reason)


def judged(finish_reason: str | None) -> str | None:
    """The finish reason that counts: in lower case, and each word for an answer that was cut is ``length``."""
    word = None if finish_reason is None else finish_reason.lower()
    return LENGTH if word in _CUT else word


def broken(finish_reason: str | None) -> str:
    """C6, E4: why a stream was interrupted, in words."""
    return "the stream broke" if judged(finish_reason) in BROKEN else "the stream ended without a finish"


class Roster:
    """The calls that are open. Finish reasons are ``judged`` before they come here."""

    __slots__ = ("_account", "_open", "_opened", "_settings")

    def __init__(self, account: Account, settings: Settings) -> None:
        self._account = account
        self._settings = settings
        self._open: dict[int, WireCall] = {}  # by the order of opening
        self._opened = 0

    def running(self, index: int) -> WireCall | None:
        """The call with this index, if it has started and not ended."""
        return next((call for call in self._open.values() if call.index == index and call.started), None)

    def _new(self, *, legacy: bool = False, server: str = "") -> WireCall | None:
        """A new call that is open; None beyond the limit."""
        if self._opened >= self._settings.limits.calls:
            reason = f"more than {self._settings.limits.calls} calls"
            self._account.fail_once(reason, self._account.error(ErrorCode.LIMIT_EXCEEDED, reason))
            return None
        self._opened += 1
        call = WireCall(self._account, self._settings, self._opened, legacy=legacy, server=server)
        self._open[call.order] = call
        return call

    def reason_given(self, finish_reason: str) -> None:
        """A finish reason came, perhaps once more: what is complete is sealed. What is not may still get its last
        piece."""
        raise NotImplementedError

    def seal_complete(self, finish_reason: str | None = None) -> None:
        """C5: what is complete is sealed."""
        self._seal(list(self._open.values()), cut=finish_reason == LENGTH)

    def _seal(self, calls: Iterable[WireCall], *, cut: bool = False) -> None:
        for call in calls:
            call.drop_repetition()
            if call.complete and call.name.strip():
                self._seal_one(call, cut=cut)

    def _seal_one(self, call: WireCall, *, empty: bool = False, cut: bool = False) -> None:
        """It stays open if it may be a call that still runs in the text (C9)."""
        call.seal(empty=empty, cut=cut)
        if call.over:
            self._close(call)

    def finish(self, finish_reason: str | None, *, interrupted: bool) -> None:
        """The end of the stream: each call that is still open ends (C5, C6, E3)."""
        if not interrupted:
            self.seal_complete(finish_reason)
        for call in list(self._open.values()):
            if not call.name.strip():
                self._end_nameless(call)
            elif interrupted:
                call.fail(ErrorCode.STREAM_INTERRUPTED, broken(finish_reason))
            elif call.without and finish_reason in _REGULAR:
                call.seal(empty=True)
            elif call.blank and finish_reason is None:
                call.fail(ErrorCode.STREAM_INTERRUPTED, broken(finish_reason))
            else:
                call.fail_unfinished()
            self._close(call)

    def fail_all(self, code: ErrorCode, reason: str) -> None:
        """C8, E4: each call that is open fails, if it is more than a placeholder."""
        for call in list(self._open.values()):
            if call.name.strip() or call.begun:
                call.fail(code, reason)
            else:
                call.over = True
            self._close(call)

    def _end_nameless(self, call: WireCall) -> None:
        if call.begun:
            call.fail(ErrorCode.MISSING_NAME, "a call without a name")
        else:
            call.over = True
            self._account.tell(DeviationCode.EMPTY_CALL, self._account.place, call.id)

    def _close(self, call: WireCall) -> None:
        self._open.pop(call.order, None)
