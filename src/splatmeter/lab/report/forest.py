"""Ratios with intervals, one row a comparison: right of 1 is faster, inside the band is noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from splatmeter.lab.report.drawing import (
    Box,
    bottom_axis,
    canvas,
    figure,
    label,
    line,
    path,
    rectangle,
    shortened,
    swatches,
    tag,
    to_run,
)
from splatmeter.lab.report.markup import Markup, join
from splatmeter.lab.report.report_document import RatioRow
from splatmeter.lab.report.scale import Scale, ratios
from splatmeter.lab.report.wording import (
    SYMBOLS,
    chip,
    figure_cell,
    html_table,
    ratio_cell,
)


@dataclass(frozen=True, slots=True)
class Words:
    """What the ratios are of."""

    caption: str
    axis: str = "ratio of speeds"
    below: str = "slower"
    above: str = "faster"
    name: str = "speed ratios"


SPEED = Words(
    "Ratio of speeds with its 95 % interval; above 1 the phase is faster than what it is compared with. "
    "Small dots are single blocks and lead to their runs."
)
SCENES = Words(
    "The same for each scene alone. The ratios above are geometric means over scenes with equal weights; a "
    "scene that is shown to be slower, or to lose quality, decides the verdict whatever the mean says."
)
MACHINES = Words(
    "The same for each machine alone. Machines are pooled above only if they agree; where they do not, their "
    "ratios stand there one by one, and a machine that is shown to be slower decides the verdict."
)
AIMS = Words(
    "Ratios of what phases aimed at, with 95 % intervals; above 1 the phase gains: a smaller peak, less time "
    "to a quality, more PSNR after a time.",
    "ratio",
    "loses",
    "gains",
    "ratios of aims",
)


def forest(rows: tuple[RatioRow, ...], words: Words = SPEED) -> Markup:
    entries = [("floor", "noise floor of an A/A control"), ("edge", "tolerated difference")]
    if all(row.floor is None for row in rows):
        entries = entries[1:]
    return figure(
        lambda width: _draw(rows, width, words), words.caption, _table(rows, words), swatches(entries)
    )


def _draw(rows: tuple[RatioRow, ...], width: int, told: Words) -> Markup:
    wide = width > 600
    height = 40.0 if wide else 54.0
    box = (
        Box(250, 8, width - 250, 8 + height * len(rows))
        if wide
        else Box(10, 8, width - 10, 8 + height * len(rows))
    )
    scale = ratios(_values(rows), box.left, box.right, 6 if wide else 4)
    content = [_row(row, box, scale, (box.top + height * place, height)) for place, row in enumerate(rows)]
    axis = bottom_axis(scale, box, told.axis)
    sides = [
        label(box.left, box.bottom + 34, f"← {told.below}", "unit"),
        label(box.right, box.bottom + 34, f"{told.above} →", "unit", "end"),
    ]
    words = f"Forest plot of {len(rows)} {told.name} with 95 % intervals"
    return canvas(width, box.bottom + 42, words, axis, *sides, *content)


def _values(rows: tuple[RatioRow, ...]) -> list[float]:
    found = [value for row in rows for value in (row.ratio, row.low, row.high)]
    found += [1 + sign * (row.floor or 0.0) for row in rows for sign in (-1, 1)]
    found += [1 + sign * row.tolerated for row in rows for sign in (-1, 1)]
    return [*found, *(block.ratio for row in rows for block in row.blocks)]


def _row(row: RatioRow, box: Box, scale: Scale, place: tuple[float, float]) -> Markup:
    top, height = place
    wide = box.left > 100
    y = top + height / 2 if wide else top + 36
    half = 13.0 if wide else 9.0
    tone = SYMBOLS[row.verdict.kind][1]
    parts: list[Markup] = []
    if row.floor is not None and math.isfinite(row.floor):
        words = f"noise floor ±{100 * row.floor:.2f} %"
        parts.append(rectangle(_around(scale, row.floor, y, half), "floor", words))
    words = f"tolerated difference ±{100 * row.tolerated:.3g} %"
    parts.append(rectangle(_around(scale, row.tolerated, y, half), "edge", words))
    parts.append(line(scale(1.0), top if wide else y - 16, scale(1.0), top + height, "one"))
    parts += [_dot(row, block.ratio, block.block, block.runs, (scale, y)) for block in row.blocks]
    parts.append(_interval(row, scale, y, tone))
    parts.append(_wide_words(row, box, y, tone) if wide else _narrow_words(row, box, top, tone))
    return tag("g", *parts)


def _around(scale: Scale, share: float, y: float, half: float) -> Box:
    return Box(scale(1 / (1 + share)), y - half, scale(1 + share), y + half)


def _dot(
    row: RatioRow, ratio: float, block: int, runs: tuple[str, ...], place: tuple[Scale, float]
) -> Markup:
    scale, y = place
    words = f"{row.candidate} against {row.reference}, block {block}: {ratio:.4f} ({', '.join(runs)})"
    point = tag("circle", tag("title", words), cx=scale(ratio), cy=y + 7.0, r=2.4, class_="block")
    return to_run(runs[-1], point) if runs else point


def _interval(row: RatioRow, scale: Scale, y: float, tone: str) -> Markup:
    """An interval that is not known yet reaches to both borders, without ends."""
    low, high, x = scale(row.low), scale(row.high), scale(row.ratio)
    known = math.isfinite(row.high)
    figures = ratio_cell(row.ratio, row.low, row.high)
    words = f"{row.candidate} {_against(row)}: {figures}, session {row.session}"
    ends = [line(place, y - 5, place, y + 5, f"interval {tone}") for place in (low, high)] if known else []
    diamond = path([(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y), (x, y - 6)], f"estimate {tone}", words)
    return join([line(low, y, high, y, f"interval {tone}" + ("" if known else " d1")), *ends, diamond])


def _against(row: RatioRow) -> str:
    if row.label:
        return f"{row.label}, against {row.reference}"
    return "against itself" if row.control else f"against {row.reference}"


def _wide_words(row: RatioRow, box: Box, y: float, tone: str) -> Markup:
    room, right = box.left - 14, box.right + 14
    named = tag("title", f"{row.candidate} {_against(row)}")
    sign, word = SYMBOLS[row.verdict.kind][0], row.verdict.kind.value
    return join(
        [
            tag("text", named, shortened(row.candidate, room), x=0.0, y=y - 2, class_="name"),
            label(0, y + 13, shortened(_against(row), room), "tick"),
            label(right, y - 2, ratio_cell(row.ratio, row.low, row.high), "value"),
            label(right, y + 13, f"{sign} {word}", f"word {tone}"),
        ]
    )


def _narrow_words(row: RatioRow, box: Box, top: float, tone: str) -> Markup:
    value = f"{SYMBOLS[row.verdict.kind][0]} {row.ratio:.4f}"
    named = tag("title", f"{row.candidate} {_against(row)}: {ratio_cell(row.ratio, row.low, row.high)}")
    words = shortened(f"{row.candidate} {_against(row)}", box.right - box.left - 80)
    first = tag("text", named, words, x=box.left, y=top + 18, class_="name")
    return join([first, label(box.right, top + 18, value, f"word {tone}", "end")])


def _table(rows: tuple[RatioRow, ...], words: Words) -> Markup:
    head = (
        "Phase",
        "Against",
        "Ratio",
        "95 % interval",
        "Blocks",
        "s_d",
        "Noise floor",
        "Verdict",
        "Session",
    )
    cells = [
        (
            row.candidate,
            "itself (A/A)" if row.control else f"{row.reference}{f' ({row.label})' if row.label else ''}",
            f"{row.ratio:.4f}",
            f"[{row.low:.4f}, {row.high:.4f}]" if math.isfinite(row.high) else "not yet",
            len(row.blocks),
            figure_cell(None if row.deviation is None else 100 * row.deviation, 2, "%"),
            figure_cell(None if row.floor is None else 100 * row.floor, 2, "%"),
            chip(row.verdict.kind),
            tag("code", row.session),
        )
        for row in rows
    ]
    return html_table(head, cells, f"{words.name[:1].upper()}{words.name[1:]}")
