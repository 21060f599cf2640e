"""Memory of this process and what is free; peaks per stage."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from splatmeter import control_groups

FLOATS_PER_GAUSSIAN = 59
"""3 mean, 3 scale, 4 rotation, 1 opacity, 48 harmonics (degree 3)."""

HELD_BYTES_PER_GAUSSIAN = 3 * 4 * FLOATS_PER_GAUSSIAN
"""Parameters and both Adam moments: no trainer of this method can hold less in float32."""

STEP_BYTES_PER_GAUSSIAN = 4 * 4 * FLOATS_PER_GAUSSIAN
"""Plus gradients, for a trainer that materialises them."""

LARGE_ARRAY_BYTES = 2**20
_MMAP_THRESHOLD = -3
"""The number of the option in glibc's mallopt."""

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def resident_bytes() -> int:
    return _status_bytes("VmRSS") or _psutil_bytes("rss")


def peak_bytes() -> int:
    """High-water mark of this process since the last reset (since its start where it cannot be reset)."""
    return _status_bytes("VmHWM") or _psutil_bytes("peak_wset")


def reset_peak() -> bool:
    """True where the system lets a process reset its own mark (Linux)."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return False
    return True


class StagePeaks:
    """Keeps one peak per stage, of the memory that models live in; a stage may be entered many times."""

    def __init__(self, peak: Callable[[], int], reset: Callable[[], object]) -> None:
        self._peak, self._reset = peak, reset
        self._peaks: dict[str, int] = {}
        self._stage = ""

    @property
    def peaks(self) -> Mapping[str, int]:
        self._note()
        return dict(self._peaks)

    def enter(self, stage: str) -> None:
        self._note()
        self._stage = stage
        self._reset()

    @contextmanager
    def during(self, stage: str) -> Iterator[None]:
        before = self._stage
        self.enter(stage)
        try:
            yield
        finally:
            self.enter(before)

    def _note(self) -> None:
        if self._stage:
            self._peaks[self._stage] = max(self._peaks.get(self._stage, 0), self._peak())


def give_back() -> None:
    """What was freed goes back to the system, where the C library would keep it for later."""
    _of_the_c_library("malloc_trim", 0)


def give_large_arrays_back_at_once() -> None:
    """From here on, for the whole process. By itself the C library raises the size from which it does that to
    up to 32 MiB, and keeps the holes of smaller arrays: arrays of Gaussians grow, so none fits into one."""
    _of_the_c_library("mallopt", _MMAP_THRESHOLD, LARGE_ARRAY_BYTES)


def _of_the_c_library(function: str, *numbers: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    with suppress(OSError, AttributeError):  # not every C library has them
        getattr(ctypes.CDLL(None), function)(*numbers)


def available_bytes() -> int:
    """What this process may still take: the lesser of free memory and what limits of the
    system, such as a container's or a job's, leave of it."""
    import psutil

    free, left = int(psutil.virtual_memory().available), control_groups.memory_left()
    return free if left is None else min(free, left)


def _status_bytes(field: str) -> int:
    if not sys.platform.startswith("linux"):
        return 0
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def _psutil_bytes(field: str) -> int:
    import psutil

    info = psutil.Process().memory_info()
    return int(getattr(info, field, info.rss))
