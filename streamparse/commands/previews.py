"""What a call is about to do, in lines for whoever allows it: a diff, a command, or its arguments.

Nothing is left out: what is not shown is what a bad call would hide. Lines end at LF alone, as they do for a shell, so
that other characters that break lines are seen (the views show them as escapes); a CR that ends a line is the file's
own affair, and is left out of diffs.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

import msgspec

from streamparse.agent.coding_tools.confine import Root
from streamparse.agent.coding_tools.extract_function import extraction
from streamparse.agent.coding_tools.outcome import ToolError
from streamparse.agent.coding_tools.text import decode
from streamparse.commands.wording import counted, value_words
from streamparse.errors import MissingExtraError
from streamparse.events import ToolCall

MOST = 80
"""Lines of a preview that nobody is asked about: a screen and a half. The rest is counted."""


class Preview(msgspec.Struct, frozen=True):
    """``label`` is ``"diff"``, ``"command"`` or ``"call"``."""

    label: str
    lines: list[str]

    @property
    def bounded(self) -> Preview:
        """The first lines of it, and how many there are more: for somebody who is told, and not asked."""
        left_out = len(self.lines) - MOST
        if left_out <= 0:
            return self
        return Preview(self.label, [*self.lines[:MOST], f"… {counted(left_out, 'more line')}"])


def preview(call: ToolCall, root: Root) -> Preview:
    """The preview of a call of one of the coding tools, or of any other. Whole, however long it is."""
    arguments = call.arguments
    match call.name:
        case "run_command":
            return Preview("command", [f"$ {line}" for line in _split(str(arguments.get("command")))])
        case "edit_file":
            return Preview("diff", _edit(root, arguments))
        case "write_file":
            path = str(arguments.get("path"))
            return Preview("diff", _diff(path, _content(root, path), str(arguments.get("content"))))
        case "extract_function" if lines := _extract(root, arguments):
            return Preview("diff", lines)
    return Preview("call", [f"{call.name}: {name} = {value_words(each)}" for name, each in arguments.items()])


def _edit(root: Root, arguments: dict[str, Any]) -> list[str]:
    """The diff of the file; of the fragment alone, where that is not in it as often as it should be."""
    path = str(arguments.get("path"))
    old, new = (_flat(str(arguments.get(name))) for name in ("old_text", "new_text"))
    content = _flat(_content(root, path))
    if old and content.count(old) == arguments.get("occurrences", 1):
        return _diff(path, content, content.replace(old, new))
    return [line for line in _diff(path, old, new) if not line.startswith("@@ -")]


def _extract(root: Root, arguments: dict[str, Any]) -> list[str]:
    """The diff, without its head; nothing where the tool will refuse, or cannot be asked."""
    try:
        diff = extraction(root, **arguments).diff
    except (ToolError, MissingExtraError, TypeError, AttributeError):  # the arguments may be anything
        return []
    return [f"@@ {arguments['path']}", *diff[2:]]


def _content(root: Root, path: str) -> str:
    """What is there now; nothing, if there is no text."""
    try:
        source = decode(root.read(path).data)
    except ToolError:
        return ""
    return "" if source is None else source.text


def _flat(text: str) -> str:
    return text.replace("\r\n", "\n")


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _diff(path: str, old: str, new: str) -> list[str]:
    before, after = _split(_flat(old)), _split(_flat(new))
    if lines := list(_lines(path, before, after)):
        return lines
    return [f"{path}: no line is changed" if old == new else f"{path}: only line ends are changed"]


def _lines(path: str, before: list[str], after: list[str]) -> Iterator[str]:
    for number, line in enumerate(unified_diff(before, after, path, path, lineterm="")):
        if number >= 2:  # the two lines of the head say the same here
            yield line
        elif number == 1:
            yield f"@@ {path}"
