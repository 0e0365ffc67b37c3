"""Seven tools for a coding agent, confined to one directory. Each is a function that works without any loop:

``read_file``, ``edit_file``, ``write_file``, ``run_command``, ``search_symbol``, ``git_diff``, ``extract_function``.
``coding_tools(root)`` makes ``Tool`` objects of them. They take a ``Root``, return an ``Outcome`` and raise
``ToolError``.
"""

from __future__ import annotations

from streamparse.agent.coding_tools.confine import Root
from streamparse.agent.coding_tools.edit_file import edit_file
from streamparse.agent.coding_tools.extract_function import extract_function
from streamparse.agent.coding_tools.git_diff import git_diff
from streamparse.agent.coding_tools.outcome import Outcome, Rejected, StoppedError, ToolError
from streamparse.agent.coding_tools.policy import Decision, DeniedError, Policy
from streamparse.agent.coding_tools.read_file import read_file
from streamparse.agent.coding_tools.run_command import Execution, Shell, run_command
from streamparse.agent.coding_tools.search_symbol import search_symbol
from streamparse.agent.coding_tools.toolbox import CodingTool, coding_tools
from streamparse.agent.coding_tools.write_file import write_file

__all__ = [
    "CodingTool",
    "Decision",
    "DeniedError",
    "Execution",
    "Outcome",
    "Policy",
    "Rejected",
    "Root",
    "Shell",
    "StoppedError",
    "ToolError",
    "coding_tools",
    "edit_file",
    "extract_function",
    "git_diff",
    "read_file",
    "run_command",
    "search_symbol",
    "write_file",
]
