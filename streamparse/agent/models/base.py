"""What a model is, to whoever asks one.

It is asked with ``stream(request)``, which gives an *answer*: an async context manager, and an iterator of lists
of events. ::

    async with model.stream({"messages": messages, "tools": tools}) as answer:
        async for events in answer: ...

``model.wire`` says how the request has to be written: OpenAI-style (``chat``), Anthropic-style (``messages``), or with
a rendered ``prompt`` (``completions``, ``text``). The contract of an answer is that of ``transport.http``: entering
raises ``TransportError`` if nothing came; from then on iteration raises none, the last event is ``Ended``, and
``error`` says what happened. Leaving the block closes the connection, at once when the task is cancelled.

An answer may have more: ``attempts``, how often the request was sent (B11), and ``thinking``, the provider's own blocks
of reasoning that came so far and have to go back as they came (B3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Protocol, TypeAlias

from streamparse.errors import TransportError
from streamparse.events import Event
from streamparse.transport.wires import Wire

Request: TypeAlias = Mapping[str, Any]
"""The body of a request, as ``Model.wire`` has it."""

IdFactory: TypeAlias = Callable[[int], str]
"""The place of a call in its answer -> an id for it, if it came without one (N17)."""


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

    def stream(
        self, request: Request, *, tools: Iterable[Any] | None = None, id_factory: IdFactory | None = None
    ) -> Answer:
        """The answer to a request, not yet begun. ``tools`` are those to decode with; None takes the request's.
        ``id_factory`` makes ids for calls that come without one; None leaves that to the decoder."""


def thinking_of(decoder: object) -> list[dict[str, Any]]:
    """The blocks of reasoning that a decoder keeps as they came; most wires have none."""
    return list(getattr(decoder, "thinking", ()))
