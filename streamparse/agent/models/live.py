"""A model behind an endpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Final

from streamparse.agent.models.base import IdFactory, Request, thinking_of
from streamparse.errors import TransportError
from streamparse.events import Event
from streamparse.transport.http import AsyncAnswerStream
from streamparse.transport.wires import Wire, as_wire, wire_of_url

MAX_TOKENS: Final = 16_384
"""Tokens of an answer on the wire ``messages``, which wants a number: a large file, and some reasoning before it."""


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
        needed = {"max_tokens": MAX_TOKENS} if self.wire is Wire.MESSAGES else {}
        self._extra = {**needed, **({} if model is None else {"model": model}), **(sampling or {})}
        self._options = options

    def stream(
        self, request: Request, *, tools: Iterable[Any] | None = None, id_factory: IdFactory | None = None
    ) -> HttpAnswer:
        """Nothing is sent before the answer is entered."""
        body = {**self._extra, **request}
        options = {"id_factory": id_factory, **self._options, "wire": self.wire, "tools": tools}
        return HttpAnswer(AsyncAnswerStream(self._client, self.url, body, **options))


class HttpAnswer:
    """An answer that comes over HTTP. ``stream`` is the stream beneath it."""

    def __init__(self, stream: AsyncAnswerStream) -> None:
        self.stream = stream

    @property
    def error(self) -> TransportError | None:
        """Why the answer is not whole, None if it is."""
        return self.stream.error

    @property
    def attempts(self) -> int:
        """How often the request was sent (B11)."""
        return self.stream.attempts

    @property
    def thinking(self) -> list[dict[str, Any]]:
        """Blocks of reasoning that have to go back as they came (B3)."""
        return thinking_of(self.stream.decoder)

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
