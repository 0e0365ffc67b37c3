"""Native text of a model -> events: the decoder of every dialect that is a grammar (rules N, E, T).

The scanner says what is text and what is a tag; this module says where each of them goes. It knows the vocabulary of
rules and opaque text, and no dialect: no tag stands here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from streamparse.decoding.answer import Answer, IdFactory
from streamparse.decoding.early import early_tools
from streamparse.decoding.endings import CUT_SHORT, end
from streamparse.decoding.guards import PayloadGuard
from streamparse.decoding.parameters import Parameters
from streamparse.decoding.pieces import BLOCK
from streamparse.decoding.readers import JsonReader, TextReader
from streamparse.decoding.scanner import CUT, LOST, NOTE, STRAY, TEXT, Lexeme, Scanner
from streamparse.decoding.table import Role, Tag
from streamparse.decoding.values import compile_tools
from streamparse.errors import ClosedError, UsageError
from streamparse.events import (
    ArgumentDelta,
    DeviationCode,
    Ended,
    Event,
    PartialToolCall,
    Path,
    Reasoning,
    Text,
    ToolCall,
)
from streamparse.limits import DEFAULT_LIMITS, EXCERPT, Limits

_FastPath = tuple[str, Callable[[str], object], int, Path]
_NO_FAST_PATH: _FastPath = ("", len, 0, ())
"""While a string value streams: a chunk without the stop character goes to the buffer and is one delta at the path.
It is left at every ``BLOCK`` characters, so that the buffer is compacted and the bound is checked."""

_PROSE: dict[str, type[Text] | type[Reasoning]] = {"TEXT": Text, "REASONING": Reasoning}
_OUTSIDE_CALLS = frozenset({"calls", "reasoning", "turn"})


def default_id(index: int) -> str:
    """N17: the text has no ids, so they are counted."""
    return f"call_{index}"


class NativeDecoder:
    """Decodes one answer. ``feed`` takes text in pieces of any size, ``close`` ends it; both return events, in order.

    ``dialect`` is a name from ``dialects()`` or the path of a ``.lark`` file. Keyword options:

    * ``tools``: tool definitions (OpenAI-style, Anthropic-style, or objects with ``name`` and ``parameters``), or what
      ``compile_tools`` made of them, once for many answers. They type the values (T) and tell quoted parameters from
      lost delimiters (N5, N7). Without tools every value is read by T5.
    * ``start``: ``"text"``, or ``"reasoning"`` when the prompt already opened the reasoning (N1).
    * ``close``: ``"chain"`` (N5) or ``"first"``: the first closing tag ends a value, as the vendor's reference has it.
    * ``whitespace``: ``"verbatim"`` or ``"strip"``, which strips strings, too (N8).
    * ``bare_invoke``: ``"text"`` or ``"call"``: what a call outside its envelope is (N11).
    * ``repair``: the tier of tolerant JSON reading (J5), 0 to 3, as ``repair.py`` describes them.
    * ``early``: say ``ArgumentRejected`` as soon as a call cannot fit its tool's schema any more (``docs/early.md``).
    * ``id_factory``: from a call's index to its id (N17).
    * ``limits``: the bounds (``Limits``).

    Raises ``UnknownDialectError``, ``GrammarError``, ``ToolDefinitionError`` or ``UsageError`` when made; ``feed`` and
    ``close`` raise only ``UsageError`` (``ClosedError`` after ``close``), never for what the text is.
    """

    __slots__ = (
        "_answer",
        "_closed",
        "_fast",
        "_json",
        "_json_stop",
        "_over_at",
        "_parameters",
        "_prose",
        "_repair",
        "_report",
        "_rest",
        "_room",
        "_room_at_start",
        "_scanner",
        "_stops",
        "_strip",
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
        early: bool = False,
        id_factory: IdFactory = default_id,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        from streamparse.decoding.grammar import load  # lark is loaded with the first decoder, not with the library

        _check_types(dialect, id_factory, limits)
        _check("start", start, ("text", "reasoning"))
        _check("close", close, ("chain", "first"))
        _check("whitespace", whitespace, ("verbatim", "strip"))
        _check("bare_invoke", bare_invoke, ("text", "call"))
        _check("repair", repair, (0, 1, 2, 3))
        table = load(dialect)
        symbol = "start" if start == "text" else "resumed"
        if symbol not in table.starts:
            raise UsageError(f"dialect {dialect!r} has no reasoning to start in; use start='text'")
        chains = close == "chain"
        compiled = None if tools is None else compile_tools(tools)
        self._scanner = Scanner(table, symbol, chains=chains, bare=bare_invoke == "call")
        self._answer = Answer(self._scanner, compiled, id_factory, limits, early_tools(compiled, early))
        self._report = self._answer.report
        self._strip = whitespace == "strip"
        self._repair = repair
        self._parameters = Parameters(self._answer, strip=self._strip, repair=repair, quotes=chains)
        self._closed = False
        self._over_at = -1  # where a role marker ended the answer (N2)
        self._rest = ""  # what followed there, bounded
        self._fast = _NO_FAST_PATH
        self._prose: type[Text] | type[Reasoning] | None = None  # the same for text and reasoning
        self._stops: Callable[[str], object] = bool
        self._json: Callable[[str], list[Event]] | None = None  # the same for a value that is read as JSON
        self._json_stop = ""
        self._room = 0
        self._room_at_start = 0

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

    def close(self, finish_reason: str | None = None) -> list[Event]:
        """The end of the answer: the last events, ``Ended`` at their end (rules E).

        ``finish_reason`` is the provider's word, if there is one; ``"length"`` says that the answer was cut,
        ``"error"`` that the transport broke (E4).
        """
        if self._closed:
            raise ClosedError("close after close: a decoder reads one answer, make a new one for the next")
        self._leave_fast_path()
        self._closed = True
        answer, report = self._answer, self._report
        answer.closing, answer.finish_reason = True, finish_reason
        if finish_reason in CUT_SHORT:
            self._scanner.cut_short()
        events = report.begin()
        cut = ""
        while (lexeme := self._scanner.pull(True)) is not None:
            if lexeme[0] is CUT and self._over_at < 0:
                cut = lexeme[2]
            else:
                self._take(lexeme)
        if self._over_at >= 0:
            report.tell(DeviationCode.SPECIAL_TOKEN, self._over_at, self._rest)
        else:
            end(answer, cut, "".join(self._parameters.header or ()))
        events.append(Ended(finish_reason, None, report.clean))
        return events

    @property
    def calls(self) -> list[ToolCall]:
        """The sealed calls so far, in the order of their opening."""
        return self._report.calls

    @property
    def done(self) -> bool:
        """Raw text never says that nothing more comes; the property is there because all decoders have it."""
        return False

    @property
    def in_reasoning(self) -> bool:
        """Whether what is open stands in reasoning."""
        return self._answer.in_reasoning

    @property
    def reasoning_closer(self) -> str:
        """The dialect's own closing tag of reasoning."""
        closing = (tag for _, tag in self._scanner.table.all_tags() if tag.role is Role.CLOSE and not tag.nonstandard)
        return next(tag.text for tag in closing if tag.rule == "reasoning")

    def partial(self, index: int) -> PartialToolCall:
        """A snapshot of the call with this index: running, sealed or failed. Costs as much as the call is long.

        Raises ``UsageError`` when no call with this index has begun.
        """
        running = self._answer.running(index)
        found = running.partial() if running is not None else self._report.ended(index)
        if found is not None:
            return found
        raise UsageError(f"no call {index}: {self._answer.count} calls have begun, counted from 0")

    # Feeding

    def _feed(self, chunk: str) -> list[Event]:
        if self._closed:
            raise ClosedError("feed after close: a decoder reads one answer, make a new one for the next")
        if not isinstance(chunk, str):
            kind = type(chunk).__name__  # type: ignore[unreachable]  # callers need not be typed
            raise UsageError(f"feed takes text (str), not {kind}; decode bytes with an incremental decoder")
        if not chunk:
            return []
        if self._fast is not _NO_FAST_PATH or self._json is not None:
            self._leave_fast_path()
        self._prose = None
        events: list[Event] = []
        self._report.events = events  # as ``begin``, without a call for every chunk
        scanner = self._scanner
        if scanner.plain and scanner.plan.is_plain(chunk):
            scanner.offset = scanner.position
            self._opaque(chunk)
            scanner.pass_over(len(chunk))
        else:
            lexeme = scanner.take(chunk)
            while lexeme is not None:
                self._take(lexeme)
                lexeme = scanner.pull()
        if scanner.plain and self._over_at < 0:
            self._enter_fast_path()
        return events

    def _enter_fast_path(self) -> None:
        call, guard, plan = self._answer.call, self._parameters.guard, self._scanner.plan
        if call is None:
            if self._answer.said_something and not self._answer.fence.pending:
                self._prose = _PROSE.get(plan.opaque)
                self._stops = plan.stops
            return
        if (
            guard is None
            or guard.reading
            or call.over
            or not call.started
            or not plan.stop
            or self._parameters.repeated
        ):
            return
        reader = call.reader
        if call.watch is not None and call.watch.checked and isinstance(reader, TextReader):
            return  # each character may be the one
        if isinstance(reader, TextReader) and not self._strip and call.key is not None:
            self._fast = (plan.stop, reader.append, call.index, (call.key,))
        elif isinstance(reader, JsonReader) and reader.json is not None and not self._strip:
            self._json = reader.more_json
            self._json_stop = plan.stop
        else:
            return
        self._room = self._room_at_start = min(call.room, BLOCK)

    def _leave_fast_path(self) -> None:
        self._prose = None
        call = self._answer.call
        if call is not None and (self._fast is not _NO_FAST_PATH or self._json is not None):
            self._fast = _NO_FAST_PATH
            self._json = None
            taken = self._room_at_start - self._room
            self._scanner.pass_over(taken)
            call.room -= taken

    # Lexemes

    def _take(self, lexeme: Lexeme) -> None:
        kind, tag, text = lexeme
        if self._over_at >= 0:
            counted = "" if tag is None or kind is NOTE else tag.text
            self._rest = (self._rest + text + counted)[:EXCERPT]
        elif kind is TEXT:
            self._opaque(text)
        elif tag is not None:
            if kind is NOTE:
                self._note(tag)
            else:
                self._tag(tag, text)
        elif kind is STRAY:
            self._answer.stray(text)
        elif kind is LOST:
            self._lose(text)
        elif self._answer.call is not None:
            self._answer.call.keep_raw(text)

    def _opaque(self, text: str) -> None:
        kind = self._scanner.plan.opaque
        if self._over_at >= 0:
            self._rest = (self._rest + text)[:EXCERPT]
        elif self._parameters.header is not None:
            self._parameters.header_text(text)
        elif kind == "VALUE":
            self._parameters.value_text(text)
        elif kind in _PROSE:
            self._report.events.append(_PROSE[kind](text))
            if kind == "TEXT":
                self._answer.fence.see(text)
            if not self._answer.said_something and not text.isspace():
                self._answer.said_something = True
        elif kind == "PAYLOAD":
            self._answer.payload_text(text)

    def _note(self, tag: Tag) -> None:
        """A tag that did not count, or something else worth a word."""
        answer, place = self._answer, self._scanner.reached - len(tag.text)
        if self._parameters.guard is not None:
            self._parameters.guard.note(tag)
        elif tag.terminal == "FENCE":
            answer.fence.note(tag.text)
        elif tag.terminal.startswith("FOREIGN_"):
            self._report.tell_once(DeviationCode.FOREIGN_FORMAT, place, tag.terminal[8:].lower())
        elif tag.bare:
            self._report.tell_once(DeviationCode.BARE_INVOKE, place, tag.text)

    def _tag(self, tag: Tag, space: str) -> None:
        if self._answer.straying:
            self._answer.end_stray()
        call = self._answer.call
        if tag.rule == "argument" and tag.role is Role.CLOSE:
            self._parameters.close_value()
        if call is not None and tag.role is not Role.INNER and tag.rule not in _OUTSIDE_CALLS:
            call.keep_raw(space + tag.text)
        if tag.role is Role.OPEN:
            self._open(tag)
        elif tag.role is Role.CLOSE:
            self._close_rule(tag)
        elif tag.role is Role.INNER:
            self._parameters.end_header(tag)

    def _open(self, tag: Tag) -> None:
        if tag.rule == "argument":
            self._parameters.begin_header()
        elif tag.rule == "call":
            call = self._answer.open_call()
            call.keep_raw(tag.text)
            if self._scanner.plan.opaque == "PAYLOAD":
                self._scanner.guard = PayloadGuard(self._answer.open_payload(call, self._repair).reader)
            else:
                self._parameters.begin_header()
        elif tag.rule == "calls":
            self._answer.open_envelope()
        elif tag.rule == "turn" and self._answer.said_something:
            self._over_at = self._scanner.offset
            self._rest = tag.text

    def _close_rule(self, tag: Tag) -> None:
        if tag.rule == "call":
            self._parameters.abandon()
            self._answer.close_call()
        elif tag.rule == "calls":
            self._answer.close_envelope()
        elif tag.rule == "reasoning":
            if tag.nonstandard:
                self._report.tell(DeviationCode.NONSTANDARD_TAG, self._scanner.offset, tag.text)
            self._answer.reject_provisional()

    def _lose(self, rule: str) -> None:
        self._answer.end_stray()
        if rule == "call":
            self._parameters.abandon()
        self._answer.lose(rule)


def decode(text: str, dialect: str = "minimax_m2", *, finish_reason: str | None = None, **options: Any) -> list[Event]:
    """The events of a whole answer: ``feed`` and ``close`` of a ``NativeDecoder`` with these options."""
    decoder = NativeDecoder(dialect, **options)
    return decoder.feed(text) + decoder.close(finish_reason)


def _check(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        words = ", ".join(repr(choice) for choice in allowed)
        raise UsageError(f"{name}={value!r} is not an option; use one of {words}")


def _check_types(dialect: object, id_factory: object, limits: object) -> None:
    if not isinstance(dialect, str):
        raise UsageError(f"dialect is a name or the path of a .lark file (str), not {type(dialect).__name__}")
    if not callable(id_factory):
        raise UsageError(f"id_factory is called with an index and returns an id; {id_factory!r} cannot be called")
    if not isinstance(limits, Limits):
        raise UsageError(f"limits is a streamparse.Limits, not {type(limits).__name__}")
