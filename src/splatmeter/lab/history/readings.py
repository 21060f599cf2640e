"""From the runs of one arm of one session to its figures, each with the way in which it was taken."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from splatmeter.lab.compare.coverage import covered
from splatmeter.lab.compare.peak_figures import peak_of
from splatmeter.lab.history.tracks import METRICS, Reading
from splatmeter.lab.samples.averages import mean
from splatmeter.lab.samples.run_sample import Evaluation, RunSample


def readings(runs: Sequence[RunSample], timed: str) -> dict[str, Reading]:
    """Only what is known; `timed` says how the runs were timed and is empty if they were not."""
    found: dict[str, Reading | None] = {
        "speed": _speed(runs, timed),
        "loss": _mean([run.loss for run in runs], runs[0].backend),
        "training_peak": _peak(runs, "training"),
        "evaluation_peak": _peak(runs, "evaluation"),
        "gaussians": _mean([run.gaussians_end or None for run in runs], ""),
        **_metrics(runs),
    }
    return {name: reading for name, reading in found.items() if reading is not None}


def _speed(runs: Sequence[RunSample], timed: str) -> Reading | None:
    """The geometric mean, as everywhere in the lab."""
    if not timed:
        return None
    rates = [run.steps_per_second for run in runs]
    return Reading(math.exp(mean([math.log(rate) for rate in rates])), min(rates), max(rates), timed)


def _mean(values: Sequence[float | None], basis: str) -> Reading | None:
    """A figure that one of the runs lacks is unknown: the others may be the better ones."""
    known = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not known or len(known) < len(values):
        return None
    return Reading(mean(known), min(known), max(known), basis)


def _peak(runs: Sequence[RunSample], stage: str) -> Reading | None:
    """The highest of the runs, as in the log."""
    found = [peak_of(run, stage) for run in runs]
    known = [peak for peak in found if peak is not None]
    ways = sorted({_way(run, stage) for run in runs})
    if not known or len(known) < len(runs) or len(ways) > 1:
        return None
    sizes = [float(peak.size) for peak in known]
    return Reading(max(sizes), min(sizes), max(sizes), f"{known[0].kind}, {ways[0]}")


def _way(run: RunSample, stage: str) -> str:
    sampled = any(peak.samples is not None for peak in run.peaks if peak.stage == stage)
    return "sampled" if sampled else "high-water mark"


def _metrics(runs: Sequence[RunSample]) -> dict[str, Reading | None]:
    """At the last step that every run was judged at by one judge: held-out views, else those of training."""
    kept = covered(runs, ()).runs
    places = set.intersection(*({(e.split, e.step) for e in run.evaluations} for run in kept))
    if not places:
        return {}
    split, step = max(places, key=lambda place: (place[0] == "test", place[1]))
    chosen = [next(e for e in run.evaluations if (e.split, e.step) == (split, step)) for run in kept]
    bases = {basis_of(evaluation) for evaluation in chosen}
    if len(bases) > 1:
        return {}
    basis = bases.pop()
    return {name: _mean([e.metrics.get(name) for e in chosen], basis) for name in METRICS}


def basis_of(evaluation: Evaluation) -> str:
    """Split, step, judge, rule of exposure, and which views: what two figures must share."""
    views = hashlib.sha256("\0".join(sorted(evaluation.images)).encode("utf-8", "replace")).hexdigest()[:8]
    words = [f"{evaluation.split} views at step {evaluation.step}", f"by {evaluation.judged_by}"]
    words += [] if evaluation.exposure == "none" else [f"exposure {evaluation.exposure}"]
    words += [f"{len(evaluation.images)} views {views}"] if evaluation.images else []
    return ", ".join(words)


def step_of(basis: str) -> int:
    """The step that a metric's basis names."""
    return int(basis.partition(" at step ")[2].partition(",")[0])
