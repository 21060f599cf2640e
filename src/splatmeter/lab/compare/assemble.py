"""From runs to a comparison: pairs, quality and audit put together in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from splatmeter.lab.audit.arms import quality_obstacle
from splatmeter.lab.audit.metrics import printed_and_computed
from splatmeter.lab.audit.rules import audit
from splatmeter.lab.compare.coverage import covered
from splatmeter.lab.compare.noise import NoiseFloor
from splatmeter.lab.compare.quality import TOLERANCE, compare_quality, runs_of, suspicious_gains
from splatmeter.lab.compare.ratio import evidence, log_ratios, slice_log_ratios
from splatmeter.lab.compare.samples import NOTHING, Finding, RunSample, SliceSample, Subject
from splatmeter.lab.compare.sequential import evidence_so_far
from splatmeter.lab.compare.verdict import TOLERATED_DIFFERENCE, Comparison


@dataclass(frozen=True, slots=True)
class Rules:
    """What was fixed before the runs."""

    tolerance: float = TOLERANCE
    """Of quality, as a fraction."""
    tolerated_difference: float = TOLERATED_DIFFERENCE
    """Of speed (δ), as a fraction."""
    until_decided: bool = False
    """The number of blocks was not fixed: use the anytime-valid interval."""
    noise: NoiseFloor | None = None
    sequence: float = 0.0
    subject: Subject = NOTHING
    evaluations: tuple[tuple[str, int], ...] = ()
    """(split, step) that the protocol promises to judge in every run."""
    findings: tuple[Finding, ...] = ()
    """On the evidence itself: runs that failed, results that were changed."""


def compare(
    runs: Sequence[RunSample],
    reference: str,
    candidate: str,
    rules: Rules = Rules(),  # noqa: B008 - frozen
    slices: Sequence[SliceSample] = (),
) -> Comparison:
    """`candidate` against `reference` over the blocks that have both; slices, where given, give the speed."""
    if reference == candidate:
        raise ValueError(f"{reference} against itself: give the second arm of an A/A another name")
    a, b = runs_of(runs, reference), runs_of(runs, candidate)
    evaluated = covered([*a, *b], rules.evaluations)
    pair = evaluated.runs
    ratios = slice_log_ratios if slices else log_ratios
    differences = ratios(slices or pair, reference, candidate)  # type: ignore[arg-type]
    comparable = not quality_obstacle(pair)
    quality = compare_quality(pair, reference, candidate, rules.tolerance) if comparable else ()
    findings: list[Finding] = [*rules.findings, *audit(pair), *printed_and_computed([*a, *b])]
    findings += suspicious_gains(quality, b[0].arm) if b else []
    return Comparison(
        reference,
        candidate,
        evidence_so_far(differences) if rules.until_decided else evidence(differences),
        quality,
        tuple(findings),
        rules.noise,
        rules.tolerated_difference,
        tuple(run.name for run in pair),
        rules.sequence,
        rules.subject,
        evaluated.lacking if comparable else (),
    )
