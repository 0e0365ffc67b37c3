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

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from streamparse.decoding import jsontext, repair as repairs
from streamparse.decoding.jsontext import DELIMITERS, FOREIGN, LITERALS, NUMBER, Phase, body, decoded, shown
from streamparse.errors import ClosedError, UsageError
from streamparse.events import ArgumentDelta, ArgumentValue, Deviated, ErrorCode, ErrorDetail, Path
from streamparse.limits import DEFAULT_LIMITS, EXCERPT, Limits

JsonEvent: TypeAlias = ArgumentDelta | ArgumentValue | Deviated
"""What a ``JsonDecoder`` says."""

State: TypeAlias = Literal["empty", "incomplete", "complete", "invalid"]
Root: TypeAlias = Literal["object", "container", "any"]

_Out: TypeAlias = list[JsonEvent]
_Read: TypeAlias = "Callable[[JsonDecoder, str, int, _Out], int]"
_Container: TypeAlias = dict[str, Any] | list[Any]

_SMALL: Final = 512
"""A chunk of fewer characters may take the fast path. Tokens are small; what is larger is cheap per character anyway."""

_MANY: Final = 128
"""So many chunks are kept one by one before they are joined: it bounds what small strings cost in memory."""


class JsonDecoder:
    """Reads one JSON value that arrives in pieces of any size, and says what is certain as soon as it is.

    ::

        reader = JsonDecoder()
        for chunk in chunks:
            for event in reader.feed(chunk): ...
        for event in reader.close(): ...
        if reader.state == "complete": use(reader.value)
        else: report(reader.error)

    ``feed`` and ``close`` return ``ArgumentDelta`` for the characters of string values, ``ArgumentValue`` for each value at
    any depth when it is complete, and ``Deviated`` for each repair. The root itself is announced only if it has a ``path``.
    They never raise on any text; what is wrong is in ``error``, and nothing is read behind it.

    Options: ``index`` and ``path`` go into the events (``path`` stands before each path); ``repair`` is the tier of tolerance (J5,
    ``streamparse.decoding.repair``); ``root`` says what the value may be: an object, an object or an array, or anything.
    """

    __slots__ = (
        "_base",
        "_body",
        "_closed",
        "_token",
        "_container",
        "_delimiters",
        "_fenced",
        "_growing",
        "_held",
        "_inside",
        "_key",
        "_limit","_depth","_dead",
        "_member",
        "_opened",
        "_path",
        "_phase",
        "_pieces",
        "_place",
        "_reading",
        "_recent",
        "_repair",
        "_offset",
        "_root",
        "_root_kind",
        "_run",
        "_solid",
        "_stack",
        "_start",
        "_near",
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
        self._limit = limits.arguments
        self._depth = limits.depth
        self._repair = repair
        self._root_kind = root
        self._closed = False
        self._dead = False

        self._place: _Place = _ROOTS[root]
        self._inside: _Read | None = None
        self._held = ""
        self._fenced = False

        self._root: Any = None
        self._container: _Container | None = None  # the innermost open one
        self._stack: list[_Container | None] = []  # the ones around it
        self._path = path  # of the innermost open container
        self._member = path  # of the value that is read or comes next
        self._key = ""  # its key, in an object
        self._start = 0  # offset of the string or number that is read
        self._opened = 0  # offset of the container that is a member of the root, and open

        self._growing: Path | None = None  # the fast path is open: the path of the string
        self._run: list[str] = []  # chunks that it took: raw text and characters at once
        self._offset = 0  # characters before them
        self._near = limits.arguments - _MANY * _SMALL  # from here on each chunk is compared with the limit

        self._reading: Literal["", "key", "value"] = ""
        self._pieces: list[str] = []  # of the string or number that is read
        self._solid = 0  # how many of them are blocks
        self._body = body(False)
        self._phase = NUMBER
        self._token=''
        self._delimiters = DELIMITERS | set("/`") if repair else DELIMITERS
        self._recent: deque[str] = deque(maxlen=EXCERPT)  # the chunks before this one, for excerpts

    # The caller's side ---------------------------------------------------------------------------------------------

    def feed(self, text: str) -> list[JsonEvent]:
        """More text. Returns what it makes certain; the list belongs to the caller.

        After an error it returns nothing and keeps nothing. Raises ``ClosedError`` after ``close``.
        """
        if (
            (path := self._growing) is not None
            and '"' not in text
            and "\\" not in text
            and text.isprintable()
            and 0 < len(text) < _SMALL
            and len(run := self._run) < _MANY
        ):
            run.append(text)
            return [ArgumentDelta(self.index, path, text)]
        return self._feed(text)

    def close(self) -> list[JsonEvent]:
        """The end of the text: decides whether it was complete. Once; after that it returns nothing."""
        out: _Out = []
        if self._closed:
            return out
        if self._run:
            self._settle()
        self._closed = True
        if self.error is None:
            self._end_of_text(out)
        self._inside, self._growing, self._held = None, None, ""
        return out

    @property
    def state(self) -> State:
        """``empty`` (nothing but white space so far), ``incomplete``, ``complete`` (only white space may follow) or ``invalid``."""
        if self.error is not None and self.error.code is not ErrorCode.UNTERMINATED_JSON:
            return "invalid"
        if self._place is _END and not self._held and self._inside in (None, JsonDecoder._line_comment):
            return "complete"
        untouched = self._place is _ROOTS[self._root_kind] and self._inside is None and not self._held
        return "empty" if untouched and not self._fenced else "incomplete"

    @property
    def value(self) -> Any:
        """The value. It is the object that the events showed, not a copy. Raises ``UsageError`` unless it is complete."""
        if self.state != "complete":
            raise UsageError(f"the JSON text is {self.state}: there is no value; look at .error, or at .partial")
        return self._root

    @property
    def partial(self) -> Any:
        """What is certain so far, as a copy that belongs to the caller; None if that is nothing.

        Strings show the characters that have come. A number or a literal appears when it is complete, a key with its
        value (J1). A later view only grows. Costs time in the size of the value, not of the stream.
        """
        text = self._string_so_far()
        if self._container is None:
            return _copied(self._root, None)[0] if text is None else text
        root, open_ = _copied(self._root, self._container)
        if text is not None:
            if isinstance(open_, dict):
                open_[self._key] = text
            else:
                open_.append(text)
        return root

    def _string_so_far(self) -> str | None:
        return "".join(self._pieces + self._run) if self._reading == "value" else None

    # The machine ---------------------------------------------------------------------------------------------------

    def _feed(self, chunk: str) -> list[JsonEvent]:
        if self._run:
            self._settle()
        if self._dead:
            return self._refuse()
        self._base = base = self._offset
        self._offset = base + len(chunk)
        if self._offset > self._limit:
            return self._over(chunk)
        out: _Out = []
        if self._held:
            text = self._take_held(chunk)
        else:
            text = chunk
        if self._inside is None:
            pos = 0
        else:
            pos = self._inside(self, text, 0, out)
        place = self._place
        end = len(text)
        while pos < end:
            step = place[text[pos]]
            if type(step) is _Place:
                self._place = place = step
                pos += 1
            else:
                pos = step(self, text, pos, out)
                place = self._place
        self._recent.append(chunk if end < _SMALL else chunk[-EXCERPT:])
        return out

    def _refuse(self) -> list[JsonEvent]:
        if self._closed:
            raise ClosedError("the reader is closed; make a new one for the next text")
        return []

    def _take_held(self, chunk: str) -> str:
        text = self._held + chunk
        self._base -= len(self._held)
        self._held = ""
        return text

    def _over(self, chunk: str) -> list[JsonEvent]:
        """A chunk that goes beyond the limit: read what it leaves."""
        self._offset -= len(chunk)
        left = self._limit - self._offset
        out = self._feed(chunk[:left])
        if self.error is None:
            self._base = self._offset
            self._offset += 1
            reason = f"more than {self._limit} characters (limits.arguments)"
            self._fail(ErrorCode.LIMIT_EXCEEDED, reason, chunk[left:], 0)
        return out

    def _settle(self) -> None:
        """Put what the fast path took where the rest of the machine looks for it."""
        text = "".join(self._run)
        self._run.clear()
        self._offset += len(text)
        self._pieces.append(text)
        self._recent.append(text[-EXCERPT:])

    def _compact(self) -> None:
        """Join small pieces into a block."""
        solid = self._solid = self._solid + 1
        self._pieces[solid - 1 :] = ["".join(self._pieces[solid - 1 :])]

    def _end_of_text(self, out: _Out) -> None:
        self._base = self._offset
        if self._inside is JsonDecoder._number and self._container is None and self._phase.kind:
            self._end_number("", 0, out)
        if self.error is None and self.state == "incomplete":
            reason, expected = self._open_end()
            self._fail(ErrorCode.UNTERMINATED_JSON, reason, "", 0, expected=expected)

    def _open_end(self) -> tuple[str, tuple[str, ...]]:
        """What the end of the text cuts, and what would have gone on."""
        if self._reading:
            return f"end of text inside a {'string' if self._reading == 'value' else 'key'}", ("'\"'",)
        if self._inside is JsonDecoder._number:
            return "end of text inside a number", self._phase.expected or self._after()
        if self._inside is JsonDecoder._block_comment:
            return "end of text inside a comment", ("'*/'",)
        return "end of text", self._place.expected

    def _after(self) -> tuple[str, ...]:
        return (_AFTER_MEMBER if type(self._container) is dict else _AFTER_ITEM).expected

    # Errors --------------------------------------------------------------------------------------------------------

    def _fail(
        self,
        code: ErrorCode,
        reason: str,
        text: str,
        pos: int,
        *,
        at: int | None = None,
        path: Path | None = None,
        expected: tuple[str, ...] = (),
    ) -> int:
        """The error that the character at ``pos`` shows; ``at`` is its offset in the input, if that is not the same."""
        if path is None:
            path = self._member if self._reading != "key" and self._place.member else self._path
        offset = self._base + pos
        self.error = ErrorDetail(
            code,
            reason,
            offset if at is None else at,
            expected=expected,
            excerpt=self._excerpt(text, pos + 1),
            path=path,
        )
        self._inside, self._growing, self._held = None, None, ""
        self.in_string = False
        return len(text)

    def _excerpt(self, text: str, end: int) -> str:
        """The last characters before ``end``. Surrogates become U+FFFD: an error has to be printable."""
        piece = text[:end]
        if len(piece) < EXCERPT:
            before = "".join(self._recent)
            piece = before[: len(before) - ...] + piece
        return jsontext.SURROGATE.sub("\ufffd", piece[-EXCERPT:])

    def _reject(self, text: str, pos: int, out: _Out) -> int:
        place = self._place
        if place.code is ErrorCode.TRAILING_TEXT:
            reason = "text after the value"
        else:
            reason = FOREIGN.get(text[pos], "") if place.member else ""
        return self._fail(
            place.code, reason or f"unexpected {shown(text[pos])!r}", text, pos, expected=place.expected
        )

    def _reject_root(self, text: str, pos: int, out: _Out) -> int:
        kind = _KINDS.get(text[pos], "a number")
        wanted = "an object" if self._root_kind == "object" else "an object or an array"
        reason = f"the top level is {kind}, not {wanted}"
        return self._fail(ErrorCode.NOT_AN_OBJECT, reason, text, pos, expected=self._place.expected)

    # Between words -------------------------------------------------------------------------------------------------

    def _space(self, text: str, pos: int, out: _Out) -> int:
        match = jsontext.SPACE.match(text, pos)
        return match.end() if match else pos

    # Containers ----------------------------------------------------------------------------------------------------

    def _open_object(self, text: str, pos: int, out: _Out) -> int:
        return self._open({}, _FIRST_KEY, text, pos)

    def _open_array(self, text: str, pos: int, out: _Out) -> int:
        return self._open([], _FIRST_ITEM, text, pos)

    def _open(self, container: _Container, place: _Place, text: str, pos: int) -> int:
        stack, parent = self._stack, self._container
        if len(stack) >= self._depth:
            reason = f"nesting deeper than a depth of {self._depth} (limits.depth)"
            return self._fail(ErrorCode.LIMIT_EXCEEDED, reason, text, pos)
        if type(parent) is dict:
            parent[self._key] = container
            self._path = self._member
        elif parent is not None:
            self._path = self._path + (len(parent),)
            parent.append(container)  # type: ignore[union-attr]
        else:
            self._root = container
            self.start = self._base + pos
        if len(stack) == 1:
            self._opened = self._base + pos
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
        if type(parent) is dict:
            self._place = _AFTER_MEMBER
            if parent is self._root:
                self.spans[path[-1]] = (self._opened, self._base + pos)  # type: ignore[index]
        else:
            self._place = _AFTER_ITEM
        return pos

    def _shut_after_comma(self, text: str, pos: int, out: _Out) -> int:
        if not self._repaired(repairs.TRAILING_COMMA, self._base + pos, self._path, out):
            return self._reject(text, pos, out)
        return self._shut(text, pos, out)

    def _put(self, value: Any, start: int, end: int, out: _Out) -> int:
        """A string, number or literal is complete; ``start`` and ``end`` are offsets in the input less ``_base``."""
        container = self._container
        if container is None:
            self._root = value
            self.start = self._base + start
            return self._end_root(value, end, out)
        if type(container) is dict:
            out.append(ArgumentValue(self.index, self._member, value))
            container[self._key] = value
            self._place = _AFTER_MEMBER
            if container is self._root:
                self.spans[self._key] = (self._base + start, self._base + end)
        else:
            out.append(ArgumentValue(self.index, self._path + (len(container),), value))
            container.append(value)  # type: ignore[union-attr]
            self._place = _AFTER_ITEM
        return end

    def _end_root(self, value: Any, end: int, out: _Out) -> int:
        self.end = self._base + end
        self._place = _FENCE_END if self._fenced else _END
        if self.path:
            out.append(ArgumentValue(self.index, self.path, value))
        return end

    # Strings -------------------------------------------------------------------------------------------------------

    def _open_string(self, text: str, pos: int, out: _Out) -> int:
        container = self._container
        if type(container) is list:
            self._member = self._path + (len(container),)
        start = pos + 1
        end = text.find('"', start)
        value = text[start:] if end < 0 else text[start:end]
        if not value.isprintable() or "\\" in value:
            self._begin("value", pos)
            return self._more_body(text, start, out)
        if value:
            out.append(ArgumentDelta(self.index, self._member, value))
        if end >= 0:
            return self._put(value, pos, end + 1, out)
        self._begin("value", pos)
        self._pieces.append(value)
        return self._suspend(len(text))

    def _open_key(self, text: str, pos: int, out: _Out) -> int:
        start = pos + 1
        end = text.find('"', start)
        key = text[start:] if end < 0 else text[start:end]
        if not key.isprintable() or "\\" in key:
            self._begin("key", pos)
            return self._more_body(text, start, out)
        if end >= 0:
            return self._end_key(key, text, pos, end + 1)
        self._begin("key", pos)
        self._pieces.append(key)
        return self._suspend(len(text))

    def _begin(self, reading: Literal["key", "value"], pos: int) -> None:
        """A string that the chunk does not end, or that is not plain."""
        self._reading = reading
        self._start = self._base + pos
        self._body = body(False)

    def _more_string(self, text: str, pos: int, out: _Out) -> int:
        if "\\" in text:
            if not text.isprintable() or "\\u" in text or text[-1] == "\\":
                return self._more_body(text, pos, out)
            try:
                piece, end = jsontext.scanstring(text + '"', pos, True)
            except ValueError:
                return self._more_body(text, pos, out)
            end -= 1
        else:
            end = text.find('"', pos)
            piece = text if end < 0 else text[:end]
            if end<0: end=len(text)
            if not piece.isprintable():
                return self._more_body(text, pos, out)
        if piece:
            self._pieces.append(piece)
            if self._reading == "value":
                out.append(ArgumentDelta(self.index, self._member, piece))
        if end < len(text):
            return self._end_string(text, end, out)
        return self._suspend(end)

    def _more_body(self, text: str, pos: int, out: _Out) -> int:
        end = self._body.match(text, pos).end()  # type: ignore[union-attr]  # it always matches
        if end > pos:
            piece = decoded(text, pos, end)
            self._pieces.append(piece)
            if self._reading == "value":
                out.append(ArgumentDelta(self.index, self._member, piece))
        if end == len(text):
            return self._suspend(end)
        char = text[end]
        if char == '"':
            return self._end_string(text, end, out)
        if char == "\\":
            return self._half_escape(text, end)
        return self._raw_character(text, end, out)

    def _suspend(self, pos: int) -> int:
        self._inside = JsonDecoder._more_string
        if self._reading == "value" and not self._held and self._offset < self._near:
            self._growing = self._member
        else:
            self._growing = None
        if len(self._pieces) > self._solid + _MANY: self._compact()
        self.in_string = True
        return pos

    def _end_string(self, text: str, pos: int, out: _Out) -> int:
        value = "".join(self._pieces)
        self._pieces.clear()
        self._solid = 0
        self._inside = self._growing = None
        self.in_string = False
        start = self._start - self._base
        if self._reading == "key":
            self._reading = ""
            return self._end_key(value, text, start, pos + 1)
        self._reading = ""
        return self._put(value, start, pos + 1, out)

    def _end_key(self, key: str, text: str, start: int, end: int) -> int:
        container = self._container
        member = self._path + (key,)
        if key in container:
            reason = f"the key {_short(key)} was given before"
            return self._fail(
                ErrorCode.DUPLICATE_KEY, reason, text, end - 1, at=self._base + start, path=member
            )
        self._key = key
        self._member = member
        self._place = _COLON
        return end

    def _half_escape(self, text: str, pos: int) -> int:
        end = jsontext.escape_prefix(text, pos)
        if end == len(text):
            self._held = text[pos:]
            return self._suspend(end)
        code, reason, expected = jsontext.escape_fault(text, pos, end)
        return self._fail(code, reason, text, end, at=self._base + pos, expected=expected)

    def _raw_character(self, text: str, pos: int, out: _Out) -> int:
        char = text[pos]
        if char >= "\ud800":
            return self._fail(ErrorCode.LONE_SURROGATE, f"raw surrogate {shown(char)} in a string", text, pos)
        path = self._member if self._reading == "value" else self._path
        if not self._repaired(repairs.CONTROL_CHARACTER, self._base + pos, path, out):
            reason = f"raw control character {shown(char)} in a string"
            return self._fail(ErrorCode.INVALID_JSON, reason, text, pos)
        self._body = body(True)
        return self._more_body(text, pos, out)

    # Numbers and literals ------------------------------------------------------------------------------------------

    def _number(self, text: str, pos: int, out: _Out) -> int:
        phase, start, end = self._phase, pos, len(text)
        while pos < end and (step := phase[text[pos]]) is not None:
            phase = step
            pos += 1
        token = self._token + text[start:pos] if self._token else text[start:pos]
        if pos == end:
            self._phase = phase
            self._token = token
            self._inside = JsonDecoder._number
            if len(token) > 4300: return self._long_number(text)
            return pos
        if self._inside is not None:
            self._inside = None
            self._phase = NUMBER
            self._token = ""
        if phase.kind is int and text[pos] in self._delimiters and len(token)<600:
            return self._put(int(token), pos - len(token), pos, out)
        self._phase = phase
        self._token = token
        return self._end_number(text, pos, out)

    def _long_number(self, text: str) -> int:
        reason = f"a number of more than {jsontext.MAX_NUMBER} characters"
        at = self._start + jsontext.MAX_NUMBER
        return self._fail(ErrorCode.LIMIT_EXCEEDED, reason, text, at - self._base)

    def _end_number(self, text: str, pos: int, out: _Out) -> int:
        phase = self._phase
        if phase.kind is None or (text and text[pos] not in self._delimiters):
            expected = phase.expected or ("a digit", *self._after())
            reason = (phase.kind is None and FOREIGN.get(text[pos])) or f"unexpected {shown(text[pos])!r} in a number"
            return self._fail(ErrorCode.INVALID_JSON, reason, text, pos, expected=expected)
        value = jsontext.number(self._token, phase.kind)
        self._inside = None
        if value is None:
            code = ErrorCode.INVALID_JSON if phase.kind is float else ErrorCode.LIMIT_EXCEEDED
            return self._fail(code, "number out of range", text, pos, at=self._start)
        n=len(self._token)
        self._phase = NUMBER
        self._token = ""
        return self._put(value, pos - n, pos, out)

    def _literal(self, text: str, pos: int, out: _Out) -> int:
        word, value = LITERALS[text[pos]]
        if text.startswith(word, pos):
            return self._put(value, pos, pos + len(word), out)
        have = text[pos : pos + len(word)]
        if word.startswith(have):
            self._held = have
            return len(text)
        good = next(n for n, char in enumerate(have) if char != word[n])
        reason = f"unexpected {shown(have[good])!r} in {word}"
        return self._fail(ErrorCode.INVALID_JSON, reason, text, pos + good, expected=(f"'{word[good:]}'",))

    # Repairs (J5, tier 1) ------------------------------------------------------------------------------------------

    def _repaired(self, kind: str, offset: int, path: Path, out: _Out) -> bool:
        if not repairs.allows(self._repair, kind):
            return False
        out.append(Deviated(self.index, repairs.repaired(kind, offset, path)))
        return True

    def _slash(self, text: str, pos: int, out: _Out) -> int:
        opener = text[pos : pos + 2]
        if opener == "/" and repairs.allows(self._repair, repairs.COMMENT):
            self._held = opener
            return len(text)
        if opener not in _COMMENTS or not self._repaired(repairs.COMMENT, self._base + pos, self._path, out):
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
            if text.endswith("*", pos):
                self._held = "*"
            return len(text)
        self._inside = None
        return end + 2

    def _fence(self, text: str, pos: int, out: _Out) -> int:
        """Three backticks where a value may start, or after the value of an open fence."""
        ticks = text[pos : pos + 3]
        if not repairs.allows(self._repair, repairs.CODE_FENCE):
            return self._reject(text, pos, out)
        if ticks != "```":
            if "```".startswith(ticks) and pos + len(ticks) == len(text):
                self._held = ticks
                return len(text)
            return self._reject(text, pos, out)
        if self._place is _FENCE_END:
            self._place = _END
        else:
            self._fenced = True
            self._place = _FENCED_ROOTS[self._root_kind]
            self._repaired(repairs.CODE_FENCE, self._base + pos, self.path, out)
        return pos + 3

    def _fence_word(self, text: str, pos: int, out: _Out) -> int:
        have = text[pos : pos + 4]
        if have.lower() == "json":
            self._place = _PLAIN_ROOTS[self._root_kind]
            return pos + 4
        if "json".startswith(have.lower()) and pos + len(have) == len(text):
            self._held = have
            return len(text)
        return self._reject(text, pos, out)


def _short(key: str) -> str:
    """A key for a message, bounded and printable."""
    shown_ = repr(key[:40])
    return shown_ if len(key) <= 40 else f"{shown_}…"


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


class _Place(dict[str, "_Read"]):
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
        self |= dict.fromkeys(" \t\r", self)
        self.expected = expected
        self.member = member
        self.code = code

    def __missing__(self, char: str) -> _Read:
        return JsonDecoder._reject


_BLANK: Final[dict[str, _Read]] = {"\n": JsonDecoder._space, "/": JsonDecoder._slash}
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
_AFTER_ITEM = _Place({",": _ITEM, "]": JsonDecoder._shut}, "','", "']'")
_FIRST_KEY = _Place({'"': JsonDecoder._open_key, "}": JsonDecoder._shut}, "a key in double quotes", "'}'")
_KEY = _Place({'"': JsonDecoder._open_key, "}": JsonDecoder._shut_after_comma}, "a key in double quotes")
_COLON = _Place({":": _VALUE}, "':'", member=True)
_AFTER_MEMBER = _Place({",": _KEY, "}": JsonDecoder._shut}, "','", "'}'")
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
