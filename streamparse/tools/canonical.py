"""When two JSON values are the same: the order of keys, white space, and ``2.0`` against ``2`` make no difference.

Everything else does: ``1`` and ``true``, ``1`` and ``"1"``, the order of a list, upper and lower case.
"""

from __future__ import annotations

from typing import Any

from streamparse.events import json_text

_DECIMAL = 10**4000
"""Above it an integer is written in hexadecimal digits: Python refuses longer decimal ones."""


def canonical(value: Any) -> str:
    """A text that is equal for equal values, and for no others. Of a value that JSON has, it is JSON (an integer of
    more than 4,000 digits aside).

    Raises ``TypeError`` for what is no JSON, ``RecursionError`` for what is nested too deep.
    """
    if isinstance(value, dict):
        members = sorted((json_text(_key(key)), canonical(each)) for key, each in value.items())
        return f"{{{', '.join(f'{key}: {each}' for key, each in members)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(canonical, value))}]"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _DECIMAL:
        return hex(value)
    return json_text(value)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same. Never raises: what is no JSON is the same as nothing."""
    try:
        return canonical(one) == canonical(other)
    except (TypeError, ValueError, RecursionError):
        return False


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key of an object is text, not {type(key).__name__}")
    return key
