"""How a JSON reader reads its words: strings, numbers and literals, each of which the end of a chunk may cut.

A word that is cut leaves its method in ``_inside``, which reads on at the next chunk, or a few characters in
``_held``, which come again in front of the next chunk: half an escape, half a ``null``. What can go wrong in a word
is found at the first character that no continuation can save. One thing is not: a number that is out of range is
judged when it is complete.

Strings have three roads. The fast path at the top of ``feed``: nothing special in the chunk. ``_more_string``: nothing
but the end of the string or short escapes, one call of a C function. ``_read_body``: anything, exactly.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final, Literal

from streamparse.decoding import jsontext
from streamparse.decoding import repair as repairs
from streamparse.decoding.early_rules import NUMBER as A_NUMBER
from streamparse.decoding.early_rules import STRING, kind_of
from streamparse.decoding.jsontext import DELIMITERS, FOREIGN, LITERALS, MAX_NUMBER, NUMBER, Phase, shown
from streamparse.decoding.tree import Out, Place, Read, Tree
from streamparse.events import ArgumentDelta, ErrorCode, Path
from streamparse.limits import Limits

_EASY: Final = 300
"""Characters of an integer that no interpreter refuses to read, however its own bound is set."""


_TOLERANT: Final = DELIMITERS | set("/`")
_DELIMITERS: Final = (DELIMITERS, _TOLERANT, _TOLERANT | {")"}, _TOLERANT | {")"})
"""What proves that a number is complete, by tier: a comment, a code fence, the end of a tuple, too."""


class Words(Tree):
    """A layer of ``JsonDecoder``; see the module."""

    __slots__ = (
        "_bodies",
        "_delimiters",
        "_inside",
        "_more",
        "_on_escape",
        "_phase",
        "_reading",
        "_token",
        "_tolerant",
    )

    def __init__(
        self, index: int, path: Path, offset: int, repair: int, limits: Limits, place: Place, after: Place
    ) -> None:
        super().__init__(index, path, offset, repair, limits, place, after)
        self._inside: Read | None = None  # what reads on at the next chunk
        self._reading: Literal["", "key", "value"] = ""  # the kind of string that was cut
        self._tolerant = False  # it has had a raw control character
        self._phase = NUMBER  # where the number that was cut stands
        self._token = ""  # its text
        self._delimiters = _DELIMITERS[repair]
        self._bodies = jsontext.BODIES
        self._more: Read = Words._more_string  # what reads on in a string,
        self._on_escape: Read = Words._odd_escape  # and at an escape that is not in its body

    # Strings ----------------------------------------------------------------------------------------------------------

    def _open_string(self, text: str, pos: int, out: Out) -> int:
        container = self._container
        if type(container) is list:
            self._member = self._path + (len(container),)  # noqa: RUF005  # 20 ns less
        if self.watch is not None:
            self.watch.begin(STRING, out)
        start = pos + 1
        end = text.find('"', start)
        value = text[start:] if end < 0 else text[start:end]
        if not value.isprintable() or "\\" in value:
            self._begin("value", pos)
            return self._read_body(text, start, out)
        if value:
            out.append(ArgumentDelta(self.index, self._member, value))
        if end >= 0:
            return self._put(value, pos, end + 1, out)
        self._begin("value", pos)
        self._pieces.append(value)
        return self._suspend(text)

    def _open_key(self, text: str, pos: int, out: Out) -> int:
        start = pos + 1
        end = text.find('"', start)
        key = text[start:] if end < 0 else text[start:end]
        if not key.isprintable() or "\\" in key:
            self._begin("key", pos)
            return self._read_body(text, start, out)
        if end >= 0:
            return self._end_key(key, end, out)
        self._begin("key", pos)
        self._pieces.append(key)
        return self._suspend(text)

    def _begin(self, reading: Literal["key", "value"], pos: int) -> None:
        """A string that is not plain, or that the chunk does not end."""
        self._reading = reading
        self._tolerant = False
        if len(self._stack) < 2:
            self._start = self._base() + pos

    def _more_string(self, text: str, pos: int, out: Out) -> int:
        """The next chunk of a string."""
        if self._growing is not None:
            self._settle()
        if "\\" in text:
            end, piece = jsontext.simple_escapes(text)
            if end < 0:
                return self._read_body(text, pos, out)
        else:
            end = text.find('"')
            piece = text if end < 0 else text[:end]
            if not piece.isprintable():
                return self._read_body(text, pos, out)
            end = len(piece)
        if self._reading == "value":
            if piece:
                self._pieces.append(piece)
                out.append(ArgumentDelta(self.index, self._member, piece))
            if self.watch is None or not self.watch.checked:
                self._growing = self._member
                self._taken = len(self._recent)
        else:
            self._pieces.append(piece)
        return self._end_string(end, out) if end < len(text) else end

    def _more_carefully(self, text: str, pos: int, out: Out) -> int:
        """The same without the second road."""
        if self._growing is not None:
            self._settle()
        return self._read_body(text, pos, out)

    def _read_body(self, text: str, pos: int, out: Out) -> int:
        match: Any = self._bodies[self._tolerant].match(text, pos)  # matches anything, if only nothing
        end: int = match.end()
        if end > pos:
            piece = jsontext.decoded(text, pos, end)
            self._pieces.append(piece)
            if self._reading == "value":
                out.append(ArgumentDelta(self.index, self._member, piece))
        if end == len(text):
            return self._suspend(text)
        if text[end] == '"':
            return self._end_string(end, out)
        if text[end] == "\\":
            return self._on_escape(self, text, end, out)
        return self._raw_character(text, end, out)

    def _suspend(self, text: str) -> int:
        """The chunk ends inside the string."""
        self._inside = self._more
        if self._reading == "value" and not self._held and (self.watch is None or not self.watch.checked):
            self._growing = self._member
            self._taken = len(self._recent)
        else:
            self._growing = None
        self.in_string = True
        return len(text)

    def _end_string(self, pos: int, out: Out) -> int:
        value = "".join(self._pieces)
        self._pieces.clear()
        self._solid = 0
        self._inside = self._growing = None
        self.in_string = False
        reading, self._reading = self._reading, ""
        if reading == "key":
            return self._end_key(value, pos, out)
        start = self._start - self._base() if len(self._stack) < 2 else 0
        return self._put(value, start, pos + 1, out)

    def _end_key(self, key: str, pos: int, out: Out) -> int:
        """A key is complete; its closing quote stands at ``pos``."""
        raise NotImplementedError

    def _odd_escape(self, text: str, pos: int, out: Out) -> int:
        """An escape that the chunk cuts, or that is none."""
        end = jsontext.escape_prefix(text, pos)
        if end == len(text):
            self._hold(text, pos)
            return self._suspend(text)
        code, reason, expected = jsontext.escape_fault(text, pos, end)
        return self._fail(code, reason, end, start=pos, expected=expected)

    def _raw_character(self, text: str, pos: int, out: Out) -> int:
        char = text[pos]
        if char >= "\ud800":
            return self._fail(ErrorCode.LONE_SURROGATE, f"raw surrogate {shown(char)} in a string", pos)
        if not self._repaired(repairs.CONTROL_CHARACTER, pos, self._here(), out):
            reason = f"raw control character {shown(char)} in a string"
            return self._fail(ErrorCode.INVALID_JSON, reason, pos)
        self._tolerant = True
        return self._read_body(text, pos, out)

    # Numbers ----------------------------------------------------------------------------------------------------------

    def _number(self, text: str, pos: int, out: Out) -> int:
        phase, start, end = NUMBER, pos, len(text)
        while pos < end and (step := phase[text[pos]]) is not None:
            phase = step
            pos += 1
        if pos < end:
            return self._end_number(text, pos, phase, text[start:pos], out)
        return self._suspend_number(text, pos, phase, text[start:], out)

    def _more_number(self, text: str, pos: int, out: Out) -> int:
        phase, end = self._phase, len(text)
        while pos < end and (step := phase[text[pos]]) is not None:
            phase = step
            pos += 1
        if pos < end:
            self._inside = None
            return self._end_number(text, pos, phase, self._token + text[:pos], out)
        return self._suspend_number(text, pos, phase, self._token + text, out)

    def _suspend_number(self, text: str, pos: int, phase: Phase, token: str, out: Out) -> int:
        """The chunk ends inside the number, or behind it."""
        if len(token) > MAX_NUMBER:
            return self._odd_number(text, pos, phase, token, out)
        if self.watch is not None:
            self.watch.begin(A_NUMBER, out)
        self._phase, self._token, self._inside = phase, token, Words._more_number
        return pos

    def _end_number(self, text: str, pos: int, phase: Phase, token: str, out: Out) -> int:
        """The character at ``pos`` does not belong to the number."""
        kind, size = phase.kind, len(token)
        if kind is not None and size < _EASY and text[pos] in self._delimiters:
            value = kind(token)
            if kind is int or isfinite(value):
                return self._put(value, pos - size, pos, out)
        return self._odd_number(text, pos, phase, token, out)

    def _odd_number(self, text: str, pos: int, phase: Phase, token: str, out: Out) -> int:
        """A number that is long or out of range, or no number."""
        start = pos - len(token)
        if len(token) > MAX_NUMBER:
            reason = f"a number of more than {MAX_NUMBER} characters"
            return self._fail(ErrorCode.LIMIT_EXCEEDED, reason, start + MAX_NUMBER)
        if phase.kind is None or text[pos] not in self._delimiters:
            reason = (phase.kind is None and FOREIGN.get(text[pos])) or f"unexpected {shown(text[pos])} in a number"
            return self._fail(ErrorCode.INVALID_JSON, reason, pos, expected=self._after_number(phase))
        value = jsontext.number(token, phase.kind)
        if value is None:
            code = ErrorCode.INVALID_JSON if phase.kind is float else ErrorCode.LIMIT_EXCEEDED
            return self._fail(code, "number out of range", pos, start=start)
        return self._put(value, start, pos, out)

    def _after_number(self, phase: Phase) -> tuple[str, ...]:
        """What may come in this phase, in words."""
        return phase.expected or ("a digit", *self._after.expected)

    # Literals ---------------------------------------------------------------------------------------------------------

    def _literal(self, text: str, pos: int, out: Out) -> int:
        word, value = LITERALS[text[pos]]
        if text.startswith(word, pos):
            return self._put(value, pos, pos + len(word), out)
        return self._part_of(word, value, text, pos, out)

    def _part_of(self, word: str, value: bool | None, text: str, pos: int, out: Out) -> int:
        """A word that the chunk cuts, or that goes wrong."""
        if self.watch is not None:
            self.watch.begin(kind_of(value), out)
        have = text[pos : pos + len(word)]
        if word.startswith(have):
            return self._hold(text, pos)
        good = next(n for n, char in enumerate(have) if char != word[n])
        reason = f"unexpected {shown(have[good])} in {word}"
        return self._fail(ErrorCode.INVALID_JSON, reason, pos + good, expected=(f"'{word[good:]}'",))
