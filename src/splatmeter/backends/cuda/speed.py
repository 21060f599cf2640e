"""Milliseconds of each kernel by the card's own clock, beside what the card could do at best.

The limits are computed from the clocks and widths that the driver tells, the work by the model in work.py: a
share of 60 % means that the model's bytes would take 60 % of that time at the full bandwidth.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from splatmeter.backend import Model, TrainStep
from splatmeter.backends.cuda.model import CudaModel
from splatmeter.backends.cuda.work_model import TILE, Counts, Work, work_of

WARM_UP = 3
TIMED = 12
# What the driver calls them: kHz, a count, kHz, bits.
_CLOCK, _MULTIPROCESSORS, _MEMORY_CLOCK, _BUS_WIDTH = 13, 16, 36, 37
_ISSUES = 4  # warp instructions a multiprocessor begins in a cycle
_TRANSFERS = 2  # of the memory bus in a cycle of the clock that the driver tells


@dataclass(frozen=True, slots=True)
class Limits:
    """Computed, not measured; 0 where the driver does not tell."""

    multiprocessors: int
    gigahertz: float
    bandwidth: float
    """GB/s."""

    @property
    def issue_rate(self) -> float:
        """Thousand millions of warp instructions a second."""
        return self.multiprocessors * _ISSUES * self.gigahertz

    def line(self) -> str:
        return (
            f"limits, computed from what the driver tells: {self.bandwidth:.0f} GB/s, {self.issue_rate:.0f} "
            f"G warp instructions/s ({self.multiprocessors} multiprocessors at {self.gigahertz:.2f} GHz)"
        )


def limits_of(card: Any) -> Limits:
    return Limits(
        card.attribute(_MULTIPROCESSORS),
        card.attribute(_CLOCK) / 1e6,
        _TRANSFERS * card.attribute(_MEMORY_CLOCK) * card.attribute(_BUS_WIDTH) / 8e6,
    )


@dataclass(frozen=True, slots=True)
class KernelTime:
    name: str
    milliseconds: float
    """A step."""
    work: Work
    bandwidth_share: float | None
    issue_share: float | None
    """Shares of the card's limits, by the model; None where the model has nothing to say."""


@dataclass(frozen=True, slots=True)
class Speed:
    kernels: list[KernelTime]
    wall_milliseconds: float
    """A step without events between its kernels, by the host's clock."""
    counts: Counts
    limits: Limits

    @property
    def milliseconds(self) -> float:
        return sum(kernel.milliseconds for kernel in self.kernels)

    def lines(self) -> list[str]:
        c = self.counts
        told = [
            f"a step: {self.wall_milliseconds:.2f} ms by the host's clock, "
            f"{self.milliseconds:.2f} ms in kernels",
            f"{c.rows:,.0f} Gaussians, {c.visible:,.0f} visible, {c.pairs:,.0f} pairs: "
            f"{c.pairs / max(c.rows, 1):.2f} a Gaussian, {c.pairs / max(c.visible, 1):.2f} a visible one, "
            f"{c.pairs / c.tiles:.0f} a tile of {TILE}x{TILE}",
            self.limits.line(),
            f"{'kernel':<26}{'ms':>9}{'step':>8}{'bandwidth':>11}{'issue':>8}   (work by a model: work.py)",
        ]
        for kernel in self.kernels:
            share = kernel.milliseconds / max(self.milliseconds, 1e-9)
            shares = f"{_percent(kernel.bandwidth_share):>11}{_percent(kernel.issue_share):>8}"
            told.append(f"{kernel.name:<26}{kernel.milliseconds:>9.3f}{share:>8.1%}{shares}")
        return told


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def kernel_times(times: dict[str, float], counts: Counts, limits: Limits) -> list[KernelTime]:
    """From milliseconds a step; the slowest first."""
    works, found = work_of(counts), []
    for name, milliseconds in times.items():
        work = works.get(name, Work(0.0))
        shares = [
            amount / (1e6 * milliseconds * limit) if amount and milliseconds and limit else None
            for amount, limit in ((work.bytes, limits.bandwidth), (work.instructions, limits.issue_rate))
        ]
        found.append(KernelTime(name, milliseconds, work, *shares))
    return sorted(found, key=lambda kernel: -kernel.milliseconds)


def measured(model: Model, orders: Sequence[TrainStep], steps: int = TIMED) -> Speed:
    """The orders in turn: some to warm up, some by the host's clock, then those with events in between."""
    assert isinstance(model, CudaModel)
    card, turn = model.card, 0
    visible: list[int] = []
    pairs: list[int] = []

    def step() -> Any:
        nonlocal turn
        ticket = model.train_step(orders[turn % len(orders)])
        turn += 1
        visible.append(card.visible_count)
        pairs.append(card.pair_count)
        return ticket

    for _ in range(WARM_UP):
        step().read()
    begin = time.perf_counter()
    tickets = [step() for _ in range(steps)]
    tickets[-1].read()
    wall = time.perf_counter() - begin
    card.timings()
    card.set_timing(True)
    visible.clear()
    pairs.clear()
    try:
        for _ in range(steps):
            step().read()
        times = card.timings()
    finally:
        card.set_timing(False)
    seen = fmean(visible)
    camera = orders[0].camera
    counts = Counts(model.count, seen, seen, fmean(pairs), camera.width, camera.height)
    limits = limits_of(card)
    a_step = {name: total / steps for name, total in times.items()}
    return Speed(kernel_times(a_step, counts, limits), 1e3 * wall / steps, counts, limits)
