"""Everything that looks at a run from outside: memory of the tree, the card, spill-over, and who else was
busy.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from splatmeter.lab.executor import Command, ProcessEnd
from splatmeter.lab.monitor import spill
from splatmeter.lab.monitor.counters import AdapterCounters, adapter_counters
from splatmeter.lab.monitor.tree import TreeSampler, tree
from splatmeter.lab.monitor.windows import is_wsl
from splatmeter.lab.samples.run_sample import RatePoint
from splatmeter.lab.samples.slowdown import slowdown
from splatmeter.lab.session.card_watch import CardWatch
from splatmeter.lab.session.stage_peaks import write_samples

_CORES = Path("/sys/devices/system/cpu")
NOT_OBSERVABLE = "not observable"


@dataclass(frozen=True, slots=True)
class Told:
    """What the run itself said, beside what is seen from outside."""

    peak_bytes: Mapping[str, int] = field(default_factory=dict)
    rates: tuple[RatePoint, ...] = ()
    last_progress_seconds: float | None = None


class Watch:
    """Made before the child, started with it, stopped at its end; asked for its record afterwards."""

    def __init__(self, sample: bool, command: Command | None = None) -> None:
        self.card = CardWatch(command) if sample else None
        self._counters: AdapterCounters | None = adapter_counters() if sample else None
        if self._counters:
            self._counters.start()
            self._counters.wait_for_the_first()
        self.sampler: TreeSampler | None = None
        self._sample = sample
        self._busy = self._stolen = self._begin = self._elapsed = 0.0
        self._throttled = 0
        self._foreign: float | None = None

    def start(self, pid: int) -> Watch:
        if self._sample and self.card:
            self.card.begin(lambda: tree(pid))
            self.sampler = TreeSampler(pid, device=self.card.look).start()
        self._busy, self._stolen = busy_seconds(), stolen_seconds()
        self._throttled = throttle_count()
        self._begin = time.perf_counter()
        return self

    def stop(self) -> None:
        self._elapsed = time.perf_counter() - self._begin
        self._foreign = busy_seconds() - self._busy
        self._stolen = stolen_seconds() - self._stolen
        self._throttled = throttle_count() - self._throttled
        if self.sampler:
            self.sampler.stop()
        if self._counters:
            self._counters.stop()
        if self.card:
            self.card.close()

    def record(
        self,
        outcome: ProcessEnd | None,
        folder: Path,
        partners: float = 0.0,
        told: Told | None = None,
    ) -> dict[str, Any]:
        """Fields of the run's result. What else the machine did is a covariate: a block is run again by the
        protocol's rule on it, and no run is ever dropped afterwards. `partners` are CPU seconds of arms that
        live at the same time.
        """
        if self.sampler and self.sampler.samples:
            write_samples(folder / "memory.csv", self.sampler.samples)
        elapsed = self._elapsed * (os.cpu_count() or 1)
        return {
            "foreign_cpu_share": self._foreign_share(outcome, partners),
            "stolen_share": self._stolen / elapsed if self._elapsed else None,
            "throttled": self._throttled,
            "card_bytes": self.card.total_bytes if self.card else None,
            "card": self.card.record(folder) if self.card else {},
            "shared_memory": self._spill(told or Told()),
        }

    def _foreign_share(self, outcome: ProcessEnd | None, partners: float) -> float | None:
        if outcome is None or self._foreign is None or self._elapsed <= 0 or not outcome.cpu_seconds:
            return None  # a system that does not tell the run's own time cannot tell the others'
        others = self._foreign - outcome.cpu_seconds - partners
        return max(0.0, others / (self._elapsed * (os.cpu_count() or 1)))

    def _spill(self, told: Told) -> dict[str, Any]:
        """Samples from before the start are the level at rest, those after the last step are the end."""
        counters = self._counters
        samples = counters.busiest() if counters else []
        total = self.card.total_bytes if self.card else None
        if counters is None or not samples or total is None:
            return {"verdict": NOT_OBSERVABLE} | _why(bool(samples))
        idle = [s.shared for s in samples if s.seconds < self._begin and s.shared is not None]
        end = self._begin + (told.last_progress_seconds or self._elapsed)
        training = [sample for sample in samples if self._begin <= sample.seconds <= end]
        known = spill.Context(
            total,
            idle_shared=idle[-1] if idle else None,
            reserved=told.peak_bytes.get("training reserved"),
            slowdown=slowdown(told.rates),
        )
        found = spill.spill_seen(training, known)
        blind = spill.blind(training, known) and not found.spilled
        peak = max((sample.shared for sample in training if sample.shared is not None), default=None)
        return {
            "verdict": NOT_OBSERVABLE if blind else str(found),
            "caveat": "nothing was read before it began" if blind else counters.caveat,
            "peak_shared_bytes": peak,
            "idle_shared_bytes": known.idle_shared,
            "samples": len(training),
        }


def _why(samples: bool) -> dict[str, str]:
    """Said where memory can spill over at all: elsewhere a card that is full refuses."""
    if sys.platform != "win32" and not is_wsl():
        return {}
    told = "NVML does not tell the card's size" if samples else "no counters of Windows answered"
    return {"caveat": told}


def throttle_count() -> int:
    """How often heat has slowed a processor down since the start; 0 where the system does not count."""
    counts = _CORES.glob("cpu[0-9]*/thermal_throttle/core_throttle_count")
    return sum(int(path.read_text() or 0) for path in counts)


def stolen_seconds() -> float:
    """Time that the host of a virtual machine gave to others, although this machine wanted it."""
    import psutil

    return float(getattr(psutil.cpu_times(), "steal", 0.0))


def busy_seconds() -> float:
    """CPU time of everybody on this machine since its start."""
    import psutil

    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))
