"""Speed that collapses while the work stays the same."""

from __future__ import annotations

from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.run_sample import RunSample
from splatmeter.lab.samples.slowdown import slow_stretches, speed_before, stretch_seconds

BUSY = 0.10
"""Share of the machine that others must have used to be named as the cause."""
NO_SPILL = ("", "none seen", "not observable")


def collapse(run: RunSample) -> list[Finding]:
    """Steps per second that fall more than threefold at equal Gaussians and stay there."""
    seconds = stretch_seconds(run.rates)
    fallen = slow_stretches(run.rates)
    if not fallen:
        return []
    share = sum(seconds[i] for i in fallen) / (sum(seconds) or 1.0)
    worst = max(fallen, key=lambda i: speed_before(run.rates, i) / run.rates[i].steps_per_second)
    point, before = run.rates[worst], speed_before(run.rates, worst)
    sentence = (
        f"{run.name} spends {100 * share:.0f} % of its time at less than a third of the speed it had before "
        f"at equal work ({point.gaussians:,} Gaussians): a {before / point.steps_per_second:.1f}-fold fall "
        f"from {before:.3g} it/s to {point.steps_per_second:.3g} it/s at step {point.step}; {_cause(run)}."
    )
    return [Finding("speed collapse", sentence, Severity.DOUBT, run.arm.name)]


def unsteady_card(run: RunSample) -> list[Finding]:
    """A clock that moves, or a card that is held back, makes small differences doubtful in every arm."""
    return [
        Finding("card", f"{run.name}: {warning}.", Severity.NOTE, f"{run.arm.name}, {place}")
        for place, warning in enumerate(run.card_warnings)
    ]


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
    """Named only where a counter shows it."""
    if run.spill not in NO_SPILL:
        return f"its memory spilled over ({run.spill})"
    if run.allocator_retries:
        return f"the card was full ({run.allocator_retries} allocator retries)"
    if run.throttled:
        return f"a core was throttled {run.throttled} times"
    if run.foreign_cpu_share is not None and run.foreign_cpu_share > BUSY:
        return f"others used {100 * run.foreign_cpu_share:.0f} % of the machine"
    return "no counter shows why"
