"""What a person is told about memory: a range at the start, and on the way a line whenever more is known."""

from __future__ import annotations

from splatmeter.events import Progress, Started
from splatmeter.units import bytes_text, count_text

NARROW = 1.3
"""A range whose ends differ by less is told as one number, the larger."""
WORTH_TELLING = 1.25
"""A forecast that has changed by so much is told again."""


def at_the_start(event: Started) -> str:
    """One line; empty where the run does not tell."""
    told = event.memory
    if not {"low", "high", "low_gaussians", "high_gaussians"} <= set(told):
        return ""
    counts = span(count_text(told["low_gaussians"]), count_text(told["high_gaussians"]))
    needed = span(bytes_text(told["low"]), bytes_text(told["high"]))
    if "limit" in told:
        return f"Memory: {needed} of {bytes_text(told['limit'])} allowed, {counts} Gaussians"
    return f"Memory expected: {needed}, with {counts} Gaussians"


def on_the_way(event: Progress) -> str:
    """One line; empty while it is too early to tell."""
    low, high = event.forecast_low_bytes, event.forecast_bytes
    if not high:
        return ""
    peak = f"at most {bytes_text(high)}" if high < NARROW * low else span(bytes_text(low), bytes_text(high))
    return f"[step {event.step}] memory: {bytes_text(event.memory_bytes)} now, {peak} at its peak"


class Forecasts:
    """Which of them are worth a line: the first, and what differs much from the last one told."""

    def __init__(self) -> None:
        self._told: tuple[int, int] | None = None

    def worth_telling(self, event: Progress) -> bool:
        now = (event.forecast_low_bytes, event.forecast_bytes)
        if not now[1] or (self._told is not None and not _far_apart(self._told, now)):
            return False
        self._told = now
        return True


def _far_apart(before: tuple[int, int], now: tuple[int, int]) -> bool:
    """By the upper end: it is what one has to have. Or the range has become one number."""
    ratio = now[1] / before[1]
    narrowed = now[1] < NARROW * now[0] and before[1] >= NARROW * before[0]
    return not 1 / WORTH_TELLING < ratio < WORTH_TELLING or narrowed


def span(low: str, high: str) -> str:
    """'0.6 to 3.4 GiB': a unit that both have is said once."""
    number, _, unit = low.partition(" ")
    if low == high:
        return low
    return f"{number} to {high}" if unit == high.partition(" ")[2] else f"{low} to {high}"
