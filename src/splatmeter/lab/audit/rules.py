"""The list of rules, in the order in which findings are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from splatmeter.lab.audit import (
    arms,
    hidden_time,
    memory_figures,
    metrics,
    speed,
    views,
)
from splatmeter.lab.samples.finding import Finding
from splatmeter.lab.samples.run_sample import RunSample

PER_RUN: tuple[Callable[[RunSample], list[Finding]], ...] = (
    views.leaked_test_views,
    views.unchecked_views,
    metrics.judged_twice,
    hidden_time.went_back,
    memory_figures.below_the_floor,
    memory_figures.doubtful_sampling,
    memory_figures.impossible_values,
    speed.collapse,
    speed.allocator_retries,
    speed.unsteady_card,
)
PER_COMPARISON: tuple[Callable[[Sequence[RunSample]], list[Finding]], ...] = (
    arms.undeclared_differences,
    arms.different_counts,
    hidden_time.hidden_time,
    metrics.different_views,
    metrics.equal_that_should_differ,
    metrics.different_that_should_be_equal,
)


def audit(runs: Sequence[RunSample]) -> list[Finding]:
    """All findings on the runs of one comparison; the first arm that appears is the reference.

    What the arms declare is against each other: for a comparison with the baseline the declarations of the
    phases between belong to the candidate's `Arm.declares` too.
    """
    runs = list(runs)
    findings = [finding for rule in PER_COMPARISON for finding in rule(runs)]
    for rule in PER_RUN:
        findings += _once_per_arm([finding for run in runs for finding in rule(run)])
    return findings


def _once_per_arm(findings: Sequence[Finding]) -> list[Finding]:
    """The same objection to every block is told once."""
    seen: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        seen.setdefault((finding.kind, finding.where), finding)
    return list(seen.values())
