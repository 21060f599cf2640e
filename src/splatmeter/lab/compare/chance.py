"""Many phases: how many of their *faster* chance alone explains.

A rule that errs in 2.5 % of comparisons errs in one of forty: twenty phases that change nothing give a false
*faster* in 40 % of labs. Nothing is corrected here; it is said, and *verified* is the remedy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from splatmeter.lab.samples.verdict_kinds import GAINS, VerdictKind

FALSE_FASTER = 0.025
"""One side of the 95 % interval: how often a phase that changes nothing is called faster."""
MEASURED = frozenset(VerdictKind) - {VerdictKind.PLANNED, VerdictKind.ON_HOLD}


@dataclass(frozen=True, slots=True)
class Claims:
    """The phases of a lab that were measured, and what was claimed of them."""

    phases: int
    tested: int
    """Sessions that compared one of them with its parent: each had its chance."""
    faster: int
    """Called faster once."""
    verified: int
    """Called faster twice, by independent sessions."""
    word: str = "faster"
    """'a gain' where some phases aimed at something else."""

    @property
    def expected_false(self) -> float:
        """How many false *faster* chance gives if no phase changes anything: at most this many otherwise."""
        return FALSE_FASTER * self.tested

    @property
    def expected_false_verified(self) -> float:
        """A second, independent session errs as seldom as the first."""
        return FALSE_FASTER**2 * self.tested

    @property
    def chance_of_any(self) -> float:
        """Share of such labs in which at least one phase that changes nothing is called faster."""
        return -math.expm1(self.tested * math.log1p(-FALSE_FASTER))

    @property
    def sentence(self) -> str:
        """For log, report and terminal; empty where nothing was measured."""
        if not self.tested:
            return ""
        phases = f"{self.phases} phase{'s were' if self.phases != 1 else ' was'} measured"
        if self.tested > self.phases:
            phases += f" in {self.tested} sessions"
        by_chance = (
            f"chance alone explains up to {_count(self.expected_false)} false '{self.word}' among as many "
            f"that change nothing, at least one in {_share(self.chance_of_any)} of such labs"
        )
        claimed = self.faster + self.verified
        if not claimed:
            return f"{phases} and none is called {self.word}; {by_chance}."
        told = f"{phases}, {claimed} called {self.word}, {self.verified} of them verified by a second session"
        remedy = (
            f"; of those verified, {_count(self.expected_false_verified)}"
            if self.verified
            else "; repeating a session verifies it"
        )
        return f"{told}; {by_chance}{remedy}."


def claims(verdicts: Iterable[VerdictKind], sessions: int = 0) -> Claims:
    """`verdicts` has one for each phase against its parent; planned and held ones were not tested.

    Questionable and undecided ones count as tested: they had their chance. `sessions` counts all that
    compared a phase with its parent, where some were measured more than once.
    """
    kinds: Sequence[VerdictKind] = [kind for kind in verdicts if kind in MEASURED]
    tested = max(len(kinds), sessions) if kinds else 0
    once = [kind for kind in kinds if kind in GAINS]
    word = "faster" if all(kind is VerdictKind.FASTER for kind in once) else "a gain"
    return Claims(len(kinds), tested, len(once), kinds.count(VerdictKind.VERIFIED), word)


def _count(number: float) -> str:
    return f"{number:.2g}" if number < 10 else f"{number:.0f}"


def _share(fraction: float) -> str:
    return f"{100 * fraction:.2g} %"
