"""What stands around the value, and is tolerated from tier 2 on (J5): text before and behind it, and the quotes of a
string that holds it.

Text is skipped, and reported once it is over, with its beginning. Which characters may begin a text is decided by the
tables of ``arguments``: those that begin no JSON value.

JSON in a string is read by a second reader, which gets the characters of the string as they come. What it says is what
this one says; so that nothing is told of a string that holds no JSON, the string is reported when the value in it has
begun.
"""

from __future__ import annotations

import re
from sys import maxsize
from typing import Any, Final, Literal, TypeAlias

from streamparse.decoding import repair as repairs
from streamparse.decoding.history import FAILED
from streamparse.decoding.jsontext import LITERALS, printable
from streamparse.decoding.loose import QUOTES, Loose
from streamparse.decoding.tree import JsonEvent, Out, Place
from streamparse.events import Deviated, ErrorCode, ErrorDetail, Path
from streamparse.limits import EXCERPT, Limits

Root: TypeAlias = Literal["object", "container", "any"]

WANTED: Final = {"object": ("'{'",), "container": ("'{'", "'['"), "any": ("a JSON value",)}
"""What begins a root, in words."""
_KINDS: Final = {"[": "an array", '"': "a string", "t": "true", "f": "false", "n": "null"}

_OPENER: Final = re.compile(r"[{]")
_OPENERS: Final = re.compile(r"[{\[]")
_BRACES: Final = re.compile(r"[{}]")
_BRACKETS: Final = re.compile(r"[{}\[\]]")
_BACKTICKS: Final = re.compile("`+")
_FENCE: Final = 3
_STRUCTURE: Final = frozenset(",:\"'[]{}")
"""How JSON goes on: no text begins so."""


class Outside(Loose):
    """A layer of ``JsonDecoder``; see the module."""

    __slots__ = ("_aside", "_fenced", "_inner", "_kind", "_ticks")

    def __init__(
        self,
        index: int,
        path: Path,
        offset: int,
        repair: int,
        limits: Limits,
        place: Place,
        after: Place,
        kind: Root,
    ) -> None:
        super().__init__(index, path, offset, repair, limits, place, after)
        self._kind: Root = kind
        self._fenced = False  # a code fence is open around the value
        self._ticks = 0  # backticks at the end of the text before the value
        self._aside = ""  # how text before or behind the value begins
        self._inner: Any = None  # the reader of the string that the root is

    def _reject_root(self, text: str, pos: int, out: Out) -> int:
        """A JSON value of the wrong kind."""
        reason = no_container(_KINDS.get(text[pos], "a number"), self._kind)
        return self._fail(ErrorCode.NOT_AN_OBJECT, reason, pos, expected=self._place.expected)

    # Text -------------------------------------------------------------------------------------------------------------

    def _root_word(self, text: str, pos: int, out: Out) -> int:
        """A literal, which is no object, or the first word of a text."""
        if not repairs.allows(self._repair, repairs.TEXT_BEFORE):
            return self._reject_root(text, pos, out)
        word, _ = LITERALS[text[pos]]
        have = text[pos : pos + len(word)]
        if have == word:
            return self._reject_root(text, pos, out)
        return self._hold(text, pos) if word.startswith(have) else self._text_before(text, pos, out)

    def _text_before(self, text: str, pos: int, out: Out) -> int:
        if not repairs.allows(self._repair, repairs.TEXT_BEFORE):
            return self._reject(text, pos, out)
        self._mark = self._base() + pos
        self._inside = Outside._skip_text
        return self._skip_text(text, pos, out)

    def _skip_text(self, text: str, pos: int, out: Out) -> int:
        opener = (_OPENERS if self._kind == "container" else _OPENER).search(text, pos)
        end = opener.start() if opener else len(text)
        self._note_aside(text, pos, end)
        self._note_fences(text, pos, end)
        if opener:
            self._inside = None
            self._after = self._behind(self._fenced)
            self._tell_aside(repairs.TEXT_BEFORE, out)
        return end

    def _note_fences(self, text: str, pos: int, end: int) -> None:
        """A run of three backticks opens a fence around the value, or closes it: another one may follow."""
        for run in _BACKTICKS.finditer(text, pos, end):
            before = self._ticks if run.start() == pos else 0
            self._ticks = before + len(run[0])
            if before < _FENCE <= self._ticks:
                self._fenced = not self._fenced
        if end > pos and not text.endswith("`", pos, end):
            self._ticks = 0

    def _behind(self, fenced: bool) -> Place:
        """What may stand behind the value."""
        raise NotImplementedError

    def _text_after(self, text: str, pos: int, out: Out) -> int:
        allowed = repairs.allows(self._repair, repairs.TEXT_AFTER)
        if not allowed or text[pos] in _STRUCTURE or not isinstance(self._root, dict | list):
            return self._reject(text, pos, out)
        self._mark = self._base() + pos
        self._aside = ""
        self._inside = Outside._drop_text
        return self._drop_text(text, pos, out)

    def _drop_text(self, text: str, pos: int, out: Out) -> int:
        brace = (_BRACES if self._kind == "object" else _BRACKETS).search(text, pos)
        if brace:
            reason = f"{brace[0]} in text after the value: perhaps another one"
            return self._fail(ErrorCode.TRAILING_TEXT, reason, brace.start())
        self._note_aside(text, pos, len(text))
        return len(text)

    def _note_aside(self, text: str, pos: int, end: int) -> None:
        if (room := EXCERPT - len(self._aside)) > 0:
            self._aside += text[pos : min(end, pos + room)]

    def _tell_aside(self, kind: str, out: Out) -> None:
        """Report the text that was dropped."""
        self._repaired(kind, self._mark - self._base(), self.path, out, printable(self._aside.rstrip()))

    # JSON in a string -------------------------------------------------------------------------------------------------

    def _string_root(self, text: str, pos: int, out: Out) -> int:
        """A string where an object is awaited: perhaps the object is in it."""
        if not repairs.allows(self._repair, repairs.JSON_IN_STRING):
            return self._reject_root(text, pos, out) if text[pos] == '"' else self._reject(text, pos, out)
        self._mark = start = self._base() + pos
        self._inner = self._reader_in_string(self.offset + start + 1)
        self._inner.watch, self.watch = self.watch, None
        self._begin("value", pos)
        return self._enter(QUOTES[text[pos]], text, pos + 1, out)

    def _reader_in_string(self, offset: int) -> Any:
        """A reader for the string; its characters stand at ``offset``."""
        raise NotImplementedError

    def _say(self, got: list[str], out: Out) -> bool:
        inner = self._inner
        if inner is None:
            return super()._say(got, out)
        if got:
            self._pass_on(inner, inner.feed("".join(got)), out)
        return inner.error is None or self._give_up(inner)

    def _pass_on(self, inner: Any, events: list[JsonEvent], out: Out) -> None:
        """The events of the reader in the string. Only once there is an object in it, the string is a repair."""
        if self.start is None and inner.start is not None:
            self.start = self._mark
            for kind in filter(None, (self._quotes.kind, repairs.JSON_IN_STRING)):
                self._repaired(kind, self._mark - self._base(), self.path, out)
        self.deviations += [event.deviation for event in events if isinstance(event, Deviated)]
        out += events

    def _give_up(self, inner: Any) -> bool:
        """The string holds no JSON: its reader's error, or that it is a string."""
        error = inner.error
        if error is None or inner.start is None:
            excerpt = error.excerpt if error is not None else ""
            reason = no_container("a string", self._kind)
            offset = self.offset + self._mark
            error = ErrorDetail(
                ErrorCode.NOT_AN_OBJECT,
                reason,
                offset,
                expected=WANTED[self._kind],
                excerpt=excerpt,
                path=self.path,
            )
        self.error = error
        self.in_string = False
        self._shut_off(FAILED)
        return False

    def _close_loose(self, pos: int, out: Out) -> int:
        inner = self._inner
        if inner is None:
            return super()._close_loose(pos, out)
        self._pass_on(inner, inner.close(), out)
        if inner.state != "complete":
            self._give_up(inner)
            return maxsize
        self._root = inner.value
        self._reading = ""
        self._inside = None
        self.in_string = False
        self._place = self._after
        return self._end_root(pos + 1)


def no_container(kind: str, root: Root) -> str:
    """The reason of an error: a root of another kind."""
    return f"the top level is {kind}, not {'an object' if root == 'object' else 'an object or an array'}"
