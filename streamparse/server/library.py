"""What can be played: recordings, and files that are made into one. Which of them answers a request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from streamparse.errors import UsageError
from streamparse.transport.formats import InputKind, has_head, recognise
from streamparse.transport.framing import FramingKind, make_framing
from streamparse.transport.recording import Header, Piece, read
from streamparse.transport.sse import BOM, DONE
from streamparse.transport.wires import Wire


class Recording(msgspec.Struct, frozen=True, eq=False):
    """An answer that can be played. ``name`` is the model's name that asks for it."""

    name: str
    header: Header
    pieces: Sequence[Piece]

    @property
    def data(self) -> bytes:
        """All bytes of the body."""
        return b"".join(piece.data for piece in self.pieces)


def load(path: str | Path) -> Recording:
    """The recording in a file; its name is the file's, without the last suffix. Raises ``UsageError`` for a file that
    cannot be read, or that is a broken recording."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"cannot read {path}: {reason}") from None
    try:
        return recording_of(path.stem, data)
    except UsageError as error:
        raise UsageError(f"{path}, {error}") from None


def recording_of(name: str, data: bytes) -> Recording:
    """The recording in these bytes: of a recording, an event stream, chunks as JSON, or raw text."""
    found = recognise(data, complete=True)
    assert found is not None
    if found.kind is InputKind.RECORDING:
        return Recording(name, *read(data.removeprefix(BOM).decode("utf-8", "replace")))
    assert found.wire is not None
    if has_head(data):
        raise UsageError("expected the body of a response alone, found its HTTP head before it (curl -i)")
    if found.kind is InputKind.TEXT:
        return Recording(name, Header(), [Piece.of(0.0, data.removeprefix(BOM))])
    if found.kind is InputKind.EVENT_STREAM:
        header = Header(wire=found.wire, media_type="text/event-stream")
        return Recording(name, header, [Piece.of(0.0, data)])
    return _of_json(name, data, found.wire)


class _Kind(msgspec.Struct):
    object: str | None = None
    type: str | None = None


def _of_json(name: str, data: bytes, wire: Wire) -> Recording:
    """A whole completion is what it is; chunks are made into the event stream that they were."""
    framing = make_framing(FramingKind.JSON)
    values = framing.feed(data) + framing.close()
    chunks = [value if isinstance(value, bytes) else msgspec.json.encode(value) for value in values]
    if len(chunks) == 1 and not _is_chunk(chunks[0]):
        return Recording(name, Header(wire=wire, media_type="application/json"), [Piece.of(0.0, data)])
    events = [event_of(chunk.strip(), wire) for chunk in chunks]
    if wire is not Wire.MESSAGES and chunks[-1].strip() != DONE.encode():
        events.append(event_of(DONE.encode(), wire))
    header = Header(wire=wire, media_type="text/event-stream")
    return Recording(name, header, [Piece.of(0.0, event) for event in events])


def _kind(chunk: bytes) -> _Kind:
    try:
        return msgspec.json.decode(chunk, type=_Kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _Kind()


def _is_chunk(chunk: bytes) -> bool:
    kind = _kind(chunk)
    return kind.object == "chat.completion.chunk" or (kind.type or "error") not in ("message", "error")


def event_of(payload: bytes, wire: Wire) -> bytes:
    """A chunk as an event of an event stream; Anthropic-style events have a name, too."""
    name = _kind(payload).type if wire is Wire.MESSAGES else None
    head = f"event: {name}\n".encode() if name else b""
    lines = b"\n".join(b"data: " + line for line in payload.splitlines())
    return b"%b%b\n\n" % (head, lines)


class Playlist:
    """Which recording answers: the one that the request's model names; else the next in the order of the files."""

    def __init__(self, recordings: Iterable[Recording], *, repeat: bool = False) -> None:
        self.recordings = list(recordings)
        self._named = {recording.name: recording for recording in self.recordings}
        if len(self._named) < len(self.recordings):
            names = [recording.name for recording in self.recordings]
            twice = next(name for name in names if names.count(name) > 1)
            raise UsageError(f"two recordings are called {twice!r}; give them different names")
        self._repeat = repeat
        self._next = 0

    def choose(self, model: object) -> Recording | None:
        """The recording for this model; None when all were used up."""
        if isinstance(model, str) and model in self._named:
            return self._named[model]
        if self._next == len(self.recordings) and self._repeat:
            self._next = 0
        if self._next == len(self.recordings):
            return None
        self._next += 1
        return self.recordings[self._next - 1]
