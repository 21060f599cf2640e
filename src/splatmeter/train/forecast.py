"""How many Gaussians and how much memory a run will need: a range before it starts, a number on the way.

Gaussians are added ever more slowly. What steps add falls about with the square root of the step's number: on
real and on rendered scenes this is a little too much, never too little.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from splatmeter.scene.scene import Scene
from splatmeter.train.config import TrainConfig

FIRST_SHARE = 5
"""One part in so many of the steps must be done before a run's own growth tells how it goes on."""
REMEMBERED = 6
"""Densifications over which the present growth is measured."""
BURSTING = 1.1
"""A set that grows faster than that in one densification will slow down soon, and more than others do."""
MOVING_BYTES = 250
"""Of a Gaussian, on top of what is held, while rows move."""
FEWEST = 3
"""Densifications before which there is no growth to measure."""

RANGE = (0.45, 2.5)
"""By so much scenes differ from what is typical of their kind: benchmarks/results/memory_forecast.md."""
TYPICAL_STEPS = 7000


def typical_gaussians(scene: Scene) -> float:
    """After TYPICAL_STEPS. Many points mean rich detail; the size of photos matters little."""
    pixels = max(view.camera.width * view.camera.height for view in scene.train)
    if scene.kind in ("blender", "multiscale"):
        return 120_000 * (pixels / 160_000) ** 0.3  # their random points tell nothing
    return 200_000 * (scene.points.count / 4000) ** 0.6 * (pixels / 300_000) ** 0.2


def last_growth(config: TrainConfig) -> int:
    """The step after which no Gaussians are added any more."""
    return min(config.iterations, config.densify_until_iter)


def expected_gaussians(config: TrainConfig, scene: Scene, start: int) -> tuple[int, int]:
    """The most there will be at a time, from and to; both are the budget where that is sure to be reached."""
    first, end = config.densify_from_iter, last_growth(config)
    if config.densification == "none" or end <= first:
        return start, start
    typical = typical_gaussians(scene)
    share = (math.sqrt(end) - math.sqrt(first)) / (math.sqrt(TYPICAL_STEPS) - math.sqrt(500))
    low, high = (max(start, round(start + share * (factor * typical - start))) for factor in RANGE)
    if config.max_gaussians is not None:
        most = max(start, config.max_gaussians)
        low, high = (most, most) if config.densification == "mcmc" else (min(low, most), min(high, most))
    return low, high


@dataclass(slots=True)
class Forecast:
    """Listens to the run it tells about."""

    config: TrainConfig
    per_gaussian: int
    budget: int | None
    usual: int
    """Gaussians that scenes of this kind hardly exceed."""
    _counts: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def note(self, step: int, gaussians: int) -> None:
        """After each densification."""
        self._counts.append((step, gaussians))

    def gaussians(self) -> int:
        """At the end of growth."""
        if len(self._counts) < FEWEST:
            return 0
        (first, before), (last, now) = self._counts[0], self._counts[-1]
        rate = max(0.0, (now - before) / (last - first))
        end = max(last, last_growth(self.config))
        grown = now + rate * 2 * last * (math.sqrt(end / last) - 1)
        if now > BURSTING * self._counts[-2][1]:
            grown = min(grown, max(now, self.usual))
        return round(grown if self.budget is None else min(grown, max(now, self.budget)))

    def peak_bytes(self, step: int, so_far: int, held: int) -> int:
        """From the peak so far and what is held now; 0 while it is too early to tell."""
        if step * FIRST_SHARE < self.config.iterations:
            return 0
        if self.config.densification == "none" or step >= last_growth(self.config):
            return so_far
        if len(self._counts) < FEWEST:
            return 0
        now = self._counts[-1][1]
        later = held + (self.gaussians() - now) * self.per_gaussian + now * MOVING_BYTES
        return max(so_far, later)
