"""Evidence that a history does not show, by name and with the reason: nothing disappears silently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from splatmeter.errors import SplatmeterError
from splatmeter.lab.record.index import Index
from splatmeter.lab.record.lab import Lab, begun_sessions
from splatmeter.lab.record.result import Identity, result_from_text
from splatmeter.lab.session.session_plan import (
    SessionPlan,
    lineage_of,
    load,
    protocol_of,
)

OVERHEAD = "overhead"
"""Sessions that measure the lab's own monitor."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    sessions: frozenset[str]
    sentences: tuple[str, ...]


def left_out(lab: Lab) -> LeftOut:
    found: dict[str, str] = {}
    plans: dict[str, SessionPlan] = {}
    for name in sorted(path.name for path in lab.sessions.glob("*") if path.is_dir()):
        plan = _plan(lab, name)
        if plan is None:
            found[name] = "is left out: its session.json is missing, damaged or of another version."
        else:
            plans[name] = plan
    found |= _not_judged(lab, plans) | _removed(lab)
    sentences: list[str] = []
    for row in Index(lab).rows("SELECT run, session, counted, objection, result FROM runs ORDER BY run"):
        session = row["run"].split("/")[0]
        if row["objection"]:
            sentences.append(f"{row['run']} is left out: {row['objection']}")
        elif row["counted"] and session not in found:
            foreign = _foreign(plans[session], result_from_text(row["result"]).identity)
            if foreign:
                found[session] = f"is left out: its run {row['run'].partition('/')[2]} {foreign}"
    told = [f"Session {name} {reason}" for name, reason in found.items()]
    return LeftOut(frozenset(found), (*told, *sentences))


def _plan(lab: Lab, session: str) -> SessionPlan | None:
    """None where what was promised cannot be read any more."""
    try:
        plan = load(lab, session)
        protocol_of(plan)
        for arm in plan.arms:
            lineage_of(plan, arm.phase)
    except (SplatmeterError, AttributeError, TypeError, KeyError, ValueError):
        return None
    return plan


def _not_judged(lab: Lab, plans: Mapping[str, SessionPlan]) -> dict[str, str]:
    """What is not about a trainer, and what has not ended: to judge that early would be peeking."""
    ended = {row["session"]: row["ended"] for row in Index(lab).rows("SELECT session, ended FROM sessions")}
    found: dict[str, str] = {}
    for name, plan in plans.items():
        if plan.kind == OVERHEAD:
            found[name] = "is left out: it measures the lab's own monitor."
        elif not ended.get(name):
            given_up = (lab.sessions / name / "ended.json").exists()
            why = "was given up" if given_up else "has not ended (`splatmeter lab resume`)"
            found[name] = f"is left out: it {why}."
    return found


def _removed(lab: Lab) -> dict[str, str]:
    return {
        name: f"({', '.join(dict.fromkeys(phases))}) is missing: it was begun here, and its folder is gone."
        for name, (_, phases) in begun_sessions(lab).items()
        if not (lab.sessions / name).exists()
    }


def _foreign(plan: SessionPlan, identity: Identity) -> str:
    """Why a run does not belong to the session that it lies in; empty if it does."""
    arms = {arm.label: arm.phase for arm in plan.arms}
    if identity.session != plan.session or arms.get(identity.arm) != identity.phase:
        return "names another session or arm than the one in whose folder it lies."
    return "" if identity.protocol == plan.fingerprint else "names another protocol than its session."
