"""A server on the loopback interface, in a thread of its own: for tests, demos, and the command line."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import uvicorn

from streamparse.errors import UsageError
from streamparse.server.app import Service, Settings
from streamparse.server.faults import parse_faults
from streamparse.server.library import Recording, load

PATIENCE = 10.0
"""Seconds that starting and stopping may take. Both take less than one."""


class Server:
    """Plays recordings over HTTP while its ``with`` block runs.

    ``recordings`` are files (``load`` says which) or ``Recording``s. ``port`` 0 is a free one: ``url`` tells.
    ``faults`` are specs for every request; a request may ask for its own. The other options are those of ``Settings``:
    ``speed``, ``chunk``, ``raw``, ``repeat``, ``log``.

    Raises ``UsageError`` for a file that cannot be played, a spec that is none, or a port that is taken.
    """

    def __init__(
        self,
        recordings: Iterable[Recording | str | Path],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        faults: Iterable[str] = (),
        **options: Any,
    ) -> None:
        settings = Settings(faults=parse_faults(faults), **options)
        loaded = [each if isinstance(each, Recording) else load(each) for each in recordings]
        self._service = Service(loaded, settings)
        self._address = (host, port)
        self._thread: threading.Thread | None = None
        self.url = ""
        """``http://127.0.0.1:PORT``, once it runs."""

    @property
    def requests(self) -> list[dict[str, Any]]:
        """What ``/_requests`` tells."""
        return [msgspec.to_builtins(served) for served in list(self._service.requests)]

    def __enter__(self) -> Self:
        listening = _listen(*self._address)
        host, port = listening.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        config = uvicorn.Config(
            self._service.app(),
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="critical",  # a connection that breaks as it was asked to is no error
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = _Stoppable(config, self._service)
        self._thread = threading.Thread(
            target=self._server.run, args=([listening],), name="streamparse-server", daemon=True
        )
        self._thread.start()
        end = time.monotonic() + PATIENCE
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > end:
                raise RuntimeError("the server did not start")
            time.sleep(0.005)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        assert self._thread is not None
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            raise RuntimeError("the server did not stop")


class _Stoppable(uvicorn.Server):
    """Does not wait for answers that are still playing."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for playback in list(self._service.playing):
            playback.stop()
        await super().shutdown(sockets)


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port < 65536:
        raise UsageError(f"cannot listen on {host}:{port}: a port is a number from 0 to 65535")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
