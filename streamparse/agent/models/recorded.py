"""A model that plays recordings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from streamparse.agent.models.base import IdFactory, Request
from streamparse.agent.models.played import Play, PlayedAnswer, tools_of
from streamparse.errors import ResponseError, StreamInterruptedError, UsageError
from streamparse.transport.body import Body
from streamparse.transport.formats import framing_of
from streamparse.transport.pace import CLOCK, Clock
from streamparse.transport.recording import Header, Piece, read
from streamparse.transport.replay import options_of
from streamparse.transport.wires import Wire, as_wire


class RecordedModel:
    """Plays recordings (``transport.recording``), one for each request, whatever the request says.

    ``recordings`` are files, or their text. ``speed`` is how many times as fast as they were recorded; None does not
    wait. ``requests`` holds the requests that it was given. Raises ``UsageError`` for what is no recording, with its
    name and line, and when it is asked for more than there are.
    """

    def __init__(
        self,
        recordings: Iterable[str | PathLike[str]],
        *,
        wire: Wire | str | None = None,
        speed: float | None = None,
        clock: Clock = CLOCK,
    ) -> None:
        if speed is not None and not speed > 0:
            raise UsageError(f"speed must be above 0, or None for no waiting, found {speed!r}")
        self._recordings = [_read(each) for each in recordings]
        self.wire = _wire(self._recordings) if wire is None else as_wire(wire)
        self.requests: list[dict[str, Any]] = []
        self._speed = speed
        self._clock = clock

    def stream(
        self, request: Request, *, tools: Iterable[Any] | None = None, id_factory: IdFactory | None = None
    ) -> PlayedAnswer:
        """The next recording."""
        if len(self.requests) == len(self._recordings):
            raise UsageError(f"there are {len(self._recordings)} recordings, and one more was asked for")
        header, pieces = self._recordings[len(self.requests)]
        self.requests.append(deepcopy(dict(request)))
        if header.tools is None and header.request is None:
            header = msgspec.structs.replace(header, tools=tools_of(request, tools))
        body = _body(header, pieces, id_factory)
        return PlayedAnswer(_replay(header, pieces, self._speed, body), self._clock, body and body.decoder)


def _read(recording: str | PathLike[str]) -> tuple[Header, list[Piece]]:
    if isinstance(recording, str) and "\n" in recording:
        return read(recording)
    try:
        text = Path(recording).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"cannot read {recording}: {reason}") from None
    try:
        return read(text)
    except UsageError as error:
        raise UsageError(f"{recording}, {error}") from None


def _wire(recordings: Sequence[tuple[Header, Any]]) -> Wire:
    """The wire on which the first was recorded."""
    return recordings[0][0].wire if recordings else Wire.CHAT


def _body(header: Header, pieces: Sequence[Piece], id_factory: IdFactory | None) -> Body | None:
    """What reads the response, None if it is no answer."""
    framing = framing_of(header, b"".join(piece.data for piece in pieces[:_BEGINNING]))
    if framing is None:
        return None
    options = msgspec.structs.replace(options_of(header), id_factory=id_factory)
    return Body(options.decoder(header.wire), framing)


def _replay(header: Header, pieces: Sequence[Piece], speed: float | None, body: Body | None) -> Play:
    if body is None:
        beginning = b"".join(piece.data for piece in pieces)[:200].decode("utf-8", "replace")
        raise ResponseError(f"the recorded response is no answer: {beginning}", status=header.status, body=beginning)
    at, told, broken = 0.0, 0, False
    for piece in pieces:
        at, broken = (0.0 if speed is None else piece.at / speed), piece.broken
        events = body.feed(piece.data)
        told += len(events)
        yield at, events
    error = StreamInterruptedError("the recorded connection broke") if broken else body.error
    if error is not None and not told:
        raise error
    yield at, body.close(header.finish_reason, clean=not broken)
    return error or body.error


_BEGINNING = 16
"""Pieces that are looked at to tell what a recorded response holds."""
