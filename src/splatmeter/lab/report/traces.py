"""What happened inside runs, from their event lines and memory samples: curves, memory, time per pass."""

from __future__ import annotations

import bisect
import csv
import math
from collections.abc import Sequence
from pathlib import Path

from splatmeter.events import Progress
from splatmeter.lab.executor import Arrival
from splatmeter.lab.record.result import BY_THE_TRAINER, RunResult, RunTiming
from splatmeter.lab.record.run_folder import arrivals
from splatmeter.lab.report.report_document import (
    Curve,
    MemoryTrace,
    PassTimes,
    Stage,
)
from splatmeter.lab.session.stage_peaks import stretches

Runs = Sequence[tuple[str, RunResult]]
"""(name, result) of the runs that stand for one phase."""
MOST_RUNS_EVALUATED = 24


def representative(runs: Runs) -> tuple[str, RunResult] | None:
    """The run whose speed is the median: neither the luckiest nor the unluckiest."""
    timed = sorted((r for r in runs if r[1].timing), key=lambda r: _speed(r[1]))
    return timed[(len(timed) - 1) // 2] if timed else (runs[0] if runs else None)


def _speed(result: RunResult) -> float:
    return (result.timing.steps_per_second if result.timing else None) or 0.0


def curves(sessions: Path, runs: Runs) -> list[Curve]:
    """The loss of one run; evaluations of all of them."""
    chosen = representative(runs)
    if chosen is None:
        return []
    found: list[Curve] = []
    for run, result in runs[:MOST_RUNS_EVALUATED] if chosen in runs[:MOST_RUNS_EVALUATED] else [chosen]:
        progress = [a.event for a in arrivals(sessions / run) if isinstance(a.event, Progress)]
        points = [
            (p.clock_seconds, p.loss) for p in progress if math.isfinite(p.loss) and p.clock_seconds >= 0
        ]
        own = tuple(points) if run == chosen[0] else ()
        found.append(Curve(run, _label(result), own, _evaluations(progress, result)))
    return found


def _label(result: RunResult) -> str:
    """The phase, and by which protocol of exposure it was judged where that is not the usual one."""
    rules = sorted({item.exposure for item in result.evaluations} - {"none"})
    phase = result.identity.phase
    return f"{phase} (exposure {', '.join(rules)})" if rules else phase


def _evaluations(progress: list[Progress], result: RunResult) -> tuple[tuple[float, int, float], ...]:
    """PSNR on held-out views; where somebody else judged the model again, that judgement."""
    by_step: dict[int, float] = {}
    for item in sorted(result.evaluations, key=lambda e: e.judged_by != BY_THE_TRAINER):
        value = item.metrics.get("psnr")
        if item.split == "test" and isinstance(value, (int, float)) and math.isfinite(value):
            by_step[item.step] = float(value)
    steps = [p.step for p in progress]
    found: list[tuple[float, int, float]] = []
    for step, value in sorted(by_step.items()):
        place = bisect.bisect_right(steps, step) - 1
        if place >= 0:
            found.append((progress[place].clock_seconds, step, value))
    return tuple(found)


def memory_traces(sessions: Path, runs: Runs) -> list[MemoryTrace]:
    """One run, sampled from outside; without samples, what the trainer said of itself."""
    chosen = representative([r for r in runs if (sessions / r[0] / "memory.csv").exists()]) or representative(
        runs
    )
    if chosen is None:
        return []
    run, result = chosen
    heard = arrivals(sessions / run)
    points, source = _samples(sessions / run / "memory.csv"), "sampled from outside"
    if not points:
        points, source = _told(heard), "said by the trainer"
    if not points:
        return []
    peaks = [(peak.stage, int(size)) for peak in result.peaks if (size := peak.process_bytes)]
    return [MemoryTrace(run, result.identity.phase, points, _stages(heard), tuple(peaks), source)]


def _samples(path: Path) -> tuple[tuple[float, int], ...]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return tuple((float(row["seconds"]), int(row["resident_bytes"])) for row in rows)
    except (OSError, KeyError, ValueError, TypeError, csv.Error):
        return ()


def _told(heard: list[Arrival]) -> tuple[tuple[float, int], ...]:
    found = [(a.seconds, a.event.memory_bytes) for a in heard if isinstance(a.event, Progress)]
    return tuple((seconds, size) for seconds, size in found if size)


def _stages(heard: list[Arrival]) -> tuple[Stage, ...]:
    """Neighbouring stretches of one stage are one."""
    found: list[Stage] = []
    for item in stretches(heard):
        if found and found[-1].name == item.stage:
            found[-1] = Stage(item.stage, found[-1].begin, item.end)
        else:
            found.append(Stage(item.stage, item.begin, item.end))
    return tuple(found)


def pass_times(phase: str, runs: Runs) -> list[PassTimes]:
    """Only of runs that told their passes; slices do not."""
    told = [(run, result) for run, result in runs if result.passes and result.timing]
    if not told:
        return []
    total: dict[str, float] = {}
    whole = 0.0
    for _, result in told:
        timing = result.timing or RunTiming()
        steps = timing.measured_steps or timing.steps
        for name, seconds in result.passes.items():
            total[name] = total.get(name, 0.0) + 1000 * (seconds or 0.0) / steps / len(told)
        whole += 1000 * timing.seconds / timing.steps / len(told)
    rest = max(0.0, whole - sum(total.values()))
    return [PassTimes(phase, tuple(run for run, _ in told), total, rest)]
