"""What commands on a model can be told, and what follows from it: the scene, the engine."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path

from splatmeter.backend import Backend
from splatmeter.backends.registry import BackendName
from splatmeter.errors import UsageError
from splatmeter.models.opening import Opened
from splatmeter.scene.scene import Scene, load_scene
from splatmeter.train.config import TrainConfig

SHORT = {
    "-m": "--model-path",
    "--model": "--model-path",
    "-s": "--source-path",
    "--source": "--source-path",
    "-i": "--images",
    "-r": "--resolution",
    "-w": "--white-background",
    "-k": "--kernel-size",
}


@dataclass(frozen=True)
class ModelArguments:
    """What every command on a model can be told. Everything not given comes from the run itself."""

    model_path: Path
    """Run folder, model file (PLY, SPZ, SOG, .splat, glTF), or checkpoint (.safetensors)."""
    source_path: Path | None = None
    """Scene folder; by default the one the run was trained on."""
    iteration: int = -1
    """Which saved model of a run folder; -1 is the latest."""
    images: str | None = None
    """Folder of photos inside a COLMAP scene."""
    resolution: int | None = None
    """1, 2, 4, ... shrink the photos by that factor; other values are the width in pixels."""
    white_background: bool = False
    """Composite and render over white, also where the run did not."""
    kernel_size: float | None = None
    """Variance of the 2D Mip filter in squared pixels."""
    backend: BackendName = "native"
    """The fast engine, or the slow and readable torch twin on the CPU."""
    eval: bool = False
    """Hold the test views out, also where the run did not; the original's scripts pass it everywhere."""
    device: str = "auto"
    """cpu, cuda, cuda:1, ... or auto: a graphics card if there is one that passes its self-test."""
    threads: int | None = None
    """Threads of the engine; by default one per processor this process may use."""

    def engine(self) -> Backend:
        from splatmeter.backends import registry

        return registry.backend(self.backend, self.threads, self.device)


def say(note: str) -> None:
    """Beside the result, never in it: standard output may be read by a program."""
    print(note, file=sys.stderr)


def scene_config(opened: Opened, chosen: ModelArguments) -> TrainConfig:
    """The run's settings with what the command line says instead."""
    if chosen.source_path is None and (opened.config is None or opened.config.source_path == Path()):
        raise UsageError(f"Which scene? {opened.path} does not tell; pass the scene's folder with -s.")
    # A bare model is judged on every 8th view, the usual convention.
    config = opened.config or TrainConfig(eval=True, sh_degree=opened.model.sh_degree)
    given = {
        name: getattr(chosen, name)
        for name in ("source_path", "images", "resolution", "test_every", "test_count")
        if getattr(chosen, name, None) is not None
    }
    if "test_every" in given or "test_count" in given:
        given = {"test_count": None, **given, "eval": True}
    if chosen.eval:
        given["eval"] = True
    white = chosen.white_background or config.white_background
    return dataclasses.replace(config, **given, white_background=white)


def open_scene(config: TrainConfig) -> Scene:
    scene = load_scene(config.scene_options())
    for note in scene.notes:
        say(note)
    return scene


def learned_views(opened: Opened, config: TrainConfig, scene: Scene) -> list[str]:
    """Those of the scene's test views that the run trained on: it held out others than the command asks for,
    or none. Nothing is known of bare models, nor of a run on another scene that is still there."""
    run = opened.config
    if run is None or not scene.test or _split(run) == _split(config):
        return []
    if run.source_path != config.source_path and run.source_path.exists():
        return []
    own = dataclasses.replace(config, eval=run.eval, test_every=run.test_every, test_count=run.test_count)
    trained = {view.name for view in load_scene(own.scene_options()).train}
    return [view.name for view in scene.test if view.name in trained]


def _split(config: TrainConfig) -> tuple[bool, int, int | None]:
    return config.eval, config.test_every, config.test_count
