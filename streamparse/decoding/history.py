"""What a reader remembers of the chunks that it was fed.

A text comes in chunks of any size, mostly small ones. Its reader wants to know four things of what has passed: how
many characters (for offsets, and for the limit), the last ``EXCERPT`` of them (for an error), what was held back at
the end of the last chunk, and the characters of the string that is growing. To count, cut and copy at each chunk
would cost more than the reading itself. So the chunks are only put into a list, ``_recent``, and looked at when
somebody asks.

Operations and their cost:

* *Note a chunk*: one append. The last element is the chunk that is being read.
* *The offset of that chunk* (``_base``): each chunk is counted once, when it is asked for.
* *Settle* (``_settle``): chunks that the fast path took become one piece of the growing string.
* *Take stock* (``_take_stock``): after ``_MANY`` chunks, or one of so many characters, all but the end is forgotten,
  and the pieces are joined into a block. A string of n characters needs about 1.1 n while it grows, and 2.1 n when the
  blocks are joined at its end; a list of small strings would need 15 n.

Less than ``_MANY * _MANY`` characters can come between two stocks. Nearer to the limit than that, stock is taken at
each chunk: the limit is exact, whatever the chunks are.
"""

from __future__ import annotations

from typing import Final

from streamparse.events import Path
from streamparse.limits import EXCERPT

_MANY: Final = 512
"""A token has 4 characters or so: 2,000 characters between two stocks. That costs nothing per chunk, and a few ten
thousand bytes."""

FAILED: Final = -1
CLOSED: Final = -2
"""What the limit is when nothing may be read any more: after an error, after ``close``."""


class History:
    """See the module. A base class and not a member, because that is one look-up less at each chunk."""

    __slots__ = ("_before", "_growing", "_held", "_known", "_limit", "_many", "_pieces", "_recent", "_solid", "_taken")

    def __init__(self, limit: int) -> None:
        self._recent: list[str] = []
        self._before = 0  # characters before these
        self._known = 0  # and before the first so many of these
        self._held = ""  # the end of the last chunk, which comes again in front of the next
        self._pieces: list[str] = []  # of the string that is read
        self._solid = 0  # so many of them are blocks
        self._growing: Path | None = None  # the fast path is open: more characters for the string at this path
        self._taken = 0  # the first chunk that it took, and that is in no piece yet
        self._limit = limit
        self._many = 0  # what is too much for this chunk: stock is taken
        self._set_pace(limit)

    def _base(self) -> int:
        """The offset of the chunk that is read."""
        recent, known = self._recent, self._known
        last = len(recent) - 1
        if known < last:
            self._before += sum(map(len, recent[known:last]))
            self._known = last
        return self._before

    def _hold(self, text: str, pos: int) -> int:
        """Keep the chunk from ``pos`` for the next one. Returns the end of the chunk."""
        self._held = text[pos:]
        self._recent[-1] = text[:pos]
        return len(text)

    def _settle(self) -> None:
        """Put what the fast path took where the rest of the reader looks for it."""
        recent = self._recent
        if (last := len(recent) - 1) > self._taken:
            self._pieces.append("".join(recent[self._taken : last]))
            self._taken = last

    def _take_stock(self, text: str) -> int:
        """Join, forget, and say how much of the chunk the limit leaves."""
        recent, taken = self._recent, self._taken
        if self._growing is not None and len(recent) - 1 > taken:
            self._settle()
            recent[taken:-1] = self._pieces[-1:]  # they are joined already
        left = self._limit - self._base()
        recent[:-1] = [self._excerpt("")]
        self._known = self._taken = 1
        if len(self._pieces) - self._solid > _MANY // 2:
            self._pieces[self._solid :] = ["".join(self._pieces[self._solid :])]
            self._solid += 1
        self._set_pace(left - len(text))
        return left

    def _set_pace(self, left: int) -> None:
        self._many = _MANY if left > _MANY * _MANY else 0

    def _characters(self) -> str:
        """Of the string that is read, so far. (Between two chunks: every chunk in ``_recent`` has been read.)"""
        return "".join(self._pieces if self._growing is None else self._pieces + self._recent[self._taken :])

    def _excerpt(self, text: str) -> str:
        """The end of the input up to the end of ``text``, which is the beginning of the chunk that is read."""
        before = "".join(self._recent[:-1])[-EXCERPT:] if len(text) < EXCERPT else ""
        return (before + text)[-EXCERPT:]

    def _shut_off(self, limit: int) -> None:
        """Forget the input, and let no more of it in: from here on each chunk goes beyond the limit."""
        self._growing = None
        self._held = ""
        self._recent.clear()
        self._limit = limit
        self._many = -1
