"""What a session is going to do, written down before it begins: resuming reads it back."""

from __future__ import annotations

import dataclasses
import secrets
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from splatmeter.errors import InputError, MissingFile, UsageError
from splatmeter.lab.environment import machine_identity
from splatmeter.lab.json_files import read_json, write_json
from splatmeter.lab.order_of_time import place_in_order, utc_now
from splatmeter.lab.plan.block_orders import block_orders, next_orders
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.plan.protocol import Protocol, check_protocol
from splatmeter.lab.plan.scene_entries import SceneEntry
from splatmeter.lab.record.lab import Lab, next_sequence, read_plan
from splatmeter.lab.samples.aim import Aim, aim_of

FEWEST_BLOCKS = 4
MOST_BLOCKS_UNDECIDED = 100


@dataclass(frozen=True, slots=True)
class ArmPlan:
    """In an A/A the same phase stands behind two labels."""

    label: str
    phase: str
    monitor: bool = True


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line adds to the protocol."""

    blocks: int = 0
    until_decided: bool = False
    slices: float = 0.0
    """Seconds per slice; 0: whole runs."""
    seed: int | None = None
    iterations: int = 0
    """How long a single recorded run is; 0: as long as the protocol says."""
    prime: bool = True
    keep_models: bool = False
    monitor: bool = True
    first_seed: int | None = None
    """Where runs for quality alone begin to count seeds: every pair has one of its own."""
    jobs: dict[str, Any] = field(default_factory=dict)
    """Where blocks are jobs of a cluster: see SessionPlan.jobs."""


@dataclass(frozen=True, slots=True)
class SessionPlan:
    session: str
    kind: str
    """'ab', 'aa', 'run' (baseline, parent and phase), 'overhead' (a phase without and with the monitor),
    'quality' (pairs that nobody times) or 'record' (a single run, no speed verdict).
    """
    arms: tuple[ArmPlan, ...]
    blocks: int
    until_decided: bool
    slices: float
    order_seed: int
    prime: bool
    keep_models: bool
    monitor: bool
    created: str
    fingerprint: str
    machine: str
    protocol: dict[str, Any]
    phases: dict[str, dict[str, Any]]
    """Every phase of every lineage as it was declared then: what was promised is frozen with the session."""
    sequence: int = 0
    """Later sessions have larger numbers, whatever the clock said; 0 in sessions of older versions."""
    first_seed: int | None = None
    """Block k has this seed + k; None: the protocol's seeds in turn."""
    jobs: dict[str, Any] = field(default_factory=dict)
    """{} where the lab runs the blocks itself; else `on` (slurm, local), `at_once`, `minutes`, `options`."""

    def seed(self, block: int) -> int:
        """The seed that all arms of a block share; priming, block -1, has that of the first block."""
        if self.first_seed is not None:
            return self.first_seed + max(0, block)
        return self.protocol["seed"] + max(0, block) % self.protocol["seeds"]

    def order(self, block: int, scene: str = "") -> tuple[ArmPlan, ...]:
        """The arms of a block in the order in which they run; blocks count from 0. Every scene has a draw
        of its own.
        """
        if len(self.arms) == 1:
            return self.arms
        labels = [arm.label for arm in self.arms]
        seed = self.order_seed + zlib.crc32(scene.encode("utf-8"))  # 0 for the only one, which has no name
        if self.until_decided:
            chosen = next_orders(labels, block, 1, seed)[0]
        else:
            chosen = block_orders(labels, self.blocks, seed)[block]
        by_label = {arm.label: arm for arm in self.arms}
        return tuple(by_label[label] for label in chosen)

    def scenes(self, block: int) -> tuple[str, ...]:
        """In the order in which this block runs them; the only one of a protocol has no name."""
        names = [entry["name"] for entry in self.protocol.get("scenes", ())]
        if len(names) < 2:
            return tuple(names) or ("",)
        return next_orders(names, block, 1, self.order_seed)[0]

    def folder(self, lab: Lab) -> Path:
        return lab.sessions / self.session


def make(lab: Lab, kind: str, phases: list[str], wishes: Wishes) -> SessionPlan:
    """Checks that everything named exists before anything runs."""
    protocol = lab.protocol()
    if wishes.iterations:
        protocol = _of_length(protocol, kind, wishes.iterations)
    lineages = {name: lab.phases.lineage(name) for name in phases}
    blocks = 1 if kind == "record" else wishes.blocks or protocol.blocks
    if wishes.until_decided:
        blocks = wishes.blocks or MOST_BLOCKS_UNDECIDED
    if kind not in ("record", "quality") and blocks < FEWEST_BLOCKS:
        raise UsageError(
            f"{blocks} blocks cannot decide anything; at least {FEWEST_BLOCKS} are needed (10 below 5 %)."
        )
    if kind == "overhead" and (wishes.slices or not wishes.monitor):
        raise UsageError(
            "The monitor's cost is measured by whole runs with it and without it: leave out --slices"
            " (it watches while its arm stands still, too) and --no-monitor."
        )
    if wishes.slices and len(phases) != 2:
        raise UsageError("--slices alternates between exactly two arms; use it with `lab ab` or `lab aa`.")
    check_aims(protocol, [lineage[-1] for lineage in lineages.values()], wishes)
    name = f"{_stamp()}-{kind}-{secrets.token_hex(2)}"
    plan = SessionPlan(
        session=name,
        kind=kind,
        arms=_arms(kind, phases),
        blocks=blocks,
        until_decided=wishes.until_decided,
        slices=wishes.slices,
        order_seed=wishes.seed if wishes.seed is not None else secrets.randbelow(2**31),
        prime=wishes.prime and kind not in ("record", "quality"),
        keep_models=wishes.keep_models or kind == "record",
        monitor=wishes.monitor,
        created=utc_now(),
        fingerprint=protocol.fingerprint(),
        machine=machine_identity(),
        protocol=dataclasses.asdict(protocol),
        phases={phase.name: dataclasses.asdict(phase) for chain in lineages.values() for phase in chain},
        sequence=next_sequence(lab, name, phases),
        first_seed=wishes.first_seed,
        jobs=wishes.jobs,
    )
    plan.folder(lab).mkdir(parents=True)
    write_json(plan.folder(lab) / "session.json", dataclasses.asdict(plan))
    return plan


def check_aims(protocol: Protocol, phases: list[Phase], wishes: Wishes) -> None:
    """What an aim needs must be stated before anything runs."""
    if wishes.slices and protocol.scenes:
        raise UsageError("--slices is for one scene: leave it out where a protocol has several.")
    for phase in phases:
        aim = aim_of(phase.aim)
        if aim is Aim.SPEED:
            continue
        if wishes.slices:
            raise UsageError(
                f"{phase.name} aims at {aim.value}, of which slices tell nothing: leave out --slices."
            )
        if aim.of_memory and not wishes.monitor:
            raise UsageError(f"{phase.name} aims at {aim.value}: leave out --no-monitor.")
        if not aim.of_a_trajectory:
            continue
        if wishes.until_decided:
            raise UsageError(
                f"{phase.name} aims at {aim.value}, which is judged once: leave out --until-decided."
            )
        scenes = [protocol.of_scene(name) for name in protocol.scene_names or ("",)]
        stated = [scene.target_psnr if aim is Aim.TIME else scene.after_seconds for scene in scenes]
        if not protocol.evaluate_every or not all(stated):
            key = "target_psnr" if aim is Aim.TIME else "after_seconds"
            raise UsageError(
                f"{phase.name} aims at {aim.value}; state evaluate_every and {key} in [aims] of"
                " protocol.toml."
            )


def anew(lab: Lab, old: SessionPlan) -> SessionPlan:
    """The same question asked again from its first block; what was measured so far stays and counts for
    nothing: a session must not end when its figures please somebody.
    """
    if (old.folder(lab) / "ended.json").exists():
        raise UsageError(f"{old.session} has ended; a new `splatmeter lab {old.kind}` measures again.")
    wishes = Wishes(
        old.blocks,
        old.until_decided,
        old.slices,
        None,
        0,
        old.prime,
        old.keep_models,
        old.monitor,
        old.first_seed,
        old.jobs,
    )
    plan = make(lab, old.kind, [arm.phase for arm in old.arms], wishes)
    write_json(old.folder(lab) / "ended.json", {"time": utc_now(), "abandoned_for": plan.session})
    return plan


def _stamp() -> str:
    """A name for people, in UTC; the order of sessions is their sequence number."""
    now = time.time_ns()
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now // 10**9))}-{now // 1000 % 10**6:06d}"


def _of_length(protocol: Protocol, kind: str, iterations: int) -> Protocol:
    """Arms of a comparison share the protocol's length; a recorded run is compared with nothing."""
    if kind != "record":
        raise UsageError(
            "Only a recorded run may have a length of its own; edit iterations in protocol.toml."
        )
    return check_protocol(dataclasses.replace(protocol, iterations=iterations))


def _arms(kind: str, phases: list[str]) -> tuple[ArmPlan, ...]:
    if kind == "overhead":
        return tuple(
            ArmPlan(f"{phases[0]}#{word}", phases[0], word == "watched") for word in ("unwatched", "watched")
        )
    if len(set(phases)) == len(phases):
        return tuple(ArmPlan(name, name) for name in phases)
    return tuple(ArmPlan(f"{name}#{place}", name) for place, name in enumerate(phases, start=1))


def load(lab: Lab, session: str) -> SessionPlan:
    if not session or "/" in session or "\\" in session or session.startswith("."):
        raise UsageError(f"{session!r} does not name a session; `splatmeter lab ls` shows them.")
    path = lab.sessions / session / "session.json"
    record = read_json(path)
    if record is None:
        raise MissingFile(
            f"There is no session {session!r} in {lab.sessions}; `splatmeter lab ls` shows them."
        )
    try:
        record["arms"] = tuple(ArmPlan(**arm) for arm in record["arms"])
        return SessionPlan(**record)
    except (TypeError, KeyError) as problem:
        raise InputError(
            f"{path} was written by another version of the lab ({problem}); read it with that version."
        ) from None


def protocol_of(plan: SessionPlan) -> Protocol:
    """As it was when the session began: editing the file later does not change runs that continue it."""
    record = dict(plan.protocol)
    for name in ("command", "options"):
        record[name] = tuple(record[name])
    record["patterns"] = tuple((name, pattern) for name, pattern in record["patterns"])
    record["scenes"] = tuple(SceneEntry(**entry) for entry in record.get("scenes", ()))
    return Protocol(**record)


def lineage_of(plan: SessionPlan, name: str) -> list[Phase]:
    """From the snapshot in the plan, baseline first."""
    chain: list[Phase] = []
    while name:
        record = dict(plan.phases[name])
        for key in ("changes", "options", "build", "command", "code_changes"):
            record[key] = tuple(record[key])
        chain.append(Phase(**record))
        name = chain[-1].parent
    return chain[::-1]


def unfinished(lab: Lab) -> list[str]:
    """Sessions that were begun and never ended, oldest first."""
    return [name for name in in_order(lab) if not (lab.sessions / name / "ended.json").exists()]


def place_of(lab: Lab, session: str) -> float:
    """Among the lab's sessions: later ones have larger numbers."""
    return place_in_order(read_plan(lab.sessions / session / "session.json") or {})


def in_order(lab: Lab) -> list[str]:
    """All sessions, oldest first."""
    plans = {path.parent.name: read_plan(path) for path in lab.sessions.glob("*/session.json")}
    known = {name: plan for name, plan in plans.items() if isinstance(plan, dict)}
    return sorted(known, key=lambda name: (place_in_order(known[name]), name))
