"""The closed set of verdicts and what each means to a gate."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class VerdictKind(str, Enum):
    """Its order here is not the order of the rules (see verdict.py and aim_verdict.py)."""

    FASTER = "faster"
    NO_SPEED_UP = "no speed-up"
    SLOWER = "slower"
    QUALITY_LOST = "quality lost"
    UNDECIDED = "undecided"
    QUESTIONABLE = "questionable"
    VERIFIED = "verified"
    PLANNED = "planned"
    ON_HOLD = "on hold"
    LEANER = "leaner"
    """Less memory at equal speed and quality."""
    FASTER_AND_LEANER = "faster and leaner"
    MORE_MEMORY = "more memory"
    SOONER = "sooner"
    """Less training time to the quality that the protocol states."""
    LATER = "later"
    BETTER = "better"
    """Higher quality after the time that the protocol states."""
    WORSE = "worse"
    NO_GAIN = "no gain"
    """In what the phase aimed at, where that is not speed alone."""

    @property
    def exit_code(self) -> int:
        """What `lab gate` returns: 0 go, 1 stop, 2 nobody knows yet, 3 somebody must look."""
        return _EXIT_CODES[self]


GAINS = (
    VerdictKind.FASTER,
    VerdictKind.LEANER,
    VerdictKind.FASTER_AND_LEANER,
    VerdictKind.SOONER,
    VerdictKind.BETTER,
)
"""What a phase may be called once, and *verified* for when it is called so twice."""

_EXIT_CODES = {
    **dict.fromkeys((*GAINS, VerdictKind.NO_SPEED_UP, VerdictKind.NO_GAIN, VerdictKind.VERIFIED), 0),
    VerdictKind.SLOWER: 1,
    VerdictKind.QUALITY_LOST: 1,
    VerdictKind.MORE_MEMORY: 1,
    VerdictKind.LATER: 1,
    VerdictKind.WORSE: 1,
    VerdictKind.UNDECIDED: 2,
    VerdictKind.PLANNED: 2,
    VerdictKind.ON_HOLD: 2,
    VerdictKind.QUESTIONABLE: 3,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    kind: VerdictKind
    sentence: str
    """In plain words, with the numbers that decided."""
    reasons: tuple[str, ...] = ()
    """Findings, quality bounds and caveats, one sentence each."""
    below_tolerated_difference: bool = False
    more_blocks: int | None = None
    """About how many more are needed when undecided; None if more would not help or none are needed."""
    more_seeds: int | None = None
    """About how many more pairs of runs with seeds of their own settle quality; they need no timing."""
    gain: VerdictKind | None = None
    """Which gain came twice, where the verdict is *verified*."""

    @property
    def exit_code(self) -> int:
        return self.kind.exit_code
