"""What a decoder knows about a tag inside a value that the grammar cannot know: the guards of N5, N6 and N7."""

from __future__ import annotations

from collections.abc import Callable

from streamparse.decoding.arguments import JsonDecoder
from streamparse.decoding.headers import header_end, read_header
from streamparse.decoding.table import Role, Tag
from streamparse.decoding.verdict import DATA, LAST, TAKE, Verdict


class ValueGuard:
    """Watches one parameter's value.

    *Nesting* (N5): a parameter's opening tag inside the value opens a quoted pair, and the next closing tag closes
    that pair. ``missing(key)`` says that the tool declares the key and the call does not have it yet: then a closing
    tag was lost, and nothing nests (N7); such keys are kept in ``swallowed``. *JSON* (N6): inside a JSON string
    nothing is a tag. What a string is, the value's reader says: at the tiers that tolerate them (J5), also what stands
    in single or typographic quotes, or in a string that holds the JSON. An apostrophe that opens no string there (in
    text around the value, in a comment) hides nothing."""

    __slots__ = (
        "_attributes",
        "_depth",
        "_end",
        "_head",
        "_json",
        "_limit",
        "_missing",
        "_opener",
        "_telling",
        "swallowed",
        "tags",
    )

    def __init__(self, missing: Callable[[str], bool], attributes: bool, end: str, limit: int) -> None:
        self._missing = missing
        self._attributes = attributes
        self._end = end  # the tag that ends a parameter's header
        self._limit = limit
        self._json: JsonDecoder | None = None
        self._head: str | None = None  # the header of an inner opening tag, while it is being read
        self._opener = ""  # how a parameter's opening tag begins: what a header cannot hold
        self._telling: frozenset[str] = frozenset()  # the characters that can decide about a header
        self._depth = 0
        self.swallowed: list[str] = []
        self.tags = False  # whether the value holds a tag of the call's structure (N7)

    def watch_json(self, reader: JsonDecoder | None) -> None:
        """The value is read as JSON: its strings hide tags as long as it is valid. None: it is read no more."""
        self._json = reader

    def see(self, text: str) -> None:
        """More of the value."""
        if self._head is not None:
            self._read_head(text)

    def note(self, tag: Tag) -> None:
        """The value so far ends in this tag, which did not count."""
        if self._in_json():
            return
        self.tags = True
        if tag.rule != "argument":
            return
        if tag.role is Role.CLOSE:
            self._depth = max(0, self._depth - 1)
            self._head = None
        else:
            self._head, self._opener = "", tag.text[0]
            self._telling = frozenset({self._opener, self._end[-1], "\n", '"', "'"})

    def judge(self, tag: Tag, buffer: str, end: int, final: bool) -> Verdict:
        """Whether a closing tag may end the value."""
        if self._json is not None and self._in_json():
            return DATA if self._json.in_string else TAKE
        return LAST if self._depth else TAKE

    def _in_json(self) -> bool:
        return self._json is not None and self._json.error is None

    @property
    def reading(self) -> bool:
        """Whether it has to see all text: the header of an inner opening tag is not over."""
        return self._head is not None

    def _read_head(self, text: str) -> None:
        """Read on to the end of an inner header, one character at a time; whatever cannot be one opens no pair."""
        head = self._head or ""
        for character in text:
            if len(head) >= self._limit:
                self._head = None
                return
            head += character
            if character in self._telling:
                place = header_end(head, self._end, self._attributes)
                if place is not None and place >= 0:
                    self._open_pair(head[:place])
                    return
                if character == self._opener and place is not None:
                    self._head = None  # a tag begins: this was no header
                    return
        self._head = head

    def _open_pair(self, head: str) -> None:
        self._head = None
        key, _ = read_header(head, self._attributes)
        if not key or head.endswith("/"):  # <parameter name="x"/> is no pair
            return
        if self._missing(key):
            if key not in self.swallowed:
                self.swallowed.append(key)
        else:
            self._depth += 1


class PayloadGuard:
    """Watches a call that is one JSON object: the reader knows where it ends, so a tag inside a string is data.

    The opening tag of another call ends this one, which has lost its closing tag, if the object is complete.
    """

    __slots__ = ("_reader",)

    def __init__(self, reader: JsonDecoder) -> None:
        self._reader = reader

    def judge(self, tag: Tag, buffer: str, end: int, final: bool) -> Verdict:
        """DATA inside a JSON string of a payload that is valid so far; and for an opening tag before its end."""
        if tag.role is Role.OPEN:
            return TAKE if self._reader.state == "complete" else DATA
        return DATA if self._reader.error is None and self._reader.in_string else TAKE
