"""The examples of docs/tools.md run, in their order."""

from __future__ import annotations

import re
from typing import Any

from streamparse.tools.issues import IssueCode
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "tools.md").read_text("utf-8")


def test_the_examples_run():
    names: dict[str, Any] = {"__name__": "docs_tools"}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, "docs/tools.md", "exec"), names)
    assert names["message"]["tool_call_id"] == "call_0"
    assert names["block"]["is_error"] is True


def test_every_issue_code_is_explained():
    """Each code stands in the source with a word on it, unless its name says all."""
    source = (ROOT / "streamparse" / "events.py").read_text("utf-8").partition("class IssueCode")[2]
    plain = {"wrong_type", "too_short", "too_few", "not_unique", "unknown_tool", "limit_exceeded"}
    for code in IssueCode:
        line = next(line for line in source.splitlines() if f'= "{code.value}"' in line)
        assert "#" in line or code.value in plain, line
