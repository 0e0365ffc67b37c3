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


def test_cancel_early():
    first, last = run("cancel_early.py").splitlines()
    assert first == 'unit: not_in_enum, found "k", allowed "celsius" or "fahrenheit"'
    read, whole, saved = (int(word) for word in last.replace(":", "").split() if word.isdigit())
    assert read + saved == whole
    assert read < whole // 10


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


BERN = "{'city': 'Bern', 'days': 3}"
ZURICH = "{'city': 'Zürich', 'hours': [8, 12, 18]}"


def test_openai_sdk():
    assert run("openai_sdk.py").splitlines() == [
        "I look both up.",
        "get_weather: Ber|n|",
        "get_weather: Zür|ich|",
        f"get_weather {BERN} trusted=True",
        f"get_weather {ZURICH} trusted=True",
    ]


def test_anthropic_sdk():
    *values, end, first, second = run("anthropic_sdk.py").splitlines()
    assert values == ["city = 'Bern'", "days = 3", "city = 'Zürich'", "hours = [8, 12, 18]"]
    assert (end, first, second) == ("tool_use, clean=True", f"get_weather {BERN}", f"get_weather {ZURICH}")


def test_plain_httpx():
    assert run("plain_httpx.py").splitlines() == [
        f"get_weather {BERN}",
        f"get_weather {ZURICH}",
        "sent 2 times, error: None",
        f"the first call is enough: {BERN}",
    ]


def test_gateway_server():
    text, first, second = run("gateway_server.py").splitlines()
    assert text == "I look both up."
    assert [json.loads(line.removeprefix("get_weather ")) for line in (first, second)] == [
        {"city": "Bern", "days": 3},
        {"city": "Zürich", "hours": [8, 12, 18]},
    ]


def test_agent_loop():
    assert run("agent_loop.py").splitlines() == [
        "I look it up.",
        "judged: get_weather {'city': 'Bern', 'days': 3}, executable: True",
        "get_weather: ok: Bern: 17 degrees and sun for 3 days",
        "No: 17 degrees and sun.",
        "answered after 2 turns",
    ]


def test_pydantic_ai_model():
    """Typed out of raw text, by another framework's loop: ``3`` and not ``"3"``."""
    assert run("pydantic_ai_model.py").splitlines() == [
        "get_weather('Bern', 3)",
        "No, it has 17 degrees.",
        "2 requests",
    ]
