"""The definitions of a name in one syntax tree, by the tables of ``languages``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from streamparse.agent.coding_tools.languages import (
    BODY_NEEDED,
    DEFINES,
    FUNCTIONS,
    NAMES,
    SHAPES,
    THROUGH,
    Definition,
    Kind,
)
from streamparse.agent.coding_tools.outcome import clipped
from streamparse.agent.coding_tools.paths import shown
from streamparse.agent.coding_tools.text import SourceText

if TYPE_CHECKING:
    from ast_grep_py import Rule, SgNode

_ONLY_FUNCTIONS = frozenset({"pair", "assignment_expression"})
"""Nodes that define only what has a function as its value; else they are data, and assignments to what is there."""

_PROTOTYPES = frozenset({"declaration", "field_declaration"})
_SELF = frozenset({"self", "cls"})


class Hit(msgspec.Struct, frozen=True):
    """A definition: where, what, in what, and its line. ``exact``: the name is the one that was asked for."""

    path: str
    line: int
    kind: str
    word: str
    name: str
    inside: str
    signature: str
    exact: bool

    def __str__(self) -> str:
        inside = f" in {self.inside}" if self.inside else ""
        return f"{shown(self.path)}:{self.line}: {self.word}{inside}: {self.signature}"


def definitions(tree: SgNode, language: str, wanted: str, file: str, source: SourceText) -> Iterator[Hit]:
    """What is defined in the tree under a name that contains ``wanted``, in any case, in the order of the text."""
    kinds: list[Rule] = [{"kind": kind} for kind in NAMES[language]]
    table = DEFINES[language]
    for node in tree.find_all({"rule": {"any": kinds, "regex": f"(?i){re.escape(wanted)}"}}):
        found = _defined(node, table)
        if found is None:
            continue
        holder, kind, word, scope = found
        inside = scope or _inside(holder, table)
        line, name = node.range().start.line, node.text()
        signature = clipped(source.lines[line].strip(), 200)
        yield Hit(file, line + 1, kind, word, name, inside, signature, name == wanted)


def _defined(node: SgNode, table: dict[str, Definition]) -> tuple[SgNode, Kind, str, str] | None:
    """The node that gives this name a meaning, the kind and the word for it, and the scope that the name itself tells
    (``C`` for ``C::f``); None if the name is only used here."""
    scope, passed = "", set[str]()
    for above in node.ancestors():
        kind = above.kind()
        if (definition := table.get(kind)) is not None:
            if not any(_holds(child, node) for child in above.field_children(definition.field)):
                return None
            if kind in BODY_NEEDED and above.field("body") is None:
                return None
            refined = _refined(above, definition, passed)
            return refined and (above, *refined, scope)
        if kind not in THROUGH:
            return None
        field = THROUGH[kind]
        if field is not None and not _holds(above.field(field), node):
            return None
        if kind == "attribute" and _text(above.field("object")) not in _SELF:
            return None
        if kind == "qualified_identifier":
            scope = "::".join(filter(None, (_text(above.field("scope")), scope)))
        passed.add(kind)
    return None


def _refined(holder: SgNode, definition: Definition, passed: set[str]) -> tuple[Kind, str] | None:
    """Kind and word, by what the name stands for here; None if it defines nothing after all."""
    kind, value = holder.kind(), holder.field("value") or holder.field("right")
    if value is not None and value.kind() in FUNCTIONS:
        return "function", "function"
    if kind in _ONLY_FUNCTIONS:
        return None
    if kind in _PROTOTYPES and "function_declarator" in passed and "parenthesized_declarator" not in passed:
        return "function", "declaration"
    shape = holder.field("type")
    if kind == "type_spec" and shape is not None:
        return definition.kind, SHAPES.get(shape.kind(), definition.word)
    return definition.kind, definition.word


def _inside(holder: SgNode, table: dict[str, Definition]) -> str:
    """The name of the class or function in which a definition stands; empty at the top."""
    receiver = holder.field("receiver")
    if receiver is not None:  # a method in Go
        type_name = receiver.find(kind="type_identifier")
        return "" if type_name is None else type_name.text()
    for above in holder.ancestors():
        if above.kind() == "impl_item":
            return _text(above.field("type"))
        definition = table.get(above.kind())
        if definition is not None and definition.kind != "variable" and above.kind() not in _PROTOTYPES:
            name = above.field(definition.field)
            while name is not None and (inner := name.field("declarator")) is not None:
                name = inner
            return clipped(_text(name), 100)
    return ""


def _holds(outer: SgNode | None, inner: SgNode) -> bool:
    if outer is None:
        return False
    around, within = outer.range(), inner.range()
    return around.start.index <= within.start.index and within.end.index <= around.end.index


def _text(node: SgNode | None) -> str:
    return "" if node is None else node.text()
