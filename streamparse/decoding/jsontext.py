"""The words of JSON text (RFC 8259), without state: what the layers of the reader need to know of characters.

*Strings.* ``BODIES`` run to the first character that is not part of a string's body: the closing quote, the end of
the text, a half or an illegal escape, a raw control character (unless it is tolerated) or a raw surrogate. One match
of an expression finds it, and proves that all escapes before it are whole and legal, surrogate pairs included.
``decoded`` then turns the run into characters, with the C function of the standard library. What begins with a
backslash and is not whole is either a prefix of a legal escape, and more text may complete it, or a fault:
``escape_prefix`` says how far it is legal, ``escape_fault`` what is wrong with it.

*Numbers.* A number is walked through ``NUMBER``, a table of phases: a phase maps a character to the next phase, says
what the number is if it ends here, and what may come. ``number`` then gives the value.

All of it is linear in the text that it is given, and nothing here raises.
"""

from __future__ import annotations

import json.decoder
import re
from math import isinf
from typing import Any, Final

from streamparse.events import ErrorCode

scanstring: Any = json.decoder.scanstring  # type: ignore[attr-defined]  # C where there is C; missing from the stubs

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_LINE_BREAK: Final = re.compile(r"[\n\r]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

MAX_NUMBER: Final = 4300
"""Characters of one number. It is the interpreter's own bound for the digits of an integer: beyond it reading takes
quadratic time, and the value could not be written as JSON again."""

DELIMITERS: Final = frozenset(" \t\n\r,]}")
"""What proves that a number is complete (J1)."""

LITERALS: Final[dict[str, tuple[str, bool | None]]] = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}
PYTHON_LITERALS: Final[dict[str, tuple[str, bool | None]]] = {
    "T": ("True", True),
    "F": ("False", False),
    "N": ("None", None),
}

FOREIGN: Final = {
    "N": "NaN is not JSON, nor is None",
    "I": "Infinity is not JSON",
    "T": "True is not JSON",
    "F": "False is not JSON",
    "u": "undefined is not JSON",
    "'": "single quotes are not JSON",
}
"""What a character that begins no JSON value most likely begins."""


def skip_space(text: str, start: int) -> int:
    """The next place that is no white space."""
    match = _SPACE.match(text, start)
    return match.end() if match else start


def find_line_break(text: str, start: int) -> int:
    """The next line break (CR or LF), or the end of the text."""
    match = _LINE_BREAK.search(text, start)
    return match.start() if match else len(text)


# Strings --------------------------------------------------------------------------------------------------------------

_HEX = "[0-9a-fA-F]"
_HIGH = rf"\\u[dD][89abAB]{_HEX}{{2}}"
_LOW = rf"\\u[dD][c-fC-F]{_HEX}{{2}}"
_ESCAPE = rf'(?:\\["\\/bfnrt]|\\u(?:(?![dD][89a-fA-F]){_HEX}{{4}})|{_HIGH}{_LOW})'
_PLAIN = r'[^"\\\x00-\x1f\ud800-\udfff]*+'
_PLAIN_TOLERANT = r'[^"\\\ud800-\udfff]*+'

BODIES: Final = (
    re.compile(f"{_PLAIN}(?:{_ESCAPE}{_PLAIN})*+"),
    re.compile(f"{_PLAIN_TOLERANT}(?:{_ESCAPE}{_PLAIN_TOLERANT})*+"),
)
"""A run of a string's body; the second lets raw control characters pass (J5)."""

PLAIN_BODIES: Final = (re.compile(_PLAIN), re.compile(_PLAIN_TOLERANT))
"""The same, without escapes: for a reader that looks at each of them."""

# What an escape may be while it is not whole; a high surrogate waits for its low half.
_PREFIX = re.compile(
    rf"""\\(?:u(?:
        [dD][89abAB](?:{_HEX}(?:{_HEX}(?:\\(?:u(?:[dD](?:[c-fC-F]{_HEX}?)?)?)?)?)?)?
      | [dD](?:[0-7]{_HEX}?)?
      | (?![dD]){_HEX}{{1,3}}
    )?)?""",
    re.VERBOSE,
)


def simple_escapes(text: str) -> tuple[int, str]:
    """The same for a small chunk of a body, and its characters; (-1, "") if it is not simple.

    Simple is what the C function alone can be trusted with: no ``\\u``, whose surrogates it would let pass, no raw
    control character or surrogate, and no half escape at the end.
    """
    if "\\u" not in text and text.isprintable() and text[-1] != "\\":
        try:
            piece, end = scanstring(text + '"', 0, True)
        except ValueError:
            pass  # an illegal escape
        else:
            return end - 1, piece
    return -1, ""


def decoded(text: str, start: int, end: int) -> str:
    """The characters of a run that one of ``BODIES`` matched."""
    if text.find("\\", start, end) < 0:
        return text[start:end]
    if text.startswith('"', end):  # spares a copy of the run
        return str(scanstring(text, start, False)[0])
    return str(scanstring(text[start:end] + '"', 0, False)[0])


def escape_prefix(text: str, start: int) -> int:
    """Where the longest prefix of a legal escape that begins at ``start`` ends."""
    match = _PREFIX.match(text, start)
    return match.end() if match else start


_LEGAL_ESCAPE = re.compile(_ESCAPE)
_LETTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

# Python's own, as ``repr`` writes them.
_PYTHON_ESCAPE = re.compile(rf"\\x({_HEX}{{2}})|\\U(000{_HEX}{{5}}|0010{_HEX}{{4}})")
_PYTHON_PREFIX = re.compile(rf"\\(?:x{_HEX}?|U(?:0{{0,2}}|000{_HEX}{{0,4}}|0010{_HEX}{{0,3}}|001))")

_LONE = re.compile(rf"\\u[dD][89a-fA-F]{_HEX}{{2}}")
_PYTHON_LONE = re.compile(rf"\\U0000[dD][89a-fA-F]{_HEX}{{2}}")
_CUT_UNICODE = re.compile(rf"\\u{_HEX}{{0,3}}")


def escape(text: str, start: int, *, python: bool) -> tuple[int, str]:
    """The end of the escape at ``start``, and its character; the end is 0 if more text decides, negative if it is
    none. ``python`` adds ``\\x41`` and ``\\U0001f600``."""
    if (letter := _LETTERS.get(text[start + 1])) is not None:
        return start + 2, letter
    if match := _LEGAL_ESCAPE.match(text, start):
        return match.end(), str(scanstring(match[0] + '"', 0, True)[0])
    if escape_prefix(text, start) == len(text):
        return 0, ""
    if python:
        match = _PYTHON_ESCAPE.match(text, start)
        if match and not _PYTHON_LONE.fullmatch(match[0]):
            return match.end(), chr(int(match[1] or match[2], 16))
        if _PYTHON_PREFIX.fullmatch(text, start):
            return 0, ""
    return -2, ""


def lone_surrogate(text: str, start: int, *, python: bool) -> int:
    """The end of an escape that is half a surrogate pair; 0 if it is none."""
    match = _LONE.match(text, start) or (_PYTHON_LONE.match(text, start) if python else None)
    return match.end() if match else 0


def cut_unicode(text: str, start: int) -> bool:
    """Whether the text ends inside ``\\u`` and four digits, whatever these are."""
    return _CUT_UNICODE.fullmatch(text, start) is not None


def escape_fault(text: str, start: int, end: int) -> tuple[ErrorCode, str, tuple[str, ...]]:
    """Code, reason and what was expected (J2, J6), for an escape that is legal from ``start`` up to ``end`` only."""
    seen, char = text[start:end], text[end]
    if len(seen) >= len("\\ud83d"):
        reason = f"{seen[:6]} without the other half of the surrogate pair"
        return ErrorCode.LONE_SURROGATE, reason, ("an escape from \\udc00 to \\udfff",)
    if seen in ("\\ud", "\\uD") and char in "cdefCDEF":
        reason = f"{seen}{char}.. without the first half of a surrogate pair"
        return ErrorCode.LONE_SURROGATE, reason, ()
    expected = "a hexadecimal digit" if len(seen) > 1 else 'one of "\\/bfnrtu'
    return ErrorCode.INVALID_JSON, f"illegal escape {seen}{shown(char)}", (expected,)


# Numbers --------------------------------------------------------------------------------------------------------------


class Phase(dict[str, "Phase | None"]):
    """A place inside a number: what each character leads to, None for a delimiter and whatever may not come. ``kind``
    is the number's type if it ends here, ``expected`` what may come if it cannot."""

    __slots__ = ("expected", "kind")

    def __init__(self, kind: type[int] | type[float] | None, *expected: str) -> None:
        super().__init__(dict.fromkeys(DELIMITERS))
        self.kind = kind
        self.expected = expected

    def __missing__(self, char: str) -> None:
        return None


def _number_table() -> Phase:
    minus, start = Phase(None, "a digit"), Phase(None)
    zero, digits = Phase(int), Phase(int)
    point, fraction = Phase(None, "a digit"), Phase(float)
    e, sign, exponent = Phase(None, "a digit", "'+'", "'-'"), Phase(None, "a digit"), Phase(float)
    start["-"] = minus
    for phase in (start, minus):
        phase |= dict.fromkeys("123456789", digits) | {"0": zero}
    for run, begins in ((digits, (digits,)), (fraction, (point, fraction)), (exponent, (e, sign, exponent))):
        for phase in begins:
            phase |= dict.fromkeys("0123456789", run)
    for phase in (zero, digits):
        phase["."] = point
    for phase in (zero, digits, fraction):
        phase |= dict.fromkeys("eE", e)
    e |= dict.fromkeys("+-", sign)
    return start


NUMBER: Final = _number_table()
"""The phase before the first character."""


def number(token: str, kind: type[int] | type[float]) -> int | float | None:
    """The value of a whole number, integers exact; None if it is out of range (``1e400``, or the interpreter's own
    bound for integers has been lowered)."""
    try:
        value = kind(token)
    except ValueError:
        return None
    return None if kind is float and isinf(value) else value


def printable(text: str) -> str:
    """The text with U+FFFD for each surrogate: what a message quotes has to be printable."""
    return _SURROGATE.sub("\ufffd", text)


def shown(char: str) -> str:
    """A character for a message: itself, or its number if it cannot be seen."""
    return char if char.isprintable() else f"U+{ord(char):04X}"
