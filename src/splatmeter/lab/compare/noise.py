"""What this machine cannot see: the same arm measured against itself.

An A/A is a second estimate of the noise of a block, not a hurdle: its own interval is as wide as that of the
comparison it is held against, so a claim that must clear both is hardly ever made. It does three things:

- A comparison whose own blocks agree by luck is not believed to be quieter than both sessions together.
  Where the two noises are plainly different (F test at 1 %) the comparison's own decides alone.
- An A/A whose 95 % interval excludes 1 leans. One in twenty does by chance, so it spoils nothing; but a claim
  must then be larger than what it showed, by the interval of the difference.
- One that excludes 1 at 99.9 % has failed: the set-up measures something other than the arms.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from splatmeter.lab.compare.ratio import Estimate, SpeedEvidence, exp
from splatmeter.lab.compare.sequential import half_width
from splatmeter.lab.samples.student import quantile, variance_ratio_tail

FAILED = 0.001
"""Two-sided level at which an A/A is no accident: once in a thousand."""
OTHER_NOISE = 0.01
"""Level of the F test that calls the noise of two sessions different."""


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """The outcome of an A/A control, kept per machine and scene."""

    estimate: Estimate
    machine: str = ""
    scene: str = ""

    @property
    def log_floor(self) -> float:
        """The larger |bound| of the 95 % interval: what as many blocks take for nothing."""
        return abs(self.estimate.log_mean) + self.estimate.half_width

    @property
    def floor(self) -> float:
        return exp(self.log_floor) - 1.0

    @property
    def failed(self) -> bool:
        """Two identical arms came out different by more than any accident."""
        spread = half_width_of(self.estimate, self.estimate.log_deviation, FAILED)
        return abs(self.estimate.log_mean) > spread + self.estimate.resolution

    @property
    def leans(self) -> bool:
        return abs(self.estimate.log_mean) > self.estimate.half_width

    def hurdle(self, half_width: float) -> float:
        """What the lower bound of a claim must exceed; 0 unless the A/A leans.

        A claim is then compared with the A/A: the interval of the difference has the half-width
        √(h² + h_AA²), and h of it is in the bound already.
        """
        if not self.leans:
            return 0.0
        if not math.isfinite(half_width):
            return abs(self.estimate.log_mean)
        both = math.hypot(half_width, self.estimate.half_width)
        return abs(self.estimate.log_mean) + both - half_width

    @property
    def sentence(self) -> str:
        bounds = self.estimate.interval_95
        blocks = f"over {self.estimate.blocks} blocks"
        figures = f"{self.estimate.ratio:.4f} [{bounds.low:.4f}, {bounds.high:.4f}] {blocks}"
        if self.failed:
            return (
                f"The A/A control failed: the same arm against itself gave {figures}, which excludes 1 as "
                "chance does once in a thousand: something other than the arms is measured."
            )
        if not math.isfinite(self.log_floor):
            return "The A/A control has too few blocks to tell the noise."
        noise = f"A/A control: {figures}; s_d {100 * self.estimate.log_deviation:.2f} % a block"
        if self.leans:
            return (
                f"{noise}. It leans, as one in twenty does by chance: a claim must be larger than what it "
                "showed. Another A/A settles it."
            )
        return f"{noise}; noise floor of as many blocks {100 * self.floor:.2f} %."


def noise_floor(evidence: SpeedEvidence, machine: str = "", scene: str = "") -> NoiseFloor:
    return NoiseFloor(evidence.main, machine, scene)


def with_noise(evidence: SpeedEvidence, control: NoiseFloor | None) -> SpeedEvidence:
    """The evidence with intervals no narrower than the noise of both sessions together makes them."""
    own = evidence.main
    if control is None or not math.isfinite(own.half_width):
        return evidence
    deviation, degrees = pooled_deviation(own, control.estimate)
    if not deviation > 0.0:
        return evidence
    wide = max(own.half_width, half_width_of(own, deviation, 0.05, degrees))
    narrow = max(own.half_width_90, half_width_of(own, deviation, 0.10, degrees))
    if (wide, narrow) == (own.half_width, own.half_width_90):
        return evidence
    widened = dataclasses.replace(
        own, method=f"{own.method}, with the noise of the A/A", half_width=wide, half_width_90=narrow
    )
    return dataclasses.replace(evidence, main=widened)


def pooled_deviation(own: Estimate, control: Estimate) -> tuple[float, int]:
    """Deviation of both together and its degrees of freedom; (0, 0) where they do not go together."""
    n, m = own.blocks - 1, control.blocks - 1
    a, b = own.log_deviation**2, control.log_deviation**2
    if n < 1 or m < 1 or not (math.isfinite(a) and math.isfinite(b)):
        return 0.0, 0
    if variance_ratio_tail(b / a if a > 0 else math.inf, m, n) < OTHER_NOISE:
        return 0.0, 0  # this session is plainly quieter than the A/A was
    return math.sqrt((n * a + m * b) / (n + m)), n + m


def half_width_of(estimate: Estimate, deviation: float, alpha: float, degrees: int = 0) -> float:
    """Half the width of the interval that the estimate's method makes from this deviation."""
    n = estimate.blocks
    if n < 2:
        return math.inf
    if estimate.method.startswith("anytime"):
        return half_width(deviation * deviation * (n - 1), n, alpha)
    return quantile(1.0 - alpha / 2.0, degrees or n - 1) * deviation / math.sqrt(n)
