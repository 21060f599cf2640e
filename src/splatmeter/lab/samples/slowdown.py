"""Stretches of a run that are far slower than earlier stretches of the same work."""

from __future__ import annotations

import itertools

from splatmeter.lab.samples.run_sample import RatePoint

COLLAPSE = 3.0


EQUAL_COUNT = 0.1
"""Counts within a tenth of each other are equal work, beside a factor of three."""


SUSTAINED_SHARE = 0.25


SUSTAINED_STRETCHES = 3
"""A collapse lasts: this share of a run's time and this many of its about twenty stretches. One slow stretch
is the machine's own business; with 0.3 % of them half of all comparisons had one.
"""


def slowdown(rates: tuple[RatePoint, ...]) -> float | None:
    """How many times slower it became at equal work and stayed; None if it did not."""
    fallen = slow_stretches(rates)
    return max((speed_before(rates, i) / rates[i].steps_per_second for i in fallen), default=None)


def slow_stretches(rates: tuple[RatePoint, ...]) -> list[int]:
    """The slow stretches, if they are many and long enough to be no accident."""
    seconds = stretch_seconds(rates)
    found = [
        i for i in range(len(rates)) if 0 < COLLAPSE * rates[i].steps_per_second < speed_before(rates, i)
    ]
    share = sum(seconds[i] for i in found) / (sum(seconds) or 1.0)
    return found if len(found) >= SUSTAINED_STRETCHES and share >= SUSTAINED_SHARE else []


def speed_before(rates: tuple[RatePoint, ...], place: int) -> float:
    """The speed that several earlier stretches of equal work reached: one fast frame is no standard. 0 if
    there are too few.
    """
    later = rates[place]
    equal = [point.steps_per_second for point in rates[:place] if _equal_work(point, later)]
    return sorted(equal)[-SUSTAINED_STRETCHES] if len(equal) >= SUSTAINED_STRETCHES else 0.0


def stretch_seconds(rates: tuple[RatePoint, ...]) -> list[float]:
    """How long each stretch took; the first is taken to be as long as the second."""
    steps = [after.step - before.step for before, after in itertools.pairwise(rates)]
    steps = [*steps[:1], *steps] or [1] * len(rates)
    return [
        count / point.steps_per_second if point.steps_per_second > 0 else 0.0
        for count, point in zip(steps, rates, strict=True)
    ]


def _equal_work(a: RatePoint, b: RatePoint) -> bool:
    return abs(a.gaussians - b.gaussians) <= EQUAL_COUNT * max(a.gaussians, b.gaussians)
