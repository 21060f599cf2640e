"""The memory a run will need, predicted before it starts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from splatmeter import process_memory
from splatmeter.backend import EngineMemory
from splatmeter.errors import CardUnavailable, NotEnoughMemory, UsageError
from splatmeter.photos.photo import size_of
from splatmeter.scene.scene import Scene
from splatmeter.train.config import TrainConfig
from splatmeter.train.memory_cap import MemoryCap
from splatmeter.train.memory_forecast import RANDOM_POINTS, expected_gaussians
from splatmeter.train.step import LOOK_AHEAD
from splatmeter.units import bytes_text, parse_bytes

DECODED_AT_ONCE = 3
"""By two threads, and by the step itself where they are late."""

DECODING_BYTES_PER_PIXEL = 11
"""While a file is decoded: the decoder's picture, its array, and the decoder's again to resize it."""

RANDOM_REACH = 0.19
"""Random points fill a cube: so much of their spacing, in tiles and in the image, is what one of them reaches
beyond its own tile. Measured on chair_400: 6.6 tiles a point."""

USUAL_TILES = 2
"""That a Gaussian touches, as an engine's bytes a Gaussian have it."""

LEAST_OF_PREDICTED = 0.75
"""Predictions are such that no run needs more; runs that need least need this share."""

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
    cap: MemoryCap | None = None
    """The limit set by --memory."""
    expected_gaussians: tuple[int, int] = (0, 0)
    """The most there will be at a time, from and to, as scenes of this kind grow."""
    expected_bytes: tuple[int, int] = (0, 0)
    early_bytes: int = 0
    """Only at the start: for photos on their way until all that are kept have been decoded once, and for
    random points, which are large until the first densification."""

    def require(self) -> None:
        """Where the start, or the budget asked for, does not fit: NotEnoughMemory, or CardUnavailable."""
        if self.cap is not None:
            self.cap.require(self.gaussians)
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

    def bytes_with(self, gaussians: int) -> int:
        """At the peak of a run whose Gaussians are never more than that."""
        return max(self.start_bytes, self.bytes_later(gaussians))

    def bytes_later(self, gaussians: int) -> int:
        """The same without the start, whose peak is known once it is over."""
        more = (gaussians - self.gaussians) * self.bytes_per_gaussian
        return self.start_bytes - self.early_bytes + more

    def told(self) -> dict[str, int]:
        """For listeners."""
        low, high = self.expected_bytes
        counts = {"low_gaussians": self.expected_gaussians[0], "high_gaussians": self.expected_gaussians[1]}
        limit = {} if self.cap is None else {"limit": self.cap.limit}
        return {"low": low, "high": high, **counts, **limit, "available": self.available_bytes}

    def _whatever_else_helps(self) -> str:
        """On a card photos take only what nothing else needs: a smaller cache would free nothing there."""
        if self.of_the_host:
            return "a smaller --photo-cache, fewer points, or close other programs"
        return "fewer points, --device cpu, or close other programs that use the card"


def predict(
    config: TrainConfig, scene: Scene, engine: EngineMemory, gaussians: int, from_points: bool = True
) -> Prediction:
    """`gaussians`: at the start, one a point or those of a checkpoint."""
    pixels = max(view.camera.width * view.camera.height for view in (*scene.train, *scene.test))
    kept = cache_bytes(config, scene, process_memory.available_bytes())
    points = min(scene.points.count, config.max_gaussians or scene.points.count)
    large = _large_points_bytes(engine, scene, points, pixels)
    cap = _cap(config, scene, engine, pixels, large)  # the same for a run that is resumed
    large = large if from_points else 0
    if cap is not None:
        kept = min(kept, cap.photo_bytes(gaussians))
    planned = _planned(config, gaussians, cap)
    low, high = expected_gaussians(config, scene, gaussians)
    counts = (low, high) if cap is None else (min(low, planned), min(high, planned))
    # With a limit, photos have given way by then.
    kept_then = kept if cap is None else min(kept, cap.photo_bytes(planned))
    early = _early_bytes(engine, scene, kept)
    start = _needed(engine, scene, gaussians, pixels, kept) + large
    least = LEAST_OF_PREDICTED * (_needed(engine, scene, counts[0], pixels, kept) - early)
    most = max(start, _needed(engine, scene, counts[1], pixels, kept_then) - early)
    return Prediction(
        gaussians=gaussians,
        start_bytes=start,
        planned_gaussians=planned,
        planned_bytes=_needed(engine, scene, planned, pixels, kept_then),
        photo_cache_bytes=kept,
        available_bytes=engine.available(),
        bytes_per_gaussian=engine.per_gaussian,
        of_the_host=engine.of_the_host,
        cap=cap,
        expected_gaussians=counts,
        expected_bytes=(min(round(least), most), most),
        early_bytes=early + large,
    )


def _large_points_bytes(engine: EngineMemory, scene: Scene, points: int, pixels: int) -> int:
    """For the pairs that random points have at the start, beyond those that Gaussians have later."""
    if scene.kind not in RANDOM_POINTS or not points:
        return 0
    tiles = (1 + RANDOM_REACH * math.sqrt(pixels) / points ** (1 / 3)) ** 2
    return round(engine.per_pair * points * max(0.0, tiles - USUAL_TILES))


def _early_bytes(engine: EngineMemory, scene: Scene, kept: int) -> int:
    """Where all photos are kept: an evaluation decodes too, but one photo fewer at once."""
    all_kept = kept >= sum(view.photo.nbytes for view in scene.train)
    return decoding_bytes(scene) if all_kept and engine.of_the_host else 0


def _needed(engine: EngineMemory, scene: Scene, gaussians: int, pixels: int, kept: int) -> int:
    decoding = DECODED_AT_ONCE * decoding_bytes(scene) if engine.of_the_host else 0
    return engine.predicted(gaussians, pixels, kept + _ahead_bytes(scene, kept)) + decoding


def _cap(
    config: TrainConfig, scene: Scene, engine: EngineMemory, pixels: int, large: int
) -> MemoryCap | None:
    if config.memory_bytes is None:
        return None
    if not engine.of_the_host:
        raise CardUnavailable("--memory is not there yet on a card: use --max-gaussians, or --device cpu.")
    besides = _needed(engine, scene, 0, pixels, 0) + large
    return MemoryCap(config.memory_bytes, besides, engine.per_gaussian)


def _planned(config: TrainConfig, gaussians: int, cap: MemoryCap | None) -> int:
    """The budgets, where there are any and Gaussians grow at all."""
    budgets = [b for b in (config.max_gaussians, cap.most_gaussians if cap else None) if b is not None]
    if config.densification == "none" or not budgets:
        return gaussians
    return max(gaussians, min(budgets))


def decoding_bytes(scene: Scene) -> int:
    """What the largest photo takes on its way from file to pixels."""
    files = {view.photo.path for view in (*scene.train, *scene.test)}
    largest = max(width * height for width, height in map(size_of, files))
    return largest * DECODING_BYTES_PER_PIXEL


def _ahead_bytes(scene: Scene, kept: int) -> int:
    """Photos decoded for the next steps that the cache has no room for, and the present one."""
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
