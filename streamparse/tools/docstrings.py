"""What a docstring says: what the function is for, and what each parameter is. Google, NumPy and Sphinx styles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

_GOOGLE = re.compile(r"(Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments):\s*")
_GOOGLE_OTHER = re.compile(r"(Returns?|Yields?|Raises|Examples?|Notes?|See Also|Warnings?|Warns|Attributes|Todo):\s*")
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*:\s*(.*)")
_NUMPY = re.compile(r"(Parameters|Other Parameters)")
_NUMPY_OTHER = re.compile(
    r"(Returns|Yields|Receives|Raises|Warns|Warnings?|See Also|Notes|References|Examples?|Attributes|Methods)"
)
_NUMPY_ITEM = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_SPHINX = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_FIELD = re.compile(r":\w+[^:]*:")


def read_docstring(docstring: str | None) -> tuple[str, dict[str, str]]:
    """The description (everything before the first section) and the text of each documented parameter, in one line."""
    lines = cleandoc(docstring or "").splitlines()
    description: list[str] = []
    parameters: dict[str, list[str]] = {}
    at, inside = 0, False
    while at < len(lines):
        line = lines[at]
        if kind := _section(lines, at):
            inside = True
            at += 2 if kind.startswith("numpy") else 1
            body, at = _body(lines, at)
            if kind in ("google", "numpy"):
                parameters.update(_google_items(body) if kind == "google" else _numpy_items(body))
            continue
        if _FIELD.match(line):
            inside = True
            body, after = _continued(lines, at)
            if match := _SPHINX.fullmatch(line):
                parameters[match[1]] = [match[2], *body]
            at = after
            continue
        if not inside:
            description.append(line)
        at += 1
    text = "\n".join(description).strip()
    return text, {name: " ".join(" ".join(words).split()) for name, words in parameters.items()}


def _section(lines: list[str], at: int) -> str:
    """The kind of section that begins here; empty for none."""
    line, after = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
    if len(after.strip()) >= 3 and not after.strip("- "):
        if _NUMPY.fullmatch(line.strip()):
            return "numpy"
        if _NUMPY_OTHER.fullmatch(line.strip()):
            return "numpy other"
    if _GOOGLE.fullmatch(line):
        return "google"
    return "google other" if _GOOGLE_OTHER.fullmatch(line) else ""


def _body(lines: list[str], at: int) -> tuple[list[str], int]:
    """The lines of a section, up to the next one."""
    start = at
    while at < len(lines) and not _section(lines, at) and not _FIELD.match(lines[at]):
        at += 1
    return lines[start:at], at


def _continued(lines: list[str], at: int) -> tuple[list[str], int]:
    """The indented lines that go on with the one at ``at``."""
    end = at + 1
    while end < len(lines) and lines[end].startswith((" ", "\t")):
        end += 1
    return lines[at + 1 : end], end


def _google_items(body: list[str]) -> Iterator[tuple[str, list[str]]]:
    indent = min((len(line) - len(line.lstrip()) for line in body if line.strip()), default=0)
    for index, line in enumerate(body):
        text = line[indent:]
        if indent and not text[:1].isspace() and (match := _GOOGLE_ITEM.fullmatch(text)):
            yield match[1], [match[2], *_deeper(body[index + 1 :], indent)]


def _numpy_items(body: list[str]) -> Iterator[tuple[str, list[str]]]:
    for index, line in enumerate(body):
        if line and not line[0].isspace() and (match := _NUMPY_ITEM.fullmatch(line)):
            text = list(_deeper(body[index + 1 :], 0))
            for name in match[1].split(","):
                yield name.strip(" *"), text


def _deeper(lines: list[str], indent: int) -> Iterator[str]:
    for line in lines:
        if line.strip() and not line[indent:][:1].isspace():
            return
        yield line
