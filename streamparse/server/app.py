"""The ASGI application: endpoints, which recording answers, which faults were asked for. No clock and no socket."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from streamparse.errors import StreamparseError, UsageError
from streamparse.server.answers import (
    JSON,
    MINIMAX_ERROR,
    Answer,
    UnplayableError,
    Wanted,
    answer,
    error_event,
    error_of,
)
from streamparse.server.faults import NO_FAULTS, Faults, Refusal, parse_faults
from streamparse.server.library import Playlist, Recording
from streamparse.server.plan import Recut, Step, recut, with_faults
from streamparse.server.playback import Playback, Served
from streamparse.transport.wires import Wire

ENDPOINTS = {
    "/v1/chat/completions": Wire.CHAT,
    "/chat/completions": Wire.CHAT,
    "/v1/completions": Wire.COMPLETIONS,
    "/v1/messages": Wire.MESSAGES,
    "/anthropic/v1/messages": Wire.MESSAGES,
}

KEPT = 1000
"""Requests that are remembered for ``/_requests``."""

CACHED = 64
"""Answers that are kept ready: writing one anew takes milliseconds, for which all streams would wait."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How recordings are played. ``log`` takes a line for each request that is over."""

    speed: float = 1.0
    chunk: Recut = None
    raw: bool = False
    repeat: bool = False
    faults: Faults = NO_FAULTS
    log: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        if not self.speed > 0:
            raise UsageError(f"speed must be above 0, found {self.speed}")
        if isinstance(self.chunk, int) and self.chunk < 1:
            raise UsageError(f"chunk counts bytes and must be at least 1, found {self.chunk}")


class Service:
    """The endpoints of one server, and what it remembers: ``requests``, and ``playing``, the open ones."""

    def __init__(self, recordings: Iterable[Recording], settings: Settings) -> None:
        self.requests: deque[Served] = deque(maxlen=KEPT)
        self.playing: set[Playback] = set()
        self._playlist = Playlist(recordings, repeat=settings.repeat)
        self._settings = settings
        self._refused: dict[Refusal, int] = {}  # how often each was given
        self._answer = lru_cache(maxsize=CACHED)(answer)

    def app(self) -> Starlette:
        """The application."""
        routes = [Route(path, self._endpoint(wire), methods=["POST"]) for path, wire in ENDPOINTS.items()]
        routes += [
            Route("/v1/models", self._models, methods=["GET"]),
            Route("/health", self._health, methods=["GET"]),
            Route("/_requests", self._requests, methods=["GET"]),
        ]
        return Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_found})

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _models(self, _: Request) -> Response:
        models = [
            {"id": each.name, "object": "model", "created": 0, "owned_by": "streamparse"}
            for each in self._playlist.recordings
        ]
        return JSONResponse({"object": "list", "data": models})

    async def _requests(self, _: Request) -> Response:
        return JSONResponse([msgspec.to_builtins(served) for served in self.requests])

    def _endpoint(self, wire: Wire) -> Callable[[Request], Any]:
        async def respond(request: Request) -> Response:
            return self._respond(wire, request, await request.body())

        return respond

    def _respond(self, wire: Wire, request: Request, body: bytes) -> Response:
        served = Served(path=request.url.path)
        self.requests.append(served)
        try:
            faults = parse_faults(_asked(request), self._settings.faults)
            fields = _read(body)
        except UsageError as error:
            return self._refuse(served, wire, Refusal(400), str(error))
        served.model = str(fields.get("model") or "")
        if faults.hang:
            return self._play(served, None, {}, iter(()))
        refusal = self._refusal(faults)
        if refusal is not None:
            return self._refuse(served, wire, refusal)
        if faults.json_error:
            found = Answer(200, JSON, [Step(0.0, msgspec.json.encode(MINIMAX_ERROR))])
            return self._start(served, wire, found, faults)
        recording = self._playlist.choose(fields.get("model"))
        if recording is None:
            return self._refuse(
                served, wire, Refusal(404), "all recordings were played; start the server with --repeat"
            )
        served.recording = recording.name
        stream, model = fields.get("stream") is True, served.model or recording.name
        raw = self._settings.raw or "raw" in request.query_params or "x-streamparse-raw" in request.headers
        try:
            found = self._answer(recording, Wanted(wire, stream, model, raw))
        except StreamparseError as error:  # the recording names a dialect or tools that are none
            return self._refuse(served, wire, Refusal(400 if isinstance(error, UnplayableError) else 500), str(error))
        return self._start(served, wire, found, faults)

    def _start(self, served: Served, wire: Wire, found: Answer, faults: Faults) -> Response:
        if found.media_type.startswith(JSON):
            faults = msgspec.structs.replace(faults, keepalive=None, error_event=None)  # there are no events
        speed = self._settings.speed
        steps = recut([step._replace(wait=step.wait / speed) for step in found.steps], self._settings.chunk)
        media_type = found.media_type if faults.content_type is None else faults.content_type
        headers = {"content-type": media_type} if media_type else {}
        return self._play(served, found.status, headers, with_faults(steps, faults, error_event(wire)))

    def _refusal(self, faults: Faults) -> Refusal | None:
        if faults.status is not None:
            return faults.status
        if faults.first is None:
            return None
        given = self._refused.get(faults.first, 0)
        self._refused[faults.first] = given + 1
        return faults.first if given < faults.times else None

    def _refuse(self, served: Served, wire: Wire, refusal: Refusal, message: str = "") -> Response:
        headers = {"content-type": JSON}
        if refusal.retry_after is not None:
            headers["retry-after"] = f"{refusal.retry_after:g}"
        data = msgspec.json.encode(error_of(wire, refusal.status, message))
        return self._play(served, refusal.status, headers, iter([Step(0.0, data)]))

    def _play(self, served: Served, status: int | None, headers: dict[str, str], steps: Any) -> Response:
        return Playback(served, status, headers, steps, self.playing, self._settings.log)


def _asked(request: Request) -> list[str]:
    """The faults that a request asks for."""
    return [*request.headers.getlist("x-streamparse-fault"), *request.query_params.getlist("fault")]


def _read(body: bytes) -> dict[str, Any]:
    """The fields of a request. Raises ``UsageError`` for what is no JSON object."""
    try:
        fields = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UsageError(f"the request is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise UsageError("the request is JSON, but no object")
    return fields


async def _not_found(request: Request, _: Exception) -> Response:
    places = ", ".join([*ENDPOINTS, "/v1/models", "/health", "/_requests"])
    wire = Wire.MESSAGES if "messages" in request.url.path else Wire.CHAT
    return JSONResponse(error_of(wire, 404, f"{request.method} {request.url.path}: there are {places}"), 404)
