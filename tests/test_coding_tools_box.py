"""The seven tools as a model and an executor see them (B7, B8, B12, B13, B14)."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import anyio
import pytest

from streamparse import ToolCall, UsageError
from streamparse.agent.coding_tools import DeniedError, Root, ToolError, coding_tools
from streamparse.agent.coding_tools.outcome import Rejected
from streamparse.agent.resources import EVERYTHING
from streamparse.errors import StreamparseError
from streamparse.tools.definition import Tool, as_tools
from streamparse.tools.issues import ArgumentRejectedError
from streamparse.tools.lint import lint
from streamparse.tools.validation import Judge
from tests.conftest import ROOT

NAMES = ["read_file", "edit_file", "write_file", "run_command", "search_symbol", "git_diff", "extract_function"]


@pytest.fixture(name="tools")
def tools_fixture(tmp_path):
    return {tool.name: tool for tool in coding_tools(tmp_path, policy="allow")}


def test_the_seven(tools):
    assert list(tools) == NAMES
    assert all(isinstance(tool, Tool) for tool in tools.values())
    effects = {name: tool.effect for name, tool in tools.items()}
    reads = dict.fromkeys(("read_file", "search_symbol", "git_diff"), "read")
    writes = dict.fromkeys(("edit_file", "write_file", "extract_function"), "write")
    assert effects == {**reads, **writes, "run_command": "external"}


@pytest.mark.parametrize("name", NAMES)
def test_descriptions_say_when_with_must(tools, name):
    """B7: when to call it, in the user's verbs, with "must", not "may"."""
    description = tools[name].description
    assert "must call it when" in description
    assert " may " not in f" {description} ".replace(".", " ")
    assert "user asks" in description
    assert len(description) < 420


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_typed_and_closed(tools, name):
    schema = tools[name].parameters
    assert schema["additionalProperties"] is False
    for each in schema["properties"].values():
        assert each["type"] in ("string", "integer")
        assert each["description"]
    assert set(schema["required"]) <= set(schema["properties"])


def test_lint_has_nothing_to_say(tools):
    """B8."""
    report = lint(tools.values())
    assert report.findings == ()
    assert sum(report.tokens.values()) < 1300


def test_schemas_fit_the_functions(tools, tmp_path):
    """Each call of an example is judged valid, and runs with the arguments that come out of that."""
    judge = Judge(list(tools.values()))
    calls: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": "a.py", "content": "def f(x):\n    y = x\n    return y\n"}),
        ("read_file", {"path": "a.py", "start_line": 1.0, "end_line": 2.0, "undeclared": 1}),
        ("edit_file", {"path": "a.py", "old_text": "y = x", "new_text": "y = x + 1", "occurrences": 1}),
        ("search_symbol", {"name": "f", "kind": "function", "path": "."}),
        ("extract_function", {"path": "a.py", "start_line": 2, "end_line": 2, "function_name": "g"}),
        ("run_command", {"command": "cat a.py"}),
    ]
    texts = {}
    for name, arguments in calls:
        verdict = judge.check(ToolCall("1", name, arguments))
        assert verdict.executable, verdict
        result = tools[name].call(verdict.arguments)
        texts[name] = (anyio.run(_awaited, result) if name == "run_command" else result).text
    assert "1\tdef f(x):\n2\t    y = x" in texts["read_file"]
    assert "a.py:1: function" in texts["search_symbol"]
    assert "def g(x):" in texts["run_command"]
    with pytest.raises(ToolError, match="not inside a git repository"):
        tools["git_diff"].call({})


async def _awaited(awaitable):
    return await awaitable


def test_wrong_arguments_are_the_models_fault(tools):
    """B12: the message is for the model; the argument is named."""
    with pytest.raises(ArgumentRejectedError) as caught:
        tools["read_file"].call({"path": "nothing.txt"})
    assert isinstance(caught.value, ToolError)
    assert isinstance(caught.value, StreamparseError)
    assert caught.value.path == ("path",)
    assert str(caught.value) == "nothing.txt does not exist: the project root has no 'nothing.txt'"
    assert not issubclass(DeniedError, ArgumentRejectedError)
    assert issubclass(Rejected, ToolError)


def test_resources_and_versions(tools, tmp_path):
    """B13: what a call is about, and which version that has."""
    (tmp_path / "link").symlink_to("a.txt")
    write = tools["write_file"]
    assert write.resource({"path": "./a.txt"}) == "a.txt"
    assert write.resource({"path": "link"}) == "a.txt"
    assert write.resource({"path": "../a.txt"}) == "../a.txt"
    assert write.version("a.txt") is None
    outcome = write.call({"path": "a.txt", "content": "x"})
    assert write.version("a.txt") == outcome.after
    assert write.version("../a.txt") is None
    assert write.version(".") is None
    assert tools["run_command"].resource({"command": "make"}) == EVERYTHING
    assert tools["git_diff"].resource({}) == EVERYTHING
    assert tools["git_diff"].resource({"path": "src"}) == "src"


def test_the_executor_waits_longer_than_the_command(tmp_path):
    timeouts = {tool.name: getattr(tool, "timeout", 0) for tool in coding_tools(tmp_path, timeout=10)}
    assert timeouts.pop("run_command") > 10
    assert set(timeouts.values()) == {None}


def test_commands_need_a_policy(tmp_path):
    (run,) = [tool for tool in coding_tools(tmp_path) if tool.name == "run_command"]
    with pytest.raises(DeniedError):
        anyio.run(_awaited, run.call({"command": "touch x"}))
    assert list(tmp_path.iterdir()) == []


def test_options_that_cannot_be(tmp_path):
    wrong: list[dict[str, Any]] = [{"policy": "perhaps"}, {"timeout": -1}]
    for options in wrong:
        with pytest.raises(UsageError):
            coding_tools(tmp_path, **options)
    with pytest.raises(UsageError):
        coding_tools(tmp_path / "nothing")


def test_a_root_is_taken_as_it_is(tmp_path):
    with Root(tmp_path) as root:
        assert list(as_tools(coding_tools(root))) == NAMES


def test_extras_are_loaded_late():
    code = (
        "import sys, streamparse.agent.coding_tools as box; box.coding_tools('.');"
        "assert not {'rope', 'ast_grep_py'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
