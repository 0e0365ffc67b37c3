"""Which branch of an ``anyOf`` or ``oneOf`` was meant.

A discriminator decides where there is one: a field that is a ``const`` or ``enum`` in at least two branches, and whose
value rules some of them out. Then a branch that fits; then the one with the fewest issues, where a wrong type of the
whole value weighs more than anything inside it, and undeclared fields, which are ignored, weigh nothing.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from streamparse.tools.schema import Node
from streamparse.tools.wording import type_word

_COUNTED = 50
"""Issues of a branch that are counted: nobody meant one with so many."""

_BRANCHES = 64
"""Branches that are looked at. Unions of more are lists of constants, and those are told apart by their values."""

_WRONG_KIND = 1000


def meant_branches(branches: list[Node], value: Any) -> list[Node]:
    """The branches that speak of ``value``: all that fit, else the one that was meant."""
    possible = candidates(branches, value)
    fitting = [node for node in possible if node.fits(value)]
    if fitting or len(possible) < 2:
        return fitting or possible
    return [min(possible, key=lambda node: _weight(node, value))]


def candidates(branches: list[Node], value: Any) -> list[Node]:
    """The branches that the type of the value, and then a discriminator, leave; all where these rule out all."""
    left = [node for node in branches[:_BRANCHES] if accepts(node, value)] or branches[:_BRANCHES]
    if not isinstance(value, dict):
        return left
    tags = {node.pointer: _tags(node) for node in left}
    keys = {key for each in tags.values() for key in each if sum(key in other for other in tags.values()) > 1}
    for key in sorted(keys & value.keys()):
        left = [node for node in left if _tagged(tags[node.pointer].get(key), value[key])] or left
    return left


def accepts(node: Node, value: Any) -> bool:
    """Whether the types of a node allow the value."""
    return node.allowed.open or type_word(value) in node.allowed.types


def _tags(node: Node) -> dict[str, list[Any]]:
    """The fields of a branch that can only be one of some constants."""
    fields = [(key, each) for part in node.alike() for key, each in part.properties.items()]
    return {key: list(each.allowed.members) for key, each in fields if each.value.keys() & {"const", "enum"}}


def _tagged(values: list[Any] | None, value: Any) -> bool:
    return values is None or any(type(each) is type(value) and each == value for each in values)


def _weight(node: Node, value: Any) -> int:
    """How much is wrong with ``value`` in a branch."""
    total = 0
    for error in islice(node.errors(value), _COUNTED):
        kind = error.kind.name
        if kind in ("type", "enum", "const") and not error.instance_path:
            total += _WRONG_KIND
        elif kind not in ("additionalProperties", "unevaluatedProperties"):
            total += 1
    return total
