"""Speed that collapses while the work stays the same."""

from __future__ import annotations

from splatmeter.lab.compare.samples import Finding, RatePoint, RunSample, Severity

COLLAPSE = 3.0
EQUAL_COUNT = 0.1
"""Counts within a tenth of each other are equal work, beside a factor of three."""


def collapse(run: RunSample) -> list[Finding]:
    """Steps per second that fall more than threefold at equal Gaussians: on a card its memory has spilled
    over, on a processor others were using it.
    """
    for i, later in enumerate(run.rates):
        equal = [point for point in run.rates[:i] if _equal_work(point, later)]
        best = max(equal, key=lambda point: point.steps_per_second, default=None)
        if best is not None and best.steps_per_second > COLLAPSE * later.steps_per_second:
            sentence = (
                f"{run.name} falls from {best.steps_per_second:.3g} it/s at step {best.step} "
                f"({best.gaussians:,} Gaussians) to {later.steps_per_second:.3g} it/s at step {later.step} "
                f"({later.gaussians:,}), {best.steps_per_second / later.steps_per_second:.1f}-fold at equal "
                f"work: {_cause(run)}."
            )
            return [Finding("speed collapse", sentence, Severity.DOUBT, run.arm.name)]
    return []


def allocator_retries(run: RunSample) -> list[Finding]:
    """The allocator had to free and ask again inside the timed window."""
    if run.allocator_retries <= 0:
        return []
    sentence = (
        f"{run.name} had {run.allocator_retries} allocator retries inside its {run.timed_steps} timed steps: "
        "the card was full and the time includes the retries."
    )
    return [Finding("allocator retries", sentence, Severity.DOUBT, run.arm.name)]


def _cause(run: RunSample) -> str:
    if run.on_a_card or run.card_bytes:
        return "memory has probably spilled over"
    return "other programs were probably using the processor, or memory was short"


def _equal_work(a: RatePoint, b: RatePoint) -> bool:
    return abs(a.gaussians - b.gaussians) <= EQUAL_COUNT * max(a.gaussians, b.gaussians)
