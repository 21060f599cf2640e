"""Loss and PSNR over the training clock: one run a phase in full, the others where they were evaluated."""

from __future__ import annotations

from collections.abc import Mapping

from splatmeter.lab.report.drawing import (
    Box,
    bottom_axis,
    canvas,
    colour,
    dash,
    figure,
    left_axis,
    legend,
    mark,
    path,
    to_run,
)
from splatmeter.lab.report.markup import Markup
from splatmeter.lab.report.report_document import Curve
from splatmeter.lab.report.scale import Scale, decades, exact, linear
from splatmeter.lab.report.wording import figure_cell, html_table

MOST_POINTS = 300
ROWS_IN_TABLE = 12


def loss_over_time(curves: tuple[Curve, ...], order: Mapping[str, int]) -> Markup:
    """The moving average; logarithmic where it falls by more than half an order of magnitude."""
    shown = [curve for curve in curves if curve.points]
    caption = "Moving average of the loss; of each phase the run whose speed is the median of its session."
    return figure(
        lambda width: _losses(shown, order, width),
        caption,
        _loss_table(shown),
        _legend(shown, order, lines=True),
    )


def _losses(curves: list[Curve], order: Mapping[str, int], width: int) -> Markup:
    box = Box(56, 26, width - 12, 270 if width > 600 else 230)
    values = [value for curve in curves for _, value in curve.points]
    falls = min(values) > 0 and max(values) > 3 * min(values)
    y = decades(values, box.bottom, box.top) if falls else linear(values, box.bottom, box.top, 5)
    x = _time([clock for curve in curves for clock, _ in curve.points], box)
    parts = [left_axis(y, box, "loss"), bottom_axis(x, box, "training clock (s)")]
    for curve in curves:
        place = order[curve.phase]
        drawn = path(
            [(x(a), y(b)) for a, b in thinned(curve.points)],
            f"curve {colour(place)} {dash(place)}",
            f"{curve.phase}: {curve.run}",
        )
        parts.append(to_run(curve.run, drawn))
    return canvas(width, box.bottom + 42, f"Loss over training time of {len(curves)} phases", *parts)


def psnr_over_time(curves: tuple[Curve, ...], order: Mapping[str, int]) -> Markup:
    shown = [curve for curve in curves if curve.evaluations]
    caption = (
        "PSNR on held-out views wherever a run was evaluated, at the time its training clock showed; lines "
        "belong to the run of the median speed."
    )
    return figure(
        lambda width: _qualities(shown, order, width),
        caption,
        _psnr_table(shown),
        _legend(shown, order, lines=False),
    )


def _qualities(curves: list[Curve], order: Mapping[str, int], width: int) -> Markup:
    box = Box(56, 26, width - 12, 270 if width > 600 else 230)
    y = linear([value for curve in curves for _, _, value in curve.evaluations], box.bottom, box.top, 5)
    x = _time([clock for curve in curves for clock, _, _ in curve.evaluations], box)
    parts = [left_axis(y, box, "PSNR (dB)"), bottom_axis(x, box, "training clock (s)")]
    for curve in curves:
        place = order[curve.phase]
        line = [(x(clock), y(value)) for clock, _, value in curve.evaluations]
        whole = bool(curve.points)
        if whole:
            parts.append(path(line, f"curve thin {colour(place)} {dash(place)}"))
        for clock, step, value in curve.evaluations:
            style = "mark" if whole else "mark faint"
            words = f"{curve.phase}: {value:.3f} dB at step {step}, {curve.run}"
            parts.append(to_run(curve.run, mark(x(clock), y(value), place, style, 4, words)))
    return canvas(width, box.bottom + 42, f"PSNR over training time of {len(curves)} runs", *parts)


def thinned(points: tuple[tuple[float, float], ...], most: int = MOST_POINTS) -> list[tuple[float, float]]:
    """At most about `most` points: of each stretch its lowest and highest, so that no spike is lost."""
    if len(points) <= most:
        return list(points)
    size = -(-2 * len(points) // most)
    kept: list[tuple[float, float]] = []
    for begin in range(0, len(points), size):
        stretch = points[begin : begin + size]
        kept += sorted({min(stretch, key=lambda p: p[1]), max(stretch, key=lambda p: p[1])})
    return sorted({points[0], *kept, points[-1]})


def _time(clocks: list[float], box: Box) -> Scale:
    return exact(0.0, max(clocks, default=1.0), box.left, box.right - 8, 6 if box.right > 500 else 4)


def _legend(curves: list[Curve], order: Mapping[str, int], lines: bool) -> Markup:
    return legend([(order[name], name) for name in dict.fromkeys(curve.phase for curve in curves)], lines)


def _loss_table(curves: list[Curve]) -> Markup:
    rows = [
        (curve.phase, figure_cell(clock, 2), figure_cell(value, 5), curve.run)
        for curve in curves
        for clock, value in curve.points[:: max(1, len(curve.points) // ROWS_IN_TABLE)]
    ]
    return html_table(("Phase", "Clock (s)", "Loss", "Run"), rows, "Loss over time, some of the points")


def _psnr_table(curves: list[Curve]) -> Markup:
    rows = [
        (curve.phase, step, figure_cell(clock, 2), figure_cell(value, 3), curve.run)
        for curve in curves
        for clock, step, value in curve.evaluations
    ]
    return html_table(("Phase", "Step", "Clock (s)", "PSNR (dB)", "Run"), rows, "PSNR over time")
