"""For notebooks and scripts: scene, training, rendering and judging in a handful of names.

>>> from splatmeter import api
>>> scene = api.load_scene("garden", eval=True)
>>> for event in api.train("garden", "output/garden", eval=True, iterations=7000):
...     print(event)
>>> model = api.load_model("output/garden")
>>> picture = model.render(scene.test[0].camera)  # u8 [H, W, 3]
>>> api.evaluate(model, scene.test).means["psnr"]

Beside the command line, this is the only place that knows everybody.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import Backend
from splatmeter.backend import Model as EngineModel
from splatmeter.backends.registry import backend
from splatmeter.cli import models
from splatmeter.errors import SplatmeterError, UsageError
from splatmeter.evaluate.exposure import ExposureProtocol
from splatmeter.evaluate.protocol import Report, evaluate_views
from splatmeter.events import Event
from splatmeter.ops import Pinhole, RasterSettings, Table
from splatmeter.photos.cache import PhotoCache
from splatmeter.render.path import orbit
from splatmeter.render.rendering import to_8bit
from splatmeter.scene import scene as scenes
from splatmeter.scene.demo import cached_demo_scene
from splatmeter.scene.scene import Scene, SceneOptions, View
from splatmeter.train import loop
from splatmeter.train.config import TrainConfig
from splatmeter.train.presets import PRESETS

__all__ = [
    "Event",
    "Model",
    "Report",
    "Scene",
    "SplatmeterError",
    "View",
    "demo_scene",
    "evaluate",
    "load_model",
    "load_scene",
    "orbit",
    "train",
]


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Gaussians, and how they are meant to be rendered."""

    table: Table
    settings: RasterSettings
    backend: Backend
    step: int = 0
    on_engine: EngineModel = field(init=False, repr=False)
    """The same Gaussians where the backend wants them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "on_engine", self.backend.upload(self.table))

    @property
    def count(self) -> int:
        return self.table.count

    def render(self, camera: Pinhole) -> NDArray[np.uint8]:
        """As this camera sees them. # [H, W, 3]"""
        color = self.on_engine.render(camera, self.settings).color  # f32 [3, H, W]
        return np.ascontiguousarray(to_8bit(color).transpose(1, 2, 0))


def demo_scene(quick: bool = False) -> Path:
    """Folder of the built-in garden; made on the first call, then taken from the cache."""
    return cached_demo_scene(quick=quick)


def load_scene(folder: str | Path, **options: Any) -> Scene:
    """Views, split and points, without pixels; options are those of SceneOptions (eval, resolution ...)."""
    return scenes.load_scene(_made(SceneOptions, source=Path(folder), **options))


def train(
    folder: str | Path,
    output: str | Path,
    *,
    threads: int | None = None,
    device: str = "auto",
    **options: Any,
) -> Generator[Event, None, None]:
    """Events as they happen; stop iterating to stop. Options are those of `splatmeter train`."""
    if options.get("seconds") is not None:
        options = {**PRESETS["fast"], **options}
    config = _made(TrainConfig, source_path=Path(folder), model_path=Path(output), **options)
    engine = backend(threads=threads, device=device, only_on_cpu=config.only_on_cpu)
    return loop.train(config, engine)


def load_model(
    path: str | Path, *, iteration: int = -1, threads: int | None = None, device: str = "auto"
) -> Model:
    """A run folder, a checkpoint or a model file (PLY, SPZ, SOG, .splat, glTF)."""
    chosen = models.ModelArguments(Path(path), threads=threads, device=device)
    engine = chosen.engine()
    opened = models.open_model(chosen.model_path, iteration, lambda: engine)
    config = opened.config or TrainConfig(sh_degree=opened.model.sh_degree)
    settings = models.raster_settings(opened, chosen, config)
    return Model(models.finite_table(opened), settings, engine, opened.step)


def evaluate(
    model: Model, views: Sequence[View], scale: int = 1, exposure_protocol: ExposureProtocol = "none"
) -> Report:
    """PSNR, SSIM and L1 over 8-bit pictures; at scale n against photos averaged over n x n pixels."""
    if not views:
        raise UsageError("There are no views to judge; load the scene with eval=True to hold some out.")
    with PhotoCache(0) as photos:
        return evaluate_views(
            views,
            lambda view: model.on_engine.render(view.camera, model.settings).color,
            photos,
            model.backend.similarity,
            scale=scale,
            exposure=exposure_protocol,
        )


def _made(cls: Any, **options: Any) -> Any:
    """A misspelt option gets a sentence instead of Python's own."""
    try:
        return cls(**options)
    except TypeError:
        known = set(cls.__dataclass_fields__)
        wrong = ", ".join(sorted(set(options) - known)) or "these"
        raise UsageError(f"{wrong}: no such option; {cls.__name__} has {', '.join(sorted(known))}.") from None
