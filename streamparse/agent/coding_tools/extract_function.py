"""``extract_function``: whole lines of a Python file, made a function of their own by rope.

Rope works on a copy of the one file in a directory of its own: it reads no configuration of the project, writes no
file there, and finds out about what the lines use from the file itself.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import os
import re
import tempfile
import warnings
from collections.abc import Callable

import msgspec

from streamparse.agent.coding_tools.bounds import PAGE_CHARACTERS
from streamparse.agent.coding_tools.confine import Contents, Root
from streamparse.agent.coding_tools.nearest import read_text
from streamparse.agent.coding_tools.outcome import Outcome, Rejected, ToolError, clipped, version_of
from streamparse.agent.coding_tools.paths import shown
from streamparse.agent.coding_tools.text import SourceText
from streamparse.agent.coding_tools.write_file import unencodable
from streamparse.errors import MissingExtraError

_PYTHON = (".py", ".pyi")
_COOKIE = re.compile(r"(?:[^\n]*\n)?[ \t\f]*#[^\n]*?(coding)[:=]")


class Extraction(msgspec.Struct, frozen=True):
    """What ``extract_function`` would write: ``data`` in the place of ``before``, and the diff of its lines."""

    before: Contents
    data: bytes
    diff: list[str]


def extract_function(root: Root, path: str, start_line: int, end_line: int, function_name: str) -> Outcome:
    """Make lines ``start_line`` to ``end_line``, from 1, both inclusive, the body of a new function, and a call of it
    what stands there instead. The result shows the diff.

    Raises ``MissingExtraError`` without rope, ``Rejected`` for another language, for lines or a name that cannot be,
    and ``ToolError`` with rope's reason where the lines cannot be moved. Nothing is written then.
    """
    planned = extraction(root, path, start_line, end_line, function_name)
    before = planned.before
    root.write(path, planned.data, expected=before.stamp)
    head = f"Extracted lines {start_line}-{end_line} of {shown(before.path)} into {function_name}:"
    told = clipped("\n".join([head, *planned.diff]), PAGE_CHARACTERS)
    return Outcome(told, before.path, before.version, version_of(planned.data))


def extraction(root: Root, path: str, start_line: int, end_line: int, function_name: str) -> Extraction:
    """What ``extract_function`` would do. Nothing is written. Raises what it raises."""
    if not path.endswith(_PYTHON):
        raise Rejected(
            "path",
            f"{shown(path)} is no Python file, and extract_function knows only Python. "
            "For other languages use edit_file",
            _PYTHON,
        )
    extract = _rope()
    contents, source = read_text(root, path)
    name = shown(contents.path)
    tree = _require_python(source.flat, name)
    _require_lines(source, name, start_line, end_line)
    _require_name(tree, name, function_name)
    masked, unmask = _masked(source.flat)
    flat = unmask(extract(masked, _span(source, start_line, end_line), function_name))
    _require_result(flat, name)
    text = flat if source.newline == "\n" else flat.replace("\n", source.newline)
    try:
        data = source.encode(text)
    except UnicodeEncodeError as error:
        raise unencodable(source, error, "function_name") from None
    diff = difflib.unified_diff(source.lines, SourceText(flat).lines, f"a/{name}", f"b/{name}", lineterm="", n=2)
    return Extraction(contents, data, list(diff))


def _rope() -> Callable[[str, tuple[int, int], str], str]:
    """The refactoring: text, span and name -> new text."""
    try:
        from rope.base.exceptions import RopeError  # type: ignore[import-untyped]
        from rope.base.project import Project  # type: ignore[import-untyped]
        from rope.refactor.extract import ExtractMethod  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "rope":
            raise
        raise MissingExtraError(
            "extract_function needs rope, which is in the extra 'coding': pip install 'streamparse-toolcalls[coding]'; "
            "or do without it: edit_file"
        ) from None

    def extract(text: str, span: tuple[int, int], function_name: str) -> str:
        with tempfile.TemporaryDirectory(prefix="extract-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the code in the file, and of rope's own
            with open(os.path.join(folder, "module.py"), "w", encoding="utf-8", newline="") as file:
                file.write(text)
            project = Project(folder, ropefolder=None)
            try:
                resource = project.get_resource("module.py")
                changes = ExtractMethod(project, resource, *span).get_changes(function_name)
                return str(changes.changes[0].new_contents)
            except RopeError as error:
                raise ToolError(
                    f"These lines cannot be extracted: {str(error).rstrip('.')}. Nothing was changed"
                ) from None
            except (AttributeError, IndexError, KeyError, RecursionError, SyntaxError, TypeError, ValueError) as error:
                # rope meets code that it does not understand
                raise ToolError(
                    f"These lines cannot be extracted: rope does not understand them "
                    f"({type(error).__name__}). Nothing was changed"
                ) from None
            finally:
                project.close()

    return extract


def _masked(text: str) -> tuple[str, Callable[[str], str]]:
    """The text without the encoding that it declares, of the same length, and the way back: rope would read its copy
    by it, and the copy is UTF-8."""
    found = _COOKIE.match(text)
    if found is None:
        return text, lambda result: result
    start = found.start(1)
    line = text[text.rfind("\n", 0, start) + 1 :].split("\n", 1)[0]
    other = line.replace("coding", "c0ding")
    return text.replace(line, other, 1), lambda result: result.replace(other, line, 1)


def _require_python(text: str, name: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ToolError(f"{name} cannot be read as Python{where}: {reason}. Nothing was changed") from None


def _require_lines(source: SourceText, name: str, start_line: int, end_line: int) -> None:
    total = len(source.lines)
    if not 1 <= start_line <= total:
        raise Rejected("start_line", f"{name} has lines 1 to {total}; start_line is {start_line}", (f"1 to {total}",))
    if not start_line <= end_line <= total:
        allowed = f"{start_line} to {total}"
        raise Rejected("end_line", f"end_line must be from {allowed} (it is inclusive); found {end_line}", (allowed,))
    if not "".join(source.lines[start_line - 1 : end_line]).strip():
        raise Rejected("start_line", f"lines {start_line} to {end_line} of {name} are blank")


def _require_name(tree: ast.Module, name: str, function_name: str) -> None:
    if not function_name.isidentifier() or keyword.iskeyword(function_name):
        raise Rejected(
            "function_name", f"function_name must be a Python identifier; found {clipped(repr(function_name), 99)}"
        )
    taken = {
        node.name: node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    taken |= {node.id: node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if function_name in taken:
        line = taken[function_name]
        raise Rejected(
            "function_name", f"{name} uses the name {function_name} already (line {line}). Choose another one"
        )


def _span(source: SourceText, start_line: int, end_line: int) -> tuple[int, int]:
    """The place of these lines in the flat text, without the last line end."""
    starts = [0]
    for line in source.lines:
        starts.append(starts[-1] + len(line) + 1)
    return starts[start_line - 1], starts[end_line] - 1


def _require_result(text: str, name: str) -> None:
    """What rope made must be Python: ``await`` in a function that is not async is not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ToolError(
            f"These lines cannot be extracted: the result would be no valid Python ({reason}). Nothing was changed"
        ) from None
