"""Early verdicts: the declared tools, ready to judge calls while they stream (``early=True``).

What is judged, and how soon, is in ``docs/early.md``. ``early_schema`` compiles schemas, ``early_watch`` follows one
call's arguments, ``early_text`` reads the raw text of native parameters ahead. A decoder that is asked for nothing has
no ``Early``, and pays for nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final

from streamparse.decoding.early_rules import STRING
from streamparse.decoding.early_schema import Home, Shape
from streamparse.decoding.early_watch import Watch
from streamparse.decoding.values import CompiledTools
from streamparse.errors import UsageError
from streamparse.events import ArgumentRejected, Issue, IssueCode
from streamparse.wording import shown

_LISTED: Final = 8


class Early:
    """The tools of one set. Made once for it (``early_tools``), for any number of decoders."""

    __slots__ = ("_homes", "_names", "_sorted", "_tools")

    def __init__(self, tools: CompiledTools) -> None:
        self._tools = dict(tools)
        self._names = list(tools)
        self._sorted = sorted(tools)
        self._homes: dict[str, Home] = {}

    def watch(self, name: str, index: int) -> Watch | None:
        """What follows the arguments of a call; None if the tool is not declared."""
        if name not in self._tools:
            return None
        return Watch(self._shape(name), index)

    def _shape(self, name: str) -> Shape | None:
        tool = self._tools.get(name)
        if tool is None:
            return None
        home = self._homes.get(name)
        if home is None:
            home = self._homes[name] = Home(True if tool.schema is None else tool.schema)
        return home.root

    def watch_payload(self, index: int, name: str, arguments: str) -> Watch:
        """What follows an object whose members are a tool's name and its arguments. Arguments that come before the name
        are not judged."""
        return _PayloadWatch(self, index, name, arguments)

    def knows(self, name: str) -> bool:
        """Whether a tool of this name is declared."""
        return name in self._tools

    def begins(self, text: str) -> bool:
        """Whether the name of a declared tool begins so."""
        at = bisect_left(self._sorted, text)
        return at < len(self._sorted) and self._sorted[at].startswith(text)

    def unknown(self, index: int, name: str) -> ArgumentRejected:
        """The rejection of a name, or of the beginning of one: as much of it as no declared name begins with."""
        name = next((name[:size] for size in range(len(name) + 1) if not self.begins(name[:size])), name)
        words = tuple(shown(each) for each in self._names[:_LISTED])
        more = len(self._names[_LISTED:])
        return ArgumentRejected(index, (), Issue(IssueCode.UNKNOWN_TOOL, (), "string", shown(name), words, more))


class _PayloadWatch(Watch):
    """The arguments' shape is known once the name is."""

    __slots__ = ("_arguments", "_early", "_name", "_tool")

    def __init__(self, early: Early, index: int, name: str, arguments: str) -> None:
        super().__init__(None, index)
        self._early = early
        self._name = name
        self._arguments = arguments
        self._tool = ""

    def key(self, key: str, out: list[Any]) -> None:
        super().key(key, out)
        if len(self._stack) == 1 and key == self._arguments:
            self._shape = self._early._shape(self._tool)

    def begin(self, kind: int, out: list[Any]) -> None:
        if kind == STRING and len(self._stack) == 1:
            self._shape = None  # arguments in a string (J5) are read by another reader
        super().begin(kind, out)

    def complete(self, value: Any, out: list[Any]) -> None:
        super().complete(value, out)
        if len(self._stack) == 1 and self.key_now == self._name and isinstance(value, str):
            self._tool = value.strip()


def early_tools(tools: CompiledTools | None, early: Any) -> Early | None:
    """What a decoder with the option ``early`` judges by. Raises ``UsageError`` if it is given nothing to judge by."""
    if not isinstance(early, bool):
        raise UsageError(f"early={early!r} is not an option; use True or False")
    if not early:
        return None
    if tools is None:
        raise UsageError("early=True needs tools: without schemas there is nothing to judge by")
    if tools.early is None:
        tools.early = Early(tools)
    found: Early = tools.early
    return found
