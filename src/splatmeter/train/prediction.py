"""The memory a run will need, told before it starts instead of met in the middle."""

from __future__ import annotations

import math
from dataclasses import dataclass

from splatmeter import memory
from splatmeter.backend import EngineMemory
from splatmeter.errors import CardUnavailable, NotEnoughMemory, UsageError
from splatmeter.scene.scene import Scene
from splatmeter.train.config import TrainConfig
from splatmeter.train.step import LOOK_AHEAD
from splatmeter.units import bytes_text, parse_bytes

CACHE_SHARE = 4
"""By default photos may fill one part in so many of the free memory."""


@dataclass(frozen=True, slots=True)
class Prediction:
    gaussians: int
    """At the start."""
    start_bytes: int
    planned_gaussians: int
    """At most: the budget where there is one, else those of the start."""
    planned_bytes: int
    photo_cache_bytes: int
    available_bytes: int
    bytes_per_gaussian: int
    of_the_host: bool = True

    def require(self) -> None:
        """Where the start, or the budget asked for, does not fit: NotEnoughMemory, or CardUnavailable."""
        kind = NotEnoughMemory if self.of_the_host else CardUnavailable
        free = f"{bytes_text(self.available_bytes)} are free{'' if self.of_the_host else ' on the card'}"
        if self.start_bytes > self.available_bytes:
            raise kind(
                f"Training {self.gaussians} Gaussians needs about {bytes_text(self.start_bytes)}, but only "
                f"{free}. Use a coarser --resolution, {self._whatever_else_helps()}."
            )
        if self.planned_bytes > self.available_bytes:
            too_much = self.planned_bytes - self.available_bytes
            fitting = self.planned_gaussians - math.ceil(too_much / self.bytes_per_gaussian)
            raise kind(
                f"--max-gaussians {self.planned_gaussians} needs about {bytes_text(self.planned_bytes)}, "
                f"but only {free}. Ask for at most {fitting}."
            )

    def _whatever_else_helps(self) -> str:
        """On a card photos take only what nothing else needs: a smaller cache would free nothing there."""
        if self.of_the_host:
            return "a smaller --photo-cache, fewer points, or close other programs"
        return "fewer points, --device cpu, or close other programs that use the card"


def predict(config: TrainConfig, scene: Scene, engine: EngineMemory, gaussians: int) -> Prediction:
    available = engine.available()
    pixels = max(view.camera.width * view.camera.height for view in (*scene.train, *scene.test))
    kept = cache_bytes(config, scene, memory.available_bytes())
    photos = kept + _ahead_bytes(scene, kept)
    planned = max(gaussians, config.max_gaussians or 0) if config.densification != "none" else gaussians
    return Prediction(
        gaussians=gaussians,
        start_bytes=engine.predicted(gaussians, pixels, photos),
        planned_gaussians=planned,
        planned_bytes=engine.predicted(planned, pixels, photos),
        photo_cache_bytes=kept,
        available_bytes=available,
        bytes_per_gaussian=engine.per_gaussian,
        of_the_host=engine.of_the_host,
    )


def _ahead_bytes(scene: Scene, kept: int) -> int:
    """Of photos decoded for the next steps that the cache has no room for, and of the present one."""
    sizes = sorted((view.photo.nbytes for view in scene.train), reverse=True)
    return min(sum(sizes) - kept, sum(sizes[: LOOK_AHEAD + 1]))


def cache_bytes(config: TrainConfig, scene: Scene, available: int) -> int:
    """Never more than all training photos take."""
    everything = sum(view.photo.nbytes for view in scene.train)
    if config.photo_cache == "auto":
        return min(everything, available // CACHE_SHARE)
    try:
        return min(everything, parse_bytes(config.photo_cache))
    except ValueError as problem:
        raise UsageError(f"--photo-cache: {problem}.") from None
