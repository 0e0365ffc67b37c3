"""Native text of a model -> events: the decoder of every dialect that is a grammar (rules N, E, T).

The scanner says what is text and what is a tag; this module says what that means for calls. It knows the vocabulary of
rules (``reasoning``, ``calls``, ``call``, ``argument``, ``turn``) and of opaque text, and no dialect: no tag stands here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

from streamparse.decoding.calls import OpenCall, declared_type
from streamparse.decoding.endings import ending
from streamparse.decoding.guards import PayloadGuard, ValueGuard
from streamparse.decoding.headers import ATTRIBUTE_KINDS, HeaderGuard, read_header
from streamparse.decoding.payload import Payload, PayloadEvent
from streamparse.decoding.pieces import BLOCK
from streamparse.decoding.readers import JsonReader, Place, TextReader, reader_for
from streamparse.decoding.scanner import CUT, LOST, NOTE, STRAY, TAG, TEXT, Lexeme, Scanner
from streamparse.decoding.table import Role, Tag
from streamparse.decoding.values import compile_tools
from streamparse.errors import ClosedError, UsageError
from streamparse.events import (
    ArgumentDelta,
    Deviated,
    Deviation,
    DeviationCode,
    Ended,
    ErrorCode,
    ErrorDetail,
    Event,
    Failed,
    PartialToolCall,
    Path,
    Reasoning,
    Text,
    ToolCall,
    ToolCallFailed,
    ToolCallFinished,
    ToolCallStarted,
    json_text,
)
from streamparse.limits import DEFAULT_LIMITS, EXCERPT, LOOKAHEAD, Limits

IdFactory = Callable[[int], str]

_FastPath = tuple[str, Callable[[str], object], int, Path]
_NO_FAST_PATH: _FastPath = ("", len, 0, ())
"""While a string value streams: a chunk without the stop character goes to the buffer and is one delta at the path.
It is left at every ``BLOCK`` characters, so that the buffer is compacted and the bound is checked."""


_CDATA_OPEN = re.compile(r"\s{0,20}<!\[CDATA\[").match

_OUTSIDE_CALLS = frozenset({"calls", "reasoning", "turn"})

_PROSE: dict[str, type[Text] | type[Reasoning]] = {"TEXT": Text, "REASONING": Reasoning}


def default_id(index: int) -> str:
    """N17: the text has no ids, so they are counted."""
    return f"call_{index}"


class NativeDecoder:
    """Decodes one answer. ``feed`` takes text in pieces of any size, ``close`` ends it; both return events, in order.

    ``dialect`` is a name from ``dialects()`` or the path of a ``.lark`` file. Keyword options:

    * ``tools``: tool definitions (OpenAI-style, Anthropic-style, or objects with ``name`` and ``parameters``), or what
      ``compile_tools`` made of them, once for many answers. They type the values (T) and tell quoted parameters from lost
      delimiters (N5, N7). Without tools every value is read by T5.
    * ``start``: ``"text"``, or ``"reasoning"`` when the prompt already opened the reasoning (N1).
    * ``close``: ``"chain"`` (N5) or ``"first"``: the first closing tag ends a value, as the vendor's reference has it (N7).
    * ``whitespace``: ``"verbatim"`` or ``"strip"``, which strips strings, too (N8).
    * ``bare_invoke``: ``"text"`` or ``"call"``: what a call outside its envelope is (N11).
    * ``repair``: the tier of tolerant JSON reading, 0 to 3 (J5).
    * ``id_factory``: from a call's index to its id (N17).
    * ``limits``: the bounds (``Limits``).

    Raises ``UnknownDialectError``, ``GrammarError``, ``ToolDefinitionError`` or ``UsageError`` when made; ``feed`` and
    ``close`` raise only ``UsageError`` (``ClosedError`` after ``close``), never for what the text is.
    """

    __slots__ = (
        "_assumed",
        "_call",
        "_clean",
        "_closed",
        "_envelope",
        "_failed",
        "_fast",
        "_fence",
        "_finish_reason",
        "_finished",
        "_guard",
        "_header",
        "_header_guard",
        "_header_offset",
        "_header_room",
        "_json",
        "_json_stop",
        "_limits",
        "_make_id",
        "_next_index",
        "_over_at",
        "_payload",
        "_prose",
        "_provisional",
        "_quotes",
        "_repair",
        "_repeated",
        "_rest",
        "_room",
        "_room_at_start",
        "_said_something",
        "_scanner",
        "_stops",
        "_strip",
        "_told",
        "_tools",
    )

    def __init__(
        self,
        dialect: str = "minimax_m2",
        *,
        tools: Iterable[Any] | None = None,
        start: Literal["text", "reasoning"] = "text",
        close: Literal["chain", "first"] = "chain",
        whitespace: Literal["verbatim", "strip"] = "verbatim",
        bare_invoke: Literal["text", "call"] = "text",
        repair: int = 1,
        id_factory: IdFactory = default_id,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        _check("start", start, ("text", "reasoning"))
        _check("close", close, ("chain", "first"))
        _check("whitespace", whitespace, ("verbatim", "strip"))
        _check("bare_invoke", bare_invoke, ("text", "call"))
        _check("repair", repair, (0, 1, 2, 3))
        from streamparse.decoding.grammar import load  # lark is loaded with the first decoder, not with the library

        table = load(dialect)
        symbol = "start" if start == "text" else "resumed"
        if symbol not in table.starts:
            raise UsageError(f"dialect {dialect!r} has no reasoning to start in; use start='text'")
        self._tools = None if tools is None else compile_tools(tools)
        self._scanner = Scanner(table, symbol, chains=close == "chain", bare=bare_invoke == "call")
        self._strip = whitespace == "strip"
        self._quotes = close == "chain"
        self._repair = repair
        self._make_id = id_factory
        self._limits = limits
        self._closed = False
        self._clean = True
        self._said_something = False
        self._next_index = 0
        self._call: OpenCall | None = None
        self._guard: ValueGuard | None = None
        self._payload: Payload | None = None
        self._header: list[str] | None = None  # the text of a name or key that is being read
        self._header_guard: HeaderGuard | None = None
        self._header_offset = 0
        self._header_room = 0
        self._repeated = False  # the open value belongs to a parameter that the call already has (N14)
        self._assumed = False  # the end of the stream cut the chain of the last value short (E2)
        self._finish_reason: str | None = None
        self._finished: dict[int, ToolCall] = {}
        self._failed: dict[int, PartialToolCall] = {}
        self._envelope: _Envelope | None = None
        self._provisional: list[OpenCall] = []  # N13
        self._fence = ""
        self._told: set[str] = set()  # deviations that are told once per answer
        self._over_at = -1  # where a role marker ended the answer
        self._rest = ""
        self._fast = _NO_FAST_PATH
        self._prose: type[Text] | type[Reasoning] | None = None  # the same for text and reasoning
        self._stops: Callable[[str], object] = bool
        self._json: Callable[[str], list[Event]] | None = None  # the same for a value that is read as JSON
        self._json_stop = ""
        self._room = 0
        self._room_at_start = 0

    # Public

    def feed(self, chunk: str) -> list[Event]:
        """The events that this piece of text makes certain, in order."""
        stop, append, index, path = self._fast
        try:
            if stop not in chunk:  # never so off the fast path: "" is in every string
                room = self._room - len(chunk)
                if room >= 0 and chunk:
                    self._room = room
                    append(chunk)
                    return [ArgumentDelta(index, path, chunk)]
            elif self._prose is not None:
                if chunk and self._stops(chunk) is None:
                    self._scanner.pass_over(len(chunk))
                    return [self._prose(chunk)]
            elif self._json is not None and self._json_stop not in chunk:
                room = self._room - len(chunk)
                if room >= 0:
                    self._room = room
                    return self._json(chunk)
        except TypeError:
            pass  # not a string: _feed says so
        return self._feed(chunk)

    def _feed(self, chunk: str) -> list[Event]:
        if self._closed:
            raise ClosedError("feed after close: a decoder reads one answer, make a new one for the next")
        if not isinstance(chunk, str):
            raise UsageError(f"feed takes text (str), not {type(chunk).__name__}; decode bytes with an incremental decoder")
        if not chunk:
            return []
        if self._fast is not _NO_FAST_PATH or self._json is not None:
            self._leave_fast_path()
        self._prose = None
        events: list[Event] = []
        scanner = self._scanner
        if scanner.plain and scanner.plan.stops(chunk) is None:
            self._opaque(chunk, events, scanner.position)
            scanner.pass_over(len(chunk))
        else:
            scanner.push(chunk)
            while (lexeme := scanner.pull()) is not None:
                self._take(lexeme, events)
        if scanner.plain:
            self._enter_fast_path()
        return events

    def close(self, finish_reason: str | None = None) -> list[Event]:
        """The end of the answer: the last events, ``Ended`` at their end (rules E).

        ``finish_reason`` is the provider's word, if there is one; ``"length"`` says that the answer was cut, ``"error"`` that
        the transport broke (E4).
        """
        if self._closed:
            raise ClosedError("close after close: a decoder reads one answer, make a new one for the next")
        if self._fast is not _NO_FAST_PATH or self._json is not None:
            self._leave_fast_path()
        self._closed = True
        self._finish_reason = finish_reason
        events: list[Event] = []
        cut = ""
        for lexeme in self._scanner.close():
            if lexeme[0] is CUT and self._over_at < 0:
                cut = lexeme[2]
            else:
                self._take(lexeme, events)
        if self._over_at >= 0:
            self._tell(DeviationCode.SPECIAL_TOKEN, self._over_at, events, detail=self._rest)
        else:
            self._end(cut, events)
        events.append(Ended(finish_reason, None, self._clean))
        return events

    @property
    def calls(self) -> list[ToolCall]:
        """The sealed calls so far, in the order of their opening."""
        return [self._finished[index] for index in sorted(self._finished)]

    def partial(self, index: int) -> PartialToolCall:
        """A snapshot of the call with this index: running, sealed or failed. Costs as much as the call is long.

        Raises ``UsageError`` when no call with this index has begun.
        """
        call = self._call
        for running in (*self._provisional, *((call,) if call is not None else ())):
            if running.index == index and not running.over:
                snapshot: PartialToolCall = running.partial()
                return snapshot
        if index in self._finished:
            done = self._finished[index]
            return PartialToolCall(done.id, done.name, dict(done.arguments), done.arguments_json, done.deviations)
        failed = self._failed.get(index)
        if failed is not None:
            return failed
        raise UsageError(f"no call {index}: {self._next_index} calls have begun, counted from 0")

    # The fast path

    def _enter_fast_path(self) -> None:
        call, guard = self._call, self._guard
        if call is None and self._said_something and self._over_at < 0:
            self._prose = _PROSE.get(self._scanner.plan.opaque)
            self._stops = self._scanner.plan.stops
            return
        if call is None or guard is None or guard.reading or call.over or not call.started or self._over_at >= 0:
            return
        reader = call.reader
        stop = self._scanner.plan.stop
        if not stop or self._repeated:
            return
        if isinstance(reader, TextReader) and not self._strip:
            assert call.key is not None
            self._fast = (stop, reader.append, call.index, (call.key,))
            self._room = self._room_at_start = min(call.room, BLOCK)
        elif isinstance(reader, JsonReader) and reader.json is not None:
            self._json = reader.more_json
            self._json_stop = stop
            self._room = self._room_at_start = min(call.room, BLOCK)

    def _leave_fast_path(self) -> None:
        assert self._call is not None
        self._fast = _NO_FAST_PATH
        self._json = None
        self._scanner.pass_over(self._room_at_start - self._room)
        self._call.room -= self._room_at_start - self._room

    # Lexemes

    def _take(self, lexeme: Lexeme, events: list[Event]) -> None:
        kind, tag, text = lexeme
        if self._over_at >= 0:
            self._rest = (self._rest + text + ("" if tag is None or kind is NOTE else tag.text))[:EXCERPT]
        elif kind is TEXT:
            self._opaque(text, events, self._scanner.offset)
        elif tag is not None:
            if kind is NOTE:
                self._note(tag, events)
            else:
                self._tag(tag, text, events)
        elif kind is STRAY:
            self._stray(text)
        elif kind is LOST:
            self._lose(text, events)
        elif self._call is not None:
            self._call.keep_raw(text)

    def _opaque(self, text: str, events: list[Event], offset: int) -> None:
        kind = self._scanner.plan.opaque
        if self._header is not None:
            self._read_header_text(text, events)
        elif kind == "TEXT":
            self._say(Text(text), text, events)
        elif kind == "REASONING":
            self._say(Reasoning(text), text, events)
        elif kind == "VALUE":
            self._value_text(text, events)
        elif kind == "PAYLOAD":
            self._payload_text(text, events)

    def _say(self, event: Text | Reasoning, text: str, events: list[Event]) -> None:
        if self._over_at < 0:
            events.append(event)
            if not self._said_something and not text.isspace():
                self._said_something = True
        else:
            self._rest = (self._rest + text)[:EXCERPT]

    def _note(self, tag: Tag, events: list[Event]) -> None:
        """A tag that did not count, or something else worth a word."""
        place = self._scanner.reached - len(tag.text)
        if self._guard is not None:
            self._guard.note(tag)
        elif tag.terminal == "FENCE":
            self._fence = "" if self._fence == tag.text else self._fence or tag.text
        elif tag.terminal.startswith("FOREIGN_"):
            self._tell_once(DeviationCode.FOREIGN_FORMAT, place, tag.terminal[8:].lower(), events)
        elif tag.bare:
            self._tell_once(DeviationCode.BARE_INVOKE, place, tag.text, events)

    def _tag(self, tag: Tag, space: str, events: list[Event]) -> None:
        if self._call is not None and tag.role is not Role.INNER and tag.rule not in _OUTSIDE_CALLS:
            self._call.keep_raw(space + tag.text)
        if tag.role is Role.OPEN:
            self._open(tag, events)
        elif tag.role is Role.CLOSE:
            self._close_rule(tag, events)
        elif tag.role is Role.INNER:
            self._end_header(tag, events)

    def _open(self, tag: Tag, events: list[Event]) -> None:
        offset = self._scanner.offset
        if tag.rule == "turn":
            if self._said_something:
                self._over_at = offset
                self._rest = tag.text
        elif tag.rule == "calls":
            self._envelope = _Envelope(offset)
        elif tag.rule == "call":
            self._open_call(tag, events)
        elif tag.rule == "argument":
            self._begin_header()

    def _close_rule(self, tag: Tag, events: list[Event]) -> None:
        if tag.rule == "argument":
            self._close_value(events)
        elif tag.rule == "call":
            self._close_call(events)
        elif tag.rule == "calls":
            self._close_envelope(events)
        elif tag.rule == "reasoning":
            if tag.nonstandard:
                self._tell(DeviationCode.NONSTANDARD_TAG, self._scanner.offset, events, detail=tag.text)
            self._reject_provisional(events)

    # Envelopes and what may stand in them

    def _stray(self, text: str) -> None:
        """N10: text where only tags may stand."""
        offset = self._scanner.offset
        call, envelope = self._call, self._envelope
        if call is not None:
            call.keep_raw(text)
            if not call.over and not call.arguments:
                call.blame(self._error(ErrorCode.MALFORMED_CALL, "text before the first parameter", offset, text))
            return
        if envelope is None:
            envelope = self._envelope = _Envelope(offset)
        envelope.stray_text(text, offset)

    def _close_envelope(self, events: list[Event]) -> None:
        envelope, self._envelope = self._envelope, None
        if envelope is None:
            return
        envelope.report_stray(self, events)
        if not envelope.calls:
            reason = "an envelope without a call"
            self._fail(ErrorCode.MALFORMED_ENVELOPE, reason, self._scanner.offset, envelope.stray, events)

    def _lose(self, rule: str, events: list[Event]) -> None:
        """A rule was left without its closing tag; its parent goes on (isolation)."""
        if rule == "call" and self._call is not None:
            self._call.blame(self._error(ErrorCode.MALFORMED_CALL, "the call was left open", self._scanner.offset))
            self._close_call(events)
        elif rule == "calls" and self._envelope is not None:
            if self._envelope.calls:
                self._envelope.report_stray(self, events)
                self._tell(DeviationCode.UNCLOSED_ENVELOPE, self._scanner.offset, events)
                self._envelope = None
            else:
                self._close_envelope(events)

    # Calls

    def _open_call(self, tag: Tag, events: list[Event]) -> None:
        envelope = self._envelope
        if envelope is not None:
            envelope.report_stray(self, events)
            envelope.calls += 1
        call = OpenCall(self._next_index, self._limits.arguments)
        self._call = call
        if self._next_index >= self._limits.calls:
            call.over = True
            if "calls" not in self._told:
                self._told.add("calls")
                reason = f"more than {self._limits.calls} calls"
                self._fail(ErrorCode.LIMIT_EXCEEDED, reason, self._scanner.offset, "", events)
        else:
            self._next_index += 1
        if self._scanner.plan.opaque == "PAYLOAD":
            self._open_payload(call)
        else:
            self._begin_header()

    def _start_call(self, call: OpenCall, name: str, events: list[Event]) -> None:
        """The name is certain."""
        call.name = name
        call.id = self._make_id(call.index)
        call.started = True
        self._said_something = True
        events.append(ToolCallStarted(call.index, call.id, name))
        if self._fence:
            self._deviate(DeviationCode.INSIDE_CODE_FENCE, events, detail=self._fence)
        if self._tools is not None:
            call.tool = self._tools.get(name)
            if call.tool is None:
                self._deviate(DeviationCode.UNKNOWN_TOOL, events, detail=name)

    def _close_call(self, events: list[Event]) -> None:
        call, self._call = self._call, None
        payload, self._payload = self._payload, None
        self._header = None
        self._guard = None
        assert call is not None
        if call.over:
            return
        if payload is not None:
            self._take_payload(call, payload, events)
        swallowed = call.swallowed_parameter()
        if swallowed is not None:
            key, inner = swallowed
            reason = f"the value of {key!r} holds the opening tag of {inner!r}, which this call lacks: a closing tag was lost"
            call.blame(self._error(ErrorCode.AMBIGUOUS_DELIMITER, reason, self._scanner.offset, path=(key,)))
        if call.error is None and self._assumed and self._closed:
            self._deviate_call(call, DeviationCode.UNCLOSED_ENVELOPE, events)
            call.trusted = call.trusted and self._finish_reason != "length"
            self._envelope = None
        if call.error is None and self._in_reasoning():
            self._provisional.append(call)
            return
        self._conclude(call, call.end(), events)

    def _conclude(self, call: OpenCall, event: ToolCallFinished | ToolCallFailed, events: list[Event]) -> None:
        if isinstance(event, ToolCallFinished):
            self._finished[call.index] = event.call
        else:
            self._failed[call.index] = event.call
            self._clean = False
        events.append(event)

    def _in_reasoning(self) -> bool:
        state = self._scanner.state
        return "reasoning" in state.open or state.opaque == "REASONING"

    def _reject_provisional(self, events: list[Event]) -> None:
        """N13: the reasoning went on and ended, so what was called in it was only considered."""
        for call in self._provisional:
            reason = "the call stands in reasoning that was closed after it"
            error = self._error(ErrorCode.CALL_IN_REASONING, reason, self._scanner.offset)
            self._conclude(call, call.fail(error), events)
        self._provisional.clear()

    def _exceed(self, call: OpenCall, reason: str, offset: int, events: list[Event], excerpt: str = "") -> None:
        """A bound was passed: the call ends here, and nothing more of it is kept."""
        error = self._error(ErrorCode.LIMIT_EXCEEDED, reason, offset, excerpt)
        self._conclude(call, call.fail(error), events)
        call.reader = None

    # Names and keys

    def _begin_header(self) -> None:
        scanner = self._scanner
        self._header = []
        self._header_offset = scanner.offset
        self._header_room = self._limits.name
        if scanner.plan.opaque in ATTRIBUTE_KINDS:
            scanner.guard = self._header_guard = HeaderGuard(self._limits.name)
        else:
            self._header_guard = None

    def _read_header_text(self, text: str, events: list[Event]) -> None:
        assert self._header is not None
        call = self._call
        if call is None:
            return
        kept = text[: self._header_room]
        self._header_room -= len(text)
        if kept:
            self._header.append(kept)
            if self._header_guard is not None:
                self._header_guard.see(kept)
        if self._header_room < 0 and not call.over:
            what = "parameter name" if call.started else "tool name"
            reason = f"a {what} of more than {self._limits.name} characters"
            self._exceed(call, reason, self._header_offset, events, "".join(self._header)[:EXCERPT])

    def _end_header(self, tag: Tag, events: list[Event]) -> None:
        call, pieces, self._header = self._call, self._header, None
        if call is None or pieces is None:
            return
        text = "".join(pieces)
        call.keep_raw(text + tag.text)
        header = read_header(text, self._header_guard is not None)
        is_key = self._scanner.plan.opaque == "VALUE"
        if call.over:
            if is_key:
                self._guard = ValueGuard(lambda _: False, self._header_guard is not None, self._limits.name)
                self._scanner.guard = self._guard if self._quotes else None
            return
        if not header.name:
            what = "a parameter without a name" if is_key else "a call without a name"
            call.blame(self._error(ErrorCode.MISSING_NAME, what, self._header_offset, text))
        if is_key:
            self._open_value(call, header.name, events)
        elif header.name:
            self._start_call(call, header.name, events)
        for attribute in header.extra:
            self._deviate(DeviationCode.EXTRA_ATTRIBUTE, events, detail=attribute[:EXCERPT], offset=self._header_offset)

    # Values

    def _open_value(self, call: OpenCall, key: str, events: list[Event]) -> None:
        scanner = self._scanner
        offset = scanner.offset
        type_, undeclared = declared_type(call, key)
        if undeclared and key:
            self._deviate(DeviationCode.UNDECLARED_ARGUMENT, events, path=(key,), detail=key)
        self._repeated = key in call.arguments
        if len(call.arguments) >= self._limits.parameters:
            return self._exceed(call, f"more than {self._limits.parameters} parameters", offset, events)
        call.key = key
        place = Place(call.index, key, offset, self._repair, self._limits, self._strip)
        call.reader = reader_for(type_, place)
        self._guard = ValueGuard(call.missing, self._header_guard is not None, self._limits.name)
        if self._quotes:
            scanner.guard = self._guard
        return None

    def _value_text(self, text: str, events: list[Event]) -> None:
        call = self._call
        if self._guard is not None:
            self._guard.see(text)
        if call is None or call.over or call.reader is None:
            return
        over = len(text) - call.room
        if over > 0:
            text = text[: call.room]
        call.room -= len(text)
        self._read_value(call, text, events)
        if over > 0:
            reason = f"arguments of more than {self._limits.arguments} characters"
            self._exceed(call, reason, self._scanner.offset + len(text), events)

    def _read_value(self, call: OpenCall, text: str, events: list[Event]) -> None:
        reader = call.reader
        assert reader is not None and self._guard is not None
        had_json = reader.json is not None
        found = reader.feed(text)
        if reader.json is not None and not had_json:
            self._guard.watch_json(reader.json)
        if call.started and not self._repeated:
            events += found

    def _close_value(self, events: list[Event]) -> None:
        call, guard, self._guard = self._call, self._guard, None
        if call is None or call.over or call.reader is None or call.key is None or guard is None:
            return
        scanner = self._scanner
        outcome = call.reader.close()
        key, value = call.key, outcome.reading.value
        call.keep_raw(value if isinstance(call.reader, TextReader) else call.reader.raw())
        show = call.started and not self._repeated
        for event in outcome.events if show else ():
            events.append(event)
        if outcome.error is not None:
            call.blame(outcome.error)
        if isinstance(value, str):
            self._check_string(call, key, value, guard, events)
        for code, expected, found in outcome.reading.deviations:
            self._deviate(code, events, path=(key,), expected=expected, found=found)
        if self._repeated:
            self._repeat(call, key, value, events)
        else:
            events += call.close_value(value, (key,))
        call.reader = None
        call.key = None
        if scanner.assumed:
            self._assumed = True

    def _check_string(self, call: OpenCall, key: str, value: str, guard: ValueGuard, events: list[Event]) -> None:
        """N7, N9: what a finished string looks like."""
        call.swallowed += [(key, inner) for inner in guard.swallowed]
        if guard.tags:
            self._deviate(DeviationCode.DELIMITER_IN_VALUE, events, path=(key,))
            call.trusted = call.trusted and not self._scanner.last_resort
        if _CDATA_OPEN(value) and value[-EXCERPT:].rstrip().endswith("]]>"):
            self._deviate(DeviationCode.CDATA, events, path=(key,))

    def _repeat(self, call: OpenCall, key: str, value: Any, events: list[Event]) -> None:
        """N14: the same parameter again."""
        if json_text(value) == json_text(call.arguments[key]):
            self._deviate(DeviationCode.REPEATED_ARGUMENT, events, path=(key,))
        else:
            reason = f"parameter {key!r} was given twice with different values"
            call.blame(self._error(ErrorCode.DUPLICATE_ARGUMENT, reason, self._scanner.offset, json_text(value), (key,)))

    # Calls that are one JSON object

    def _open_payload(self, call: OpenCall) -> None:
        scanner = self._scanner
        payload = Payload(call.index, scanner.offset, self._repair, self._limits)
        self._payload = payload
        call.snapshot = payload.snapshot
        scanner.guard = PayloadGuard(payload.reader)

    def _payload_text(self, text: str, events: list[Event]) -> None:
        call, payload = self._call, self._payload
        if call is None or payload is None or call.over:
            return
        over = len(text) - call.room
        call.room -= len(text)
        self._payload_events(call, payload, payload.feed(text[:over] if over > 0 else text), events)
        if over > 0:
            reason = f"arguments of more than {self._limits.arguments} characters"
            self._exceed(call, reason, self._scanner.offset + len(text) - over, events)

    def _payload_events(
        self, call: OpenCall, payload: Payload, found: list[PayloadEvent], events: list[Event]
    ) -> None:
        if payload.name and not call.started:
            self._start_call(call, payload.name, events)
        for event in found:
            if isinstance(event, Deviated):
                events += call.deviate(event.deviation)
            else:
                events.append(event)

    def _take_payload(self, call: OpenCall, payload: Payload, events: list[Event]) -> None:
        """The closing tag of a call that is one JSON object."""
        self._payload_events(call, payload, payload.close(), events)
        error = payload.error()
        if error is None and not payload.name:
            error = self._error(ErrorCode.MISSING_NAME, "a call without a name", self._scanner.offset)
        if error is not None:
            call.blame(error)
        else:
            call.arguments, call.verbatim = payload.arguments()
            call.snapshot = None

    # The end (E)

    def _end(self, cut: str, events: list[Event]) -> None:
        code = ending(self._scanner.state)
        if code is None:
            self._end_in_text(cut, events)
        elif self._call is not None and not self._call.over:
            self._end_in_call(self._call, code, cut, events)
        elif code is ErrorCode.UNCLOSED_REASONING:
            self._end_in_reasoning(cut, events)
        elif self._call is None:
            self._end_in_envelope(cut, events)
        self._seal_provisional(events)

    def _end_error(self, code: ErrorCode, excerpt: str) -> ErrorDetail:
        """E1, or E4 where the transport broke."""
        if self._finish_reason == "error":
            return self._error(ErrorCode.STREAM_INTERRUPTED, "the stream broke", self._scanner.position, excerpt)
        return self._error(code, "end of stream", self._scanner.position, excerpt)

    def _end_in_text(self, cut: str, events: list[Event]) -> None:
        if self._finish_reason == "error" or (cut and self._finish_reason == "length"):
            self._report(self._end_error(ErrorCode.UNCLOSED_TAG, cut), events)
        elif cut:
            events.append(Text(cut))

    def _end_in_reasoning(self, cut: str, events: list[Event]) -> None:
        whole = self._finish_reason not in ("length", "error")
        if cut and whole:
            events.append(Reasoning(cut))
        if not self._provisional or self._finish_reason == "error":
            self._report(self._end_error(ErrorCode.UNCLOSED_REASONING, "" if whole else cut), events)

    def _end_in_envelope(self, cut: str, events: list[Event]) -> None:
        envelope = self._envelope
        if envelope is not None:
            envelope.report_stray(self, events)
            if not envelope.calls or self._finish_reason == "error":
                self._report(self._end_error(ErrorCode.UNCLOSED_ENVELOPE, envelope.stray + cut), events)
                return
            self._tell(DeviationCode.UNCLOSED_ENVELOPE, self._scanner.position, events, detail=cut)
        self._clean = self._clean and self._finish_reason != "length"

    def _end_in_call(self, call: OpenCall, code: ErrorCode, cut: str, events: list[Event]) -> None:
        if self._header is not None:
            call.keep_raw("".join(self._header))
        raw = call.partial().raw
        error = self._end_error(code, (raw + cut)[-EXCERPT:])
        if call.started or call.error is not None:
            self._conclude(call, call.fail(call.error or error), events)
        else:
            self._report(error, events)
        self._call = None

    def _seal_provisional(self, events: list[Event]) -> None:
        """N13: the stream ended in the reasoning, so its calls were meant."""
        for call in self._provisional:
            self._deviate_call(call, DeviationCode.UNCLOSED_REASONING, events)
            self._conclude(call, call.seal(), events)
        self._provisional.clear()

    # Errors and deviations

    def _error(
        self, code: ErrorCode, reason: str, offset: int, excerpt: str = "", path: tuple[str | int, ...] = ()
    ) -> ErrorDetail:
        state = self._scanner.state
        return ErrorDetail(code, reason, offset, state.open or _place(state.opaque), state.expected, excerpt, path)

    def _fail(self, code: ErrorCode, reason: str, offset: int, excerpt: str, events: list[Event]) -> None:
        self._report(self._error(code, reason, offset, excerpt), events)

    def _report(self, error: ErrorDetail, events: list[Event]) -> None:
        self._clean = False
        events.append(Failed(error))

    def _deviate(
        self,
        code: DeviationCode,
        events: list[Event],
        *,
        path: tuple[str | int, ...] = (),
        detail: str = "",
        expected: str = "",
        found: str = "",
        offset: int = -1,
    ) -> None:
        """A deviation of the open call."""
        assert self._call is not None
        place = self._scanner.offset if offset < 0 else offset
        events += self._call.deviate(Deviation(code, place, detail[:EXCERPT], path, expected, found))

    def _deviate_call(self, call: OpenCall, code: DeviationCode, events: list[Event]) -> None:
        events += call.deviate(Deviation(code, self._scanner.position))

    def _tell(self, code: DeviationCode, offset: int, events: list[Event], detail: str = "") -> None:
        """A deviation that belongs to no call."""
        events.append(Deviated(None, Deviation(code, offset, detail[:EXCERPT])))

    def _tell_once(self, code: DeviationCode, offset: int, detail: str, events: list[Event]) -> None:
        if f"{code}:{detail}" not in self._told:
            self._told.add(f"{code}:{detail}")
            self._tell(code, offset, events, detail=detail)


class _Envelope:
    """An envelope that is open: how many calls it holds, and the text in it that is no tag (N10)."""

    __slots__ = ("calls", "offset", "stray", "_stray_offset", "_told")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.calls = 0
        self.stray = ""
        self._stray_offset = offset
        self._told = True

    def stray_text(self, text: str, offset: int) -> None:
        """More text that is no tag; a bounded piece of it is kept."""
        if self._told:
            self.stray, self._stray_offset, self._told = "", offset, False
        self.stray += text[: LOOKAHEAD - len(self.stray)]

    def report_stray(self, decoder: NativeDecoder, events: list[Event]) -> None:
        """Tell of it once it is over."""
        if not self._told:
            self._told = True
            decoder._tell(DeviationCode.TEXT_IN_ENVELOPE, self._stray_offset, events, detail=self.stray.strip())


def decode(
    text: str, dialect: str = "minimax_m2", *, finish_reason: str | None = None, **options: Any
) -> list[Event]:
    """The events of a whole answer: ``feed`` and ``close`` of a ``NativeDecoder`` with these options."""
    decoder = NativeDecoder(dialect, **options)
    return decoder.feed(text) + decoder.close(finish_reason)


def _place(opaque: str) -> tuple[str, ...]:
    return (opaque.lower(),) if opaque else ()


def _check(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        words = ", ".join(repr(choice) for choice in allowed)
        raise UsageError(f"{name}={value!r} is not an option; use one of {words}")
