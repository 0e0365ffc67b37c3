"""A model that says what it is told to say."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from streamparse.agent.models.base import IdFactory, Request
from streamparse.agent.models.played import Play, PlayedAnswer, tools_of
from streamparse.agent.recut import len_of, recut
from streamparse.errors import TransportError, UsageError
from streamparse.events import json_text
from streamparse.transport.pace import CLOCK, Clock
from streamparse.transport.wires import Decoder, Options, Wire, as_wire, wire_of_chunk

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

    def stream(
        self, request: Request, *, tools: Iterable[Any] | None = None, id_factory: IdFactory | None = None
    ) -> PlayedAnswer:
        """The next turn."""
        if not self.left:
            raise UsageError(f"the script has {len(self._turns)} turns, and one more was asked for")
        turn = self._turns[len(self.requests)]
        self.requests.append(deepcopy(dict(request)))
        said = turn if isinstance(turn, str | Script | Sequence) else turn(request)
        script = said if isinstance(said, Script) else Script(content=said, size=self._size, delay=self._delay)
        words = {"start": script.start, "id_factory": id_factory, **self._options, "tools": tools_of(request, tools)}
        decoder = Options(**words).decoder(script.wire())
        return PlayedAnswer(_play(script, decoder), self._clock, decoder)


def _play(script: Script, decoder: Decoder) -> Play:
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
