"""What may stand on a wire: JSON, text, names, arguments. Each rule once, for those who check and those who mend.

A request is one JSON document in UTF-8. It cannot be sent with a lone surrogate or ``NaN`` in it, and a server refuses
the whole history for one call whose arguments are no JSON object (B5). ``is_…`` asks, the other functions give the
nearest thing that may be sent, and never raise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from json import dumps
from typing import Any, Final

from streamparse.decoding.arguments import JsonDecoder
from streamparse.decoding.jsontext import printable
from streamparse.events import PartialToolCall, ToolCall, json_text

NO_ARGUMENTS: Final = "{}"
"""What stands for arguments that cannot be sent: the call itself, and nothing that the model has not written whole."""

UNNAMED: Final = "unnamed"
"""The name of a call that has none; a server refuses an empty one."""

MAX_NAME: Final = 256
"""Characters of a name on the wire. APIs allow 64 to 128, and more only a runaway has."""

_MAX_DEPTH: Final = 100
"""Levels of a value that are kept. Readers of JSON stop at 100 to 1000."""

_UNCLEAN: Final = re.compile(r"[\s\x00-\x1f\x7f]+")


def is_json(value: Any) -> bool:
    """Whether the value can be sent: JSON types only, no ``NaN``, no cycle, no lone surrogate, not too deep."""
    try:
        dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def plain(value: Any) -> Any:
    """The value as it can be sent: objects as the names of their types, lone surrogates as U+FFFD, ``NaN`` as text."""
    return _plain(value, ())


def _plain(value: Any, inside: tuple[int, ...]) -> Any:
    if isinstance(value, str):
        return printable(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if is_json(value) else str(value) if isinstance(value, float) else hex(value)
    if id(value) in inside or len(inside) >= _MAX_DEPTH:
        return "…"
    inside = (*inside, id(value))
    if isinstance(value, Mapping):
        return {printable(key if isinstance(key, str) else text_of(key)): _plain(value[key], inside) for key in value}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_plain(item, inside) for item in value]
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "replace")
    return f"<{type(value).__name__}>"


def text_of(value: Any) -> str:
    """A value as the text of a message or a result: text as it is, None as nothing, everything else as JSON, never as
    Python writes it."""
    if value is None:
        return ""
    return printable(value) if isinstance(value, str) else json_text(value if is_json(value) else plain(value))


def text_of_parts(content: Any) -> str:
    """Content as one text: a list of text parts joined, anything else as ``text_of`` has it."""
    if isinstance(content, list | tuple) and all(isinstance(part, Mapping) and is_text_part(part) for part in content):
        return "".join(printable(part["text"]) for part in content)
    return text_of(content)


def is_text_part(part: Mapping[str, Any]) -> bool:
    """Whether a part of a content is text, and nothing else."""
    return isinstance(part.get("text"), str) and part.get("type") in ("text", "input_text", "output_text")


def is_parts(content: Any) -> bool:
    """Whether it is a list of content parts: objects that say their type."""
    return (
        isinstance(content, list)
        and bool(content)
        and all(isinstance(part, Mapping) and isinstance(part.get("type"), str) for part in content)
    )


# Names


def is_name(name: Any) -> bool:
    """Whether a server can take it for a tool's name: text without white space or control characters."""
    return isinstance(name, str) and 0 < len(name) <= MAX_NAME and not _UNCLEAN.search(name)


def clean_name(name: str) -> str:
    """The name without white space and control characters, and never empty. What a model reads of its own name it
    writes again, with one line break more each time."""
    return _UNCLEAN.sub("_", name.strip())[:MAX_NAME] or UNNAMED


# Arguments


def is_arguments(text: Any) -> bool:
    """Whether it is the text of a JSON object, strictly (J1 to J3): no duplicate keys, no lone surrogates."""
    return isinstance(text, str) and read_object(text, repair=0) is not None


def read_object(text: str, *, repair: int) -> dict[str, Any] | None:
    """The object that the text is, at a tier of tolerance (J5); None if it is none."""
    reader = JsonDecoder(repair=repair)
    reader.feed(text)
    reader.close()
    if reader.state != "complete" or not isinstance(reader.value, dict):
        return None
    return reader.value


def arguments_of(call: ToolCall | PartialToolCall) -> str:
    """The arguments for the wire: as they came if they came as legal JSON, else what was read of them, written anew.

    Of a call that is not sealed nothing is shown: half a file among the arguments reads as if it had been sent.
    """
    if isinstance(call, PartialToolCall):
        return NO_ARGUMENTS
    if call.verbatim is not None and is_arguments(call.verbatim):
        return call.verbatim
    written = text_of(call.arguments)
    return written if is_arguments(written) else NO_ARGUMENTS
