"""How much memory: peaks of training and of evaluation as ratios, reference over candidate, per block.

A peak is what the trainer's own high-water mark tells (or, on a card, its allocator's), else the highest of
samples taken from outside. Peaks often repeat to the byte: that says how even the program is, not how well it
was measured. So the interval is never narrower than the resolution: a high-water mark is kept in pages and
summed up per thread, samples may miss what lies between two of them. audit/memory_figures.py objects where
more than that was missed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from splatmeter.lab.compare.aim_figures import Figure, How, estimated
from splatmeter.lab.compare.quality import runs_of
from splatmeter.lab.samples.averages import mean
from splatmeter.lab.samples.run_sample import OURS, RunSample, StagePeak

STAGES = ("training", "evaluation")
MARK_BYTES = 1 << 20
"""What a high-water mark of the system may be off by."""
SAMPLED_SHARE = 0.02
"""How much of a peak sampling may miss before somebody objects."""


@dataclass(frozen=True, slots=True)
class Peak:
    size: int
    resolution: float
    """In log units."""
    kind: str
    """'process' or 'allocated': only peaks of one kind compare."""


def peak_of(run: RunSample, stage: str) -> Peak | None:
    """None where it was not observed."""
    found = [peak for item in run.peaks if item.stage == stage and (peak := _peak(item)) is not None]
    return max(found, key=lambda peak: peak.size, default=None)


def _peak(item: StagePeak) -> Peak | None:
    size, kind = item.process_bytes, "process"
    if not size:
        size, kind = item.allocated_bytes, "allocated"
    if not size:
        return None
    sampled = SAMPLED_SHARE if item.samples is not None else 0.0
    return Peak(size, MARK_BYTES / size + sampled, kind)


def memory_figures(
    runs: Sequence[RunSample], reference: str, candidate: str, how: How, controls: Sequence[Figure] = ()
) -> tuple[Figure, ...]:
    """One for every stage seen in the reference; they share one 5 %. `controls` are those of an A/A."""
    arms = runs_of(runs, reference), runs_of(runs, candidate)
    seen = [stage for stage in STAGES if any(peak_of(run, stage) for run in arms[0])]
    floors = {figure.name: figure.noise for figure in controls}
    found: list[Figure] = []
    for stage in seen:
        name = f"{stage} peak"
        own = replace(how, level=how.level / len(STAGES), noise=floors.get(name))
        found.append(_figure(name, stage, arms, own))
    if not found:
        said = f"no peak of training or evaluation was observed in the runs of {reference}"
        found.append(Figure("training peak", {}, estimated({}, how), unit="bytes", lacking=(f"{said}.",)))
    return tuple(found)


def _figure(name: str, stage: str, arms: tuple[list[RunSample], list[RunSample]], how: How) -> Figure:
    peaks = [[(run, peak_of(run, stage)) for run in arm] for arm in arms]
    lacking = [words for arm in peaks for words in _unobserved(arm, stage)]
    known = [[(run, peak) for run, peak in arm if peak is not None] for arm in peaks]
    if len({peak.kind for arm in known for _, peak in arm}) > 1:
        lacking.append(f"the {stage} peaks of the two arms were taken in different ways and do not compare.")
    if stage == "evaluation":
        lacking += _less_work(*arms)
    logs = [_by_block((run.block, math.log(peak.size)) for run, peak in arm) for arm in known]
    samples = {block: logs[0][block] - logs[1][block] for block in sorted(logs[0].keys() & logs[1].keys())}
    how = replace(how, resolution=sum(max((p.resolution for _, p in arm), default=0.0) for arm in known))
    sizes = [mean([float(peak.size) for _, peak in arm]) if arm else math.nan for arm in known]
    return Figure(
        name, samples, estimated(samples, how), *sizes, unit="bytes", lacking=tuple(lacking), noise=how.noise
    )


def _by_block(items: Iterable[tuple[int, float]]) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for block, value in items:
        found.setdefault(block, []).append(value)
    return {block: mean(values) for block, values in found.items()}


def _unobserved(arm: Sequence[tuple[RunSample, Peak | None]], stage: str) -> list[str]:
    without = sum(peak is None for _, peak in arm)
    if not without:
        return []
    name = arm[0][0].arm.name
    return [
        f"the {stage} peak of {without} of {len(arm)} runs of {name} was not observed (the trainer does not "
        "tell it, and the stage is too short to be sampled)."
    ]


def _less_work(reference: Sequence[RunSample], candidate: Sequence[RunSample]) -> list[str]:
    """An arm that leaves the evaluation to somebody else has a low peak of it, and nothing to be proud of."""
    wanted = set.intersection(*(_evaluated_itself(run) for run in reference)) if reference else set()
    lazy = [run for run in candidate if not wanted <= _evaluated_itself(run)]
    if not lazy:
        return []
    split, step = min(wanted - _evaluated_itself(lazy[0]), key=lambda place: (place[1], place[0]))
    return [
        f"{len(lazy)} of {len(candidate)} runs of {lazy[0].arm.name} did not themselves evaluate the {split} "
        f"views at step {step}, as the reference does: their evaluation peak is of less work."
    ]


def _evaluated_itself(run: RunSample) -> set[tuple[str, int]]:
    return {(e.split, e.step) for e in run.evaluations if e.judged_by != OURS}
