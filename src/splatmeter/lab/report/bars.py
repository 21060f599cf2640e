"""Where a step's time goes: one stacked bar a phase, in milliseconds a step."""

from __future__ import annotations

from splatmeter.lab.report.drawing import (
    COLOURS,
    Box,
    bottom_axis,
    canvas,
    figure,
    label,
    rectangle,
    shortened,
    swatches,
)
from splatmeter.lab.report.markup import Markup, join
from splatmeter.lab.report.report_document import PassTimes
from splatmeter.lab.report.scale import Scale, linear
from splatmeter.lab.report.wording import figure_cell, html_table

REST = "outside the passes"
_MOST = COLOURS - 1


def time_per_pass(found: tuple[PassTimes, ...]) -> Markup:
    names = _names(found)
    entries = [(f"bar p{place}", name) for place, name in enumerate(names)]
    entries += [("bar rest", REST)] if any(times.rest > 0 for times in found) else []
    caption = (
        "Mean time of each pass inside the timed window, per step, over the runs of the phase's session."
    )
    return figure(lambda width: _draw(found, names, width), caption, _table(found), swatches(entries))


def _names(found: tuple[PassTimes, ...]) -> list[str]:
    """The largest passes by name; the smallest share what is left of the colours."""
    total: dict[str, float] = {}
    for times in found:
        for name, value in times.milliseconds.items():
            total[name] = total.get(name, 0.0) + value
    largest = sorted(total, key=lambda name: -total[name])[:_MOST]
    named = [name for name in total if name in largest]
    return named if len(total) <= _MOST else [*named, "other passes"]


def _draw(found: tuple[PassTimes, ...], names: list[str], width: int) -> Markup:
    wide = width > 600
    height = 40.0 if wide else 52.0
    left = 190.0 if wide else 10.0
    box = Box(left, 6, width - 14, 6 + height * len(found))
    x = linear([0.0, *(times.total for times in found)], box.left, box.right, 7 if wide else 4, zero=True)
    bars = [_bar(times, names, x, (6 + height * place, height, wide)) for place, times in enumerate(found)]
    words = f"Time per pass of {len(found)} phases, stacked"
    return canvas(width, box.bottom + 42, words, bottom_axis(x, box, "milliseconds a step"), *bars)


def _bar(times: PassTimes, names: list[str], x: Scale, place: tuple[float, float, bool]) -> Markup:
    top, _, wide = place
    y = top + 8 if wide else top + 22
    parts: list[Markup] = []
    begin = 0.0
    for number, (name, value) in enumerate(_pieces(times, names)):
        style = "bar rest" if name == REST else f"bar p{number}"
        if value > 0:
            words = f"{times.phase}, {name}: {value:.3f} ms a step ({100 * value / times.total:.1f} %)"
            parts.append(rectangle(Box(x(begin), y, x(begin + value), y + 24), style, words))
        begin += value
    total = f"{times.total:.2f} ms"
    if wide:
        parts.append(label(0, y + 11, shortened(times.phase, 176), "name"))
        parts.append(label(0, y + 25, total, "tick"))
    else:
        parts.append(label(10, top + 15, shortened(times.phase, 240), "name"))
        parts.append(label(346, top + 15, total, "tick", "end"))
    return join(parts)


def _pieces(times: PassTimes, names: list[str]) -> list[tuple[str, float]]:
    """In the order of `names`; whatever has no name of its own goes to the last one."""
    pieces = {name: times.milliseconds.get(name, 0.0) for name in names}
    unnamed = sum(value for name, value in times.milliseconds.items() if name not in pieces)
    if "other passes" in pieces:
        pieces["other passes"] += unnamed
    return [*pieces.items(), (REST, times.rest)]


def _table(found: tuple[PassTimes, ...]) -> Markup:
    names = list(dict.fromkeys(name for times in found for name in times.milliseconds))
    rows = [
        (
            times.phase,
            len(times.runs),
            *(figure_cell(times.milliseconds.get(name), 3) for name in names),
            figure_cell(times.rest, 3),
            figure_cell(times.total, 3),
        )
        for times in found
    ]
    return html_table(("Phase", "Runs", *names, REST, "Total"), rows, "Milliseconds a step")
