"""What becomes of a tag that was found in opaque text."""

from __future__ import annotations

from enum import IntEnum


class Verdict(IntEnum):
    """The answers of the scanner, its chains and a decoder's guard."""

    TAKE = 0  # it counts
    DATA = 1  # it is text
    WAIT = 2  # more input decides
    LAST = 3  # a guard's answer: it counts only if nothing but the end of the answer follows its chain
    FADE = 4  # the stream ended before it could count: text, or a tag that was cut off


TAKE, DATA, WAIT, LAST, FADE = Verdict
