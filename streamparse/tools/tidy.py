"""A quick test whether arguments need any look beyond the validator's: for almost every call they do not.

``tidy_check`` compiles one from a schema. What is tidy *and* valid is as the schema means it (``shaping`` would change
nothing), JSON could hold it, and it is nested no deeper than the schema is written, or than the decoders allow. What it
does not know it calls untidy: then the slow way decides.

It looks as deep as a validator would: into the forms that schema generators write (``$ref``, an object or null, unions
that a constant tells apart, maps of one type), once for each value.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

from streamparse.limits import DEFAULT_LIMITS
from streamparse.tools.schema import Node

Check = Callable[[Any], bool]

_DEEPEST = DEFAULT_LIMITS.depth // 2 - 2
"""Schemas inside schemas, references followed, that are compiled: so no tidy value is nested too deep."""

_NOTES = frozenset(
    "type title description default examples $defs definitions $schema $id $anchor $comment deprecated readOnly "
    "writeOnly nullable discriminator".split()
)
"""Keywords that say nothing of what is inside a value. ``type`` is the validator's business."""

_RULES = frozenset(
    "required enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern "
    "format minItems maxItems minProperties maxProperties uniqueItems".split()
)
"""Keywords that are the validator's business, too."""

_INSIDE = frozenset({"properties", "additionalProperties", "items"})
_PLAIN = frozenset({bool, int, type(None)})


def tidy_check(node: Node) -> Check:
    """A test that is true only for valid values with nothing to shape, or for values that are not valid."""
    return _Compiler().check(node, frozenset())


def is_text(value: Any) -> bool:
    """Whether it is text that JSON can hold: no half of a surrogate pair is in it."""
    return type(value) is str and (value.isascii() or _encodes(value))


def is_scalar(value: Any) -> bool:
    """Whether it is one that JSON can hold."""
    kind = type(value)
    return kind in _PLAIN or (kind is float and isfinite(value)) or is_text(value)


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _always(_: Any) -> bool:
    return True


def _whole(value: Any) -> bool:
    """Of a valid value that may be an integer and no number: it is written as one."""
    return type(value) in _PLAIN or is_text(value)


def _integer(value: Any) -> bool:
    return type(value) is int


def _free(value: Any, depth: int = 0) -> bool:
    """Any value, whatever is inside: no schema asks for a shape there."""
    if is_scalar(value):
        return True
    if depth > _DEEPEST:
        return False
    if type(value) is dict:
        return all(map(is_text, value)) and all(_free(each, depth + 1) for each in value.values())
    return type(value) is list and all(_free(each, depth + 1) for each in value)


class _Compiler:
    """Compiles each schema of a document once. One that refers to itself is not opened again."""

    def __init__(self) -> None:
        self._made: dict[str, Check] = {}

    def check(self, node: Node, above: frozenset[str]) -> Check:
        """The test for one schema, inside those of ``above``."""
        if node.pointer in above or len(above) > _DEEPEST:
            return _scalars(node)
        check = self._made.get(node.pointer)
        if check is None:
            check = self._made[node.pointer] = self._compile(node, above | {node.pointer})
        return check

    def _compile(self, node: Node, above: frozenset[str]) -> Check:
        keys = node.value.keys() - _NOTES
        if "type" not in node.value and (keys == {"$ref"} or (keys == {"allOf"} and len(node.value["allOf"]) == 1)):
            return self.check(node.together[0], above) if len(node.together) == 1 else _scalars(node)
        if keys in ({"anyOf"}, {"oneOf"}) and node.unions:
            return self._union(node, node.unions[0], above)
        if not keys <= _RULES | _INSIDE or isinstance(node.value.get("items"), list):
            return _scalars(node)
        if not keys & _INSIDE:
            return _simple(node)
        scalar = _scalars(node)
        of_object = self._object(node, above) if keys & {"properties", "additionalProperties"} else _free
        of_array = self._array(node, above) if "items" in keys else _free
        if node.allowed.open or len(node.allowed.types) > 1:
            return _by_kind(scalar, of_object, of_array)
        return of_object if node.allowed.types == {"object"} else of_array

    def _union(self, node: Node, branches: list[Node], above: frozenset[str]) -> Check:
        """A value of a kind that only one branch allows, or with a constant that only one has."""
        scalar = _scalars(node)
        if any(branch.allowed.open for branch in branches):
            return scalar
        objects, arrays = ([each for each in branches if kind in each.allowed.types] for kind in ("object", "array"))
        of_object = self.check(objects[0], above) if len(objects) == 1 else self._tagged(objects, above)
        of_array = self.check(arrays[0], above) if len(arrays) == 1 else scalar
        return _by_kind(scalar, of_object, of_array)

    def _tagged(self, branches: list[Node], above: frozenset[str]) -> Check:
        for key in branches[0].tags if branches else ():
            tags = [branch.tags.get(key, []) for branch in branches]
            known = {value for each in tags for value in each if is_text(value)}
            if all(tags) and len(known) == sum(map(len, tags)):
                pairs = zip(branches, tags, strict=True)
                checks = {value: self.check(branch, above) for branch, each in pairs for value in each}
                return lambda value: is_text(tag := value.get(key)) and tag in checks and checks[tag](value)
        return _never

    def _object(self, node: Node, above: frozenset[str]) -> Check:
        checks = {key: self.check(each, above) for key, each in node.properties.items()}
        if not node.rest:
            return _closed(checks)
        return _open(checks, self.check(node.rest, above) if isinstance(node.rest, Node) else _free)

    def _array(self, node: Node, above: frozenset[str]) -> Check:
        item = node.item(0)
        check = self.check(item, above) if item is not None else _free
        return lambda value: type(value) is list and all(map(check, value))


def _never(_: Any) -> bool:
    return False


def _scalars(node: Node) -> Check:
    """A test for values that hold no others."""
    types = node.allowed.types
    return is_scalar if node.allowed.open or "number" in types or "integer" not in types else _whole


def _simple(node: Node) -> Check:
    """The test for a schema that says nothing of what is inside."""
    types = node.allowed.types
    if node.allowed.open or types & {"object", "array"}:
        return _by_kind(_scalars(node), _free, _free)
    if types == {"integer"}:
        return _integer
    if types == {"string"}:
        return is_text
    return _always if types <= {"boolean", "null"} else _scalars(node)


def _by_kind(scalar: Check, of_object: Check, of_array: Check) -> Check:
    def check(value: Any) -> bool:
        kind = type(value)
        if kind is dict:
            return of_object(value)
        return of_array(value) if kind is list else scalar(value)

    return check


def _closed(checks: dict[str, Check]) -> Check:
    """The test for an object in which nothing else may stand. A valid scalar needs no test by its field's schema, but
    for floats, which may be integers."""

    def check(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for key, item in value.items():
            if key not in checks:
                return False
            kind = type(item)
            if kind is str:
                if not item.isascii() and not _encodes(item):
                    return False
            elif kind not in _PLAIN and not checks[key](item):
                return False
        return True

    return check


def _open(checks: dict[str, Check], rest: Check) -> Check:
    """The test for an object in which ``rest`` holds for everything else."""

    def check(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for key, item in value.items():
            kind = type(item)
            if key not in checks and not is_text(key):
                return False
            if kind is str:
                if not item.isascii() and not _encodes(item):
                    return False
            elif kind not in _PLAIN and not checks.get(key, rest)(item):
                return False
        return True

    return check
