"""The headers and parameters of the open call: names, keys, values (rules N4 to N9, N14, T)."""

from __future__ import annotations

import re
from json import dumps
from typing import Any

from msgspec import structs

from streamparse.decoding.answer import Answer
from streamparse.decoding.arguments import JsonDecoder
from streamparse.decoding.calls import OpenCall, declared_type
from streamparse.decoding.early_rules import STRING
from streamparse.decoding.early_text import LOOKED_AT, late_fault
from streamparse.decoding.early_watch import Watch
from streamparse.decoding.guards import ValueGuard
from streamparse.decoding.headers import ATTRIBUTE_KINDS, HeaderGuard, name_so_far, read_header
from streamparse.decoding.readers import (
    JsonReader,
    LateReader,
    OpenReader,
    Place,
    Reader,
    ReaderEvents,
    TextReader,
    reader_for,
)
from streamparse.decoding.table import Tag
from streamparse.decoding.values import ANY, ValueType
from streamparse.events import ArgumentValue, DeviationCode, ErrorCode
from streamparse.limits import EXCERPT

_CDATA_OPENS = re.compile(r"\s{0,20}<!\[CDATA\[").match


class Parameters:
    """Reads what stands inside a call. ``strip`` and ``repair`` are options of the decoder, ``quotes`` says that a
    closing tag may be data (N5)."""

    __slots__ = (
        "_answer",
        "_attributes",
        "_early",
        "_header_guard",
        "_header_offset",
        "_header_room",
        "_late",
        "_naming",
        "_open_rules",
        "_quotes",
        "_repair",
        "_strip",
        "_type",
        "guard",
        "header",
        "repeated",
    )

    def __init__(self, answer: Answer, *, strip: bool, repair: int, quotes: bool) -> None:
        self._answer = answer
        self._strip = strip
        self._repair = repair
        self._quotes = quotes
        self.header: list[str] | None = None  # the text of a name or key that is being read
        self._attributes = HeaderGuard(answer.limits.name)
        self._header_guard: HeaderGuard | None = None  # the same, while a header is a list of attributes
        self._header_offset = 0
        self._header_room = 0
        self.guard: ValueGuard | None = None  # of the value that is open
        self._type: ValueType = ANY
        self._open_rules: tuple[str, ...] = ()
        self._early = answer.early
        self._naming = False  # the name of a tool is being read, and judged
        self._late = ""  # the first characters of a value that is decided when it is closed
        self.repeated = False  # the open value belongs to a parameter that the call already has (N14)

    def abandon(self) -> None:
        """The call is over, whatever was being read of it."""
        self.header = None
        self.guard = None

    # Names and keys

    def begin_header(self) -> None:
        """A tag that a name or key follows."""
        scanner, limit = self._answer.scanner, self._answer.limits.name
        self.header = []
        self._header_offset = scanner.offset
        self._header_room = limit
        self._header_guard = None
        call = self._answer.call
        self._naming = self._early and call is not None and not call.started and not self._answer.in_reasoning
        if scanner.plan.opaque in ATTRIBUTE_KINDS:
            self._attributes.begin()
            scanner.guard = self._header_guard = self._attributes

    def header_text(self, text: str) -> None:
        """More of the name or key."""
        call, header, room = self._answer.call, self.header, self._header_room
        if call is None or header is None:
            return
        kept = text[:room]
        self._header_room = room - len(kept)
        if kept:
            header.append(kept)
            if self._header_guard is not None:
                self._header_guard.see(kept)
            if self._naming:
                self._naming = self._answer.judge_name(
                    call, name_so_far("".join(header), self._header_guard is not None)
                )
        if len(kept) < len(text) and not call.over:
            what = "parameter name" if call.started else "tool name"
            reason = f"a {what} of more than {self._answer.limits.name} characters"
            self._answer.exceed(call, reason, self._header_offset, "".join(header)[:EXCERPT])

    def end_header(self, tag: Tag) -> None:
        """The end of a name or key."""
        call, pieces, self.header = self._answer.call, self.header, None
        if call is None or pieces is None:
            return
        is_key = self._answer.scanner.plan.opaque == "VALUE"
        text = "".join(pieces)
        call.keep_raw(text + tag.text)
        if call.over:
            if is_key:
                self._watch(call, tag)
            return
        report = self._answer.report
        name, extra = read_header(text, self._header_guard is not None)
        if not name:
            what = "a parameter without a name" if is_key else "a call without a name"
            call.blame(report.error(ErrorCode.MISSING_NAME, what, self._header_offset, text[:EXCERPT]))
        if is_key:
            self._watch(call, tag)
            self._open_value(call, name)
        elif name:
            self._answer.start_call(call, name)
        for attribute in extra:
            report.deviate(call, DeviationCode.EXTRA_ATTRIBUTE, detail=attribute, offset=self._header_offset)

    # Values

    def _open_value(self, call: OpenCall, key: str) -> None:
        answer = self._answer
        type_, undeclared = declared_type(call, key)
        if undeclared and key:
            answer.report.deviate(call, DeviationCode.UNDECLARED_ARGUMENT, path=(key,), detail=key)
        self.repeated = key in call.arguments
        call.parameters += 1
        if call.parameters > answer.limits.parameters:
            answer.exceed(call, f"more than {answer.limits.parameters} parameters", answer.report.here)
            return
        call.key = key
        self._late = ""
        if call.watch is not None and not self.repeated:
            call.watch.key(key, answer.report.events)
        self._type = type_
        self._open_rules = answer.scanner.state.open

    def _reader(self, call: OpenCall) -> Reader:
        """The reader of the open value, made when its first text comes: only then it is known where it starts."""
        if call.reader is None:
            answer, key = self._answer, call.key or ""
            place = Place(call.index, key, answer.report.here, self._repair, answer.limits, self._strip)
            call.reader = reader_for(self._type, place)
            if isinstance(call.reader, JsonReader) and not self.repeated:
                call.reader.watch = call.watch
            call.keep_raw(call.reader.pieces)
        return call.reader

    def _watch(self, call: OpenCall, end: Tag) -> None:
        """Have a say in what ends the value (N5). Headers inside it end like the one that ``end`` ended."""
        self.guard = ValueGuard(call.missing, self._header_guard is not None, end.text, self._answer.limits.name)
        if self._quotes:
            self._answer.scanner.guard = self.guard

    def value_text(self, text: str) -> None:
        """More of the value."""
        call, guard = self._answer.call, self.guard
        if guard is not None and guard.reading:
            guard.see(text)
        if call is None or guard is None or call.over or call.key is None:
            return
        kept = text if len(text) <= call.room else text[: call.room]
        call.room -= len(kept)
        reader = self._reader(call)
        found = reader.feed(kept)
        if reader.json is not None:
            guard.watch_json(reader.json)
        if call.watch is not None and not self.repeated:
            found = self._followed(call.watch, reader, found, kept)
        if call.started and not self.repeated:
            self._answer.report.events += found
        if len(kept) < len(text):
            reason = f"arguments of more than {self._answer.limits.arguments} characters"
            self._answer.exceed(call, reason, self._answer.report.here + len(kept))
            guard.watch_json(None)

    # Early verdicts

    def _followed(self, watch: Watch, reader: Reader, found: ReaderEvents, text: str) -> ReaderEvents:
        """The events of more text, with what can be said against the value."""
        if isinstance(reader, TextReader) or (isinstance(reader, OpenReader) and reader.text):
            events: ReaderEvents = []
            watch.begin(STRING, events)
            if not (events or watch.checked):
                return found
            watch.mark = len(events)
            events += found
            if watch.checked:
                watch.grow(events)
            return events
        if isinstance(reader, LateReader) or (isinstance(reader, JsonReader) and reader.late):
            self._look_ahead(watch, text, found)
        return found

    def _look_ahead(self, watch: Watch, text: str, out: ReaderEvents) -> None:
        """More of a text that is decided when it is closed: whether anything is left that it can become."""
        shape, before = watch.awaited, len(self._late)
        if shape is None or before >= LOOKED_AT or not text:
            return
        self._late = late = (self._late + text)[:LOOKED_AT]
        if late_fault(shape, self._type.types, late, strip=self._strip) is None:
            return
        for size in range(before + 1, len(late) + 1):
            found = late_fault(shape, self._type.types, late[:size], strip=self._strip)
            if found is not None:
                watch.reject_late(*found, late[:size], out)
                return

    def _followed_to_end(self, watch: Watch, reader: Reader, events: ReaderEvents, value: Any) -> ReaderEvents:
        """The last events of a value, and what can be said against it as a whole."""
        if reader.json is not None:
            return events
        if events:  # the characters of a text that could have been JSON
            events = self._followed(watch, reader, events, "")
        if isinstance(value, dict | list):
            watch.whole(value, events)
        else:
            watch.complete(value, events)
        return events

    def close_value(self) -> None:
        """The closing tag of a parameter."""
        call, guard, self.guard = self._answer.call, self.guard, None
        if call is None or guard is None or call.over or call.key is None:
            return
        reader, key, report = self._reader(call), call.key, self._answer.report
        doubtful = isinstance(reader, OpenReader) and reader.in_json_string
        outcome = reader.close()
        value = outcome.value
        call.reader = call.key = None
        if call.started and not self.repeated:
            last = outcome.events
            report.events += last if call.watch is None else self._followed_to_end(call.watch, reader, last, value)
        self._judge_json(call, reader.json)
        if isinstance(value, str):
            self._check_string(call, key, value, guard, doubtful)
        for code, expected, found in outcome.deviations:
            report.deviate(call, code, path=(key,), expected=expected, found=found)
        self._answer.assumed = self._answer.scanner.assumed
        if reader.json is not None and reader.json.error is not None:
            self._keep_broken(call, key, reader.json)
            return
        if self.repeated:
            self._repeat(call, key, value)
            return
        call.arguments[key] = value
        if call.started:
            report.events.append(ArgumentValue(call.index, (key,), value))

    def _keep_broken(self, call: OpenCall, key: str, json: JsonDecoder) -> None:
        """What the events showed of a value that is not valid JSON stays; there is no value to announce."""
        if json.partial is not None and key not in call.arguments:
            call.arguments[key] = json.partial

    def _judge_json(self, call: OpenCall, json: JsonDecoder | None) -> None:
        """J5, J6: what was repaired in a value that was read as JSON, and what is wrong with it."""
        if json is None:
            return
        if not self.repeated:
            for deviation in json.deviations:
                call.note(deviation)
        if json.error is not None:
            call.watch = None
            call.blame(structs.replace(json.error, open=self._open_rules))

    def _check_string(self, call: OpenCall, key: str, value: str, guard: ValueGuard, doubtful: bool) -> None:
        """N7, N9: what a finished string looks like. ``doubtful``: N6 does not cover a value without a type (T5), but
        the closing tag stands in what would be a JSON string."""
        if guard.swallowed:
            call.swallowed += [(key, inner) for inner in guard.swallowed]
        if guard.tags or doubtful:
            self._answer.report.deviate(call, DeviationCode.DELIMITER_IN_VALUE, path=(key,))
            call.trusted = call.trusted and not (doubtful or self._answer.scanner.last_resort)
        if _CDATA_OPENS(value) and value[-EXCERPT:].rstrip().endswith("]]>"):
            self._answer.report.deviate(call, DeviationCode.CDATA, path=(key,))

    def _repeat(self, call: OpenCall, key: str, value: Any) -> None:
        """N14: the same parameter again."""
        report, found = self._answer.report, _canonical(value)
        if found == _canonical(call.arguments[key]):
            report.deviate(call, DeviationCode.REPEATED_ARGUMENT, path=(key,))
        else:
            reason = f"parameter {key!r} was given twice with different values"
            error = report.error(ErrorCode.DUPLICATE_ARGUMENT, reason, report.here, found[:EXCERPT], (key,))
            call.blame(error)


def _canonical(value: Any) -> str:
    """Equal for equal values, whatever the order of their keys."""
    return dumps(value, ensure_ascii=False, sort_keys=True)
