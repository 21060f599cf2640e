"""What a hand-kept log says, as values: configuration, quality baseline, phases with figures, table.

Nothing here judges. A figure keeps its line, its rounding, and the changes claimed beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from splatmeter.lab.handlog.markdown import Section
from splatmeter.lab.handlog.quantities import Quantity

METRICS = ("l1", "psnr", "ssim", "lpips")


@dataclass(frozen=True, slots=True)
class Change:
    """'+0.24 it/s from Phase 1': a difference (same unit) or percentage (%) claimed beside a figure."""

    quantity: Quantity
    reference: str = ""
    """The phase it names; empty if it names none."""


@dataclass(frozen=True, slots=True)
class Figure:
    quantity: Quantity
    line: int
    text: str
    changes: tuple[Change, ...] = ()
    same_as: str = ""
    """The phase that the log says it equals."""
    estimated: bool = False
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """The checkpoint a run resumes from, as far as the log tells."""

    step: int | None
    phase: str
    """Whose checkpoint it is; empty if the log does not say."""
    line: int


@dataclass(frozen=True, slots=True)
class HandPhase:
    """One experiment; keys of `figures` are 'speed', 'loss', 'training peak', 'evaluation peak',
    'reported peak', 'gaussians', 'opacity', 'test psnr', 'train l1' and so on."""

    name: str
    title: str
    line: int
    marks: str
    status: str
    """success, verified, no speed-up, questionable, on hold, planned, failed, faster …; empty if unsaid."""
    figures: Mapping[str, Figure]
    evaluated_step: int | None = None
    held_out: bool | None = None
    """Trained with views held out (--eval); None if neither the section nor the table says."""
    resolution: int | None = None
    """Photos are divided by this; None if unsaid."""
    start: Start | None = None
    last_step: int | None = None
    repeated: bool = False
    """The section speaks of repeated runs, blocks, or an interval."""
    date: str = ""
    configuration: tuple[str, ...] = ()
    code_changes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    section: Section | None = None

    @property
    def is_baseline(self) -> bool:
        return self.name.lower().startswith("baseline") or self.name.lower().endswith("baseline")

    def quantity(self, key: str) -> Quantity | None:
        figure = self.figures.get(key)
        return figure.quantity if figure else None

    def metrics(self, split: str) -> dict[str, Figure]:
        return {name: f for name in METRICS if (f := self.figures.get(f"{split} {name}")) is not None}


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of the comparison table, matched to its phase by name."""

    line: int
    name: str
    cells: Mapping[str, str]
    phase: str = ""


@dataclass(frozen=True, slots=True)
class HandConfiguration:
    scene: str = ""
    resolution: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    evaluated_step: int | None = None
    start: Start | None = None
    train_images: int | None = None
    test_images: int | None = None
    repeated: bool = False
    """The configuration says that every phase is measured more than once."""
    bullets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HandLog:
    title: str
    sections: tuple[Section, ...]
    configuration: HandConfiguration
    quality_baseline: Mapping[str, Figure]
    tolerance: float | None
    """Of the quality baseline, as a fraction."""
    phases: tuple[HandPhase, ...]
    table: tuple[TableRow, ...]
    lines: tuple[tuple[int, str], ...]
    """Every line of prose, plain, for rules that read words."""

    def phase(self, name: str) -> HandPhase | None:
        return next((phase for phase in self.phases if phase.name == name), None)

    @property
    def baseline(self) -> HandPhase | None:
        """The phase called baseline, or else the first that has a speed."""
        named = next((phase for phase in self.phases if phase.is_baseline), None)
        return named or next((phase for phase in self.phases if "speed" in phase.figures), None)
