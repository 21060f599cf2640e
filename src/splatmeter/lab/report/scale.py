"""From values to places on a drawing, with ticks at numbers a person would choose."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Scale:
    """`low` lies at `start`, `high` at `end`; values outside are drawn at the border."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...] = ()
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, high, inside = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, inside = math.log(low), math.log(high), math.log(inside)
        share = (inside - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def label(self, tick: float) -> str:
        return tick_text(tick, self.ticks)


def nice_ticks(low: float, high: float, about: int) -> tuple[float, ...]:
    """Multiples of 1, 2 or 5 times a power of ten, inside [low, high]."""
    step = _nice_step((high - low) / max(1, about))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return tuple(round(n * step, 12) for n in range(first, last + 1))


def linear(values: Iterable[float], start: float, end: float, about: int = 5, zero: bool = False) -> Scale:
    """Bounds are extended to whole ticks; with `zero` they begin at 0."""
    low, high = _bounds(values)
    low = min(low, 0.0) if zero else low
    if high - low < 1e-9 * max(abs(high), abs(low), 1e-9):
        margin = abs(high) * 0.01 or 1.0
        low, high = (low if zero else low - margin), high + margin
    step = _nice_step((high - low) / max(1, about))
    low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
    return Scale(low, high, start, end, nice_ticks(low, high, about))


def exact(low: float, high: float, start: float, end: float, about: int = 5) -> Scale:
    """Bounds as they are: for time, which ends where it ends."""
    high = high if high > low else low + 1.0
    return Scale(low, high, start, end, nice_ticks(low, high, about))


def ratios(values: Iterable[float], start: float, end: float, about: int = 6) -> Scale:
    """Logarithmic around 1, so that twice as fast and half as fast lie equally far from it."""
    known = [min(max(value, 0.1), 10.0) for value in values if math.isfinite(value) and value > 0]
    reach = max([abs(math.log(value)) for value in known] + [0.01])
    low = min([math.log(value) for value in known] + [-0.2 * reach]) - 0.06 * reach
    high = max([math.log(value) for value in known] + [0.2 * reach]) + 0.06 * reach
    low, high = math.exp(low), math.exp(high)
    ticks = nice_ticks(low, high, about)
    if high / low > 4:
        ticks = tuple(t for t in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0) if low <= t <= high)
    return Scale(low, high, start, end, ticks, logarithmic=True)


def decades(values: Iterable[float], start: float, end: float) -> Scale:
    """Logarithmic, for a loss that falls over orders of magnitude."""
    known = [value for value in values if math.isfinite(value) and value > 0] or [0.1, 1.0]
    low, high = min(known) / 1.05, max(known) * 1.05
    found = [
        m * 10.0**power
        for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for m in (1, 2, 5)
    ]
    ticks = tuple(round(t, 12) for t in found if low <= t <= high)
    if len(ticks) < 3:
        ticks = nice_ticks(low, high, 4)
    return Scale(low, high, start, end, ticks, logarithmic=True)


def tick_text(tick: float, ticks: tuple[float, ...]) -> str:
    """As many decimals as the ticks need to differ, the same for all; large numbers with thin groups."""
    steps = [abs(b - a) for a, b in pairwise(ticks) if b != a]
    step = min(steps, default=abs(tick) or 1.0)
    decimals = min(6, max(0, -math.floor(math.log10(step) + 1e-9)))
    return f"{tick:,.{decimals}f}".replace(",", "\u202f")


def _bounds(values: Iterable[float]) -> tuple[float, float]:
    known = [value for value in values if math.isfinite(value)]
    return (min(known), max(known)) if known else (0.0, 1.0)


def _nice_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    return next((m * power for m in (1, 2, 5) if m * power >= rough * 0.999), 10 * power)
