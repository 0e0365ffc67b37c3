"""The page about the loop: its examples run, and it names every event and every end."""

from __future__ import annotations

import re
from typing import get_args

from streamparse.agent.events import EndState, LoopEvent
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "loop.md").read_text(encoding="utf-8")


def test_the_examples_run():
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    assert code.count("assert") >= 3
    exec(compile(code, "docs/loop.md", "exec"), {"__name__": "docs"})


def test_every_event_and_every_end_is_explained():
    assert [kind.__name__ for kind in get_args(LoopEvent) if f"`{kind.__name__}`" not in PAGE] == []
    assert [state for state in EndState if f"| `{state}` |" not in PAGE] == []
