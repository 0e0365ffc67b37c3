"""Paths and files in words: what can be no path, what is no regular file, and how that is told to the model."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from streamparse.agent.coding_tools.outcome import Rejected, ToolError, clipped

_KINDS = [
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
]


class Missing(Rejected):
    """There is no such file. ``asked`` is the path as it was given, ``parts`` the way to it as far as it exists,
    ``name`` the first name that does not."""

    def __init__(self, argument: str, path: str, parts: tuple[str, ...], name: str) -> None:
        where = shown("/".join(parts)) or "the project root"
        super().__init__(argument, f"{shown(path)} does not exist: {where} has no {shown(name)!r}")
        self.asked = path
        self.parts = parts
        self.name = name


def shown(path: str) -> str:
    """A path as text that can be printed: bytes that are no UTF-8 and control characters as escapes."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    printable = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return clipped(printable, 300)


def require_path(path: str, argument: str) -> None:
    """Raises ``Rejected`` for what no file can be called."""
    if not isinstance(path, str) or not path:
        raise Rejected(argument, f"{argument} must be a path relative to the project root; found {path!r}")
    if "\0" in path:
        raise Rejected(argument, f"{argument} holds a NUL character")
    if len(path) > 4096:
        raise Rejected(argument, f"{argument} is longer than any path: {len(path):,} characters")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise Rejected(argument, f"{argument} holds a lone surrogate, which no file name has") from None


def below(path: str, root: str) -> str | None:
    """The rest of an absolute path inside ``root``."""
    prefix = root if root.endswith("/") else f"{root}/"
    return (path[len(prefix) :] or ".") if f"{path}/".startswith(prefix) else None


def outside(path: str, argument: str, link: bool = False) -> Rejected:
    """The path leads out of the root; ``link``: by way of a symbolic link."""
    how = "leads outside the project through a symbolic link" if link else "is outside the project"
    return Rejected(argument, f"{shown(path)} {how}. Expected a path relative to the project root")


@contextmanager
def told(path: str) -> Iterator[None]:
    """What the system refuses, in words for the model."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ToolError(f"{shown(path)} became a symbolic link while it was opened: refused") from None
        raise ToolError(f"{shown(path)}: {error.strerror or 'refused by the system'}") from None


def refuse_special(status: os.stat_result, path: str, argument: str) -> None:
    """Raises ``Rejected`` unless it is a regular file."""
    if not stat.S_ISREG(status.st_mode):
        raise Rejected(argument, f"{shown(path)} is {kind_of(status)}. Expected a regular file")


def kind_of(status: os.stat_result) -> str:
    """``a file``, ``a directory``, ``a named pipe`` and so on."""
    return next((word for test, word in _KINDS if test(status.st_mode)), "a file")


def too_large(path: str, argument: str, size: int, limit: int) -> Rejected:
    """The file has more bytes than are read."""
    return Rejected(
        argument,
        f"{shown(path)} has {size:,} bytes or more, and at most {limit:,} can be read. Use run_command with "
        "head, tail, sed -n or grep",
    )
