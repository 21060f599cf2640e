"""How many threads this process may use."""

from __future__ import annotations

import os
from pathlib import Path


def usable_threads() -> int:
    """Cores this process may use: affinity and the container's CPU quota, not what the machine has."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
        cores = min(cores, max(1, round(int(quota) / int(period))))
    except (OSError, ValueError):
        pass
    return cores
