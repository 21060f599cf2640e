"""From the folders to what compare and audit work on: a RunSample per run that counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from splatmeter.lab.atomic import read_json
from splatmeter.lab.compare.samples import (
    Arm,
    Aspect,
    Clocks,
    Evaluation,
    RatePoint,
    RunSample,
    SliceSample,
    StagePeak,
)
from splatmeter.lab.monitor import clocks
from splatmeter.lab.plan.commands import seeds, trainer_of
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.record.index import Index
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.run_folder import complete
from splatmeter.lab.session.plan import SessionPlan, lineage_of, load, protocol_of

ON_A_CARD = ("mip-splatting", "3dgs", "fork", "gsplat")
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


def counted(lab: Lab, session: str) -> list[dict[str, Any]]:
    """The results of one session that count, in order of blocks, each with the name of its `run`."""
    rows = Index(lab).rows(
        "SELECT run, result FROM runs WHERE session = ? AND counted = 1 ORDER BY block, place", (session,)
    )
    return [json.loads(row["result"]) | {"run": row["run"]} for row in rows]


def machine_of(identity: Mapping[str, Any]) -> str:
    """The machine, and which one of several that look alike; older results know only the first."""
    host = str(identity.get("host") or "")
    return f"{identity['machine']}-{host[:6]}" if host else str(identity["machine"])


def same_machine(a: str, b: str) -> bool:
    """As far as both know: one of an older version does not know which of several alike it was."""
    (kind, _, one), (other, _, two) = a.partition("-"), b.partition("-")
    return kind == other and (one == two or not one or not two)


def torn_blocks(lab: Lab, session: str) -> set[int]:
    """Blocks whose runs were not made in one place and one go."""
    found: dict[int, set[tuple[str, ...]]] = {}
    for result in counted(lab, session):
        identity = result["identity"]
        place = (machine_of(identity), str(identity.get("boot", "")), str(identity.get("job", "")))
        found.setdefault(identity["block"], set()).add(place)
    return {block for block, places in found.items() if len(places) > 1}


def samples(lab: Lab, session: str, arms: Mapping[str, Arm]) -> list[RunSample]:
    """The counted runs of one session whose label is among `arms`, in order of blocks."""
    plan = load(lab, session)
    results = [(result["run"], result) for result in counted(lab, session)]
    return [
        to_sample(run, result, arms[result["identity"]["arm"]], plan)
        for run, result in results
        if result["identity"]["arm"] in arms and result.get("timing")
    ]


def to_sample(run: str, result: dict[str, Any], arm: Arm, plan: SessionPlan) -> RunSample:
    identity, timing, started = result["identity"], result["timing"], result.get("started") or {}
    config = started.get("config", {})
    protocol = protocol_of(plan).of_scene(identity.get("scene", ""))
    lineage = lineage_of(plan, identity["phase"])
    trainer = trainer_of(protocol, lineage)
    engine = engine_of(trainer, started)
    return RunSample(
        arm=arm,
        block=identity["block"],
        order=identity["place"],
        seconds=timing["seconds"],
        timed_steps=int(timing["steps"]),
        gaussians_start=result.get("gaussians_start") or 0,
        gaussians_end=result.get("gaussians_end") or 0,
        run=run,
        seed=identity["seed"],
        seed_set=seeds(protocol, lineage).can_be_set,
        first_step=protocol.start_iteration,
        last_step=result["last_step"],
        evaluations=_evaluations(result, started, trainer),
        loss=result.get("loss"),
        loss_last_100=result.get("loss_last_100"),
        scene=identity.get("scene") or protocol.scene,
        resolution=str(config.get("resolution", protocol.resolution)),
        train_images=tuple(started.get("train_images", ())),
        test_images=tuple(started.get("test_images", ())),
        ancestor_images=tuple(started.get("ancestor_images", ())),
        start_sha256=result.get("start_sha256", ""),
        model_sha256=result.get("model", {}).get("sha256", ""),
        backend=str(started.get("environment", {}).get("backend", trainer)),
        machine=machine_of(identity),
        code=identity.get("code", ""),
        clocks=_clocks(result),
        warnings=tuple(map(str, result.get("warnings", ()))),
        environment=_environment(result),
        deterministic=engine.deterministic,
        sh_degree=int(config.get("sh_degree", 3)),
        holds_gradients=not engine.fused,
        image_bytes_held=result.get("image_bytes_held") or 0,
        peaks=_peaks(result, engine.on_a_card),
        on_a_card=engine.on_a_card,
        **_counters(result),
        rates=rate_points(result["rates"]),
    )


def rate_points(points: Iterable[Mapping[str, Any]]) -> tuple[RatePoint, ...]:
    return tuple(RatePoint(int(p["step"]), int(p["gaussians"]), p["steps_per_second"]) for p in points)


def preferred(evaluations: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One per step and split: our own judgement where there is one, else what the trainer printed.

    The original prints a PSNR of another definition; the two must never be compared with each other.
    """
    chosen: dict[tuple[int, str], dict[str, Any]] = {}
    for item in evaluations:
        key = (item["step"], item["split"])
        if key not in chosen or chosen[key]["judged_by"] == "trainer":
            chosen[key] = item
    return list(chosen.values())


@dataclass(frozen=True, slots=True)
class Engine:
    """What a run was computed with, as far as the audit must know it."""

    deterministic: bool
    fused: bool
    """Gradients of all Gaussians are never held together."""
    on_a_card: bool


def engine_of(trainer: str, started: Mapping[str, Any]) -> Engine:
    """What the run itself told; of trainers and older results that do not tell, what is known of them."""
    told = started.get("environment", {})
    ours = trainer == "splatmeter"
    device = told.get("backend_device")
    return Engine(
        deterministic=told.get("backend_deterministic", ours) is True,
        fused=told.get("backend_fused", ours and told.get("backend") == "native") is True,
        on_a_card=device != "cpu" if isinstance(device, str) else trainer in ON_A_CARD,
    )


def _counters(result: Mapping[str, Any]) -> dict[str, Any]:
    """What was counted beside the run, to name a cause."""
    return {
        "total_peak_bytes": (result.get("memory") or {}).get("total_peak_bytes"),
        "card_bytes": result.get("card_bytes"),
        "allocator_retries": result.get("allocator_retries") or 0,
        "foreign_cpu_share": result.get("foreign_cpu_share"),
        "stolen_share": result.get("stolen_share"),
        "throttled": result.get("throttled") or 0,
        "spill": (result.get("shared_memory") or {}).get("verdict", ""),
        "card_warnings": tuple(clocks.warnings(result["card"])) if result.get("card_used") else (),
    }


def _peaks(result: Mapping[str, Any], on_a_card: bool) -> tuple[StagePeak, ...]:
    """With what NVML saw of the whole card: the highest of the run cannot be below that of training."""
    found = [_peak(item) for item in result.get("peaks", ()) if _tells(item, on_a_card)]
    on_card = (result.get("memory") or {}).get("device_peak_bytes")
    if on_card and on_a_card:
        found.append(StagePeak("training", device_bytes=on_card))
    return tuple(found)


def _tells(peak: Mapping[str, Any], on_a_card: bool) -> bool:
    """Memory of the host says nothing about what a trainer holds on its card."""
    return not on_a_card or peak.get("process_bytes") is None


def _evaluations(
    result: Mapping[str, Any], started: Mapping[str, Any], trainer: str
) -> tuple[Evaluation, ...]:
    clock = result.get("clock_at") or {}
    return tuple(
        _evaluation(item, started, trainer, clock.get(str(item["step"]))) for item in result["evaluations"]
    )


def _evaluation(
    item: dict[str, Any], started: Mapping[str, Any], trainer: str, clock: float | None
) -> Evaluation:
    """Metrics that JSON could not hold (NaN) are left out rather than guessed."""
    judge = trainer if item["judged_by"] == "trainer" else item["judged_by"]
    metrics = {name: value for name, value in item["metrics"].items() if value is not None}
    images = tuple(item.get("images") or (started.get("test_images", ()) if item["split"] == "test" else ()))
    rule = (judge, item.get("exposure", "none"))
    model = item.get("model_sha256", "")
    return Evaluation(item["step"], item["split"], metrics, images, model, *rule, clock)


def _clocks(result: Mapping[str, Any]) -> Clocks | None:
    return Clocks(**result["clocks"]) if result.get("clocks") else None


def _environment(result: dict[str, Any]) -> dict[str, Any]:
    """Facts that must agree: versions, limits, variables; and the trainer's own compiler flags."""
    facts = dict(result.get("facts", {}))
    told = (result.get("started") or {}).get("environment", {})
    return {**facts, "trainer": {key: value for key, value in told.items() if key != "time"}}


def _peak(item: dict[str, Any]) -> StagePeak:
    known: dict[str, Any] = {
        name: item[name] for name in StagePeak.__dataclass_fields__ if item.get(name) is not None
    }
    return StagePeak(**known)


def slice_samples(lab: Lab, session: str) -> list[SliceSample]:
    """Of complete blocks only."""
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
