"""What a history says in words: figures, marks, revisions, and what may be compared with what."""

from __future__ import annotations

import math
from collections.abc import Iterable

from splatmeter.lab.compare.chance import claims
from splatmeter.lab.history.tracks import FIGURES, SIGNS, Against, FigureKind, History, Point, Track
from splatmeter.lab.samples.verdict_kinds import VerdictKind
from splatmeter.units import bytes_text, count_text

UNKNOWN = "–"
NOTHING = (
    "Nothing has been measured in this lab yet; `splatmeter lab run PHASE` or `splatmeter lab ab A B` does."
)
MARKS = (
    "Marks: ▲ better and ▼ worse than what it is compared with, shown by the lab's rules; = shown to be no "
    "change beyond the margin; · not shown either way; ! there is an objection to the comparison. Loss and "
    "the number of Gaussians have no rule and no marks."
)
INSIDE = (
    "Inside a session arms ran in turns, in random order: their ratios and marks compare. Between two "
    "sessions nothing is judged: it/s of two days tell of the machine's mood as well, so read the ratios."
)
BETWEEN = (
    "Two tracks differ in protocol, scene, start, machine or margins: no figure of one may be compared with "
    "one of the other."
)


def comparable(history: History) -> tuple[str, ...]:
    """What can and what cannot be compared, as far as this history has it."""
    sessions = {point.session for point in history.points}
    compared = any(point.against is not None for point in history.points)
    told = (
        [MARKS] if compared else ["Nothing was compared yet: figures stand beside each other, without marks."]
    )
    told += [INSIDE] if len(sessions) > 1 else []
    told += [BETWEEN] if len(history.tracks) > 1 else []
    chance = by_chance(history)
    return (*told, chance) if chance else tuple(told)


def objections(history: History) -> tuple[str, ...]:
    """Why something is marked with an exclamation mark."""
    found = [
        f"Session {point.number}, {point.variant.label}: {point.against.verdict.sentence}"
        for point in history.points
        if point.against and point.against.verdict.kind is VerdictKind.QUESTIONABLE and point.kind != "aa"
    ]
    return tuple(dict.fromkeys(found))


def by_chance(history: History) -> str:
    """How many gains chance alone may give in so many comparisons; empty where there was none."""
    newest: dict[str, VerdictKind] = {}
    tested: set[tuple[str, str]] = set()
    for point in history.points:
        if point.against is not None and point.kind != "aa":
            newest[point.variant.label] = point.against.verdict.kind
            tested.add((point.session, point.arm))
    told = claims(newest.values(), len(tested)).sentence
    return f"Chance: {told}" if told else ""


def track_title(history: History, track: Track) -> str:
    """Numbered where there are several."""
    place = history.tracks.index(track) + 1
    head = f"Track {place} of {len(history.tracks)}" if len(history.tracks) > 1 else "One track"
    now = (
        ""
        if track.current or not any(t.current for t in history.tracks)
        else " (not the protocol as it is now)"
    )
    return f"{head}: protocol {track.conditions.protocol[:8] or 'unknown'}{now}"


def reading_figure(kind: FigureKind, value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if kind.unit == "bytes":
        return bytes_text(value)
    if kind.name == "gaussians":
        return count_text(round(value))
    if kind.name == "speed":  # four significant digits, however slow or fast
        return f"{value:,.{0 if value >= 1000 else 1 if value >= 100 else 2 if value >= 10 else 3}f}"
    return f"{value:.{kind.decimals}f}"


def reading_text(point: Point, kind: FigureKind) -> str:
    """The figure with its mark: `25.604 =`."""
    reading = point.readings.get(kind.name)
    if reading is None:
        return UNKNOWN
    sign = "" if kind.name == "speed" else change_mark(point.against, kind)
    return f"{reading_figure(kind, reading.value)} {sign}".rstrip()


def change_mark(against: Against | None, kind: FigureKind) -> str:
    change = against.changes.get(kind.name) if against else None
    return SIGNS[change] if change is not None and kind.judged else ""


def against_text(against: Against | None) -> str:
    """The ratio with its interval and mark: `▲ 1.1683 [1.1502, 1.1868]`."""
    if against is None or not against.blocks:
        return ""
    sign = change_mark(against, FIGURES[0])
    if not math.isfinite(against.high):
        return f"{sign} {against.ratio:.4f}, no interval yet".strip()
    return f"{sign} {against.ratio:.4f} [{against.low:.4f}, {against.high:.4f}]".strip()


def revision_text(history: History, point: Point, length: int = 8) -> str:
    """`1a2b3c4d`, with a plus where the tree was changed and a question mark where git has lost it."""
    if not point.revision:
        return UNKNOWN
    gone = history.asked_git and point.revision not in history.subjects
    return f"{point.revision[:length]}{'+' if point.changed_tree else ''}{'?' if gone else ''}"


def revision_notes(history: History) -> tuple[str, ...]:
    """First lines of commits, and what the signs behind them mean where one is shown."""
    shown = list(dict.fromkeys(point.revision for point in history.points if point.revision))
    told = [f"{commit[:8]} {history.subjects[commit]}" for commit in shown if commit in history.subjects]
    if any(point.changed_tree for point in history.points):
        told.append("+ behind a revision: its working tree was changed and not committed.")
    if not history.asked_git and shown:
        told.append("No git repository was there to be asked about these revisions.")
    elif any(commit not in history.subjects for commit in shown):
        told.append(
            "? behind a revision: git does not have it here (any more); the figures are the runs' own."
        )
    return tuple(told)


def session_text(point: Point) -> str:
    """`3  2026-11-16 ab`."""
    kind = {"aa": "A/A", "record": "single"}.get(point.kind, point.kind)
    slices = ", slices" if any(reading.basis == "slices" for reading in point.readings.values()) else ""
    return f"{point.number}  {point.created[:10]} {kind}{slices}"


def listed(sentences: Iterable[str], most: int) -> list[str]:
    """The first few, and how many more there are."""
    known = list(sentences)
    return known if len(known) <= most else [*known[:most], f"… and {len(known) - most} more."]
