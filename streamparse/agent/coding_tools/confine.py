"""``Root``: a directory that nothing leaves, whatever the path says and whoever changes it meanwhile.

Theory. A path is checked by walking it, not by reading it. Every directory on the way is opened by its one name inside
the directory before it (``dir_fd``), and never through a symbolic link (``O_NOFOLLOW``): links are read and walked like
the rest of the path. ``..`` goes back to the descriptor that is open already, and not above the first. So all that is
ever opened was reached from the root by names alone; a directory that is swapped for a link while this runs is an
error, or is still the old directory. The last name is opened the same way, and is looked at again once it is open.

Writing makes a new file beside the old one and renames it over it, both by the descriptor of the directory: readers see
the old content or the new, and a hard link to the old content, wherever it is, keeps the old.

What it cannot know: whether a hard link or a mount inside the root shows something of the outside (reading shows it,
too), and whether somebody else moves a whole directory out of the root while a file is written in it.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import msgspec

from streamparse.agent.coding_tools.bounds import MAX_FILE
from streamparse.agent.coding_tools.outcome import Rejected, ToolError, version_of
from streamparse.agent.coding_tools.paths import (
    Missing,
    below,
    kind_of,
    outside,
    refuse_special,
    require_path,
    shown,
    told,
    too_large,
)
from streamparse.errors import ClosedError, UsageError

_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
# A FIFO or a terminal that gets here in a race must not block, nor become ours.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC

_LINKS = 40
"""Symbolic links on one way: as many as Linux follows."""

ABSENT: Final[tuple[int, ...]] = ()
"""The stamp of a file that is not there."""

SKIPPED = frozenset(
    ".git .hg .svn .jj node_modules .venv venv __pycache__ .tox .nox .mypy_cache .pytest_cache .ruff_cache .hypothesis "
    ".gradle .idea .terraform".split()
)
"""Directories that no listing enters: none of them is source."""


class Contents(msgspec.Struct, frozen=True):
    """A file as it was read. ``stamp`` tells whether it has been changed since."""

    path: str
    data: bytes
    stamp: tuple[int, ...]

    @property
    def version(self) -> str:
        """The version of this content."""
        return version_of(self.data)


class _Place(msgspec.Struct, frozen=True):
    """A name in a directory that is open. ``parts`` is the way there from the root, without links."""

    directory: int
    name: str
    parts: tuple[str, ...]

    def status(self) -> os.stat_result | None:
        """What the name is, None if there is nothing. A link is a link."""
        try:
            return os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None


class Root:
    """A directory, and what may be done inside it. Paths are relative to it; an absolute path inside it is taken, too.

    Every method raises ``Rejected`` for a path that leaves the root, is missing, or is no regular file where one is
    needed (a FIFO or a device is refused without being opened), and ``ToolError`` for what the system refuses. Raises
    ``UsageError`` if there is no such directory, or on a system without ``openat``, ``ClosedError`` once it is closed.
    Usable from several threads.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
            raise UsageError("the coding tools need a system with openat and O_NOFOLLOW (Linux, macOS)")
        given = os.path.abspath(directory)
        self._spelled = tuple(dict.fromkeys((os.path.realpath(given), given)))
        try:
            self._fd = os.open(self._spelled[0], _DIRECTORY)
        except OSError as error:
            raise UsageError(f"the root must be a directory: {os.fspath(directory)} ({error.strerror})") from None
        self._close = weakref.finalize(self, os.close, self._fd)
        self._identity = _identity(os.fstat(self._fd))

    def close(self) -> None:
        """Let go of the directory. The root is closed, too, when it is no longer referred to."""
        self._close()

    def __enter__(self) -> Root:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def directory(self) -> str:
        """The absolute path, for subprocesses. Raises ``ToolError`` if another directory has taken its place."""
        path = self._spelled[0]
        with suppress(OSError):
            if _identity(os.stat(path)) == self._identity:
                return path
        raise ToolError("the project directory has been moved or replaced")

    # Reading

    def read(self, path: str, limit: int = MAX_FILE, *, argument: str = "path") -> Contents:
        """The bytes of a regular file of at most ``limit`` bytes."""
        with self._place(path, argument) as place, told(path):
            _require_file(place, path, argument)
            fd = os.open(place.name, _READ, dir_fd=place.directory)
            try:
                status = os.fstat(fd)
                refuse_special(status, path, argument)
                if status.st_size > limit:
                    raise too_large(path, argument, status.st_size, limit)
                with open(fd, "rb", closefd=False) as file:
                    data = file.read(limit + 1)  # it may be growing
            finally:
                os.close(fd)
            if len(data) > limit:
                raise too_large(path, argument, len(data), limit)
        return Contents("/".join(place.parts), data, _stamp(status))

    def kind(self, path: str, *, argument: str = "path") -> str:
        """``"a file"``, ``"a directory"``, ``"a named pipe"`` and so on, links followed inside the root."""
        with self._place(path, argument) as place, told(path):
            status = place.status()
            if status is None:
                raise Missing(argument, path, place.parts[:-1], place.name)
            return kind_of(status)

    def resolve(self, path: str, *, argument: str = "path") -> str:
        """The path from the root, without links and ``..``; the root itself is ``.``. What it names may be missing."""
        with self._place(path, argument) as place:
            return "/".join(place.parts) or "."

    def lexical(self, path: str, *, argument: str = "path") -> str:
        """The path from the root, ``..`` taken off by name alone: for what git remembers and the disk may not have."""
        parts = list[str]()
        for name in reversed(self._parts(path, argument)):
            if name != "..":
                parts.append(name)
            elif parts:
                parts.pop()
            else:
                raise outside(path, argument)
        return "/".join(parts) or "."

    def version(self, path: str) -> str | None:
        """The version of a file, None if there is no such file. For receipts of writes (B13)."""
        try:
            return self.read(path).version
        except Missing:
            return None

    def names(self, parts: tuple[str, ...], limit: int = 10_000) -> list[str]:
        """What is in the directory that these names lead to, sorted; nothing where they lead nowhere."""
        with suppress(ToolError, OSError), self._place("/".join((*parts, ".")), "path") as place:
            return sorted(name for name, _ in _entries(place.directory, place.name, limit))
        return []

    def walk(self, path: str = ".") -> Iterator[str]:
        """The regular files below a directory, links not followed, sorted, without the directories that are
        ``SKIPPED``. A directory that cannot be read is left out."""
        start = self.resolve(path)
        todo = ["" if start == "." else start]
        while todo:
            folder = todo.pop()
            prefix, found = f"{folder}/" if folder else "", list[tuple[str, os.stat_result]]()
            with suppress(ToolError, OSError), self._place(folder or ".", "path") as place:
                found = sorted(_entries(place.directory, place.name, 100_000))
            yield from (prefix + name for name, status in found if stat.S_ISREG(status.st_mode))
            folders = [name for name, status in found if stat.S_ISDIR(status.st_mode) and name not in SKIPPED]
            todo += [prefix + name for name in reversed(folders)]

    # Writing

    def write(
        self, path: str, data: bytes, *, expected: tuple[int, ...] | None = None, argument: str = "path"
    ) -> tuple[str, bool]:
        """Put ``data`` in the place of a file, whole or not at all, with the mode of the one before; directories on the
        way are made. Returns the path without links and whether the file is new.

        ``expected`` is the stamp of what was read, ``ABSENT`` where nothing was there: a file that has been changed, or
        made, since is not replaced. What git keeps for itself is never written, since it says which programs git runs.
        """
        with self._place(path, argument, create=True) as place, told(path):
            before = _writable(place, path, argument)
            temporary = f".{secrets.token_hex(8)}.tmp"
            fd = os.open(temporary, _CREATE, 0o666, dir_fd=place.directory)
            try:
                with open(fd, "wb") as file:
                    if before is not None:
                        os.fchmod(fd, stat.S_IMODE(before.st_mode) & 0o777)
                    file.write(data)
                    file.flush()
                    os.fsync(fd)
                now = _writable(place, path, argument)
                if expected is not None and expected != (ABSENT if now is None else _stamp(now)):
                    did = "changed" if expected else "made"
                    raise ToolError(
                        f"{shown(path)} was {did} by somebody else meanwhile: nothing was written. Read it again"
                    )
                os.replace(temporary, place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=place.directory)
                raise
        return "/".join(place.parts), before is None

    # The walk

    @contextmanager
    def _place(self, path: str, argument: str, *, create: bool = False) -> Iterator[_Place]:
        """Where ``path`` leads. ``create``: make the directories on the way that are missing; those that were made are
        taken away again if what is done there raises."""
        if not self._close.alive:  # the number of its descriptor may be that of another file by now
            raise ClosedError("this root is closed; make a new one")
        todo = self._parts(path, argument)
        way, parts, links = [os.dup(self._fd)], list[str](), 0
        made = list[tuple[int, str]]()  # the directory that it is in, which stays open, and its name
        try:
            with told(path):
                while todo:
                    name = todo.pop()
                    if name == "..":
                        if not parts:
                            raise outside(path, argument)
                        os.close(way.pop())
                        parts.pop()
                        continue
                    target = _link(way[-1], name)
                    if target is None:
                        if not todo:
                            break
                        if create:
                            _make(way[-1], name, path, argument, parts, made)
                        way.append(_enter(way[-1], name, path, argument, tuple(parts)))
                        parts.append(name)
                        continue
                    links += 1
                    if links > _LINKS:
                        raise Rejected(argument, f"{shown(path)} goes through too many symbolic links")
                    if target.startswith("/"):
                        while parts:
                            os.close(way.pop())
                            parts.pop()
                    todo += self._parts(target, argument, link=path)
                else:
                    name = "."
            yield _Place(way[-1], name, tuple(parts if name == "." else [*parts, name]))
        except BaseException:
            for fd, name in reversed(made):
                with suppress(OSError):  # somebody else has put something into it
                    os.rmdir(name, dir_fd=fd)
            raise
        finally:
            for fd in (*way, *(fd for fd, _ in made)):
                os.close(fd)

    def _parts(self, path: str, argument: str, *, link: str | None = None) -> list[str]:
        """The names in ``path``, the last one first. ``link`` is the path whose link this is."""
        require_path(path, argument)
        inner = path
        if path.startswith("/"):
            inner = next((rest for root in self._spelled if (rest := below(path, root)) is not None), "")
            if not inner:
                raise outside(path if link is None else link, argument, link is not None)
        return [name for name in reversed(inner.split("/")) if name not in ("", ".")]


def _link(directory: int, name: str) -> str | None:
    """Where a symbolic link leads, None if the name is none (or nothing)."""
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
            return None
        raise


def _make(directory: int, name: str, path: str, argument: str, parts: list[str], made: list[tuple[int, str]]) -> None:
    """Make a directory inside another one if nothing is there, and note it in ``made``."""
    if not _ours(parts, name):
        raise _gits(path, argument)
    try:
        os.mkdir(name, dir_fd=directory)
    except FileExistsError:
        return
    made.append((os.dup(directory), name))


def _gits(path: str, argument: str) -> Rejected:
    return Rejected(argument, f"{shown(path)} belongs to git: change it with git commands. Nothing was written")


def _enter(directory: int, name: str, path: str, argument: str, parts: tuple[str, ...]) -> int:
    """Open a directory inside another one."""
    try:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    except FileNotFoundError:
        raise Missing(argument, path, parts, name) from None
    except NotADirectoryError:
        here = shown("/".join((*parts, name)))
        raise Rejected(argument, f"{shown(path)} does not exist: {here} is not a directory") from None


def _ours(parts: list[str], name: str) -> bool:
    """Whether a directory may be made here: not in what git keeps for itself."""
    return not any(part.casefold() == ".git" for part in (*parts, name))


def _writable(place: _Place, path: str, argument: str) -> os.stat_result | None:
    """What is there now, None if nothing. Raises ``Rejected`` unless a file may stand here instead."""
    if not _ours(list(place.parts), ""):
        raise _gits(path, argument)
    if place.name == ".":
        raise Rejected(argument, f"{shown(path)} is a directory. Nothing was written")
    _require_file_name(path, argument)
    status = place.status()
    if status is not None:
        refuse_special(status, path, argument)
        if not status.st_mode & 0o222:
            raise ToolError(f"{shown(path)} is read-only. Nothing was written")
    return status


def _require_file(place: _Place, path: str, argument: str) -> None:
    """The look before the open: opening a device can already do something."""
    status = place.status()
    if status is None:
        raise Missing(argument, path, place.parts[:-1], place.name)
    refuse_special(status, path, argument)
    _require_file_name(path, argument)


def _require_file_name(path: str, argument: str) -> None:
    """What ends like a directory names none of the files."""
    if path.endswith(("/", "/.")):
        raise Rejected(argument, f"{shown(path)} names a directory. Expected the path of a file")


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _entries(directory: int, name: str, limit: int) -> list[tuple[str, os.stat_result]]:
    """The names in a directory, with what they are."""
    fd = os.open(name, _DIRECTORY, dir_fd=directory)
    found = []
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                with suppress(OSError):
                    found.append((entry.name, entry.stat(follow_symlinks=False)))
                if len(found) >= limit:
                    break
    finally:
        os.close(fd)
    return found
