"""Everything the log is made of, gathered from phases, runs, comparisons and imported figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from splatmeter.lab.compare.chance import claims
from splatmeter.lab.compare.margins import margins_text
from splatmeter.lab.compare.ratio import paired
from splatmeter.lab.judgement.gathering import sessions_of
from splatmeter.lab.judgement.verdicts import (
    Judged,
    Judgements,
    state_of,
)
from splatmeter.lab.log.aim_lines import (
    aim_notes,
    aim_text,
    block_rates,
    dataset_text,
    details,
    goals,
)
from splatmeter.lab.log.card_lines import card_configuration, card_line
from splatmeter.lab.log.job_lines import job_notes, machine_lines, machine_notes
from splatmeter.lab.log.kernel_lines import kernel_report
from splatmeter.lab.log.log_document import (
    LogDocument,
    LogPhase,
    MetricsFigure,
    QualityBaseline,
    RatioFigure,
    SpeedFigure,
)
from splatmeter.lab.plan.commands import seeds
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.imported import imported
from splatmeter.lab.record.index import Index, counted_results
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.result import RunEvaluation, RunResult, preferred
from splatmeter.lab.samples.aim import Aim, aim_of
from splatmeter.lab.samples.finding import Finding
from splatmeter.lab.session.blocks import repetitions
from splatmeter.lab.session.session_plan import in_order, load
from splatmeter.lab.trainers.seeds import seeds_text

UNSEEN = "not observable"


def document(lab: Lab, known: Judgements | None = None) -> LogDocument:
    """`known` is what the same command has judged already."""
    known = known or Judgements(lab)
    protocol = lab.protocol()
    phases = tuple(log_phase(known, phase) for phase in lab.phases.all())
    return LogDocument(
        title=protocol.title if protocol.title != "benchmark" else "Training Speed Tracking",
        overview="Iteration speed across optimisation phases: each against its parent and the baseline.",
        configuration=_configuration(protocol, lab),
        quality=quality_baseline(phases, protocol),
        phases=phases,
        measurement_notes=(*_measurement_notes(lab, protocol), *_chance(lab, phases)),
    )


def _chance(lab: Lab, phases: Iterable[LogPhase]) -> tuple[str, ...]:
    """How many *faster* chance alone may give in so many sessions; () where nothing was measured."""
    measured = [phase for phase in phases if phase.verdict]
    sessions = sum(len(sessions_of(lab, phase.parent, phase.name)) for phase in measured if phase.parent)
    told = claims([phase.verdict.kind for phase in measured if phase.verdict], sessions).sentence
    return (f"Chance: {told}",) if told else ()


def log_phase(known: Judgements, phase: Phase) -> LogPhase:
    lab = known.lab
    results = counted_results(lab, phase.name)
    comparisons = known.against_parent_and_baseline(phase)
    verdict = known.of_phase(phase)
    common: dict[str, Any] = {
        "name": phase.name,
        "title": phase.title,
        "parent": phase.parent,
        "verdict": verdict,
        "state": state_of(lab, phase),
        "configuration": _changes(phase),
        "code_changes": phase.code_changes,
        "notes": phase.note,
        "aim": "" if aim_of(phase.aim) is Aim.SPEED else aim_text(phase.aim, lab.protocol()),
    }
    told = imported(lab, phase.name)
    if not results:
        return LogPhase(**common, **(_imported(told) if told else {}))
    return LogPhase(
        **common,
        speed=_speed(results),
        ratios=tuple(_ratio(item) for item in comparisons if item.comparison.speed.main.blocks),
        loss=_mean(result.loss for result in results),
        loss_last_100=_mean(result.loss_last_100 for result in results),
        training_peak_bytes=_peak(results, "training"),
        evaluation_peak_bytes=_peak(results, "evaluation"),
        shared_memory=_shared(results),
        card=card_line(results),
        test=_metrics(results, "test"),
        train=_metrics(results, "train"),
        gaussians=_rounded(_mean(result.gaussians_end for result in results)),
        mean_opacity=_mean(result.mean_opacity for result in results),
        date=results[-1].identity.started[:10],
        findings=_findings(comparisons),
        kernels=kernel_report(lab, phase, results[-1].identity.session),
        details=tuple(detail for item in comparisons for detail in details(item.comparison)),
    )


def _ratio(item: Judged) -> RatioFigure:
    speed = item.comparison.speed.main
    bounds = speed.interval_95
    return RatioFigure(item.comparison.reference, speed.ratio, bounds.low, bounds.high, speed.blocks)


def _speed(results: list[RunResult]) -> SpeedFigure | None:
    rates = block_rates(results)
    if not rates:
        return None
    if len(rates) == 1:
        return SpeedFigure(math.exp(rates[0]))
    estimate = paired(rates)
    return SpeedFigure(estimate.ratio, len(rates), estimate.interval_95.low, estimate.interval_95.high)


def _metrics(results: list[RunResult], split: str) -> tuple[MetricsFigure, ...]:
    """Our own judgement where there is one, else what the trainer printed; means over the runs."""
    found: dict[tuple[int, str], list[RunEvaluation]] = {}
    for result in results:
        for item in preferred(result.evaluations):
            if item.split == split:
                found.setdefault((item.step, item.exposure), []).append(item)
    figures: list[MetricsFigure] = []
    for (step, exposure), items in sorted(found.items()):
        names = dict.fromkeys(name for item in items for name in item.metrics)
        means = {name: _mean(item.metrics.get(name) for item in items) for name in names}
        views = len(items[0].images) or None
        known = {name: value for name, value in means.items() if value is not None}
        figures.append(MetricsFigure(step, known, views, exposure))
    return tuple(figures)


def _peak(results: list[RunResult], stage: str) -> int | None:
    sizes = [
        peak.process_bytes or peak.allocated_bytes
        for result in results
        for peak in result.peaks
        if peak.stage == stage
    ]
    return max((size for size in sizes if size), default=None)


def _shared(results: list[RunResult]) -> str:
    """The worst that a run on a card saw; what could not be observed is said where memory can spill over."""
    told = [result.shared_memory for result in results if result.on_a_card is not False]
    told = [item for item in told if "caveat" in item or item.get("verdict", UNSEEN) != UNSEEN]
    if not told:
        return ""
    worst = min(told, key=lambda item: {"none seen": 1, UNSEEN: 2}.get(item["verdict"], 0))
    caveat = worst.get("caveat")
    return f"{worst['verdict']} ({caveat})" if caveat else str(worst["verdict"])


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)


def _findings(comparisons: list[Judged]) -> tuple[Finding, ...]:
    found = dict.fromkeys(finding for item in comparisons for finding in item.comparison.findings)
    return tuple(found)


def _changes(phase: Phase) -> tuple[str, ...]:
    lines = [f"options: {' '.join(phase.options)}"] if phase.options else []
    lines += [f"environment: {name}={value}" for name, value in phase.environment.items()]
    lines += [f"revision: {phase.revision}"] if phase.revision else []
    lines += [f"patch: {phase.patch}"] if phase.patch else []
    lines += [f"build: `{' '.join(phase.build)}`"] if phase.build else []
    lines += [f"command: {' '.join(phase.command)}"] if phase.command else []
    if phase.adopted:
        why = f" without being verified: {phase.adopted_because}" if phase.adopted_because else ""
        lines.append(f"adopted on {phase.adopted[:10]}{why}")
    return (*lines, *([f"declared changes: {', '.join(phase.changes)}"] if phase.changes else []))


def _configuration(protocol: Protocol, lab: Lab) -> dict[str, str]:
    results = [result for phase in lab.phases.all() for result in counted_results(lab, phase.name)]
    result = results[0] if results else RunResult()
    counts = (len(result.started.train_images), len(result.started.test_images))
    split = f"{counts[0]} train, {counts[1]} test images" if any(counts) else "counts unknown"
    begin = f"iteration {protocol.start_iteration} → {protocol.end_iteration}"
    return {
        "Trainer": protocol.trainer,
        "Dataset": dataset_text(protocol) or _scene_name(protocol.scene),
        "Resolution": f"-r {protocol.resolution}",
        "Training": f"{protocol.iterations} iterations ({begin}), {protocol.warm_up_steps} of them warm-up",
        "Test evaluation": f"iterations {', '.join(map(str, protocol.evaluation_steps))} ({split})",
        "Seeds": seeds_text(seeds(protocol, lab.phases.all()[:1]), protocol.seed, protocol.seeds),
        "Quality margins": margins_text(protocol.tolerance, protocol.margins),
        "Tolerated difference": f"{100 * protocol.tolerated_difference:g} %",
        **goals(protocol),
        **_machine(result.facts),
        **machine_lines(results),
        **card_configuration(results),
    }


def _machine(facts: Mapping[str, Any]) -> dict[str, str]:
    """As the runs saw it; {} if they do not tell."""
    cpu, versions = facts.get("cpu") or {}, facts.get("versions") or {}
    if not cpu or not versions:
        return {}
    usable = (facts.get("limits") or {}).get("usable_cpus", cpu.get("logical"))
    memory = f"{cpu.get('memory_bytes', 0) / 1e9:.1f} GB"
    software = [f"{name} {version}" for name, version in versions.items() if name != "torch"]
    return {
        "Hardware": f"{cpu.get('model', 'unknown')}, {usable} usable processors, {memory} of memory",
        "Environment": ", ".join(software),
    }


def _scene_name(scene: str) -> str:
    """A log is for others to read, so it does not say where a scene lies on this machine."""
    stated = PurePath(scene)
    return stated.name if stated.is_absolute() or scene.startswith("~") else scene


def quality_baseline(phases: tuple[LogPhase, ...], protocol: Protocol) -> QualityBaseline | None:
    """The baseline's own figures at the declared iteration, or its last ones, never a candidate's."""
    for phase in phases:
        if not phase.parent and phase.test:
            wanted = [figure for figure in phase.test if figure.step == protocol.evaluate_at]
            figure = wanted[0] if wanted else phase.test[-1]
            return QualityBaseline(phase.name, figure, protocol.tolerance, margins=protocol.margins)
    return None


def _measurement_notes(lab: Lab, protocol: Protocol) -> tuple[str, ...]:
    sessions = in_order(lab)
    runs = Index(lab).rows("SELECT count(*) AS n FROM runs WHERE counted = 1")[0]["n"]
    sequential = any(load(lab, session).until_decided for session in sessions)
    repeated = [again for session in sessions for again in repetitions(lab.sessions / session)]
    notes = [
        f"Speed: training clock after {protocol.warm_up_steps} steps of warm-up, without evaluation"
        " and saving, in a fresh process per run.",
        "Ratios: paired within blocks of random order, 95 % t interval on log ratios.",
        "Memory: the trainer's high-water mark per stage, or samples of the process tree from outside.",
        *aim_notes(lab, protocol),
        *job_notes(lab),
        *machine_notes([result for phase in lab.phases.all() for result in counted_results(lab, phase.name)]),
    ]
    if sequential:
        notes.append(
            "Sessions until decided: an interval that is valid at every look; quality is judged once, at the"
            " stop."
        )
    if protocol.most_foreign_cpu:
        notes.append(
            f"Blocks in which others used more than {100 * protocol.most_foreign_cpu:g} % of the machine, or"
            " a core or the card was slowed down by heat, are run again"
            f" (at most {protocol.repeats} ×): {len(repeated)} such attempts, all of them kept."
        )
    notes.append(f"Evidence: {runs} counted runs in {len(sessions)} sessions of the lab.")
    return tuple(notes)


def _imported(record: dict[str, Any]) -> dict[str, Any]:
    """Figures of a hand-kept log: shown as they were written, as single runs without a verdict."""
    figures = record.get("figures", {})
    speed = figures.get("speed")
    steps = record.get("evaluated_step") or 0
    splits = {
        split: {key.split()[1]: value for key, value in figures.items() if key.startswith(split + " ")}
        for split in ("test", "train")
    }
    metrics = {split: (MetricsFigure(steps, found),) if found else () for split, found in splits.items()}
    return {
        "speed": SpeedFigure(speed) if speed else None,
        "loss": figures.get("loss"),
        "training_peak_bytes": _rounded(figures.get("training peak") or figures.get("reported peak")),
        "evaluation_peak_bytes": _rounded(figures.get("evaluation peak")),
        "gaussians": _rounded(figures.get("gaussians")),
        "mean_opacity": figures.get("opacity"),
        "date": record.get("date", ""),
        "remark": "imported from a hand-kept log",
        **metrics,
    }
