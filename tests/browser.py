"""A real browser without a window: Chromium, spoken to over a pipe in its own protocol (DevTools). Nothing is installed
for it in Python, and nothing listens on the network.

Where there is none, a test that asks for it is skipped and says so; in CI it fails (`.ci/run` installs one).
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import IN_CI

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 60.0
"""Seconds for one answer of the browser, which takes far less."""

FLAGS = (
    "--headless=new",
    "--no-sandbox",  # for root, as whom CI may run; the only page that it opens is ours
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-pipe",
)


def executable() -> str:
    """The browser of this machine."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        reason = "no Chromium on the path (Debian: the package chromium), so the page was not looked at in a browser"
        if IN_CI:
            pytest.fail(reason)
        pytest.skip(reason)
    return found


class Tab:
    """One tab of the browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.ask(method, self._session, **parameters)

    def open(self, path: Path, *, width: int, dark: bool = False) -> None:
        """Show a file in a window of this width, and wait until it is drawn."""
        phone = width < 600
        self.ask("Network.enable")
        self.ask("Page.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self._browser.events.clear()
        self.ask("Page.navigate", url=path.as_uri())
        self._browser.wait_for("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """What an expression comes to in the page."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def requested(self) -> list[str]:
        """The addresses that were asked for since the page was opened."""
        events = [event for event in self._browser.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in events]

    def screenshot(self) -> bytes:
        """What can be seen, as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])


class Browser:
    """The process. Messages are JSON, each with a zero byte behind it."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int) -> None:
        self.process = process
        self.events: list[dict[str, Any]] = []
        self._to, self._back = to, back
        self._numbers = itertools.count(1)
        self._open = b""

    def tab(self) -> Tab:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        return Tab(self, self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == number:
                assert "error" not in found, found
                result: dict[str, Any] = found["result"]
                return result

    def wait_for(self, method: str) -> None:
        while not any(event["method"] == method for event in self.events):
            self._next()

    def _next(self) -> dict[str, Any]:
        """The next message; events are kept."""
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._open:
            ready, _, _ = select.select([self._back], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser said nothing"
            data = os.read(self._back, 1 << 16)
            assert data, "the browser ended"
            self._open += data
        line, _, self._open = self._open.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self.events.append(message)
        return message


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A browser while the block runs, with a profile that is thrown away."""
    program = executable()
    (its, ours), (back, its_back) = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The browser reads from descriptor 3, and writes to 4. The shell is replaced by it.
        line = f'exec "$@" 3<&{its} 4>&{its_back}'
        process = subprocess.Popen(
            ["bash", "-c", line, "browser", program, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(its, its_back),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "DBUS_SESSION_BUS_ADDRESS": "disabled:"},
        )
        os.close(its)
        os.close(its_back)
        try:
            yield Browser(process, ours, back)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
            os.close(ours)
            os.close(back)
