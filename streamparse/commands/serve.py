"""``streamparse serve``: the local server, until it is interrupted."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import Literal, TypeAlias

Recut: TypeAlias = int | Literal["event"] | None
"""Writes of N bytes, of one event each, or as they were recorded."""


def serve(
    files: Sequence[str],
    *,
    host: str,
    port: int,
    speed: float,
    chunk: Recut,
    faults: Sequence[str],
    raw: bool,
    repeat: bool,
) -> None:
    """Play the files until Ctrl-C. One line on standard output says where, one on standard error what was asked.

    Raises ``MissingExtraError`` without starlette and uvicorn, ``UsageError`` for what cannot be played.
    """
    from streamparse.server import Server

    options = {"speed": speed, "chunk": chunk, "raw": raw, "repeat": repeat, "log": _log}
    with Server(files, host=host, port=port, faults=faults, **options) as server:
        names = "1 recording" if len(files) == 1 else f"{len(files)} recordings"
        sys.stdout.write(f"{server.url} plays {names}; Ctrl-C stops\n")
        sys.stdout.flush()
        threading.Event().wait()


def _log(line: str) -> None:
    sys.stderr.write(f"{line}\n")
