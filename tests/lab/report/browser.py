"""Debian's Chromium through its WebDriver, with nothing but the standard library."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PATIENCE = 300
"""Seconds; a machine that builds and trains beside the tests is slow, not broken."""
CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--hide-scrollbars",
)


WITH_WEBGL = (
    *(flag for flag in FLAGS if flag != "--disable-gpu"),
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
)
"""3D graphics drawn by the processor: the same on every machine."""


NO_REQUESTS = ("data:", "chrome:", "chrome-untrusted:")


class Browser:
    def __init__(self, port: int, profile: Path, flags: Sequence[str] = FLAGS) -> None:
        self._base = f"http://127.0.0.1:{port}"
        # A proxy of the surroundings must never see what goes to the driver.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        options = {"binary": str(CHROMIUM), "args": [*flags, f"--user-data-dir={profile}", "about:blank"]}
        wanted = {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        answer = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._base += f"/session/{answer['sessionId']}"

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._base + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with self._opener.open(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as problem:
            raise AssertionError(problem.read().decode("utf-8", "replace")[:400]) from None

    def open(self, address: str) -> None:
        self._ask("POST", "/url", {"url": address})

    def evaluate(self, script: str, *arguments: Any) -> Any:
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def click(self, selector: str) -> None:
        found = self._ask("POST", "/element", {"using": "css selector", "value": selector})
        self._ask("POST", f"/element/{next(iter(found.values()))}/click", {})

    def press(self, selector: str, keys: str) -> None:
        found = self._ask("POST", "/element", {"using": "css selector", "value": selector})
        self._ask("POST", f"/element/{next(iter(found.values()))}/value", {"text": keys})

    def protocol(self, command: str, **parameters: Any) -> Any:
        return self._ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def look(self, width: int, theme: str = "light") -> None:
        """A screen of this width whose owner prefers this theme."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.protocol("Emulation.setDeviceMetricsOverride", **size)
        wishes = {"prefers-color-scheme": theme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in wishes.items()]
        self.protocol("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, path: Path, whole: bool = False) -> bytes:
        answer = self.protocol("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pixels = base64.b64decode(answer["data"])
        path.write_bytes(pixels)
        return pixels

    def complaints(self) -> list[str]:
        """Warnings and errors on the console since the last time."""
        entries = self._ask("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("WARNING", "SEVERE")]

    def requests(self) -> list[str]:
        """Every address the page asked for since the last time; not what lies inside it, nor what the browser
        wants for pages of its own."""
        entries = self._ask("POST", "/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return [address for address in sent if not address.startswith(NO_REQUESTS)]

    def close(self) -> None:
        self._ask("DELETE", "")


@contextlib.contextmanager
def browser(folder: Path, flags: Sequence[str] = FLAGS) -> Iterator[Browser]:
    """Starts a driver on a free port; both it and the browser are gone afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    profile = folder / "profile"
    log = subprocess.DEVNULL
    driver = subprocess.Popen([str(DRIVER), f"--port={port}"], stdout=log, stderr=log, stdin=log)
    try:
        _wait(port)
        opened = Browser(port, profile, flags)
        try:
            yield opened
        finally:
            opened.close()
    finally:
        driver.terminate()
        driver.wait(timeout=PATIENCE)
        shutil.rmtree(profile, ignore_errors=True)


def _wait(port: int) -> None:
    for _ in range(20 * PATIENCE):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError("chromedriver did not start")
