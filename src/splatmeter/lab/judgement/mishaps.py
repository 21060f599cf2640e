"""Runs that crashed, hung, were killed or were tampered with: evidence like any other, and shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from splatmeter.lab.json_files import read_json
from splatmeter.lab.record.index import Index
from splatmeter.lab.record.lab import Lab, begun_sessions
from splatmeter.lab.record.result import status_of
from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.session.session_plan import SessionPlan, place_of, protocol_of

_RUN = re.compile(r"\d+-(?P<label>.+?)(?:\.failed\d+)?")
FEWEST_INTERRUPTED, MOST_INTERRUPTED = 3, 0.25
"""A machine is switched off now and then; a run that is interrupted again and again is being chosen."""


@dataclass(slots=True)
class Mishaps:
    """How the runs of one arm of one session ended, priming included."""

    finished: int = 0
    failed: list[str] = field(default_factory=list)
    """What each of them said."""
    interrupted: int = 0
    """Ended together with the lab: nobody knows how they would have gone on."""

    @property
    def ended(self) -> int:
        return self.finished + len(self.failed)

    @property
    def share(self) -> float:
        return len(self.failed) / self.ended if self.ended else 0.0


def mishaps(lab: Lab, session: str, labels: Iterable[str]) -> dict[str, Mishaps]:
    """Read from the folders, so that what the index does not count is seen too."""
    found = {label: Mishaps() for label in labels}
    folder = lab.sessions / session
    places = ("blocks/*/*", "priming/*", "blocks/*/priming/*")
    for path in sorted(path for place in places for path in folder.glob(place)):
        named = _RUN.fullmatch(path.name) if path.is_dir() else None
        if named is None or named["label"] not in found:
            continue
        _note(found[named["label"]], path)
    return found


def _note(arm: Mishaps, folder: Path) -> None:
    told = status_of(read_json(folder / "result.json"))
    if told is None:
        arm.interrupted += 1
    elif told[0] == "finished":
        arm.finished += 1
    else:
        arm.failed.append(told[1] or told[0] or "it says nothing")


def findings(lab: Lab, plan: SessionPlan, named: tuple[str, str]) -> list[Finding]:
    """What a verdict on these two arms must say about runs that are not among its figures."""
    arms = mishaps(lab, plan.session, named)
    most = protocol_of(plan).most_failures
    told = [finding for label, arm in arms.items() for finding in _failures(label, arm, most)]
    told += _interrupted(arms)
    return [*told, *_damaged(lab, plan, named), *_removed(lab, plan, named)]


def _removed(lab: Lab, plan: SessionPlan, named: tuple[str, str]) -> list[Finding]:
    """A measurement that somebody took away; what was measured after it stands without it."""
    phases = {arm.phase for arm in plan.arms if arm.label in named}
    findings: list[Finding] = []
    for name, (number, measured) in begun_sessions(lab).items():
        if not phases <= set(measured) or (lab.sessions / name / "session.json").exists():
            continue
        sentence = f"Session {name}, in which {' and '.join(sorted(phases))} were measured too, is gone"
        if number > place_of(lab, plan.session):
            sentence += ", and it was newer than this one: put it back, or measure again."
            findings.append(Finding("removed session", sentence, Severity.DOUBT, name))
        else:
            findings.append(Finding("removed session", f"{sentence}.", Severity.NOTE, name))
    return findings


def _failures(label: str, arm: Mishaps, most: float) -> list[Finding]:
    if not arm.failed:
        return []
    kinds = "; ".join(dict.fromkeys(message[:120].rstrip(".") for message in arm.failed[:3]))
    sentence = f"{len(arm.failed)} of {arm.ended} runs of {label} failed ({kinds})"
    if arm.share > most:
        limit = f"more than {100 * most:.3g} %: what is left are the runs that went well"
        return [Finding("failed runs", f"{sentence}, {limit}.", Severity.DOUBT, label)]
    return [Finding("failed runs", f"{sentence}.", Severity.NOTE, label)]


def _interrupted(arms: dict[str, Mishaps]) -> list[Finding]:
    """Stopping the lab whenever one arm looks bad is a way of choosing runs."""
    findings: list[Finding] = []
    for label, arm in arms.items():
        if not arm.interrupted:
            continue
        others = max((other.interrupted for name, other in arms.items() if name != label), default=0)
        total = arm.ended + arm.interrupted
        often = arm.interrupted >= FEWEST_INTERRUPTED and arm.interrupted > MOST_INTERRUPTED * total
        sentence = f"{arm.interrupted} of {total} runs of {label} were interrupted and run again"
        if often and arm.interrupted >= 2 * others:
            sentence += f", only {others} of the other arm: were they chosen?"
            findings.append(Finding("interrupted runs", sentence, Severity.DOUBT, label))
        else:
            findings.append(Finding("interrupted runs", f"{sentence}.", Severity.NOTE, label))
    return findings


def _damaged(lab: Lab, plan: SessionPlan, named: tuple[str, str]) -> list[Finding]:
    rows = Index(lab).rows(
        "SELECT run, arm, objection FROM runs WHERE session = ? AND objection != '' ORDER BY run",
        (plan.session,),
    )
    return [
        Finding(
            "damaged evidence", f"{row['run']} is left out: {row['objection']}", Severity.WRONG, row["run"]
        )
        for row in rows
        if not row["arm"] or row["arm"] in named
    ]
