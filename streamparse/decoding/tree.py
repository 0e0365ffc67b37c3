"""What a JSON reader makes: the value under construction, its events, and the error that ends it.

The value is built from real dicts and lists. A container is put into its parent when it opens, so that the partial
view is there at any time and costs nothing to keep; only a string that is growing is missing from it. The way to the
innermost open container is a list, not recursion: depth costs memory, never the interpreter's stack (J1).

A member costs one path, a tuple as long as its depth. Everything else is constant per value, apart from ``partial``,
which copies.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import maxsize
from typing import Any, Final, TypeAlias

from streamparse.decoding import repair as repairs
from streamparse.decoding.early_rules import ARRAY, OBJECT
from streamparse.decoding.early_watch import Watch
from streamparse.decoding.history import FAILED, History
from streamparse.decoding.jsontext import FOREIGN, printable, shown
from streamparse.events import (
    ArgumentDelta,
    ArgumentRejected,
    ArgumentValue,
    Deviated,
    Deviation,
    ErrorCode,
    ErrorDetail,
    Path,
)
from streamparse.limits import Limits

JsonEvent: TypeAlias = ArgumentDelta | ArgumentValue | ArgumentRejected | Deviated
"""What a ``JsonDecoder`` says."""

Out: TypeAlias = list[JsonEvent]
Read: TypeAlias = Callable[[Any, str, int, Out], int]
"""A method of the reader: ``(text, pos, out)``; it reads, appends to ``out`` and returns where it stopped."""


class Place(dict[str, Read | None]):
    """What may stand between two words, by its first character: the method that reads it, None for a blank.

    ``expected`` says it in words; ``code`` is the error if something else comes; ``member`` is true if a value is
    awaited, or has just been named (then an error is about that value, not about its container). ``other`` reads any
    character that is not in the table; unless a tolerant form begins so, that is an error.
    """

    __slots__ = ("code", "expected", "member", "other")

    def __init__(
        self,
        table: dict[str, Read | None],
        *expected: str,
        member: bool = False,
        code: ErrorCode = ErrorCode.INVALID_JSON,
        other: Read | None = None,
    ) -> None:
        super().__init__(table)
        self.expected = expected
        self.member = member
        self.code = code
        self.other: Read = other or Tree._reject

    def __missing__(self, char: str) -> Read:
        return self.other


class Tree(History):
    """The value, and where the reader stands in it. A layer of ``JsonDecoder``; see the module."""

    __slots__ = (
        "_after",
        "_container",
        "_depth",
        "_key",
        "_member",
        "_path",
        "_place",
        "_repair",
        "_root",
        "_stack",
        "_start",
        "deviations",
        "end",
        "error",
        "in_string",
        "index",
        "offset",
        "path",
        "spans",
        "start",
        "watch",
    )

    def __init__(
        self, index: int, path: Path, offset: int, repair: int, limits: Limits, place: Place, after: Place
    ) -> None:
        super().__init__(limits.arguments)
        self.index: Final = index
        self.path: Final = path
        self.offset: Final = offset
        """Where the text stands in a larger one: added to the offsets of errors and deviations."""
        self.deviations: list[Deviation] = []
        """What was repaired so far."""
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
        self.watch: Watch | None = None
        """What judges the value while it is read; it is told of all that begins and ends."""
        self._place = place  # what may stand here
        self._after = after  # and behind the value that is awaited or read
        self._depth = limits.depth
        self._repair = repair
        self._root: Any = None
        self._container: Any = None  # the innermost open one
        self._stack: list[tuple[Any, Place]] = []  # what _container and _after were before it, and so on outwards
        self._path = path  # of the innermost open container
        self._key = ""  # the last key
        self._member = path  # the path of the last key, or of the string that is read
        self._start = 0  # where the member of the root that is read began, if it is a string or container

    # Values -----------------------------------------------------------------------------------------------------------

    def _open(self, container: Any, first: Place, after: Place, pos: int, out: Out) -> int:
        """A container begins at ``pos``; then comes ``first``, and behind each of its members ``after``."""
        stack, parent = self._stack, self._container
        if len(stack) >= self._depth:
            reason = f"nesting deeper than {self._depth} levels, the greatest depth (limits.depth)"
            return self._fail(ErrorCode.LIMIT_EXCEEDED, reason, pos)
        if self.watch is not None:
            self.watch.open(OBJECT if type(container) is dict else ARRAY, out)
        if type(parent) is dict:
            parent[self._key] = container
            self._path = self._member
        elif parent is None:
            self._root = container
            self.start = self._base() + pos
        else:
            self._path = (*self._path, len(parent))
            parent.append(container)
        if len(stack) == 1:
            self._start = self._base() + pos
        stack.append((parent, self._after))
        self._container, self._place, self._after = container, first, after
        return pos + 1

    def _shut(self, text: str, pos: int, out: Out) -> int:
        container, path = self._container, self._path
        if self.watch is not None:
            self.watch.shut(container, out)
        parent, self._after = self._stack.pop()
        self._container, self._place = parent, self._after
        pos += 1
        if parent is None:
            return self._end_root(pos)
        out.append(ArgumentValue(self.index, path, container))
        self._path = path[:-1]
        if parent is self._root and type(parent) is dict:
            self.spans[path[-1]] = (self._start, self._base() + pos)  # type: ignore[index]  # a key
        return pos

    def _put(self, value: Any, start: int, end: int, out: Out) -> int:
        """A string, number or literal is complete. It began at ``start``, counted from the chunk that is read."""
        container = self._container
        self._place = self._after
        if (watch := self.watch) is not None:
            if watch.checked:
                watch.grow(out)
            watch.complete(value, out)
        if type(container) is list:
            out.append(ArgumentValue(self.index, self._path + (len(container),), value))  # noqa: RUF005  # 20 ns less
            container.append(value)
        elif container is None:
            self._root = value
            self.start = self._base() + start
            return self._end_root(end)
        else:
            out.append(ArgumentValue(self.index, self._member, value))
            container[self._key] = value
            if container is self._root:
                base = self._base()
                self.spans[self._key] = (base + start, base + end)
        return end

    def _end_root(self, end: int) -> int:
        """The root is over, which is no event: text may follow that makes it an error (J4)."""
        self.end = self._base() + end
        return end

    # What is wrong ----------------------------------------------------------------------------------------------------

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
        """The character at ``pos`` of the chunk shows an error, and it began at ``start``. Returns a position behind
        any text, so that reading ends."""
        self.error = ErrorDetail(
            code,
            reason,
            self.offset + self._base() + (pos if start is None else start),
            expected=expected,
            excerpt=printable(self._excerpt(self._recent[-1][: pos + 1])),
            path=self._here() if path is None else path,
        )
        self.in_string = False
        self._shut_off(FAILED)
        return maxsize

    def _here(self) -> Path:
        """The path of the value that is awaited or read; of its container, if there is none."""
        if not self._place.member:
            return self._path
        return (*self._path, len(self._container)) if type(self._container) is list else self._member

    def _reject(self, text: str, pos: int, out: Out) -> int:
        """What may not stand here."""
        place = self._place
        reason = (place.member and FOREIGN.get(text[pos])) or f"unexpected {shown(text[pos])}"
        if place.code is ErrorCode.TRAILING_TEXT:
            reason = "text after the value"
        return self._fail(place.code, reason, pos, expected=place.expected)

    def _repaired(self, kind: str, pos: int, path: Path, out: Out, found: str = "") -> bool:
        """Whether this may be tolerated (J5); if so, it is reported. ``found`` is text that is dropped."""
        if not repairs.allows(self._repair, kind):
            return False
        deviation = repairs.repaired(kind, self.offset + self._base() + pos, path, found)
        self.deviations.append(deviation)
        out.append(Deviated(self.index, deviation))
        return True


def copied(value: Any, wanted: Any) -> tuple[Any, Any]:
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
