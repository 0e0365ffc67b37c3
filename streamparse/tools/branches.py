"""Which branch of an ``anyOf`` or ``oneOf`` was meant.

A discriminator decides where there is one: a field that is a ``const`` or ``enum`` in at least two branches, and whose
value rules some of them out. Then a branch that fits; then the one with the fewest issues, where a wrong type of the
whole value weighs more than anything inside it, and undeclared fields, which are ignored, weigh nothing.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, islice
from typing import Any, NamedTuple

from streamparse.tools.schema import Node
from streamparse.tools.wording import type_word

_COUNTED = 50
"""Issues of a branch that are counted: nobody meant one with so many."""

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
    left = [node for node in branches if accepts(node, value)] or branches
    if not isinstance(value, dict) or len(left) < 2:
        return left
    counts = Counter(key for node in left for key in node.tags if key in value)
    for key in sorted(key for key, count in counts.items() if count > 1):
        left = [node for node in left if _tagged(node.tags.get(key), value[key])] or left
    return left


class Undecided(NamedTuple):
    """A discriminator that decides nothing: ``key`` has none of the ``values`` that the branches want, or is not
    there."""

    key: str
    values: list[Any]


def undecided(branches: list[Node], value: Any) -> Undecided | None:
    """The discriminator of these branches, if the value does not say which of them it is: then nothing else can be said
    of it."""
    left = candidates(branches, value)
    if not isinstance(value, dict) or len(left) < 2:
        return None
    for key in left[0].tags:
        tags = [node.tags.get(key) for node in left]
        known = [each for each in tags if each is not None]
        if len(known) < len(left) or not _differ(known):
            continue
        lacking = key not in value and all(node.requires(key) for node in left)
        if lacking or (key in value and not any(_tagged(each, value[key]) for each in known)):
            values = [each for tag in known for each in tag]
            return Undecided(key, [each for at, each in enumerate(values) if not _tagged(values[:at], each)])
    return None


def accepts(node: Node, value: Any) -> bool:
    """Whether the types of a node allow the value."""
    return node.allowed.open or type_word(value) in node.allowed.types


def _differ(tags: list[list[Any]]) -> bool:
    """Whether no two of the first branches share a constant: then it is what tells them apart."""
    pairs = combinations(tags[:_COUNTED], 2)
    return not any(_tagged(one, each) for one, other in pairs for each in other)


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
