"""An envelope around calls, while it is open; and text that stands where only tags may (N10)."""

from __future__ import annotations

from streamparse.limits import LOOKAHEAD


class Stray:
    """Text that is no tag, where only tags may stand. It comes in fragments; a bounded piece of it is kept."""

    __slots__ = ("_told", "offset", "text")

    def __init__(self) -> None:
        self.text = ""
        self.offset = 0
        self._told = True

    def add(self, text: str, offset: int) -> None:
        """More of it. Behind a ``take`` a new one begins."""
        if self._told:
            self.text, self.offset, self._told = "", offset, False
        self.text += text[: LOOKAHEAD - len(self.text)]

    def take(self) -> str | None:
        """All of it, stripped, once it is over; None if there was none."""
        if self._told:
            return None
        self._told = True
        return self.text.strip()


class Envelope:
    """How many calls an envelope holds, and the text in it that is no tag."""

    __slots__ = ("calls", "stray")

    def __init__(self) -> None:
        self.calls = 0
        self.stray = Stray()
