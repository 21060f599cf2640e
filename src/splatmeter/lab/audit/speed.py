"""Speed that collapses while the work stays the same."""

from __future__ import annotations

import itertools

from splatmeter.lab.compare.samples import Finding, RatePoint, RunSample, Severity

COLLAPSE = 3.0
EQUAL_COUNT = 0.1
"""Counts within a tenth of each other are equal work, beside a factor of three."""
SUSTAINED_SHARE = 0.25
SUSTAINED_STRETCHES = 3
"""A collapse lasts: this share of a run's time and this many of its about twenty stretches. One slow stretch
is the machine's own business; with 0.3 % of them half of all comparisons had one.
"""
BUSY = 0.10
"""Share of the machine that others must have used to be named as the cause."""
NO_SPILL = ("", "none seen", "not observable")


def collapse(run: RunSample) -> list[Finding]:
    """Steps per second that fall more than threefold at equal Gaussians and stay there."""
    seconds = _seconds(run.rates)
    fallen = _fallen(run.rates)
    if not fallen:
        return []
    share = sum(seconds[i] for i in fallen) / (sum(seconds) or 1.0)
    worst = max(fallen, key=lambda i: _before(run.rates, i) / run.rates[i].steps_per_second)
    point, before = run.rates[worst], _before(run.rates, worst)
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


def slowdown(rates: tuple[RatePoint, ...]) -> float | None:
    """How many times slower it became at equal work and stayed; None if it did not."""
    fallen = _fallen(rates)
    return max((_before(rates, i) / rates[i].steps_per_second for i in fallen), default=None)


def _fallen(rates: tuple[RatePoint, ...]) -> list[int]:
    """The slow stretches, if they are many and long enough to be no accident."""
    seconds = _seconds(rates)
    found = [i for i in range(len(rates)) if 0 < COLLAPSE * rates[i].steps_per_second < _before(rates, i)]
    share = sum(seconds[i] for i in found) / (sum(seconds) or 1.0)
    return found if len(found) >= SUSTAINED_STRETCHES and share >= SUSTAINED_SHARE else []


def allocator_retries(run: RunSample) -> list[Finding]:
    """The allocator had to free and ask again inside the timed window."""
    if run.allocator_retries <= 0:
        return []
    sentence = (
        f"{run.name} had {run.allocator_retries} allocator retries inside its {run.timed_steps} timed steps: "
        "the card was full and the time includes the retries."
    )
    return [Finding("allocator retries", sentence, Severity.DOUBT, run.arm.name)]


def _before(rates: tuple[RatePoint, ...], place: int) -> float:
    """The speed that several earlier stretches of equal work reached: one fast frame is no standard. 0 if
    there are too few.
    """
    later = rates[place]
    equal = [point.steps_per_second for point in rates[:place] if _equal_work(point, later)]
    return sorted(equal)[-SUSTAINED_STRETCHES] if len(equal) >= SUSTAINED_STRETCHES else 0.0


def _seconds(rates: tuple[RatePoint, ...]) -> list[float]:
    """How long each stretch took; the first is taken to be as long as the second."""
    steps = [after.step - before.step for before, after in itertools.pairwise(rates)]
    steps = [*steps[:1], *steps] or [1] * len(rates)
    return [
        count / point.steps_per_second if point.steps_per_second > 0 else 0.0
        for count, point in zip(steps, rates, strict=True)
    ]


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


def _equal_work(a: RatePoint, b: RatePoint) -> bool:
    return abs(a.gaussians - b.gaussians) <= EQUAL_COUNT * max(a.gaussians, b.gaussians)
