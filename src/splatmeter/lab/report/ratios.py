"""Every comparison as rows of ratios: of speed, scene by scene, and of what phases aimed at."""

from __future__ import annotations

import math

from splatmeter.errors import MissingFile
from splatmeter.lab.compare.aims import Aim
from splatmeter.lab.compare.comparison import Comparison
from splatmeter.lab.compare.ratio import log_ratios, slice_log_ratios
from splatmeter.lab.compare.samples import Arm
from splatmeter.lab.compare.verdict import judge
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.report.document import BlockRatio, RatioRow
from splatmeter.lab.session import gather
from splatmeter.lab.session.plan import load
from splatmeter.lab.session.verdicts import Judged, judged, labels


def ratio_rows(lab: Lab) -> tuple[RatioRow, ...]:
    """Each phase against its parent and the baseline, then the A/A controls."""
    rows: list[RatioRow] = []
    phases = lab.phases.all()
    for phase in phases:
        if phase.parent:
            for reference in dict.fromkeys([phase.parent, lab.phases.baseline(phase.name).name]):
                rows += _ratio(lab, reference, phase.name)
    for phase in phases:
        rows += _ratio(lab, phase.name, phase.name)
    return tuple(rows)


def _ratio(lab: Lab, reference: str, candidate: str) -> list[RatioRow]:
    try:
        found = judged(lab, reference, candidate)
    except (MissingFile, ValueError):
        return []
    speed, noise = found.comparison.speed.main, found.comparison.noise
    if not speed.blocks:
        return []
    floor = noise.floor if noise and not noise.failed and math.isfinite(noise.floor) else None
    bounds = speed.interval_95
    return [
        RatioRow(
            candidate=candidate,
            reference=reference,
            ratio=speed.ratio,
            low=bounds.low,
            high=bounds.high,
            blocks=_blocks(lab, found, reference, candidate),
            verdict=found.verdict,
            session=found.session,
            floor=floor,
            tolerated=found.comparison.tolerated_difference,
            method=speed.method,
            deviation=speed.log_deviation,
            quality=tuple(result.sentence for result in found.comparison.quality),
            control=reference == candidate,
            scenes=_scene_rows(lab, found, reference, candidate),
            figures=_figure_rows(found, found.comparison, candidate, reference),
        )
    ]


def _scene_rows(lab: Lab, found: Judged, reference: str, candidate: str) -> tuple[RatioRow, ...]:
    """Each scene judged as if it were alone."""
    rows: list[RatioRow] = []
    for part in found.comparison.scenes:
        speed, bounds = part.speed.main, part.speed.main.interval_95
        if not speed.blocks:
            continue
        rows.append(
            RatioRow(
                candidate,
                reference,
                speed.ratio,
                bounds.low,
                bounds.high,
                _blocks(lab, found, reference, candidate, part.scene),
                judge(part),
                found.session,
                tolerated=part.tolerated_difference,
                method=speed.method,
                deviation=speed.log_deviation,
                label=part.scene,
                figures=_figure_rows(found, part, candidate, reference),
            )
        )
    return tuple(rows)


def _figure_rows(found: Judged, part: Comparison, candidate: str, reference: str) -> tuple[RatioRow, ...]:
    margin = part.tolerance if part.aim is Aim.QUALITY else part.tolerated_difference
    return tuple(
        RatioRow(
            candidate,
            reference,
            figure.estimate.ratio,
            figure.estimate.interval_95.low,
            figure.estimate.interval_95.high,
            tuple(BlockRatio(block, math.exp(value)) for block, value in figure.samples.items()),
            judge(part) if part.scene else found.verdict,
            found.session,
            tolerated=margin,
            method=figure.estimate.method,
            deviation=figure.estimate.log_deviation,
            label=f"{figure.name} on {part.scene}" if part.scene else figure.name,
        )
        for figure in part.figures
        if figure.estimate.blocks
    )


def _blocks(
    lab: Lab, found: Judged, reference: str, candidate: str, scene: str = ""
) -> tuple[BlockRatio, ...]:
    """The same log ratios that were judged, each with its block and the runs of it; of one scene or all."""
    plan = load(lab, found.session)
    named = labels(plan, reference, candidate)
    runs = gather.samples(lab, found.session, {name: Arm(name) for name in named})
    runs = [run for run in runs if not scene or run.scene == scene]
    in_block: dict[int, dict[str, str]] = {}
    for run in runs:
        in_block.setdefault(run.block, {})[run.arm.name] = run.run
    if plan.slices:
        pieces = gather.slice_samples(lab, found.session)
        numbers, ratios = sorted({piece.block for piece in pieces}), slice_log_ratios(pieces, *named)
    else:
        numbers, ratios = (
            sorted(b for b, arms in in_block.items() if len(arms) == 2),
            log_ratios(runs, *named),
        )
    if len(numbers) != len(ratios):
        numbers = list(range(len(ratios)))
    return tuple(
        BlockRatio(block, math.exp(ratio), tuple(in_block.get(block, {}).get(name, "") for name in named))
        for block, ratio in zip(numbers, ratios, strict=True)
    )
