"""A path that does not exist: what may have been meant."""

from __future__ import annotations

from difflib import get_close_matches
from itertools import islice

from streamparse.agent.coding_tools.bounds import MAX_FILE
from streamparse.agent.coding_tools.confine import Contents, Root
from streamparse.agent.coding_tools.outcome import Rejected
from streamparse.agent.coding_tools.paths import Missing, shown
from streamparse.agent.coding_tools.text import SourceText, decode

_LOOKED_AT = 5_000
"""Files among which a name is looked for that is somewhere else."""

_OFFERED = 5


def read_text(root: Root, path: str) -> tuple[Contents, SourceText]:
    """A text file inside the root. Raises ``Rejected`` for what is none; a missing path gets the nearest names."""
    try:
        contents = root.read(path, MAX_FILE)
    except Missing as error:
        raise with_nearest(root, error) from None
    source = decode(contents.data)
    if source is None:
        raise Rejected(
            "path",
            f"{shown(contents.path)} is binary ({len(contents.data):,} bytes). Expected a text file; use run_command "
            "with a program that understands it",
        )
    return contents, source


def with_nearest(root: Root, error: Missing) -> Rejected:
    """The same error, with the paths that may have been meant."""
    folder = "".join(f"{part}/" for part in error.parts)
    close = [folder + name for name in get_close_matches(error.name, root.names(error.parts), _OFFERED, 0.6)]
    base = error.asked.rstrip("/").rsplit("/", 1)[-1]
    moved = (path for path in islice(root.walk(), _LOOKED_AT) if path.rsplit("/", 1)[-1] == base)
    found = tuple(shown(path) for path in dict.fromkeys([*islice(moved, _OFFERED), *close]))[:_OFFERED]
    hint = f". Did you mean {', '.join(found)}?" if found else ""
    return Rejected("path", f"{error}{hint}", found)
