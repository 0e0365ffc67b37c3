"""Plays the bundled recordings over real HTTP, and says whether they came out as expected; then the other ``PARTS``.

A local server on a free loopback port plays each recording as an endpoint would; httpx asks for it, and ``stream``
decodes the response. No key, no network. On a terminal in the live view, at the speed of life; elsewhere, and in CI, as
a log, at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import resources
from typing import Any, TextIO

import httpx

from streamparse.commands.sinks import View, default_format, live_view, text_log
from streamparse.demo import agent, recovery
from streamparse.demo.expectation import differences
from streamparse.events import Event
from streamparse.server import Recording, Server
from streamparse.transport.http import stream
from streamparse.transport.recording import Header, read

ELIDE = 12
"""Lines of a long string that the log shows from its start and from its end: a demo is read, not kept."""

ENDPOINTS = {
    "1_parallel_calls": "/v1/chat/completions",
    "4_typed_arguments": "/v1/messages",
}
"""Where a recording is asked for, so that each wire is seen once. The others come as the model's raw text."""

RAW = "/v1/completions"

PARTS = (
    (agent.TITLE, agent.LOOK, agent.play_agent),
    (recovery.TITLE, recovery.LOOK, recovery.play_recovery),
)
"""What comes after the recordings: title, what to look at, and what plays it and says whether all was right."""


def recordings() -> Iterator[Recording]:
    """The bundled recordings, in the order of their names."""
    folder = resources.files("streamparse.demo")
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        name, _, suffix = file.name.rpartition(".")
        if suffix == "jsonl":
            yield Recording(name, *read(file.read_text(encoding="utf-8")))


def play_all(out: TextIO, *, speed: float | None = None, plain: bool = False) -> bool:
    """Play all of them on ``out``. Whether each came out as its header says; a failed call can be what is expected.

    ``speed``: 1 is the speed of life; by default that on a terminal, and no waiting elsewhere. Raises
    ``MissingExtraError`` without the extra ``serve``, or, on a terminal, ``cli``.
    """
    live = not plain and default_format(out) == "live" and not _in_ci()
    speed = speed or (1.0 if live else float("inf"))
    bundled = list(recordings())
    right = 0
    with Server(bundled, speed=speed) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        for number, recording in enumerate(bundled, 1):
            view = _view(out, live)
            view.heading(f"{number}/{len(bundled)}  {recording.header.title}", recording.header.look)
            right += play(view, client, recording)
    good = right == len(bundled) > 0
    _view(out, live).remark(f"{right} of {len(bundled)} recordings came out as expected", good)
    for title, look, play_part in PARTS:
        _view(out, live).heading(title, look)
        good = play_part(lambda: _view(out, live), speed) and good
    return good


def _view(out: TextIO, live: bool) -> View:
    return live_view(out) if live else text_log(out, elide=ELIDE)


def play(view: View, client: httpx.Client, recording: Recording) -> bool:
    """Ask for one recording, and say in the view whether it came out as expected."""
    header, path = recording.header, ENDPOINTS.get(recording.name, RAW)
    view.remark(f"POST {client.base_url}{path}", True)
    events: list[Event] = []
    with view, stream(client, path, _request(recording, path), **_options(header, path)) as answer:
        for event in answer:
            view.show([event])
            events.append(event)
    wrong = list(differences(header.expected or {}, events))
    for line in wrong:
        view.remark(line, False)
    if not wrong:
        view.remark(_praise(header), True)
    return not wrong


def _request(recording: Recording, path: str) -> dict[str, Any]:
    """The body of a request, as short as the server needs it."""
    model: dict[str, Any] = {"model": recording.name, "stream": True}
    return model | ({"prompt": "…"} if path == RAW else {"messages": [{"role": "user", "content": "…"}]})


def _options(header: Header, path: str) -> dict[str, Any]:
    """Raw text says nothing of its format; the other endpoints have done that work."""
    raw = path == RAW
    return {
        "tools": header.tools,
        "dialect": header.dialect if raw else None,
        "start": header.start if raw else "text",
    }


def _praise(header: Header) -> str:
    failed = (header.expected or {}).get("failed")
    return "as expected: this answer was cut, and nothing half-written was sealed" if failed else "as expected"


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")
