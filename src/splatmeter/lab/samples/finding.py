"""An objection to a run, a comparison or a written log, with its arithmetic in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(str, Enum):
    NOTE = "note"
    """Worth knowing; decides nothing."""
    DOUBT = "doubt"
    """Makes a verdict questionable."""
    WRONG = "wrong"
    """Contradicts itself or cannot be true; makes a verdict questionable."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One objection with its arithmetic in a sentence that stands alone."""

    kind: str
    sentence: str
    severity: Severity = Severity.DOUBT
    where: str = ""
    """Which run, arm, phase or line it is about."""

    @property
    def questions_the_verdict(self) -> bool:
        return self.severity is not Severity.NOTE
