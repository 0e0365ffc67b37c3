"""``write_file``: a whole file, made or replaced."""

from __future__ import annotations

from streamparse.agent.coding_tools.confine import ABSENT, Contents, Root
from streamparse.agent.coding_tools.outcome import Outcome, Rejected, plural, version_of
from streamparse.agent.coding_tools.paths import Missing, shown
from streamparse.agent.coding_tools.text import SourceText, decode

_BLANK = SourceText("")


def write_file(root: Root, path: str, content: str) -> Outcome:
    """Put ``content`` into a file: all of it or, after an error, nothing. Directories on the way are made.

    A new file is UTF-8 with the line ends of ``content``. A text file that is replaced keeps its encoding and byte
    order mark, and its CRLF where all lines had it and ``content`` has none; the result says so.
    Raises ``Rejected`` for a path that cannot be written, ``ToolError`` for what the system refuses.
    """
    before, source = _old(root, path)
    text = content
    if source.newline == "\r\n" and not source.mixed and "\r" not in content:
        text = content.replace("\n", "\r\n")
    data = _encoded(source, text)
    if before is not None and before.data == data:
        name = shown(before.path)
        return Outcome(
            f"{name} already has this content: nothing was written", before.path, before.version, before.version
        )
    resolved, created = root.write(path, data, expected=before.stamp if before else ABSENT)
    written = SourceText(text, source.encoding, source.mark)
    told = "Created" if created else "Replaced"
    size = f"{plural(len(written.lines), 'line')}, {plural(len(data), 'byte')}"
    kept = "" if written.label == "utf-8" else f", {written.label}"
    version = before.version if before else None
    return Outcome(f"{told} {shown(resolved)}: {size}{kept}", resolved, version, version_of(data))


def _old(root: Root, path: str) -> tuple[Contents | None, SourceText]:
    """What is there now, and the form that the new text takes."""
    try:
        before = root.read(path)
    except Missing:
        return None, _BLANK
    source = decode(before.data)
    return before, source if source is not None and source.text else _BLANK


def _encoded(source: SourceText, text: str) -> bytes:
    try:
        return source.encode(text)
    except UnicodeEncodeError as error:
        raise unencodable(source, error, "content") from None


def unencodable(source: SourceText, error: UnicodeEncodeError, argument: str) -> Rejected:
    """The file's encoding lacks a character."""
    char = error.object[error.start]
    if 0xD800 <= ord(char) <= 0xDFFF:
        return Rejected(argument, f"{argument} holds a lone surrogate (U+{ord(char):04X}), which no file can hold")
    return Rejected(
        argument,
        f"the file is {source.label}, which cannot hold {char!r} (U+{ord(char):04X}). Nothing was written. "
        "Use only its characters, or convert the file with run_command (iconv) first",
    )
