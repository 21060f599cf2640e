"""The history for other tools: one row for each arm of each session, with everything that must be equal
before two rows may be compared.
"""

from __future__ import annotations

import csv
import io
import math

from splatmeter.lab.history.tracks import FIGURES, Against, History, Point, Track
from splatmeter.lab.record.export import spreadsheet_cell

CONDITIONS = (
    "track", "protocol", "scene", "photos", "start", "first_step", "timed_steps", "machine", "hardware",
    "rules",
)  # fmt: skip
ARM = (
    "session", "session_number", "kind", "created", "arm", "phase", "variant", "definition", "code",
    "revision", "revision_subject", "changed_tree", "runs",
)  # fmt: skip
COMPARED = ("against", "speed_ratio", "speed_ratio_low", "speed_ratio_high", "blocks", "verdict")
FIRST = ("first_arm", "first_speed_ratio", "first_speed_ratio_low", "first_speed_ratio_high")


def as_csv(history: History) -> str:
    """`track` and `session` say what compares: speeds inside a session, other figures inside a track."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    figures = [name for kind in FIGURES for name in _names(kind.name)]
    writer.writerow([*CONDITIONS, *ARM, *COMPARED, *FIRST, *figures])
    for place, track in enumerate(history.tracks, start=1):
        for point in track.points:
            row = [*_conditions(place, track), *_arm(history, point), *_compared(point), *_figures(point)]
            writer.writerow([spreadsheet_cell(cell) for cell in row])
    return text.getvalue()


def _names(figure: str) -> tuple[str, ...]:
    return figure, f"{figure}_lowest", f"{figure}_highest", f"{figure}_basis", f"{figure}_change"


def _conditions(place: int, track: Track) -> list[object]:
    found = track.conditions
    return [
        place, found.protocol, found.scene, found.photos, found.start, *found.steps, found.machine,
        found.hardware, found.rules,
    ]  # fmt: skip


def _arm(history: History, point: Point) -> list[object]:
    variant = point.variant
    return [
        point.session, point.number, point.kind, point.created, point.arm, variant.phase, variant.label,
        variant.definition, variant.code, point.revision, history.subjects.get(point.revision, ""),
        "yes" if point.changed_tree else "no", len(point.runs),
    ]  # fmt: skip


def _compared(point: Point) -> list[object]:
    parent, first = point.against, point.against_first
    verdict = parent.verdict.kind.value if parent else ""
    of_parent = [
        parent.reference if parent else "",
        *_ratio(parent),
        parent.blocks if parent else None,
        verdict,
    ]
    return [*of_parent, first.reference if first else "", *_ratio(first)]


def _ratio(against: Against | None) -> list[float | None]:
    if against is None or not against.blocks:
        return [None, None, None]
    known = math.isfinite(against.high)
    return [against.ratio, against.low if known else None, against.high if known else None]


def _figures(point: Point) -> list[object]:
    cells: list[object] = []
    for kind in FIGURES:
        reading = point.readings.get(kind.name)
        change = point.against.changes.get(kind.name) if point.against else None
        told = change.value if change is not None and kind.judged else ""
        cells += [None] * 4 if reading is None else [reading.value, reading.low, reading.high, reading.basis]
        cells.append(told)
    return cells
