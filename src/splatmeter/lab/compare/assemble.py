"""From runs to a comparison: pairs, quality and audit put together in one call."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from splatmeter.lab.audit.arms import incomparable_quality
from splatmeter.lab.audit.metrics import printed_and_computed
from splatmeter.lab.audit.rules import audit
from splatmeter.lab.audit.untold_memory import untold_memory
from splatmeter.lab.compare.aim_figures import Figure, How
from splatmeter.lab.compare.comparison import TOLERATED_DIFFERENCE, Comparison
from splatmeter.lab.compare.covariate import STOLEN, adjusted, stolen_differences
from splatmeter.lab.compare.coverage import covered
from splatmeter.lab.compare.margins import TOLERANCE
from splatmeter.lab.compare.metric import MetricResult
from splatmeter.lab.compare.noise import NoiseFloor, noise_floor, with_noise
from splatmeter.lab.compare.peak_figures import memory_figures
from splatmeter.lab.compare.quality import compare_quality, runs_of, suspicious_gains
from splatmeter.lab.compare.ratio import SpeedEvidence, evidence, log_ratios, slice_log_ratios
from splatmeter.lab.compare.sequential import evidence_so_far
from splatmeter.lab.compare.trajectory import Goal, trajectory_figure
from splatmeter.lab.samples.aim import Aim
from splatmeter.lab.samples.finding import Finding
from splatmeter.lab.samples.run_sample import (
    NOTHING,
    RunSample,
    SliceSample,
    Subject,
)


@dataclass(frozen=True, slots=True)
class Control:
    """The runs of an A/A: what its two arms show in any figure is noise."""

    runs: Sequence[RunSample]
    first: str
    second: str
    until_decided: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """What was fixed before the runs."""

    tolerance: float = TOLERANCE
    """How much PSNR may fall, as a fraction; the other metrics get the margin that goes with it."""
    margins: Mapping[str, float] = field(default_factory=dict)
    """Margins that the user states for single metrics."""
    tolerated_difference: float = TOLERATED_DIFFERENCE
    """How much speed may differ (δ), as a fraction; also how much speed less memory may cost."""
    covariate: str = ""
    """'stolen': compare at equal stolen time (covariate.py)."""
    until_decided: bool = False
    """The number of blocks was not fixed: use the anytime-valid interval."""
    noise: NoiseFloor | None = None
    sequence: float = 0.0
    subject: Subject = NOTHING
    evaluations: tuple[tuple[str, int], ...] = ()
    """(split, step) that the protocol promises to judge in every run."""
    findings: tuple[Finding, ...] = ()
    """On the evidence itself: runs that failed, results that were changed."""
    aim: Aim = Aim.SPEED
    goal: Goal = dataclasses.field(default_factory=Goal)
    control: Control | None = None
    """For the figures of an aim; speed has `noise`."""


def compare(
    runs: Sequence[RunSample],
    reference: str,
    candidate: str,
    rules: Rules = Rules(),
    slices: Sequence[SliceSample] = (),
    quality_runs: Sequence[RunSample] = (),
) -> Comparison:
    """`candidate` against `reference` over the blocks that have both; slices, where given, give the speed.

    `quality_runs` of the same arms were made for quality alone: they count as seeds and never as times.
    """
    if reference == candidate:
        raise ValueError(f"{reference} against itself: give the second arm of an A/A another name")
    a, b = runs_of(runs, reference), runs_of(runs, candidate)
    untimed = [_untimed(run) for arm in (reference, candidate) for run in runs_of(quality_runs, arm)]
    evaluated = covered([*a, *b, *untimed], rules.evaluations)
    pair = evaluated.runs[: len(a) + len(b)]
    comparable = not incomparable_quality(evaluated.runs)
    quality = _quality(evaluated.runs, reference, candidate, rules) if comparable else ()
    findings: list[Finding] = [*rules.findings, *audit(evaluated.runs), *printed_and_computed([*a, *b])]
    findings += untold_memory([*a, *b]) if rules.aim.of_memory else []
    gained = rules.aim.of_a_trajectory  # better pictures at some step are what such a phase is for
    findings += suspicious_gains(quality, b[0].arm) if b and not gained else []
    return Comparison(
        reference,
        candidate,
        _speed(pair, slices, reference, candidate, rules),
        quality,
        tuple(findings),
        rules.noise,
        rules.tolerated_difference,
        tuple(run.name for run in pair),
        rules.sequence,
        rules.subject,
        evaluated.lacking if comparable else (),
        rules.aim,
        _figures([*a, *b], pair, (reference, candidate), rules),
        tolerance=rules.tolerance,
    )


def _figures(
    runs: Sequence[RunSample], judged: Sequence[RunSample], arms: tuple[str, str], rules: Rules
) -> tuple[Figure, ...]:
    """Peaks look at what trainers evaluated themselves, curves at what one judge made of both arms."""
    control = rules.control
    if rules.aim.of_memory:
        how = How(anytime=rules.until_decided)
        floors = _memory_floors(control) if control else ()
        return memory_figures(runs, *arms, how, floors)
    if not rules.aim.of_a_trajectory:
        return ()
    noise = None
    if control:
        twins = covered(control.runs, ()).runs
        told = trajectory_figure(twins, control.first, control.second, rules.aim, rules.goal, None)
        noise = noise_floor(SpeedEvidence(told.estimate)) if told.estimate.blocks else None
    return (trajectory_figure(judged, *arms, rules.aim, rules.goal, noise),)


def _memory_floors(control: Control) -> tuple[Figure, ...]:
    how = How(anytime=control.until_decided)
    found = memory_figures(control.runs, control.first, control.second, how)
    return tuple(
        dataclasses.replace(figure, noise=noise_floor(SpeedEvidence(figure.estimate)))
        for figure in found
        if figure.estimate.blocks
    )


def _speed(
    runs: Sequence[RunSample], slices: Sequence[SliceSample], reference: str, candidate: str, rules: Rules
) -> SpeedEvidence:
    """At equal stolen time, where the protocol asks for it and its rule allows; an A/A knows nothing of that
    and widens the plain interval only.
    """
    if slices:
        differences = slice_log_ratios(slices, reference, candidate)
    else:
        differences = log_ratios(runs, reference, candidate)
    stolen = None if slices else stolen_differences(runs, reference, candidate)
    return speed_evidence(differences, stolen, rules)


def speed_evidence(
    differences: Sequence[float], stolen: Sequence[float | None] | None, rules: Rules
) -> SpeedEvidence:
    """By the rule that the protocol fixed."""
    if rules.covariate == STOLEN and stolen is not None and not rules.until_decided:
        found = adjusted(differences, stolen)
        if found is not None:
            return found
    return with_noise(
        evidence_so_far(differences) if rules.until_decided else evidence(differences), rules.noise
    )


def _quality(
    runs: Sequence[RunSample], reference: str, candidate: str, rules: Rules
) -> tuple[MetricResult, ...]:
    """At the steps that the protocol names. What lies between on a grid of evaluations serves a curve; a
    phase that aims at the curve is gated at the end alone, where it has had all its steps.
    """
    named = {step for _, step in rules.evaluations}
    between = set(rules.goal.steps) - named
    if rules.aim.of_a_trajectory and named:
        between |= named - {max(named)}
    kept = [
        dataclasses.replace(run, evaluations=tuple(e for e in run.evaluations if e.step not in between))
        for run in runs
    ]
    return compare_quality(kept, reference, candidate, rules.tolerance, rules.margins)


def _untimed(run: RunSample) -> RunSample:
    """A run made for quality alone was not timed, so its speed is no reason to object."""
    return dataclasses.replace(run, rates=(), allocator_retries=0, clocks=None)
