"""What the page is made of: plain values gathered from the store, each with the runs it came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from splatmeter.lab.history.tracks import History
from splatmeter.lab.log.log_document import LogPhase, QualityBaseline
from splatmeter.lab.samples.finding import Finding
from splatmeter.lab.samples.verdict_kinds import Verdict


def run_anchor(run: str) -> str:
    """Where a run stands on the page; a hash, because a name may hold anything."""
    return f"run-{hashlib.sha256(run.encode('utf-8', 'replace')).hexdigest()[:12]}"


def phase_anchor(phase: str) -> str:
    return f"phase-{hashlib.sha256(phase.encode('utf-8', 'replace')).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of the store, counted or not; None is unknown."""

    run: str
    phase: str
    folder: str = ""
    """Address of its folder, seen from the page."""
    session: str = ""
    block: int | None = None
    seed: int | None = None
    status: str = ""
    counted: bool = True
    shown: bool = True
    """Belongs to the session whose figures stand for its phase."""
    message: str = ""
    started: str = ""
    steps_per_second: float | None = None
    loss: float | None = None
    gaussians: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    """From the last evaluation on held-out views, or on training views if there is no other."""
    training_peak_bytes: int | None = None
    evaluation_peak_bytes: int | None = None
    scene: str = ""
    """Which of several."""


@dataclass(frozen=True, slots=True)
class BlockRatio:
    """What one block said, and which runs it was."""

    block: int
    ratio: float
    runs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RatioRow:
    """One comparison; `floor` is the noise floor as a fraction, None where no A/A was run."""

    candidate: str
    reference: str
    ratio: float
    low: float
    high: float
    blocks: tuple[BlockRatio, ...]
    verdict: Verdict
    session: str = ""
    floor: float | None = None
    tolerated: float = 0.02
    method: str = "paired t"
    deviation: float | None = None
    """s_d, the noise of one block."""
    quality: tuple[str, ...] = ()
    control: bool = False
    """An A/A: the same phase on both sides."""
    label: str = ""
    """Which scene or machine, or which figure of an aim, where it is a part of another row."""
    scenes: tuple[RatioRow, ...] = ()
    machines: tuple[RatioRow, ...] = ()
    figures: tuple[RatioRow, ...] = ()
    """What it aims at, where that is not speed alone; above 1 the candidate gains."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Loss over the training clock, and the metric wherever it was evaluated: (clock, step, value)."""

    run: str
    phase: str
    points: tuple[tuple[float, float], ...] = ()
    evaluations: tuple[tuple[float, int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class MemoryTrace:
    """Resident bytes over the life of one process, in seconds since its start."""

    run: str
    phase: str
    points: tuple[tuple[float, int], ...]
    stages: tuple[Stage, ...] = ()
    peaks: tuple[tuple[str, int], ...] = ()
    """Highest per stage, as recorded."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class PassTimes:
    """Milliseconds a step, mean over the runs; `rest` is what no pass accounts for."""

    phase: str
    runs: tuple[str, ...]
    milliseconds: Mapping[str, float]
    rest: float = 0.0

    @property
    def total(self) -> float:
        return sum(self.milliseconds.values()) + self.rest


@dataclass(frozen=True, slots=True)
class Picture:
    """One view: the photo and what each phase made of it, as data addresses."""

    view: str
    photo: str
    renders: Mapping[str, str]
    size: tuple[int, int]
    runs: Mapping[str, str] = field(default_factory=dict)
    """Which run each render came from, where it is known."""


@dataclass(frozen=True, slots=True)
class ModelPage:
    """A page of its own, with a viewer, that lies beside the report: it may be larger than the report."""

    phase: str
    """Empty for a model that no run of the lab made."""
    run: str
    address: str
    size: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class ReportDocument:
    title: str = "benchmark"
    generated: str = ""
    configuration: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)
    phases: tuple[LogPhase, ...] = ()
    quality: QualityBaseline | None = None
    ratios: tuple[RatioRow, ...] = ()
    runs: tuple[RunRow, ...] = ()
    curves: tuple[Curve, ...] = ()
    memory: tuple[MemoryTrace, ...] = ()
    passes: tuple[PassTimes, ...] = ()
    pictures: tuple[Picture, ...] = ()
    model: ModelPage | None = None
    """The model of the best arm that kept one."""
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    noise: str = ""
    """The A/A control in a sentence; empty if there is none."""
    history: History | None = None

    def scene_rows(self) -> tuple[RatioRow, ...]:
        return tuple(part for row in self.ratios for part in row.scenes)

    def machine_rows(self) -> tuple[RatioRow, ...]:
        return tuple(part for row in self.ratios for part in row.machines)

    def figure_rows(self) -> tuple[RatioRow, ...]:
        """Over all scenes, then scene by scene."""
        return tuple(figure for row in self.ratios for part in (row, *row.scenes) for figure in part.figures)

    def order(self) -> dict[str, int]:
        """Phase -> its number, which chooses colour, dash and mark."""
        return {phase.name: number for number, phase in enumerate(self.phases)}

    def best(self) -> str:
        """The phase with the highest PSNR; if two are equal, the later one."""
        rated = [
            (round(figures[-1].metrics.get("psnr", -1.0), 4), number, phase.name)
            for number, phase in enumerate(self.phases)
            if (figures := phase.test or phase.train)
        ]
        return max(rated)[2] if rated else ""

    def runs_of(self, phase: str) -> tuple[RunRow, ...]:
        """The runs whose figures stand for the phase."""
        return tuple(row for row in self.runs if row.phase == phase and row.counted and row.shown)
