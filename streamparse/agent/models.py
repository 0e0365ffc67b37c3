"""Models: what turns a request into the events of one answer. Live, recorded or scripted; the loop sees no difference.

A model is asked with ``stream(request)``, which gives an *answer*: an async context manager, and an iterator of lists
of events. ::

    async with model.stream({"messages": messages, "tools": tools}) as answer:
        async for events in answer: ...

``model.wire`` says how the request has to be written: OpenAI-style (``chat``), Anthropic-style (``messages``), or with
a rendered ``prompt`` (``completions``, ``text``). The contract of an answer is that of ``transport.http``: entering
raises ``TransportError`` if nothing came; from then on iteration raises none, the last event is ``Ended``, and
``error`` says what happened. Leaving the block closes the connection, at once when the task is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from copy import deepcopy
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, TypeAlias

import anyio.lowlevel
import msgspec
from msgspec import UNSET, UnsetType

from streamparse.agent.recut import len_of, recut
from streamparse.errors import ResponseError, StreamInterruptedError, TransportError, UsageError
from streamparse.events import Event, json_text
from streamparse.transport.http import AsyncAnswerStream
from streamparse.transport.pace import CLOCK, Clock
from streamparse.transport.recording import Header, Piece, read
from streamparse.transport.replay import body_of
from streamparse.transport.wires import Decoder, Options, Wire, as_wire, wire_of_chunk, wire_of_url

Request: TypeAlias = Mapping[str, Any]
"""The body of a request, as ``Model.wire`` has it."""


class Answer(Protocol):
    """One answer while it streams. ``error`` is why it is not whole, once it is over."""

    @property
    def error(self) -> TransportError | None:
        """Why the answer is not whole, None if it is."""

    async def __aenter__(self) -> Answer:
        """Waits for the first events. Raises ``TransportError`` if none came."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        """Closes the connection."""

    def __aiter__(self) -> Answer:
        """The answer itself."""

    async def __anext__(self) -> list[Event]:
        """The next events: one at least."""


class Model(Protocol):
    """Whatever answers requests."""

    @property
    def wire(self) -> Wire:
        """How a request has to be written."""

    def stream(self, request: Request, *, tools: Iterable[Any] | None = None) -> Answer:
        """The answer to a request, not yet begun. ``tools`` are those to decode with; None takes the request's."""


# Played answers

_Play: TypeAlias = Generator[tuple[float, list[Event]], None, TransportError | None]
"""The events of an answer with their times, in seconds from its start; then why it is not whole."""


class PlayedAnswer:
    """An answer that was there before the question."""

    def __init__(self, play: _Play, clock: Clock) -> None:
        self.error: TransportError | None = None
        self._play = play
        self._clock = clock
        self._start = 0.0
        self._first: list[Event] | None = None

    async def __aenter__(self) -> PlayedAnswer:
        self._start = self._clock.now()
        self._first = await self._next()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._play.close()
        self._first = None

    def __aiter__(self) -> PlayedAnswer:
        return self

    async def __anext__(self) -> list[Event]:
        events, self._first = self._first, None
        events = events or await self._next()
        if events is None:
            raise StopAsyncIteration
        return events

    async def _next(self) -> list[Event] | None:
        await anyio.lowlevel.checkpoint()  # a script without delays must not keep others from running
        while True:
            try:
                at, events = next(self._play)
            except StopIteration as over:
                self.error = over.value or self.error
                return None
            wait = self._start + at - self._clock.now()
            if wait > 0:
                await self._clock.asleep(wait)
            if events:
                return events


def _tools(request: Request, tools: Iterable[Any] | None) -> list[Any] | None:
    declared = request.get("tools") if tools is None else tools
    return None if declared is None else list(declared)


# Scripts

Content: TypeAlias = str | Sequence[Mapping[str, Any]]
"""What a model says: native text, OpenAI-style chunks, or Anthropic-style events."""


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a ``ScriptedModel``, and what goes wrong in it.

    * ``content``: see ``Content``. ``start`` is where native text begins.
    * ``size``: characters in a piece; None leaves chunks as they are, and text whole.
    * ``delay``: seconds before each piece.
    * ``cut``: characters after which the answer ends. ``finish`` is its reason then, ``"length"`` if nothing is said;
      None is an end without a word. For native text that is not cut, it is ``"tool_calls"`` or ``"stop"``.
    * ``fault``: breaks the answer once ``fault_after`` events have come, at its end at the latest. If none had come,
      entering raises it.
    """

    content: Content
    start: Literal["text", "reasoning"] = "text"
    size: int | None = None
    delay: float = 0.0
    cut: int | None = None
    finish: str | UnsetType | None = UNSET
    fault: TransportError | None = None
    fault_after: int = 0

    def wire(self) -> Wire:
        """The wire of the content. Raises ``UsageError`` for what is none."""
        if isinstance(self.content, str):
            return Wire.TEXT
        for chunk in self.content:
            if (found := wire_of_chunk(json_text(chunk))) is not None:
                return found
        raise UsageError("a turn is native text, or a list of OpenAI-style chunks or of Anthropic-style events")


Said: TypeAlias = Content | Script | Callable[[Request], "Content | Script"]
"""A turn of a script. A function is given the request."""


class ScriptedModel:
    """Says what it is told to say, turn by turn. For tests, and for whoever writes a loop of their own.

    ``requests`` holds the requests that it was given. ``wire`` says how they have to be written, which is another
    matter than the wire of the turns. ``size`` and ``delay`` are for turns without a ``Script``; ``options`` are those
    of the decoder (``dialect``, ``repair`` …). Raises ``UsageError`` when it is asked for more turns than it has.
    """

    def __init__(
        self,
        turns: Iterable[Said],
        *,
        wire: Wire | str = Wire.CHAT,
        size: int | None = None,
        delay: float = 0.0,
        clock: Clock = CLOCK,
        **options: Any,
    ) -> None:
        self.wire = as_wire(wire)
        self.requests: list[dict[str, Any]] = []
        self._turns = list(turns)
        self._size = size
        self._delay = delay
        self._clock = clock
        self._options = options

    @property
    def left(self) -> int:
        """How many turns it still has."""
        return len(self._turns) - len(self.requests)

    def stream(self, request: Request, *, tools: Iterable[Any] | None = None) -> PlayedAnswer:
        """The next turn."""
        if not self.left:
            raise UsageError(f"the script has {len(self._turns)} turns, and one more was asked for")
        turn = self._turns[len(self.requests)]
        self.requests.append(deepcopy(dict(request)))
        said = turn if isinstance(turn, str | Script | Sequence) else turn(request)
        script = said if isinstance(said, Script) else Script(content=said, size=self._size, delay=self._delay)
        options = Options(**{"start": script.start, **self._options, "tools": _tools(request, tools)})
        return PlayedAnswer(_play(script, options.decoder(script.wire())), self._clock)


def _play(script: Script, decoder: Decoder) -> _Play:
    at, told, said = 0.0, 0, 0
    for piece, size in _pieces(script):
        at += script.delay
        if script.fault is not None and told >= script.fault_after:
            break
        if script.cut is not None and said + size > script.cut:
            piece, size = _shortened(piece, script.cut - said), script.cut - said
        events = [] if piece is None else decoder.feed(piece)
        told, said = told + len(events), said + size
        yield at, events
        if script.cut is not None and said >= script.cut:
            yield at, decoder.close("length" if script.finish is UNSET else script.finish)
            return None
    if script.fault is not None:
        if not told:
            raise script.fault
        yield at, decoder.close("error")
        return script.fault
    yield at, decoder.close(_finish(script, decoder))
    return None


def _finish(script: Script, decoder: Decoder) -> str | None:
    """The reason of an answer that was not cut; chunks say it themselves."""
    if script.finish is not UNSET:
        return script.finish
    if not isinstance(script.content, str):
        return None
    return "tool_calls" if decoder.calls else "stop"


def _pieces(script: Script) -> Generator[tuple[Any, int], None, None]:
    """The pieces, and how many characters are in each."""
    if isinstance(script.content, str):
        size = script.size or max(len(script.content), 1)
        for at in range(0, len(script.content), size):
            piece = script.content[at : at + size]
            yield piece, len(piece)
        return
    for chunk in script.content:
        for part in [chunk] if script.size is None else recut(chunk, script.size):
            yield part, len_of(part)


def _shortened(piece: Any, size: int) -> Any:
    """The first so many characters of a piece; None for no character of a chunk."""
    if isinstance(piece, str):
        return piece[:size]
    return recut(piece, size)[0] if size else None


# Recordings


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

    def stream(self, request: Request, *, tools: Iterable[Any] | None = None) -> PlayedAnswer:
        """The next recording."""
        if len(self.requests) == len(self._recordings):
            raise UsageError(f"there are {len(self._recordings)} recordings, and one more was asked for")
        header, pieces = self._recordings[len(self.requests)]
        self.requests.append(deepcopy(dict(request)))
        if header.tools is None and header.request is None:
            header = msgspec.structs.replace(header, tools=_tools(request, tools))
        return PlayedAnswer(_replay(header, pieces, self._speed), self._clock)


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


def _replay(header: Header, pieces: Sequence[Piece], speed: float | None) -> _Play:
    body = body_of(header, b"".join(piece.data for piece in pieces[:_BEGINNING]))
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


# Live


class HttpModel:
    """A model behind an endpoint, through ``transport.http``.

    ``client`` is an ``httpx.AsyncClient`` of the caller's. ``wire`` None tells it by the path of ``url``. ``model`` and
    ``sampling`` (``temperature``, ``max_tokens`` …) are added to each request that does not say otherwise. ``options``
    are those of ``AnswerStream``: ``headers``, ``first_token``, ``idle``, ``retries`` (B11), ``dialect``, ``start`` …
    """

    def __init__(
        self,
        client: Any,
        url: str,
        *,
        wire: Wire | str | None = None,
        model: str | None = None,
        sampling: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.wire = wire_of_url(url) if wire is None else as_wire(wire)
        self.url = url
        self._client = client
        self._extra = {**({} if model is None else {"model": model}), **(sampling or {})}
        self._options = options

    def stream(self, request: Request, *, tools: Iterable[Any] | None = None) -> HttpAnswer:
        """Nothing is sent before the answer is entered."""
        body = {**self._extra, **request}
        return HttpAnswer(AsyncAnswerStream(self._client, self.url, body, wire=self.wire, tools=tools, **self._options))


class HttpAnswer:
    """An answer that comes over HTTP. ``stream`` is the stream beneath it."""

    def __init__(self, stream: AsyncAnswerStream) -> None:
        self.stream = stream

    @property
    def error(self) -> TransportError | None:
        """Why the answer is not whole, None if it is."""
        return self.stream.error

    async def __aenter__(self) -> HttpAnswer:
        await self.stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stream.aclose()

    def __aiter__(self) -> HttpAnswer:
        return self

    async def __anext__(self) -> list[Event]:
        return [await anext(self.stream)]
