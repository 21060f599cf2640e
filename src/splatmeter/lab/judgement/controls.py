"""The newest A/A that speaks about a comparison: of the same protocol, on the same machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from splatmeter.lab.compare.assemble import Control
from splatmeter.lab.compare.noise import NoiseFloor, noise_floor
from splatmeter.lab.compare.ratio import FEWEST_BLOCKS, evidence, log_ratios, slice_log_ratios
from splatmeter.lab.compare.scenes import pooled_log_ratios
from splatmeter.lab.compare.sequential import evidence_so_far
from splatmeter.lab.judgement import gathering
from splatmeter.lab.record.index import Index
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.samples.run_sample import Arm, RunSample
from splatmeter.lab.session.session_plan import SessionPlan, load, protocol_of


@dataclass(frozen=True, slots=True)
class FoundControl:
    """The newest A/A that speaks about a session."""

    runs: Control
    differences: tuple[float, ...]
    """Log ratios of its blocks; with several scenes, their means."""


def latest_control(lab: Lab, plan: SessionPlan, machines: Sequence[str]) -> FoundControl | None:
    """The newest A/A of this protocol with enough blocks on these machines, sliced if the session is."""
    rows = Index(lab).rows(
        "SELECT session FROM sessions WHERE kind = 'aa' AND protocol = ?"
        " AND ended IS NOT NULL ORDER BY place_in_order DESC",
        (plan.fingerprint,),
    )
    for row in rows:
        control = load(lab, row["session"])
        if bool(control.slices) != bool(plan.slices) or control.session == plan.session:
            continue
        arms = {arm.label: Arm(arm.label) for arm in control.arms}
        found = [
            run
            for run in gathering.samples(lab, control.session, arms)
            if any(gathering.same_machine(run.machine, machine) for machine in machines)
        ]
        differences = _differences(lab, control, found) if found else ()
        if len(differences) >= FEWEST_BLOCKS:
            first, second = arms
            return FoundControl(Control(found, first, second, control.until_decided), differences)
    return None


def _differences(lab: Lab, control: SessionPlan, runs: list[RunSample]) -> tuple[float, ...]:
    first, second = (arm.label for arm in control.arms)
    if control.slices:
        blocks = {run.block for run in runs}
        pieces = [piece for piece in gathering.slice_samples(lab, control.session) if piece.block in blocks]
        return slice_log_ratios(pieces, first, second)
    if scenes := protocol_of(control).scene_names:
        return tuple(pooled_log_ratios(runs, (first, second), scenes).values())
    return log_ratios(runs, first, second)


def latest_noise(lab: Lab, plan: SessionPlan, machines: Sequence[str] = ()) -> NoiseFloor | None:
    return floor_of(latest_control(lab, plan, machines or [plan.machine]), plan)


def floor_of(control: FoundControl | None, plan: SessionPlan) -> NoiseFloor | None:
    """How far apart the two equal arms of the control were in speed."""
    if control is None:
        return None
    told = evidence_so_far if control.runs.until_decided else evidence
    return noise_floor(told(control.differences), plan.machine, protocol_of(plan).scene)
