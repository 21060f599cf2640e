"""What a hand-kept log says, as values: configuration, quality baseline, phases with figures, table.

Nothing here judges. A figure keeps its line, its rounding, and the changes claimed beside it.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from splatmeter.lab.handlog.markdown import Section
from splatmeter.lab.handlog.mentions import PEAKS, Mention, Passage, Role
from splatmeter.lab.handlog.named_cards import NamedCard
from splatmeter.lab.handlog.names import Names
from splatmeter.lab.handlog.quantities import Quantity

METRICS = ("l1", "psnr", "ssim", "lpips")


@dataclass(frozen=True, slots=True)
class ClaimedChange:
    """'+0.24 it/s from Phase 1': a difference (same unit) or percentage (%) claimed beside a figure."""

    quantity: Quantity
    reference: str = ""
    """The phase it names; empty if it names none."""


@dataclass(frozen=True, slots=True)
class HandFigure:
    quantity: Quantity
    line: int
    text: str
    changes: tuple[ClaimedChange, ...] = ()
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
class Said:
    """A passage with what its numbers are."""

    passage: Passage
    mentions: tuple[Mention, ...]
    heading: str = ""
    """The heading of the column it stands in."""

    def values(self, key: str = "") -> list[Mention]:
        return [m for m in self.mentions if m.role is Role.VALUE and (m.key == key or not key)]


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
    figures: Mapping[str, HandFigure]
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
    aliases: tuple[str, ...] = ()
    """Other words for it: 'Schritt 4', '0.6'."""
    said: tuple[Said, ...] = ()
    """Everything that its entry says, in order."""
    day: datetime.date | None = None
    parents: tuple[str, ...] = ()
    """Phases that it says it builds on."""

    @property
    def is_baseline(self) -> bool:
        name = self.name.lower()
        return (
            name.startswith("baseline")
            or name.endswith("baseline")
            or name in ("base", "reference", "ausgangslage")
        )

    def quantity(self, key: str) -> Quantity | None:
        figure = self.figures.get(key)
        return figure.quantity if figure else None

    def figure(self, key: str) -> HandFigure | None:
        """The figure for this key; where a log only speaks of 'memory', that is the peak of training."""
        found = self.figures.get(key)
        if found is None and key in (PEAKS[0], PEAKS[2]):
            found = self.figures.get(PEAKS[2] if key == PEAKS[0] else PEAKS[0])
        return found

    def all_values(self, key: str) -> list[Quantity]:
        """Whatever its entry gives for this key, the main figure first."""
        main = self.figure(key)
        return [*([main.quantity] if main else []), *(m.quantity for s in self.said for m in s.values(key))]

    def metrics(self, split: str) -> dict[str, HandFigure]:
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
    last_evaluated_step: int | None = None
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
    quality_baseline: Mapping[str, HandFigure]
    tolerance: float | None
    """How much quality may fall below the baseline, as a fraction."""
    phases: tuple[HandPhase, ...]
    table: tuple[TableRow, ...]
    lines: tuple[tuple[int, str], ...]
    """Every line of prose, plain, for rules that read words."""

    loose: tuple[Said, ...] = ()
    """What is said outside the phases: summaries, comments, settings."""
    cards: tuple[NamedCard, ...] = ()
    iterations: int | None = None
    """What holds for every run, if the log says so once for all."""

    called: Names = field(default_factory=lambda: Names([]))

    def phase(self, name: str) -> HandPhase | None:
        return next((phase for phase in self.phases if phase.name == name), None)

    @property
    def in_time(self) -> tuple[HandPhase, ...]:
        """Oldest first: some write the newest on top."""
        days = [phase.day for phase in self.phases if phase.day]
        falling = sum(a > b for a, b in pairwise(days))
        return self.phases[::-1] if falling > len(days) / 2 else self.phases

    @property
    def baseline(self) -> HandPhase | None:
        """The phase called baseline, or else the first that has a speed."""
        named = next((phase for phase in self.phases if phase.is_baseline), None)
        return named or next((phase for phase in self.in_time if "speed" in phase.figures), None)

    def before(self, phase: HandPhase) -> tuple[HandPhase, ...]:
        """The phases that came earlier, oldest first."""
        ordered = self.in_time
        at = next((i for i, other in enumerate(ordered) if other.name == phase.name), len(ordered))
        return ordered[:at]
