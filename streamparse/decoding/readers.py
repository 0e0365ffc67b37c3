"""How the raw text of one parameter becomes events and a value (rules T): one reader for each ``Mode`` of a
``ValueType``.

A reader takes text with ``feed`` and ends with ``close``. ``TextReader`` hands characters on as they come,
``JsonReader`` gives path events, ``OpenReader`` streams text as soon as it cannot be JSON (T5), ``LateReader``
decides at the close. All keep the raw text."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from streamparse.decoding.arguments import JsonDecoder
from streamparse.decoding.early_watch import Watch
from streamparse.decoding.outside import Root
from streamparse.decoding.pieces import Pieces
from streamparse.decoding.repair import Tier
from streamparse.decoding.values import JSON_SPACE, Mode, ValueType
from streamparse.events import ArgumentDelta, ArgumentRejected, ArgumentValue, Deviated, DeviationCode, Event, Path
from streamparse.limits import Limits

_CONTAINERS = frozenset({"object", "array"})

ReaderEvent = ArgumentDelta | ArgumentValue | ArgumentRejected | Deviated
ReaderEvents = list[ReaderEvent]


class Place(msgspec.Struct, frozen=True, gc=False):
    """Whose value it is: the call's index, the key, where the value starts in the stream; and the decoder's
    settings."""

    index: int
    key: str
    offset: int
    repair: int
    limits: Limits
    strip: bool

    @property
    def path(self) -> Path:
        """The path of the value itself."""
        return (self.key,)


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """A closed value: its last events (without the ``ArgumentValue`` of the value itself), and what was read
    (as in ``Reading``).

    What was wrong with a value that was read as JSON is in the reader's ``json``."""

    events: ReaderEvents
    value: Any
    deviations: tuple[tuple[DeviationCode, str, str], ...] = ()


class Reader(Protocol):
    """What all readers do."""

    json: JsonDecoder | None
    pieces: Pieces

    def feed(self, text: str) -> ReaderEvents:
        """More of the raw text."""

    def close(self) -> Outcome:
        """The value is delimited."""

    def partial(self) -> tuple[bool, Any]:
        """Whether anything of the value is certain, and what."""


class Stripper:
    """N8, ``whitespace="strip"``: takes white space off both ends of a text that comes in pieces."""

    __slots__ = ("_begun", "_kept")

    def __init__(self) -> None:
        self._begun = False
        self._kept = ""  # white space that is only part of the text if something follows

    def take(self, text: str) -> str:
        """What is certain to be inside."""
        if not self._begun:
            text = text.lstrip()
            self._begun = bool(text)
        solid = text.rstrip()
        if not solid:
            self._kept += text
            return ""
        whole, self._kept = self._kept + solid, text[len(solid) :]
        return whole


class TextReader:
    """T1: only a string. ``strip`` (N8) takes white space off both ends."""

    __slots__ = ("_index", "_path", "_stripper", "append", "json", "pieces")

    def __init__(self, place: Place, pieces: Pieces | None = None) -> None:
        self.pieces = Pieces() if pieces is None else pieces
        self.append = self.pieces.append
        self._index = place.index
        self._path = place.path
        self._stripper = Stripper() if place.strip else None
        self.json: JsonDecoder | None = None

    def feed(self, text: str) -> ReaderEvents:
        if self._stripper is not None:
            text = self._stripper.take(text)
        if not text:
            return []
        self.pieces.add(text)
        return [ArgumentDelta(self._index, self._path, text)]

    def close(self) -> Outcome:
        return Outcome([], self.pieces.text())

    def partial(self) -> tuple[bool, Any]:
        return True, self.pieces.text()


class LateReader:
    """T2, T3: the value is decided when it is closed. ``strip`` (N8) takes off any white space, not only JSON's."""

    __slots__ = ("_strip", "_type", "json", "pieces")

    def __init__(self, type_: ValueType, strip: bool) -> None:
        self.pieces = Pieces()
        self._type = type_
        self._strip = strip
        self.json: JsonDecoder | None = None

    def feed(self, text: str) -> ReaderEvents:
        self.pieces.add(text)
        return []

    def close(self) -> Outcome:
        raw = self.pieces.text()
        return Outcome([], *self._type.read(raw.strip() if self._strip else raw))

    def partial(self) -> tuple[bool, Any]:
        return False, None


class JsonReader:
    """T4: no string is allowed and a container is. From its opening bracket on the value is JSON; else it is late.

    From tier 2 on the bracket may stand behind text or a quote (J5). Until it comes the value is not JSON, whatever its
    events say: they are kept back, tags in it are no data, and without the bracket it is late (T6)."""

    __slots__ = ("_begun", "_early", "_place", "_seeking", "_stripper", "_type", "json", "pieces", "watch")

    def __init__(self, type_: ValueType, place: Place) -> None:
        self.watch: Watch | None = None  # judges the value while it is read as JSON
        self.pieces = Pieces()
        self._type = type_
        self._place = place
        self._stripper = Stripper() if place.strip else None
        self._begun = False
        self._seeking: JsonDecoder | None = None  # has not found the bracket yet
        self._early: ReaderEvents = []  # what it has said
        self.json: JsonDecoder | None = None

    def feed(self, text: str) -> ReaderEvents:
        if self._stripper is not None:
            text = self._stripper.take(text)
        self.pieces.add(text)
        if self.json is not None:
            return list(self.json.feed(text))
        if self._begun:
            return self._seek(text)
        first = text.lstrip(JSON_SPACE)[:1]
        if not first:
            return []
        self._begun = True
        if first in self._type.containers or self._may_be_repaired(first):
            self.json = self._decoder("container")
            return list(self.json.feed(self.pieces.text()))
        if self._place.repair >= Tier.OBVIOUS and self._may_be_found(first):
            self._seeking = self._decoder("container" if "[" in self._type.containers else "object")
            return self._seek(self.pieces.text())
        return []

    def _seek(self, text: str) -> ReaderEvents:
        if self._seeking is None:
            return []
        self._early += self._seeking.feed(text)
        if self._seeking.start is None:
            return []
        self.json, self._seeking = self._seeking, None
        early, self._early = self._early, []
        return early

    def _may_be_found(self, first: str) -> bool:
        """A container behind another character: only where nothing else is allowed. No array stands behind text."""
        return self._type.types <= _CONTAINERS and ("{" in self._type.containers or first == "(")

    @property
    def late(self) -> bool:
        """Whether the value is decided when it is closed, as far as it can be told."""
        return self.json is None and self._seeking is None

    def more_json(self, text: str) -> list[Event]:
        """``feed`` for a value that has begun to be JSON, without a detour."""
        assert self.json is not None
        self.pieces.append(text)
        return self.json.feed(text)  # type: ignore[return-value]  # a list of three of the events

    def _may_be_repaired(self, first: str) -> bool:
        """A comment or a code fence before the bracket (J5)."""
        return self._place.repair > 0 and first in "/`"

    def _decoder(self, root: Root) -> JsonDecoder:
        place = self._place
        decoder = JsonDecoder(
            index=place.index,
            path=place.path,
            offset=place.offset,
            repair=place.repair,
            root=root,
            limits=place.limits,
        )
        decoder.watch = self.watch
        return decoder

    def close(self) -> Outcome:
        if self.json is None:
            return Outcome([], *self._type.read(self.pieces.text()))
        events: ReaderEvents = list(self.json.close())
        if self.json.error is not None:
            return Outcome(events, self.pieces.text())
        return Outcome(events, self.json.value)

    def partial(self) -> tuple[bool, Any]:
        partial = None if self.json is None else self.json.partial
        return partial is not None, partial


class OpenReader:
    """T5: object and array text that is complete JSON becomes that value, all else is a string, streamed once that is
    sure."""

    __slots__ = ("_place", "_probe", "_text", "json", "pieces")

    def __init__(self, place: Place) -> None:
        self.pieces = Pieces()
        self._place = place
        self._text: TextReader | None = None
        self._probe: JsonDecoder | None = None  # not ``json``: a tag inside its strings is none of N6's business
        self.json: JsonDecoder | None = None

    def feed(self, text: str) -> ReaderEvents:
        if self._text is not None:
            if self._text.pieces is not self.pieces:
                self.pieces.add(text)
            return self._text.feed(text)
        self.pieces.add(text)
        if self._probe is None:
            first = text.lstrip(JSON_SPACE)[:1]
            if not first:
                return []
            text = self.pieces.text()
            if first not in "{[":
                return self._be_text(text)
            self._probe = JsonDecoder(path=self._place.path, repair=0, root="container", limits=self._place.limits)
        self._probe.feed(text)
        return self._be_text(self.pieces.text()) if self._probe.error is not None else []

    def _be_text(self, raw: str) -> ReaderEvents:
        self._probe = None
        if self._place.strip:
            self._text = TextReader(self._place)
            return self._text.feed(raw)
        self._text = TextReader(self._place, self.pieces)  # which hold it already
        return [ArgumentDelta(self._place.index, self._place.path, raw)] if raw else []

    @property
    def text(self) -> bool:
        """Whether it is certain that the value is a string."""
        return self._text is not None

    @property
    def in_json_string(self) -> bool:
        """Whether the text could be JSON and ends inside one of its strings: the closing tag was data, perhaps."""
        return self._probe is not None and self._probe.in_string

    def close(self) -> Outcome:
        if self._text is not None:
            return self._text.close()
        if self._probe is not None:
            self._probe.close()
            if self._probe.error is None:
                return Outcome([], self._probe.value)
        raw = self.pieces.text()
        return Outcome(self._be_text(raw), raw.strip() if self._place.strip else raw)

    def partial(self) -> tuple[bool, Any]:
        return self._text.partial() if self._text is not None else (False, None)


def reader_for(type_: ValueType, place: Place) -> Reader:
    """The reader for a parameter of this type."""
    if type_.mode is Mode.TEXT:
        return TextReader(place)
    if type_.mode is Mode.JSON:
        return JsonReader(type_, place)
    if type_.mode is Mode.OPEN:
        return OpenReader(place)
    return LateReader(type_, place.strip)
