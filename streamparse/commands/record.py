"""``streamparse record``: one request, its response written down as it arrives, and shown as it is decoded."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO
from urllib.parse import urlsplit

import httpx
import msgspec

from streamparse.commands.sinks import Format, Sink, default_format, open_sink
from streamparse.commands.sources import read_whole
from streamparse.errors import ConnectError, UsageError
from streamparse.transport.body import Body
from streamparse.transport.recorder import REPLACEMENT, Recorder
from streamparse.transport.recording import Header
from streamparse.transport.redaction import secrets_of
from streamparse.transport.replay import body_of
from streamparse.transport.wires import Wire, wire_of_url

CONNECT, READ = 10.0, 600.0
"""Seconds that a connection, and the next bytes, may take. Long thinking is silent for minutes."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of ``record``. ``headers`` are lines, ``redact`` regular expressions."""

    url: str
    request: str
    out: str
    headers: Sequence[str] = ()
    key_env: str | None = None
    redact: Sequence[str] = ()
    form: Format | None = None


def record(options: Options) -> bool:
    """Send the request, write the recording, show the events. Whether the answer was clean.

    Raises ``UsageError`` for wrong use, and ``ConnectError`` when there was no response; then no file is written.
    """
    redact = _redaction(options.redact)
    headers = request_headers(options.url, options.headers, options.key_env)
    data = sys.stdin.buffer.read() if options.request == "-" else read_whole(options.request)
    request = _json(data, options.request)
    sink = open_sink(options.form or default_format(sys.stdout), sys.stdout)
    with (
        httpx.Client(timeout=httpx.Timeout(CONNECT, read=READ)) as client,
        _response(client, options.url, headers, data) as (response, start),
    ):
        recorder = Recorder(
            Header(
                title=f"recorded on {time.strftime('%Y-%m-%d')}",
                wire=wire_of_url(options.url),
                path=urlsplit(options.url).path,
                request=request,
                status=response.status_code,
                media_type=response.headers.get("content-type", ""),
            ),
            secrets=secrets_of(options.url, headers),
            redact=redact,
        )
        with _open(options.out) as write, sink:
            _take(response, recorder, write, sink, start)
    return response.status_code < 400 and sink.tally.clean


def _take(response: httpx.Response, recorder: Recorder, write: Callable[[str], None], sink: Sink, start: float) -> None:
    """Write down and show what arrives. However it ends, the recording has its end."""
    body: Body | None = None
    size = 0
    broken = True
    write(recorder.start())
    try:
        for data in response.iter_bytes():
            write(recorder.add(data, time.monotonic() - start))
            if not size:
                body = body_of(recorder.header, data)
            size += len(data)
            if body is not None:
                sink.show(body.feed(data))
        broken = False
    except httpx.RequestError as error:
        sys.stderr.write(f"streamparse: the connection broke: {type(error).__name__}\n")
    finally:
        write(recorder.close(time.monotonic() - start, broken=broken))
    if body is not None:
        sink.show(body.close(clean=not broken))
    else:
        found = f"HTTP status {response.status_code}, {response.headers.get('content-type') or 'no media type'}"
        sys.stderr.write(f"streamparse: {found}: {size} bytes recorded, nothing to decode\n")


# The request ----------------------------------------------------------------------------------------------------------


@contextmanager
def _response(
    client: httpx.Client, url: str, headers: dict[str, str], data: bytes
) -> Iterator[tuple[httpx.Response, float]]:
    """The response, its body not read, and when its request was sent. Names the host in errors, never the URL, which
    may hold a key."""
    try:
        request = client.build_request("POST", url, content=data, headers=headers)
        start = time.monotonic()
        response = client.send(request, stream=True)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError) as error:
        raise UsageError(f"URL: expected http:// or https:// and a host: {type(error).__name__}") from None
    except httpx.RequestError as error:
        raise ConnectError(f"{urlsplit(url).hostname}: {str(error) or type(error).__name__}") from None
    try:
        yield response, start
    finally:
        response.close()


def _json(data: bytes, name: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UsageError(f"--request {name}: expected JSON: {error}") from None


def request_headers(url: str, lines: Sequence[str], key_env: str | None, wire: Wire | None = None) -> dict[str, str]:
    """The headers to send. Those that are given, as lines, come before those that are made. ``wire`` None is told by
    the address. Raises ``UsageError``."""
    headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
    headers["accept-encoding"] = "identity"  # so that pieces are what the server wrote
    wire = wire or wire_of_url(url)
    if wire is Wire.MESSAGES:
        headers["anthropic-version"] = "2023-06-01"
    if key_env is not None:
        key = os.environ.get(key_env, "").strip()
        if not key:
            raise UsageError(f"--key-env {key_env}: expected a key in this environment variable")
        headers |= {"x-api-key": key} if wire is Wire.MESSAGES else {"authorization": f"Bearer {key}"}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not _is_field(value):
            raise UsageError("--header: expected 'NAME: VALUE' in printable characters")  # not quoted: it may be a key
        headers[name.lower()] = value.strip()
    return headers


def _is_field(value: str) -> bool:
    return value.strip().isascii() and value.strip().isprintable()


def _redaction(patterns: Sequence[str]) -> Callable[[str], str] | None:
    compiled = []
    for pattern in patterns:
        try:
            compiled.append(re.compile(pattern))
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"--redact {pattern!r}: expected a regular expression: {error}") from None

    def redact(text: str) -> str:
        for pattern in compiled:
            text = pattern.sub(REPLACEMENT, text)
        return text

    return redact if compiled else None


@contextmanager
def _open(name: str) -> Iterator[Callable[[str], None]]:
    """A function that writes to the file, at once."""
    with _create(name) as file:

        def write(text: str) -> None:
            file.write(text)
            file.flush()

        yield write


def _create(name: str) -> TextIO:
    try:
        return open(name, "w", encoding="utf-8", newline="\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"cannot write {name}: {reason}") from None
