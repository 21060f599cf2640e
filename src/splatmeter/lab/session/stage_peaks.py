"""Peaks per stage: from the trainer's own high-water marks where it tells them, else from samples taken
outside.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from splatmeter.events import Evaluated, Progress, Saved
from splatmeter.lab.executor import Arrival, ProcessEnd
from splatmeter.lab.json_files import write_text
from splatmeter.lab.monitor.tree import MemorySample, Stretch, TreeSampler, peaks_by_stage
from splatmeter.lab.record.result import MonitorCost, RunMemory
from splatmeter.lab.samples.run_sample import StagePeak

FEWEST_SAMPLES = 5


def stretches(arrivals: Sequence[Arrival]) -> list[Stretch]:
    """Stages as seen from outside: what lies between the last frame before an evaluation and its report is
    evaluation.
    """
    found: list[Stretch] = []
    before = 0.0
    stage = "loading"
    for arrival in arrivals:
        if isinstance(arrival.event, Evaluated):
            stage = "evaluation"
        elif isinstance(arrival.event, Saved):
            stage = "saving"
        elif not isinstance(arrival.event, Progress):
            continue
        found.append(Stretch(stage, before, arrival.seconds))
        before, stage = arrival.seconds, "training"
    return found


def memory_record(
    arrivals: Sequence[Arrival],
    sampler: TreeSampler | None,
    end: ProcessEnd | None,
    peak_bytes: Mapping[str, int],
    stages: bool,
) -> dict[str, Any]:
    """Fields of the run's result: `peaks` of each stage and `memory` in total; an unknown figure is None."""
    told = {stage: size for stage, size in peak_bytes.items() if size} if stages else {}
    peaks = [_told(stage, told) for stage in told if not stage.endswith((" reserved", " retries"))]
    total = [peak.process_bytes for peak in peaks if peak.process_bytes]
    total += [end.largest_resident_bytes] if end and end.largest_resident_bytes else []
    monitor: MonitorCost | None = None
    if sampler and sampler.samples:
        sampled = _sampled(sampler, arrivals) if stages else []
        if peaks:
            seen = {peak.stage: peak.process_bytes for peak in sampled}
            peaks = [dataclasses.replace(peak, seen_bytes=seen.get(peak.stage)) for peak in peaks]
        peaks = peaks or sampled
        total.append(max(sample.resident_bytes for sample in sampler.samples))
        clock, count = max(sampler.wall_seconds, 1e-9), len(sampler.samples)
        monitor = MonitorCost(count, clock / count, sampler.cpu_seconds, sampler.cpu_seconds / clock)
    device = [s.device_bytes for s in sampler.samples if s.device_bytes is not None] if sampler else []
    memory = RunMemory(
        total_peak_bytes=max(total, default=None),
        device_peak_bytes=max(device, default=None),
        device="sampled" if device else "not observable",
    )
    retries = int(peak_bytes.get("training retries") or 0)
    return {"peaks": tuple(peaks), "memory": memory, "monitor": monitor, "allocator_retries": retries}


def _told(stage: str, told: Mapping[str, int]) -> StagePeak:
    """A high-water mark: it misses nothing, so it has no number of samples."""
    source, reserved = "high-water mark of the trainer", told.get(f"{stage} reserved")
    if reserved is None:
        return StagePeak(stage, process_bytes=told[stage], source=source)
    return StagePeak(stage, allocated_bytes=told[stage], reserved_bytes=reserved, source=source)


def _sampled(sampler: TreeSampler, arrivals: Sequence[Arrival]) -> list[StagePeak]:
    """Stages too short to be sampled properly have no figure: unknown is honest, a missed peak is not."""
    interval = sampler.wall_seconds / max(1, len(sampler.samples))
    return [
        StagePeak(
            stage,
            process_bytes=highest,
            samples=count,
            stage_seconds=seconds,
            sampler_seconds=interval,
            source="sampled from outside",
        )
        for stage, (highest, count, seconds) in peaks_by_stage(sampler.samples, stretches(arrivals)).items()
        if count >= FEWEST_SAMPLES
    ]


def write_samples(path: Path, samples: Sequence[MemorySample]) -> None:
    lines = ["seconds,resident_bytes,processes,device_bytes"]
    for sample in samples:
        device = "" if sample.device_bytes is None else sample.device_bytes
        lines.append(f"{sample.seconds:.3f},{sample.resident_bytes},{sample.processes},{device}")
    write_text(path, "\n".join(lines) + "\n")
