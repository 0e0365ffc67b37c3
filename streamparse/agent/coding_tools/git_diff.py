"""``git_diff``: what is staged, what is not, and what git does not know yet."""

from __future__ import annotations

from collections.abc import Iterator

from streamparse.agent.coding_tools.bounds import LINE_CHARACTERS, PAGE_CHARACTERS, UNTRACKED
from streamparse.agent.coding_tools.confine import Root
from streamparse.agent.coding_tools.git import GitError, git, in_work_tree, listed
from streamparse.agent.coding_tools.nearest import with_nearest
from streamparse.agent.coding_tools.outcome import Outcome, ToolError, clipped, plural
from streamparse.agent.coding_tools.paths import Missing, shown
from streamparse.agent.coding_tools.text import decode

_DIFF = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--relative"]
_DIFF += ["--submodule=short", "--ignore-submodules=dirty"]  # else git runs itself in the submodule, by its settings

_FILES = 200
"""Changed files that are listed."""

_UNTRACKED_BYTES = 256 * 1024
"""Bytes of an untracked file that is shown; of what is larger only the name."""


def git_diff(root: Root, path: str = ".") -> Outcome:
    """The changes below ``path``: staged, unstaged, untracked; first the files, then the lines, as long as there is
    room. Binary files are named only. Nothing outside the root is shown, also where the repository is larger.

    Raises ``ToolError`` outside a repository and without git, ``Rejected`` for a path that is neither there nor
    changed.
    """
    below = root.lexical(path)
    _require_repository(root)
    room = _Room(PAGE_CHARACTERS)
    for title, options in (("Staged", ["--cached"]), ("Unstaged", [])):
        _tracked(root, title, options, below, room)
    _untracked(root, below, room)
    if room.lines:
        return Outcome("\n".join(room.lines))
    try:
        root.kind(below)
    except Missing as error:
        raise with_nearest(root, error) from None
    return Outcome("No changes" + ("" if below == "." else f" in {shown(below)}"))


class _Room:
    """Lines for the model, as many as there is room for."""

    def __init__(self, characters: int) -> None:
        self.lines: list[str] = []
        self.left = characters

    def add(self, line: str) -> bool:
        """One line more, if there is room."""
        line = clipped(line.removesuffix("\r"), LINE_CHARACTERS)
        self.left -= len(line) + 1
        if self.left >= 0:
            self.lines.append(line)
        return self.left >= 0

    def say(self, line: str) -> None:
        """A line that is shown whether there is room or not."""
        self.lines.append(line)


def _require_repository(root: Root) -> None:
    try:
        inside = in_work_tree(root)
    except GitError as error:
        if "not a git repository" not in str(error):
            raise
        inside = False
    if not inside:
        raise ToolError(
            "The project is not inside a git repository, so there is no diff. Expected one: git init makes it"
        )


def _tracked(root: Root, title: str, options: list[str], below: str, room: _Room) -> None:
    """One section of what git tracks."""
    counts = [line for line in _lines(root, [*_DIFF, *options, "--numstat", "--", below], _FILES * 500) if line]
    if not counts:
        return
    room.say(f"{title}: {plural(len(counts), 'file')}")
    for line in counts[:_FILES]:
        added, deleted, name = [*line.split("\t", 2), "", ""][:3]
        room.add(f"  {name} (binary)" if added == "-" else f"  {name} +{added} -{deleted}")
    if len(counts) > _FILES:
        room.say(f"  [{len(counts) - _FILES} files more]")
    for line in _lines(root, [*_DIFF, *options, "--", below], max(room.left, 0) * 4 + 4096):
        if not room.add(line):
            room.say("[The diff is cut here. Call git_diff with the path of one file]")
            break


def _lines(root: Root, arguments: list[str], limit: int) -> list[str]:
    """The lines that git prints, about ``limit`` bytes of them."""
    output = bytearray()

    def take(data: bytes) -> bool:
        output.extend(data)
        return len(output) <= limit

    git(root, arguments, take)
    lines = output.decode("utf-8", "replace").split("\n")
    return lines if lines[-1] else lines[:-1]


def _untracked(root: Root, below: str, room: _Room) -> None:
    """What git does not know yet, shown as if it were all added."""
    names, more = listed(root, ["ls-files", "--others", "--exclude-standard", "-z", "--", below], _FILES)
    if not names:
        return
    room.say(f"Untracked: {plural(len(names), 'file')}{' and more' if more else ''}")
    for at, name in enumerate(names):
        lines = _added(root, name) if at < UNTRACKED else iter([f"  {shown(name)}"])
        if not all(map(room.add, lines)):
            room.say("[The rest is cut. Call git_diff or read_file with the path of one file]")
            return


def _added(root: Root, name: str) -> Iterator[str]:
    """An untracked file: its name, and its lines where it is text. Links are not followed."""
    try:
        if name.endswith("/") or root.resolve(name) != name:
            yield f"  {shown(name)} ({'a repository of its own' if name.endswith('/') else 'a symbolic link'})"
            return
        source = decode(root.read(name, _UNTRACKED_BYTES).data)
    except ToolError:
        yield f"  {shown(name)} (not shown)"
        return
    if source is None:
        yield f"  {shown(name)} (binary)"
        return
    yield f"  {shown(name)} +{len(source.lines)}"
    yield from (f"+{line}" for line in source.lines)
