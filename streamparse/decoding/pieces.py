"""Text that comes in pieces and is wanted whole.

Operations: ``append`` a piece (a list's own append, so that the fastest path is one C call), ``compact`` now and
then, and ``text``. A list of four-character strings takes ten times the memory of the text, and joining hundreds of
thousands takes milliseconds; so ``compact``, called every few thousand characters, joins the pieces to one block.
``io.StringIO`` would do the same, but only every 100,000 pieces."""

from __future__ import annotations

BLOCK = 4096
"""Characters after which whoever appends should compact: small against a value, large against the cost of a join."""

_MANY = 64  # fewer pieces than this are not worth a block


class Pieces:
    """A growing text. ``append`` is O(1), ``text`` O(length) once and then free until something is appended."""

    __slots__ = ("_blocks", "_pieces", "append")

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._pieces: list[str] = []
        self.append = self._pieces.append

    def compact(self) -> None:
        """Make one block of the pieces, if there are many."""
        if len(self._pieces) >= _MANY:
            self._blocks.append("".join(self._pieces))
            self._pieces.clear()

    def add(self, text: str) -> None:
        """``append`` and ``compact``."""
        self.append(text)
        self.compact()

    def text(self) -> str:
        """The whole text."""
        blocks = self._blocks + self._pieces
        if len(blocks) > 1:
            self._blocks = blocks = ["".join(blocks)]
            self._pieces.clear()
        return blocks[0] if blocks else ""
