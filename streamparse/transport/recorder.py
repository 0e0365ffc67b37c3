"""A recording of a response while it arrives: bytes and their times -> lines to write. What is secret is left out.

No header is ever written, and of the address only its path. The rest, the path, the request and the body, goes through
``Redaction``, which promises this and no more:

* A *secret* (a key that was sent) is replaced wherever it stands in a string of the request, in the path, or in one
  line of the body, also where JSON escapes its characters, and however the body was cut on its way.
* *Patterns*, given as one function, see the same: each string of the request, the path, and each whole line of the
  body, with its JSON escapes. What they do to the JSON in a line is theirs.
* Not found is what is spread over several lines: a secret that a model spells out in several chunks. Nor is one that is
  encoded (Base64, percent signs), unless a pattern knows it.

So bytes wait until their line is complete; without secrets and patterns they do not. A line in which nothing was
replaced is written with the cuts and times at which it came; any other line as one piece, at the time of its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from streamparse.errors import EventTooLargeError
from streamparse.limits import MAX_BODY
from streamparse.transport.recording import Header, Piece, header_line, piece_line

REPLACEMENT = "[redacted]"
"""What stands in the place of a secret."""

HALF = 4
"""Characters of a secret that are worth hiding, where an excerpt was cut inside it."""

_QUOTES = "'\""
"""What may stand around an excerpt."""


class Redaction:
    """Takes secrets out of text. ``secrets`` are strings; ``patterns`` is called with the text that is left."""

    def __init__(self, secrets: Iterable[str] = (), patterns: Callable[[str], str] | None = None) -> None:
        self._found = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(_spellings, self._found))) if self._found else None
        self._patterns = patterns

    @property
    def needed(self) -> bool:
        """Whether there is anything to look for."""
        return self._secrets is not None or self._patterns is not None

    def text(self, text: str) -> str:
        """The text without what is secret."""
        if self._secrets is not None:
            text = self._secrets.sub(REPLACEMENT, text)
        return text if self._patterns is None else self._patterns(text)

    def excerpt(self, text: str) -> str:
        """The same of a text that was cut, perhaps inside a secret: half of one at its end, or start, goes as well."""
        text = self.text(text)
        inner = text.strip(_QUOTES)
        before, after = text.split(inner, 1) if inner else (text, "")
        for secret in self._found:
            inner = _without_half(inner, secret)
        return f"{before}{inner}{after}"

    def line(self, line: bytes) -> bytes:
        """One line of a body. Bytes that are no UTF-8 stay what they are."""
        return self.text(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def value(self, value: Any) -> Any:
        """JSON, each of its strings and keys on its own."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {self.text(name): self.value(each) for name, each in value.items()}
        return value


def _without_half(text: str, secret: str) -> str:
    for size in range(len(secret) - 1, HALF - 1, -1):
        if text.endswith(secret[:size]):
            text = text[:-size] + REPLACEMENT
        if text.startswith(secret[-size:]):
            text = REPLACEMENT + text[size:]
    return text


def _spellings(secret: str) -> str:
    """A pattern for a secret as it is, and for all that JSON may make of it, also twice (JSON inside a string)."""
    return "".join(map(_spelling, secret))


def _spelling(character: str) -> str:
    units = character.encode("utf-16-be")
    escape = "".join(rf"\\+[uU]{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
    bare = re.escape(character)
    if character in '"\\/':
        bare = rf"\\*{bare}"
    return f"(?:{bare}|(?i:{escape}))"


class Recorder:
    """Writes down one response. ``start``, ``add`` and ``close`` return text to write, in this order.

    ``secrets`` and ``redact`` are those of ``Redaction``. ``add`` raises ``EventTooLargeError`` when a line that has to
    wait for its end has more than ``MAX_BODY`` bytes.
    """

    def __init__(
        self, header: Header, *, secrets: Iterable[str] = (), redact: Callable[[str], str] | None = None
    ) -> None:
        self._redaction = Redaction(secrets, redact)
        self.header = msgspec.structs.replace(
            header,
            path=self._redaction.text(header.path),
            request=self._redaction.value(header.request),
            tools=self._redaction.value(header.tools),
        )
        """The header as it is written."""
        self._open: list[tuple[float, bytes]] = []  # the parts of the line that is not complete
        self._size = 0

    def start(self) -> str:
        """The header's line."""
        return header_line(self.header)

    def add(self, data: bytes, at: float) -> str:
        """The lines for what is certain once these bytes have come, ``at`` seconds after the request."""
        at = round(at, 6)
        if not self._redaction.needed:
            return piece_line(Piece.of(at, data)) if data else ""
        written = []
        *complete, rest = re.split(rb"(?<=[\n\r])", data)
        for part in complete:
            self._keep(part, at)
            written.append(self._end_line())
        self._keep(rest, at)
        return "".join(written)

    def close(self, at: float, *, broken: bool = False) -> str:
        """The end of the response; ``broken`` if its connection broke."""
        end = piece_line(Piece(round(at, 6), broken=True)) if broken else ""
        return self._end_line() + end

    def _keep(self, data: bytes, at: float) -> None:
        if not data:
            return
        self._open.append((at, data))
        self._size += len(data)
        if self._size > MAX_BODY:
            raise EventTooLargeError(f"a line of more than {MAX_BODY} bytes, which cannot be searched for secrets")

    def _end_line(self) -> str:
        """The pieces of the line, or what was made of it."""
        line = b"".join(data for _, data in self._open)
        if not line:
            return ""
        redacted = self._redaction.line(line)
        pieces = self._open if redacted == line else [(self._open[-1][0], redacted)]
        written = "".join(piece_line(Piece.of(at, data)) for at, data in pieces if data)
        self._open, self._size = [], 0
        return written
