"""``read_file``: the lines of a text file, numbered, a page at a time."""

from __future__ import annotations

from streamparse.agent.coding_tools.bounds import LINE_CHARACTERS, PAGE_CHARACTERS, PAGE_LINES
from streamparse.agent.coding_tools.confine import Root
from streamparse.agent.coding_tools.nearest import read_text
from streamparse.agent.coding_tools.outcome import Outcome, Rejected, clipped, plural
from streamparse.agent.coding_tools.paths import shown


def read_file(root: Root, path: str, start_line: int = 1, end_line: int | None = None) -> Outcome:
    """Lines ``start_line`` to ``end_line``, from 1, both inclusive, at most ``PAGE_LINES``. Each is its number, a tab,
    and its text; a line that is too long says how much of it is missing.

    Raises ``Rejected`` for a path that is no text file, and for lines that the file does not have.
    """
    contents, source = read_text(root, path)
    name, total = shown(contents.path), len(source.lines)
    outcome = {"resource": contents.path, "before": contents.version, "after": contents.version}
    if start_line < 1:
        raise Rejected("start_line", f"start_line counts from 1; found {start_line}", ("1 or more",))
    if end_line is not None and end_line < start_line:
        raise Rejected("end_line", f"end_line ({end_line}) is before start_line ({start_line})")
    if not total and start_line == 1:
        return Outcome(f"{name} is empty (0 lines, {source.label})", **outcome)
    if start_line > total:
        raise Rejected(
            "start_line", f"{name} has {plural(total, 'line')}; start_line is {start_line}", (f"1 to {total}",)
        )
    last = min(total, end_line or total, start_line + PAGE_LINES - 1)
    shown_lines = numbered(source.lines, start_line, last)
    last = start_line + len(shown_lines) - 1
    head = f"{name}: lines {start_line}-{last} of {total}, {source.label}"
    if not source.flat.endswith("\n") and last == total:
        head += ", no line end after the last line"
    if last < min(end_line or total, total):
        shown_lines.append(f"[Go on with start_line={last + 1}]")
    return Outcome("\n".join([head, *shown_lines]), **outcome)


def numbered(lines: list[str], first: int, last: int, limit: int = PAGE_CHARACTERS) -> list[str]:
    """The lines ``first`` to ``last``, from 1, with their numbers; fewer where they have more than ``limit``
    characters, but one at least."""
    found, size = list[str](), 0
    for number in range(first, last + 1):
        line = f"{number}\t{clipped(lines[number - 1], LINE_CHARACTERS)}"
        size += len(line) + 1
        if found and size > limit:
            break
        found.append(line)
    return found
