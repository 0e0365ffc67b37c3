"""A clock beside a blocking read: shuts the socket down when the deadline is over.

A blocking client reads with one timeout per read, which every keep-alive starts again, and which it does not let one
change while a response is read. So the deadline of a response is kept by a thread of its own: it sleeps until then,
and when the deadline was not moved meanwhile, it shuts the socket down, which ends the read in the other thread. That
is the one way that works for plain and for TLS sockets alike, and it costs the reader no more than an assignment for
each event. The response is broken after that, as it is meant to be."""

from __future__ import annotations

import contextlib
import math
import socket
import threading
from collections.abc import Callable
from typing import Any


class Watchdog:
    """Guards the reads on one socket. ``deadline`` is a time of ``now``; ``fired`` once it was over."""

    def __init__(self, sock: socket.socket, now: Callable[[], float], deadline: float) -> None:
        self.fired = False
        self._socket = sock
        self._now = now
        self._deadline = self._wakes = deadline
        self._stopped = False
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="streamparse-watchdog", daemon=True).start()

    def move(self, deadline: float) -> None:
        """Another deadline. Only one that is before the thread's waking has to wake it: in a stream that flows, none
        is, and the lock is not touched."""
        self._deadline = deadline
        if deadline < self._wakes:
            with self._changed:
                self._changed.notify()

    def rest(self) -> None:
        """Nobody reads: no deadline."""
        self._deadline = math.inf

    def stop(self) -> None:
        """The end. After it the socket is not touched: it may serve another request by then."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def interrupt(self) -> None:
        """Ends a read that another thread is in."""
        with self._changed:
            if not self._stopped:
                shut(self._socket)

    def _run(self) -> None:
        with self._changed:
            while not self._stopped:
                self._wakes = math.inf  # before the deadline is read: who moves it from here on gives notice
                self._wakes = deadline = self._deadline
                left = deadline - self._now()
                if left <= 0:
                    self.fired = True
                    shut(self._socket)
                    return
                self._changed.wait(min(left, threading.TIMEOUT_MAX))


def shut(sock: socket.socket) -> None:
    """Ends what is going on at a socket, in whatever thread."""
    # Not the method of a TLS socket: that one first forgets its TLS state, under the hands of the reader.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def shut_stream(stream: Any) -> None:
    """The same for a network stream of the client, if requests do not share it; None is none."""
    sock = None if stream is None else stream.get_extra_info("socket")
    if isinstance(sock, socket.socket) and getattr(sock, "selected_alpn_protocol", lambda: None)() != "h2":
        shut(sock)


def socket_of(response: Any) -> socket.socket | None:
    """The socket of a response, if it is the response's alone: with HTTP/2 others share it. None for a transport that
    has none."""
    if response.extensions.get("http_version", b"") not in (b"HTTP/1.0", b"HTTP/1.1"):
        return None
    stream = response.extensions.get("network_stream")
    found = None if stream is None else stream.get_extra_info("socket")
    return found if isinstance(found, socket.socket) else None
