"""Verdicts on phases: which sessions speak about them, what they say, and whether it was said twice."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from splatmeter.errors import MissingFile, SplatmeterError
from splatmeter.lab.atomic import read_json
from splatmeter.lab.compare.aims import Aim, aim_of
from splatmeter.lab.compare.assemble import Rules, compare
from splatmeter.lab.compare.machines import Differences, Whole, compare_machines
from splatmeter.lab.compare.ratio import log_ratios, slice_log_ratios
from splatmeter.lab.compare.samples import (
    Arm,
    Finding,
    RunSample,
    SliceSample,
    Subject,
    Verdict,
    VerdictKind,
)
from splatmeter.lab.compare.scenes import compare_scenes, pooled_log_ratios
from splatmeter.lab.compare.trajectory import Goal
from splatmeter.lab.compare.verdict import Comparison, declared, judge, verify
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.index import Index, synced_once
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.merge_rules import WORDS_ONLY
from splatmeter.lab.session import gather, mishaps, strata
from splatmeter.lab.session.controls import floor_of, latest_control
from splatmeter.lab.session.plan import SessionPlan, in_order, lineage_of, load, place_of, protocol_of
from splatmeter.lab.session.quality_runs import quality_runs


@dataclass(frozen=True, slots=True)
class Judged:
    """A comparison in one session, and its verdict."""

    comparison: Comparison
    verdict: Verdict
    session: str
    sessions: tuple[str, ...] = ()
    """That one, and those that repeat it on other machines."""


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
        named[0]: gather.arm_of(lineage_of(plan, reference)[-1], named[0]),
        named[1]: gather.arm_of(lineage[-1], named[1], between),
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
    return [run for run in more if any(gather.same_machine(run.machine, machine) for machine in machines)]


def goal_of(protocol: Protocol) -> Goal:
    """What a curve over time is judged by, as it was stated."""
    return Goal(
        protocol.target_psnr,
        protocol.after_seconds,
        "test" if protocol.eval else "train",
        protocol.grid_steps,
        protocol.tolerance,
    )


def _quality_runs(
    lab: Lab, phases: tuple[str, str], arms: dict[str, Arm], rules: Rules
) -> list[RunSample]:
    """Made for quality alone, of the very same: never for an A/A, whose arms have names of their own."""

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


def judged(lab: Lab, reference: str, candidate: str, session: str = "") -> Judged:
    """By the newest session that has both arms, or the one named; a *faster* said before makes it
    *verified*.
    """
    with synced_once():
        return _judged(lab, reference, candidate, session)


def _judged(lab: Lab, reference: str, candidate: str, session: str) -> Judged:
    sessions = [session] if session else gather.sessions_of(lab, reference, candidate)
    rounds = strata.rounds(lab, sessions, (reference, candidate))
    if not rounds:
        raise MissingFile(
            f"{candidate} has not been measured against {reference};"
            f" `splatmeter lab ab {reference} {candidate}` does it"
        )
    name, newest = rounds[0][0], comparison_over(lab, reference, candidate, rounds[0])
    before = [comparison_over(lab, reference, candidate, names) for names in rounds[1:2]]
    verdict = verify(before[0], newest) if before else judge(newest)
    verdict = _with_its_aim(lab, load(lab, name), candidate, verdict)
    changed = "" if session else _changed_since(lab, load(lab, name), (reference, candidate))
    verdict = _about_the_past(verdict, changed) if changed else verdict
    return Judged(newest, verdict, name, tuple(rounds[0]))


def _with_its_aim(lab: Lab, plan: SessionPlan, phase: str, verdict: Verdict) -> Verdict:
    """An aim that is chosen when the figures are there is none: the session's own counts; that is said."""
    frozen = aim_of(lineage_of(plan, phase)[-1].aim)
    try:
        now = aim_of(lab.phases.get(phase).aim)
    except SplatmeterError:
        return verdict
    if now is frozen:
        return verdict
    words = (
        f"The aim of {phase} was {frozen.value} when this session began and is {now.value} now: it is judged "
        "by what it aimed at then."
    )
    return dataclasses.replace(verdict, reasons=(*verdict.reasons, words))


EXECUTED = ("parent", "options", "environment", "revision", "patch", "build", "command", "trainer")


def _changed_since(lab: Lab, plan: SessionPlan, phases: tuple[str, str]) -> str:
    """Which phase would execute something else today than what was measured; empty if none."""
    for name in phases:
        try:
            now = lab.phases.lineage(name)
        except SplatmeterError:  # removed, or in a circle: what was measured is all that is left
            continue
        executed = [
            [[getattr(phase, field) for field in EXECUTED] for phase in lineage]
            for lineage in (now, lineage_of(plan, name))
        ]
        if executed[0] != executed[1]:
            return name
    return ""


def _about_the_past(verdict: Verdict, changed: str) -> Verdict:
    """What was measured is true of what was measured; a gate asks about the phase as it is."""
    sentence = (
        f"Undecided: {changed} has been changed since it was measured; `splatmeter lab run` measures it as "
        f"it is. What was measured: {verdict.sentence}"
    )
    return Verdict(VerdictKind.UNDECIDED, sentence, verdict.reasons)


def phase_verdict(lab: Lab, phase: Phase) -> Verdict | None:
    """Against the parent; None for one that was run alone (recorded) or is a baseline."""
    if phase.state == "on hold":
        return declared(VerdictKind.ON_HOLD, phase.reason)
    if phase.parent and gather.sessions_of(lab, phase.parent, phase.name):
        try:
            return judged(lab, phase.parent, phase.name).verdict
        except MissingFile:
            pass
    failed = _all_failed(lab, phase.name)
    if failed:
        return failed
    if runs_of(lab, phase.name) or imported(lab, phase.name) or not phase.parent:
        return None
    return declared(VerdictKind.PLANNED, phase.reason or "nothing has been run yet")


def _all_failed(lab: Lab, phase: str) -> Verdict | None:
    """A phase that was run and never finished is no plan any more."""
    if runs_of(lab, phase):
        return None
    messages: list[str] = []
    for session in in_order(lab):
        labels = [arm.label for arm in load(lab, session).arms if arm.phase == phase]
        messages += [m for arm in mishaps.mishaps(lab, session, labels).values() for m in arm.failed]
    if not messages:
        return None
    runs = "its only run" if len(messages) == 1 else f"all of its {len(messages)} runs"
    sentence = f"Questionable: {runs} failed; the last one: {messages[-1].rstrip('.')}."
    return Verdict(VerdictKind.QUESTIONABLE, sentence)


def state_of(lab: Lab, phase: Phase) -> str:
    """What a person declared, until runs say more."""
    if phase.parent and gather.sessions_of(lab, phase.parent, phase.name) and runs_of(lab, phase.name):
        return "measured"
    if phase.state != "on hold" and (runs_of(lab, phase.name) or imported(lab, phase.name)):
        return "recorded"
    return "failed" if phase.state == "planned" and _all_failed(lab, phase.name) else phase.state


def imported(lab: Lab, phase: str) -> dict[str, Any]:
    """What a hand-kept log said about it; {} if none was imported."""
    record = read_json(lab.root / "imported" / f"{phase}.json")
    return record if isinstance(record, dict) and record.get("figures") else {}


def runs_of(lab: Lab, phase: str) -> int:
    return Index(lab).rows("SELECT count(*) FROM runs WHERE phase = ? AND counted = 1", (phase,))[0][0]
