"""How many Gaussians and how much memory a run will need: a range before it starts, a number on the way.

Gaussians are added ever more slowly: what a step adds falls with a power of its number, at least with the
square root, and faster where the latest densifications show it. Rather too much than too little is told.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from splatmeter.scene.scene import Scene
from splatmeter.train.config import TrainConfig

FIRST_SHARE = 5
"""One part in so many of the steps must be done before a run's own growth tells how it goes on."""
REMEMBERED = 7
"""Densifications over which the present growth is measured."""
BURSTING = 1.06
"""A set that grows faster than that in one densification will slow down soon, but nobody knows how soon."""
MARGIN = 1.05
"""For the evaluation that is still to come, and for views that need more than any before."""
SLOWEST, FASTEST = 0.5, 4.0
"""Powers of the step's number with which additions fall."""
TRUST = 0.7
"""Share of what the latest densifications say beyond the slowest fall that is believed."""
AGREEING = 3
"""Latest forecasts of which the largest counts: after opacities were reset, growth rests for a while."""
MOVING_BYTES = 650
"""Of a Gaussian, on top of what is held, while rows move."""
FEWEST = 4
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
    budget: int | None = None
    _counts: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _told: deque[float] = field(default_factory=lambda: deque(maxlen=AGREEING))

    def note(self, step: int, gaussians: int) -> None:
        """After each densification."""
        self._counts.append((step, gaussians))
        if len(self._counts) < FEWEST or gaussians > BURSTING * self._counts[-2][1]:
            self._told.clear()
        else:
            self._told.append(grown(list(self._counts), last_growth(self.config)))

    def gaussians(self) -> int:
        """At the end of growth; 0 while it is too early to tell."""
        if not self._told:
            return 0
        most = max(self._told)
        return round(most if self.budget is None else min(most, max(self._counts[-1][1], self.budget)))

    def peak_bytes(self, step: int, so_far: int, held: int) -> int:
        """From the peak so far and what is held now; 0 while it is too early to tell."""
        if step * FIRST_SHARE < self.config.iterations:
            return 0
        if self.config.densification == "none" or step >= last_growth(self.config):
            return round(MARGIN * so_far)
        if not self._told:
            return 0
        now = self._counts[-1][1]
        later = held + max(0, self.gaussians() - now) * self.per_gaussian + now * MOVING_BYTES
        return round(MARGIN * max(so_far, later))


def grown(counts: Sequence[tuple[int, int]], end: int) -> float:
    """Gaussians in the last step of growth, of (step, Gaussians) after the latest densifications."""
    (first, before), (last, now) = counts[0], counts[-1]
    if end <= last:
        return now
    rates = [((a + b) / 2, (n - m) / (b - a)) for (a, m), (b, n) in pairwise(counts)]
    power, rate = SLOWEST, max(0.0, (now - before) / (last - first))
    if all(rate > 0 for _, rate in rates):
        steps, added = np.log([step for step, _ in rates]), np.log([rate for _, rate in rates])
        falls = -float(np.polyfit(steps, added, 1)[0])
        power = min(FASTEST, max(SLOWEST, SLOWEST + TRUST * (falls - SLOWEST)))
        rate = math.exp(float(added.mean()) - power * (math.log(last) - float(steps.mean())))
    ratio = end / last
    gain = math.log(ratio) if abs(power - 1) < 1e-6 else (ratio ** (1 - power) - 1) / (1 - power)
    return now + rate * last * gain
