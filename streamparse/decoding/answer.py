"""One answer of a model: its calls and envelopes as they open and close (rules N10 to N17)."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from streamparse.decoding.calls import OpenCall
from streamparse.decoding.early import Early
from streamparse.decoding.early_rules import OBJECT
from streamparse.decoding.envelope import Envelope
from streamparse.decoding.fence import Fence
from streamparse.decoding.payload import Payload, PayloadEvent
from streamparse.decoding.report import Report
from streamparse.decoding.scanner import Scanner
from streamparse.decoding.values import CompiledTools
from streamparse.events import Deviated, DeviationCode, ErrorCode, ToolCallStarted
from streamparse.limits import EXCERPT, Limits

IdFactory = Callable[[int], str]


class Answer:
    """What is open: the call, its envelope, the calls in reasoning that wait for their verdict (N13)."""

    __slots__ = (
        "_call_rules",
        "_early",
        "_make_id",
        "_tools",
        "assumed",
        "call",
        "closing",
        "count",
        "envelope",
        "fence",
        "finish_reason",
        "limits",
        "payload",
        "provisional",
        "report",
        "said_something",
        "scanner",
        "straying",
    )

    def __init__(
        self,
        scanner: Scanner,
        tools: CompiledTools | None,
        make_id: IdFactory,
        limits: Limits,
        early: Early | None = None,
    ) -> None:
        self.scanner = scanner
        self.report = Report(scanner)
        self.limits = limits
        self._tools = tools
        self._early = early
        self._make_id = make_id
        self.count = 0  # calls that have begun
        self.call: OpenCall | None = None
        self.payload: Payload | None = None  # of a call that is one JSON object
        self.envelope: Envelope | None = None
        self.provisional: list[OpenCall] = []
        self.said_something = False  # anything but white space was text, reasoning or a call
        self.fence = Fence()
        self.straying = False  # there is stray text that nothing was told of
        self.closing = False  # the stream is over
        self.finish_reason: str | None = None
        self._call_rules: tuple[str, ...] = ()  # open inside such a call
        self.assumed = False  # the end of the stream cut the chain of the last value short (E2)

    # Envelopes

    def open_envelope(self) -> None:
        """The opening tag of an envelope."""
        self.said_something = True
        self.envelope = Envelope()

    def stray(self, text: str) -> None:
        """N10: text where only tags may stand. What it means is told when it is over (``end_stray``)."""
        self.straying = True
        if self.call is not None:
            self.call.keep_raw(text)
            self.call.stray.add(text, self.report.here)
            return
        if self.envelope is None:
            self.envelope = Envelope()
        self.envelope.stray.add(text, self.report.here)

    def end_stray(self) -> None:
        """A tag came, or the end: tell of stray text before it."""
        self.straying = False
        if self.call is not None:
            stray = self.call.stray.take()
            if stray is not None and not self.call.over:
                self._stray_in_call(self.call, stray)
        elif self.envelope is not None:
            stray = self.envelope.stray.take()
            if stray is not None:
                self.report.tell(DeviationCode.TEXT_IN_ENVELOPE, self.envelope.stray.offset, stray)

    def _stray_in_call(self, call: OpenCall, stray: str) -> None:
        if call.arguments:  # only where the first closing tag ends a value: by N5 it would belong to the value
            self.report.deviate(call, DeviationCode.TEXT_IN_ENVELOPE, offset=call.stray.offset, detail=stray)
            return
        reason = "text before the first parameter"
        call.blame(self.report.error(ErrorCode.MALFORMED_CALL, reason, call.stray.offset, stray[:EXCERPT]))

    def close_envelope(self) -> None:
        """The closing tag of an envelope."""
        envelope, self.envelope = self.envelope, None
        if envelope is not None and not envelope.calls:
            reason, here = "an envelope without a call", self.report.here
            self.report.fail(
                self.report.error(ErrorCode.MALFORMED_ENVELOPE, reason, here, envelope.stray.text[:EXCERPT], late=True)
            )

    def lose(self, rule: str) -> None:
        """A rule was left without its closing tag; what is around it goes on."""
        here = self.report.here
        if rule == "call" and self.call is not None:
            self.call.blame(self.report.error(ErrorCode.MALFORMED_CALL, "the call was left open", here))
            self.close_call()
        elif rule == "calls" and self.envelope is not None and self.envelope.calls:
            self.report.tell(DeviationCode.UNCLOSED_ENVELOPE, here)
            self.envelope = None
        elif rule == "calls":
            self.close_envelope()

    # Calls

    def running(self, index: int) -> OpenCall | None:
        """The call with this index, if it has begun and not ended."""
        calls = self.provisional if self.call is None else [*self.provisional, self.call]
        return next((call for call in calls if call.index == index and not call.over), None)

    def open_call(self) -> OpenCall:
        """The opening tag of a call."""
        self.said_something = True
        if self.envelope is not None:
            self.envelope.calls += 1
        call = self.call = OpenCall(self.count, self.report.here, self.limits.arguments)
        if self.count < self.limits.calls:
            self.count += 1
            return call
        call.over = True
        reason = f"more than {self.limits.calls} calls"
        self.report.fail_once(reason, self.report.error(ErrorCode.LIMIT_EXCEEDED, reason, self.report.here))
        return call

    def start_call(self, call: OpenCall, name: str) -> None:
        """The name is certain."""
        call.start(name, self._make_id(call.index))
        self.said_something = True
        self.report.events.append(ToolCallStarted(call.index, call.id, name))
        if self.fence.inside():
            self.report.deviate(call, DeviationCode.INSIDE_CODE_FENCE, offset=call.offset, detail=self.fence.inside())
        if self._tools is not None:
            call.tool = self._tools.get(name)
            if call.tool is None:
                self.report.deviate(call, DeviationCode.UNKNOWN_TOOL, offset=call.offset, detail=name)
        if self._early is not None and not self.in_reasoning:  # N13: nobody knows yet whether that is a call
            self._begin_watch(self._early, call)

    def _begin_watch(self, early: Early, call: OpenCall) -> None:
        """Early verdicts: from here on the arguments are followed. A payload has its own watch."""
        if not early.knows(call.name):
            self._reject_name(early, call, call.name)
        elif self.payload is None:
            call.watch = early.watch(call.name, call.index)
            if call.watch is not None:
                call.watch.open(OBJECT, self.report.events)

    @property
    def early(self) -> bool:
        """Whether early verdicts are wanted."""
        return self._early is not None

    def judge_name(self, call: OpenCall, beginning: str) -> bool:
        """Early verdicts: the name begins so, and may go on. False if there is nothing more to say of it."""
        early = self._early
        if early is None or call.over:
            return False
        if early.begins(beginning):
            return True
        self._reject_name(early, call, beginning)
        return False

    def _reject_name(self, early: Early, call: OpenCall, name: str) -> None:
        if not call.rejected:
            call.rejected = True
            self.report.events.append(early.unknown(call.index, name))

    def close_call(self) -> None:
        """The closing tag of a call."""
        call, self.call = self.call, None
        payload, self.payload = self.payload, None
        if call is None or call.over:
            return
        if payload is not None:
            self._take_payload(call, payload)
        self._check_swallowed(call)
        if call.error is None and self.assumed and self.closing:
            self._close_unconfirmed(call)
        if call.error is None and call.watch is not None:
            call.watch.shut(call.arguments, self.report.events)
        if call.error is None and self.in_reasoning:
            self.provisional.append(call)
        else:
            self.report.conclude(call.end())

    def _close_unconfirmed(self, call: OpenCall) -> None:
        """E2, E4: the stream ended while the call was still waiting for its chain (N5)."""
        here = self.scanner.position
        self.envelope = None
        if self.finish_reason == "error":
            call.blame(self.report.error(ErrorCode.STREAM_INTERRUPTED, "the stream broke", here))
            return
        self.report.deviate(call, DeviationCode.UNCLOSED_ENVELOPE, offset=here)
        if self.finish_reason == "length":
            call.trusted = self.report.clean = False

    def _check_swallowed(self, call: OpenCall) -> None:
        """N7: a string holds the opening tag of a parameter that the call lacks."""
        swallowed = call.swallowed_parameter()
        if swallowed is not None:
            key, inner = swallowed
            reason = f"{key!r} holds the opening tag of {inner!r}, which this call lacks: a closing tag was lost"
            call.blame(
                self.report.error(ErrorCode.AMBIGUOUS_DELIMITER, reason, self.report.here, path=(key,), late=True)
            )

    def exceed(self, call: OpenCall, reason: str, offset: int, excerpt: str = "") -> None:
        """A bound was passed: the call ends here, and nothing more of it is kept."""
        self.report.conclude(call.fail(self.report.error(ErrorCode.LIMIT_EXCEEDED, reason, offset, excerpt)))

    # Calls in reasoning (N13)

    @property
    def in_reasoning(self) -> bool:
        """Whether what is open stands in reasoning."""
        state = self.scanner.state
        return "reasoning" in state.open or state.opaque == "REASONING"

    def reject_provisional(self) -> None:
        """The reasoning went on and ended, so what was called in it was only considered."""
        for call in self.provisional:
            reason = "the call stands in reasoning that was closed after it"
            error = self.report.error(ErrorCode.CALL_IN_REASONING, reason, self.report.here, late=True)
            self.report.conclude(call.fail(error))
        self.provisional.clear()

    def seal_provisional(self) -> None:
        """The stream ended in the reasoning, so its calls were meant; unless its transport broke (E4)."""
        for call in self.provisional:
            if self.finish_reason == "error":
                error = self.report.error(ErrorCode.STREAM_INTERRUPTED, "the stream broke", self.scanner.position)
                self.report.conclude(call.fail(error))
                continue
            self.report.deviate(call, DeviationCode.UNCLOSED_REASONING, offset=self.scanner.position)
            if self.finish_reason == "length":  # as in E2: the reasoning may have been about to reject it
                call.trusted = self.report.clean = False
            self.report.conclude(call.seal())
        self.provisional.clear()

    # Calls that are one JSON object

    def open_payload(self, call: OpenCall, repair: int) -> Payload:
        """The opening tag of such a call."""
        early = None if self.in_reasoning else self._early
        self.payload = Payload(call.index, self.scanner.reached, repair, self.limits, early)
        call.snapshot = self.payload.snapshot
        call.keep_raw(self.payload.raw)
        self._call_rules = self.scanner.state.open
        return self.payload

    def payload_text(self, text: str) -> None:
        """More of it."""
        call, payload = self.call, self.payload
        if call is None or payload is None or call.over:
            return
        kept = text[: call.room]
        call.room -= len(kept)
        self._payload_events(call, payload, payload.feed(kept))
        if len(kept) < len(text):
            reason = f"arguments of more than {self.limits.arguments} characters"
            self.exceed(call, reason, self.report.here + len(kept))
            self.scanner.guard = None  # nobody reads the JSON any more: the next closing tag ends the call

    def _payload_events(self, call: OpenCall, payload: Payload, found: list[PayloadEvent]) -> None:
        if payload.name and not call.started and not call.over:
            if len(payload.name) > self.limits.name:
                reason = f"a tool name of more than {self.limits.name} characters"
                self.exceed(call, reason, call.offset, payload.name[:EXCERPT])
                self.scanner.guard = None
                return
            self.start_call(call, payload.name)
        for event in found:
            if isinstance(event, Deviated):
                self.report.note(call, event.deviation)
            else:
                self.report.events.append(event)

    def _take_payload(self, call: OpenCall, payload: Payload) -> None:
        """The closing tag of it."""
        self._payload_events(call, payload, payload.close())
        error = payload.error()
        if error is None and not payload.name:
            error = self.report.error(ErrorCode.MISSING_NAME, "a call without a name", call.offset, late=True)
        if error is not None:
            call.blame(structs.replace(error, open=error.open or self._call_rules))
        else:
            call.arguments, call.verbatim = payload.arguments()
            call.snapshot = None
            self._tell_members(call, payload)

    def _tell_members(self, call: OpenCall, payload: Payload) -> None:
        """Members that mean nothing here. Without arguments they may have been meant as such."""
        extra = payload.extra()
        for member in extra:
            self.report.deviate(call, DeviationCode.EXTRA_ATTRIBUTE, offset=call.offset, detail=member)
        if extra and not call.arguments:
            call.trusted = False
