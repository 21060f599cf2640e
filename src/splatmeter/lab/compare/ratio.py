"""How much faster: paired log ratios, because the machine drifts and a block's two runs drift together.

d = ln(T_A / T_B) per block, A the reference and B the candidate, so a ratio above 1 means B is faster.
Outliers are never dropped; from eight blocks on a 20 % trimmed mean is the second opinion.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from splatmeter.lab.samples.averages import deviation_of, mean
from splatmeter.lab.samples.run_sample import RunSample, SliceSample
from splatmeter.lab.samples.student import quantile

FEWEST_BLOCKS = 4
FEWEST_FOR_TRIMMED = 8
TRIM = 0.2


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of a ratio; (0, inf) says that nothing is known."""

    low: float
    high: float

    def inside(self, low: float, high: float) -> bool:
        return low <= self.low and self.high <= high

    def overlaps(self, other: Interval) -> bool:
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio of speeds with its two intervals; `half_width` is that of the 95 % one, in log units."""

    method: str
    blocks: int
    log_mean: float
    log_deviation: float
    """s_d: standard deviation of the log ratios, the noise of one block; nan for a single block."""
    half_width: float
    half_width_90: float
    resolution: float = 0.0
    """What the measurement itself cannot tell apart, in log units; both half-widths have it already."""

    @property
    def ratio(self) -> float:
        return math.exp(self.log_mean)

    @property
    def interval_95(self) -> Interval:
        return _interval(self.log_mean, self.half_width)

    @property
    def interval_90(self) -> Interval:
        return _interval(self.log_mean, self.half_width_90)


@dataclass(frozen=True, slots=True)
class SpeedEvidence:
    """The estimate that decides and, from eight blocks on, its robust second opinion."""

    main: Estimate
    trimmed: Estimate | None = None

    @property
    def disagreement(self) -> str:
        """Why the two estimates contradict each other; empty if they don't."""
        if self.trimmed is None:
            return ""
        a, b = self.main.interval_95, self.trimmed.interval_95
        if (a.low > 1 and b.high < 1) or (a.high < 1 and b.low > 1):
            return (
                f"the mean says {self.main.ratio:.4f} [{a.low:.4f}, {a.high:.4f}] and the trimmed mean says "
                f"{self.trimmed.ratio:.4f} [{b.low:.4f}, {b.high:.4f}]: opposite directions"
            )
        gap = abs(self.main.log_mean - self.trimmed.log_mean)
        if gap > self.main.half_width:
            return (
                f"the mean ratio {self.main.ratio:.4f} and the trimmed mean ratio {self.trimmed.ratio:.4f} "
                f"are {100 * gap:.2f} % apart, more than the half-width of {100 * self.main.half_width:.2f} %"
            )
        return ""


def log_ratios(runs: Iterable[RunSample], reference: str, candidate: str) -> tuple[float, ...]:
    """One d per block that has both arms, in the order of the blocks; repeated runs are averaged."""
    times: dict[int, dict[str, list[float]]] = {}
    for run in runs:
        arm = times.setdefault(run.block, {}).setdefault(run.arm.name, [])
        arm.append(math.log(run.seconds_per_step))
    both = [block for _, block in sorted(times.items()) if reference in block and candidate in block]
    return tuple(mean(block[reference]) - mean(block[candidate]) for block in both)


def slice_log_ratios(slices: Iterable[SliceSample], reference: str, candidate: str) -> tuple[float, ...]:
    """One d per block again: the mean over its pairs of slices, weighted by their steps.

    Slices of one pair of processes share that pair's luck (memory layout, boost state), so a pair of slices
    is no independent sample and only blocks count as such.
    """
    pairs: dict[int, dict[int, dict[str, SliceSample]]] = {}
    for piece in slices:
        pairs.setdefault(piece.block, {}).setdefault(piece.index, {})[piece.arm] = piece
    result: list[float] = []
    for _, block in sorted(pairs.items()):
        total = weight = 0.0
        for pair in block.values():
            a, b = pair.get(reference), pair.get(candidate)
            if a is None or b is None or (a.first_step, a.last_step) != (b.first_step, b.last_step):
                continue  # the last slice of a block may be missing its partner
            steps = a.last_step - a.first_step
            total += steps * math.log(a.seconds / b.seconds)
            weight += steps
        if weight:
            result.append(total / weight)
    return tuple(result)


def paired(differences: Sequence[float]) -> Estimate:
    """Mean of the log ratios with Student's t intervals."""
    n = len(differences)
    center, deviation = mean(differences), deviation_of(differences)
    if n < 2:
        return Estimate("paired t", n, center, math.nan, math.inf, math.inf)
    error = deviation / math.sqrt(n)
    return Estimate(
        "paired t", n, center, deviation, quantile(0.975, n - 1) * error, quantile(0.95, n - 1) * error
    )


def trimmed(differences: Sequence[float]) -> Estimate:
    """Yuen's 20 % trimmed mean with its winsorised error: what a few spikes cannot move."""
    n = len(differences)
    ordered = sorted(differences)
    cut = int(TRIM * n)
    kept = n - 2 * cut
    winsorized = [min(max(d, ordered[cut]), ordered[n - 1 - cut]) for d in ordered]
    center = mean(ordered[cut : n - cut])
    error = deviation_of(winsorized) * math.sqrt((n - 1) / (kept * (kept - 1)))
    wide, narrow = quantile(0.975, kept - 1) * error, quantile(0.95, kept - 1) * error
    return Estimate("20 % trimmed mean", n, center, deviation_of(differences), wide, narrow)


NO_BLOCK = SpeedEvidence(Estimate("no complete block", 0, math.nan, math.nan, math.inf, math.inf))
"""Each arm needs a run in the same block; without one nothing is known, and that is an answer too."""


def evidence(differences: Sequence[float]) -> SpeedEvidence:
    """What a fixed number of blocks says."""
    if not differences:
        return NO_BLOCK
    second = trimmed(differences) if len(differences) >= FEWEST_FOR_TRIMMED else None
    return SpeedEvidence(paired(differences), second)


def _interval(center: float, half_width: float) -> Interval:
    return Interval(exp(center - half_width), exp(center + half_width))


def exp(value: float) -> float:
    """Overflows to infinity instead of an error."""
    return math.exp(value) if value < 700 else math.inf
