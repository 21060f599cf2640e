"""Did the speed-up cost quality: non-inferiority per metric, paired over seeds, with one-sided 95 % bounds.

A deterministic trainer hides its spread: one seed repeated is one sample. So runs of the same seed are
averaged first and only seeds count. Gains are fractions of the reference; positive is always better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from splatmeter.lab.compare.power import samples_to_settle
from splatmeter.lab.compare.ratio import deviation_of, mean
from splatmeter.lab.compare.samples import Arm, Evaluation, Finding, RunSample, Severity
from splatmeter.lab.compare.student import quantile

TOLERANCE = 0.005
FEWEST_SEEDS = 4
QUALITY_GAIN = "quality gain"
"""The kind of finding that a change declared as speed-only earns by better pictures."""
DIRECTION = {"psnr": 1.0, "ssim": 1.0, "lpips": -1.0, "l1": -1.0}


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
    """One-sided 95 % lower bound of the gain."""
    high: float
    """One-sided 95 % upper bound of the gain."""
    quality: Quality
    tolerance: float = TOLERANCE
    deviation: float = math.nan
    """Standard deviation of the gain between seeds; nan for one seed."""

    @property
    def acceptable(self) -> bool:
        return self.quality in (Quality.IDENTICAL, Quality.NON_INFERIOR)

    @property
    def gained(self) -> bool:
        return self.low > self.tolerance

    @property
    def sentence(self) -> str:
        name = f"{self.split} {self.metric.upper()} at step {self.step}"
        if self.quality is Quality.IDENTICAL:
            return f"{name}: {self.candidate:.6g}, from bit-identical models."
        if math.isnan(self.candidate) and self.quality is Quality.UNDECIDED:
            return f"{name}: {self.reference:.6g} in the reference, undecided: the candidate has no value."
        change = "unchanged" if self.gain == 0 else f"{_percent(abs(self.gain))} better"
        change = change.replace("better", "worse") if self.gain < 0 else change
        figures = f"{name}: {self.reference:.6g} → {self.candidate:.6g} ({change})"
        if self.seeds < FEWEST_SEEDS and self.quality is Quality.UNDECIDED:
            return f"{figures}, undecided: {self.seeds} of at least {FEWEST_SEEDS} seeds."
        limit = f"the tolerance of {_percent(self.tolerance)} over {self.seeds} seeds"
        if self.quality is Quality.LOST:
            return f"{figures}, lost: the loss is at least {_percent(-self.high)}, beyond {limit}."
        if self.quality is Quality.NON_INFERIOR:
            held = "no loss" if self.low >= 0 else f"a loss of at most {_percent(-self.low)}"
            return f"{figures}, held: {held}, within {limit}."
        return (
            f"{figures}, undecided: between {_signed(self.low)} and {_signed(self.high)}, which does not "
            f"settle {limit}."
        )


def compare_quality(
    runs: Iterable[RunSample], reference: str, candidate: str, tolerance: float = TOLERANCE
) -> tuple[MetricResult, ...]:
    """Every metric at every step that both arms evaluated; on train views only if none are held out."""
    runs = list(runs)
    by_arm = {reference: _by_seed(runs_of(runs, reference)), candidate: _by_seed(runs_of(runs, candidate))}
    seeds = sorted(by_arm[reference].keys() & by_arm[candidate].keys())
    pairs = [(by_arm[reference][seed], by_arm[candidate][seed]) for seed in seeds]
    results: list[MetricResult] = []
    for split, step in _evaluated_everywhere(pairs):
        identical = all(_bit_identical(a, b, split, step) for a, b in pairs)
        sides = [(_mean_metrics(a, split, step), _mean_metrics(b, split, step)) for a, b in pairs]
        for metric in DIRECTION:
            if not all(metric in a for a, _ in sides):
                continue
            if not all(metric in b for _, b in sides):
                results.append(_not_reported((metric, split, step), [a[metric] for a, _ in sides], tolerance))
                continue
            values = [(a[metric], b[metric]) for a, b in sides]
            same = identical and all(a == b for a, b in values)
            results.append(judge_metric((metric, split, step), values, same, tolerance))
    return tuple(results)


def judge_metric(
    what: tuple[str, str, int], pairs: Sequence[tuple[float, float]], identical: bool, tolerance: float
) -> MetricResult:
    """`pairs` are (reference, candidate), one per seed."""
    metric, split, step = what
    gains = [_gain(metric, a, b) for a, b in pairs]
    gain = mean(gains)
    spread = deviation_of(gains)
    n = len(gains)
    reach = quantile(0.95, n - 1) * spread / math.sqrt(n) if n > 1 else math.inf
    low, high = gain - reach, gain + reach
    if not all(math.isfinite(a) for a, _ in pairs):
        quality, low, high = Quality.UNDECIDED, -math.inf, math.inf
    elif not all(map(math.isfinite, gains)):
        quality, gain, low, high = Quality.LOST, -math.inf, -math.inf, -math.inf
    elif identical:
        quality, low, high = Quality.IDENTICAL, 0.0, 0.0
    elif n < FEWEST_SEEDS:
        quality, low, high = Quality.UNDECIDED, -math.inf, math.inf
    elif high < -tolerance:
        quality = Quality.LOST
    elif low > -tolerance:
        quality = Quality.NON_INFERIOR
    else:
        quality = Quality.UNDECIDED
    sides = mean([a for a, _ in pairs]), mean([b for _, b in pairs])
    return MetricResult(metric, split, step, n, *sides, gain, low, high, quality, tolerance, spread)


def _not_reported(what: tuple[str, str, int], reference: Sequence[float], tolerance: float) -> MetricResult:
    """The candidate lacks a metric that the reference has: nothing may be concluded from its absence."""
    nothing = (math.nan, -math.inf, math.inf)
    sides = mean(reference), math.nan
    return MetricResult(*what, len(reference), *sides, *nothing, Quality.UNDECIDED, tolerance)


def more_seeds(result: MetricResult) -> int | None:
    """About how many more seeds settle an undecided metric; None if it lies too close to the tolerance."""
    if math.isnan(result.candidate):
        return None
    if result.seeds < FEWEST_SEEDS:
        return FEWEST_SEEDS - result.seeds
    wanted = samples_to_settle(result.gain + result.tolerance, result.deviation)
    return None if wanted is None else max(1, wanted - result.seeds)


def suspicious_gains(results: Iterable[MetricResult], arm: Arm) -> list[Finding]:
    """A change that only meant to be faster and made the pictures better changed something else."""
    if not arm.speed_only:
        return []
    return [
        Finding(
            QUALITY_GAIN,
            f"{arm.name} is declared as speed-only, yet {result.split} {result.metric.upper()} at step "
            f"{result.step} improved from {result.reference:.6g} to {result.candidate:.6g}, by at least "
            f"{_percent(result.low)} (tolerance {_percent(result.tolerance)}): it changes more than speed.",
            Severity.DOUBT,
            arm.name,
        )
        for result in results
        if result.gained
    ]


def runs_of(runs: Iterable[RunSample], arm: str) -> list[RunSample]:
    return [run for run in runs if run.arm.name == arm]


def _by_seed(runs: Iterable[RunSample]) -> dict[int, list[RunSample]]:
    seeds: dict[int, list[RunSample]] = {}
    for run in runs:
        seeds.setdefault(run.seed, []).append(run)
    return seeds


def _evaluated_everywhere(pairs: Sequence[tuple[list[RunSample], list[RunSample]]]) -> list[tuple[str, int]]:
    """(split, step) that each run of each arm has; the held-out split alone if there is one."""
    runs = [run for pair in pairs for side in pair for run in side]
    if not runs:
        return []
    shared = set.intersection(*({(e.split, e.step) for e in run.evaluations} for run in runs))
    held_out = {(split, step) for split, step in shared if split == "test"}
    return sorted(held_out or shared)


def _evaluation(run: RunSample, split: str, step: int) -> Evaluation:
    return next(e for e in run.evaluations if (e.split, e.step) == (split, step))


def _mean_metrics(runs: Sequence[RunSample], split: str, step: int) -> dict[str, float]:
    found = [_evaluation(run, split, step).metrics for run in runs]
    shared = set.intersection(*(set(metrics) for metrics in found))
    return {name: mean([float(metrics[name]) for metrics in found]) for name in shared}


def _bit_identical(a: Sequence[RunSample], b: Sequence[RunSample], split: str, step: int) -> bool:
    hashes = {_judged_hash(run, split, step) for run in (*a, *b)}
    return len(hashes) == 1 and "" not in hashes


def _judged_hash(run: RunSample, split: str, step: int) -> str:
    """The model judged; a deterministic run with the same end went through the same middle."""
    return _evaluation(run, split, step).model_sha256 or run.model_sha256


def _gain(metric: str, reference: float, candidate: float) -> float:
    if reference == candidate:
        return 0.0
    if reference == 0.0:
        return math.copysign(math.inf, DIRECTION[metric] * candidate)
    return DIRECTION[metric] * (candidate - reference) / abs(reference)


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2f} %"


def _signed(fraction: float) -> str:
    return f"{100 * fraction:+.2f} %"
