"""Which program stood behind a name: by what its lineage declared to execute and by the hash of its code.

A name proves nothing. `tiles` with other options, or with other code, is another program and gets a number.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from splatmeter.lab.history.tracks import Variant
from splatmeter.lab.judgement.verdicts import EXECUTED
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.session.session_plan import SessionPlan, lineage_of


@dataclass(frozen=True, slots=True)
class _Met:
    definition: str
    code: str
    lineage: tuple[Phase, ...]


class Variants:
    """Numbers programs in the order in which sessions show them, and tells what made them differ."""

    def __init__(self) -> None:
        self._met: dict[str, list[_Met]] = {}
        self.remarks: list[str] = []

    def of(self, plan: SessionPlan, phase: str, codes: Iterable[str]) -> Variant:
        """`codes` are the hashes that its runs recorded."""
        found = sorted(set(codes))
        lineage = tuple(lineage_of(plan, phase))
        now = _Met(_definition(lineage), "+".join(found), lineage)
        met = self._met.setdefault(phase, [])
        names = [(item.definition, item.code) for item in met]
        if (now.definition, now.code) not in names:
            if met:
                self._tell(plan, phase, met[-1], now)
            met.append(now)
            names.append((now.definition, now.code))
        number = 1 + names.index((now.definition, now.code))
        return Variant(phase, number, now.definition, now.code, known=len(found) == 1 and bool(found[0]))

    def _tell(self, plan: SessionPlan, phase: str, before: _Met, now: _Met) -> None:
        number = len(self._met[phase]) + 1
        head = f"{phase} ({number}), first measured in {plan.session}, is not what {phase} was before"
        if before.definition != now.definition:
            self.remarks.append(f"{head}: {difference(before.lineage, now.lineage)}.")
        elif before.code and now.code:
            self.remarks.append(f"{head}: the same declaration, other code.")
        else:
            self.remarks.append(f"{head}, as far as anybody knows: one of the two did not record its code.")


def _definition(lineage: Iterable[Phase]) -> str:
    executed = [[getattr(phase, field) for field in EXECUTED] for phase in lineage]
    return hashlib.sha256(json.dumps(executed, sort_keys=True).encode()).hexdigest()[:12]


def difference(before: Iterable[Phase], now: Iterable[Phase]) -> str:
    """What the two lineages execute differently, in words."""
    old, new = _executed(before), _executed(now)
    fields = [field for field in new if old[field] != new[field]]
    told = [f"{field} {_text(old[field])} became {_text(new[field])}" for field in fields]
    return "; ".join(told) or "its ancestors were declared otherwise"


def _executed(lineage: Iterable[Phase]) -> dict[str, str]:
    """All of a lineage in one text a field, as it takes effect."""
    phases = list(lineage)
    return {field: " ".join(filter(None, (_words(getattr(p, field)) for p in phases))) for field in EXECUTED}


def _words(item: object) -> str:
    if isinstance(item, dict):
        return " ".join(f"{name}={value}" for name, value in item.items())
    return " ".join(item) if isinstance(item, tuple) else str(item)


def _text(words: str) -> str:
    return f"`{words[:120]}`" if words else "nothing"
