"""Samples the memory of a whole process tree from outside, and keeps account of what that costs."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

INTERVAL_SECONDS = 0.25
LARGEST_SHARE = 0.002
"""A share of one core: after each sample the sampler rests at least cost / share, so it takes no more."""
REFRESH_SECONDS = 2.0
"""How often children are looked for; a memory sample is much cheaper than a walk over the tree."""

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True, slots=True)
class MemorySample:
    """`resident_bytes` adds up the resident sets of the tree; pages shared between processes count in
    each.
    """

    seconds: float
    resident_bytes: int
    processes: int
    device_bytes: int | None = None
    """Used on the card by everybody; None where that cannot be observed."""


def resident_bytes(pid: int) -> int | None:
    """None if the process is gone."""
    if _PROC.joinpath("self").exists():
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123 (hot path)
                return int(file.read().split()[1]) * _PAGE
        except (OSError, IndexError, ValueError):
            return None
    import psutil

    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None


def tree(pid: int) -> list[int]:
    """The process and all its descendants, the process first."""
    found = [pid]
    for member in found:
        children = _children(member)
        if children is None:
            import psutil

            with contextlib.suppress(psutil.Error):
                return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
            return [pid]
        found += [child for child in children if child not in found]
    return found


def _children(pid: int) -> list[int] | None:
    """From /proc, one small file a thread; None where the kernel does not offer it."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 (hot path)
    except FileNotFoundError:
        return [] if _PROC.joinpath("self/task").exists() else None
    except OSError:
        return []
    found: list[int] = []
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:  # noqa: PTH123 (hot path)
                found += map(int, file.read().split())
        except FileNotFoundError:
            if not _PROC.joinpath("self/task", str(os.getpid()), "children").exists():
                return None
        except OSError:
            continue
    return found


class TreeSampler:
    """A thread that samples until told to stop; its own CPU time is measured directly."""

    def __init__(
        self, pid: int, interval: float = INTERVAL_SECONDS, device: Callable[[], int | None] | None = None
    ) -> None:
        self.pid = pid
        self.interval = interval
        self.device = device
        self.samples: list[MemorySample] = []
        self.cpu_seconds = 0.0
        self.wall_seconds = 0.0
        self._members = [pid]
        self._looked = -REFRESH_SECONDS
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._begin = time.perf_counter()

    def start(self) -> TreeSampler:
        self._begin = time.perf_counter()
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self.wall_seconds = time.perf_counter() - self._begin

    @property
    def share(self) -> float:
        """The share of one core that it took, over its life."""
        return self.cpu_seconds / self.wall_seconds if self.wall_seconds > 0 else 0.0

    def take(self, seconds: float) -> MemorySample | None:
        """One sample; None when the whole tree is gone."""
        if seconds - self._looked >= REFRESH_SECONDS:
            self._members = tree(self.pid)
            self._looked = seconds
        sizes = [size for size in map(resident_bytes, self._members) if size is not None]
        if not sizes:
            return None
        return MemorySample(seconds, sum(sizes), len(sizes), self.device() if self.device else None)

    def _run(self) -> None:
        while True:
            before = time.thread_time()
            sample = self.take(time.perf_counter() - self._begin)
            if sample:
                self.samples.append(sample)
            self.wall_seconds = time.perf_counter() - self._begin
            self.cpu_seconds = time.thread_time()
            cost = self.cpu_seconds - before
            if sample is None or self._stop.wait(max(self.interval, cost / LARGEST_SHARE)):
                return


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stage of a run, in seconds since its start."""

    stage: str
    begin: float
    end: float


def peaks_by_stage(
    samples: Sequence[MemorySample], stretches: Sequence[Stretch]
) -> dict[str, tuple[int, int, float]]:
    """Stage -> (highest resident bytes, number of samples inside, seconds); a stage without samples is not
    listed.
    """
    found: dict[str, tuple[int, int, float]] = {}
    for stretch in stretches:
        inside = [s.resident_bytes for s in samples if stretch.begin <= s.seconds < stretch.end]
        highest, count, seconds = found.get(stretch.stage, (0, 0, 0.0))
        if inside or count:
            total = seconds + stretch.end - stretch.begin
            found[stretch.stage] = (max([highest, *inside]), count + len(inside), total)
    return found
