r"""Windows and WSL2: what the card's memory counters say, and what spills into shared memory.

The counters are `\GPU Adapter Memory(luid_..._phys_0)\{Dedicated Usage|Shared Usage|Total Committed}`.
From WSL2 one long-lived typeperf.exe prints them as CSV; on localised systems, where their names are
translated, one long-lived powershell.exe prints the CIM class instead.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COUNTERS = {"Dedicated Usage": "dedicated", "Shared Usage": "shared", "Total Committed": "committed"}
CIM_CLASS = "Win32_PerfFormattedData_GPUPerformanceCounters_GPUAdapterMemory"
_ADAPTER = re.compile(r"\((luid_0x[0-9a-f]+_0x[0-9a-f]+_phys_\d+)\)\\([^\\]+)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AdapterMemory:
    """One adapter, all processes together; None where a counter has gone or is not there."""

    adapter: str
    dedicated: int | None = None
    shared: int | None = None
    committed: int | None = None
    seconds: float = field(default=0.0, compare=False)
    """When it was read, by the clock of whoever listens."""


def is_wsl(release: Path = Path("/proc/sys/kernel/osrelease"), device: Path = Path("/dev/dxg")) -> bool:
    """Both signs are needed: a Microsoft kernel without /dev/dxg has no card to watch."""
    try:
        return "microsoft" in release.read_text("utf-8", "replace").lower() and device.exists()
    except OSError:
        return False


def typeperf_command() -> tuple[str, ...]:
    """Wildcards expand once, at the start: an adapter that appears later stays unseen."""
    return ("typeperf.exe", *(rf"\GPU Adapter Memory(*)\{name}" for name in COUNTERS), "-si", "1")


def cim_command() -> tuple[str, ...]:
    """One JSON line a second from a powershell that stays alive: starting it anew would cost a second each
    time.
    """
    script = (
        f"while ($true) {{ Get-CimInstance {CIM_CLASS} | "
        "Select-Object Name,DedicatedUsage,SharedUsage,TotalCommitted | "
        "ConvertTo-Json -Compress; Start-Sleep 1 }"
    )
    return ("powershell.exe", "-NoProfile", "-NonInteractive", "-Command", script)


class TypeperfParser:
    """Fed with lines of typeperf's CSV; knows which column is which only after the header."""

    def __init__(self) -> None:
        self._columns: list[tuple[str, str] | None] = []

    def line(self, text: str) -> list[AdapterMemory]:
        """[] for the header, blank lines and messages; "-1" and empty cells mean that a counter has gone."""
        cells = next(csv.reader([text.strip()]), [])
        if not cells:
            return []
        if cells[0].startswith("(PDH-CSV"):
            self._columns = [_column(cell) for cell in cells[1:]]
            return []
        if not self._columns or len(cells) - 1 != len(self._columns):
            return []
        found: dict[str, dict[str, Any]] = {}
        for column, cell in zip(self._columns, cells[1:], strict=True):
            if column:
                found.setdefault(column[0], {})[column[1]] = _bytes(cell)
        return [AdapterMemory(adapter, **values) for adapter, values in found.items()]

    @property
    def localised(self) -> bool:
        """A header came, and none of its names is one we know: use the CIM class instead."""
        return bool(self._columns) and not any(self._columns)


def _column(path: str) -> tuple[str, str] | None:
    found = _ADAPTER.search(path)
    if not found:
        return None
    name = next((field for counter, field in COUNTERS.items() if counter.lower() == found[2].lower()), None)
    return (found[1].lower(), name) if name else None


def _bytes(cell: str) -> int | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return int(value) if 0 <= value < 2**63 else None


def cim_line(text: str) -> Iterator[AdapterMemory]:
    """One line of ConvertTo-Json: an object for a single adapter, a list for several."""
    try:
        record = json.loads(text)
    except ValueError:
        return
    for item in record if isinstance(record, list) else [record]:
        if isinstance(item, dict) and isinstance(item.get("Name"), str):
            yield AdapterMemory(
                item["Name"].lower(),
                _whole(item.get("DedicatedUsage")),
                _whole(item.get("SharedUsage")),
                _whole(item.get("TotalCommitted")),
            )


def _whole(value: object) -> int | None:
    """CIM gives 64-bit numbers as numbers or as text, depending on the version."""
    return _bytes(str(value)) if isinstance(value, (int, str)) and not isinstance(value, bool) else None
