"""Looking after every block without fooling oneself: an interval that is valid at all times at once.

A 5 % t interval looked at from the fourth block on has cried wolf 21 % of the time by block 20. This one
(Wang & Ramdas, mixture parameter c² = 1) stays below 5 % over all looks together, at the price of width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from splatmeter.lab.compare.ratio import (
    FEWEST_FOR_TRIMMED,
    NO_BLOCK,
    Estimate,
    SpeedEvidence,
    trimmed,
)
from splatmeter.lab.samples.averages import deviation_of, mean

MIXTURE = 1.0
"""c²: smaller favours late decisions, larger early ones; fixed before any run."""
FEWEST_TO_DECIDE = 5


def half_width(squares: float, blocks: int, alpha: float) -> float:
    """Half the width of the interval, by the sum of squared deviations; infinite while nothing is known."""
    if blocks < FEWEST_TO_DECIDE:
        return math.inf
    growth = ((blocks + MIXTURE) / (alpha * alpha * MIXTURE)) ** (1.0 / blocks)
    bracket = 1.0 - growth * MIXTURE / (blocks + MIXTURE)
    if bracket <= 0.0:
        return math.inf
    return math.sqrt(squares * (growth - 1.0) / (blocks * bracket))


def anytime(differences: Sequence[float]) -> Estimate:
    n = len(differences)
    deviation = deviation_of(differences)
    squares = deviation * deviation * (n - 1) if n > 1 else math.inf
    return Estimate(
        "anytime-valid interval",
        n,
        mean(differences),
        deviation,
        half_width(squares, n, 0.05),
        half_width(squares, n, 0.10),
    )


def evidence_so_far(differences: Sequence[float]) -> SpeedEvidence:
    """What may be looked at after every block (`--until-decided`)."""
    if not differences:
        return NO_BLOCK
    second = trimmed(differences) if len(differences) >= FEWEST_FOR_TRIMMED else None
    return SpeedEvidence(anytime(differences), second)
