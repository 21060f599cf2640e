"""What a phase is meant to gain, and the figures that tell: ratios again, above 1 where the candidate gains.

Speed is judged by verdict.py. Every other aim has one figure or two (peaks of training and of
evaluation), each a sample of log ratios over blocks or seeds with an interval of its own. Where an aim has
two figures either may make the claim, so the 95 % hold for both together (Bonferroni).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from splatmeter.lab.compare.noise import NoiseFloor, half_width_of, pooled_deviation
from splatmeter.lab.compare.ratio import Estimate
from splatmeter.lab.samples.averages import deviation_of, mean


@dataclass(frozen=True, slots=True)
class Figure:
    """One quantity of an aim; `estimate` is of its ratio, above 1 where the candidate gains."""

    name: str
    """'training peak', 'time to 26 dB' …; the same in every scene."""
    samples: Mapping[int, float]
    """Log ratio of each block, or of each seed where a seed decides."""
    estimate: Estimate
    reference: float = math.nan
    candidate: float = math.nan
    unit: str = ""
    """'bytes', 's' or 'dB'."""
    over: str = "blocks"
    lacking: tuple[str, ...] = ()
    """Why nothing may be concluded, one sentence each."""
    no_gain: tuple[str, ...] = ()
    """Why a gain may not be claimed, whatever the ratio: runs that never got there."""
    no_loss: tuple[str, ...] = ()
    """Why a loss may not be claimed."""
    noise: NoiseFloor | None = None

    @property
    def ratio(self) -> str:
        bounds, estimate = self.estimate.interval_95, self.estimate
        if not estimate.blocks:
            return "not known"
        if math.isinf(bounds.high):
            return f"{estimate.ratio:.4f} after {estimate.blocks} {self.over}, no interval yet"
        return (
            f"{estimate.ratio:.4f} [{bounds.low:.4f}, {bounds.high:.4f}] over {estimate.blocks} {self.over}"
        )

    @property
    def values(self) -> str:
        """`15.62 GB → 8.00 GB`."""
        return f"{quantity(self.reference, self.unit)} → {quantity(self.candidate, self.unit)}"

    @property
    def sentence(self) -> str:
        return f"{self.name[:1].upper()}{self.name[1:]}: {self.values}, ratio {self.ratio}."

    @property
    def low(self) -> float:
        """Lower bound of the log ratio; minus infinity where nothing is known."""
        return self.estimate.log_mean - self.estimate.half_width if self.estimate.blocks else -math.inf

    @property
    def high(self) -> float:
        return self.estimate.log_mean + self.estimate.half_width if self.estimate.blocks else math.inf


def quantity(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return "?"
    if unit == "bytes":
        return f"{value / 1e9:.3g} GB" if value >= 1e9 else f"{value / 1e6:.4g} MB"
    return f"{value:.4g} {unit}"


@dataclass(frozen=True, slots=True)
class How:
    """By which rule intervals are made."""

    level: float = 0.05
    """Two-sided, of one figure: 5 % shared by the figures of an aim."""
    resolution: float = 0.0
    """What the measurement cannot tell apart, in log units: added to both sides, whatever the spread."""
    anytime: bool = False
    noise: NoiseFloor | None = None


NOTHING_KNOWN = Estimate("nothing measured", 0, math.nan, math.nan, math.inf, math.inf)


def estimated(samples: Mapping[int, float], how: How) -> Estimate:
    """Student's t (or the anytime-valid interval) over the samples, no narrower than the noise of an A/A
    makes it, and never narrower than what was measured can tell: equal peaks without any spread are equal
    up to the resolution, not exactly.
    """
    values = [samples[key] for key in sorted(samples)]
    if not values:
        return NOTHING_KNOWN
    n, own = len(values), deviation_of(values)
    method = "anytime-valid interval" if how.anytime else "paired t"
    plain = Estimate(method, n, mean(values), own, math.inf, math.inf, how.resolution)
    if n < 2:
        return plain
    widths = [half_width_of(plain, own, level) for level in (how.level, 2 * how.level)]
    if how.noise is not None:
        deviation, degrees = pooled_deviation(plain, how.noise.estimate)
        if deviation > 0.0:
            wider = [half_width_of(plain, deviation, level, degrees) for level in (how.level, 2 * how.level)]
            widths = [max(pair) for pair in zip(widths, wider, strict=True)]
    wide, narrow = (width + how.resolution for width in widths)
    return dataclasses.replace(plain, half_width=wide, half_width_90=narrow)


def mean_over(samples: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """For each block (or seed) that every scene has: the log of the geometric mean over scenes."""
    shared = set.intersection(*(set(part) for part in samples)) if samples else set()
    return {key: mean([part[key] for part in samples]) for key in sorted(shared)}
