"""Whether the card ran over into shared memory: two signs out of three, as one alone has other causes.

Shared memory also grows because a program pins memory of the host, dedicated memory also falls because a
cache is emptied or a process ends. So shared memory counts only beyond what it was while the card had room,
and a fall of dedicated memory only where shared memory took it over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from splatmeter.lab.monitor.windows import AdapterMemory
from splatmeter.units import bytes_text

SMALLEST_SPILL = 128 * 2**20
DROP = 64 * 2**20
SLOWER = 3.0
FULL = 0.9
"""Share of the card below which nothing has to leave it."""


@dataclass(frozen=True, slots=True)
class Context:
    """What is known beside the counters."""

    card_bytes: int
    idle_shared: int | None = None
    """Before the program began; None where nobody looked."""
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


def spill_seen(samples: Sequence[AdapterMemory], known: Context) -> Spill:
    """One adapter's samples while training, about a second apart."""
    told = [sample for sample in samples if sample.shared is not None]
    explained = _explained(told, known)
    signs = [sign for sign in (_shared(told, known, explained), _pressed(samples, known, explained)) if sign]
    signs += [sign] if (sign := _overfull(known)) else []
    return Spill(bool(told), bool(told) and len(signs) >= 2, tuple(signs))


def blind(samples: Sequence[AdapterMemory], known: Context) -> bool:
    """Whether a spill may have begun before anybody looked: no reading from before, and no room at first."""
    return known.idle_shared is None and bool(samples) and not _has_room(samples[0], known)


def _has_room(sample: AdapterMemory, known: Context) -> bool:
    return sample.dedicated is not None and sample.dedicated < FULL * known.card_bytes


def _explained(samples: Sequence[AdapterMemory], known: Context) -> list[int]:
    """For each sample the shared memory that needs no full card: the desktop's, and what is pinned."""
    first = min((sample.shared or 0 for sample in samples), default=0)
    level = (first if known.idle_shared is None else known.idle_shared) + known.pinned
    found: list[int] = []
    room = True
    for sample in samples:
        room = room and _has_room(sample, known)  # once it was full, what left it may come back at any time
        level = max(level, sample.shared or 0) if room else level
        found.append(level)
    return found


def _shared(samples: Sequence[AdapterMemory], known: Context, explained: Sequence[int]) -> str:
    """Shared memory above what is explained, in two samples running."""
    limit = max(SMALLEST_SPILL, known.card_bytes // 100)
    above = [(sample.shared or 0) - level for sample, level in zip(samples, explained, strict=True)]
    if any(first > limit and second > limit for first, second in pairwise(above)):
        return f"shared memory rose by {bytes_text(max(above))}"
    return ""


def _pressed(samples: Sequence[AdapterMemory], known: Context, explained: Sequence[int]) -> str:
    """What is pinned is committed too, but needs no room on the card."""
    elsewhere = max(explained, default=known.idle_shared or 0)
    committed = max((sample.committed for sample in samples if sample.committed is not None), default=0)
    if committed - elsewhere > known.card_bytes:
        return f"{bytes_text(committed)} committed on a card of {bytes_text(known.card_bytes)}"
    moved = max((_moved(before, after) for before, after in pairwise(samples)), default=0)
    if moved > DROP:
        return f"dedicated memory gave {bytes_text(moved)} to shared memory while training"
    return ""


def _moved(before: AdapterMemory, after: AdapterMemory) -> int:
    """Bytes that left the card and appeared beside it; what was freed appears nowhere."""
    if None in (before.dedicated, after.dedicated, before.shared, after.shared):
        return 0
    left = before.dedicated - after.dedicated  # type: ignore[operator]
    came = after.shared - before.shared  # type: ignore[operator]
    return min(left, came) if came >= left / 2 else 0


def _overfull(known: Context) -> str:
    if known.reserved is not None and known.reserved + known.context > known.card_bytes:
        reserved = bytes_text(known.reserved + known.context)
        return f"{reserved} reserved on a card of {bytes_text(known.card_bytes)}"
    if known.slowdown is not None and known.slowdown > SLOWER:
        return f"{known.slowdown:.1f} times slower at equal Gaussians"
    return ""
