"""Every comparison as rows of ratios: of speed, by scene and machine, and of what phases aimed at."""

from __future__ import annotations

import math
from collections.abc import Sequence

from splatmeter.errors import MissingFile
from splatmeter.lab.compare.comparison import Comparison
from splatmeter.lab.compare.ratio import log_ratios, slice_log_ratios
from splatmeter.lab.compare.verdict import judge
from splatmeter.lab.judgement import strata
from splatmeter.lab.judgement.comparisons import labels
from splatmeter.lab.judgement.verdicts import Judged, Judgements
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.report.report_document import BlockRatio, RatioRow
from splatmeter.lab.samples.aim import Aim
from splatmeter.lab.samples.run_sample import Arm
from splatmeter.lab.session.session_plan import load


def ratio_rows(known: Judgements) -> tuple[RatioRow, ...]:
    """Each phase against its parent and the baseline, then the A/A controls."""
    rows: list[RatioRow] = []
    phases = known.lab.phases.all()
    for phase in phases:
        for reference in known.lab.phases.compared_with(phase):
            rows += _ratio(known, reference, phase.name)
    for phase in phases:
        rows += _ratio(known, phase.name, phase.name)
    return tuple(rows)


def _ratio(known: Judgements, reference: str, candidate: str) -> list[RatioRow]:
    lab = known.lab
    try:
        found = known.judged(reference, candidate)
    except (MissingFile, ValueError):
        return []
    speed, noise = found.comparison.speed.main, found.comparison.noise
    if found.comparison.apart:  # there is no ratio over all of them
        return list(_part_rows(lab, found, reference, candidate, found.comparison.machines))
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
            scenes=_part_rows(lab, found, reference, candidate, found.comparison.scenes),
            machines=_part_rows(lab, found, reference, candidate, found.comparison.machines),
            figures=_figure_rows(found, found.comparison, candidate, reference),
        )
    ]


def _part_rows(
    lab: Lab, found: Judged, reference: str, candidate: str, parts: Sequence[Comparison]
) -> tuple[RatioRow, ...]:
    """Each scene, or each machine, judged as if it were alone."""
    rows: list[RatioRow] = []
    for part in parts:
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
                _blocks(lab, found, reference, candidate, part),
                judge(part),
                found.session,
                tolerated=part.tolerated_difference,
                method=speed.method,
                deviation=speed.log_deviation,
                label=part.scene or part.machine,
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
            judge(part) if part.scene or part.machine else found.verdict,
            found.session,
            tolerated=margin,
            method=figure.estimate.method,
            deviation=figure.estimate.log_deviation,
            label=f"{figure.name} on {where}" if (where := part.scene or part.machine) else figure.name,
        )
        for figure in part.figures
        if figure.estimate.blocks
    )


def _blocks(
    lab: Lab, found: Judged, reference: str, candidate: str, part: Comparison | None = None
) -> tuple[BlockRatio, ...]:
    """The log ratios that were judged, each with its block and its runs: those of a part, or all."""
    plan = load(lab, found.session)
    named = labels(plan, reference, candidate)
    measured = strata.measured(lab, found.sessions, {name: Arm(name) for name in named})
    wanted = set(part.runs) if part else set(found.comparison.runs)
    runs = [run for run in measured.runs if run.run in wanted]
    in_block: dict[int, dict[str, str]] = {}
    for run in runs:
        in_block.setdefault(run.block, {})[run.arm.name] = run.run
    if plan.slices:
        pieces = [piece for piece in measured.slices if piece.block in in_block]
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
