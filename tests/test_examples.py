"""The examples run, and say what they promise."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.conftest import ROOT


def run(name: str) -> str:
    command = [sys.executable, str(ROOT / "examples" / name)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=ROOT).stdout


def test_watch_a_file_grow():
    shown = run("watch_a_file_grow.py")
    assert '  <parameter name="size">8</parameter>\n' in shown  # the file is whole
    assert shown.endswith("characters for pool.xml]\n")


def test_gateway():
    *lines, last = run("gateway.py").splitlines()
    assert last == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    pieces = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert pieces[0]["function"]["name"] == "get_weather"
    arguments = "".join(piece["function"].get("arguments", "") for piece in pieces)
    assert json.loads(arguments) == {"city": "Bern", "days": 3}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
