"""A web page that shows Gaussians while they change: viser's server, a panel, and one thread that sends.

Whoever has the Gaussians asks `due()` and then hands over a function; it is run, and its result sent, in the
background. A viewer never asks for anything by itself, and costs nothing while nobody looks.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import ip_address
from time import monotonic, thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import MissingExtra, UsageError
from splatmeter.ops import F32, F64

LOOPBACK = "127.0.0.1"
PORT = 8080
PORTS_TRIED = 100
SHORTEST_PAUSE = 3.0
"""Seconds between two pictures at least."""
LARGEST_SHARE = 0.006
"""Share of the time for making pictures: what takes longer comes less often. The limit promised is 5 %, and a
picture costs training several times what its own thread shows: viser's network thread, a page nearby."""
LARGEST_HALF = 32_768.0
"""What covariances are scaled to; the page keeps them as 16-bit floats, which end at 65504 and near 1e-7."""
EVERYWHERE = ("0.0.0.0", "::", "")


@dataclass(frozen=True, slots=True, eq=False)
class Splats:
    """Gaussians as the page draws them: no filter left to apply, one colour from all sides."""

    means: F32  # [N, 3] world
    covariances: F32  # [N, 3, 3]
    colors: NDArray[np.uint8]  # [N, 3]
    opacities: NDArray[np.uint8]  # [N, 1]


@dataclass(frozen=True, slots=True, eq=False)
class Viewpoint:
    """Where whoever opens the page stands first."""

    position: F64  # [3] world
    target: F64  # [3] world
    up: F64  # [3] world


class Viewer:
    """Needs the extra `view`. Listens from the start; `close` ends it."""

    def __init__(self, host: str = LOOPBACK, port: int = PORT, now: Callable[[], float] = monotonic) -> None:
        try:
            import viser  # noqa: F401
        except ImportError:
            raise MissingExtra("The viewer", "view") from None
        self._asked = port
        self._server = _serve(host, free_port(host, port))
        self._panel = self._server.gui.add_markdown("Waiting for the first picture.")
        self._sender = ThreadPoolExecutor(1, "viewer")
        self._sending: Future[float] | None = None
        self._now = now
        self._next = -math.inf
        self.complaint = ""
        """Why nothing is shown any more; empty while all is well."""

    @property
    def port(self) -> int:
        return self._server.get_port()

    @property
    def url(self) -> str:
        return f"http://{shown_host(self._server.get_host())}:{self.port}"

    def notices(self) -> list[str]:
        """What a person should know before opening the page."""
        told = [f"Viewer: {self.url}"]
        if self._asked not in (0, self.port):
            told.insert(0, f"Port {self._asked} is in use; the viewer took {self.port}.")
        if not is_loopback(self._server.get_host()):
            told.append("Everybody who can reach this machine can open it: it asks for no password.")
        return told

    def stand(self, viewpoint: Viewpoint) -> None:
        """For pages opened from now on; nobody who looks already is moved."""
        self._server.scene.set_up_direction(tuple(viewpoint.up))
        self._server.initial_camera.position = tuple(viewpoint.position)
        self._server.initial_camera.look_at = tuple(viewpoint.target)

    def paint_background(self, rgb: tuple[int, int, int]) -> None:
        self._server.scene.set_background_image(np.full((2, 2, 3), rgb, np.uint8), format="png")

    # ---- pictures -----------------------------------------------------------------------------------------
    @property
    def watched(self) -> bool:
        return bool(self._server.get_clients())

    def due(self) -> bool:
        """Is somebody looking, the last picture sent, and the pause over?"""
        if self.complaint or not self._sent():
            return False
        return self._now() >= self._next and self.watched

    def offer(self, make: Callable[[], Splats], facts: Mapping[str, str], spent: float = 0.0) -> None:
        """Runs `make` in the background and shows its result; `spent` seconds have gone into it already."""

        def send() -> float:
            begin = thread_time()
            self.show(make(), facts)
            return spent + thread_time() - begin

        self._next = math.inf
        self._sending = self._sender.submit(send)

    def show(self, splats: Splats, facts: Mapping[str, str]) -> None:
        """Now, in this thread."""
        means, covariances, scale = fitted(splats.means, splats.covariances)
        with self._server.atomic():
            self._server.scene.add_gaussian_splats(
                "/model", means, covariances, splats.colors, splats.opacities, scale=scale
            )
            self._panel.content = "\n\n".join(f"**{name}** {value}" for name, value in facts.items())

    def _sent(self) -> bool:
        """Also settles when the next picture may come, and whether one ever will."""
        if self._sending is None:
            return True
        if not self._sending.done():
            return False
        problem = self._sending.exception()
        if problem is not None:  # a broken page must not end hours of training
            self.complaint = f"The viewer stopped ({type(problem).__name__}: {problem}); training goes on."
        else:
            self._next = self._now() + max(SHORTEST_PAUSE, self._sending.result() / LARGEST_SHARE)
        self._sending = None
        return True

    def close(self) -> None:
        self._sender.shutdown(wait=True, cancel_futures=True)
        self._server.stop()


def fitted(means: F32, covariances: F32) -> tuple[F32, F32, float]:
    """The same in units in which 16-bit covariances keep their digits, and how long that unit is.

    A power of two, so that nothing is rounded. The few Gaussians that would still be too large shrink.
    """
    variances = np.trace(covariances, axis1=1, axis2=2)  # [N]
    usual = float(np.quantile(variances, 0.999)) if len(variances) else 0.0
    if not usual > 0:
        return means, covariances, 1.0
    factor = 2.0 ** math.floor(math.log2(LARGEST_HALF / usual) / 2)
    excess = np.maximum(variances * factor**2 / LARGEST_HALF, 1.0)  # [N]
    shrunk = covariances * (factor**2 / excess)[:, None, None]  # [N, 3, 3]
    return means * np.float32(factor), shrunk.astype(np.float32), 1 / factor


# ---- the server -------------------------------------------------------------------------------------------
def free_port(host: str, port: int) -> int:
    """The first one from `port` on that can be had; viser itself would try for ever on a wrong host."""
    if not 0 <= port <= 65_535:
        raise UsageError(f"There is no port {port}; ports go from 0 to 65535.")
    problem: OSError | None = None
    for candidate in range(port, min(port + PORTS_TRIED, 65_536)):
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                host or None, candidate, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
                return candidate
        except socket.gaierror as unknown:
            raise UsageError(f"The viewer cannot listen on {host!r} ({unknown.strerror}).") from None
        except OSError as taken:
            problem = taken
    raise UsageError(f"The viewer finds no port on {host!r} from {port} on ({problem}). Name another one.")


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def shown_host(host: str) -> str:
    if host in EVERYWHERE:
        return "localhost"
    return f"[{host}]" if ":" in host else host


def _serve(host: str, port: int) -> Any:
    import rich
    import viser

    class Server(viser.ViserServer):
        def request_share_url(self, verbose: bool = True) -> str | None:
            """Any page may ask the server to publish itself through a stranger's tunnel: never."""
            return None

        def stop(self) -> None:
            super().stop()
            rich.reconfigure()

    rich.reconfigure(quiet=True)  # viser talks on standard output, where event lines may be
    server = Server(host=host, port=port, label="splatmeter", verbose=False)
    server.gui.configure_theme(show_logo=False, show_share_button=False, dark_mode=True)
    return server
