"""One metric judged: held, lost or undecided, by one-sided bounds of its gain over seeds.

Gains are fractions of the reference; positive is always better. *Lost* is said where any metric shows it, so
its level is shared by all of them (Hochberg): 5 % together.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from splatmeter.lab.compare.margins import DIRECTION, TOLERANCE, change_text, margin_text
from splatmeter.lab.compare.power import samples_to_settle
from splatmeter.lab.samples.averages import deviation_of, mean
from splatmeter.lab.samples.student import cdf, quantile

FEWEST_SEEDS = 4
CONFIDENCE, SUPPORTING = 0.95, 0.90
"""How sure *held* must be: for PSNR at the last step, and for everything that only supports it."""
LOST_LEVEL = 0.05
GROSS = 10.0
"""A loss of this many margins is no luck of a seed: it is lost even where seeds are too few to judge."""


class Quality(str, Enum):
    IDENTICAL = "identical"
    NON_INFERIOR = "non-inferior"
    LOST = "lost"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One metric of one split at one step; `gain` and its bounds are fractions of the reference."""

    metric: str
    split: str
    step: int
    seeds: int
    reference: float
    candidate: float
    gain: float
    low: float
    """One-sided lower bound of the gain, with `confidence`."""
    high: float
    """One-sided 95 % upper bound of the gain."""
    quality: Quality
    tolerance: float = TOLERANCE
    """The margin of this metric."""
    deviation: float = math.nan
    """Standard deviation of the gain between seeds; nan for one seed."""
    confidence: float = CONFIDENCE
    repeats: int = 0
    """Pairs of runs of one seed, where the trainer's seed cannot be set; 0 where it can."""
    scene: str = ""
    """Where a protocol has several."""

    @property
    def acceptable(self) -> bool:
        return self.quality in (Quality.IDENTICAL, Quality.NON_INFERIOR)

    @property
    def gained(self) -> bool:
        return self.low > self.tolerance

    @property
    def loss_chance(self) -> float:
        """How often a loss of just the margin would look at least this bad."""
        if self.gain == -math.inf or (self.quality is Quality.LOST and self.seeds < FEWEST_SEEDS):
            return 0.0
        if self.seeds < FEWEST_SEEDS or not math.isfinite(self.gain):
            return 1.0
        if not self.deviation > 0.0:
            return float(self.gain >= -self.tolerance)
        excess = (self.gain + self.tolerance) * math.sqrt(self.seeds) / self.deviation
        return cdf(excess, self.seeds - 1)

    @property
    def sentence(self) -> str:
        where = f"{self.scene}, " if self.scene else ""
        name = f"{where}{self.split} {self.metric.upper()} at step {self.step}"
        if self.quality is Quality.IDENTICAL:
            return f"{name}: {self.candidate:.6g}, from bit-identical models."
        if math.isnan(self.reference) and self.quality is Quality.UNDECIDED:
            return f"{name}: undecided: the reference has no value."
        if math.isnan(self.candidate) and self.quality is Quality.UNDECIDED:
            return f"{name}: {self.reference:.6g} in the reference, undecided: the candidate has no value."
        figures = f"{name}: {self.reference:.6g} → {self.candidate:.6g} ({change_text(self.gain)})"
        return f"{figures}, {self._judgement}"

    @property
    def _judgement(self) -> str:
        seeds = f"{self.repeats} repeats of one seed" if self.repeats else f"{self.seeds} seeds"
        margin = margin_text(self.tolerance)
        limit = f"the margin of {margin} over {seeds}"
        if self.seeds < FEWEST_SEEDS and self.quality is Quality.LOST:
            return f"lost: more than {GROSS:g} times the margin of {margin} in {seeds}."
        if self.repeats and self.quality is Quality.UNDECIDED:
            return f"undecided: {seeds} say nothing about other seeds (margin {margin})."
        if self.seeds < FEWEST_SEEDS and self.quality is Quality.UNDECIDED:
            return f"undecided: {self.seeds} of at least {FEWEST_SEEDS} seeds."
        if self.quality is Quality.LOST:
            return f"lost: the loss is at least {percent(-self.high)}, beyond {limit}."
        if self.quality is Quality.NON_INFERIOR:
            held = "no loss" if self.low >= 0 else f"a loss of at most {percent(-self.low)}"
            return f"held: {held} with {100 * self.confidence:g} % confidence, within {limit}."
        return (
            f"undecided: between {_signed(self.low)} and {_signed(self.high)}, which does not settle {limit}."
        )


def judge_metric(
    what: tuple[str, str, int],
    pairs: Sequence[tuple[float, float]],
    identical: bool,
    tolerance: float,
    confidence: float = CONFIDENCE,
    repeats: int = 0,
) -> MetricResult:
    """`pairs` are (reference, candidate), one per seed; `tolerance` is the margin of this metric."""
    metric = what[0]
    gains = [_gain(metric, a, b) for a, b in pairs]
    gain, spread, n = mean(gains), deviation_of(gains), len(gains)
    error = spread / math.sqrt(n) if n > 1 else math.inf
    low = gain - quantile(confidence, n - 1) * error if n > 1 else -math.inf
    high = gain + quantile(0.95, n - 1) * error if n > 1 else math.inf
    if not all(math.isfinite(a) for a, _ in pairs):
        quality, low, high = Quality.UNDECIDED, -math.inf, math.inf
    elif not all(map(math.isfinite, gains)):
        quality, gain, low, high = Quality.LOST, -math.inf, -math.inf, -math.inf
    elif identical:
        quality, low, high = Quality.IDENTICAL, 0.0, 0.0
    elif n < FEWEST_SEEDS:
        gross = gain < -GROSS * tolerance
        quality, low, high = Quality.LOST if gross else Quality.UNDECIDED, -math.inf, math.inf
    elif high < -tolerance:
        quality = Quality.LOST
    elif low > -tolerance:
        quality = Quality.NON_INFERIOR
    else:
        quality = Quality.UNDECIDED
    sides = mean([a for a, _ in pairs]), mean([b for _, b in pairs])
    bounds = (gain, low, high)
    return MetricResult(*what, n, *sides, *bounds, quality, tolerance, spread, confidence, repeats)


def shared_level(results: Sequence[MetricResult]) -> tuple[MetricResult, ...]:
    """One loss among many metrics is found by chance more often than one among one: Hochberg's step-up.

    Metrics of the same models move together, which is what it asks for. Where all show the loss each needs
    5 % as if it were alone; where one of m does, it needs 5 % / m. Others that looked lost are undecided.
    """
    chances = sorted(result.loss_chance for result in results)
    passed = [p for rank, p in enumerate(chances) if p <= LOST_LEVEL / (len(chances) - rank)]
    limit = max(passed, default=-1.0)
    return tuple(
        dataclasses.replace(result, quality=Quality.UNDECIDED)
        if result.quality is Quality.LOST and result.loss_chance > limit
        else result
        for result in results
    )


def more_seeds(result: MetricResult) -> int | None:
    """About how many more seeds settle an undecided metric; None if seeds would not help."""
    if math.isnan(result.candidate) or math.isnan(result.reference) or result.repeats:
        return None
    if result.seeds < FEWEST_SEEDS:
        return FEWEST_SEEDS - result.seeds
    wanted = samples_to_settle(result.gain + result.tolerance, result.deviation, result.confidence)
    return None if wanted is None else max(1, wanted - result.seeds)


def _gain(metric: str, reference: float, candidate: float) -> float:
    if reference == candidate:
        return 0.0
    if reference == 0.0:
        return math.copysign(math.inf, DIRECTION[metric] * candidate)
    return DIRECTION[metric] * (candidate - reference) / abs(reference)


def percent(fraction: float) -> str:
    return f"{100 * fraction:.2f} %"


def _signed(fraction: float) -> str:
    return f"{100 * fraction:+.2f} %"
