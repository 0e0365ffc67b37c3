"""extract_function: lines from 1, inclusive, made a function by rope."""

from __future__ import annotations

import ast
import codecs
import re
import sys

import pytest

from streamparse import MissingExtraError
from streamparse.agent.coding_tools import Rejected, Root, ToolError, extract_function

SOURCE = """\
def total(prices, rate):
    result = 0
    for price in prices:
        result += price
    tax = result * rate
    return result + tax
"""


@pytest.fixture(name="root")
def root_fixture(tmp_path):
    with Root(tmp_path / "project") as root:
        yield root


@pytest.fixture(name="put", autouse=True)
def put_fixture(tmp_path):
    (tmp_path / "project").mkdir()

    def put(data: bytes | str, name: str = "a.py"):
        path = tmp_path / "project" / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return put


def run(path, call: str):
    """What ``call`` gives with the file's code."""
    names: dict = {}
    exec(path.read_text(), names)
    return eval(call, names)


def test_lines_become_a_function(root, put):
    path = put(SOURCE)
    before = run(path, "total([1, 2, 3], 0.5)")
    outcome = extract_function(root, "a.py", 2, 4, "add_up")
    assert "result = add_up(prices)" in path.read_text()
    functions = {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
    assert [each.arg for each in functions["add_up"].args.args] == ["prices"]
    assert run(path, "total([1, 2, 3], 0.5)") == before == 9.0
    assert run(path, "add_up([1, 2, 3])") == 6
    assert outcome.text.startswith("Extracted lines 2-4 of a.py into add_up:\n--- a/a.py\n+++ b/a.py\n@@")
    assert "\n+    result = add_up(prices)\n" in outcome.text
    assert (outcome.resource, outcome.after) == ("a.py", root.version("a.py"))
    assert outcome.before != outcome.after


def test_one_line_and_the_last_line(root, put):
    path = put(SOURCE)
    extract_function(root, "a.py", 5, 5, "tax_of")
    assert re.search(r"    tax = tax_of\((rate, result|result, rate)\)\n", path.read_text())
    assert run(path, "total([1, 2, 3], 0.5)") == 9.0
    put(SOURCE.rstrip("\n"))  # no final line end
    extract_function(root, "a.py", 5, 6, "finish")
    assert run(path, "total([1, 2, 3], 0.5)") == 9.0


def test_methods_stay_methods(root, put):
    path = put("class A:\n    def f(self):\n        x = self.y\n        return x + 1\n    y = 1\n")
    extract_function(root, "a.py", 3, 3, "look")
    assert "def look(self):" in path.read_text()
    assert run(path, "A().f()") == 2


@pytest.mark.parametrize(
    ("mark", "newline", "encoding"),
    [(b"", "\r\n", "utf-8"), (codecs.BOM_UTF8, "\r\n", "utf-8"), (b"", "\n", "latin-1")],
)
def test_the_form_of_the_file_is_kept(root, put, mark, newline, encoding):
    cookie = "# -*- coding: latin-1 -*-\n" if encoding == "latin-1" else "# é\n"
    path = put(mark + (cookie + SOURCE.replace("0\n", "0  # é\n")).replace("\n", newline).encode(encoding))
    extract_function(root, "a.py", 3, 5, "add_up")
    data = path.read_bytes()
    assert data.startswith(mark)
    text = data.removeprefix(mark).decode(encoding)
    assert "= add_up(" in text
    assert text.startswith(cookie.replace("\n", newline))
    assert "# é" in text
    assert text.count("\n") == text.count(newline)


@pytest.mark.parametrize("path", ["a.js", "a.go", "Makefile", "py"])
def test_other_languages_are_refused(root, put, path):
    put("x = 1\n", path)
    with pytest.raises(Rejected, match="knows only Python"):
        extract_function(root, path, 1, 1, "f")


@pytest.mark.parametrize(
    ("start", "end", "name", "argument"),
    [
        (0, 2, "f", "start_line"),
        (7, 7, "f", "start_line"),
        (3, 2, "f", "end_line"),
        (3, 99, "f", "end_line"),
        (2, 3, "not a name", "function_name"),
        (2, 3, "class", "function_name"),
        (2, 3, "total", "function_name"),
        (2, 3, "prices", "function_name"),
    ],
)
def test_arguments_that_cannot_be(root, put, start, end, name, argument):
    path = put(SOURCE)
    with pytest.raises(Rejected) as caught:
        extract_function(root, "a.py", start, end, name)
    assert caught.value.path == (argument,)
    assert path.read_text() == SOURCE


@pytest.mark.parametrize(
    ("source", "start", "end"),
    [
        ("def f(:\n    pass\n", 1, 2),  # no Python
        (
            "def f(xs):\n    for x in xs:\n        if x:\n            break\n    return 1\n",
            3,
            4,
        ),  # break without its loop
        ("def f(x):\n    if x:\n        return 1\n    y = 2\n    return y\n", 2, 4),  # a return in between
        ("async def f(x):\n    y = await x\n    return y\n", 2, 2),  # await outside of async
        ("def f(x):\n    if x:\n        y = 1\n    else:\n        y = 2\n    return y\n", 2, 4),  # half a statement
        ("def f(x):\n    y = x\n    yield y\n    yield x\n", 2, 3),  # a yield in between
    ],
)
def test_what_cannot_be_extracted_changes_nothing(root, put, source, start, end):
    path = put(source)
    with pytest.raises(ToolError, match="Nothing was changed"):
        extract_function(root, "a.py", start, end, "extracted")
    assert path.read_text() == source
    assert [each.name for each in path.parent.iterdir()] == ["a.py"]  # rope leaves nothing behind


def test_blank_lines_are_refused(root, put):
    put("x = 1\n\n\ny = 2\n")
    with pytest.raises(Rejected, match="blank"):
        extract_function(root, "a.py", 2, 3, "f")


def test_configuration_of_the_project_is_not_run(root, put, tmp_path):
    put(SOURCE)
    (tmp_path / "project" / ".ropeproject").mkdir()
    put(f"open({str(tmp_path / 'witness')!r}, 'w')\n", ".ropeproject/config.py")
    extract_function(root, "a.py", 2, 4, "add_up")
    assert not (tmp_path / "witness").exists()


def test_outside_and_missing(root, put, tmp_path):
    (tmp_path / "outside.py").write_text(SOURCE)
    (tmp_path / "project" / "link.py").symlink_to(tmp_path / "outside.py")
    put(SOURCE)
    for path in ("../outside.py", "link.py"):
        with pytest.raises(Rejected, match="outside the project"):
            extract_function(root, path, 2, 4, "f")
    with pytest.raises(Rejected, match=r"Did you mean a\.py"):
        extract_function(root, "b.py", 2, 4, "f")
    assert (tmp_path / "outside.py").read_text() == SOURCE


def test_without_the_extra(root, put, monkeypatch):
    put(SOURCE)
    for name in [name for name in sys.modules if name == "rope" or name.startswith("rope.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rope", None)
    with pytest.raises(MissingExtraError, match=r"extra 'coding'.*streamparse-toolcalls\[coding\].*edit_file"):
        extract_function(root, "a.py", 2, 4, "f")
