"""The history of a track as small charts that share their sessions: solid lines inside a session, dotted ones
where the very same code was measured again, and none where nothing may be compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from splatmeter.lab.history.history_text import against_text, reading_figure
from splatmeter.lab.history.tracks import SIGNS, Change, FigureKind, Point, Track, follows
from splatmeter.lab.report.drawing import (
    Box,
    canvas,
    colour,
    label,
    left_axis,
    line,
    mark,
    path,
    tag,
    to_run,
)
from splatmeter.lab.report.markup import Markup, join
from splatmeter.lab.report.scale import Scale, linear, ratios

PANEL, HEAD, FOOT = 100.0, 30.0, 28.0
ROOM = 14.0
"""Above the highest point, for its mark."""
NARROWEST_SLOT = 13.0
WIDEST_SLOT = 46.0
_TONES = {Change.BETTER: "good", Change.WORSE: "bad", Change.DOUBTED: "doubt"}
"""Marks that are drawn; *no change* and *not shown* would only be clutter."""
_UNITS = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))


@dataclass(frozen=True, slots=True)
class Dot:
    """One figure of one point, as the panel draws it."""

    point: Point
    value: float
    low: float
    high: float
    words: str
    change: Change | None


@dataclass(frozen=True, slots=True)
class Panel:
    kind: FigureKind
    title: str
    dots: tuple[Dot, ...]
    logarithmic: bool = False


def panels(track: Track) -> list[Panel]:
    """One panel for every figure that is known. Speed is shown as the ratio to the first arm of each session,
    because it/s of two sessions do not compare.
    """
    found: list[Panel] = []
    for kind in track.known():
        dots = [_ratio(point) if kind.name == "speed" else _figure(point, kind) for point in track.points]
        known = tuple(dot for dot in dots if dot is not None)
        if kind.name == "speed":
            title = "Speed against the session's first arm (ratio)"
            known = known if any(dot.point.against_first for dot in known) else ()
        else:
            known, unit = _scaled(known, kind)
            title = f"{kind.title}{f' ({unit})' if unit else ''}"
        if known:
            found.append(Panel(kind, title, known, logarithmic=kind.name == "speed"))
    return found


def _ratio(point: Point) -> Dot | None:
    against = point.against_first
    name = f"{point.variant.label}, session {point.number}"
    if against is None:
        alone = point.first is None or point.kind in ("record", "quality") or point.variant != point.first
        return (
            None if alone else Dot(point, 1.0, 1.0, 1.0, f"{name}: what the others are compared with", None)
        )
    if not against.blocks:
        return None
    known = math.isfinite(against.high)
    low, high = (against.low, against.high) if known else (against.ratio, against.ratio)
    words = f"{name}: {against_text(against)} against {against.reference}"
    return Dot(point, against.ratio, low, high, words, against.changes.get("speed"))


def _figure(point: Point, kind: FigureKind) -> Dot | None:
    reading = point.readings.get(kind.name)
    if reading is None:
        return None
    change = point.against.changes.get(kind.name) if point.against and kind.judged else None
    words = (
        f"{point.variant.label}, session {point.number}: {kind.title} {reading_figure(kind, reading.value)}"
    )
    if change is not None and point.against:
        words += f", against {point.against.reference}: {change.value}"
    return Dot(point, reading.value, reading.low, reading.high, words, change)


def _scaled(dots: tuple[Dot, ...], kind: FigureKind) -> tuple[tuple[Dot, ...], str]:
    """Bytes in the unit of the largest."""
    if kind.unit != "bytes" or not dots:
        return dots, kind.unit
    most = max(dot.high for dot in dots)
    size, unit = next(((size, unit) for size, unit in _UNITS if most >= size), (1.0, "B"))
    scaled = (
        Dot(dot.point, dot.value / size, dot.low / size, dot.high / size, dot.words, dot.change)
        for dot in dots
    )
    return tuple(scaled), unit


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each point stands from left to right, as shares of the plot's width."""

    places: Mapping[tuple[str, str], float]
    """By session and arm."""
    sessions: tuple[tuple[int, float, float], ...]
    """Number, left and right border."""
    slots: int
    left_out: int
    """Older sessions that do not fit."""


def layout(track: Track, width: float) -> Layout:
    """The newest sessions that have room; a session's arms stand beside each other."""
    sessions = list(track.sessions().values())
    shown: list[list[Point]] = []
    slots = 0
    for points in reversed(sessions):
        if shown and (slots + len(points) + 1) * NARROWEST_SLOT > width:
            break
        shown.insert(0, points)
        slots += len(points) + 1
    step = min(WIDEST_SLOT, width / max(1, slots)) / width
    places: dict[tuple[str, str], float] = {}
    borders: list[tuple[int, float, float]] = []
    begin = 0.0
    for points in shown:
        for place, point in enumerate(points):
            places[point.session, point.arm] = begin + (place + 1) * step
        end = begin + (len(points) + 1) * step
        borders.append((points[0].number, begin, end))
        begin = end
    return Layout(places, tuple(borders), slots, len(sessions) - len(shown))


def draw(track: Track, found: Sequence[Panel], order: Mapping[str, int]) -> Callable[[int], Markup]:
    def drawn(width: int) -> Markup:
        beside = 2 if width > 600 and layout(track, (width - 90) / 2).left_out == 0 else 1
        inner = (width - 40.0 * (beside - 1)) / beside
        plot = inner - 62
        spread = layout(track, plot)
        height = HEAD + PANEL + FOOT
        parts: list[Markup] = []
        for number, panel in enumerate(found):
            left = (number % beside) * (inner + 40) + 56
            top = (number // beside) * height + HEAD
            parts.append(_panel(panel, Box(left, top, left + plot, top + PANEL), spread, order))
        rows = -(-len(found) // beside)
        words = f"History of {len(found)} figures over {len(spread.sessions)} sessions"
        if spread.left_out:
            said = f"{spread.left_out} older session{'s do' if spread.left_out > 1 else ' does'} not fit here"
            parts.append(label(56, rows * height + 6, f"{said}; the table has all.", "tick"))
        return canvas(width, rows * height + (14 if spread.left_out else 0), words, *parts)

    return drawn


def _panel(panel: Panel, box: Box, spread: Layout, order: Mapping[str, int]) -> Markup:
    shown = [dot for dot in panel.dots if (dot.point.session, dot.point.arm) in spread.places]
    values = [value for dot in shown for value in (dot.low, dot.value, dot.high)]
    ends = (box.bottom, box.top + ROOM)
    scale = ratios(values, *ends, 3) if panel.logarithmic else linear(values, *ends, 3)
    parts = [left_axis(scale, box, panel.title), *_sessions(box, spread)]
    if panel.logarithmic:
        parts.append(line(box.left, scale(1.0), box.right, scale(1.0), "one"))
    drawn = _Drawn(panel, box, spread, scale, order)
    parts += [drawn.inside(dot, shown) for dot in shown]
    parts += drawn.between(shown)
    parts += [drawn.dot(dot) for dot in shown]
    return tag("g", *parts)


def _sessions(box: Box, spread: Layout) -> list[Markup]:
    """Their numbers below; a line keeps neighbours apart. Numbers that would touch are left out."""
    width = box.right - box.left
    parts = [line(box.left, box.bottom, box.right, box.bottom, "axis")]
    free = -math.inf
    for number, begin, end in spread.sessions:
        x = box.left + width * (begin + end) / 2
        if begin > 0:
            border = box.left + width * begin
            parts.append(line(border, box.top, border, box.bottom + 4, "grid"))
        half = 3.5 * len(str(number))
        if x - half > free:
            parts.append(label(x, box.bottom + 15, number, "tick", "middle"))
            free = x + half + 4
    return parts


@dataclass(frozen=True, slots=True)
class _Drawn:
    panel: Panel
    box: Box
    spread: Layout
    scale: Scale
    order: Mapping[str, int]

    def at(self, dot: Dot) -> tuple[float, float]:
        share = self.spread.places[dot.point.session, dot.point.arm]
        return self.box.left + share * (self.box.right - self.box.left), self.scale(dot.value)

    def tone(self, dot: Dot) -> str:
        return colour(self.order.get(dot.point.variant.phase, 0))

    def inside(self, dot: Dot, shown: Sequence[Dot]) -> Markup:
        """From what it was compared with, in its own session."""
        parent = next((other for other in shown if _is_parent(other, dot, self.panel)), None)
        if parent is None:
            return Markup("")
        return path([self.at(parent), self.at(dot)], f"curve thin {self.tone(dot)}")

    def between(self, shown: Sequence[Dot]) -> list[Markup]:
        """To the next session that measured the very same."""
        parts: list[Markup] = []
        for place, dot in enumerate(shown):
            name = self.panel.kind.name
            later = next(
                (other for other in shown[place + 1 :] if follows(dot.point, other.point, name)), None
            )
            if later is not None:
                words = f"the same code of {dot.point.variant.label}, measured again"
                style = f"curve thin d2 {self.tone(dot)}"
                parts.append(path([self.at(dot), self.at(later)], style, words))
        return parts

    def dot(self, dot: Dot) -> Markup:
        x, y = self.at(dot)
        parts = [line(x, self.scale(dot.low), x, self.scale(dot.high), f"interval thin {self.tone(dot)}")]
        number = self.order.get(dot.point.variant.phase, 0)
        parts.append(to_run(dot.point.runs[0], mark(x, y, number, "mark", 4.0, dot.words)))
        if dot.change is not None and dot.change in _TONES:
            above = min(y, self.scale(dot.high)) - 7
            parts.append(label(x, above, SIGNS[dot.change], f"word {_TONES[dot.change]}", "middle"))
        return join(parts)


def _is_parent(other: Dot, dot: Dot, panel: Panel) -> bool:
    """The arm that the point names, in the same session, with the figure taken in the same way."""
    a, b = other.point, dot.point
    if a.session != b.session or a.arm == b.arm or not b.parent or a.variant.label != b.parent:
        return False
    if panel.kind.name == "speed":
        return True
    return a.readings[panel.kind.name].basis == b.readings[panel.kind.name].basis
