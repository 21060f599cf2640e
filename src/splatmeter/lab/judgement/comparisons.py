"""A comparison of two phases, gathered from the sessions that measured both."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

from splatmeter.lab.compare.assemble import Rules, compare
from splatmeter.lab.compare.comparison import Comparison
from splatmeter.lab.compare.machines import Differences, Whole, compare_machines
from splatmeter.lab.compare.ratio import log_ratios, slice_log_ratios
from splatmeter.lab.compare.scenes import compare_scenes, pooled_log_ratios
from splatmeter.lab.compare.trajectory import Goal
from splatmeter.lab.judgement import gathering, mishaps, strata
from splatmeter.lab.judgement.controls import floor_of, latest_control
from splatmeter.lab.judgement.gathering import quality_runs
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.merge_rules import WORDS_ONLY
from splatmeter.lab.samples.aim import Aim, aim_of
from splatmeter.lab.samples.finding import Finding
from splatmeter.lab.samples.run_sample import (
    Arm,
    RunSample,
    SliceSample,
    Subject,
)
from splatmeter.lab.session.session_plan import (
    SessionPlan,
    lineage_of,
    load,
    place_of,
    protocol_of,
)


def labels(plan: SessionPlan, reference: str, candidate: str) -> tuple[str, str]:
    """The arms behind two phases; the two labels of an A/A if they are the same phase."""
    if reference == candidate:
        first, second = (arm.label for arm in plan.arms if arm.phase == reference)
        return first, second
    by_phase = {arm.phase: arm.label for arm in plan.arms}
    return by_phase[reference], by_phase[candidate]


def arms_between(plan: SessionPlan, reference: str, candidate: str, named: tuple[str, str]) -> dict[str, Arm]:
    """The candidate declares what every phase between it and the reference declared when the session began;
    what somebody declares afterwards counts for later sessions.
    """
    lineage = lineage_of(plan, candidate)
    names = [phase.name for phase in lineage]
    between = lineage[names.index(reference) + 1 :] if reference in names else lineage
    return {
        named[0]: gathering.arm_of(lineage_of(plan, reference)[-1], named[0]),
        named[1]: gathering.arm_of(lineage[-1], named[1], between),
    }


def comparison(lab: Lab, reference: str, candidate: str, session: str, aim: Aim | None = None) -> Comparison:
    return comparison_over(lab, reference, candidate, [session], aim)


def comparison_over(
    lab: Lab, reference: str, candidate: str, sessions: Sequence[str], aim: Aim | None = None
) -> Comparison:
    """The newest session first; others repeat it on machines of their own. By the aim that was frozen with
    the session, unless another one is asked about."""
    plan = load(lab, sessions[0])
    protocol = protocol_of(plan)
    named = labels(plan, reference, candidate)
    arms = arms_between(plan, reference, candidate, named)
    measured = strata.measured(lab, sessions, arms)
    runs = measured.runs
    own = aim_of(lineage_of(plan, candidate)[-1].aim) if reference != candidate else Aim.SPEED
    rules = Rules(
        tolerance=protocol.tolerance,
        margins=protocol.margins,
        covariate=protocol.covariate,
        tolerated_difference=protocol.tolerated_difference,
        until_decided=plan.until_decided,
        aim=aim or own,
        goal=goal_of(protocol),
        sequence=max(place_of(lab, session) for session in sessions),
        evaluations=_promised(plan),
        findings=(*_mishaps(lab, sessions, named), *measured.findings),
        subject=_subject(plan, (reference, candidate), runs, named),
    )

    def controlled(machines: list[str]) -> Rules:
        control = None if reference == candidate else latest_control(lab, plan, machines)
        return replace(rules, noise=floor_of(control, plan), control=control.runs if control else None)

    machines = sorted({run.machine for run in runs}) or [plan.machine]
    joint = controlled(machines)
    more = _quality_runs(lab, (reference, candidate), arms, rules)
    whole, differences = _ways(protocol, named, measured.slices, more)
    return compare_machines(
        runs, whole, differences, joint, lambda machine: replace(controlled([machine]), findings=())
    )


def _mishaps(lab: Lab, sessions: Sequence[str], named: tuple[str, str]) -> tuple[Finding, ...]:
    found = [finding for name in sessions for finding in mishaps.findings(lab, load(lab, name), named)]
    return tuple(dict.fromkeys(found))


def _ways(
    protocol: Protocol, named: tuple[str, str], slices: Sequence[SliceSample], more: Sequence[RunSample]
) -> tuple[Whole, Differences]:
    """How runs are compared as if they were of one machine, and their log ratios by block."""
    if protocol.scenes:
        goals = {name: goal_of(protocol.of_scene(name)) for name in protocol.scene_names}
        scenes = list(goals)
        return (
            lambda runs, rules: compare_scenes(runs, named, goals, rules, _there(more, runs)),
            lambda runs: list(pooled_log_ratios(runs, named, scenes).values()),
        )

    def pieces(runs: Sequence[RunSample]) -> list[SliceSample]:
        blocks = {run.block for run in runs}
        return [piece for piece in slices if piece.block in blocks]

    return (
        lambda runs, rules: compare(runs, *named, rules, pieces(runs), _there(more, runs)),
        lambda runs: slice_log_ratios(pieces(runs), *named) if slices else log_ratios(runs, *named),
    )


def _there(more: Sequence[RunSample], runs: Sequence[RunSample]) -> list[RunSample]:
    """Runs for quality alone, of the machines that these runs are of."""
    machines = {run.machine for run in runs}
    return [run for run in more if any(gathering.same_machine(run.machine, machine) for machine in machines)]


def goal_of(protocol: Protocol) -> Goal:
    """What a curve over time is judged by, as it was stated."""
    return Goal(
        protocol.target_psnr,
        protocol.after_seconds,
        "test" if protocol.eval else "train",
        protocol.grid_steps,
        protocol.tolerance,
    )


def _quality_runs(lab: Lab, phases: tuple[str, str], arms: dict[str, Arm], rules: Rules) -> list[RunSample]:
    """Runs made for quality alone that repeat exactly this comparison; an A/A has none."""

    def same(other: SessionPlan, runs: list[RunSample]) -> bool:
        return strata.repeats(rules.subject, _subject(other, phases, runs, phases))

    return [] if phases[0] == phases[1] else quality_runs(lab, phases, arms, same)


def _promised(plan: SessionPlan) -> tuple[tuple[str, int], ...]:
    """Slices are evaluated at their end only."""
    protocol = protocol_of(plan)
    steps = (protocol.end_iteration,) if plan.slices else protocol.evaluation_steps
    return tuple(("test" if protocol.eval else "train", step) for step in steps)


def _subject(
    plan: SessionPlan, phases: tuple[str, str], runs: Sequence[RunSample], named: tuple[str, str]
) -> Subject:
    definitions: list[str] = []
    for name in phases:
        records = [dataclasses.asdict(phase) for phase in lineage_of(plan, name)]
        meant = [{k: v for k, v in record.items() if k not in WORDS_ONLY} for record in records]
        definitions.append(hashlib.sha256(json.dumps(meant, sort_keys=True).encode()).hexdigest()[:16])
    return Subject(plan.fingerprint, tuple(definitions), *strata.code_of(runs, named))
