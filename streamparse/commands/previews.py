"""What a call is about to do, in lines for whoever allows it: a diff, a command, or its arguments."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

import msgspec

from streamparse.agent.coding_tools.confine import Root
from streamparse.agent.coding_tools.outcome import ToolError
from streamparse.agent.coding_tools.text import decode
from streamparse.commands.wording import counted, value_words
from streamparse.events import ToolCall

MOST = 80
"""Lines of a preview: a screen and a half. The rest is counted."""


class Preview(msgspec.Struct, frozen=True):
    """``label`` is ``"diff"``, ``"command"`` or ``"call"``."""

    label: str
    lines: list[str]


def preview(call: ToolCall, root: Root) -> Preview:
    """The preview of a call of one of the coding tools, or of any other."""
    arguments = call.arguments
    if call.name == "run_command":
        return Preview("command", _bounded([f"$ {line}" for line in str(arguments.get("command")).splitlines()]))
    if call.name == "edit_file":
        return Preview("diff", _edit(root, arguments))
    if call.name == "write_file":
        path = str(arguments.get("path"))
        return Preview("diff", _diff(path, _content(root, path), str(arguments.get("content"))))
    return Preview("call", _bounded([f"{call.name}: {name} = {value_words(each)}" for name, each in arguments.items()]))


def _edit(root: Root, arguments: dict[str, Any]) -> list[str]:
    """The diff of the file; of the fragment alone, where that is not in it as often as it should be."""
    path, old, new = (str(arguments.get(name)) for name in ("path", "old_text", "new_text"))
    content = _content(root, path)
    if old and content.count(old) == arguments.get("occurrences", 1):
        return _diff(path, content, content.replace(old, new))
    return [line for line in _diff(path, old, new) if not line.startswith("@@ -")]


def _content(root: Root, path: str) -> str:
    """What is there now; nothing, if there is no text."""
    try:
        source = decode(root.read(path).data)
    except ToolError:
        return ""
    return "" if source is None else source.text


def _diff(path: str, old: str, new: str) -> list[str]:
    before, after = old.splitlines(), new.splitlines()
    return _bounded(list(_lines(path, before, after))) or [f"{path}: no line is changed"]


def _lines(path: str, before: list[str], after: list[str]) -> Iterator[str]:
    for number, line in enumerate(unified_diff(before, after, path, path, lineterm="")):
        if number >= 2:  # the two lines of the head say the same here
            yield line
        elif number == 1:
            yield f"@@ {path}"


def _bounded(lines: list[Any]) -> list[str]:
    left_out = len(lines) - MOST
    return lines if left_out <= 0 else [*lines[:MOST], f"… {counted(left_out, 'more line')}"]
