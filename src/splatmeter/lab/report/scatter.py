"""Speed against quality: what a speed-up cost, with every run and the mean of each phase."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from splatmeter.lab.log.log_document import QualityBaseline
from splatmeter.lab.report.drawing import (
    Box,
    bottom_axis,
    canvas,
    figure,
    left_axis,
    legend,
    line,
    mark,
    rectangle,
    to_run,
)
from splatmeter.lab.report.markup import Markup
from splatmeter.lab.report.report_document import ReportDocument, RunRow
from splatmeter.lab.report.scale import linear
from splatmeter.lab.report.wording import (
    html_table,
    metric_name,
    metric_text,
    rate_text,
)


@dataclass(frozen=True, slots=True)
class Cloud:
    """The runs of one phase that have both figures."""

    phase: str
    order: int
    runs: tuple[RunRow, ...]
    metric: str

    @property
    def speed(self) -> float:
        """The geometric mean, as in the table of phases."""
        return math.exp(sum(math.log(row.steps_per_second or 1.0) for row in self.runs) / len(self.runs))

    @property
    def quality(self) -> float:
        return sum(row.metrics[self.metric] for row in self.runs) / len(self.runs)


def clouds(document: ReportDocument) -> list[Cloud]:
    """By PSNR if any run has it; empty if nothing was both timed and judged."""
    order = document.order()
    known = [row for phase in document.phases for row in document.runs_of(phase.name) if row.steps_per_second]
    metric = next(
        (name for name in ("psnr", "ssim", "lpips", "l1") if any(name in r.metrics for r in known)), ""
    )
    by_phase: dict[str, list[RunRow]] = {}
    for row in known:
        if metric in row.metrics:
            by_phase.setdefault(row.phase, []).append(row)
    return [Cloud(phase, order[phase], tuple(rows), metric) for phase, rows in by_phase.items()]


def scatter(found: list[Cloud], baseline: QualityBaseline | None) -> Markup:
    metric = found[0].metric
    caption = (
        f"Mean {metric_name(metric)} over the judged views against speed; large marks are means, small ones "
        "single runs and lead to them. Speeds of different sessions drift with the machine: the ratios above "
        "judge, not this picture."
    )
    if baseline is not None:
        margin = f"{100 * baseline.margin(metric):.3g} %"
        caption += f" The band is the baseline's {metric_name(metric)} ± {margin}."
    entries = [(cloud.order, cloud.phase) for cloud in found]
    tolerance = baseline.margin(metric) if baseline else None
    return figure(lambda width: _draw(found, tolerance, width), caption, _table(found), legend(entries))


def _draw(found: list[Cloud], tolerance: float | None, width: int) -> Markup:
    box = Box(56, 26, width - 12, 340 if width > 600 else 280)
    metric = found[0].metric
    speeds = [row.steps_per_second or 0.0 for cloud in found for row in cloud.runs]
    qualities = [row.metrics[metric] for cloud in found for row in cloud.runs]
    first = min(found, key=lambda cloud: cloud.order)
    reach = abs(first.quality) * (tolerance or 0.0)
    x = linear(speeds, box.left, box.right, 7 if width > 600 else 4)
    y = linear([*qualities, first.quality - reach, first.quality + reach], box.bottom, box.top, 5)
    unit = metric_text(metric, 0.0).partition("\u00a0")[2]
    parts = [
        left_axis(y, box, f"{metric_name(metric)}{f' ({unit})' if unit else ''}"),
        bottom_axis(x, box, "training speed (it/s)"),
    ]
    if tolerance:
        band = Box(box.left, y(first.quality + reach), box.right, y(first.quality - reach))
        parts.append(rectangle(band, "tolerated"))
        parts.append(line(box.left, y(first.quality), box.right, y(first.quality), "one"))
    for cloud in found:
        for row in cloud.runs:
            words = f"{row.run}: {_words(cloud.phase, row.steps_per_second, metric, row.metrics)}"
            small = mark(
                x(row.steps_per_second or 0.0), y(row.metrics[metric]), cloud.order, "mark faint", 3, words
            )
            parts.append(to_run(row.run, small))
    for cloud in found:
        means = _words(cloud.phase, cloud.speed, metric, {metric: cloud.quality})
        words = f"mean of {len(cloud.runs)} runs: {means}"
        parts.append(mark(x(cloud.speed), y(cloud.quality), cloud.order, "mark", 6.5, words))
    return canvas(
        width, box.bottom + 42, f"{metric_name(metric)} against speed of {len(found)} phases", *parts
    )


def _words(phase: str, speed: float | None, metric: str, metrics: Mapping[str, float]) -> str:
    return (
        f"{phase}, {rate_text(speed)} it/s, {metric_name(metric)} {metric_text(metric, metrics.get(metric))}"
    )


def _table(found: list[Cloud]) -> Markup:
    metric = found[0].metric
    rows = [(c.phase, len(c.runs), rate_text(c.speed), metric_text(metric, c.quality)) for c in found]
    return html_table(
        ("Phase", "Runs", "Speed (it/s)", metric_name(metric)), rows, "Speed and quality, means over runs"
    )
