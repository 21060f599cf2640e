"""Everything that looks at a run from outside: memory of the tree, the card, spill-over, and who else was
busy.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from splatmeter.lab.executor import Outcome
from splatmeter.lab.monitor import spill
from splatmeter.lab.monitor.counters import AdapterCounters, adapter_counters
from splatmeter.lab.monitor.nvml import Card, first_card
from splatmeter.lab.monitor.tree import TreeSampler
from splatmeter.lab.session.memory import write_samples

_CORES = Path("/sys/devices/system/cpu")


class Watch:
    """Started with the child, stopped at its end; asked for its record afterwards."""

    def __init__(self, pid: int, sample: bool) -> None:
        self._card: Card | None = first_card() if sample else None
        self._counters: AdapterCounters | None = adapter_counters() if sample else None
        device = self._card.used_bytes if self._card else None
        self.sampler = TreeSampler(pid, device=device) if sample else None
        self._busy = busy_seconds()
        self._stolen = stolen_seconds()
        self._begin = time.perf_counter()
        self._throttled = throttle_count()
        self._foreign: float | None = None
        self._elapsed = 0.0

    def start(self) -> Watch:
        if self.sampler:
            self.sampler.start()
        if self._counters:
            self._counters.start()
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

    def record(self, outcome: Outcome | None, folder: Path, partners: float = 0.0) -> dict[str, Any]:
        """What else the machine did is a covariate: a block is run again by the protocol's rule on it, and
        no run is ever dropped afterwards. `partners` are CPU seconds of arms that live at the same time.
        """
        if self.sampler and self.sampler.samples:
            write_samples(folder / "memory.csv", self.sampler.samples)
        return {
            "foreign_cpu_share": self._foreign_share(outcome, partners),
            "stolen_share": self._stolen / (self._elapsed * (os.cpu_count() or 1)) if self._elapsed else None,
            "throttled": self._throttled,
            "card_bytes": self._card.memory().total_bytes if self._card else None,
            "shared_memory": self._spill(),
        }

    def _foreign_share(self, outcome: Outcome | None, partners: float) -> float | None:
        if outcome is None or self._foreign is None or self._elapsed <= 0 or not outcome.cpu_seconds:
            return None  # a system that does not tell the run's own time cannot tell the others'
        others = self._foreign - outcome.cpu_seconds - partners
        return max(0.0, others / (self._elapsed * (os.cpu_count() or 1)))

    def _spill(self) -> dict[str, Any]:
        """The first sample, taken before the trainer has allocated anything, is the idle level."""
        samples = self._counters.busiest() if self._counters else []
        total = self._card.memory().total_bytes if self._card else None
        if not samples or total is None:
            return {"verdict": "not observable"}
        known = spill.Context(total, idle_shared=samples[0].shared or 0)
        peak = max((sample.shared for sample in samples if sample.shared is not None), default=None)
        return {
            "verdict": str(spill.judge(samples, known)),
            "peak_shared_bytes": peak,
            "samples": len(samples),
        }


def throttle_count() -> int:
    """How often a processor has been slowed down because of heat since the start; 0 where nobody counts."""
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
