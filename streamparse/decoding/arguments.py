"""The incremental JSON reader: chunks of text in, path events out (rules J).

Theory. The reader is a machine between two words and inside a word. Between two words it stands in a *place*: a table
from a character to the method that reads what begins with it. The tables are at the end of this module; a character
that is in none of them is the error. Inside a word that a chunk has cut, ``_inside`` is the method that reads on. It
has six layers, each a class and a module that knows only the ones before it:

=============  ========================================================================================================
``history``    what came: offsets, the limit, the end of the input for an excerpt, the pieces of the growing string
``tree``       what is made of it: the value under construction, the events, the error
``words``      strings, numbers, literals
``loose``      strings, keys and literals that are not JSON's, and are tolerated
``outside``    what stands around the value, and is tolerated
``arguments``  what stands between words, the tolerated forms, and the caller's side
=============  ========================================================================================================

Operations and their cost. ``feed`` is linear in the chunk, whatever the chunks before it were; ``close`` is constant.
The first lines of ``feed`` are the fast path: inside a string, a chunk without quote, backslash and control character
is more characters of that string (``isprintable`` is the proof that there is no control character and no surrogate).
``partial`` and ``value`` cost nothing until somebody asks.

What is emitted does not depend on the chunks, once adjacent deltas at one path are joined: what cannot be decided is
held, at most eleven characters, and an error is reported at the first character that no continuation can save, with an
excerpt that ends there.

What the rules leave open:

* A raw surrogate in the input is ``lone_surrogate``, as an escaped one is (J2), also if its other half follows: nobody
  could encode such a string.
* A number of more than 4,300 characters is ``limit_exceeded`` (see ``jsontext.MAX_NUMBER``); within that, integers are
  exact. What is too small for a float is 0.0, as in the standard library.
* JSON in a string (J5, tier 2) is read by a second reader, which gets the characters of the string. Its offsets count
  these, from behind the opening quote; ``spans`` stays empty, since no member stands in the input as it is.
* Text that is only white space is no error, ``state`` is ``empty``: what that means is a matter of the wire (C5).
* A code fence that was opened has to be closed: without that the text is not complete.
* A trailing comma is reported at the bracket behind it, a duplicate key at its closing quote.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from streamparse.decoding import jsontext
from streamparse.decoding import repair as repairs
from streamparse.decoding.history import CLOSED
from streamparse.decoding.jsontext import LITERALS, PYTHON_LITERALS
from streamparse.decoding.loose import QUOTES
from streamparse.decoding.outside import WANTED, Outside, Root
from streamparse.decoding.tree import JsonEvent, Out, Place, Read, copied
from streamparse.errors import ClosedError, UsageError
from streamparse.events import ArgumentDelta, ErrorCode, Path
from streamparse.limits import DEFAULT_LIMITS, Limits

State: TypeAlias = Literal["empty", "incomplete", "complete", "invalid"]

_SHORT: Final = 40
"""Characters of a key that a message shows."""


class JsonDecoder(Outside):
    """Reads one JSON value that arrives in pieces of any size, and says what is certain as soon as it is.

    ::

        reader = JsonDecoder()
        for chunk in chunks:
            for event in reader.feed(chunk): ...
        for event in reader.close(): ...
        if reader.state == "complete": use(reader.value)
        else: report(reader.error)

    ``feed`` and ``close`` return ``ArgumentDelta`` for the characters of string values, ``ArgumentValue`` for each
    value below the root when it is complete, and ``Deviated`` for each repair. The root is no event, it is ``value``:
    text may follow that makes it an error. No text makes them raise; what is wrong is in ``error``, and nothing is read
    behind it.

    Options: ``index`` and ``path`` go into the events (``path`` stands before each path); ``offset`` is added to the
    offsets of errors and deviations, for a text that stands in a larger one; ``repair`` is the tier of tolerance (J5,
    ``streamparse.decoding.repair``); ``root`` says what the value may be: an ``"object"``, a ``"container"`` (an
    object or an array), or ``"any"`` value.

    Attributes: ``error`` (None, or what is wrong), ``deviations`` (what was repaired), ``in_string`` (the text so far
    ends inside a string), ``spans`` (start and end in the input, per complete member of the root object), ``start``
    and ``end`` of the root value."""

    __slots__ = ()

    def __init__(
        self,
        *,
        index: int = 0,
        path: Path = (),
        offset: int = 0,
        repair: int = 1,
        root: Root = "object",
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        if repair not in tuple(repairs.Tier):
            raise UsageError(f"repair={repair!r} is no tier; use 0, 1, 2 or 3")
        if root not in _ROOTS:
            raise UsageError(f"root={root!r} is unknown; use one of {', '.join(_ROOTS)}")
        super().__init__(index, path, offset, repair, limits, _ROOTS[root], _END, root)

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
        """The end of the text: decides whether it was complete. A second time it returns nothing."""
        out: Out = []
        if self._limit != CLOSED and self.error is None:
            self._end_of_text(out)
        self._shut_off(CLOSED)
        return out

    @property
    def state(self) -> State:
        """``empty`` (nothing but white space so far), ``incomplete``, ``complete`` (only what is ignored may follow) or
        ``invalid``."""
        if self.error is not None:
            return "incomplete" if self.error.code is ErrorCode.UNTERMINATED_JSON else "invalid"
        if (self._place is _END or self._place is _END_IN_STRING) and not self._held and self._inside in _MAY_END:
            return "complete"
        at_start = self._place is _ROOTS[self._kind] and self._inside is None
        return "empty" if at_start and not self._held and not self.deviations else "incomplete"

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
        if self._inner is not None:
            return self._inner.partial
        root, container = copied(self._root, self._container)
        if self._reading != "value":
            return root
        if container is None:
            return self._characters()
        if isinstance(container, dict):
            container[self._key] = self._characters()
        else:
            container.append(self._characters())
        return root

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
        out: Out = []
        inside = self._inside
        pos = 0 if inside is None else inside(self, text, 0, out)
        place = self._place
        while pos < end:
            read = place[text[pos]]
            if read is None:
                pos += 1
            else:
                pos = read(self, text, pos, out)
                place = self._place
        if self.watch is not None and self.watch.checked:
            self.watch.grow(out)
        return out

    def _overflow(self, text: str, left: int) -> list[JsonEvent]:
        """The chunk goes beyond the limit, or comes after an error or ``close``, behind which nothing may be read."""
        self._recent.pop()
        if self._limit == CLOSED:
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

    def _end_of_text(self, out: Out) -> None:
        self._recent.append(self._held)
        if self._growing is not None:
            self._settle()
        if self._inside is JsonDecoder._more_number and self._container is None and self._phase.kind:
            self._more_number("\n", 0, out)
        if self._inside is JsonDecoder._drop_text:
            self._tell_aside(repairs.TEXT_AFTER, out)
        if self.error is None and self.state == "incomplete":
            reason, expected = self._cut()
            self._fail(ErrorCode.UNTERMINATED_JSON, reason, len(self._held), expected=expected)

    def _cut(self) -> tuple[str, tuple[str, ...]]:
        """What the end of the text cuts, and what would have gone on."""
        if self._reading:
            closer = self._quotes.closer if self._inside is JsonDecoder._read_loose else '"'
            return f"end of text inside a {'string' if self._reading == 'value' else 'key'}", (repr(closer),)
        if self._inside is JsonDecoder._more_bare_key:
            return "end of text inside a key", ("':'",)
        if self._inside is JsonDecoder._more_number:
            return "end of text inside a number", self._after_number(self._phase)
        if self._inside is JsonDecoder._block_comment:
            return "end of text inside a comment", ("'*/'",)
        return "end of text", self._place.expected

    # Between words ----------------------------------------------------------------------------------------------------

    def _space(self, text: str, pos: int, out: Out) -> int:
        """A line break, and the indentation after it."""
        return jsontext.skip_space(text, pos)

    def _open_object(self, text: str, pos: int, out: Out) -> int:
        return self._open({}, _FIRST_KEY, _AFTER_MEMBER, pos, out)

    def _open_array(self, text: str, pos: int, out: Out) -> int:
        return self._open([], _FIRST_ITEM, _AFTER_ITEM, pos, out)

    def _end_key(self, key: str, pos: int, out: Out) -> int:
        self._member = self._path + (key,)  # noqa: RUF005  # 20 ns less
        if key in self._container:
            reason = f"the key {_short(key)} was given before"
            return self._fail(ErrorCode.DUPLICATE_KEY, reason, pos, path=self._member)
        if self.watch is not None:
            self.watch.key(key, out)
        self._key = key
        self._place = _COLON
        return pos + 1

    def _colon(self, text: str, pos: int, out: Out) -> int:
        self._place = _VALUE
        return pos + 1

    def _comma_in_object(self, text: str, pos: int, out: Out) -> int:
        self._place = _KEY
        return pos + 1

    def _comma_in_array(self, text: str, pos: int, out: Out) -> int:
        self._place = _ITEM
        return pos + 1

    # What is tolerated (J5, tier 1; control characters are in words) --------------------------------------------------

    def _shut_after_comma(self, text: str, pos: int, out: Out) -> int:
        if not self._repaired(repairs.TRAILING_COMMA, pos, self._path, out):
            return self._reject(text, pos, out)
        return self._shut(text, pos, out)

    def _slash(self, text: str, pos: int, out: Out) -> int:
        opener = text[pos : pos + 2]
        if opener == "/" and repairs.allows(self._repair, repairs.COMMENT):
            return self._hold(text, pos)
        if opener not in _COMMENTS or not self._repaired(repairs.COMMENT, pos, self._path, out):
            return self._place.other(self, text, pos, out)
        self._inside = _COMMENTS[opener]
        return self._inside(self, text, pos + 2, out)

    def _line_comment(self, text: str, pos: int, out: Out) -> int:
        end = jsontext.find_line_break(text, pos)
        if end < len(text):
            self._inside = None
        return end

    def _block_comment(self, text: str, pos: int, out: Out) -> int:
        end = text.find("*/", pos)
        if end < 0:
            return self._hold(text, len(text) - 1) if text.endswith("*", pos) else len(text)
        self._inside = None
        return end + 2

    def _fence(self, text: str, pos: int, out: Out) -> int:
        """Three backticks before the value, or after the value that they opened."""
        ticks = text[pos : pos + 3]
        if not repairs.allows(self._repair, repairs.CODE_FENCE):
            return self._reject(text, pos, out)
        if ticks != "```":
            cut = pos + len(ticks) == len(text) and "```".startswith(ticks)
            return self._hold(text, pos) if cut else self._place.other(self, text, pos, out)
        if self._fenced:
            self._place = _END
        else:
            self._fenced = True
            self._place, self._after = _FENCED_ROOTS[self._kind], _FENCE_END
            self._repaired(repairs.CODE_FENCE, pos, self.path, out)
        return pos + 3

    def _behind(self, fenced: bool) -> Place:
        return _FENCE_END if fenced else _END

    def _fence_word(self, text: str, pos: int, out: Out) -> int:
        """``json`` after an opening fence."""
        have = text[pos : pos + 4]
        if have.lower() == "json":
            self._place = _PLAIN_ROOTS[self._kind]
            return pos + 4
        cut = pos + len(have) == len(text) and "json".startswith(have.lower())
        return self._hold(text, pos) if cut else self._place.other(self, text, pos, out)

    # Tier 2, tuples; the rest is in loose and outside -----------------------------------------------------------------

    def _open_tuple(self, text: str, pos: int, out: Out) -> int:
        if not self._repaired(repairs.TUPLE, pos, self._here(), out):
            return self._reject(text, pos, out)
        return self._open([], _FIRST_IN_TUPLE, _AFTER_IN_TUPLE, pos, out)

    def _comma_in_tuple(self, text: str, pos: int, out: Out) -> int:
        self._place = _IN_TUPLE
        return pos + 1

    def _shut_without_comma(self, text: str, pos: int, out: Out) -> int:
        if len(self._container) == 1:
            return self._fail(ErrorCode.INVALID_JSON, "one value in parentheses is no tuple", pos, expected=("','",))
        return self._shut(text, pos, out)

    def _reader_in_string(self, offset: int) -> JsonDecoder:
        limits = Limits(arguments=self._limit, depth=self._depth)
        return reader_in_string(self.index, self.path, offset, self._repair, self._kind, limits)


def reader_in_string(index: int, path: Path, offset: int, repair: int, root: Root, limits: Limits) -> JsonDecoder:
    """A reader for the characters of a string that holds a JSON value (J5). In the string is nothing but the value, and
    the value is not in a string once more."""
    reader = JsonDecoder(index=index, path=path, offset=offset, repair=repair, root=root, limits=limits)
    reader._place, reader._after = _ROOTS_IN_STRING[root], _END_IN_STRING
    return reader


def _short(key: str) -> str:
    """A key for a message, bounded and printable."""
    return repr(key) if len(key) <= _SHORT else f"{key[:_SHORT]!r}…"


# The tables -----------------------------------------------------------------------------------------------------------

_Table: TypeAlias = dict[str, Read | None]

_BLANK: Final[_Table] = {**dict.fromkeys(" \t\r"), "\n": JsonDecoder._space, "/": JsonDecoder._slash}
_CONTAINERS: Final[_Table] = {
    "{": JsonDecoder._open_object,
    "[": JsonDecoder._open_array,
    "(": JsonDecoder._open_tuple,
}
_SCALARS: Final[_Table] = {
    '"': JsonDecoder._open_string,
    **dict.fromkeys("-0123456789", JsonDecoder._number),
    **dict.fromkeys(LITERALS, JsonDecoder._literal),
}
_LOOSE: Final[_Table] = {
    **dict.fromkeys(PYTHON_LITERALS, JsonDecoder._python_literal),
    **dict.fromkeys(QUOTES.keys() - {'"'}, JsonDecoder._loose_value),
}
_ANY: Final[_Table] = _BLANK | _CONTAINERS | _SCALARS | _LOOSE
_KEYS: Final[_Table] = _BLANK | dict.fromkeys(QUOTES, JsonDecoder._loose_key) | {'"': JsonDecoder._open_key}

_VALUE: Final = Place(_ANY, "a JSON value", member=True)
_FIRST_ITEM: Final = Place(_ANY | {"]": JsonDecoder._shut}, "a JSON value", "']'", member=True)
_ITEM: Final = Place(_ANY | {"]": JsonDecoder._shut_after_comma}, "a JSON value", member=True)
_AFTER_ITEM: Final = Place(_BLANK | {",": JsonDecoder._comma_in_array, "]": JsonDecoder._shut}, "','", "']'")
_FIRST_KEY: Final = Place(
    _KEYS | {"}": JsonDecoder._shut}, "a key in double quotes", "'}'", other=JsonDecoder._bare_key
)
_KEY: Final = Place(_KEYS | {"}": JsonDecoder._shut_after_comma}, "a key in double quotes", other=JsonDecoder._bare_key)
_COLON: Final = Place(_BLANK | {":": JsonDecoder._colon}, "':'", member=True)
_AFTER_MEMBER: Final = Place(_BLANK | {",": JsonDecoder._comma_in_object, "}": JsonDecoder._shut}, "','", "'}'")
_FIRST_IN_TUPLE: Final = Place(_ANY | {")": JsonDecoder._shut}, "a JSON value", "')'", member=True)
_IN_TUPLE: Final = Place(_ANY | {")": JsonDecoder._shut}, "a JSON value", "')'", member=True)
_AFTER_IN_TUPLE: Final = Place(
    _BLANK | {",": JsonDecoder._comma_in_tuple, ")": JsonDecoder._shut_without_comma}, "','", "')'"
)
_END: Final = Place(_BLANK, "end of text", code=ErrorCode.TRAILING_TEXT, other=JsonDecoder._text_after)
_END_IN_STRING: Final = Place(_BLANK, "end of text", code=ErrorCode.TRAILING_TEXT)
_FENCE_END: Final = Place(_BLANK | {"`": JsonDecoder._fence}, "'```'", code=ErrorCode.TRAILING_TEXT)


# Where no scalar may be the root. What begins no JSON value begins a text before it.
_NO_SCALAR: Final[_Table] = {
    **{char: read for char, read in _ANY.items() if char not in _LOOSE},
    **dict.fromkeys(_SCALARS, JsonDecoder._reject_root),
}
_TEXTUAL: Final[_Table] = {
    **dict.fromkeys(LITERALS, JsonDecoder._root_word),
    **dict.fromkeys("\"'", JsonDecoder._string_root),
}
_NO_ARRAY: Final[_Table] = {"[": JsonDecoder._reject_root, "(": JsonDecoder._text_before}


def _roots(extra: _Table, *, text: bool = True) -> dict[str, Place]:
    """Where the root value is awaited, for each kind of root. ``text``: other text may stand before it (J5)."""
    table = _NO_SCALAR | (_TEXTUAL if text else {}) | extra
    tables: dict[str, _Table] = {"object": table | _NO_ARRAY, "container": table}
    other = JsonDecoder._text_before if text else JsonDecoder._reject
    places = {kind: Place(each, *WANTED[kind], member=True, other=other) for kind, each in tables.items()}
    return {**places, "any": Place(_ANY | extra, *WANTED["any"], member=True)}


_ROOTS: Final = _roots({"`": JsonDecoder._fence})
_FENCED_ROOTS: Final = _roots(dict.fromkeys("jJ", JsonDecoder._fence_word))
_PLAIN_ROOTS: Final = _roots({})
_ROOTS_IN_STRING: Final = _roots({}, text=False)
_COMMENTS: Final[dict[str, Read]] = {"//": JsonDecoder._line_comment, "/*": JsonDecoder._block_comment}

_MAY_END: Final = (None, JsonDecoder._line_comment, JsonDecoder._drop_text)
"""Where the end of the text may come behind the value."""
