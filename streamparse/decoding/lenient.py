"""What callers hand over -> typed structs, whatever it is: the part of reading that all wires share (C1, C7, C8).

Theory. A wire says what its structs are, and how they are filled field by field. A ``reader`` makes of that one
function for JSON text or bytes, a dict, a struct, an object of an SDK (anything with these attributes). There are two
ways, and the second is only taken where the first refuses:

* *typed*: ``msgspec`` decodes or converts. Unknown fields are skipped without being built; every field may be missing
  or null. This is the way of a healthy payload.
* *lenient*: the same structs, field by field. A field of a wrong type is as good as missing, so that one odd field
  never costs the rest of a payload.

A reader raises only ``UnreadableError``: text that is no JSON. What has nothing known in it is an empty struct.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

_T = TypeVar("_T")
_TEXTS = (str, bytes, bytearray, memoryview)


class UnreadableError(Exception):
    """The text of a payload is no JSON. Never leaves the decoders: they make an event of it."""


def reader(shape: type[_T], leniently: Callable[[Any], _T]) -> Callable[[Any], _T]:
    """The function that makes a ``shape`` of whatever a caller has; ``leniently`` does it field by field."""
    decode = msgspec.json.Decoder(shape).decode

    def read(given: Any) -> _T:
        if isinstance(given, shape):
            return given
        if isinstance(given, _TEXTS):
            return read_text(given)
        try:
            return msgspec.convert(given, shape, from_attributes=True)
        except Exception:  # an attribute may do anything
            return leniently(given)

    def read_text(text: str | bytes | bytearray | memoryview) -> _T:
        try:
            return decode(text)
        except (msgspec.MsgspecError, ValueError, RecursionError):  # ValueError: a lone surrogate in the text
            pass
        try:
            plain_text = text if isinstance(text, str) else bytes(text).decode("utf-8", "replace")
            return leniently(json.loads(plain_text.removeprefix("\ufeff")))
        except (ValueError, RecursionError) as error:
            raise UnreadableError(str(error)) from None

    return read


# Field by field -------------------------------------------------------------------------------------------------------


def get(given: Any, name: str) -> Any:
    """A field of a mapping or an object; None if it has none."""
    try:
        return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)
    except Exception:  # a property may raise anything
        return None


def get_text(given: Any, name: str) -> str | None:
    """A text as it came: a piece of prose may end in half a surrogate pair, whose other half comes next."""
    value = get(given, name)
    return value if isinstance(value, str) else None


def get_str(given: Any, name: str) -> str | None:
    """A whole text, ``sound``."""
    value = get(given, name)
    return sound(value) if isinstance(value, str) else None


def get_int(given: Any, name: str) -> int | None:
    """An integer, also as text."""
    value = get(given, name)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def get_list(given: Any, name: str) -> list[Any] | None:
    """A list of anything."""
    value = get(given, name)
    return list(value) if isinstance(value, list | tuple) else None


# What is in a field ---------------------------------------------------------------------------------------------------


def sound(text: str) -> str:
    """The text without surrogates, which nobody could encode: a pair becomes its character, half a pair U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def plain(given: Any) -> dict[str, Any] | None:
    """A usage, or the arguments of a call, as a dict; None if there is none."""
    if given is not None and not isinstance(given, dict):
        dump = get(given, "model_dump") or get(given, "to_dict")
        try:
            given = dump() if callable(dump) else msgspec.to_builtins(getattr(given, "__dict__", given))
        except Exception:  # an SDK may do anything
            return None
    return dict(given) if isinstance(given, dict) and given else None


class BaseResp(msgspec.Struct, gc=False):
    """MiniMax reports errors here, with status 200."""

    status_code: int | str | None = None
    status_msg: str | None = None


def base_resp_of(given: Any) -> BaseResp | None:
    """``BaseResp`` leniently."""
    if given is None:
        return None
    status = get_int(given, "status_code")
    return BaseResp(get_str(given, "status_code") if status is None else status, get_str(given, "status_msg"))


def failure(errors: tuple[Any, ...], base: BaseResp | None) -> str:
    """C8: status and message of the first error, in one line; empty if there is none."""
    for given in errors:
        if given:
            return _words(given)
    if base is None or base.status_code is None or str(base.status_code).strip() in ("0", ""):
        return ""
    return f"{base.status_code} {sound(base.status_msg or '')}".strip()


def _words(error: Any) -> str:
    if isinstance(error, str):
        return sound(error)
    words = [get(error, name) for name in ("status_code", "code", "type", "message")]
    told = [str(word) for word in words if isinstance(word, str | int) and str(word)]
    return sound(" ".join(dict.fromkeys(told))) or "an error without a message"
