"""The seven tools as a model gets them: names, descriptions, schemas; bound to one root."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from streamparse.agent.coding_tools.bounds import PAGE_LINES, TAIL_LINES, TIMEOUT
from streamparse.agent.coding_tools.confine import Root
from streamparse.agent.coding_tools.edit_file import edit_file
from streamparse.agent.coding_tools.extract_function import extract_function
from streamparse.agent.coding_tools.git_diff import git_diff
from streamparse.agent.coding_tools.outcome import ToolError
from streamparse.agent.coding_tools.policy import Ask, Policy
from streamparse.agent.coding_tools.read_file import read_file
from streamparse.agent.coding_tools.run_command import Shell
from streamparse.agent.coding_tools.search_symbol import KINDS, search_symbol
from streamparse.agent.coding_tools.write_file import write_file
from streamparse.agent.resources import EVERYTHING
from streamparse.tools.definition import Effect, Tool

_SPARE = 30.0
"""Seconds that the executor waits beyond the time limit of a command: the tool ends it itself, and keeps the output."""


@dataclass(frozen=True, slots=True)
class CodingTool(Tool):
    """A tool that an executor can ask for more: its ``timeout`` in seconds (None: the executor's), the ``resource``
    that a call is about, and the ``version`` of a resource (B13)."""

    timeout: float | None = None
    root: Root | None = field(default=None, compare=False, repr=False)

    @property
    def repeatable(self) -> bool:
        """Whether the same call may run again within a request: tests are run again, and a command may wait for
        something (B13)."""
        return self.name == "run_command"

    def resource(self, arguments: Mapping[str, Any]) -> str:
        """The file or directory that a call is about, relative to the root; ``EVERYTHING`` for the root itself, and for
        a command, which may touch anything."""
        path = arguments.get("path", ".")
        if self.root is None or self.name == "run_command":
            return EVERYTHING
        try:
            resolved = self.root.resolve(path)
        except ToolError:
            return str(path)
        return EVERYTHING if resolved == "." else resolved

    def version(self, resource: str) -> str | None:
        """The version of a file; None where there is none."""
        if self.root is None:
            return None
        try:
            return self.root.version(resource)
        except ToolError:
            return None


def coding_tools(
    root: Root | str | os.PathLike[str],
    *,
    policy: Policy = "ask",
    ask: Ask | None = None,
    timeout: float = TIMEOUT,
    environment: Mapping[str, str] | None = None,
) -> list[Tool]:
    """The seven tools, confined to ``root``. They return ``Outcome`` and raise ``ToolError``, or ``MissingExtraError``
    where the extra ``coding`` is missing.

    ``policy`` decides about commands: ``"allow"``, ``"ask"``, ``"deny"``, or a function that takes the command and
    returns one of these; ``ask`` is who is asked. Without both, no command runs. ``timeout`` is in seconds.
    ``environment`` is added to what commands see. ``run_command`` is async: cancelling it ends the
    command, and it then raises ``StoppedError`` with what was printed.

    Raises ``UsageError`` if there is no such directory, or for an option that cannot be right.
    """
    base = root if isinstance(root, Root) else Root(root)
    shell = Shell(base, policy=policy, ask=ask, timeout=timeout, environment=environment)

    def tool(name: str, effect: Effect, function: Callable[..., Any], parameters: dict[str, Any]) -> CodingTool:
        limit = timeout + _SPARE if name == "run_command" else None
        hints: dict[str, Any] = {"destructive": effect != "read", "open_world": effect == "external"}
        return CodingTool(
            name, _DESCRIPTIONS[name], parameters, effect, function=function, timeout=limit, root=base, **hints
        )

    return [
        tool("read_file", "read", partial(read_file, base), _READ_FILE),
        tool("edit_file", "write", partial(edit_file, base), _EDIT_FILE),
        tool("write_file", "write", partial(write_file, base), _WRITE_FILE),
        tool("run_command", "external", shell.acall, _RUN_COMMAND),
        tool("search_symbol", "read", partial(search_symbol, base), _SEARCH_SYMBOL),
        tool("git_diff", "read", partial(git_diff, base), _GIT_DIFF),
        tool("extract_function", "write", partial(extract_function, base), _EXTRACT_FUNCTION),
    ]


_DESCRIPTIONS = {
    "read_file": (
        "Reads a text file with line numbers. You must call it when the user asks to read, show, explain or review "
        f"one, and before you edit one that you have not read. Returns up to {PAGE_LINES} lines, and their number."
    ),
    "edit_file": (
        "Replaces an exact piece of a file. You must call it when the user asks to change, fix, rename, add or remove "
        "something in a file that exists. old_text must be unique, and copied without line numbers."
    ),
    "write_file": (
        "Writes a whole file, and the directories that it needs. You must call it when the user asks to create or "
        "generate a file, or to rewrite one completely. To change a part of a file you must call edit_file instead."
    ),
    "run_command": (
        "Runs a shell command in the project directory and waits for it. You must call it when the user asks to run, "
        "test, build, install, format or check something, and after a change to see whether the tests pass. Returns "
        f"the exit code and the last {TAIL_LINES} lines. It gets no input; its background jobs end with it."
    ),
    "search_symbol": (
        "Finds where a function, class or variable is defined. You must call it when the user asks where something is, "
        "or names code that you have not located. Python, JavaScript, TypeScript, Go, Rust, Java, C, C++."
    ),
    "git_diff": (
        "Shows the uncommitted changes: staged, unstaged and untracked. You must call it when the user asks what "
        "changed, for a review of the changes, or for a commit message, and before you report that a task is done."
    ),
    "extract_function": (
        "Moves lines of a Python file into a new function and calls it. You must call it when the user asks to "
        "extract, split out or factor out code, with line numbers from read_file."
    ),
}

_PATH = {"type": "string", "description": "From the project root: src/app.py"}


def _line(description: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "description": description}


def _object(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_READ_FILE = _object(
    ["path"],
    path=_PATH,
    start_line=_line("From 1. Left out: 1."),
    end_line=_line("Inclusive. Left out: the last."),
)
_EDIT_FILE = _object(
    ["path", "old_text", "new_text"],
    path=_PATH,
    old_text={"type": "string", "description": "With indentation."},
    new_text={"type": "string", "description": "Empty removes old_text."},
    occurrences=_line("Of old_text. Left out: 1."),
)
_WRITE_FILE = _object(
    ["path", "content"],
    path=_PATH,
    content={"type": "string", "description": "The whole content of the file."},
)
_RUN_COMMAND = _object(
    ["command"],
    command={"type": "string", "description": "As in pytest -q tests/test_app.py."},
)
_SEARCH_SYMBOL = _object(
    ["name"],
    name={"type": "string", "description": "As in parse, or Parser.feed for a method."},
    kind={"type": "string", "enum": list(KINDS), "description": "Left out: any."},
    path={"type": "string", "description": "Directory or file. Left out: the whole project."},
)
_GIT_DIFF = _object(
    [],
    path={"type": "string", "description": "Directory or file. Left out: the whole project."},
)
_EXTRACT_FUNCTION = _object(
    ["path", "start_line", "end_line", "function_name"],
    path=_PATH,
    start_line=_line("From 1."),
    end_line=_line("Inclusive."),
    function_name={"type": "string", "description": "Its name."},
)
