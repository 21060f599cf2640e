"""The card through nvidia-ml-py, where both exist; what cannot be observed is None, never 0."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

NOT_AVAILABLE = 2**63
"""NVML says "not available" as 2^64 - 1; no card holds half of that."""


@dataclass(frozen=True, slots=True)
class CardMemory:
    used_bytes: int | None
    total_bytes: int | None


def plausible(value: Any, total: int | None = None) -> int | None:
    """The number, unless it is NVML's way of saying that there is none, or more than twice the card."""
    if not isinstance(value, int) or value < 0 or value >= NOT_AVAILABLE:
        return None
    return None if total and value > 2 * total else value


class Card:
    """One card, by its index; `library` is the pynvml module (or a stand-in in tests)."""

    def __init__(self, library: Any, index: int = 0) -> None:
        self._library = library
        self._handle = library.nvmlDeviceGetHandleByIndex(index)
        name = library.nvmlDeviceGetName(self._handle)
        self.name: str = name.decode() if isinstance(name, bytes) else name

    def memory(self) -> CardMemory:
        try:
            info = self._library.nvmlDeviceGetMemoryInfo(self._handle)
        except self._library.NVMLError:
            return CardMemory(None, None)
        total = plausible(info.total)
        return CardMemory(plausible(info.used, total), total)

    def used_bytes(self) -> int | None:
        return self.memory().used_bytes

    def used_by(self, pids: Iterable[int]) -> int | None:
        """Never available under WDDM and WSL2; None as soon as one of the processes has no figure."""
        wanted = set(pids)
        try:
            processes = self._library.nvmlDeviceGetComputeRunningProcesses(self._handle)
        except self._library.NVMLError:
            return None
        figures = [
            plausible(item.usedGpuMemory, self.memory().total_bytes)
            for item in processes
            if item.pid in wanted
        ]
        known = [figure for figure in figures if figure is not None]
        return sum(known) if known and len(known) == len(figures) else None


def first_card(library: Any = None) -> Card | None:
    """None without a card, a driver, or the package."""
    if library is None:
        try:
            import pynvml as library  # type: ignore[no-redef]
        except ImportError:
            return None
    try:
        library.nvmlInit()
        return Card(library) if library.nvmlDeviceGetCount() else None
    except library.NVMLError:
        return None
