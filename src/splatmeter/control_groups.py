"""Limits of memory that the system sets: those of containers, SLURM's jobs and systemd's units, which are
control groups on Linux. A group lies in others, and each may have a limit of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
UNLIMITED = 2**60
"""The first version of control groups writes a number of that kind where there is no limit."""

_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Of the second version, then of the first: the limit, what is used, and what of that are files, which the
system drops before anybody runs out."""


def memory_limit(membership: Path = MEMBERSHIP, root: Path = ROOT) -> int | None:
    """The lowest limit that holds for this process; None where there is none."""
    return min((limit for limit, _ in _limits(membership, root)), default=None)


def memory_left(membership: Path = MEMBERSHIP, root: Path = ROOT) -> int | None:
    """What this process may still take before a limit ends it; None where there is none."""
    return min((max(0, limit - used) for limit, used in _limits(membership, root)), default=None)


def _limits(membership: Path, root: Path) -> Iterator[tuple[int, int]]:
    """(limit, used) of every group that this process is in and that has a limit."""
    for folder in _groups(membership, root):
        for limit_file, usage_file, dropped in _FILES:
            limit, used = _number(folder / limit_file), _number(folder / usage_file)
            if limit is not None and used is not None and limit < UNLIMITED:
                yield limit, used - min(used, _statistic(folder / "memory.stat", dropped))


def _groups(membership: Path, root: Path) -> set[Path]:
    """Folders of those that this process is in. A container often has its own mounted as the root."""
    found = {root, root / "memory"}
    for line in _text(membership).splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        base = root / "memory" if "memory" in controllers.split(",") else root if not controllers else None
        parts = [part for part in path.split("/") if part not in ("", "..")]
        if base is not None:
            found |= {base.joinpath(*parts[:length]) for length in range(1, len(parts) + 1)}
    return found


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _statistic(path: Path, name: str) -> int:
    values = (line.split() for line in _text(path).splitlines())
    return next((int(words[1]) for words in values if len(words) == 2 and words[0] == name), 0)


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except (OSError, ValueError):
        return ""
