"""The cases that come with the library, and packs of cases in a directory: one file each, in the order of the names."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from os import PathLike
from pathlib import Path
from typing import Final

from streamparse.agent.recovery.case import RecoveryCase, case_of, read_case
from streamparse.errors import UsageError

STOCK: Final = "stock.json"
"""The stock case (A3): a lookup of the weather, asked for in celsius, called in kelvin."""


def stock_case() -> RecoveryCase:
    """The stock case."""
    return _read(_folder() / STOCK)


def bundled() -> list[RecoveryCase]:
    """All bundled cases, the stock case first."""
    files = [file for file in _folder().iterdir() if file.name.endswith(".json")]
    return [_read(file) for file in sorted(files, key=lambda file: (file.name != STOCK, file.name))]


def read_pack(folder: str | PathLike[str]) -> list[RecoveryCase]:
    """The cases in a directory. Raises as ``read_case``, and ``UsageError`` where there is none, or a name comes
    twice."""
    cases = [read_case(file) for file in sorted(Path(folder).glob("*.json"))]
    if not cases:
        raise UsageError(f"{folder}: expected a directory with cases (*.json), found none")
    names = [case.name for case in cases]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{folder}: two cases are called {name!r}")
    return cases


def _folder() -> Traversable:
    return resources.files("streamparse.agent.recovery") / "pack"


def _read(file: Traversable) -> RecoveryCase:
    return case_of(file.read_bytes(), file.name)
