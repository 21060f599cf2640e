"""Memory over the life of a process, one panel a phase on one scale, its stages shaded."""

from __future__ import annotations

from collections.abc import Mapping

from splatmeter.lab.report.curves import thinned
from splatmeter.lab.report.drawing import (
    Box,
    bottom_axis,
    canvas,
    colour,
    figure,
    label,
    left_axis,
    path,
    rectangle,
    shortened,
    swatches,
    to_run,
)
from splatmeter.lab.report.markup import Markup, join
from splatmeter.lab.report.report_document import MemoryTrace, Stage
from splatmeter.lab.report.scale import Scale, exact, linear
from splatmeter.lab.report.wording import html_table, size_text
from splatmeter.units import duration_text

STAGES = ("loading", "training", "evaluation", "saving")
_PANEL = 150.0
_GAP = 66.0


def memory_over_time(traces: tuple[MemoryTrace, ...], order: Mapping[str, int]) -> Markup:
    stages = [
        name for name in STAGES if any(stage.name == name for trace in traces for stage in trace.stages)
    ]
    caption = (
        "Resident memory of the process tree since its start; dashed lines are the peaks recorded per stage."
    )
    shown = swatches([(f"stage {name}", name) for name in stages])
    return figure(lambda width: _draw(traces, order, width), caption, _table(traces), shown)


def _draw(traces: tuple[MemoryTrace, ...], order: Mapping[str, int], width: int) -> Markup:
    highest = [float(size) for trace in traces for _, size in (*trace.points, *trace.peaks)]
    unit, name = (2**30, "GiB") if max(highest, default=0.0) >= 2**30 else (2**20, "MiB")
    last = max(max((t.points[-1][0] if t.points else 0.0, *(s.end for s in t.stages))) for t in traces)
    parts: list[Markup] = []
    for place, trace in enumerate(traces):
        top = 42 + place * (_PANEL + _GAP)
        is_last = place == len(traces) - 1
        box = Box(56, top, width - 12, top + _PANEL)
        parts.append(_panel(trace, box, order[trace.phase], (unit, name, max(highest), last, is_last)))
    height = 42 + len(traces) * (_PANEL + _GAP) - _GAP + 42
    return canvas(width, height, f"Memory over time of {len(traces)} phases", *parts)


def _panel(trace: MemoryTrace, box: Box, order: int, bounds: tuple[int, str, float, float, bool]) -> Markup:
    unit, name, highest, last, is_last = bounds
    x = exact(0.0, last, box.left, box.right - 4, 7 if box.right > 500 else 4)
    y = linear([0.0, highest / unit], box.bottom, box.top, 4, zero=True)
    in_bytes = Scale(y.low * unit, y.high * unit, y.start, y.end)
    shades = [
        rectangle(
            Box(x(stage.begin), box.top, x(stage.end), box.bottom),
            f"stage {stage.name if stage.name in STAGES else 'other'}",
            f"{stage.name}, {duration_text(stage.end - stage.begin)}",
        )
        for stage in trace.stages
    ]
    peaks = [_peak(stage, size, trace.stages, (x, in_bytes)) for stage, size in trace.peaks]
    points = thinned(tuple((seconds, float(size)) for seconds, size in trace.points))
    curve = path(
        [(x(a), in_bytes(b)) for a, b in points], f"curve {colour(order)}", f"{trace.phase}: {trace.run}"
    )
    title = shortened(trace.phase, box.right - box.left)
    return join(
        [
            *shades,
            left_axis(y, box, name),
            bottom_axis(x, box, "time since the start of the process (s)" if is_last else ""),
            *peaks,
            to_run(trace.run, curve) if points else "",
            label(box.left, box.top - 26, title, "name"),
        ]
    )


def _peak(stage: str, size: int, stages: tuple[Stage, ...], scales: tuple[Scale, Scale]) -> Markup:
    """Over each stretch of the stage it belongs to, or over the whole width where they are not known."""
    x, y = scales
    own = [item for item in stages if item.name == stage] or [Stage(stage, x.low, x.high)]
    words = f"peak of {stage}: {size_text(size)}"
    return join(
        path([(x(item.begin), y(size)), (max(x(item.end), x(item.begin) + 3), y(size))], "peak", words)
        for item in own
    )


def _table(traces: tuple[MemoryTrace, ...]) -> Markup:
    names = list(dict.fromkeys(stage for trace in traces for stage, _ in trace.peaks))
    rows = [
        (trace.phase, *(size_text(dict(trace.peaks).get(name)) for name in names), trace.source, trace.run)
        for trace in traces
    ]
    head = ("Phase", *(f"Peak of {name}" for name in names), "Source of the line", "Run")
    return html_table(head, rows, "Peaks of memory per stage")
