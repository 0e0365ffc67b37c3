"""A recording as the answer of an endpoint: byte for byte where it was made there, else decoded and written anew.

What a client asks for and what was recorded may differ: the wire, and whether it is streamed. Then the recording goes
through its decoder, and an encoder writes the same events for the endpoint, each with the piece that made it certain:
the work of a good server. ``/v1/completions`` is the exception: it streams raw text, which only a recording of raw text
(or of that endpoint) has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from streamparse.decoding.encode import ChunkEncoder, MessageEncoder, to_chat_completion, to_message
from streamparse.errors import StreamparseError
from streamparse.events import Event, json_text
from streamparse.server.library import Recording, event_of
from streamparse.server.plan import Plan, Step, plan_of
from streamparse.transport.body import Body
from streamparse.transport.formats import framing_of
from streamparse.transport.framing import FramingKind, make_framing
from streamparse.transport.recording import Piece
from streamparse.transport.replay import options_of
from streamparse.transport.sse import DONE
from streamparse.transport.wires import Wire

EVENT_STREAM = "text/event-stream; charset=utf-8"
JSON = "application/json"


class Wanted(msgspec.Struct, frozen=True):
    """What a client asks for. ``raw``: the model's text as it is, in ``delta.content``."""

    wire: Wire
    stream: bool
    model: str
    raw: bool = False


class Answer(msgspec.Struct, frozen=True):
    """What is sent, in its recorded time."""

    status: int
    media_type: str
    steps: Plan


class UnplayableError(StreamparseError):
    """The recording cannot be played on this endpoint. The message says where it can."""


def answer(recording: Recording, wanted: Wanted) -> Answer:
    """The answer to a request. Raises ``UnplayableError``."""
    header = recording.header
    framing = framing_of(header, recording.data[:4096])
    recorded = Answer(header.status, header.media_type, plan_of(recording.pieces))
    if header.status >= 400 or framing is None:
        return recorded
    if header.wire is wanted.wire and (wanted.stream or framing is not FramingKind.EVENT_STREAM):
        return recorded
    raw = header.wire is Wire.TEXT and wanted.raw and wanted.wire is Wire.CHAT
    if raw or wanted.wire is Wire.COMPLETIONS:
        steps = _raw_answer(recording, framing, wanted)
    else:
        steps = _written_anew(recording, framing, wanted)
    return Answer(200, EVENT_STREAM if wanted.stream else JSON, steps)


# Decoded, and written anew --------------------------------------------------------------------------------------------


def _written_anew(recording: Recording, framing: FramingKind, wanted: Wanted) -> Plan:
    timed = list(_events(recording, framing))
    if not wanted.stream:
        whole = _whole([event for _, events in timed for event in events], wanted)
        return [Step(sum(wait for wait, _ in timed), _encoded(whole))]
    write = _writer(wanted)
    steps = [Step(wait, write(events)) for wait, events in timed]
    if recording.pieces and recording.pieces[-1].broken:
        return [*steps[:-1], Step(steps[-1].wait, b"", breaks=True)]
    return steps if wanted.wire is Wire.MESSAGES else [*steps, Step(0.0, event_of(DONE.encode(), wanted.wire))]


def _events(recording: Recording, framing: FramingKind) -> Iterator[tuple[float, list[Event]]]:
    """The events of each piece, with the wait before it; the end of the answer at last."""
    header = recording.header
    body = Body(options_of(header).decoder(header.wire), framing)
    at, clean = 0.0, True
    for piece in recording.pieces:
        clean = not piece.broken
        if clean:
            yield piece.at - at, body.feed(piece.data)
            at = piece.at
    end = recording.pieces[-1].at if recording.pieces else 0.0
    yield end - at, body.close(header.finish_reason, clean=clean)


def _writer(wanted: Wanted) -> Callable[[list[Event]], bytes]:
    """The function that writes events for this endpoint."""
    encoder: ChunkEncoder | MessageEncoder = (
        MessageEncoder(model=wanted.model) if wanted.wire is Wire.MESSAGES else ChunkEncoder(model=wanted.model)
    )

    def write(events: list[Event]) -> bytes:
        return b"".join(_event(chunk, wanted.wire) for chunk in encoder.feed_all(events))

    return write


def _whole(events: list[Event], wanted: Wanted) -> dict[str, Any]:
    if wanted.wire is Wire.MESSAGES:
        return to_message(events, model=wanted.model)
    return to_chat_completion(events, model=wanted.model)


def _event(chunk: dict[str, Any], wire: Wire) -> bytes:
    return event_of(_encoded(chunk), wire)


def _encoded(value: dict[str, Any]) -> bytes:
    return json_text(value).encode("utf-8", "replace")


# Raw text -------------------------------------------------------------------------------------------------------------

_Texts: TypeAlias = list[tuple[float, str]]


def _raw_answer(recording: Recording, framing: FramingKind, wanted: Wanted) -> Plan:
    """Raw text as it is: in ``text``, or in ``delta.content``."""
    texts, finish_reason = _raw_texts(recording, framing)
    if not wanted.stream:
        whole = _raw_chunk("".join(text for _, text in texts), finish_reason, wanted)
        return [Step(sum(wait for wait, _ in texts), _encoded(whole))]
    steps = [Step(wait, _event(_raw_chunk(text, None, wanted), wanted.wire)) for wait, text in texts]
    if recording.pieces and recording.pieces[-1].broken:
        return [*steps, Step(0.0, b"", breaks=True)]
    last = _event(_raw_chunk("", finish_reason, wanted), wanted.wire)
    return [*steps, Step(0.0, last), Step(0.0, event_of(DONE.encode(), wanted.wire))]


def _raw_texts(recording: Recording, framing: FramingKind) -> tuple[_Texts, str]:
    """The texts with the wait before each, and the finish reason."""
    header = recording.header
    if header.wire not in (Wire.TEXT, Wire.COMPLETIONS):
        places = "/v1/messages" if header.wire is Wire.MESSAGES else "/v1/chat/completions"
        raise UnplayableError(f"{recording.name} holds no raw text; ask {places} for it")
    reason = header.finish_reason
    texts: _Texts = []
    decoder = make_framing(framing)
    at = 0.0
    for piece, found in _payloads(recording.pieces, decoder.feed, decoder.close):
        for payload in found:
            text = payload
            if header.wire is Wire.COMPLETIONS:
                text, reason = _text_of(payload, reason)
            if text:
                texts.append((piece - at, text))
                at = piece
    return texts, "length" if reason == "length" else "stop"


def _payloads(
    pieces: Sequence[Piece], feed: Callable[[bytes], list[Any]], close: Callable[[], list[Any]]
) -> Iterator[tuple[float, list[Any]]]:
    at = 0.0
    for piece in pieces:
        at = piece.at
        yield at, feed(piece.data)
    yield at, close()


class _TextChoice(msgspec.Struct):
    text: str | None = None
    finish_reason: str | None = None


class _TextChunk(msgspec.Struct):
    choices: list[_TextChoice] | None = None


def _text_of(payload: str | bytes, reason: str | None) -> tuple[str, str | None]:
    """The text of a chunk of ``/v1/completions``, and the finish reason so far."""
    try:
        choices = msgspec.json.decode(payload, type=_TextChunk).choices or []
    except (msgspec.MsgspecError, ValueError, RecursionError):
        choices = []
    first = choices[0] if choices else _TextChoice()
    return first.text or "", first.finish_reason or reason


def _raw_chunk(text: str, finish_reason: str | None, wanted: Wanted) -> dict[str, Any]:
    """A chunk, or with its finish reason and without streaming, the whole completion."""
    whole = not wanted.stream
    if wanted.wire is Wire.COMPLETIONS:
        kind = "text_completion"
        choice: dict[str, Any] = {"index": 0, "text": text, "finish_reason": finish_reason}
    else:
        kind = "chat.completion" if whole else "chat.completion.chunk"
        field = "message" if whole else "delta"
        choice = {"index": 0, field: {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    return {"id": "cmpl-0", "object": kind, "created": 0, "model": wanted.model, "choices": [choice]}


# Errors in the provider's style ---------------------------------------------------------------------------------------

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}


def error_of(wire: Wire, status: int, message: str = "") -> dict[str, Any]:
    """The body of an error response."""
    kind = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    message = message or f"status {status}, as it was asked for"
    if wire is Wire.MESSAGES:
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}


def error_event(wire: Wire) -> bytes:
    """An error inside a stream."""
    return _event(error_of(wire, 503, "the server is overloaded (a fault that was asked for)"), wire)


MINIMAX_ERROR = {"id": "", "choices": None, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}}
"""An error with status 200, as MiniMax sends it."""
