"""`splatmeter view`: a model in the browser, drawn by the viewer of our own pages."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from splatmeter.backend import Backend
from splatmeter.backends.registry import AUTO
from splatmeter.cli import arguments, export_page, page_server
from splatmeter.errors import UsageError
from splatmeter.listeners.viewer import LOOPBACK, PORT
from splatmeter.models.opening import open_model

DESCRIPTION = """Show a model in the browser; Ctrl-C ends it.

It is the page that `splatmeter export -o scene.html` writes: both filters, colours that depend on
the direction of view, and the cameras to jump to. To watch a training, use `splatmeter train --view`.

Examples:
  splatmeter view point_cloud.ply
  splatmeter view output/garden
  splatmeter view garden.spz
  splatmeter view output/garden --iteration 7000 --port 9000
  splatmeter view output/garden/chkpnt7000.safetensors --device cpu"""


@dataclass(frozen=True)
class ViewArguments:
    path: Annotated[Path, tyro.conf.Positional]
    """Model file (PLY, SPZ, SOG, .splat, glTF), checkpoint (.safetensors) or run folder."""
    iteration: int = -1
    """Which saved model of a run folder; -1 is the latest."""
    port: int = PORT
    """Port of the page; the next free one where it is in use, 0 for any."""
    host: str = LOOPBACK
    """Address to listen on; 0.0.0.0 lets other machines look, without a password."""
    limit: int = 1_000_000
    """Show at most this many Gaussians, the most opaque and largest first."""
    with_photos: bool = False
    """Also the photos to compare with; needs the scene's folder."""
    kernel_size: float | None = None
    """Variance of the 2D Mip filter in squared pixels, for a file that does not tell it."""
    open: bool = True
    """Open the browser, where there is a screen."""
    device: str = "auto"
    """Engine that prepares a checkpoint: cpu, cuda, cuda:1, ... or auto. Other files need none."""

    def engine(self) -> Backend:
        from splatmeter.backends import registry

        return registry.backend(device=self.device)


def run(words: Sequence[str]) -> int:
    chosen = arguments.parse(ViewArguments, "splatmeter view", words, DESCRIPTION, {"-k": "--kernel-size"})
    if chosen.limit < 1:
        raise UsageError(f"--limit is {chosen.limit}, but must be above 0.")
    if chosen.device != AUTO:
        chosen.engine()  # a card that is named and not there is refused, needed or not
    opened = open_model(chosen.path, chosen.iteration, chosen.engine)
    wishes = export_page.PageWishes(
        with_photos=chosen.with_photos, max_gaussians=chosen.limit, kernel_size=chosen.kernel_size
    )
    page = export_page.made(opened, wishes).html.encode("utf-8")
    with _ending() as ended:
        server = page_server.PageServer(page, chosen.host, chosen.port)
        try:
            print("\n".join(server.notices()), "Ctrl-C ends it.", sep="\n", flush=True)
            if chosen.open:
                page_server.open_in_browser(server.url)
            ended.wait()
        finally:
            server.close()
    return 0


@contextmanager
def _ending() -> Iterator[threading.Event]:
    """Set by the first Ctrl-C or SIGTERM: here it is how one leaves, not a mishap."""
    ended = threading.Event()
    wanted = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in wanted}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
