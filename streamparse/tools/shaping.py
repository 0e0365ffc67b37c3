"""Arguments in the shape that the schema means (B14): without undeclared fields, whole numbers as integers, and JSON
that stands in a string as the object or array that the schema wants.

``tidy_check`` compiles a quick test whether there is anything to do; for almost every call there is not. ``Shaper``
does it. Neither decides what is valid.

A field is undeclared where its object's schema (with ``$ref``, ``allOf``, conditions and the branches that were meant)
has ``properties`` without it and does not say that others may stand there: a pattern, a schema, or ``true`` for
the rest. An object whose schema declares no properties is free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from json import JSONDecodeError, loads
from typing import Any

from streamparse.events import Path
from streamparse.limits import DEFAULT_LIMITS
from streamparse.tools.branches import meant_branches
from streamparse.tools.issues import Coercion, Ignored
from streamparse.tools.names import meant
from streamparse.tools.schema import Node

Check = Callable[[Any], bool]

_STEPS = 100_000
"""Values that are shaped in one call. Beyond it they stay as they are, and are judged so."""

_NOTED = 64
"""Ignored fields and coercions that are listed; the rest happens all the same."""

_EXACT = 2**53
"""Floats beyond it are no exact integers: nothing is gained by calling them so."""

_PLAIN = frozenset({str, bool, int, type(None)})
_HARMLESS = frozenset(
    "properties items additionalProperties required type description title default enum const minimum maximum "
    "exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format minItems maxItems minProperties "
    "maxProperties examples uniqueItems $defs definitions $schema $id $comment deprecated readOnly writeOnly "
    "nullable".split()
)
"""Keywords that apply no schema to what is inside a value, but for the three that are walked."""


def tidy_check(node: Node) -> Check | None:
    """A test that is true only for values with nothing to shape; None where that is every value that is valid.

    It walks all that a validator would walk into, and calls what it does not know untidy; so what is tidy is nested no
    deeper than the schema is written.
    """
    return _tidy(node, frozenset())


def _tidy(node: Node, above: frozenset[str]) -> Check | None:
    value, types = node.value, node.allowed.types
    whole = node.allowed.open or ("integer" in types and "number" not in types)
    inner = [key for key in ("properties", "items", "additionalProperties") if isinstance(value.get(key), dict)]
    if not value:
        return None
    if node.pointer in above or not value.keys() <= _HARMLESS or isinstance(value.get("items"), list):
        return _scalar if whole or "integer" in types else _plain
    if inner == ["properties"] or inner == ["properties", "additionalProperties"]:
        return _tidy_object(node, above | {node.pointer})
    if inner == ["items"] and not whole:
        check = _tidy(node.item(0) or node, above | {node.pointer})
        return None if check is None else lambda value: type(value) is not list or all(map(check, value))
    if inner:
        return _scalar
    return _whole if "integer" in types and "number" not in types else None


def _plain(value: Any) -> bool:
    return type(value) in _PLAIN or type(value) is float


def _scalar(value: Any) -> bool:
    return type(value) in _PLAIN


def _whole(value: Any) -> bool:
    return type(value) is not float


def _tidy_object(node: Node, above: frozenset[str]) -> Check:
    checks = {key: _tidy(each, above) for key, each in node.properties.items()}
    free = node.rest is True

    def tidy(value: Any) -> bool:
        if type(value) is not dict:
            return True  # of another type: nothing to shape, unless it is a string, and then it is not valid
        for key, item in value.items():
            if key in checks:
                check = checks[key]
                if check is not None and not check(item):
                    return False
            elif not free:
                return False
        return True

    return tidy


class Shaper:
    """Shapes the arguments of one call, and keeps what it did. ``strip`` leaves undeclared fields out."""

    def __init__(self, *, strip: bool) -> None:
        self.ignored: list[Ignored] = []
        self.coerced: list[Coercion] = []
        self._strip = strip
        self._steps = _STEPS

    def shape(self, node: Node, value: Any, path: Path = ()) -> Any:
        """``value`` in the shape that ``node`` means. What needs no change may be shared with the original."""
        return self._shape([node], value, path)

    def _shape(self, nodes: list[Node], value: Any, path: Path) -> Any:
        self._steps -= 1
        if self._steps < 0:
            return value
        if isinstance(value, str):
            opened = self._unpacked(nodes, value)
            if opened is None:
                return value
            self._note(Coercion(path, "string", "array" if isinstance(opened, list) else "object"))
            value = opened
        if isinstance(value, float):
            return self._integer(nodes, value, path)
        if isinstance(value, dict):
            return self._object(list(_facets(nodes, value)), value, path)
        if isinstance(value, list):
            return self._array(list(_facets(nodes, value)), value, path)
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
        return value if fits and not too_deep(value) else None

    def _integer(self, nodes: list[Node], value: float, path: Path) -> Any:
        """An integer where the schema wants one and the value is whole."""
        if not value.is_integer() or abs(value) > _EXACT:
            return value
        types = [node.allowed.types for node in nodes if not node.allowed.open]
        if not types or any("integer" not in each or "number" in each for each in types):
            return value
        self._note(Coercion(path, "number", "integer"))
        return int(value)

    def _object(self, facets: list[Node], value: dict[str, Any], path: Path) -> dict[str, Any]:
        closed = self._strip and any("properties" in node.value for node in facets)
        shaped: dict[str, Any] = {}
        for key, item in value.items():
            schemas, declared = _declared(facets, key)
            if closed and not declared:
                self._ignore(facets, key, value, path)
            else:
                shaped[key] = self._shape(schemas, item, (*path, key)) if schemas else item
        return shaped

    def _array(self, facets: list[Node], value: list[Any], path: Path) -> list[Any]:
        shaped = []
        for index, item in enumerate(value):
            schemas = [each for node in facets if (each := node.item(index)) is not None]
            shaped.append(self._shape(schemas, item, (*path, index)) if schemas else item)
        return shaped

    def _ignore(self, facets: list[Node], key: str, value: dict[str, Any], path: Path) -> None:
        if len(self.ignored) < _NOTED:
            names = [name for node in facets for name in node.properties if name not in value]
            self.ignored.append(Ignored((*path, key), meant(key, list(dict.fromkeys(names)))))

    def _note(self, coercion: Coercion) -> None:
        if len(self.coerced) < _NOTED:
            self.coerced.append(coercion)


def _facets(nodes: list[Node], value: Any) -> Iterator[Node]:
    """All schemas that speak of ``value``: each with what holds together with it, and the branches that were meant."""
    seen: set[str] = set()
    todo = list(nodes)
    while todo:
        for node in todo.pop(0).alike():
            if node.pointer in seen:
                continue
            seen.add(node.pointer)
            yield node
            for union in node.unions:
                todo += meant_branches(union, value)


def _declared(facets: list[Node], key: str) -> tuple[list[Node], bool]:
    """The schemas of a field, and whether it is declared or may stand here undeclared."""
    schemas = [node.properties[key] for node in facets if key in node.properties]
    schemas += [each for node in facets for matches, each in node.patterns if matches(key)]
    if schemas:
        return schemas, True
    rest = [node.rest for node in facets if node.rest is not None and node.rest is not False]
    return [node for node in rest if isinstance(node, Node)], bool(rest)


def too_deep(value: Any) -> Path | None:
    """The path of something that is nested deeper than the decoders allow."""
    return next((path for path, _, depth in walk(value) if depth > DEFAULT_LIMITS.depth), None)


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
