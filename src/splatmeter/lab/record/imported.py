"""A hand-kept log becomes phases: titles, parents, notes and code changes as they were; figures as
recorded only.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any

from splatmeter.lab.handlog.values import HandLog, HandPhase
from splatmeter.lab.json_files import read_json, write_json
from splatmeter.lab.plan.phases import BASELINE, Phase
from splatmeter.lab.record.lab import Lab


@dataclass(frozen=True, slots=True)
class Imported:
    added: tuple[str, ...]
    kept: tuple[str, ...]
    """Phases that were there already and were left alone."""


def import_log(lab: Lab, log: HandLog, source: str, now: str) -> Imported:
    """The parent of a phase is the one its changes are counted from, else the phase before it."""
    names = {phase.name: slug(phase) for phase in log.phases}
    added: list[str] = []
    kept: list[str] = []
    present = set(lab.phases.names())
    before: HandPhase | None = None
    for number, hand in enumerate(log.phases):
        name = names[hand.name]
        if name in present:
            kept.append(name)
        else:
            above = log.phase(_reference(hand)) or before
            parent = names[above.name] if above and names[above.name] != name else ""
            made = _phase(hand, name, parent, _changes(log, hand, above))
            lab.phases.add(dataclasses.replace(made, created=f"{now} {number:04d}"))
            added.append(name)
        _keep_figures(lab, hand, name, source)
        if before is None or "speed" in hand.figures:
            before = hand
    return Imported(tuple(added), tuple(kept))


def slug(phase: HandPhase) -> str:
    """'Phase 2d' -> 'phase-2d'; the baseline keeps the name that the lab gives it."""
    if phase.is_baseline:
        return BASELINE
    return re.sub(r"[^a-z0-9._+]+", "-", phase.name.lower()).strip("-._+")[:80] or "phase"


def _reference(hand: HandPhase) -> str:
    speed = hand.figures.get("speed")
    return next((change.reference for change in speed.changes if change.reference), "") if speed else ""


def _changes(log: HandLog, hand: HandPhase, parent: HandPhase | None) -> tuple[str, ...]:
    """What the log itself says is different from the parent: declared, so that nothing is compared
    unawares.
    """
    if parent is None:
        return ()
    usual = log.configuration.resolution
    changes = ["split"] if bool(hand.held_out) != bool(parent.held_out) else []
    if (hand.resolution or usual) != (parent.resolution or usual):
        changes.append("resolution")
    if hand.last_step is not None and hand.last_step != log.configuration.last_step:
        changes.append("iterations")
    return tuple(changes)


def _phase(hand: HandPhase, name: str, parent: str, changes: tuple[str, ...]) -> Phase:
    waiting = hand.status in ("on hold", "planned")
    return Phase(
        name,
        title=hand.title.removeprefix(hand.name).strip(" -–—:"),
        parent=parent,
        note="\n\n".join(hand.notes),
        state=hand.status if waiting else "recorded",
        reason=f"{hand.status} in the imported log" if waiting else "",
        changes=changes,
        code_changes=hand.code_changes,
    )


def _keep_figures(lab: Lab, hand: HandPhase, name: str, source: str) -> None:
    folder = lab.root / "imported"
    folder.mkdir(parents=True, exist_ok=True)
    figures = {key: figure.quantity.value for key, figure in hand.figures.items()}
    record = {
        "source": source,
        "line": hand.line,
        "date": hand.date,
        "evaluated_step": hand.evaluated_step,
        "figures": figures,
        "configuration": list(hand.configuration),
    }
    write_json(folder / f"{name}.json", record)


def imported(lab: Lab, phase: str) -> dict[str, Any]:
    """What a hand-kept log said about it; {} if none was imported."""
    record = read_json(lab.root / "imported" / f"{phase}.json")
    return record if isinstance(record, dict) and record.get("figures") else {}
