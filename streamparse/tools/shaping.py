"""Arguments in the shape that the schema means (B14): without undeclared fields, whole numbers as integers, and JSON
that stands in a string as the object or array that the schema wants.

``Shaper`` does it; ``tidy`` tells quickly whether there is anything to do. Neither decides what is valid.

A field is undeclared where its object's schema (with ``$ref``, ``allOf``, conditions and the branches that were meant)
has ``properties`` without it, or forbids others, and does not say that others may stand there: a pattern, a schema, or
``true`` for the rest. An object whose schema does neither is free; so is one that refers to what is not looked into.

An undeclared field whose name has the same letters as a declared one that is absent (``dryRun``) is more than that: it
was meant. To drop it and run the call would do something else than was asked, so it is told apart (``drifted``).
"""

from __future__ import annotations

from collections.abc import Iterator
from json import JSONDecodeError, loads
from math import isfinite
from typing import Any, NamedTuple

from streamparse.events import Path
from streamparse.limits import DEFAULT_LIMITS
from streamparse.tools.branches import candidates, meant_branches
from streamparse.tools.issues import Coercion, Ignored
from streamparse.tools.names import fold, meant
from streamparse.tools.schema import Node

_NOTED = 64
"""Ignored fields and coercions that are listed; the rest happens all the same."""

_TRIALS = 64
"""Branches of unions that are tried, in one call, where JSON in a string decides which one was meant."""


class Drifted(NamedTuple):
    """An absent field, as the schema declares it, and the name by which it was sent."""

    path: Path
    sent: str
    node: Node


class Shaper:
    """Shapes the arguments of one call, and keeps what it did. ``strip`` leaves undeclared fields out: ``undeclared``
    counts them, ``ignored`` lists the first, ``drifted`` those that were meant."""

    def __init__(self, *, strip: bool, trials: int = _TRIALS) -> None:
        self.ignored: list[Ignored] = []
        self.undeclared = 0
        self.drifted: list[Drifted] = []
        self.coerced: list[Coercion] = []
        self._strip = strip
        self._trials = trials

    def shape(self, node: Node, value: Any, path: Path = ()) -> Any:
        """``value`` in the shape that ``node`` means. What needs no change may be shared with the original."""
        return self._shape([node], value, path)

    def _shape(self, nodes: list[Node], value: Any, path: Path) -> Any:
        if isinstance(value, str):
            opened = self._unpacked(nodes, value)
            if opened is None:
                return value
            self._note(Coercion(path, "string", "array" if isinstance(opened, list) else "object"))
            value = opened
        if isinstance(value, float):
            return self._integer(nodes, value, path)
        if isinstance(value, dict):
            return self._object(list(self._facets(nodes, value)), value, path)
        if isinstance(value, list):
            return self._array(list(self._facets(nodes, value)), value, path)
        return value

    def _unpacked(self, nodes: list[Node], text: str) -> Any:
        """The object or array that stands in ``text`` as JSON, where the schema wants such a one and no string."""
        if not text.lstrip().startswith(("{", "[")):
            return None
        wanted = {name for name in ("object", "array") if all(name in node.allowed.types for node in nodes)}
        if not wanted or any(node.allowed.open or "string" in node.allowed.types for node in nodes):
            return None
        try:
            value = loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return None
        fits = isinstance(value, list) if wanted == {"array"} else isinstance(value, dict) or "array" in wanted
        return value if fits and unreadable(value) is None else None

    def _integer(self, nodes: list[Node], value: float, path: Path) -> Any:
        """An integer where the schema wants one and the value is whole."""
        if not value.is_integer():
            return value
        types = [node.allowed.types for node in nodes if not node.allowed.open]
        if not types or any("integer" not in each or "number" in each for each in types):
            return value
        self._note(Coercion(path, "number", "integer"))
        return int(value)

    def _object(self, facets: list[Node], value: dict[str, Any], path: Path) -> dict[str, Any]:
        closed = self._strip and _is_closed(facets)
        shaped: dict[str, Any] = {}
        undeclared: list[str] = []
        for key, item in value.items():
            schemas, declared = _declared(facets, key)
            if closed and not declared:
                undeclared.append(key)
            else:
                shaped[key] = self._shape(schemas, item, (*path, key)) if schemas else item
        if undeclared:
            self._ignore(facets, undeclared, value, path)
        return shaped

    def _array(self, facets: list[Node], value: list[Any], path: Path) -> list[Any]:
        shaped = []
        for index, item in enumerate(value):
            schemas = [each for node in facets if (each := node.item(index)) is not None]
            shaped.append(self._shape(schemas, item, (*path, index)) if schemas else item)
        return shaped

    def _ignore(self, facets: list[Node], keys: list[str], value: dict[str, Any], path: Path) -> None:
        """The undeclared fields of one object."""
        self.undeclared += len(keys)
        absent = {name: each for node in facets for name, each in node.properties.items() if name not in value}
        names = list(absent)
        self.ignored += [Ignored((*path, key), meant(key, names)) for key in keys[: _NOTED - len(self.ignored)]]
        folded = {letters: name for name in reversed(names) if (letters := fold(name))}
        for key in keys if folded and len(self.drifted) < _NOTED else ():
            name = folded.pop(fold(key), None)
            if name is not None:
                self.drifted.append(Drifted((*path, name), key, absent[name]))

    def _note(self, coercion: Coercion) -> None:
        if len(self.coerced) < _NOTED:
            self.coerced.append(coercion)

    def _facets(self, nodes: list[Node], value: Any) -> Iterator[Node]:
        """All schemas that speak of ``value``: each with what holds together with it, and the branches that were
        meant."""
        seen: set[str] = set()
        todo = list(nodes)
        while todo:
            for node in todo.pop(0).alike():
                if node.pointer in seen:
                    continue
                seen.add(node.pointer)
                yield node
                for union in node.unions:
                    todo += self._meant(union, value)

    def _meant(self, union: list[Node], value: Any) -> list[Node]:
        """The branches that were meant; JSON in a string may be what makes the value fit one."""
        branches = meant_branches(union, value)
        if len(branches) != 1 or len(union) == 1 or not self._trials or branches[0].fits(value):
            return branches
        if any(isinstance(each, str) and each.lstrip()[:1] in ("{", "[") for _, each, _ in walk(value)):
            for node in candidates(union, value)[: self._trials]:
                self._trials -= 1
                if node.fits(Shaper(strip=self._strip, trials=0).shape(node, value)):
                    return [node]
        return branches


def _is_closed(facets: list[Node]) -> bool:
    """Whether these schemas say which fields an object has."""
    says = any("properties" in node.value or node.rest is False for node in facets)
    return says and not any(node.opaque for node in facets)


def _declared(facets: list[Node], key: str) -> tuple[list[Node], bool]:
    """The schemas of a field, and whether it is declared or may stand here undeclared."""
    schemas = [node.properties[key] for node in facets if key in node.properties]
    schemas += [each for node in facets for matches, each in node.patterns if matches(key)]
    if schemas:
        return schemas, True
    rest = [node.rest for node in facets if node.rest is not None and node.rest is not False]
    return [node for node in rest if isinstance(node, Node)], bool(rest)


class Unreadable(NamedTuple):
    """A value that no JSON text can hold, or (``deep``) that is nested too deep to be looked at."""

    path: Path
    value: Any
    deep: bool


def unreadable(value: Any) -> Unreadable | None:
    """The first such value inside ``value``."""
    for path, each, depth in walk(value):
        if depth > DEFAULT_LIMITS.depth:
            return Unreadable(path, each, True)
        if (isinstance(each, dict) and not all(map(_is_key, each))) or not _is_json(each):
            return Unreadable(path, each, False)
    return None


def _is_key(key: Any) -> bool:
    return isinstance(key, str) and _is_json(key)


def _is_json(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= each <= "\udfff" for each in value)
    if isinstance(value, float):
        return isfinite(value)
    return value is None or isinstance(value, bool | int | dict | list)


def walk(value: Any) -> Iterator[tuple[Path, Any, int]]:
    """Every value inside ``value`` with its path and depth, without recursion, down to the first that is too deep."""
    todo: list[tuple[Path, Any, int]] = [((), value, 0)]
    while todo:
        path, each, depth = todo.pop()
        yield path, each, depth
        if depth > DEFAULT_LIMITS.depth:
            continue
        if isinstance(each, dict):
            todo += [((*path, key), item, depth + 1) for key, item in reversed(each.items())]
        elif isinstance(each, list | tuple):
            todo += [((*path, index), item, depth + 1) for index, item in reversed(list(enumerate(each)))]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise JSONDecodeError("duplicate key", "", 0)
    return members


def _refuse(text: str) -> Any:
    raise ValueError(text)
