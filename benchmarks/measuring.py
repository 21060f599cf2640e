"""What all benchmarks share: the rule of the quiet machine, interleaved rounds, intervals, result files."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from splatmeter.lab import environment
from splatmeter.lab.samples.student import quantile

RESULTS = Path(__file__).parent / "results"
MOST_FOREIGN = 0.05
"""A block counts only while other processes use less than this share of the machine."""
LONG_ENOUGH = 0.3
"""Seconds an arm works in a round: CPU times of the system come in ticks of 10 ms."""
ANYWAY = "SPLATMETER_BENCH_ANYWAY" in os.environ
"""Count noisy blocks too, to try the scripts; the results say so."""
NOTES = "## Notes"


# ---- the quiet machine ------------------------------------------------------------------------------------
class ForeignCpu:
    """CPU time of everybody else since it was made, other guests of the host included where the host tells
    (steal), as a share of the machine."""

    def __init__(self, children: Sequence[int] = ()) -> None:
        self._processes = [psutil.Process(), *map(psutil.Process, children)]
        self._own = self._own_seconds()
        self._busy = _busy_seconds()
        self._start = time.perf_counter()

    def share(self) -> float:
        tick = 0.01
        foreign = (_busy_seconds() - self._busy) - (self._own_seconds() - self._own) - tick
        elapsed = max(time.perf_counter() - self._start, 1e-9)
        return max(0.0, foreign) / (elapsed * (os.cpu_count() or 1))

    def _own_seconds(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self._processes if process.is_running())


def _busy_seconds() -> float:
    times = psutil.cpu_times()
    return times.user + times.system + getattr(times, "nice", 0.0) + getattr(times, "steal", 0.0)


# ---- interleaved rounds -----------------------------------------------------------------------------------
@dataclass
class Arm:
    """One side of a comparison. `run(k)` does the k-th unit of work; `passes` empties its stopwatches."""

    name: str
    run: Callable[[int], None]
    passes: Callable[[], dict[str, float]] = dict
    units: int = 1
    done: int = field(default=0, init=False)

    def block(self) -> tuple[float, dict[str, float]]:
        """Seconds per unit, whole and per pass."""
        self.passes()
        start = time.perf_counter()
        for _ in range(self.units):
            self.run(self.done)
            self.done += 1
        seconds = (time.perf_counter() - start) / self.units
        return seconds, {name: value / self.units for name, value in self.passes().items()}

    def calibrate(self, views: int) -> None:
        """Enough units for a block, a multiple of the number of views: all arms meet the same ones."""
        self.units = views
        self.block()
        seconds, _ = self.block()
        self.units = views * max(1, math.ceil(LONG_ENOUGH / (seconds * views)))
        self.done = 0


@dataclass
class Rounds:
    arms: list[str]
    seconds: list[dict[str, float]] = field(default_factory=list)
    passes: list[dict[str, dict[str, float]]] = field(default_factory=list)
    refused: int = 0
    noisy: int = 0

    def ratio(self, over: str, under: str) -> list[float]:
        return interval([math.log(entry[over] / entry[under]) for entry in self.seconds])

    def pass_ratio(self, over: str, under: str, name: str) -> list[float]:
        pairs = [(entry[over].get(name, 0.0), entry[under].get(name, 0.0)) for entry in self.passes]
        return interval([math.log(a / b) for a, b in pairs if a > 0 and b > 0])

    def average(self, name: str, arms: Sequence[str]) -> None:
        """One more arm: the mean of these, round by round."""
        self.arms.append(name)
        for seconds, passes in zip(self.seconds, self.passes, strict=True):
            seconds[name] = float(np.mean([seconds[arm] for arm in arms]))
            keys = passes[arms[0]]
            passes[name] = {key: float(np.mean([passes[arm][key] for arm in arms])) for key in keys}

    def median_ms(self, arm: str, name: str | None = None) -> float:
        values = [
            entry[arm] if name is None else parts[arm].get(name, math.nan)
            for entry, parts in zip(self.seconds, self.passes, strict=True)
        ]
        return 1e3 * float(np.median(values)) if values else math.nan


def interleave(arms: Sequence[Arm], rounds: int, views: int, seed: int = 1) -> Rounds:
    """Each round runs every arm once, in random order; a round with foreign load is done again."""
    random = np.random.default_rng(seed)
    for arm in arms:
        arm.calibrate(views)
    found = Rounds([arm.name for arm in arms])
    while len(found.seconds) < rounds and found.refused < 4 * rounds:
        seconds, passes, foreign = {}, {}, ForeignCpu()
        for index in random.permutation(len(arms)):
            seconds[arms[index].name], passes[arms[index].name] = arms[index].block()
        if not keep(found, foreign.share()):
            continue
        found.seconds.append(seconds)
        found.passes.append(passes)
    return found


def keep(found: Rounds, share: float) -> bool:
    if share < MOST_FOREIGN:
        return True
    found.noisy += ANYWAY
    found.refused += not ANYWAY
    return ANYWAY


def interval(logs: Sequence[float]) -> list[float]:
    """[ratio, low, high]: exp of the mean of logarithms with its 95 % Student interval."""
    count = len(logs)
    if not count:
        return [math.nan, 0.0, math.inf]
    mean = float(np.mean(logs))
    if count == 1:
        return [math.exp(mean), 0.0, math.inf]
    half = quantile(0.975, count - 1) * float(np.std(logs, ddof=1)) / math.sqrt(count)
    return [math.exp(mean), math.exp(mean - half), math.exp(mean + half)]


def text(ratio: Sequence[float], digits: int = 2) -> str:
    value, low, high = ratio
    if not math.isfinite(value):
        return "not measured"
    if not math.isfinite(high):
        return f"{value:.{digits}f} (once: no interval)"
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def counted(found: Rounds) -> str:
    noisy = f", {found.noisy} of them NOISY" if found.noisy else ""
    return f"{len(found.seconds)} rounds{noisy}, {found.refused} refused"


# ---- results ----------------------------------------------------------------------------------------------
def in_processes(script: str, count: int) -> list[Any]:
    """Results of the script, run again with its own words in `count` fresh processes, one after the other:
    where a process's memory lies alone moves its speed by some per cent."""
    parts = []
    for _ in range(count):
        with tempfile.TemporaryDirectory() as folder:
            words = [*sys.argv[1:], "--processes", "1", "--results", folder]
            subprocess.run([sys.executable, script, *words], check=True)
            (found,) = Path(folder).glob("*.json")
            parts.append(json.loads(found.read_text("utf-8"))["results"])
    return parts


def machine() -> dict[str, object]:
    from splatmeter.backends.registry import backend

    description = backend("native").facts.recorded()
    git = environment.git_state(Path(__file__).parent)
    return {
        "when": datetime.now(timezone.utc).isoformat(timespec="minutes"),
        "cpu": environment.cpu(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "engine": description,
        "git": {name: value for name, value in git.items() if name != "diff"},
        "noisy_blocks_counted": ANYWAY,
    }


def write_results(name: str, record: object, lines: Sequence[str], folder: Path | None = None) -> None:
    """results/NAME.json and NAME.md; what a person wrote below "## Notes" stays."""
    place = folder or RESULTS
    place.mkdir(parents=True, exist_ok=True)
    about = machine()
    whole = finite({"machine": about, "results": record})
    (place / f"{name}.json").write_text(json.dumps(whole, indent=1, allow_nan=False) + "\n", "utf-8")
    page = place / f"{name}.md"
    notes = page.read_text("utf-8").partition(NOTES)[2] if page.exists() else "\n"
    said = [*lines, "", f"Measured {about['when']}, raw figures: [{name}.json]({name}.json)."]
    if ANYWAY:
        said.append("**Tried on a noisy machine: these figures tell nothing.**")
    page.write_text("\n".join(said) + f"\n\n{NOTES}{notes}", "utf-8")
    print(f"{page} and {name}.json are written")


def finite(value: Any) -> Any:
    """Strict JSON knows no infinities: bounds that nobody knows become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(str(cell) for cell in line)} |" for line in lines]
