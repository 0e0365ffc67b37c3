"""Git, run so that nothing in the repository makes it run a program, open a pager or ask a question.

What could: a program in the configuration (filters, external diff and textconv, a file system monitor, hooks, a pager,
a credential helper), a fetch of objects that a partial clone lacks (any program that its remote names), the same in the
configuration of a submodule, which git runs itself in (``git_diff`` keeps it from that), and a ``git`` that lies in the
project. Aliases cannot stand for git's own commands, and merge drivers run in merges only.

Filters and hooks have names of their own, so they are looked up first, and each is overridden: also those of the user,
such as Git LFS, since it is the repository that says which files go through them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from tempfile import TemporaryFile

from streamparse.agent.coding_tools.bounds import GIT_SECONDS
from streamparse.agent.coding_tools.confine import Root
from streamparse.agent.coding_tools.environment import scrubbed
from streamparse.agent.coding_tools.outcome import ToolError, clipped
from streamparse.agent.coding_tools.paths import below
from streamparse.agent.coding_tools.process import Running

_SETTINGS = [
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.pager=cat",
    "core.hooksPath=/dev/null",
    "diff.external=",
    "diff.autoRefreshIndex=false",  # it writes the index, and there is a hook for that
    "color.ui=false",
    "safe.bareRepository=explicit",  # a folder in the project that looks like a repository is none
]

_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # the same for a git that is too old for it: no transport has this name
    "LC_ALL": "C.UTF-8",
}

_OFF = {"filter": ("clean=", "smudge=", "process=", "required=false"), "hook": ("enabled=false",)}
"""What is said of each filter and each hook in the configuration."""

_NAMED = 100
"""Filters and hooks that are overridden: a command line has its limits. Nobody has so many."""

_NAMED_BYTES = 50_000
"""Bytes of the list of their keys."""

_PATHS = re.compile(r"(?<![\w.])/[\w./-]+")
"""Absolute paths: those of the host are not for the model."""


class GitError(ToolError):
    """Git refused. ``code`` is its exit code, None if there is no git, or it took too long."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


def git(root: Root, arguments: Sequence[str], sink: Callable[[bytes], bool]) -> None:
    """Run git in the root. ``sink`` gets the output, and says when it has enough: git is then ended.

    Raises ``GitError`` without git, with git's own words where it fails, and for filters that cannot be overridden.
    """
    _git(root, [*_SETTINGS, *_overrides(root)], arguments, sink)


def listed(root: Root, arguments: Sequence[str], limit: int) -> tuple[list[str], bool]:
    """The names that git lists with ``-z``, at most ``limit``, and whether there are more."""
    output, count = bytearray(), 0

    def take(data: bytes) -> bool:
        nonlocal count
        output.extend(data)
        count += data.count(0)
        return count <= limit

    git(root, arguments, take)
    names = bytes(output).split(b"\0")[:-1]
    return [name.decode("utf-8", "surrogateescape") for name in names[:limit]], len(names) > limit


def in_work_tree(root: Root) -> bool:
    """Whether the root is inside a git work tree. Raises ``GitError`` outside a repository, and without git."""
    output = bytearray()

    def take(data: bytes) -> bool:
        output.extend(data)
        return True

    git(root, ["rev-parse", "--is-inside-work-tree"], take)
    return output.startswith(b"true")


def _git(root: Root, settings: Sequence[str], arguments: Sequence[str], sink: Callable[[bytes], bool]) -> None:
    options = [word for setting in settings for word in ("-c", setting)]
    enough = False
    running: Running

    def take(data: bytes) -> None:
        nonlocal enough
        if not enough and not sink(data):
            enough = True
            running.kill()

    with TemporaryFile() as errors:
        try:
            running = Running(
                ["git", "--no-pager", *options, "--literal-pathspecs", *arguments],
                directory=root.directory,
                environment=_environment(root.directory),
                sink=take,
                errors=errors,
            )
        except FileNotFoundError:
            raise GitError("git is not installed") from None
        except OSError as error:
            raise GitError(f"git could not be started: {error.strerror}") from None
        ended = running.wait(GIT_SECONDS)
        errors.seek(0)
        told = _PATHS.sub("…", errors.read(4096).decode("utf-8", "replace").strip())
    if ended.how == "timeout":
        raise GitError(f"git {arguments[0]} took more than {GIT_SECONDS:g} s")
    if ended.code and not enough:
        raise GitError(f"git {arguments[0]} failed ({ended.code}): {clipped(told, 300)}", ended.code)


def _environment(directory: str) -> dict[str, str]:
    """That of commands, with the programs outside the project only."""
    environment = scrubbed(extra=_ENVIRONMENT)
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    outside = [
        folder for folder in folders if os.path.isabs(folder) and below(os.path.realpath(folder), directory) is None
    ]
    return {**environment, "PATH": os.pathsep.join(outside) or os.defpath}


def _overrides(root: Root) -> list[str]:
    """The settings that turn off each filter and each hook that the configuration names."""
    output = bytearray()

    def take(data: bytes) -> bool:
        output.extend(data)
        return len(output) <= _NAMED_BYTES

    try:
        _git(root, _SETTINGS, ["config", "--null", "--name-only", "--get-regexp", rf"^({'|'.join(_OFF)})\..*\."], take)
    except GitError as error:
        if error.code != 1:  # there is none
            raise
    names = {key.rpartition(".")[0] for key in os.fsdecode(bytes(output)).split("\0") if key}
    ambiguous = any("=" in name for name in names)  # -c would take the first = for the end of the key
    if ambiguous or len(names) > _NAMED or len(output) > _NAMED_BYTES:
        raise GitError("git was not run: the repository's configuration names filters that cannot be turned off")
    return [f"{name}.{setting}" for name in sorted(names) for setting in _OFF[name.partition(".")[0]]]
