"""Path events of a call -> fragments of the JSON text of its arguments.

Events come depth first, in document order, and JSON escapes a string character by character. So the text can be written
as the events come: a path says which containers are open (a key opens an object, an index a list), and a run of
characters is escaped without the rest of its string. What is kept is the stack of open containers. A fragment costs
time in its own length, whatever came before it.

The fragments of a call, joined, are ``events.json_text`` of its arguments once it is finished, and a beginning of that
until then. The last brace waits for the seal.
"""

from __future__ import annotations

from json.encoder import encode_basestring
from typing import Any

from streamparse.errors import UsageError
from streamparse.events import Path, json_text

_INCONSISTENT = "the events of a sealed call do not add up to its arguments: give the encoder all events, in order"


def escaped(text: str) -> str:
    """Characters as they stand inside a JSON string; the same for a text and for its pieces, joined."""
    return encode_basestring(text)[1:-1]


class ArgumentWriter:
    """Writes the arguments of one call. ``position`` is the call's place in ``tool_calls``.

    ``_closers`` and ``_counts`` describe the open containers, the argument object first; ``_path`` is the path of the
    innermost, ``string`` that of the string that is open in it, if one is. Before the first event nothing is open.

    A value that turns out broken (J6) may be told as text after its beginning was told as JSON. Then nothing more is
    written: the call is going to fail.
    """

    __slots__ = ("_broken", "_closers", "_counts", "_path", "position", "string")

    def __init__(self, position: int) -> None:
        self.position = position
        self.string: Path | None = None
        self._closers: list[str] = []
        self._counts: list[int] = []
        self._path: Path = ()
        self._broken = False

    def delta(self, path: Path, text: str) -> str:
        """More characters of the string at ``path``."""
        if path == self.string:
            return escaped(text)
        if not self._reachable(path):
            return ""
        head = self._reach(path)
        self.string = path
        return f'{head}"{escaped(text)}'

    def value(self, path: Path, value: Any) -> str:
        """The value at ``path`` is complete: what is left of it to write."""
        if path == self.string:
            self.string = None
            return '"'
        if path and path == self._path:
            return self._shut(value)
        if path:
            return self._reach(path) + json_text(value) if self._reachable(path) else ""
        return self._rest(value) if isinstance(value, dict) and not self._path else ""

    def finish(self, arguments: dict[str, Any]) -> str:
        """The call is sealed: what is left of its arguments, and the last brace. Raises ``UsageError`` if they are not
        what the events told."""
        if self._broken or self.string is not None or self._path:
            raise UsageError(_INCONSISTENT)
        rest = self._rest(arguments)
        if self._counts[0] != len(arguments):
            raise UsageError(_INCONSISTENT)
        return f"{rest}}}"

    def fail(self) -> str:
        """The call failed: an opening brace if nothing was written, so that what was sent is never empty."""
        return "" if self._closers else self._open("}")

    def _rest(self, arguments: dict[str, Any]) -> str:
        """The members that no event told of: those of a decoder that decides at the end."""
        parts = [] if self._closers else [self._open("}")]
        if self._counts[0] < len(arguments):
            for key in list(arguments)[self._counts[0] :]:
                parts += [self._separator(key), json_text(arguments[key])]
        return "".join(parts)

    def _shut(self, value: Any) -> str:
        """The innermost container is complete."""
        if self._broken or self.string is not None or not isinstance(value, dict if self._closers[-1] == "}" else list):
            return self._break()
        self._path = self._path[:-1]
        self._counts.pop()
        return self._closers.pop()

    def _open(self, closer: str) -> str:
        self._closers.append(closer)
        self._counts.append(0)
        return "{" if closer == "}" else "["

    def _reachable(self, path: Path) -> bool:
        """Whether a value at ``path`` can come next. If it cannot, nothing can."""
        depth = len(self._path)
        if self._broken or self.string is not None or len(path) <= depth or path[:depth] != self._path:
            self._break()
            return False
        first, closer = path[depth], self._closers[-1] if self._closers else "}"
        fits = isinstance(first, str) if closer == "}" else first == self._counts[-1]
        if not fits or any(step != 0 for step in path[depth + 1 :] if not isinstance(step, str)):
            self._break()
        return not self._broken

    def _break(self) -> str:
        self._broken = True
        self.string = None
        return ""

    def _reach(self, path: Path) -> str:
        """Everything that stands before the value at ``path``."""
        parts = [] if self._closers else [self._open("}")]
        last = len(path) - 1
        for step in range(len(self._path), last):
            parts += [self._separator(path[step]), self._open("}" if isinstance(path[step + 1], str) else "]")]
        if last != len(self._path):
            self._path = path[:last]
        parts.append(self._separator(path[last]))
        return "".join(parts)

    def _separator(self, step: str | int) -> str:
        """The comma and the key before a member or item of the innermost container."""
        comma = ", " if self._counts[-1] else ""
        self._counts[-1] += 1
        return f"{comma}{encode_basestring(step)}: " if isinstance(step, str) else comma
