"""What a client raises -> what it means. Clients are told by the names of their exceptions, which httpx, httpx2 and
their transports have in common, so that none of them has to be imported."""

from __future__ import annotations

from streamparse.errors import ConnectError, StreamInterruptedError, TransportError, UsageError
from streamparse.transport.recorder import Redaction

_CALLERS = frozenset({"UnsupportedProtocol", "LocalProtocolError", "InvalidURL"})
"""The request itself cannot be sent."""

_NETWORK = frozenset({"RequestError", "StreamError"})
"""Base classes of all that can go wrong on the way. (``StreamError``: the response was closed meanwhile.)"""


def _names(error: BaseException) -> set[str]:
    return {each.__name__ for each in type(error).__mro__}


def is_read_timeout(error: Exception) -> bool:
    """Whether nothing came within the time that the client was given."""
    return "ReadTimeout" in _names(error)


def before_response(error: Exception, host: str, redact: Redaction) -> TransportError | UsageError | None:
    """What it means that a request failed like this; None if it is no fault of the network."""
    names = _names(error)
    said = _said(error, redact)
    if names & _CALLERS:
        return UsageError(f"the request cannot be sent: {said}")
    return ConnectError(f"no response from {host}: {said}") if names & _NETWORK else None


def in_response(error: Exception, redact: Redaction) -> TransportError | None:
    """What it means that a response broke like this; None if it is no fault of the network."""
    if not _names(error) & _NETWORK:
        return None
    return StreamInterruptedError(f"the connection broke: {_said(error, redact)}")


def _said(error: Exception, redact: Redaction) -> str:
    text = redact.text(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
