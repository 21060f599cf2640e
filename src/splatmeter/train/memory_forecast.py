"""How many Gaussians and how much memory a run will need: a range before it starts, another on the way.

How much memory a number of Gaussians takes is known (prediction.py); how many there will be is not. While a
set still bursts, its next densifications may go on as the latest or die away, so the range is wide. Once it
grows by a few percent at a time, what a step adds falls with a power of its number, at least with the square
root, and faster where the latest densifications show it. Whatever that course says, what gradients ask for is
a limit while it bursts (FAR). Rather too much than too little is told.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from splatmeter.densify.strategies.mcmc import GROWTH
from splatmeter.scene.scene import Scene
from splatmeter.train import progressive
from splatmeter.train.config import TrainConfig
from splatmeter.train.small_photos_outlook import SmallPhotosOutlook

FIRST_SHARE = 5
"""One part in so many of the steps must be done before a run's own growth tells how it goes on."""
REMEMBERED = 7
"""Densifications over which the present growth is measured."""
BURSTING = 1.06
"""A set that grows faster than that in one densification will slow down, but nobody knows how soon."""
FASTER_YET = 2
"""For so many densifications more, a burst may speed up as it did in the latest ones."""
EARLY_BURST = 1.5
"""A set that still grows faster than that may do so for one more."""
MOST_SPEEDING_UP = 5.0
LARGER_PHOTOS = 1.3
"""Photos of the next size show detail that asks for more Gaussians: measured with --preset fast."""
SLOWEST, FASTEST = 0.5, 4.0
"""Powers of the step's number with which additions fall."""
TRUST = 0.7
"""Share of what the latest densifications say beyond the slowest fall that is believed."""
TRUST_IN_A_BURST = 0.5
STEEPEST = (2.0, 6.0)
"""The same powers if growth dies away: for the lower end of a range."""
CERTAIN = 0.6
"""Share that is sure of what even then would be added."""
AGREEING = 3
"""Latest forecasts of which the widest range counts: after opacities were reset, growth rests for a while."""

FAR = 2.0
"""While gradients ask for so many times as many Gaussians as there are, a set bursts towards that number.
Nearer to it the course tells more: what asks then is finer detail, and each scene has its own of it."""
DIP = 0.5
"""A densification that added less than that of both the one before and the one after tells nothing."""

RANGE = (0.45, 4.0)
"""By so much scenes differ from what is typical of their kind: benchmarks/results/memory_forecast.md."""
TYPICAL_STEPS = 7000
TYPICAL_THRESHOLD = 0.0002
MOST_BY_THRESHOLD = 2.0
"""Half the threshold names up to so many times as many candidates; still lower ones are seldom asked for."""
RANDOM_POINTS = ("blender", "multiscale")
"""Kinds of scenes whose points are drawn at random, and tell nothing."""


class Range(NamedTuple):
    low: int
    high: int


def typical_gaussians(scene: Scene) -> float:
    """After TYPICAL_STEPS. Many points mean rich detail; the size of photos matters little."""
    pixels = max(view.camera.width * view.camera.height for view in scene.train)
    if scene.kind in RANDOM_POINTS:
        return 120_000 * (pixels / 160_000) ** 0.3
    return 200_000 * (scene.points.count / 4000) ** 0.6 * (pixels / 300_000) ** 0.2


def expected_gaussians(config: TrainConfig, scene: Scene, start: int) -> tuple[int, int]:
    """The most there will be at a time, from and to; both are the budget where that is sure to be reached."""
    first, end = config.densify_from_iter, config.last_growth
    if config.densification == "none" or end <= first:
        return start, start
    typical = typical_gaussians(scene)
    share = (math.sqrt(end) - math.sqrt(first)) / (math.sqrt(TYPICAL_STEPS) - math.sqrt(500))
    share *= min(MOST_BY_THRESHOLD, TYPICAL_THRESHOLD / config.densify_grad_threshold)
    low, high = (max(start, round(start + share * (factor * typical - start))) for factor in RANGE)
    if config.max_gaussians is not None:
        most = max(start, config.max_gaussians)
        low, high = (most, most) if config.densification == "mcmc" else (min(low, most), min(high, most))
    return low, high


@dataclass(slots=True)
class Forecast:
    """Listens to the run it tells about."""

    config: TrainConfig
    bytes_with: Callable[[int], int]
    """At the peak, with so many Gaussians."""
    least: float
    """Share of that which is needed for certain."""
    budget: int | None = None
    random_points: bool = False
    """The scene brought none, and those it was given tell nothing."""
    _small_photos: SmallPhotosOutlook = field(init=False)
    _counts: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _told: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=AGREEING))

    def __post_init__(self) -> None:
        self._small_photos = SmallPhotosOutlook(self.config, self.random_points)

    def go_by(self, config: TrainConfig) -> None:
        """The run has other lengths from here on."""
        self.config = self._small_photos.config = config

    def begin(self, step: int, gaussians: int) -> None:
        """Before the first densification that it hears of."""
        interval = self.config.densification_interval
        self._counts.append((max(self.config.densify_from_iter, step // interval * interval), gaussians))

    def note(self, step: int, gaussians: int, wanted: int = 0, allowed: int = 0, demand: int = 0) -> None:
        """After each densification, with how many asked for it, the most that were allowed, and how many it
        would take for none to ask."""
        before = self._counts[-1][1] if self._counts else 0
        special = self._small_photos.note(step, before, gaussians, wanted, allowed)
        self._counts.append((step, gaussians))
        if len(self._counts) > 1 and gaussians > BURSTING * self._counts[-2][1]:
            self._told.clear()  # each says more than the one before
        if self.config.densification == "mcmc":
            rounds = (self.config.last_growth - step) // self.config.densification_interval
            many = gaussians * (1 + GROWTH) ** min(rounds, 1000)
            self._told.append((many, many))
        else:
            self._told.append(special or self._by_its_course(step, gaussians, demand))

    def _by_its_course(self, step: int, gaussians: int, demand: int) -> tuple[float, float]:
        end, larger = self.config.last_growth, self._larger_photos(step)
        fewest, most = outlook(list(self._counts), end, larger)
        bursts = len(self._counts) > 1 and demand > FAR * self._counts[-2][1]
        if bursts and not larger and end > step:
            most = max(fewest, min(most, demand * end / step))  # finer detail asks later
        return fewest, most

    def _larger_photos(self, step: int) -> bool:
        """Whether they are still to come while Gaussians are added, or came too lately to show."""
        stages = progressive.parse(self.config.progressive)
        shown = step - 2 * self.config.densification_interval
        return any(shown < stage.last < self.config.last_growth for stage in stages)

    def gaussians(self) -> Range | None:
        """At the end of growth; None before the first densification."""
        if not self._told:
            return None
        now = self._counts[-1][1]
        most = math.inf if self.budget is None else max(now, self.budget)
        low, high = min(low for low, _ in self._told), max(high for _, high in self._told)
        return Range(*(round(min(most, max(now, count))) for count in (low, high)))

    def peak_bytes(self, step: int, so_far: int, gaussians: int) -> Range | None:
        """From the peak so far and the Gaussians there are; None while it is too early to tell."""
        if step * FIRST_SHARE < self.config.iterations:
            return None
        if self.config.densification == "none" or step > self.config.last_growth:
            return Range(so_far, max(so_far, self.bytes_with(gaussians)))
        counts = self.gaussians()
        if counts is None:
            return None
        low, high = round(self.least * self.bytes_with(counts.low)), self.bytes_with(counts.high)
        return Range(max(so_far, low), max(so_far, high))


def outlook(counts: Sequence[tuple[int, int]], end: int, larger_photos: bool = False) -> tuple[float, float]:
    """Fewest and most Gaussians at the end of growth, of (step, Gaussians) after densifications."""
    now, before = counts[-1][1], counts[-2][1] if len(counts) > 1 else 0
    fewest = now + CERTAIN * (fading(counts, end, *STEEPEST, trust=1.0) - now)
    if larger_photos:
        return fewest, now + LARGER_PHOTOS * (straight(counts, end) - now)
    burst = len(counts) <= FASTER_YET or now > BURSTING * before
    return fewest, bursting(counts, end) if burst else fading(counts, end, SLOWEST, FASTEST, TRUST)


def bursting(counts: Sequence[tuple[int, int]], end: int) -> float:
    """As the latest additions go on: in a straight line, or below it once they keep falling."""
    latest = _latest(counts)
    if len(latest) > FASTER_YET and all(one > two for one, two in pairwise(latest)):
        return fading(counts[-2 - FASTER_YET :], end, 0.0, FASTEST, TRUST_IN_A_BURST)
    return straight(counts, end)


def straight(counts: Sequence[tuple[int, int]], end: int) -> float:
    """Every step adds as many as the best of the latest, or more where additions still rise."""
    last, now = counts[-1]
    latest = _latest(counts)
    if not latest:
        return now
    rounds = FASTER_YET + (now > EARLY_BURST * counts[-2][1])
    faster = max(1.0, (latest[-1] / latest[0]) ** (rounds / max(1, len(latest) - 1)))
    return now + max(latest) * min(MOST_SPEEDING_UP, faster) * max(0, end - last)


def fading(
    counts: Sequence[tuple[int, int]], end: int, slowest: float, fastest: float, trust: float
) -> float:
    """Additions go on from the latest and fall with a power of the step's number."""
    last, now = counts[-1]
    if end <= last:
        return now
    rates = _without_dips([(step, rate) for step, rate in _rates(counts) if rate > 0])
    if not rates:
        return now
    steps, added = np.log([step for step, _ in rates]), np.log([rate for _, rate in rates])
    falls = -float(np.polyfit(steps, added, 1)[0]) if len(rates) > 1 else slowest
    power = min(fastest, max(slowest, slowest + trust * (falls - slowest)))
    rate = math.exp(float(added.mean()) - power * (math.log(last) - float(steps.mean())))
    ratio = end / last
    gain = math.log(ratio) if abs(power - 1) < 1e-6 else (ratio ** (1 - power) - 1) / (1 - power)
    return now + rate * last * gain


def _without_dips(rates: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """After opacities were reset, a densification adds hardly anything, and the next as many as ever."""
    around = [(0.0, 0.0), *rates, (0.0, 0.0)]
    return [
        (step, rate)
        for (_, before), (step, rate), (_, after) in zip(around, rates, around[2:], strict=False)
        if rate > DIP * min(before, after)
    ]


def _latest(counts: Sequence[tuple[int, int]]) -> list[float]:
    return [rate for _, rate in _rates(counts) if rate > 0][-1 - FASTER_YET :]


def _rates(counts: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """Gaussians that a step adds, with the number of the step in the middle."""
    return [((a + b) / 2, (n - m) / (b - a)) for (a, m), (b, n) in pairwise(counts) if b > a]
