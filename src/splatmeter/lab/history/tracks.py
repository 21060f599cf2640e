"""The plain data of a history: figures that were measured under equal conditions lie on one track.

Nothing joins two tracks. On one track, arms of the same session were compared by the lab's rules, and only
those say that something has changed; between sessions only the very same code is followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from splatmeter.lab.samples.verdict_kinds import Verdict


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A figure as tables, charts and files write it."""

    name: str
    title: str
    unit: str = ""
    decimals: int = 4
    judged: bool = True
    """False where the lab has no rule that tells a change from noise."""


FIGURES = (
    FigureKind("speed", "Speed", "it/s", 3),
    FigureKind("psnr", "PSNR", "dB", 3),
    FigureKind("ssim", "SSIM", "", 4),
    FigureKind("lpips", "LPIPS", "", 4),
    FigureKind("l1", "L1", "", 5),
    FigureKind("loss", "Loss", "", 5, judged=False),
    FigureKind("training_peak", "Train peak", "bytes", 0),
    FigureKind("evaluation_peak", "Eval peak", "bytes", 0),
    FigureKind("gaussians", "Gaussians", "", 0, judged=False),
)
METRICS = ("psnr", "ssim", "lpips", "l1")


class Change(str, Enum):
    """What the lab's own rules say of one figure against the reference of its session."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "no change beyond the margin"
    OPEN = "not shown"
    """Too few blocks or seeds, too much noise, or nothing to compare."""
    DOUBTED = "questionable"
    """There is an objection to the comparison: whatever it shows is no change."""


SIGNS = {
    Change.BETTER: "▲",
    Change.WORSE: "▼",
    Change.SAME: "=",
    Change.OPEN: "·",
    Change.DOUBTED: "!",
}


@dataclass(frozen=True, slots=True)
class Conditions:
    """What two figures must share to stand on one track."""

    protocol: str
    """Fingerprint of everything that is equal in all runs."""
    scene: str
    photos: str
    """Hash of what the scene held, where the trainer tells it."""
    start: str
    """Hash of the checkpoint; empty: from the points."""
    steps: tuple[int, int]
    """The first step and how many were timed, as the events have it."""
    machine: str
    hardware: str
    rules: str
    """By which margins changes are judged."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One program under one name: a phase that is declared otherwise, or has other code, is another one."""

    phase: str
    number: int
    definition: str
    code: str
    known: bool
    """Every run told its code, and told the same."""

    @property
    def label(self) -> str:
        return self.phase if self.number == 1 else f"{self.phase} ({self.number})"


@dataclass(frozen=True, slots=True)
class Reading:
    """One figure of one arm of one session."""

    value: float
    low: float
    high: float
    """The range of its single runs."""
    basis: str = ""
    """How it was taken; readings of two bases are never joined."""


@dataclass(frozen=True, slots=True)
class Against:
    """A comparison inside one session."""

    reference: str
    """Label of the reference's variant."""
    ratio: float
    low: float
    high: float
    """The ratio of speeds with its 95 % interval; nan and (0, inf) where nothing was timed in pairs."""
    blocks: int
    changes: Mapping[str, Change]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Point:
    """One arm of one session."""

    session: str
    number: int
    """The number of the session within the history: the oldest is 1."""
    kind: str
    created: str
    arm: str
    variant: Variant
    revision: str = ""
    """The commit that the code was taken from, as the runs recorded it; empty if unknown."""
    changed_tree: bool = False
    """The working tree was not what the commit has."""
    runs: tuple[str, ...] = ()
    readings: Mapping[str, Reading] = field(default_factory=dict)
    parent: str = ""
    """Label of the arm it is compared with; empty for the first."""
    against: Against | None = None
    """With its parent, or with the first arm where that was not measured; None: nothing was compared."""
    first: Variant | None = None
    """The session's first arm, which the ratios of a chart refer to."""
    against_first: Against | None = None


@dataclass(frozen=True, slots=True)
class Track:
    conditions: Conditions
    points: tuple[Point, ...]
    describes: str
    """The conditions in words."""
    current: bool = False
    """By the protocol as it is now."""

    def sessions(self) -> dict[str, list[Point]]:
        """Oldest first, arms in the order of the plan."""
        found: dict[str, list[Point]] = {}
        for point in self.points:
            found.setdefault(point.session, []).append(point)
        return found

    def known(self) -> list[FigureKind]:
        """Figures that any point has."""
        return [kind for kind in FIGURES if any(kind.name in point.readings for point in self.points)]


@dataclass(frozen=True, slots=True)
class History:
    title: str
    tracks: tuple[Track, ...] = ()
    remarks: tuple[str, ...] = ()
    """What is something else than its name says: phases that were declared otherwise, other code."""
    left_out: tuple[str, ...] = ()
    """Evidence that does not count, by name and reason."""
    subjects: Mapping[str, str] = field(default_factory=dict)
    """Commit -> first line of its message, where git still has it."""
    asked_git: bool = False
    """A repository was there to be asked."""

    @property
    def points(self) -> list[Point]:
        return [point for track in self.tracks for point in track.points]


def follows(earlier: Point, later: Point, figure: str) -> bool:
    """Whether a line may lead from one session to the next: the very same code, and the figure taken in the
    same way; of speed only the ratio to the very same reference."""
    a, b = earlier.readings.get(figure), later.readings.get(figure)
    if a is None or b is None or a.basis != b.basis or earlier.session == later.session:
        return False
    same = earlier.variant == later.variant and earlier.variant.known
    if figure != "speed":
        return same
    timed = earlier.against_first is not None and later.against_first is not None
    return same and timed and earlier.first == later.first and bool(earlier.first and earlier.first.known)
