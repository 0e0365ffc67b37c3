r"""The words of tolerant reading (J5, tiers 2 and 3): strings in other quotes or with escapes that are none, keys
without quotes, Python's literals. ``repair`` says what is tolerated, and why the rest is not.

A string that is not JSON's is read in a loop of its own, slower than the roads of ``words``: runs of plain characters,
and between two of them one character that needs a look. So is the rest of a string in double quotes from its first
backslash on where escapes may be illegal (tier 3), since what an escape stands for depends on the ones before it.

Held at the end of a chunk is at most an escape that is not whole: eleven characters, as in strict reading.
"""

from __future__ import annotations

import re
from sys import maxsize
from typing import Final, Literal, NamedTuple

from streamparse.decoding import jsontext
from streamparse.decoding import repair as repairs
from streamparse.decoding.early_rules import STRING, kind_of
from streamparse.decoding.jsontext import LITERALS, PYTHON_LITERALS, shown
from streamparse.decoding.tree import Out, Place
from streamparse.decoding.words import Words
from streamparse.events import ArgumentDelta, ErrorCode, Path
from streamparse.limits import Limits


class Quotes(NamedTuple):
    """How strings in one kind of quotes are read.

    ``kind`` is the repair that they are; ``closer`` ends them; ``escaped`` are the characters that a backslash before
    them stands for; ``doubtful`` could be an end, or not. ``runs`` match plain characters; the second lets control
    characters pass.
    """

    kind: str
    closer: str
    escaped: str
    doubtful: str
    python: bool
    runs: tuple[re.Pattern[str], re.Pattern[str]]


def _quotes(kind: str, closer: str, escaped: str, doubtful: str = "", *, python: bool = False) -> Quotes:
    special = rf"\\\ud800-\udfff{closer}{doubtful}"
    runs = re.compile(rf"[^\x00-\x1f{special}]+"), re.compile(rf"[^{special}]+")
    return Quotes(kind, closer, '"\\/' + escaped, doubtful, python, runs)


_DOUBLE_CURLY: Final = _quotes(repairs.TYPOGRAPHIC_QUOTES, "”", "“”", '“"')
_SINGLE_CURLY: Final = _quotes(repairs.TYPOGRAPHIC_QUOTES, "’", "‘’", "‘'")

QUOTES: Final = {
    '"': _quotes("", '"', ""),
    "'": _quotes(repairs.SINGLE_QUOTES, "'", "'", python=True),
    "“": _DOUBLE_CURLY,
    "”": _DOUBLE_CURLY,
    "‘": _SINGLE_CURLY,
    "’": _SINGLE_CURLY,
}
"""By the opening quote."""

_KEY_BEGINS: Final = re.compile(r"[^\W\d]|\$")
_KEY_GOES_ON: Final = re.compile(r"[\w$]*")
_NO_KEYS: Final = frozenset(word for table in (LITERALS, PYTHON_LITERALS) for word, _ in table.values())

_CUT: Final = -1
_FAULT: Final = -2
"""Ends of an escape: more text decides; it is none."""


class Loose(Words):
    """A layer of ``JsonDecoder``; see the module."""

    __slots__ = ("_escaped", "_mark", "_quotes", "_unescaped")

    def __init__(
        self, index: int, path: Path, offset: int, repair: int, limits: Limits, place: Place, after: Place
    ) -> None:
        super().__init__(index, path, offset, repair, limits, place, after)
        if repair >= repairs.Tier.GUESS:  # each escape is looked at
            self._bodies = jsontext.PLAIN_BODIES
            self._more = Words._more_carefully
            self._on_escape = Loose._from_escape
        self._quotes = QUOTES['"']  # of the string that is read here
        self._escaped = False  # a letter was escaped in it
        self._unescaped = False  # an escape in it was none
        self._mark = 0  # where the key, or what else is read, began in the input

    # Strings ----------------------------------------------------------------------------------------------------------

    def _loose_value(self, text: str, pos: int, out: Out) -> int:
        return self._open_loose("value", self._here(), text, pos, out)

    def _loose_key(self, text: str, pos: int, out: Out) -> int:
        return self._open_loose("key", self._path, text, pos, out)

    def _open_loose(self, reading: Literal["key", "value"], path: Path, text: str, pos: int, out: Out) -> int:
        quotes = QUOTES[text[pos]]
        if not self._repaired(quotes.kind, pos, path, out):
            return self._place.other(self, text, pos, out)
        if reading == "value":
            self._member = path
            if self.watch is not None:
                self.watch.begin(STRING, out)
        self._begin(reading, pos)
        return self._enter(quotes, text, pos + 1, out)

    def _from_escape(self, text: str, pos: int, out: Out) -> int:
        return self._enter(QUOTES['"'], text, pos, out)

    def _raw_character(self, text: str, pos: int, out: Out) -> int:
        if self._repair < repairs.Tier.GUESS:
            return super()._raw_character(text, pos, out)
        return self._enter(QUOTES['"'], text, pos, out)

    def _enter(self, quotes: Quotes, text: str, pos: int, out: Out) -> int:
        """Read the string from here to its end in the loop below."""
        self._quotes = quotes
        self._escaped = self._unescaped = False
        self._inside = Loose._read_loose
        self._growing = None
        self.in_string = True
        return self._read_loose(text, pos, out)

    def _read_loose(self, text: str, pos: int, out: Out) -> int:
        quotes, end = self._quotes, len(text)
        got: list[str] = []
        while pos < end:
            match = quotes.runs[self._tolerant].match(text, pos)
            if match is not None:
                got.append(match[0])
                pos = match.end()
                continue
            stop, piece = self._escape(text, pos) if text[pos] == "\\" else (_FAULT, "")
            if stop >= 0:
                got.append(piece)
                pos = stop
                continue
            if not self._say(got, out):
                return maxsize
            got = []
            if stop == _CUT:
                return self._hold(text, pos)
            if text[pos] == quotes.closer:
                return self._close_loose(pos, out)
            pos = self._odd(text, pos, out)
        return pos if self._say(got, out) else maxsize

    def _say(self, got: list[str], out: Out) -> bool:
        """More characters of the string. False if reading is over."""
        if got:
            piece = "".join(got)
            self._pieces.append(piece)
            if self._reading == "value":
                out.append(ArgumentDelta(self.index, self._member, piece))
        return True

    def _close_loose(self, pos: int, out: Out) -> int:
        return self._end_string(pos, out)

    def _escape(self, text: str, pos: int) -> tuple[int, str]:
        """The end of an escape, and what it stands for."""
        char = text[pos + 1 : pos + 2]
        if not char:
            return _CUT, ""
        if char in self._quotes.escaped:
            return pos + 2, char
        if self._unescaped:
            return _FAULT, ""
        stop, piece = jsontext.escape(text, pos, python=self._quotes.python)
        if stop > 0:
            self._escaped = True
        elif stop == 0 or (self._repair >= repairs.Tier.GUESS and jsontext.cut_unicode(text, pos)):
            return _CUT, ""
        return stop, piece

    def _odd(self, text: str, pos: int, out: Out) -> int:
        """A character that is not part of a string, or not without a repair. Returns where to go on."""
        char = text[pos]
        if char == "\\":
            return self._no_escape(text, pos, out)
        if char < " ":
            if self._repaired(repairs.CONTROL_CHARACTER, pos, self._here(), out):
                self._tolerant = True
                return pos
            reason = f"raw control character {shown(char)} in a string"
            return self._fail(ErrorCode.INVALID_JSON, reason, pos)
        if char in self._quotes.doubtful:
            reason = f"{char} in a string that {self._quotes.closer} closes"
            return self._fail(ErrorCode.INVALID_JSON, reason, pos, expected=(repr(self._quotes.closer),))
        if self._repaired(repairs.LONE_SURROGATE, pos, self._here(), out):
            self._say(["\ufffd"], out)
            return pos + 1
        return self._fail(ErrorCode.LONE_SURROGATE, f"raw surrogate {shown(char)} in a string", pos)

    def _no_escape(self, text: str, pos: int, out: Out) -> int:
        end = 0 if self._unescaped else jsontext.lone_surrogate(text, pos, python=self._quotes.python)
        if end and self._repaired(repairs.LONE_SURROGATE, pos, self._here(), out):
            self._escaped = True
            self._say(["\ufffd"], out)
            return end
        if self._escaped and repairs.allows(self._repair, repairs.ILLEGAL_ESCAPE):
            reason = f"illegal escape \\{shown(text[pos + 1])} behind legal ones in one string"
            return self._fail(ErrorCode.INVALID_JSON, reason, pos + 1, start=pos)
        if self._repaired(repairs.ILLEGAL_ESCAPE, pos, self._here(), out):
            self._unescaped = True
            self._say(["\\"], out)
            return pos + 1
        legal = jsontext.escape_prefix(text, pos)
        code, reason, expected = jsontext.escape_fault(text, pos, legal)
        return self._fail(code, reason, legal, start=pos, expected=expected)

    # Keys without quotes, and Python's literals -----------------------------------------------------------------------

    def _bare_key(self, text: str, pos: int, out: Out) -> int:
        if not (_KEY_BEGINS.match(text, pos) and repairs.allows(self._repair, repairs.UNQUOTED_KEY)):
            return self._reject(text, pos, out)
        self._mark = self._base() + pos
        self._inside = Loose._more_bare_key
        return self._more_bare_key(text, pos, out)

    def _more_bare_key(self, text: str, pos: int, out: Out) -> int:
        match = _KEY_GOES_ON.match(text, pos)
        end = match.end() if match else pos
        self._pieces.append(text[pos:end])
        if end == len(text):
            return end
        key = "".join(self._pieces)
        self._pieces.clear()
        self._solid = 0
        self._inside = None
        start = self._mark - self._base()
        if key in _NO_KEYS:
            return self._fail(ErrorCode.INVALID_JSON, f"{key} is a value, and no key", end - 1, start=start)
        self._repaired(repairs.UNQUOTED_KEY, start, self._path, out)
        return self._end_key(key, end - 1, out)

    def _python_literal(self, text: str, pos: int, out: Out) -> int:
        if not repairs.allows(self._repair, repairs.PYTHON_LITERAL):
            return self._reject(text, pos, out)
        word, value = PYTHON_LITERALS[text[pos]]
        if self.watch is not None:
            self.watch.begin(kind_of(value), out)
        if not text.startswith(word, pos):
            return self._part_of(word, value, text, pos, out)
        self._repaired(repairs.PYTHON_LITERAL, pos, self._here(), out)
        return self._put(value, pos, pos + len(word), out)
