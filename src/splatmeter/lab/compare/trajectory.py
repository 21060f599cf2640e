"""How soon, and how good by then: PSNR over the training clock, from evaluations on a grid of steps that the
protocol states before the run.

- Between two evaluations the curve is a straight line; evaluations are off the clock.
- A spike at a single evaluation moves nothing: each counts for at most what the straight line between its
  neighbours gives, in both arms, and a quality is reached only where the next evaluation confirms it (at most
  the tolerance of PSNR below).
- A run that never reaches it is censored. *Sooner* asks that the candidate reach it in every run; runs of the
  reference that never do count with the time they had, so that the ratio is a lower bound. *Later* is the
  mirror image. A quality that is there at the first evaluation already settles neither.
- A run that ends before the stated time keeps the quality it ended with.
- A seed decides, not a block: which step is enough depends on the seed, so blocks of one seed are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from splatmeter.lab.compare.aim_figures import Figure, How, estimated
from splatmeter.lab.compare.margins import TOLERANCE
from splatmeter.lab.compare.metric import FEWEST_SEEDS
from splatmeter.lab.compare.noise import NoiseFloor
from splatmeter.lab.compare.quality import runs_of
from splatmeter.lab.samples.aim import Aim
from splatmeter.lab.samples.averages import mean
from splatmeter.lab.samples.run_sample import RunSample

Point = tuple[float, float]
"""(seconds of the training clock, PSNR)"""


@dataclass(frozen=True, slots=True)
class Goal:
    """What the protocol states."""

    psnr: float = 0.0
    seconds: float = 0.0
    split: str = "test"
    steps: tuple[int, ...] = ()
    """The grid that every run is evaluated on."""
    tolerance: float = TOLERANCE


@dataclass(frozen=True, slots=True)
class Reached:
    seconds: float
    """When; or, where it never did, the time it had."""
    never: bool = False
    early: bool = False
    """At the first evaluation already: it was sooner than this."""


def points(run: RunSample, goal: Goal) -> list[Point]:
    """The curve of one run; evaluations without a clock or a PSNR are not on it."""
    found = [
        (item.clock_seconds, item.metrics["psnr"])
        for item in sorted(run.evaluations, key=lambda item: item.step)
        if item.split == goal.split and item.step in goal.steps
        if item.clock_seconds is not None and math.isfinite(item.metrics.get("psnr", math.nan))
    ]
    return without_spikes([(float(seconds), float(psnr)) for seconds, psnr in found])


def without_spikes(curve: Sequence[Point]) -> list[Point]:
    """What is left when no evaluation stands out of the line between its neighbours; the last one is the
    model that is left in the end, and stays.
    """
    kept = list(curve)
    for place in range(1, len(curve) - 1):
        before, (seconds, psnr), after = curve[place - 1 : place + 2]
        span = after[0] - before[0]
        share = (seconds - before[0]) / span if span > 0 else 1.0
        line = before[1] + share * (after[1] - before[1])
        kept[place] = (seconds, min(psnr, line))
    if len(curve) > 1:
        kept[0] = (curve[0][0], min(curve[0][1], curve[1][1]))
    return kept


def reached(curve: Sequence[Point], psnr: float, tolerance: float = TOLERANCE) -> Reached:
    for place, (seconds, found) in enumerate(curve):
        later = curve[place + 1][1] if place + 1 < len(curve) else math.inf
        if found < psnr or later < psnr * (1 - tolerance):
            continue
        if place == 0:
            return Reached(seconds, early=True)
        before, low = curve[place - 1]
        if low >= psnr:  # a spike that nothing confirmed stands before it
            return Reached(seconds)
        return Reached(before + (psnr - low) / (found - low) * (seconds - before))
    return Reached(curve[-1][0] if curve else math.nan, never=True)


def quality_after(curve: Sequence[Point], seconds: float) -> float | None:
    """None before the first evaluation."""
    if not curve or seconds < curve[0][0]:
        return None
    for (before, low), (after, high) in pairwise(curve):
        if before <= seconds <= after:
            return low + (high - low) * (seconds - before) / (after - before) if after > before else high
    return curve[-1][1]


def trajectory_figure(
    runs: Sequence[RunSample], reference: str, candidate: str, aim: Aim, goal: Goal, noise: NoiseFloor | None
) -> Figure:
    arms = runs_of(runs, reference), runs_of(runs, candidate)
    lacking = [words for arm in arms for words in _off_the_grid(arm, goal)]
    curves = [{run.name: points(run, goal) for run in arm} for arm in arms]
    if lacking or not all(arms):
        empty = Figure(_name(aim, goal), {}, estimated({}, How()), over="seeds", lacking=tuple(lacking))
        return replace(empty, unit=_unit(aim))
    made = _time if aim is Aim.TIME else _quality
    figure = made(arms, curves, goal, noise)
    return replace(figure, lacking=(*figure.lacking, *_few_seeds(arms, len(figure.samples))))


def _name(aim: Aim, goal: Goal) -> str:
    return f"time to {goal.psnr:g} dB" if aim is Aim.TIME else f"PSNR after {goal.seconds:g} s"


def _unit(aim: Aim) -> str:
    return "s" if aim is Aim.TIME else "dB"


Arms = tuple[list[RunSample], list[RunSample]]
Curves = Sequence[Mapping[str, Sequence[Point]]]


def _time(arms: Arms, curves: Curves, goal: Goal, noise: NoiseFloor | None) -> Figure:
    times = [
        {run.name: reached(curve[run.name], goal.psnr, goal.tolerance) for run in arm}
        for arm, curve in zip(arms, curves, strict=True)
    ]
    logs = [_by_seed(arm, {name: math.log(max(t.seconds, 1e-9)) for name, t in found.items()})
            for arm, found in zip(arms, times, strict=True)]  # fmt: skip
    samples = {seed: logs[0][seed] - logs[1][seed] for seed in sorted(logs[0].keys() & logs[1].keys())}
    never = [
        _count(arm, found, "never", f"never reached {goal.psnr:g} dB") for arm, found in _both(arms, times)
    ]
    words = f"had {goal.psnr:g} dB at the first evaluation already; a finer grid tells when"
    early = [_count(arm, found, "early", words) for arm, found in _both(arms, times)]
    return Figure(
        _name(Aim.TIME, goal),
        samples,
        estimated(samples, How(noise=noise)),
        *(mean([t.seconds for t in found.values()]) for found in times),
        unit="s",
        over="seeds",
        no_gain=(*never[1], *early[0], *early[1]),
        no_loss=(*never[0], *early[0], *early[1]),
        noise=noise,
    )


def _both(
    arms: Arms, times: Sequence[Mapping[str, Reached]]
) -> list[tuple[list[RunSample], Mapping[str, Reached]]]:
    return list(zip(arms, times, strict=True))


def _count(arm: Sequence[RunSample], found: Mapping[str, Reached], what: str, words: str) -> list[str]:
    number = sum(getattr(item, what) for item in found.values())
    return [f"{number} of {len(arm)} runs of {arm[0].arm.name} {words}."] if number else []


def _quality(arms: Arms, curves: Curves, goal: Goal, noise: NoiseFloor | None) -> Figure:
    found = [{run.name: quality_after(curve[run.name], goal.seconds) for run in arm}
             for arm, curve in zip(arms, curves, strict=True)]  # fmt: skip
    lacking = [
        f"{goal.seconds:g} s lie before the first evaluation of {arm[0].arm.name}: a finer grid tells more."
        for arm, values in zip(arms, found, strict=True)
        if any(value is None for value in values.values())
    ]
    known = [{name: value for name, value in values.items() if value} for values in found]
    logs = [_by_seed([run for run in arm if run.name in values], {n: math.log(v) for n, v in values.items()})
            for arm, values in zip(arms, known, strict=True)]  # fmt: skip
    samples = {seed: logs[1][seed] - logs[0][seed] for seed in sorted(logs[0].keys() & logs[1].keys())}
    return Figure(
        _name(Aim.QUALITY, goal),
        samples,
        estimated(samples, How(noise=noise)),
        *(mean(list(values.values())) if values else math.nan for values in known),
        unit="dB",
        over="seeds",
        lacking=tuple(lacking),
        noise=noise,
    )


def _by_seed(arm: Sequence[RunSample], values: Mapping[str, float]) -> dict[int, float]:
    settable = all(run.seed_set for run in arm)
    found: dict[int, list[float]] = {}
    for run in arm:
        found.setdefault(run.seed if settable else 0, []).append(values[run.name])
    return {seed: mean(some) for seed, some in found.items()}


def _off_the_grid(arm: Sequence[RunSample], goal: Goal) -> list[str]:
    """Every run owes an evaluation at every step of the grid: the one left out may be the one that hurts."""
    short = [run for run in arm if len(points(run, goal)) < len(goal.steps)]
    if not short:
        return []
    there = len(points(short[0], goal))
    return [
        f"{len(short)} of {len(arm)} runs of {arm[0].arm.name} were not evaluated on the whole grid "
        f"({there} of {len(goal.steps)} steps have a PSNR on the {goal.split} views and a time)."
    ]


def _few_seeds(arms: Arms, seeds: int) -> list[str]:
    if not all(run.seed_set for arm in arms for run in arm):
        return ["the trainer takes no seed: repeats of one say nothing about others."]
    return [f"{seeds} of at least {FEWEST_SEEDS} seeds."] if seeds < FEWEST_SEEDS else []
