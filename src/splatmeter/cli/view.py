"""`splatmeter view`: a model in the browser, with its 3D filter inside."""

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
from splatmeter.cli import arguments, models, preview
from splatmeter.errors import InputError, UsageError
from splatmeter.listeners.viewer import LOOPBACK, PORT, Viewer

DESCRIPTION = """Show a model in the browser; Ctrl-C ends it. Needs the view extra.

Examples:
  splatmeter view point_cloud.ply
  splatmeter view output/garden
  splatmeter view output/garden --iteration 7000 --port 9000
  splatmeter view output/garden/chkpnt7000.safetensors --device cpu"""


@dataclass(frozen=True)
class ViewArguments:
    path: Annotated[Path, tyro.conf.Positional]
    """PLY, checkpoint (.safetensors) or run folder."""
    iteration: int = -1
    """Which saved model of a run folder; -1 is the latest."""
    port: int = PORT
    """Port of the page; the next free one where it is in use, 0 for any."""
    host: str = LOOPBACK
    """Address to listen on; 0.0.0.0 lets other machines look, without a password."""
    limit: int = 1_000_000
    """Show at most this many Gaussians, the most opaque and largest first."""
    device: str = "auto"
    """Who brings a checkpoint's rows up to date: cpu, cuda, cuda:1, ... or auto, a card that passes its
    self-test. A PLY needs nobody; the browser draws."""

    def engine(self) -> Backend:
        from splatmeter.backends import registry

        return registry.backend(device=self.device)


def run(words: Sequence[str]) -> int:
    chosen = arguments.parse(ViewArguments, "splatmeter view", words, DESCRIPTION)
    if chosen.limit < 1:
        raise UsageError(f"--limit is {chosen.limit}, but must be above 0.")
    if chosen.device != AUTO:
        chosen.engine()  # a card that is named and not there is refused, needed or not
    opened = models.open_model(chosen.path, chosen.iteration, chosen.engine)
    table = models.finite_table(opened)
    if not table.count:
        raise InputError(f"{opened.path} holds no Gaussians to show.")
    taken = preview.sample(table, chosen.limit)
    facts = {
        "Gaussians": preview.shown(taken),
        "SH degree": f"{opened.model.sh_degree} (shown: the colour that is the same from all sides)",
        "Iteration": str(opened.step) if opened.step else "not told",
        "3D filter": "applied" if opened.model.filtered else "none in the file (plain or fused)",
    }
    with _ending() as ended:
        viewer = Viewer(chosen.host, chosen.port)
        try:
            level = 255 if opened.config is not None and opened.config.white_background else 0
            viewer.paint_background((level, level, level))
            viewer.stand(preview.viewpoint(opened.folder, taken.geometry[:, :3]))
            viewer.show(preview.splats(taken), facts)
            print("\n".join(viewer.notices()), "Ctrl-C ends it.", sep="\n", flush=True)
            ended.wait()
        finally:
            viewer.close()
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
