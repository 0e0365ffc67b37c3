"""What the decoders of two wires share: their options, their ends, and the caller's side (rules C5, C6, C8, E).

Theory. An answer of an endpoint comes on several roads into one ``Account``: text and reasoning through ``Embedded``,
structured calls through a ``Roster``. What a wire adds is where in a payload they are. What a stream ends with decides
about the calls that are open:

* a finish reason: what is complete is sealed; the rest may still get its last fragment;
* the wire's last word (``[DONE]``, ``message_stop``), or ``close`` after a finish reason: what is not complete fails;
* ``close`` without either: the stream was interrupted, and everything that is open fails, complete or not (C6).

A finish reason is told as the provider said it, and judged by what it means (``roster.judged``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from streamparse.decoding.account import Account
from streamparse.decoding.early import early_tools
from streamparse.decoding.embedded import Embedded, Start, dialect_of
from streamparse.decoding.lenient import UnreadableError, sound_values
from streamparse.decoding.native import NativeDecoder, default_id
from streamparse.decoding.roster import BROKEN, LENGTH, PROMISES, Roster, broken, judged, said
from streamparse.decoding.values import compile_tools
from streamparse.decoding.wirecall import Settings
from streamparse.errors import ClosedError, UsageError
from streamparse.events import Ended, ErrorCode, Event, PartialToolCall, ToolCall
from streamparse.limits import Limits

DONE = "[DONE]"
"""The last payload of an event stream."""

_TEXTS = (str, bytes, bytearray)
_SHORT = 64
"""Only payloads below this length can be ``[DONE]``, or blank."""

_R = TypeVar("_R", bound=Roster)


class EndpointDecoder(Generic[_R]):
    """The base of ``ChatDecoder`` and ``MessagesDecoder``, which say what a payload is."""

    __slots__ = ("_account", "_auto", "_closed", "_done", "_embedded", "_finish", "_roster", "_usage")

    def __init__(
        self,
        roster: Callable[[Account, Settings], _R],
        tools: Iterable[Any] | None,
        dialect: str | None,
        start: Start,
        repair: int,
        early: bool,
        id_factory: Callable[[int], str],
        limits: Limits,
    ) -> None:
        compiled = None if tools is None else compile_tools(tools)
        judging = early_tools(compiled, early)

        def make(name: str, first: Start, make_id: Callable[[int], str]) -> NativeDecoder:
            return NativeDecoder(
                name, tools=compiled, start=first, repair=repair, early=early, id_factory=make_id, limits=limits
            )

        self._auto = dialect == "auto"
        named = None if self._auto else dialect
        if named is not None:
            make(named, start, default_id)  # an unknown name is the caller's fault, and they are told here
        _check(start, repair)
        self._account = Account(id_factory)
        self._roster = roster(self._account, Settings(compiled, repair, limits, judging))
        self._embedded = Embedded(self._account, make, named, start)
        self._finish: str | None = None
        self._usage: dict[str, Any] | None = None
        self._done = False
        self._closed = False

    def _take(self, given: Any) -> None:
        """A payload. Raises ``UnreadableError`` for text that is no JSON, before anything is done."""
        raise NotImplementedError

    # The caller's side

    def feed(self, chunk: Any) -> list[Event]:
        """The events that this chunk makes certain, in order."""
        if self._closed:
            raise ClosedError("feed after close: a decoder reads one answer, make a new one for the next")
        events = self._account.begin()
        if isinstance(chunk, _TEXTS) and len(chunk) < _SHORT:
            word = chunk.strip()
            if not word or word in (DONE, DONE.encode()):
                if word:
                    self._take_done()
                return events
        try:
            self._take(chunk)
        except UnreadableError as error:
            text = chunk if isinstance(chunk, str) else bytes(chunk).decode("utf-8", "replace")
            self._fail(ErrorCode.INVALID_JSON, f"a chunk is no JSON: {error}", text)
        return events

    def close(self, finish_reason: str | None = None) -> list[Event]:
        """The end of the answer: the last events, ``Ended`` at their end (rules C5, C6, E).

        ``finish_reason`` is the caller's word, where the stream gave none; ``"error"`` says that the transport broke
        (E4), which takes back what the stream said unless its last word had come.
        """
        if self._closed:
            raise ClosedError("close after close: a decoder reads one answer, make a new one for the next")
        self._closed = True
        account = self._account
        events = account.begin()
        if self._finish is None or (finish_reason in BROKEN and not self._done):
            self._finish = said(finish_reason)
        interrupted = judged(self._finish) in BROKEN or (self._finish is None and not self._done)
        if not self._done:
            self._end(interrupted)
        if account.clean:
            self._judge_end(interrupted)
        events.append(Ended(self._finish, sound_values(self._usage), account.clean))
        return events

    @property
    def calls(self) -> list[ToolCall]:
        """The sealed calls so far, in the order of their start."""
        return self._account.calls

    @property
    def done(self) -> bool:
        """Whether the stream has said that nothing more comes: all that may follow is usage."""
        return self._done

    def partial(self, index: int) -> PartialToolCall:
        """A snapshot of the call with this index: running, sealed or failed. Costs as much as the call is long.

        Raises ``UsageError`` when no call with this index has begun.
        """
        running = self._roster.running(index)
        found = running.partial() if running is not None else self._embedded.partial(index)
        found = found or self._account.ended(index)
        if found is not None:
            return found
        raise UsageError(f"no call {index}: {self._account.count} calls have begun, counted from 0")

    # What a payload says

    def _take_model(self, model: str) -> None:
        """C9: the first model that is named settles an automatic dialect."""
        if self._auto:
            self._auto = False
            self._embedded.dialect = dialect_of(model)

    def _take_finish(self, reason: str | None) -> None:
        """C5, C6: the first finish reason counts, unless a later one says that the answer was cut."""
        reason = said(reason)
        if self._finish is None or (judged(reason) == LENGTH != judged(self._finish)):
            self._finish = reason
        told = judged(self._finish)
        if told is not None and told not in BROKEN:
            self._roster.reason_given(told)

    def _take_done(self) -> None:
        """The wire's last word: calls that are not complete fail now."""
        if not self._done:
            self._done = True
            self._end(judged(self._finish) in BROKEN)

    # Ends

    def _end(self, interrupted: bool) -> None:
        """What is open ends: first the text, so that a call in it is known when a structured one repeats it."""
        self._embedded.close("error" if interrupted else judged(self._finish))
        self._roster.finish(judged(self._finish), interrupted=interrupted)

    def _fail(self, code: ErrorCode, reason: str, excerpt: str = "") -> None:
        """An error inside the stream (C8), or a chunk that cannot be read: nobody knows what of the running calls was
        in it. S: behind the last word the answer is whole, and nothing can harm it."""
        if self._done:
            return
        self._roster.fail_all(code, reason)
        self._account.fail(self._account.error(code, reason, excerpt))

    def _judge_end(self, interrupted: bool) -> None:
        """An answer in which nothing failed yet, and which is not whole all the same."""
        account = self._account
        if interrupted:
            account.fail(account.error(ErrorCode.STREAM_INTERRUPTED, broken(self._finish)))
        elif judged(self._finish) in PROMISES and not account.count:
            reason = f"finish reason {self._finish!r}, and no call came"
            account.fail(account.error(ErrorCode.MISSING_CALL, reason))


def _check(start: str, repair: int) -> None:
    if start not in ("text", "reasoning"):
        raise UsageError(f"start={start!r} is not an option; use 'text' or 'reasoning'")
    if repair not in (0, 1, 2, 3):
        raise UsageError(f"repair={repair!r} is not an option; use 0, 1, 2 or 3")
