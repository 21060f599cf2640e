"""Did the speed-up cost quality: non-inferiority per metric, paired over seeds.

A deterministic trainer hides its spread: one seed repeated is one sample. So runs of the same seed are
averaged first and only seeds count; where a trainer takes no seed, all its runs are repeats of one.

*Held* must be shown for every metric at every step: for PSNR at the last step, which carries the user's
tolerance, with 95 % confidence, for all others, whose margins follow from it (margins.py), with 90 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from splatmeter.lab.compare.margins import DIRECTION, TOLERANCE, margin_of, margin_text
from splatmeter.lab.compare.metric import (
    CONFIDENCE,
    SUPPORTING,
    MetricResult,
    Quality,
    judge_metric,
    percent,
    shared_level,
)
from splatmeter.lab.samples.averages import mean
from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.run_sample import Arm, Evaluation, RunSample

QUALITY_GAIN = "quality gain"
"""The kind of finding that a change declared as speed-only earns by better pictures."""


def compare_quality(
    runs: Iterable[RunSample],
    reference: str,
    candidate: str,
    tolerance: float = TOLERANCE,
    stated: Mapping[str, float] | None = None,
) -> tuple[MetricResult, ...]:
    """Every metric at every step that the reference evaluated; on train views only if none are held out.
    What the candidate lacks of it is undecided by name.
    """
    runs = list(runs)
    sides = runs_of(runs, reference), runs_of(runs, candidate)
    settable = all(run.seed_set for run in runs)
    by_seed = tuple(_by_seed(side, settable) for side in sides)
    seeds = sorted(by_seed[0].keys() & by_seed[1].keys())
    pairs = [(by_seed[0][seed], by_seed[1][seed]) for seed in seeds]
    repeats = 0 if settable else min(map(len, sides), default=0)
    results: list[MetricResult] = []
    wanted = _to_judge(pairs)
    for split, step in wanted:
        found = [(_mean_metrics(a, split, step), _mean_metrics(b, split, step)) for a, b in pairs]
        identical = all(_bit_identical(a, b, split, step) for a, b in pairs)
        for metric in _reported(found):
            margin = margin_of(metric, tolerance, stated or {})
            what = (metric, split, step)
            if not all(metric in a and metric in b for a, b in found):
                results.append(
                    _not_reported(what, [(a.get(metric), b.get(metric)) for a, b in found], margin)
                )
                continue
            values = [(a[metric], b[metric]) for a, b in found]
            same = identical and all(a == b for a, b in values)
            main = metric == "psnr" and step == wanted[-1][1]
            confidence = CONFIDENCE if main else SUPPORTING
            results.append(judge_metric(what, values, same, margin, confidence, repeats))
    return shared_level(results)


def _not_reported(
    what: tuple[str, str, int], pairs: Sequence[tuple[float | None, float | None]], margin: float
) -> MetricResult:
    """An arm lacks a metric that the other has: nothing may be concluded from its absence."""
    sides = [[pair[side] for pair in pairs] for side in (0, 1)]
    known = [[value for value in side if value is not None] for side in sides]
    means = [mean(some) if len(some) == len(pairs) else math.nan for some in known]
    bounds = (math.nan, -math.inf, math.inf)
    return MetricResult(*what, len(pairs), means[0], means[1], *bounds, Quality.UNDECIDED, margin)


def suspicious_gains(results: Iterable[MetricResult], arm: Arm) -> list[Finding]:
    """A change that only meant to be faster and made the pictures better changed something else."""
    if not arm.speed_only:
        return []
    return [
        Finding(
            QUALITY_GAIN,
            f"{arm.name} is declared as speed-only, yet {result.split} {result.metric.upper()} at step "
            f"{result.step} improved from {result.reference:.6g} to {result.candidate:.6g}, by at least "
            f"{percent(result.low)} (margin {margin_text(result.tolerance)}): it changes more than speed.",
            Severity.DOUBT,
            arm.name,
        )
        for result in results
        if result.gained
    ]


def runs_of(runs: Iterable[RunSample], arm: str) -> list[RunSample]:
    return [run for run in runs if run.arm.name == arm]


def _by_seed(runs: Iterable[RunSample], settable: bool) -> dict[int, list[RunSample]]:
    """Where seeds cannot be set, whatever a run was called is a repeat of the only one there is."""
    seeds: dict[int, list[RunSample]] = {}
    for run in runs:
        seeds.setdefault(run.seed if settable else 0, []).append(run)
    return seeds


def _to_judge(pairs: Sequence[tuple[list[RunSample], list[RunSample]]]) -> list[tuple[str, int]]:
    """(split, step) that each run of the reference has; the held-out split alone if anybody has one."""
    references = [run for pair in pairs for run in pair[0]]
    everybody = [run for pair in pairs for side in pair for run in side]
    if not everybody:
        return []
    shared = set.intersection(*({(e.split, e.step) for e in run.evaluations} for run in references))
    held_out = any(e.split == "test" for run in everybody for e in run.evaluations)
    chosen = (pair for pair in shared if pair[0] == "test" or not held_out)
    return sorted(chosen, key=lambda pair: pair[::-1])


def _reported(found: Sequence[tuple[Mapping[str, float], Mapping[str, float]]]) -> list[str]:
    """Metrics that the reference has throughout; if it has none, PSNR stands for what is missing."""
    return [metric for metric in DIRECTION if all(metric in a for a, _ in found)] or ["psnr"]


def _evaluation(run: RunSample, split: str, step: int) -> Evaluation:
    """An empty one where the run has none."""
    fits = (e for e in run.evaluations if (e.split, e.step) == (split, step))
    return next(fits, Evaluation(step, split, {}))


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
