"""Markdown code fences in text (N12): a call that opens inside one is an example more likely than a call.

A fence is a run of three or more backticks or tildes at the start of a line, indented or not. It is closed by a run
of the same sign, at least as long, with nothing else on its line; so a fence of four may hold a fence of three."""

from __future__ import annotations


class Fence:
    """Follows the text of an answer from one run to the next."""

    __slots__ = ("_ended", "_open", "_run")

    def __init__(self) -> None:
        self._open = ""
        self._run = ""  # the last run, until the rest of its line says what it is
        self._ended = False  # the run itself is over

    @property
    def pending(self) -> bool:
        """Whether all text has to be seen: a run is not judged yet."""
        return bool(self._run)

    def note(self, run: str) -> None:
        """Three signs at the start of a line."""
        self._run, self._ended = run, False

    def see(self, text: str) -> None:
        """The text that follows."""
        if not self._run:
            return
        if not self._ended:
            rest = text.lstrip(self._run[0])
            self._run += text[: len(text) - len(rest)]
            text = rest
        if not text:
            return
        self._ended = True
        word = text.lstrip(" \t\r")
        if word:
            self._judge(word[0] == "\n")

    def inside(self) -> str:
        """The fence that is open here, or empty."""
        if self._run:
            self._judge(True)
        return self._open

    def _judge(self, alone: bool) -> None:
        run, self._run = self._run, ""
        if not self._open:
            self._open = run
        elif alone and run.startswith(self._open):
            self._open = ""
