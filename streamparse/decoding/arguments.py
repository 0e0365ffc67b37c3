"""The incremental JSON reader: chunks of text in, path events out (rules J).

Theory. The reader is a machine with three parts:

* ``_place``, between two words: what may stand here, as a table from a character to the method that reads what begins
  with it. The tables are at the end of this module. A character that is not in the table is the error.
* ``_inside``, within a word that the last chunk left open (a string, a number, a comment): the method that reads on.
* ``_held``, at most eleven characters that cannot be judged yet (half an escape, half a ``null``, half a ``*/``). They are put
  in front of the next chunk.

A method takes ``(text, pos, out)``, reads as far as it can, appends events to ``out`` and returns the new position. What is
open is an explicit list of containers, so that depth costs memory and never the interpreter's stack (J1).

Operations and their cost:

* ``feed`` is linear in the chunk, whatever the chunks before it were. The first lines of ``feed`` are the fast path:
  a chunk without quote, backslash and control character inside a string is more characters of that string
  (``isprintable`` is the proof that there is no control character and no surrogate).
* A growing string is a list of pieces. Small strings cost ten times their characters, so whenever ``_BLOCK`` characters
  have come, the new pieces are joined into one block: a string of n characters needs about 1.1 n while it grows, and
  2.1 n at its closing quote, where the blocks are joined, once.
* The partial view costs nothing until somebody asks: containers are put into their parents when they open. ``partial``
  copies.
* For the excerpt of an error the last ``EXCERPT`` characters of the input are known at any time, from the same pieces.

What is emitted does not depend on the chunks, once adjacent deltas at one path are joined: no method looks beyond
the chunk, what cannot be decided is held, and an error is reported at the first character that no continuation can
save, with an excerpt that ends there. One error is not at such a place: a number that is out of range is judged when it
is complete.

The rules, where they leave something open:

* A raw surrogate in the input is ``lone_surrogate`` as an escaped one is (J2), also if a second one follows it: nobody
  could encode such a string.
* A number of more than 4,300 characters is ``limit_exceeded``, whatever its kind (see ``jsontext.MAX_NUMBER``).
  Within that, integers are exact. What is too small for a float is 0.0, as in the standard library.
* Text that is only white space is no error (``state`` is ``empty``): what it means is a matter of the wire (C5).
* A code fence that was opened has to be closed; without that, the value is not complete.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from streamparse.decoding import jsontext
from streamparse.decoding import repair as repairs
from streamparse.decoding.jsontext import DELIMITERS, FOREIGN, LITERALS, MAX_NUMBER, NUMBER, Phase, shown
from streamparse.errors import ClosedError, UsageError
from streamparse.events import ArgumentDelta, ArgumentValue, Deviated, ErrorCode, ErrorDetail, Path
from streamparse.limits import DEFAULT_LIMITS, EXCERPT, Limits

JsonEvent: TypeAlias = ArgumentDelta | ArgumentValue | Deviated
"""What a ``JsonDecoder`` says."""

State: TypeAlias = Literal["empty", "incomplete", "complete", "invalid"]
Root: TypeAlias = Literal["object", "container", "any"]

_Out: TypeAlias = list[JsonEvent]
_Read: TypeAlias = "Callable[[JsonDecoder, str, int, _Out], int]"

_MANY: Final = 512
"""So many small chunks, or characters in one chunk, are read before stock is taken: pieces joined, the limit looked at. It
bounds what small strings cost in memory. A token is much smaller; a larger chunk is cheap per character anyway."""

_SHORT: Final = 40
"""Characters of a key that a message shows."""

_EASY: Final = 300
"""Characters of an integer that no interpreter refuses to read, however its own bound is set."""

# What the limit is when nothing may be read any more.
_FAILED: Final = -1
_CLOSED: Final = -2


class JsonDecoder:
    """Reads one JSON value that arrives in pieces of any size, and says what is certain as soon as it is.

    ::

        reader = JsonDecoder()
        for chunk in chunks:
            for event in reader.feed(chunk): ...
        for event in reader.close(): ...
        if reader.state == "complete": use(reader.value)
        else: report(reader.error)

    ``feed`` and ``close`` return ``ArgumentDelta`` for the characters of string values, ``ArgumentValue`` for each value
    at any depth when it is complete, and ``Deviated`` for each repair. The root itself is announced only if it has a
    ``path``. No text makes them raise; what is wrong is in ``error``, and nothing is read behind it.

    Options: ``index`` and ``path`` go into the events (``path`` stands before each path); ``repair`` is the tier of
    tolerance (J5, ``streamparse.decoding.repair``); ``root`` says what the value may be: an ``"object"``, a
    ``"container"`` (an object or an array), or ``"any"`` value.
    """

    __slots__ = (
        "_before",
        "_container",
        "_delimiters",
        "_depth",
        "_fenced",
        "_growing",
        "_held",
        "_inside",
        "_key",
        "_known",
        "_limit",
        "_many",
        "_member",
        "_path",
        "_phase",
        "_pieces",
        "_place",
        "_reading",
        "_recent",
        "_repair",
        "_root",
        "_root_kind",
        "_solid",
        "_stack",
        "_start",
        "_taken",
        "_token",
        "_tolerant",
        "end",
        "error",
        "in_string",
        "index",
        "path",
        "spans",
        "start",
    )

    def __init__(
        self,
        *,
        index: int = 0,
        path: Path = (),
        repair: int = 1,
        root: Root = "object",
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        if repair not in tuple(repairs.Tier):
            raise UsageError(f"repair={repair!r} is no tier; use 0, 1, 2 or 3")
        if root not in _ROOTS:
            raise UsageError(f"root={root!r} is unknown; use one of {', '.join(_ROOTS)}")
        self.index: Final = index
        self.path: Final = path
        self.error: ErrorDetail | None = None
        """What is wrong: set when the text became invalid, and by ``close`` when it is incomplete."""
        self.in_string = False
        """Whether the text so far ends inside a string, a value or a key."""
        self.spans: dict[str, tuple[int, int]] = {}
        """Start and end, in characters of the input, of each complete member of the root object."""
        self.start: int | None = None
        """Where the root value starts in the input, once it has."""
        self.end: int | None = None
        """Where the root value ends, once it is complete."""
        self._repair = repair
        self._root_kind = root
        self._depth = limits.depth
        self._limit = limits.arguments

        self._place = _ROOTS[root]
        self._inside: _Read | None = None
        self._held = ""
        self._fenced = False

        self._root: Any = None
        self._container: Any = None  # the innermost open one
        self._stack: list[Any] = []  # the ones around it, outermost first: None, the root, ...
        self._path = path  # of the innermost open container
        self._key = ""  # the last key
        self._member = path  # the path of the last key, or of the string that is read

        self._reading: Literal["", "key", "value"] = ""
        self._pieces: list[str] = []  # the characters of the string that is read
        self._solid = 0  # how many pieces are blocks
        self._tolerant = False  # it has had a raw control character
        self._growing: Path | None = None  # its path, if the fast path may go on with it
        self._start = 0  # the offset of the member of the root that is read, if it is a string or container
        self._phase = NUMBER
        self._token = ""  # the text of the number that is read
        self._delimiters = DELIMITERS | set("/`") if repair else DELIMITERS

        self._recent: list[str] = []  # the last chunks; the very last is the one that is read
        self._taken = 0  # the first of them that the fast path took, and that is not in _pieces
        self._before = 0  # characters before those
        self._known = 0  # ... and that many of those, counted
        self._many = 0
        self._set_pace(self._limit)

    # The caller's side ------------------------------------------------------------------------------------------------

    def feed(self, text: str) -> list[JsonEvent]:
        """More text. Returns what it makes certain; the list belongs to the caller.

        After an error it returns nothing and keeps nothing. Raises ``ClosedError`` after ``close``.
        """
        if (
            (path := self._growing) is not None
            and '"' not in text
            and "\\" not in text
            and text.isprintable()
            and len(text) + len(recent := self._recent) < self._many
            and text
        ):
            recent.append(text)
            return [ArgumentDelta(self.index, path, text)]
        return self._feed(text)

    def close(self) -> list[JsonEvent]:
        """The end of the text: decides whether it was complete. Once; a second time it returns nothing."""
        out: _Out = []
        if self._limit != _CLOSED and self.error is None:
            self._end_of_text(out)
        self._stop(_CLOSED)
        return out

    @property
    def state(self) -> State:
        """``empty`` (nothing but white space so far), ``incomplete``, ``complete`` (only white space may follow) or
        ``invalid``."""
        if self.error is not None:
            return "incomplete" if self.error.code is ErrorCode.UNTERMINATED_JSON else "invalid"
        if self._place is _END and not self._held and self._inside in (None, JsonDecoder._line_comment):
            return "complete"
        untouched = self._place is _ROOTS[self._root_kind] and self._inside is None and not self._held
        return "empty" if untouched else "incomplete"

    @property
    def value(self) -> Any:
        """The value; the object that the events showed, not a copy. Raises ``UsageError`` unless it is complete."""
        if self.state != "complete":
            raise UsageError(f"the JSON text is {self.state}, so it has no value; see .error and .partial")
        return self._root

    @property
    def partial(self) -> Any:
        """What is certain so far, as a copy that belongs to the caller; None if that is nothing.

        Strings show the characters that have come. A number or a literal appears when it is complete, a key with its
        value (J1). A later view only grows. The cost is in the size of the view, and only for those who ask.
        """
        text = self._string_so_far()
        if self._container is None:
            return _copied(self._root, None)[0] if text is None else text
        root, container = _copied(self._root, self._container)
        if text is None:
            return root
        if isinstance(container, dict):
            container[self._key] = text
        else:
            container.append(text)
        return root

    def _string_so_far(self) -> str | None:
        if self._reading != "value":
            return None
        return "".join(self._pieces if self._growing is None else self._pieces + self._recent[self._taken :])

    # The machine ------------------------------------------------------------------------------------------------------

    def _feed(self, text: str) -> list[JsonEvent]:
        if self._held:
            text = self._held + text
            self._held = ""
        recent = self._recent
        recent.append(text)
        end = len(text)
        if end + len(recent) > self._many and (left := self._take_stock(text)) < end:
            return self._overflow(text, left)
        out: _Out = []
        inside = self._inside
        pos = 0 if inside is None else inside(self, text, 0, out)
        place = self._place
        while pos < end:
            step = place[text[pos]]
            if step is None:  # a blank
                pos += 1
            else:
                pos = step(self, text, pos, out)
                place = self._place
        return out

    def _hold(self, text: str, pos: int) -> int:
        """Keep the end of the chunk for the next one."""
        self._held = text[pos:]
        self._recent[-1] = text[:pos]
        return len(text)

    def _base(self) -> int:
        """The offset of the chunk that is read. Each chunk is counted once, when somebody asks."""
        recent, known = self._recent, self._known
        last = len(recent) - 1
        if known < last:
            self._before += sum(map(len, recent[known:last]))
            self._known = last
        return self._before

    def _settle(self) -> None:
        """Put what the fast path took where the rest of the machine looks for it."""
        recent = self._recent
        if (last := len(recent) - 1) > self._taken:
            self._pieces.append("".join(recent[self._taken : last]))
            self._taken = last

    def _take_stock(self, text: str) -> int:
        """Join small pieces, forget the input but for its end, and say how much of the chunk may be read."""
        recent, taken = self._recent, self._taken
        if self._growing is not None and len(recent) - 1 > taken:
            self._settle()
            recent[taken:-1] = self._pieces[-1:]  # they are joined already
        left = self._limit - self._base()
        recent[:-1] = [self._excerpt("")]
        self._known = self._taken = 1
        solid = self._solid
        if len(self._pieces) > solid:
            self._pieces[solid:] = ["".join(self._pieces[solid:])]
            self._solid = solid + 1
        self._set_pace(left - len(text))
        return left

    def _set_pace(self, left: int) -> None:
        """Near the limit stock is taken at each chunk, so that the limit is exact whatever the chunks are."""
        self._many = _MANY if left > _MANY * _MANY else 0

    def _overflow(self, text: str, left: int) -> list[JsonEvent]:
        """The chunk goes beyond the limit, or comes after an error or ``close``, behind which nothing may be read."""
        self._recent.pop()
        if self._limit == _CLOSED:
            raise ClosedError("feed after close: a reader reads one text; make a new one for the next")
        if self.error is not None:
            return []
        out = self.feed(text[:left])
        if self.error is None:
            reason = f"more than {self._limit} characters (limits.arguments)"
            held = len(self._held)
            self._recent.append(self._held + text[left])
            self._fail(ErrorCode.LIMIT_EXCEEDED, reason, held)
        return out

    def _stop(self, limit: int) -> None:
        """Nothing is read from here on."""
        if self._growing is not None:
            self._recent.append("")
            self._settle()
        self._inside = self._growing = None
        self._held = ""
        self._recent.clear()
        self._limit = limit
        self._many = -1

    def _end_of_text(self, out: _Out) -> None:
        self._recent.append(self._held)
        if self._inside is JsonDecoder._more_number and self._container is None and self._phase.kind:
            self._more_number("\n", 0, out)
        if self.error is None and self.state == "incomplete":
            reason, expected = self._cut()
            self._fail(ErrorCode.UNTERMINATED_JSON, reason, len(self._held), expected=expected)

    def _cut(self) -> tuple[str, tuple[str, ...]]:
        """What the end of the text cuts, and what would have gone on."""
        if self._reading:
            return f"end of text inside a {'string' if self._reading == 'value' else 'key'}", ("'\"'",)
        if self._inside is JsonDecoder._more_number:
            return "end of text inside a number", self._phase.expected or ("a digit", *self._after())
        if self._inside is JsonDecoder._block_comment:
            return "end of text inside a comment", ("'*/'",)
        return "end of text", self._place.expected

    def _after(self) -> tuple[str, ...]:
        """What may follow a value here."""
        if self._container is None:
            return _END.expected
        return (_AFTER_MEMBER if type(self._container) is dict else _AFTER_ITEM).expected

    # Errors -----------------------------------------------------------------------------------------------------------

    def _fail(
        self,
        code: ErrorCode,
        reason: str,
        pos: int,
        *,
        start: int | None = None,
        path: Path | None = None,
        expected: tuple[str, ...] = (),
    ) -> int:
        """The character at ``pos`` of the chunk shows an error, which began at ``start``. Returns a position behind any."""
        self.error = ErrorDetail(
            code,
            reason,
            self._base() + (pos if start is None else start),
            expected=expected,
            excerpt=jsontext.printable(self._excerpt(self._recent[-1][: pos + 1])),
            path=self._here() if path is None else path,
        )
        self.in_string = False
        self._stop(_FAILED)
        return sys.maxsize

    def _here(self) -> Path:
        """The path of the value that is awaited or read; of its container, if there is none."""
        if self._reading == "key" or not self._place.member:
            return self._path
        if type(self._container) is list:
            return self._path + (len(self._container),)
        return self._member

    def _excerpt(self, text: str) -> str:
        """The last characters up to the end of ``text``, which belongs to the chunk that is read."""
        before = "".join(self._recent[:-1])[-EXCERPT:] if len(text) < EXCERPT else ""
        return (before + text)[-EXCERPT:]

    def _reject(self, text: str, pos: int, out: _Out) -> int:
        place = self._place
        if place.code is ErrorCode.TRAILING_TEXT:
            reason = "text after the value"
        else:
            reason = (place.member and FOREIGN.get(text[pos])) or f"unexpected {shown(text[pos])}"
        return self._fail(place.code, reason, pos, expected=place.expected)

    def _reject_root(self, text: str, pos: int, out: _Out) -> int:
        kind = _KINDS.get(text[pos], "a number")
        wanted = "an object" if self._root_kind == "object" else "an object or an array"
        reason = f"the top level is {kind}, not {wanted}"
        return self._fail(ErrorCode.NOT_AN_OBJECT, reason, pos, expected=self._place.expected)

    # Containers -------------------------------------------------------------------------------------------------------

    def _space(self, text: str, pos: int, out: _Out) -> int:
        """A line break, and the indentation after it."""
        return jsontext.SPACE.match(text, pos).end()  # type: ignore[union-attr]  # it always matches

    def _comma_in_object(self, text: str, pos: int, out: _Out) -> int:
        self._place = _KEY
        return pos + 1

    def _comma_in_array(self, text: str, pos: int, out: _Out) -> int:
        self._place = _ITEM
        return pos + 1

    def _colon(self, text: str, pos: int, out: _Out) -> int:
        self._place = _VALUE
        return pos + 1

    def _open_object(self, text: str, pos: int, out: _Out) -> int:
        return self._open({}, _FIRST_KEY, pos)

    def _open_array(self, text: str, pos: int, out: _Out) -> int:
        return self._open([], _FIRST_ITEM, pos)

    def _open(self, container: Any, place: _Place, pos: int) -> int:
        stack, parent = self._stack, self._container
        if len(stack) >= self._depth:
            reason = f"nesting deeper than {self._depth} levels, the greatest depth (limits.depth)"
            return self._fail(ErrorCode.LIMIT_EXCEEDED, reason, pos)
        if type(parent) is dict:
            parent[self._key] = container
            self._path = self._member
        elif parent is None:
            self._root = container
            self.start = self._base() + pos
        else:
            self._path = self._path + (len(parent),)
            parent.append(container)
        if parent is self._root:
            self._start = self._base() + pos
        stack.append(parent)
        self._container = container
        self._place = place
        return pos + 1

    def _shut(self, text: str, pos: int, out: _Out) -> int:
        container, path = self._container, self._path
        parent = self._container = self._stack.pop()
        pos += 1
        if parent is None:
            return self._end_root(container, pos, out)
        out.append(ArgumentValue(self.index, path, container))
        self._path = path[:-1]
        if type(parent) is list:
            self._place = _AFTER_ITEM
            return pos
        self._place = _AFTER_MEMBER
        if parent is self._root:
            self.spans[path[-1]] = (self._start, self._base() + pos)  # type: ignore[index]  # a key
        return pos

    def _shut_after_comma(self, text: str, pos: int, out: _Out) -> int:
        if not self._repaired(repairs.TRAILING_COMMA, pos, self._path, out):
            return self._reject(text, pos, out)
        return self._shut(text, pos, out)

    def _put(self, value: Any, start: int, end: int, out: _Out) -> int:
        """A string, number or literal is complete. It began at ``start``, counted from the chunk that is read."""
        container = self._container
        if type(container) is list:
            out.append(ArgumentValue(self.index, self._path + (len(container),), value))
            container.append(value)
            self._place = _AFTER_ITEM
            return end
        if container is None:
            self._root = value
            self.start = self._base() + start
            return self._end_root(value, end, out)
        out.append(ArgumentValue(self.index, self._member, value))
        container[self._key] = value
        self._place = _AFTER_MEMBER
        if container is self._root:
            base = self._base()
            self.spans[self._key] = (base + start, base + end)
        return end

    def _end_root(self, value: Any, end: int, out: _Out) -> int:
        self.end = self._base() + end
        self._place = _FENCE_END if self._fenced else _END
        if self.path:
            out.append(ArgumentValue(self.index, self.path, value))
        return end

    # Strings ----------------------------------------------------------------------------------------------------------

    def _open_string(self, text: str, pos: int, out: _Out) -> int:
        container = self._container
        if type(container) is list:
            self._member = self._path + (len(container),)
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

    def _open_key(self, text: str, pos: int, out: _Out) -> int:
        start = pos + 1
        end = text.find('"', start)
        key = text[start:] if end < 0 else text[start:end]
        if not key.isprintable() or "\\" in key:
            self._begin("key", pos)
            return self._read_body(text, start, out)
        if end >= 0:
            return self._end_key(key, end)
        self._begin("key", pos)
        self._pieces.append(key)
        return self._suspend(text)

    def _begin(self, reading: Literal["key", "value"], pos: int) -> None:
        """A string that is not plain, or that the chunk does not end."""
        self._reading = reading
        self._tolerant = False
        if len(self._stack) < 2:
            self._start = self._base() + pos

    def _more_string(self, text: str, pos: int, out: _Out) -> int:
        """The next chunk of a string. What is not simple is left to ``_read_body``."""
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
        if piece:
            self._pieces.append(piece)
            if self._reading == "value":
                out.append(ArgumentDelta(self.index, self._member, piece))
        return self._end_string(end, out) if end < len(text) else self._suspend(text)

    def _read_body(self, text: str, pos: int, out: _Out) -> int:
        end = jsontext.body_end(text, pos, self._tolerant)
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
            return self._half_escape(text, end)
        return self._raw_character(text, end, out)

    def _suspend(self, text: str) -> int:
        """The chunk ends inside the string."""
        self._inside = JsonDecoder._more_string
        if self._reading == "value" and not self._held:
            self._growing = self._member
            self._taken = len(self._recent)
        else:
            self._growing = None
        self.in_string = True
        return len(text)

    def _end_string(self, pos: int, out: _Out) -> int:
        value = "".join(self._pieces)
        self._pieces.clear()
        self._solid = 0
        self._inside = self._growing = None
        self.in_string = False
        reading, self._reading = self._reading, ""
        if reading == "key":
            return self._end_key(value, pos)
        start = self._start - self._base() if len(self._stack) < 2 else 0
        return self._put(value, start, pos + 1, out)

    def _end_key(self, key: str, pos: int) -> int:
        self._member = self._path + (key,)
        if key in self._container:
            reason = f"the key {_short(key)} was given before"
            return self._fail(ErrorCode.DUPLICATE_KEY, reason, pos, path=self._member)
        self._key = key
        self._place = _COLON
        return pos + 1

    def _half_escape(self, text: str, pos: int) -> int:
        end = jsontext.escape_prefix(text, pos)
        if end == len(text):
            self._hold(text, pos)
            return self._suspend(text)
        code, reason, expected = jsontext.escape_fault(text, pos, end)
        return self._fail(code, reason, end, start=pos, expected=expected)

    def _raw_character(self, text: str, pos: int, out: _Out) -> int:
        char = text[pos]
        if char >= "\ud800":
            return self._fail(ErrorCode.LONE_SURROGATE, f"raw surrogate {shown(char)} in a string", pos)
        path = self._member if self._reading == "value" else self._path
        if not self._repaired(repairs.CONTROL_CHARACTER, pos, path, out):
            reason = f"raw control character {shown(char)} in a string"
            return self._fail(ErrorCode.INVALID_JSON, reason, pos)
        self._tolerant = True
        return self._read_body(text, pos, out)

    # Numbers and literals ---------------------------------------------------------------------------------------------

    def _number(self, text: str, pos: int, out: _Out) -> int:
        phase, start, end = NUMBER, pos, len(text)
        while pos < end and (step := phase[text[pos]]) is not None:
            phase = step
            pos += 1
        return self._end_number(text, pos, phase, text[start:pos], out)

    def _more_number(self, text: str, pos: int, out: _Out) -> int:
        phase, end = self._phase, len(text)
        while pos < end and (step := phase[text[pos]]) is not None:
            phase = step
            pos += 1
        self._inside = None
        return self._end_number(text, pos, phase, self._token + text[:pos], out)

    def _end_number(self, text: str, pos: int, phase: Phase, token: str, out: _Out) -> int:
        size = len(token)
        if pos == len(text) and size <= MAX_NUMBER:  # it may go on
            self._phase, self._token, self._inside = phase, token, JsonDecoder._more_number
            return pos
        if phase.kind is int and size < _EASY and text[pos] in self._delimiters:
            return self._put(int(token), pos - size, pos, out)
        return self._odd_number(text, pos, phase, token, out)

    def _odd_number(self, text: str, pos: int, phase: Phase, token: str, out: _Out) -> int:
        """A number that is not a short integer, or no number at all."""
        start = pos - len(token)
        if len(token) > MAX_NUMBER:
            reason = f"a number of more than {MAX_NUMBER} characters"
            return self._fail(ErrorCode.LIMIT_EXCEEDED, reason, start + MAX_NUMBER)
        if phase.kind is None or text[pos] not in self._delimiters:
            reason = (phase.kind is None and FOREIGN.get(text[pos])) or f"unexpected {shown(text[pos])} in a number"
            expected = phase.expected or ("a digit", *self._after())
            return self._fail(ErrorCode.INVALID_JSON, reason, pos, expected=expected)
        value = jsontext.number(token, phase.kind)
        if value is None:
            code = ErrorCode.INVALID_JSON if phase.kind is float else ErrorCode.LIMIT_EXCEEDED
            return self._fail(code, "number out of range", pos, start=start)
        return self._put(value, start, pos, out)

    def _literal(self, text: str, pos: int, out: _Out) -> int:
        word, value = LITERALS[text[pos]]
        if text.startswith(word, pos):
            return self._put(value, pos, pos + len(word), out)
        have = text[pos : pos + len(word)]
        if word.startswith(have):
            return self._hold(text, pos)
        good = next(n for n, char in enumerate(have) if char != word[n])
        reason = f"unexpected {shown(have[good])} in {word}"
        return self._fail(ErrorCode.INVALID_JSON, reason, pos + good, expected=(f"'{word[good:]}'",))

    # Repairs (J5, tier 1) ---------------------------------------------------------------------------------------------

    def _repaired(self, kind: str, pos: int, path: Path, out: _Out) -> bool:
        if not repairs.allows(self._repair, kind):
            return False
        out.append(Deviated(self.index, repairs.repaired(kind, self._base() + pos, path)))
        return True

    def _slash(self, text: str, pos: int, out: _Out) -> int:
        opener = text[pos : pos + 2]
        if opener == "/" and repairs.allows(self._repair, repairs.COMMENT):
            return self._hold(text, pos)
        if opener not in _COMMENTS or not self._repaired(repairs.COMMENT, pos, self._path, out):
            return self._reject(text, pos, out)
        self._inside = _COMMENTS[opener]
        return self._inside(self, text, pos + 2, out)

    def _line_comment(self, text: str, pos: int, out: _Out) -> int:
        match = jsontext.LINE_BREAK.search(text, pos)
        if match is None:
            return len(text)
        self._inside = None
        return match.end()

    def _block_comment(self, text: str, pos: int, out: _Out) -> int:
        end = text.find("*/", pos)
        if end < 0:
            return self._hold(text, len(text) - 1) if text.endswith("*", pos) else len(text)
        self._inside = None
        return end + 2

    def _fence(self, text: str, pos: int, out: _Out) -> int:
        """Three backticks before the value, or after the value that they opened."""
        ticks = text[pos : pos + 3]
        if not repairs.allows(self._repair, repairs.CODE_FENCE):
            return self._reject(text, pos, out)
        if ticks != "```":
            whole = not "```".startswith(ticks) or pos + len(ticks) < len(text)
            return self._reject(text, pos, out) if whole else self._hold(text, pos)
        if self._place is _FENCE_END:
            self._place = _END
        else:
            self._fenced = True
            self._place = _FENCED_ROOTS[self._root_kind]
            self._repaired(repairs.CODE_FENCE, pos, self.path, out)
        return pos + 3

    def _fence_word(self, text: str, pos: int, out: _Out) -> int:
        """``json`` after an opening fence."""
        have = text[pos : pos + 4]
        if have.lower() == "json":
            self._place = _PLAIN_ROOTS[self._root_kind]
            return pos + 4
        if "json".startswith(have.lower()) and pos + len(have) == len(text):
            return self._hold(text, pos)
        return self._reject(text, pos, out)


def _short(key: str) -> str:
    """A key for a message, bounded and printable."""
    return repr(key) if len(key) <= _SHORT else f"{key[:_SHORT]!r}…"


def _copied(value: Any, wanted: Any) -> tuple[Any, Any]:
    """A deep copy, and in it the copy of the container ``wanted``. No recursion (J1)."""
    if not isinstance(value, dict | list):
        return value, None
    root: Any = type(value)()
    found = root
    todo = [(value, root)]
    while todo:
        source, copy = todo.pop()
        if source is wanted:
            found = copy
        for key, item in source.items() if isinstance(source, dict) else enumerate(source):
            if isinstance(item, dict | list):
                inner: Any = type(item)()
                todo.append((item, inner))
                item = inner
            if isinstance(copy, dict):
                copy[key] = item
            else:
                copy.append(item)
    return root, found


# The tables ------------------------------------------------------------------------------------------------------------


class _Place(dict[str, "_Read | None"]):
    """What may stand between two words, by its first character.

    ``member`` says that a value is awaited, or has just been named (then an error is about that value, not about its container).
    """

    __slots__ = ("code", "expected", "member")

    def __init__(
        self,
        table: dict[str, _Read],
        *expected: str,
        member: bool = False,
        code: ErrorCode = ErrorCode.INVALID_JSON,
    ) -> None:
        super().__init__(_BLANK | table)
        self.expected = expected
        self.member = member
        self.code = code

    def __missing__(self, char: str) -> _Read:
        return JsonDecoder._reject


_BLANK: Final[dict[str, _Read | None]] = {
    **dict.fromkeys(" \t\r"),
    "\n": JsonDecoder._space,
    "/": JsonDecoder._slash,
}
_CONTAINERS: Final[dict[str, _Read]] = {"{": JsonDecoder._open_object, "[": JsonDecoder._open_array}
_SCALARS: Final[dict[str, _Read]] = {
    '"': JsonDecoder._open_string,
    **dict.fromkeys("-0123456789", JsonDecoder._number),
    **dict.fromkeys(LITERALS, JsonDecoder._literal),
}
_ANY: Final = _CONTAINERS | _SCALARS

_VALUE = _Place(_ANY, "a JSON value", member=True)
_FIRST_ITEM = _Place(_ANY | {"]": JsonDecoder._shut}, "a JSON value", "']'", member=True)
_ITEM = _Place(_ANY | {"]": JsonDecoder._shut_after_comma}, "a JSON value", member=True)
_AFTER_ITEM = _Place({",": JsonDecoder._comma_in_array, "]": JsonDecoder._shut}, "','", "']'")
_FIRST_KEY = _Place({'"': JsonDecoder._open_key, "}": JsonDecoder._shut}, "a key in double quotes", "'}'")
_KEY = _Place({'"': JsonDecoder._open_key, "}": JsonDecoder._shut_after_comma}, "a key in double quotes")
_COLON = _Place({":": JsonDecoder._colon}, "':'", member=True)
_AFTER_MEMBER = _Place({",": JsonDecoder._comma_in_object, "}": JsonDecoder._shut}, "','", "'}'")
_END = _Place({}, "end of text", code=ErrorCode.TRAILING_TEXT)
_FENCE_END = _Place({"`": JsonDecoder._fence}, "'```'", code=ErrorCode.TRAILING_TEXT)

_NO_SCALAR: Final[dict[str, _Read]] = dict.fromkeys(_SCALARS, JsonDecoder._reject_root)
_NO_ARRAY: Final = _NO_SCALAR | _CONTAINERS | {"[": JsonDecoder._reject_root}
_KINDS: Final = {"[": "an array", '"': "a string", "t": "true", "f": "false", "n": "null"}


def _roots(extra: dict[str, _Read]) -> dict[str, _Place]:
    """Where the root value is awaited, for each kind of root."""
    return {
        "object": _Place(_NO_ARRAY | extra, "'{'", member=True),
        "container": _Place(_NO_SCALAR | _CONTAINERS | extra, "'{'", "'['", member=True),
        "any": _Place(_ANY | extra, "a JSON value", member=True),
    }


_ROOTS: Final = _roots({"`": JsonDecoder._fence})
_FENCED_ROOTS: Final = _roots(dict.fromkeys("jJ", JsonDecoder._fence_word))
_PLAIN_ROOTS: Final = _roots({})
_COMMENTS: Final[dict[str, _Read]] = {"//": JsonDecoder._line_comment, "/*": JsonDecoder._block_comment}
