"""Native text inside the fields of a chunk: content and reasoning, each through a native decoder (rule C9).

Theory. Content is an answer of its own, from its start to the end of the stream. Reasoning in its own field has lost
its tags, and an answer may have several stretches of it: each goes through a decoder that starts inside the reasoning,
and when content or a structured call follows, its closing tag is written in, so that the rules for calls in reasoning
(N13) hold as they are. The tag comes from the state table.

Without a dialect text is text, and nothing is loaded.

A chunk may end in the first half of a surrogate pair. It waits for the next text of its kind; whatever comes instead
makes U+FFFD of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

from streamparse.decoding.account import Account, Road
from streamparse.decoding.lenient import sound
from streamparse.decoding.native import NativeDecoder
from streamparse.events import DeviationCode, ErrorCode, Event, Failed, PartialToolCall, Reasoning, Text

Start: TypeAlias = Literal["text", "reasoning"]
Make: TypeAlias = Callable[[str, Start, Callable[[int], str]], NativeDecoder]
"""Makes a decoder of a dialect, with a start and an id factory; the rest are the caller's options."""

_M2 = re.compile(r"minimax[^a-z0-9]*m2(?![0-9])", re.IGNORECASE)
"""``MiniMax-M2``, ``minimax/minimax-m2.5``, ``MiniMaxAI/MiniMax-M2.1``."""


def dialect_of(model: str) -> str | None:
    """C9: the dialect of the text that this model writes, as far as its name tells."""
    return "minimax_m2" if _M2.search(model) else None


class Embedded:
    """Text and reasoning of one answer. ``dialect`` may be set until the first text comes."""

    __slots__ = (
        "_account",
        "_content",
        "_half",
        "_half_reasoned",
        "_lead",
        "_make",
        "_reasoning",
        "_roads",
        "_saw_reasoning",
        "_start",
        "dialect",
    )

    def __init__(self, account: Account, make: Make, dialect: str | None, start: Start) -> None:
        self._account = account
        self._make = make
        self._start = start
        self.dialect = dialect
        self._content: _Stretch | None = None
        self._reasoning: _Stretch | None = None
        self._roads: list[_Stretch] = []
        self._lead = ""  # the start of content that may be an orphan closing tag
        self._saw_reasoning = False
        self._half = ""  # the first half of a surrogate pair
        self._half_reasoned = False  # it is reasoning

    def text(self, text: str) -> None:
        """More content."""
        if self._half or not (text.isascii() or text.isprintable()):  # a surrogate is not printable
            text = self._whole(text, reasoned=False)
            if not text:
                return
        self._account.place += len(text)
        if self.dialect is None:
            self._account.events.append(Text(text))
            return
        self.end_reasoning()
        if self._content is None:
            text = self._begin_content(self.dialect, text)
        if text and self._content is not None:
            self._content.feed(text)

    def reason(self, text: str) -> None:
        """More reasoning, from a field of its own."""
        if self._half or not (text.isascii() or text.isprintable()):
            text = self._whole(text, reasoned=True)
            if not text:
                return
        self._account.place += len(text)
        self._saw_reasoning = True
        if self.dialect is None:
            self._account.events.append(Reasoning(text))
            return
        if self._reasoning is None:
            self._reasoning = self._stretch(self.dialect, "reasoning")
        self._reasoning.feed(text)

    def _whole(self, text: str, *, reasoned: bool) -> str:
        """The text with pairs made whole; half a pair at its end waits."""
        if self._half_reasoned is not reasoned:
            self._end_half()
        text, self._half = self._half + text, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half, self._half_reasoned = text[:-1], text[-1], reasoned
        return sound(text)

    def _end_half(self) -> None:
        """The second half of a pair does not come."""
        half, self._half = self._half, ""
        if half:
            (self.reason if self._half_reasoned else self.text)(sound(half))

    def pause(self) -> None:
        """A structured call follows: the reasoning is closed, and no half of a character waits."""
        if self._half:
            self._end_half()
        if self._reasoning is not None:
            self.end_reasoning()

    def end_reasoning(self) -> None:
        """Content follows, so the reasoning is closed."""
        stretch, self._reasoning = self._reasoning, None
        if stretch is not None:
            if stretch.in_reasoning:
                stretch.feed(stretch.closer)
            stretch.close(None, in_field=True)

    def close(self, finish_reason: str | None) -> None:
        """The end of the stream."""
        self._end_half()
        if self._lead and self._content is None and self.dialect is not None:
            lead, self._lead = self._lead, ""
            self._content = self._stretch(self.dialect, self._start)
            self._content.feed(lead)
        if self._content is not None:
            self._content.close(finish_reason)
        if self._reasoning is not None:
            self._reasoning.close(finish_reason, in_field=True)

    def partial(self, index: int) -> PartialToolCall | None:
        """A snapshot of a call in the text; None if the call is none."""
        return next((found for road in self._roads if (found := road.partial(index)) is not None), None)

    def _begin_content(self, dialect: str, text: str) -> str:
        """The first content; the text that is ready for its decoder."""
        start: Start = self._start
        if self._saw_reasoning and start == "text":
            text = self._lead + text
            start = self._settle_lead(dialect, text)
            if self._lead:
                return ""
        self._content = self._stretch(dialect, start)
        return text

    def _settle_lead(self, dialect: str, text: str) -> Start:
        """Content that begins with the closing tag of reasoning that had its own field begins in the reasoning."""
        closer, given = self._make(dialect, "reasoning", str).reasoning_closer, text.lstrip()
        if given.startswith(closer):
            self._lead = ""
            self._account.tell(DeviationCode.ORPHAN_CLOSER, self._account.place - len(text), closer)
            return "reasoning"
        self._lead = text if closer.startswith(given) else ""
        return "text"

    def _stretch(self, dialect: str, start: Start) -> _Stretch:
        road = Road(self._account)
        stretch = _Stretch(self._account, road, self._make(dialect, start, road.make_id))
        self._roads.append(stretch)
        return stretch


class _Stretch:
    """A native decoder and the road of its events."""

    __slots__ = ("_account", "_decoder", "_feed", "_road")

    def __init__(self, account: Account, road: Road, decoder: NativeDecoder) -> None:
        self._account = account
        self._road = road
        self._decoder = decoder
        self._feed = decoder.feed

    @property
    def closer(self) -> str:
        return self._decoder.reasoning_closer

    @property
    def in_reasoning(self) -> bool:
        """Whether what is open stands in reasoning."""
        return self._decoder.in_reasoning

    def feed(self, text: str) -> None:
        self._road.take(self._feed(text))

    def close(self, finish_reason: str | None, *, in_field: bool = False) -> None:
        """``in_field``: the reasoning had its own field, where it ends without a tag."""
        events = self._decoder.close(finish_reason)
        kept = [event for event in events if not (in_field and _is_open_reasoning(event))]
        self._road.take(kept if len(kept) == len(events) else kept[:-1])  # its end tells of what was left out

    def partial(self, index: int) -> PartialToolCall | None:
        own = self._road.local(index)
        return None if own is None else self._decoder.partial(own)


def _is_open_reasoning(event: Event) -> bool:
    return isinstance(event, Failed) and event.error.code is ErrorCode.UNCLOSED_REASONING
