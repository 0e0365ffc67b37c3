"""Every bound, with its reason. Behind a bound nothing is kept: a stream that runs away costs no memory.

All counts are characters (Python ``len``) unless the name says otherwise.
"""

from __future__ import annotations

import msgspec

LOOKAHEAD = 1024
"""N5: how far a delimiter may wait for the tag that decides about it. Line breaks and a stray remark fit; beyond it the
reader of a stream would notice the silence."""

EXCERPT = 200
"""Characters of input that an error or a deviation quotes: a few lines, never a file."""


MAX_EVENT = 16 * 1024 * 1024
"""S: bytes of the lines of one event of an event stream. A chunk is some hundred bytes; a whole answer in one event,
with a file in its arguments, is a few MiB; an endless line ends here and not with the memory."""

MAX_BODY = 64 * 1024 * 1024
"""Bytes of a body that is read whole: a completion in one piece, with all its arguments."""

ERROR_BODY = 64 * 1024
"""Bytes of an error's body that are read, to find the provider's code and message in it."""


class Limits(msgspec.Struct, frozen=True):
    """Bounds of one decoder. Each is generous for every real model and small against memory."""

    name: int = 1024
    """Characters of a tool or parameter header. APIs allow 64 to 128 for a name; attributes need some room."""

    arguments: int = 64 * 1024 * 1024
    """Characters of all values of one call. The largest context windows hold a few MiB of text."""

    depth: int = 128
    """Nesting of JSON arguments. Schemas in use stay below 20; readers downstream often stop at 100 to 1000."""

    calls: int = 65_536
    """Calls in one answer. A model that loops is stopped before its list of calls is a problem."""

    parameters: int = 65_536
    """Parameters of one call, and members of one JSON object or array are not bounded apart from ``arguments``."""


DEFAULT_LIMITS = Limits()
