"""One page on an address of this machine, for as long as somebody wants to look at it."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from splatmeter.listeners.viewer import free_port, is_loopback, shown_host


class PageServer:
    """Answers with the page and nothing else; listens from the start, `close` ends it."""

    def __init__(self, page: bytes, host: str, port: int) -> None:
        self._asked = port
        self._server = _Server((host, free_port(host, port)), _handler(page))
        self._host = host
        threading.Thread(target=self._server.serve_forever, name="page", daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://{shown_host(self._host)}:{self.port}"

    def notices(self) -> list[str]:
        """What a person should know before opening the page."""
        told = [f"Viewer: {self.url}"]
        if self._asked not in (0, self.port):
            told.insert(0, f"Port {self._asked} is in use; the viewer took {self.port}.")
        if not is_loopback(self._host):
            told.append("Everybody who can reach this machine can open it: it asks for no password.")
        return told

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes away in the middle is nothing to tell."""


def _handler(page: bytes) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.path.split("?")[0] in ("/", "/index.html")
            self.send_response(200 if wanted else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(page) if wanted else 0))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if wanted:
                self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: standard error is for people."""

    return Handler


def open_in_browser(url: str) -> None:
    """Only where there is a screen: elsewhere a browser of the terminal would take the terminal over."""
    named = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if (named or sys.platform in ("win32", "darwin")) and sys.stdout.isatty():
        webbrowser.open(url)
