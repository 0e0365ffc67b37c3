"""Git, run so that nothing in the repository makes it run a program, open a pager or ask a question."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from tempfile import TemporaryFile

from streamparse.agent.coding_tools.bounds import GIT_SECONDS
from streamparse.agent.coding_tools.confine import Root
from streamparse.agent.coding_tools.environment import scrubbed
from streamparse.agent.coding_tools.outcome import ToolError, clipped
from streamparse.agent.coding_tools.process import Running

_SETTINGS = [
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.pager=cat",
    "core.hooksPath=/dev/null",
    "diff.external=",
    "color.ui=false",
    "safe.bareRepository=explicit",  # a folder in the project that looks like a repository is none
]

_ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}

_PATHS = re.compile(r"(?<![\w.])/[\w./-]+")
"""Absolute paths: those of the host are not for the model."""


class GitError(ToolError):
    """Git refused. ``code`` is its exit code, None if there is no git, or it took too long."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


def git(root: Root, arguments: Sequence[str], sink: Callable[[bytes], bool]) -> None:
    """Run git in the root. ``sink`` gets the output, and says when it has enough: git is then ended.

    Raises ``GitError`` without git, and with git's own words where it fails.
    """
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
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
                ["git", *settings, "--literal-pathspecs", *arguments],
                directory=root.directory,
                environment=scrubbed(extra=_ENVIRONMENT),
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
