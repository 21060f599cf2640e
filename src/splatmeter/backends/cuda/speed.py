"""Milliseconds of each kernel by the card's own clock, beside what the card could do at best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from splatmeter.backend import Model, TrainStep
from splatmeter.backends.cuda.model import CudaModel

WARM_UP = 3
_CLOCK, _MULTIPROCESSORS, _MEMORY_CLOCK, _BUS_WIDTH = (
    13,
    16,
    36,
    37,
)  # what the driver calls them; kHz and bits
_ISSUES = 4  # warp instructions a multiprocessor begins in a cycle


@dataclass(frozen=True, slots=True)
class KernelTime:
    name: str
    milliseconds: float
    """A step."""


@dataclass(frozen=True, slots=True)
class Speed:
    kernels: list[KernelTime]
    visible: int
    pairs: int
    bandwidth: float
    """GB/s by the card's clocks."""
    issue_rate: float
    """Thousand millions of warp instructions a second, likewise."""

    @property
    def milliseconds(self) -> float:
        return sum(kernel.milliseconds for kernel in self.kernels)

    def lines(self) -> list[str]:
        told = [
            f"a step: {self.milliseconds:.2f} ms in kernels, {self.visible:,} visible, {self.pairs:,} pairs",
            f"by its clocks it has {self.bandwidth:.0f} GB/s and {self.issue_rate:.0f} G warp instructions/s",
        ]
        for kernel in self.kernels:
            share = kernel.milliseconds / max(self.milliseconds, 1e-9)
            told.append(f"{kernel.name:<28}{kernel.milliseconds:>10.3f} ms{share:>8.1%}")
        return told


def measured(model: Model, orders: Sequence[TrainStep], steps: int = 12) -> Speed:
    """The orders in turn: some steps to warm up, then those that are timed."""
    assert isinstance(model, CudaModel)
    card = model.card
    for number in range(WARM_UP):
        model.train_step(orders[number % len(orders)]).read()
    card.timings()
    card.set_timing(True)
    for number in range(steps):
        model.train_step(orders[number % len(orders)]).read()
    times = card.timings()
    card.set_timing(False)
    kernels = [KernelTime(name, total / steps) for name, total in times.items()]
    return Speed(
        kernels=sorted(kernels, key=lambda kernel: -kernel.milliseconds),
        visible=card.visible_count,
        pairs=card.pair_count,
        bandwidth=2 * card.attribute(_MEMORY_CLOCK) * card.attribute(_BUS_WIDTH) / 8e6,
        issue_rate=card.attribute(_MULTIPROCESSORS) * _ISSUES * card.attribute(_CLOCK) / 1e6,
    )
