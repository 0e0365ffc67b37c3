"""A local server that plays recordings back, to test agents against: OpenAI-compatible and Anthropic-style, without a
key, with the recorded timing, and with faults on request.

``Server`` is the door; it needs the extra ``serve``. What can be asked to go wrong stands in ``faults``.
"""

from __future__ import annotations

from streamparse.errors import MissingExtraError

try:
    from streamparse.server.library import Recording, load
    from streamparse.server.local import Server
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] not in ("starlette", "uvicorn"):
        raise
    raise MissingExtraError(
        f"the local server needs {error.name}, which is in the extra 'serve': "
        "pip install 'streamparse-toolcalls[serve]'"
    ) from None

__all__ = ["Recording", "Server", "load"]
