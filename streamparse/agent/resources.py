"""Resources: what tools read and change, by name. A name is a path, or any other text with ``/`` between its parts."""

from __future__ import annotations

from collections.abc import Iterable

EVERYTHING = "*"
"""The resource that is all resources: what a command may have changed."""


def touches(one: str, other: str) -> bool:
    """Whether a change of the one is seen in the other: the same, everything, or one inside the other."""
    if EVERYTHING in (one, other) or one == other:
        return True
    one, other = f"{one.rstrip('/')}/", f"{other.rstrip('/')}/"
    return one.startswith(other) or other.startswith(one)


def overlap(some: Iterable[str], others: Iterable[str]) -> bool:
    """Whether any of these touches any of those."""
    others = tuple(others)
    return any(touches(one, other) for one in some for other in others)
