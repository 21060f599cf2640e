"""`lab history`: a lab's figures over sessions and revisions, in the terminal, as CSV, in MLflow."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from splatmeter.cli.lab import lab_folder
from splatmeter.cli.lab_text import clean
from splatmeter.errors import MissingFile
from splatmeter.lab.history import history_text
from splatmeter.lab.history.history import history as gathered
from splatmeter.lab.history.tracks import SIGNS, Change, FigureKind, History, Point, Track
from splatmeter.lab.json_files import write_text
from splatmeter.lab.record.lab import Lab

if TYPE_CHECKING:
    from rich.table import Table

_TONES = {SIGNS[Change.BETTER]: "green", SIGNS[Change.WORSE]: "red", SIGNS[Change.DOUBTED]: "yellow"}
MOST_SENTENCES = 12
LONGEST_NAME = 28


@dataclass(frozen=True, slots=True)
class Column:
    head: str
    cells: list[str]
    numbers: bool = False

    @property
    def width(self) -> int:
        return max(len(self.head), *map(len, self.cells))


def history(chosen: Namespace) -> int:
    lab = Lab(lab_folder(chosen)).checked()
    found = gathered(lab)
    if chosen.csv is not None:
        _write_csv(found, str(chosen.csv))
    if chosen.mlflow:
        _write_mlflow(lab, found, chosen.mlflow)
    if chosen.csv is None and not chosen.mlflow:
        _show(_narrowed(found, chosen))
    return 0


def _write_csv(found: History, target: str) -> None:
    from splatmeter.lab.history.csv_table import as_csv

    if target == "-":
        sys.stdout.write(as_csv(found))
        return
    write_text(Path(target), as_csv(found))
    print(target)


def _write_mlflow(lab: Lab, found: History, target: str) -> None:
    from splatmeter.lab.history.mlflow_store import export

    print(export(lab, found, target).sentence)


def _narrowed(found: History, chosen: Namespace) -> History:
    """Only for the eye: files hold everything."""
    if chosen.phase:
        known = sorted({point.variant.phase for point in found.points})
        if chosen.phase not in known:
            listed = ", ".join(known) or "none yet"
            raise MissingFile(f"No run of {chosen.phase!r} counts in this lab; measured were: {listed}.")
    tracks = [track for track in found.tracks if track.current or not chosen.now]
    kept = [replace(track, points=_kept(track, chosen)) for track in tracks]
    return replace(found, tracks=tuple(track for track in kept if track.points))


def _kept(track: Track, chosen: Namespace) -> tuple[Point, ...]:
    """The newest sessions, and of them those with the phase; its reference stays beside it."""
    sessions = track.sessions()
    if chosen.phase:
        sessions = {
            name: points
            for name, points in sessions.items()
            if any(point.variant.phase == chosen.phase for point in points)
        }
    names = list(sessions)[-chosen.last :] if chosen.last > 0 else list(sessions)
    return tuple(point for name in names for point in sessions[name])


def _show(found: History) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if not found.tracks:
        console.print(clean(history_text.NOTHING))
    for track in found.tracks:
        console.print(clean(history_text.track_title(found, track)), style="bold")
        console.print(clean(track.describes), style="dim")
        for columns in packed(_keys(track), _columns(found, track), console.width):
            console.print(_table(columns))
        console.print()
    for sentence in (
        *(history_text.comparable(found) if found.tracks else ()),
        *history_text.revision_notes(found),
        *history_text.listed(history_text.objections(found), MOST_SENTENCES),
        *history_text.listed(found.remarks, MOST_SENTENCES),
        *history_text.listed(found.left_out, MOST_SENTENCES),
    ):
        console.print(clean(sentence))


def _keys(track: Track) -> list[Column]:
    """Which arm of which session; a session is named once."""
    sessions = [history_text.session_text(point) for point in track.points]
    named = [now if now != before else "" for before, now in pairwise(["", *sessions])]
    return [Column("session", named), Column("phase", [_short(_arm(point)) for point in track.points])]


def _arm(point: Point) -> str:
    """An A/A has two arms of one phase."""
    return f"{point.variant.label}{point.arm.removeprefix(point.variant.phase)}"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _columns(found: History, track: Track) -> list[Column]:
    """Without those that would be empty."""
    points = track.points
    kinds = track.known()
    columns = [Column("revision", [history_text.revision_text(found, point) for point in points])]
    columns += [_figures(points, kind) for kind in kinds if kind.name == "speed"]
    columns += [
        Column("against", [_short(point.parent) for point in points]),
        Column("speed ratio", [history_text.against_text(point.against) for point in points]),
        Column("against the first arm", [_against_first(point) for point in points]),
        Column("verdict", [_verdict(point) for point in points]),
    ]
    columns += [_figures(points, kind) for kind in kinds if kind.name != "speed"]
    return [
        column for column in columns if any(cell not in ("", history_text.UNKNOWN) for cell in column.cells)
    ]


def _figures(points: Sequence[Point], kind: FigureKind) -> Column:
    title = kind.unit if kind.name == "speed" else kind.title
    return Column(title, [history_text.reading_text(point, kind) for point in points], numbers=True)


def _against_first(point: Point) -> str:
    """Only where that is another comparison."""
    return "" if point.against_first == point.against else history_text.against_text(point.against_first)


def _verdict(point: Point) -> str:
    """An A/A judges nobody."""
    return point.against.verdict.kind.value if point.against and point.kind != "aa" else ""


def packed(keys: list[Column], columns: list[Column], width: int) -> list[list[Column]]:
    """As many tables below each other as it takes: every one has the keys, and none is wider than the
    terminal unless a single column is.
    """
    between = 3  # two blanks, and the one that the table itself puts there
    room = width - sum(column.width + between for column in keys)
    tables: list[list[Column]] = []
    left = 0
    for column in columns:
        if not tables or column.width + between > left:
            tables.append([*keys])
            left = room
        tables[-1].append(column)
        left -= column.width + between
    return tables or [keys]


def _table(columns: list[Column]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column.head, no_wrap=True, justify="right" if column.numbers else "left")
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(Text(clean(cell), style=_tone(cell)) for cell in row))
    return table


def _tone(cell: str) -> str:
    return next((tone for sign, tone in _TONES.items() if sign in cell.split()), "")
