"""Whether the card ran over into shared memory: two signs out of three, as one alone has other causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from splatmeter.lab.monitor.windows import AdapterMemory
from splatmeter.units import bytes_text

SMALLEST_SPILL = 128 * 2**20
DROP = 64 * 2**20
SLOWER = 3.0


@dataclass(frozen=True, slots=True)
class Context:
    """What is known beside the counters."""

    card_bytes: int
    idle_shared: int = 0
    pinned: int = 0
    reserved: int | None = None
    context: int = 0
    slowdown: float | None = None
    """Steps per second before / after at equal Gaussians."""


@dataclass(frozen=True, slots=True)
class Spill:
    observable: bool
    spilled: bool
    signs: tuple[str, ...]

    def __str__(self) -> str:
        if not self.observable:
            return "not observable"
        return "; ".join(self.signs) if self.spilled else "none seen"


def judge(samples: Sequence[AdapterMemory], known: Context) -> Spill:
    """One adapter's samples while training, about a second apart."""
    observable = any(sample.shared is not None for sample in samples)
    signs = [sign for sign in (_shared(samples, known), _pressed(samples, known), _overfull(known)) if sign]
    return Spill(observable, observable and len(signs) >= 2, tuple(signs))


def _shared(samples: Sequence[AdapterMemory], known: Context) -> str:
    """Shared memory above idle and pinned, in two samples running."""
    limit = max(SMALLEST_SPILL, known.card_bytes // 100)
    above = [
        -1 if sample.shared is None else sample.shared - known.idle_shared - known.pinned
        for sample in samples
    ]
    if any(first > limit and second > limit for first, second in pairwise(above)):
        return f"shared memory rose by {bytes_text(max(above))}"
    return ""


def _pressed(samples: Sequence[AdapterMemory], known: Context) -> str:
    committed = max((sample.committed for sample in samples if sample.committed is not None), default=0)
    if committed > known.card_bytes:
        return f"{bytes_text(committed)} committed on a card of {bytes_text(known.card_bytes)}"
    used = [sample.dedicated for sample in samples if sample.dedicated is not None]
    drop = max((before - after for before, after in pairwise(used)), default=0)
    return f"dedicated memory dropped by {bytes_text(drop)} while training" if drop > DROP else ""


def _overfull(known: Context) -> str:
    if known.reserved is not None and known.reserved + known.context > known.card_bytes:
        reserved = bytes_text(known.reserved + known.context)
        return f"{reserved} reserved on a card of {bytes_text(known.card_bytes)}"
    if known.slowdown is not None and known.slowdown > SLOWER:
        return f"{known.slowdown:.1f} times slower at equal Gaussians"
    return ""
