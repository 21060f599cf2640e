"""What the generated log is made of: measured values only; what follows from them is computed on writing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from splatmeter.lab.compare.margins import margin_of
from splatmeter.lab.log.kernel_lines import KernelReport
from splatmeter.lab.samples.finding import Finding
from splatmeter.lab.samples.verdict_kinds import Verdict


@dataclass(frozen=True, slots=True)
class SpeedFigure:
    """Steps per second over the runs of a phase; bounds of a 95 % interval, None for a single run."""

    steps_per_second: float
    runs: int = 1
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class RatioFigure:
    """The paired ratio of speeds against another phase, with its 95 % interval."""

    reference: str
    ratio: float
    low: float
    high: float
    blocks: int


@dataclass(frozen=True, slots=True)
class MetricsFigure:
    """Means over the views of one split at one step: l1, psnr, ssim, lpips."""

    step: int
    metrics: Mapping[str, float]
    views: int | None = None
    exposure: str = "none"
    """The protocol of exposure that they follow: only figures of one protocol compare."""


@dataclass(frozen=True, slots=True)
class LogPhase:
    name: str
    title: str = ""
    parent: str = ""
    verdict: Verdict | None = None
    state: str = ""
    """recorded, measured, failed …, for phases without a verdict."""
    speed: SpeedFigure | None = None
    ratios: tuple[RatioFigure, ...] = ()
    """Against the parent first, then against the baseline."""
    loss: float | None = None
    loss_last_100: float | None = None
    training_peak_bytes: int | None = None
    evaluation_peak_bytes: int | None = None
    shared_memory: str = ""
    card: str = ""
    """Clocks, heat and power of the card while it worked, in words; empty where nothing was seen."""
    test: tuple[MetricsFigure, ...] = ()
    train: tuple[MetricsFigure, ...] = ()
    gaussians: int | None = None
    mean_opacity: float | None = None
    date: str = ""
    configuration: tuple[str, ...] = ()
    code_changes: tuple[str, ...] = ()
    notes: str = ""
    """Markdown, used until a person has written something else into the file."""
    findings: tuple[Finding, ...] = ()
    remark: str = ""
    """A few words for the last column of the table."""
    kernels: KernelReport | None = None
    """What its build says about its kernels; None where it says nothing."""
    aim: str = ""
    """What it is meant to gain, where that is not speed."""
    details: tuple[tuple[str, str], ...] = ()
    """Label and text: figures of its aim, and what each of several scenes says."""


@dataclass(frozen=True, slots=True)
class QualityBaseline:
    phase: str
    figure: MetricsFigure
    tolerance: float = 0.005
    """The tolerance of PSNR; the other metrics get the one that goes with it, or what `margins` states."""
    split: str = "test"
    margins: Mapping[str, float] = field(default_factory=dict)

    def margin(self, metric: str) -> float:
        return margin_of(metric, self.tolerance, self.margins)


@dataclass(frozen=True, slots=True)
class LogDocument:
    title: str = "Training Speed Tracking"
    overview: str = ""
    configuration: Mapping[str, str] = field(default_factory=dict)
    quality: QualityBaseline | None = None
    phases: tuple[LogPhase, ...] = ()
    measurement_notes: tuple[str, ...] = ()
