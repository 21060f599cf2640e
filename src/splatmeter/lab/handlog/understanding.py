"""How much of a log was understood: one that was not read is not clean."""

from __future__ import annotations

from dataclasses import dataclass

from splatmeter.lab.handlog.mentions import Role
from splatmeter.lab.handlog.values import HandLog

LEAST_SHARE = 0.4
"""The share of figures that must be understood: 'nothing to object to' is not said of what was not read."""
FEWEST = 2
"""Results that a log must have before anything can contradict anything."""


@dataclass(frozen=True, slots=True)
class Understanding:
    read: int
    understood: int
    results: int
    """Figures that are results of runs: speeds, peaks, metrics, times, changes."""
    phases: int

    @property
    def enough(self) -> bool:
        return self.phases > 0 and self.results >= FEWEST and self.understood >= LEAST_SHARE * self.read

    @property
    def sentence(self) -> str:
        return f"{self.read} figures read, {self.understood} understood, in {self.phases} phases"

    @property
    def objection(self) -> str:
        """Why silence would mean nothing; empty if it would."""
        if self.enough:
            return ""
        if not self.read:
            return "There is no figure in this log, so nothing was audited."
        if not self.phases:
            return (
                f"Of {self.read} figures none belongs to a phase that was recognised, so finding nothing "
                f"means nothing."
            )
        return (
            f"This log was not understood ({self.understood} of {self.read} figures, {self.results} of them "
            f"results), so "
            "finding nothing means nothing; name figures and units, such as 'Speed: 11.4 it/s' or 'PSNR "
            "26.0 dB'."
        )


def understanding(log: HandLog) -> Understanding:
    mentions = [
        m for said in (*log.loose, *(s for phase in log.phases for s in phase.said)) for m in said.mentions
    ]
    known = [m for m in mentions if m.role is not Role.UNKNOWN]
    results = [m for m in known if m.role is not Role.SETTING and (m.key or m.role is Role.CHANGE)]
    return Understanding(len(mentions), len(known), len(results), len(log.phases))
