"""A part of the demo: an agent mends a small project. The model's turns are recorded, all else is real: the loop, the
files in a temporary directory, the test run, the HTTP between them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import httpx

from streamparse.agent.coding_tools import Root
from streamparse.agent.events import EndState, LoopEnded
from streamparse.agent.loop import ToolLoop
from streamparse.agent.models import HttpModel
from streamparse.commands.agent import loop_of
from streamparse.commands.agent_view import AgentView
from streamparse.commands.sinks import View
from streamparse.server import Recording, Server
from streamparse.transport.recording import read

TITLE = "An agent: read, edit, run the test, answer"
LOOK = (
    "Its turns are recorded. The files, the edit and the test run are real, in a directory that is removed afterwards."
)
TASK = "The last page of a list is never shown. Find out why, and fix it."

ENDPOINT = "/v1/chat/completions"

FILES = {
    "pages.py": '''\
"""Lists, page by page."""


def page_count(items: int, size: int) -> int:
    """How many pages a list of so many items has."""
    return items // size
''',
    "test_pages.py": """\
import unittest

from pages import page_count


class PageCount(unittest.TestCase):
    def test_full_pages(self):
        self.assertEqual(page_count(20, 10), 2)

    def test_what_is_left_over_has_a_page(self):
        self.assertEqual(page_count(21, 10), 3)

    def test_an_empty_list_has_none(self):
        self.assertEqual(page_count(0, 10), 0)
""",
}


def turns() -> list[Recording]:
    """The recorded turns, in their order."""
    folder = resources.files("streamparse.demo") / "agent_turns"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return [Recording(file.name, *read(file.read_text(encoding="utf-8"))) for file in files]


def play_agent(make_view: Callable[[], View], speed: float) -> bool:
    """Run the conversation, and show it. Whether the project was mended, and the test run shows it."""
    view = make_view()
    with TemporaryDirectory(prefix="streamparse-demo-") as directory, Server(turns(), speed=speed) as server:
        for name, text in FILES.items():
            (Path(directory) / name).write_text(text, encoding="utf-8")
        view.remark(f"POST {server.url}{ENDPOINT}", True)
        view.block("user", [TASK])
        ended, results = anyio.run(_work, server.url + ENDPOINT, Root(directory), AgentView(make_view))
        mended = "-(-items // size)" in (Path(directory) / "pages.py").read_text(encoding="utf-8")
    good = ended.state is EndState.ANSWERED and mended and any(text.startswith("Exit code 0.") for text in results)
    words = "the agent mended the project, and its tests pass" if good else f"the agent ended: {ended.reason}"
    make_view().remark(words, good)
    return good


async def _work(url: str, root: Root, view: AgentView) -> tuple[LoopEnded, list[str]]:
    async with httpx.AsyncClient(trust_env=False) as client:
        loop: ToolLoop = loop_of(HttpModel(client, url), root, view, yes=True)
        ended = await loop.run(TASK, on_event=view)
    return ended, [call.result.text for call in loop.ledger.calls if call.result is not None]
