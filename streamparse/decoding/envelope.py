"""An envelope around calls, while it is open."""

from __future__ import annotations

from streamparse.limits import LOOKAHEAD


class Envelope:
    """How many calls it holds, and the text in it that is no tag (N10); of that a bounded piece is kept."""

    __slots__ = ("_told", "calls", "stray", "stray_offset")

    def __init__(self) -> None:
        self.calls = 0
        self.stray = ""
        self.stray_offset = 0
        self._told = True

    def add_stray(self, text: str, offset: int) -> None:
        """More text that is no tag."""
        if self._told:
            self.stray, self.stray_offset, self._told = "", offset, False
        self.stray += text[: LOOKAHEAD - len(self.stray)]

    def take_stray(self) -> str | None:
        """The text since it was last taken, stripped; None if there was none."""
        if self._told:
            return None
        self._told = True
        return self.stray.strip()
