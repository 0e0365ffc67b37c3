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
from contextlib import suppress
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


def sound_values(given: dict[str, Any] | None) -> dict[str, Any] | None:
    """A usage whose texts are ``sound``. What else is no JSON in it is as the SDK has it."""
    try:
        msgspec.json.encode(given)
    except UnicodeEncodeError:
        with suppress(TypeError, ValueError, RecursionError):
            found: dict[str, Any] = json.loads(sound(json.dumps(given, ensure_ascii=False, default=str)))
            return found
    except Exception:  # an SDK may do anything
        return given
    return given


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


# Errors (C8) ----------------------------------------------------------------------------------------------------------


class Told(msgspec.Struct, frozen=True):
    """What a value says of the error in it. ``kinds`` are all the words that it has for it, the best one first.
    ``certain``: it is an error wherever it stands; a bare message is one only where an error is known to be."""

    kinds: tuple[str, ...] = ()
    message: str = ""
    minimax: bool = False
    certain: bool = True

    @property
    def code(self) -> str:
        """The provider's own word for the error; empty if there is none."""
        return self.kinds[0] if self.kinds else ""


def told(value: Any) -> Told | None:
    """The error in a payload or a body, in any of the shapes that servers use; None if it is none.

    ===========================================  ==================================================================
    ``base_resp`` with a status that is not 0    MiniMax
    ``error``: an object or a text               OpenAI, Anthropic and most others
    ``choices``, one of which has an ``error``   OpenRouter, behind the first token
    ``detail``: a text, or FastAPI's list        servers written with FastAPI
    ``message`` or ``msg`` beside a word for an  vLLM, gateways. Without such a word, or with one that says that all
    error, or a code or a status that is one     is well, it is not ``certain``
    ===========================================  ==================================================================
    """
    if isinstance(value, list | tuple):
        return next((found for each in value if (found := told(each)) is not None), None)
    base = get(value, "base_resp")
    if base is not None and failure((), base_resp_of(base)):
        return Told((str(get(base, "status_code")),), _message_text(get(base, "status_msg")), minimax=True)
    error = get(value, "error")
    if error:
        return _told_by(error, value)
    choices = get_list(value, "choices")
    if choices:
        return next((_told_by(found, value) for each in choices if (found := get(each, "error"))), None)
    return _told_bare(value)


def _told_by(error: Any, around: Any) -> Told:
    if isinstance(error, str | int | list):
        return Told(_kinds(around), _message_text(error))
    return Told(_kinds(error), _message(error))


def _told_bare(value: Any) -> Told | None:
    """An error that is not in a field of its own."""
    message, kinds = _message(value), _kinds(value)
    if not message:
        return None
    labels = [get(value, name) for name in ("object", "type", "status")]
    labelled = any(isinstance(label, str) and "error" in label.lower() for label in labels)
    coded = bool(get(value, "code")) or any((get_int(value, name) or 0) >= 400 for name in _STATUSES)
    detailed = bool(_message_text(get(value, "detail")))
    well = any(kind.lower() in _WELL for kind in kinds)
    return Told(kinds, message, certain=not well and (labelled or coded or detailed))


_STATUSES = ("status", "status_code", "statusCode")
_WELL = frozenset({"0", "200", "201", "202", "ok", "success", "succeeded"})
"""Words by which a value with a message is no error, as far as one can tell."""


def _kinds(error: Any) -> tuple[str, ...]:
    """The words for the kind of an error. A number that only repeats a status says less than a word."""
    found = [get(error, name) for name in ("code", "type", *_STATUSES)]
    words = [sound(str(each)) for each in found if isinstance(each, str | int) and not isinstance(each, bool)]
    return tuple(sorted(dict.fromkeys(word for word in words if word not in ("", "error")), key=str.isdigit))


def _message(error: Any) -> str:
    found = (get(error, name) for name in ("message", "msg", "error_msg", "detail"))
    return next((text for each in found if (text := _message_text(each))), "")


def _message_text(value: Any) -> str:
    """A message: text, or FastAPI's list of what is wrong and where."""
    if isinstance(value, str):
        return sound(value)
    if isinstance(value, dict):
        place = value.get("loc")
        where = ".".join(map(str, place)) if isinstance(place, list) else ""
        return ": ".join(filter(None, [where, _message(value)]))
    if isinstance(value, list):
        return "; ".join(filter(None, map(_message_text, value)))
    return str(value) if isinstance(value, int | float) else ""


def error_of(given: Any) -> Any:
    """The error of a payload: its ``error``, or the payload if it is one as a whole. None if it is none."""
    error = get(given, "error")
    if error or get_list(given, "choices"):
        return error
    found = _told_bare(given)
    return given if found is not None and found.certain else None


def failure(errors: tuple[Any, ...], base: BaseResp | None) -> str:
    """C8: status and message of the first error, in one line; empty if there is none."""
    for given in errors:
        if given:
            return _words(given)
    if base is None or base.status_code is None or str(base.status_code).strip() in ("0", ""):
        return ""
    return f"{base.status_code} {sound(base.status_msg or '')}".strip()


def _words(error: Any) -> str:
    if isinstance(error, str | list):
        return _message_text(error) or "an error without a message"
    words = [get(error, name) for name in ("status_code", "code", "type")]
    kinds = [str(word) for word in words if isinstance(word, str | int) and str(word)]
    return sound(" ".join(dict.fromkeys([*kinds, _message(error)])).strip()) or "an error without a message"
