"""From the folders to what compare and audit work on: a RunSample per run that counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from splatmeter.lab.json_files import read_json
from splatmeter.lab.monitor import clocks
from splatmeter.lab.plan.commands import seeds, trainer_of
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.record.index import Index
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.result import BY_THE_TRAINER, RunEvaluation, RunResult, RunTiming, result_from_text
from splatmeter.lab.record.run_folder import complete
from splatmeter.lab.samples.run_sample import (
    Arm,
    Aspect,
    Evaluation,
    RunSample,
    SliceSample,
    StagePeak,
)
from splatmeter.lab.session.quality_seeds import FOR_QUALITY
from splatmeter.lab.session.session_plan import (
    SessionPlan,
    lineage_of,
    load,
    protocol_of,
)
from splatmeter.lab.trainers.engine import engine_of

_ASPECTS = {aspect.value: aspect for aspect in Aspect}


def arm_of(phase: Phase, label: str, lineage: Iterable[Phase] = ()) -> Arm:
    """A phase answers for what its ancestors changed as well, down to the arm it is compared with.

    Another command or revision is another program, and says so by being one.
    """
    declared: set[str] = set()
    for item in (*lineage, phase):
        declared.update(item.changes)
        if item.environment or "--threads" in item.options:
            declared.add(Aspect.ENVIRONMENT.value)
        program = item.command or item.revision or item.patch or item.build or item.trainer
        if program or "--backend" in item.options:
            declared |= {Aspect.ENVIRONMENT.value, Aspect.BACKEND.value, Aspect.CODE.value}
        if "PYTHONPATH" in item.environment:
            declared.add(Aspect.CODE.value)
    aspects = frozenset(_ASPECTS[name] for name in declared if name in _ASPECTS)
    return Arm(label, aspects, speed_only="quality" not in declared)


def counted(lab: Lab, session: str) -> dict[str, RunResult]:
    """The results of one session that count, by the names of their runs, in the order of blocks."""
    rows = Index(lab).rows(
        "SELECT run, result FROM runs WHERE session = ? AND counted = 1 ORDER BY block, place", (session,)
    )
    return {row["run"]: result_from_text(row["result"]) for row in rows}


def same_machine(a: str, b: str) -> bool:
    """As far as both know: one of an older version does not know which of several alike it was."""
    (kind, _, one), (other, _, two) = a.partition("-"), b.partition("-")
    return kind == other and (one == two or not one or not two)


def torn_blocks(results: Iterable[RunResult]) -> set[int]:
    """Blocks whose runs were not made in one place and one go."""
    found: dict[int, set[tuple[str, ...]]] = {}
    for result in results:
        identity = result.identity
        found.setdefault(identity.block, set()).add((identity.which_machine, identity.boot, identity.job))
    return {block for block, places in found.items() if len(places) > 1}


def samples(lab: Lab, session: str, arms: Mapping[str, Arm]) -> list[RunSample]:
    """The counted runs of one session whose label is among `arms`, in order of blocks."""
    return samples_of(counted(lab, session), arms, load(lab, session))


def samples_of(
    results: Mapping[str, RunResult], arms: Mapping[str, Arm], plan: SessionPlan
) -> list[RunSample]:
    return [
        to_sample(run, result, arms[result.identity.arm], plan)
        for run, result in results.items()
        if result.identity.arm in arms and result.timing
    ]


def to_sample(run: str, result: RunResult, arm: Arm, plan: SessionPlan) -> RunSample:
    identity, timing, started = result.identity, result.timing or RunTiming(), result.started
    protocol = protocol_of(plan).of_scene(identity.scene)
    lineage = lineage_of(plan, identity.phase)
    trainer = trainer_of(protocol, lineage)
    engine = engine_of(trainer, started.environment)
    return RunSample(
        arm=arm,
        block=identity.block,
        order=identity.place,
        seconds=timing.seconds,
        timed_steps=int(timing.steps),
        gaussians_start=result.gaussians_start or 0,
        gaussians_end=result.gaussians_end or 0,
        run=run,
        seed=identity.seed,
        seed_set=seeds(protocol, lineage).can_be_set,
        first_step=protocol.start_iteration,
        last_step=result.last_step,
        evaluations=_evaluations(result, trainer),
        loss=result.loss,
        loss_last_100=result.loss_last_100,
        scene=identity.scene or protocol.scene,
        resolution=str(started.config.get("resolution", protocol.resolution)),
        train_images=started.train_images,
        test_images=started.test_images,
        ancestor_images=started.ancestor_images,
        start_sha256=result.start_sha256,
        model_sha256=result.model.sha256,
        backend=str(started.environment.get("backend", trainer)),
        machine=identity.which_machine,
        code=identity.code,
        clocks=result.clocks,
        warnings=result.warnings,
        environment=_environment(result),
        deterministic=engine.deterministic,
        sh_degree=int(started.config.get("sh_degree", 3)),
        holds_gradients=not engine.fused,
        image_bytes_held=result.image_bytes_held or 0,
        peaks=_peaks(result, engine.on_a_card),
        on_a_card=engine.on_a_card,
        rates=result.rates,
        **_counters(result),
    )


def _counters(result: RunResult) -> dict[str, Any]:
    """What was counted beside the run, to name a cause."""
    return {
        "total_peak_bytes": result.memory.total_peak_bytes,
        "card_bytes": result.card_bytes,
        "allocator_retries": result.allocator_retries,
        "foreign_cpu_share": result.foreign_cpu_share,
        "stolen_share": result.stolen_share,
        "throttled": result.throttled or 0,
        "spill": result.shared_memory.get("verdict", ""),
        "card_warnings": tuple(clocks.card_warnings(result.card)) if result.card_used else (),
    }


def _peaks(result: RunResult, on_a_card: bool) -> tuple[StagePeak, ...]:
    """With what NVML saw of the whole card: the highest of the run cannot be below that of training."""
    # Memory of the host says nothing about what a trainer holds on its card.
    found = [peak for peak in result.peaks if not on_a_card or peak.process_bytes is None]
    on_card = result.memory.device_peak_bytes
    if on_card and on_a_card:
        found.append(StagePeak("training", device_bytes=on_card))
    return tuple(found)


def _evaluations(result: RunResult, trainer: str) -> tuple[Evaluation, ...]:
    clock = result.clock_at or {}
    held_out = result.started.test_images
    return tuple(
        _evaluation(item, held_out if item.split == "test" else (), trainer, clock.get(str(item.step)))
        for item in result.evaluations
    )


def _evaluation(item: RunEvaluation, views: tuple[str, ...], trainer: str, clock: float | None) -> Evaluation:
    """Metrics that JSON could not hold (NaN) are left out rather than guessed."""
    judge = trainer if item.judged_by == BY_THE_TRAINER else item.judged_by
    metrics = {name: value for name, value in item.metrics.items() if value is not None}
    images = item.images or views
    return Evaluation(item.step, item.split, metrics, images, item.model_sha256, judge, item.exposure, clock)


def _environment(result: RunResult) -> dict[str, Any]:
    """Facts that must agree: versions, limits, variables; and the trainer's own compiler flags."""
    told = {key: value for key, value in result.started.environment.items() if key != "time"}
    return {**result.facts, "trainer": told}


def slice_samples(lab: Lab, session: str) -> list[SliceSample]:
    """The slices of complete blocks."""
    found: list[SliceSample] = []
    for path in sorted((lab.sessions / session / "blocks").glob("*/slices.json")):
        record = read_json(path)
        if isinstance(record, dict) and complete(path.parent):
            found += [SliceSample(**item) for item in record["slices"]]
    return found


def sessions_of(lab: Lab, reference: str, candidate: str, kind: str = "") -> list[str]:
    """Ended sessions in which both phases were arms, oldest first; an A/A has the same phase twice. Those
    that nobody timed are left out, unless their `kind` is asked for.

    A session under way is not among them: judging it early would be peeking.
    """
    rows = Index(lab).rows(
        "SELECT session, kind, arms FROM sessions s WHERE ended IS NOT NULL AND EXISTS"
        " (SELECT 1 FROM runs r WHERE r.session = s.session AND r.counted = 1)"
        " ORDER BY place_in_order, session"
    )
    found: list[str] = []
    for row in rows:
        if row["kind"] != kind if kind else row["kind"] in ("record", "quality"):
            continue
        phases = [arm["phase"] for arm in json.loads(row["arms"])]
        if reference == candidate:
            fits = row["kind"] == "aa" and reference in phases
        else:
            fits = reference in phases and candidate in phases
        if fits and (lab.sessions / row["session"]).exists():
            found.append(row["session"])
    return found


def quality_runs(
    lab: Lab,
    phases: tuple[str, str],
    arms: Mapping[str, Arm],
    same: Callable[[SessionPlan, list[RunSample]], bool],
) -> list[RunSample]:
    """From every ended session of this kind that `same` takes for the same comparison."""
    found: list[RunSample] = []
    for session in sessions_of(lab, *phases, kind=FOR_QUALITY):
        plan = load(lab, session)
        runs = samples(lab, session, arms)
        if same(plan, runs):
            found += runs
    return found
