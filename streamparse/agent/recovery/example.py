"""From a JSON Schema: an example of what fits it, and the schema of a place. Both do what they can; whoever uses them
lets the validator have the last word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamparse.errors import UsageError
from streamparse.events import Path

_DEPTH: Final = 16
"""Levels of an example. Deeper only a schema that contains itself goes."""

_UNIONS: Final = ("anyOf", "oneOf")


def example(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call that probably fits: all declared fields. Raises ``UsageError`` for a schema that contains
    itself without an end."""
    try:
        made = _example(schema, schema, 0)
    except RecursionError:
        raise UsageError("no example can be made of a schema that contains itself: give arguments") from None
    return made if isinstance(made, dict) else {}


def _example(schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    if depth > _DEPTH:
        raise UsageError("no example can be made of a schema that contains itself: give arguments")
    schema = _resolved(schema, root)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    for key in _UNIONS:
        if schema.get(key):
            return _example(_merged(schema, schema[key][0], root), root, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        properties = schema.get("properties", {})
        return {key: _example(each, root, depth + 1) for key, each in properties.items()}
    if kind == "array":
        return [_example(schema.get("items", {}), root, depth + 1) for _ in range(max(schema.get("minItems", 1), 1))]
    return _scalar(kind, schema)


def _scalar(kind: Any, schema: Mapping[str, Any]) -> Any:
    if kind in ("integer", "number"):
        if "minimum" in schema:
            return schema["minimum"]
        if "exclusiveMinimum" in schema:
            return schema["exclusiveMinimum"] + 1
        return min(schema.get("maximum", 7), 7)
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    text = "an example " * (schema.get("minLength", 0) // 11 + 1)
    return text.strip().ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]


def subschema(schema: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The schema of a place, through ``properties``, ``items`` and references; of a union the first branch that has it.
    Empty where it says nothing of the place."""
    try:
        return _at(schema, path, schema)
    except RecursionError:  # a union, or parts, of which one is the whole
        return {}


def _at(schema: Any, path: Path, root: Mapping[str, Any]) -> Mapping[str, Any]:
    here = _resolved(schema, root)
    if not path:
        return here
    step, rest = path[0], path[1:]
    inner = here.get("items") if isinstance(step, int) else here.get("properties", {}).get(step)
    if isinstance(inner, Mapping):
        return _at(inner, rest, root)
    for key in _UNIONS:
        for branch in here.get(key, ()):
            found = _at(branch, path, root)
            if found:
                return found
    return {}


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that is meant: references followed, parts put together."""
    for _ in range(_DEPTH):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            break
        target: Any = root
        for step in reference.removeprefix("#").strip("/").split("/"):
            target = target.get(step, {}) if isinstance(target, Mapping) and step else target
        schema = target
    whole: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    for part in whole.get("allOf", ()):
        whole = _merged({key: each for key, each in whole.items() if key != "allOf"}, part, root)
    return whole


def _merged(schema: Mapping[str, Any], branch: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """What both say, without the unions of the first."""
    branch = _resolved(branch, root)
    own = {key: each for key, each in schema.items() if key not in _UNIONS}
    properties = {**own.get("properties", {}), **branch.get("properties", {})}
    return {**own, **branch, **({"properties": properties} if properties else {})}
