"""The generated log, in the structure people keep by hand; every derived number is computed here."""

from __future__ import annotations

import math
from collections.abc import Iterator

from splatmeter.lab.compare.margins import change_text, margin_text
from splatmeter.lab.log import notes as person
from splatmeter.lab.log.escape import cell, inline
from splatmeter.lab.log.kernel_lines import kernel_lines
from splatmeter.lab.log.log_document import (
    LogDocument,
    LogPhase,
    MetricsFigure,
    QualityBaseline,
    RatioFigure,
)
from splatmeter.lab.samples.verdict_kinds import VerdictKind

SIGNS_IN_LOGS = {
    VerdictKind.FASTER: "✅",
    VerdictKind.VERIFIED: "✅",
    VerdictKind.NO_SPEED_UP: "=",
    VerdictKind.SLOWER: "❌",
    VerdictKind.QUALITY_LOST: "❌",
    VerdictKind.UNDECIDED: "❔",
    VerdictKind.QUESTIONABLE: "⚠️",
    VerdictKind.PLANNED: "⏸",
    VerdictKind.ON_HOLD: "⏸",
    VerdictKind.LEANER: "✅",
    VerdictKind.FASTER_AND_LEANER: "✅",
    VerdictKind.MORE_MEMORY: "❌",
    VerdictKind.SOONER: "✅",
    VerdictKind.LATER: "❌",
    VerdictKind.BETTER: "✅",
    VerdictKind.WORSE: "❌",
    VerdictKind.NO_GAIN: "=",
}
_METRICS = {
    "l1": ("L1", "{:.6f}", -1),
    "psnr": ("PSNR", "{:.2f} dB", 1),
    "ssim": ("SSIM", "{:.4f}", 1),
    "lpips": ("LPIPS", "{:.4f}", -1),
}
"""Label, format, and whether more is better (1) or worse (-1)."""
MOST_IN_FULL = 4
"""Evaluations of a phase that the log prints with every metric; a grid has dozens."""
MOST_ON_THE_WAY = 8
_COLUMNS = (
    "Phase", "Speed (it/s)", "Against parent", "Against baseline", "Train memory", "Eval memory",
    "PSNR (dB)", "SSIM", "LPIPS", "L1", "Verdict", "Notes",
)  # fmt: skip


def write_log(document: LogDocument, previous: str = "") -> str:
    """Markdown. `previous` is the file as it stands: what people wrote into its notes is put back."""
    kept = person.read_notes(previous)
    used: set[str] = set()

    def block(key: str, initial: str = "") -> str:
        used.add(key)
        return person.write_block(key, kept.get(key, person.without_marks(initial)))

    lines = [
        f"# {inline(document.title)}",
        "",
        "*Written by `splatmeter lab log`. Notes between the marks are yours and are kept; the rest is "
        "computed anew.*",
        "",
        "## Overview",
        *([inline(document.overview), ""] if document.overview else []),
        block(person.OVERVIEW),
        "",
        *_configuration(document),
        *_quality(document.quality),
        "---",
        "",
        "## Results",
        "",
    ]
    for phase in document.phases:
        lines += [
            *_phase(document, phase),
            "- Notes:",
            "",
            block(person.key_of_phase(phase.name), phase.notes),
            "",
        ]
    lines += ["---", "", *_table(document), "---", "", "## Measurement Notes"]
    lines += [f"- {inline(note)}" for note in document.measurement_notes]
    lines += ["", block(person.MEASUREMENT), ""]
    return "\n".join(lines + _orphans(kept, used))


def _orphans(kept: dict[str, str], used: set[str]) -> list[str]:
    """Notes of phases that are gone are still somebody's words."""
    left = {key: text for key, text in kept.items() if key not in used and text}
    if not left:
        return []
    lines = ["## Notes without a phase", ""]
    for key, text in left.items():
        lines += [f"From {inline(key.partition('/')[2])}:", "", person.write_block(key, text), ""]
    return lines


def _configuration(document: LogDocument) -> Iterator[str]:
    yield "## Benchmark Configuration"
    for label, text in document.configuration.items():
        yield f"- {inline(label)}: {inline(text)}"
    yield ""


def _quality(baseline: QualityBaseline | None) -> Iterator[str]:
    yield "## Quality Metrics Baseline"
    if baseline is None:
        yield "Not measured yet."
        yield ""
        return
    tolerance = (
        f"(tolerance: PSNR {margin_text(baseline.tolerance)} worse, the others what corresponds to it)"
    )
    yield f"**All optimizations must maintain these quality levels {tolerance}:**"
    for name, (label, form, direction) in _METRICS.items():
        value = baseline.figure.metrics.get(name)
        if value is not None:
            limit = form.format(value * (1 - direction * baseline.margin(name)))
            side = "at least" if direction > 0 else "at most"
            yield f"- **{label}:** {form.format(value)} ({side} {limit})"
    views = f"{baseline.figure.views} {baseline.split}" if baseline.figure.views else baseline.split
    yield ""
    yield (
        f"*Measured on {inline(baseline.phase)} at iteration {baseline.figure.step} on the {views} views.*"
    )
    yield ""


def _phase(document: LogDocument, phase: LogPhase) -> Iterator[str]:
    status = _status(phase)
    title = f" - {inline(phase.title)}" if phase.title else ""
    yield f"### {inline(phase.name)}{title}{' ' + status if status else ''}"
    if phase.verdict:
        yield f"- **Verdict:** {inline(phase.verdict.sentence)}"
        yield from (f"  - {inline(reason)}" for reason in phase.verdict.reasons)
    elif phase.state:
        yield f"- **Status:** {inline(phase.state)}"
    if phase.aim:
        yield f"- **Aim:** {inline(phase.aim)}"
    yield from _speed(phase)
    yield from (f"- **{inline(label)}:** {inline(text)}" for label, text in phase.details)
    yield from _loss(phase)
    yield from _memory(document, phase)
    quality = document.quality
    itself = quality is not None and quality.phase == phase.name
    yield from _evaluations("Test", phase.test, None if itself else quality)
    yield from _evaluations("Train", phase.train, None)
    yield from _size(phase)
    yield from kernel_lines(phase.kernels)
    for label, texts in (("Configuration", phase.configuration), ("Code Changes", phase.code_changes)):
        if texts:
            yield f"- {label}:"
            yield from (f"  - {inline(text)}" for text in texts)
    if phase.findings:
        yield "- Audit:"
        yield from (f"  - {finding.severity.value}: {inline(finding.sentence)}" for finding in phase.findings)


def _status(phase: LogPhase) -> str:
    if phase.verdict:
        return f"{SIGNS_IN_LOGS[phase.verdict.kind]} {phase.verdict.kind.value.upper()}"
    return inline(phase.state).upper() if phase.state else ""


def _speed(phase: LogPhase) -> Iterator[str]:
    speed = phase.speed
    if speed is None:
        yield "- **Speed:** not measured"
        return
    text = f"{_significant(speed.steps_per_second)} it/s"
    if speed.low is not None and speed.high is not None:
        half = (speed.high - speed.low) / 2
        text += (
            f" ± {_significant(half, 2)} (95 % interval [{_significant(speed.low)}, "
            f"{_significant(speed.high)}], {speed.runs} runs)"
        )
    else:
        text += " (one run, no interval)" if speed.runs == 1 else f" ({speed.runs} runs)"
    yield f"- **Speed:** {text}"
    for ratio in phase.ratios:
        yield (
            f"- **Against {inline(ratio.reference)}:** {_change(ratio)}, ratio {ratio.ratio:.4f} over "
            f"{ratio.blocks} paired blocks"
        )


def _loss(phase: LogPhase) -> Iterator[str]:
    if phase.loss is not None:
        last = (
            f"; mean of the last 100 steps {phase.loss_last_100:.4f}"
            if phase.loss_last_100 is not None
            else ""
        )
        yield f"- **Loss:** {phase.loss:.4f} (moving average{last})"
    elif phase.loss_last_100 is not None:
        yield f"- **Loss:** {phase.loss_last_100:.4f} (mean of the last 100 steps)"


def _memory(document: LogDocument, phase: LogPhase) -> Iterator[str]:
    peaks = (phase.training_peak_bytes, phase.evaluation_peak_bytes)
    parent = next((other for other in document.phases if other.name == phase.parent), None)
    if phase.speed is not None or any(peak is not None for peak in peaks):
        yield _peak("training", peaks[0], parent, parent and parent.training_peak_bytes)
        yield _peak("eval", peaks[1], parent, parent and parent.evaluation_peak_bytes)
    if phase.card:
        yield f"- **Card:** {inline(phase.card)}"
    if phase.shared_memory:
        yield f"- **Shared GPU memory:** {inline(phase.shared_memory)}"


def _peak(stage: str, value: int | None, parent: LogPhase | None, before: int | None) -> str:
    label = f"- **Peak memory ({stage}):**"
    if value is None:
        return f"{label} not observed"
    text = f"{label} {_gigabytes(value)}"
    if parent is not None and before is not None:
        share = f", {100 * (value - before) / before:+.1f} %" if before else ""
        text += f" ({(value - before) / 1e6:+.0f} MB{share} from {inline(parent.name)})"
    return text


def _evaluations(
    split: str, figures: tuple[MetricsFigure, ...], baseline: QualityBaseline | None
) -> Iterator[str]:
    """All of a few. Of a grid the last, what can be compared, and how it got there on one line."""
    shown = figures
    if len(figures) > MOST_IN_FULL:
        wanted = {figures[-1].step, baseline.figure.step if baseline is not None else 0}
        shown = tuple(figure for figure in figures if figure.step in wanted)
        some = figures[:: math.ceil(len(figures) / MOST_ON_THE_WAY)]
        way = [f"{one.metrics['psnr']:.2f} dB @ {one.step}" for one in some if "psnr" in one.metrics]
        if way:
            yield f"- **{split} PSNR on the way:** {', '.join(way)}"
    for figure in shown:
        yield from _metrics(split, figure, baseline)


def _metrics(split: str, figure: MetricsFigure, baseline: QualityBaseline | None) -> Iterator[str]:
    views = f", {figure.views} views" if figure.views else ""
    views += f", exposure {inline(figure.exposure)}" if figure.exposure != "none" else ""
    yield f"- **{split} Metrics @ iter {figure.step}{views}:**"
    comparable = (
        baseline is not None
        and (baseline.figure.step, baseline.figure.exposure) == (figure.step, figure.exposure)
        and baseline.split == split.lower()
    )
    for name, (label, form, direction) in _METRICS.items():
        value = figure.metrics.get(name)
        if value is None:
            continue
        text = f"  - {split} {label}: {form.format(value)}"
        wanted = baseline.figure.metrics.get(name) if baseline is not None and comparable else None
        if baseline is not None and wanted:
            gain = direction * (value - wanted) / abs(wanted)
            margin = baseline.margin(name)
            word = "✅ within" if gain >= -margin else "❌ outside"
            change = f"{change_text(gain)}{' than' if gain else ' from'} {inline(baseline.phase)}"
            text += f" ({word} the margin of {margin_text(margin)}: {change})"
        yield text


def _size(phase: LogPhase) -> Iterator[str]:
    if phase.gaussians is not None:
        yield f"- **Model Size:** {phase.gaussians:,} Gaussians"
    if phase.mean_opacity is not None:
        yield f"- **Average Opacity:** {phase.mean_opacity:.3f}"
    if phase.date:
        yield f"- Date: {inline(phase.date)}"


def _table(document: LogDocument) -> Iterator[str]:
    yield "## Comparison Table"
    yield ""
    yield f"| {' | '.join(_COLUMNS)} |"
    yield f"|{'---|' * len(_COLUMNS)}"
    for phase in document.phases:
        yield f"| {' | '.join(cell(text) for text in _row(document, phase))} |"
    yield ""


def _row(document: LogDocument, phase: LogPhase) -> Iterator[str]:
    yield phase.name
    yield _significant(phase.speed.steps_per_second) if phase.speed else "-"
    baseline = next((other.name for other in document.phases if not other.parent), "")
    by_name = {ratio.reference: ratio for ratio in phase.ratios}
    for reference in (phase.parent, baseline):
        yield _change(by_name[reference]) if reference in by_name else "-"
    for peak in (phase.training_peak_bytes, phase.evaluation_peak_bytes):
        yield _gigabytes(peak) if peak is not None else "-"
    metrics = phase.test[0].metrics if phase.test else {}
    for name in ("psnr", "ssim", "lpips", "l1"):
        yield _METRICS[name][1].format(metrics[name]).removesuffix(" dB") if name in metrics else "-"
    yield _status(phase) or "-"
    yield phase.remark or "-"


def _change(ratio: RatioFigure) -> str:
    if ratio.high == float("inf"):
        return f"{100 * (ratio.ratio - 1):+.2f} %, no interval yet"
    bounds = f"[{100 * (ratio.low - 1):+.2f} %, {100 * (ratio.high - 1):+.2f} %]"
    return f"{100 * (ratio.ratio - 1):+.2f} % {bounds}"


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.2f} GB"


def _significant(value: float, digits: int = 4) -> str:
    """Four digits, never in powers of ten."""
    if value == 0 or not abs(value) < float("inf"):
        return f"{value:g}"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:.{max(0, digits - whole)}f}" if whole else f"{value:.{digits}g}"
