"""Files as text: bytes -> text with its encoding, byte order mark and line ends, and back to the same bytes.

Nothing is translated. ``SourceText.text`` holds the line ends of the file; ``flat`` is the same text with LF alone, as
models write it, and ``offset`` leads from a place in it to the place in ``text``.

A line ends at LF, or at CR LF; at CR alone only in a file that has no LF at all.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from functools import cached_property

_MARKS = [  # the longer ones first: that of UTF-32 starts like that of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
]
_COOKIE = re.compile(rb"\A(?:[^\r\n]*\r?\n)?[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)")
_DECLARED = re.compile(r"(cp|iso8859|iso2022|koi8|gb|big5|hz|shift_jis|euc|mac_|mac-|latin|johab)")
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_NAMES = {"\n": "LF", "\r\n": "CRLF", "\r": "CR"}


class SourceText:
    """The text of a file, and all that is needed to write it back."""

    def __init__(self, text: str, encoding: str = "utf-8", mark: bytes = b"", *, guessed: bool = False) -> None:
        self.text = text
        self.encoding = encoding
        self.mark = mark
        self.guessed = guessed

    @cached_property
    def newline(self) -> str:
        """The line end that the file uses most; LF where it has none."""
        pairs, feeds, returns = self.text.count("\r\n"), self.text.count("\n"), self.text.count("\r")
        if returns and not feeds:
            return "\r"
        return "\r\n" if pairs * 2 > feeds else "\n"

    @property
    def mixed(self) -> bool:
        """Whether some lines end in CRLF and some in LF."""
        return 0 < self.text.count("\r\n") < self.text.count("\n")

    @cached_property
    def flat(self) -> str:
        """The text with LF as its only line end."""
        return self.text.replace("\r" if self.newline == "\r" else "\r\n", "\n")

    @cached_property
    def _pairs(self) -> list[int]:
        """Where in ``flat`` an LF stands for CR LF."""
        if self.newline == "\r" or "\r\n" not in self.text:
            return []
        return [found.start() - before for before, found in enumerate(re.finditer("\r\n", self.text))]

    def offset(self, flat: int) -> int:
        """The place in ``text`` of a place in ``flat``."""
        return flat + bisect_left(self._pairs, flat)

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends. A final line end starts no further line."""
        lines = self.flat.split("\n")
        if not lines[-1]:
            lines.pop()
        return lines

    def line_at(self, flat: int) -> int:
        """The number, from 1, of the line at a place in ``flat``."""
        return self.flat.count("\n", 0, flat) + 1

    def encode(self, text: str) -> bytes:
        """The bytes of a file with this text, in this encoding. Raises ``UnicodeEncodeError``."""
        return self.mark + text.encode(self.encoding)

    @property
    def label(self) -> str:
        """Encoding and line ends in words: ``utf-8 with BOM, CRLF line ends``."""
        encoding = self.encoding.removesuffix("-le").removesuffix("-be") if self.mark else self.encoding
        words = encoding + (" with BOM" if self.mark else "") + (" (guessed: it is not utf-8)" if self.guessed else "")
        if self.mixed:
            return f"{words}, mixed LF and CRLF line ends"
        return words if self.newline == "\n" else f"{words}, {_NAMES[self.newline]} line ends"


def decode(data: bytes) -> SourceText | None:
    """The text in these bytes; None if they are binary. Encoding it again gives the same bytes.

    A byte order mark decides. Then UTF-8, UTF-16 without a mark if every other byte of Latin text is zero, what a
    Python file declares, and last windows-1252 or latin-1, which reads anything: so it must look like text.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decoded(data, encoding, mark)
    if b"\0" in data:
        return _wide(data)
    if len(_CONTROLS.findall(data[:65536])) * 50 > len(data[:65536]):
        return None
    return _decoded(data, "utf-8") or _declared(data) or _western(data)


def _decoded(data: bytes, encoding: str, mark: bytes = b"", guessed: bool = False) -> SourceText | None:
    try:
        source = SourceText(data[len(mark) :].decode(encoding), encoding, mark, guessed=guessed)
        return source if source.encode(source.text) == data else None
    except UnicodeError:
        return None


def _wide(data: bytes) -> SourceText | None:
    """UTF-16 without a byte order mark."""
    head = data[:4096]
    for encoding, zeros, others in (("utf-16-le", head[1::2], head[::2]), ("utf-16-be", head[::2], head[1::2])):
        if zeros.count(0) * 10 >= len(zeros) * 7 and len(others) > 2 and not _CONTROLS.search(others):
            return _decoded(data, encoding, guessed=True)
    return None


def _declared(data: bytes) -> SourceText | None:
    found = _COOKIE.search(data[:1024])
    try:
        encoding = codecs.lookup(found[1].decode("ascii")).name if found else ""
    except (LookupError, UnicodeError):
        return None
    return _decoded(data, encoding) if _DECLARED.match(encoding) else None


def _western(data: bytes) -> SourceText | None:
    windows = any(0x80 <= byte <= 0x9F for byte in data)  # controls in latin-1, quotes and the euro sign in the other
    return (_decoded(data, "cp1252", guessed=True) if windows else None) or _decoded(data, "latin-1", guessed=True)
