"""Verdicts on phases: which sessions speak about them, what they say, and whether it was said twice."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from splatmeter.errors import MissingFile, SplatmeterError
from splatmeter.lab.compare.comparison import Comparison
from splatmeter.lab.compare.verdict import declared, judge, verify
from splatmeter.lab.judgement import gathering, mishaps, strata
from splatmeter.lab.judgement.comparisons import comparison_over
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.record.imported import imported
from splatmeter.lab.record.index import Index, synced_once
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.samples.aim import Aim, aim_of
from splatmeter.lab.samples.verdict_kinds import Verdict, VerdictKind
from splatmeter.lab.session.session_plan import (
    SessionPlan,
    in_order,
    lineage_of,
    load,
)


@dataclass(frozen=True, slots=True)
class Judged:
    """A comparison in one session, and its verdict."""

    comparison: Comparison
    verdict: Verdict
    session: str
    sessions: tuple[str, ...] = ()
    """That one, and those that repeat it on other machines."""


class Judgements:
    """What the evidence of a lab says at one moment. Every comparison is gathered once, whoever asks for it:
    a command makes one of these and hands it to whatever it tells.
    """

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._comparisons: dict[tuple[str, str, tuple[str, ...], Aim | None], Comparison] = {}
        self._judged: dict[tuple[str, str, str], Judged] = {}

    def comparison(
        self, reference: str, candidate: str, sessions: Sequence[str], aim: Aim | None = None
    ) -> Comparison:
        """Over these sessions, the newest first; judged by the aim it was measured for, or by this one."""
        key = (reference, candidate, tuple(sessions), aim)
        if key not in self._comparisons:
            self._comparisons[key] = comparison_over(self.lab, *key)
        return self._comparisons[key]

    def judged(self, reference: str, candidate: str, session: str = "") -> Judged:
        """By the newest session that has both arms, or the one named; a gain that was shown before makes it
        *verified*.
        """
        key = (reference, candidate, session)
        if key not in self._judged:
            with synced_once():
                self._judged[key] = self._judge(*key)
        return self._judged[key]

    def _judge(self, reference: str, candidate: str, session: str) -> Judged:
        lab = self.lab
        sessions = [session] if session else gathering.sessions_of(lab, reference, candidate)
        rounds = strata.rounds(lab, sessions, (reference, candidate))
        if not rounds:
            raise MissingFile(
                f"{candidate} has not been measured against {reference};"
                f" `splatmeter lab ab {reference} {candidate}` does it."
            )
        name, newest = rounds[0][0], self.comparison(reference, candidate, rounds[0])
        before = [self.comparison(reference, candidate, names) for names in rounds[1:2]]
        verdict = verify(before[0], newest) if before else judge(newest)
        verdict = _with_its_aim(lab, load(lab, name), candidate, verdict)
        changed = "" if session else _changed_since(lab, load(lab, name), (reference, candidate))
        verdict = _about_the_past(verdict, changed) if changed else verdict
        return Judged(newest, verdict, name, tuple(rounds[0]))

    def against_parent_and_baseline(self, phase: Phase) -> list[Judged]:
        """What has been measured of it: against its parent, then against the baseline if that is another."""
        found: list[Judged] = []
        for reference in self.lab.phases.compared_with(phase):
            with contextlib.suppress(MissingFile):
                found.append(self.judged(reference, phase.name))
        return found

    def of_phase(self, phase: Phase) -> Verdict | None:
        """Against the parent; None for one that was run alone (recorded) or is a baseline."""
        lab = self.lab
        if phase.state == "on hold":
            return declared(VerdictKind.ON_HOLD, phase.reason)
        if phase.parent and gathering.sessions_of(lab, phase.parent, phase.name):
            with contextlib.suppress(MissingFile):
                return self.judged(phase.parent, phase.name).verdict
        failed = _all_failed(lab, phase.name)
        if failed:
            return failed
        if counted_runs(lab, phase.name) or imported(lab, phase.name) or not phase.parent:
            return None
        return declared(VerdictKind.PLANNED, phase.reason or "nothing has been run yet")


def judged(lab: Lab, reference: str, candidate: str, session: str = "") -> Judged:
    """For whoever asks only once."""
    return Judgements(lab).judged(reference, candidate, session)


def phase_verdict(lab: Lab, phase: Phase) -> Verdict | None:
    """For whoever asks only once."""
    return Judgements(lab).of_phase(phase)


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


def _all_failed(lab: Lab, phase: str) -> Verdict | None:
    """A phase that was run and never finished is no plan any more."""
    if counted_runs(lab, phase):
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
    if (
        phase.parent
        and gathering.sessions_of(lab, phase.parent, phase.name)
        and counted_runs(lab, phase.name)
    ):
        return "measured"
    if phase.state != "on hold" and (counted_runs(lab, phase.name) or imported(lab, phase.name)):
        return "recorded"
    return "failed" if phase.state == "planned" and _all_failed(lab, phase.name) else phase.state


def counted_runs(lab: Lab, phase: str) -> int:
    return Index(lab).rows("SELECT count(*) FROM runs WHERE phase = ? AND counted = 1", (phase,))[0][0]
