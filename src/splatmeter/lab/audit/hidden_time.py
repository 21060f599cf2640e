"""Time that passed and that no clock of the trainer counted: training that calls itself something else.

Compared in seconds, not in shares: a candidate that trains in half the time and evaluates as long as before
has a larger share off its clock, and nothing to hide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from splatmeter.lab.samples.averages import deviation_of, mean
from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.run_sample import Aspect, Clocks, RunSample
from splatmeter.lab.samples.student import quantile
from splatmeter.lab.trainers.adapter import WENT_BACK

MOST_HIDDEN = 0.05
"""A share of the reference's time, and of the candidate's own where there certainly is more."""
LEAST_COVERED = 0.05
LEAST_SECONDS = 0.1
"""Less is the time a process takes to start on a busy machine."""


def hidden_time(runs: Sequence[RunSample]) -> list[Finding]:
    """The first arm that appears is the reference."""
    arms: dict[str, list[tuple[RunSample, Clocks]]] = {}
    for run in runs:
        if run.clocks is not None:
            arms.setdefault(run.arm.name, []).append((run, run.clocks))
    reference, *others = list(arms.values()) or [[]]
    findings: list[Finding | None] = []
    for other in others:
        findings += [
            _grown(reference, other, "start_up_seconds", Aspect.START_UP),
            _grown(reference, other, "off_clock_seconds", Aspect.EVALUATION),
            _uncovered(reference, other),
        ]
    return [finding for finding in findings if finding is not None]


def went_back(run: RunSample) -> list[Finding]:
    """Steps that are counted twice or skipped make a speed of nothing."""
    told = [warning for warning in run.warnings if warning.startswith(WENT_BACK)]
    sentence = f"{run.name}: {told[0] if told else ''} Which steps its time belongs to is unknown."
    return [Finding("contradicting progress", sentence, Severity.DOUBT, run.arm.name)] if told else []


_WORDS = {
    Aspect.START_UP: "before its first timed step",
    Aspect.EVALUATION: "off its training clock",
}

Timed = Sequence[tuple[RunSample, Clocks]]


def _grown(a: Timed, b: Timed, what: str, aspect: Aspect) -> Finding | None:
    """More seconds of one kind than the reference spends on it."""

    def seconds(clocks: Clocks) -> float:
        return getattr(clocks, what)

    more = _paired(a, b, seconds)
    if not more:
        return None
    grown = mean(more)
    whole = mean([clocks.start_up_seconds + clocks.wall_seconds for _, clocks in a])
    own = mean([clocks.on_clock_seconds for _, clocks in b])
    if grown < LEAST_SECONDS or not (
        grown > MOST_HIDDEN * whole or (grown > MOST_HIDDEN * own and _certain(more))
    ):
        return None
    name, reference = b[0][0].arm.name, a[0][0].arm.name
    spent = mean([seconds(clocks) for _, clocks in b])
    sentence = (
        f"A run of {name} spends {spent:.3g} s {_WORDS[aspect]}, {grown:.3g} s more than one "
        f"of {reference}, whose whole run takes {whole:.3g} s; speed counts none of it"
    )
    if aspect in b[0][0].arm.declares:
        declared = f"{sentence} ({aspect.value}: declared)."
        return Finding(f"declared {aspect.value}", declared, Severity.NOTE, name)
    advice = f"is it training by another name? If it belongs there, declare it: --change {aspect.value}"
    return Finding("hidden time", f"{sentence}: {advice}.", Severity.DOUBT, name)


def _uncovered(a: Timed, b: Timed) -> Finding | None:
    """Steps that no clock saw, because the trainer said that it was doing something else."""
    covered = [mean([clocks.covered for _, clocks in arm]) for arm in (a, b)]
    if covered[1] >= covered[0] - LEAST_COVERED:
        return None
    name = b[0][0].arm.name
    sentence = (
        f"Only {100 * covered[1]:.0f} % of the steps of {name} were timed, {100 * covered[0]:.0f} % of those "
        f"of {a[0][0].arm.name}: its speed is that of the stretches it let be seen."
    )
    return Finding("untimed steps", sentence, Severity.DOUBT, name)


def _paired(a: Timed, b: Timed, seconds: Callable[[Clocks], float]) -> list[float]:
    """Differences within blocks."""
    first = {run.block: seconds(clocks) for run, clocks in a}
    return [seconds(clocks) - first[run.block] for run, clocks in b if run.block in first]


def _certain(more: Sequence[float]) -> bool:
    if len(more) < 2:
        return False
    reach = quantile(0.975, len(more) - 1) * deviation_of(more) / math.sqrt(len(more))
    return mean(more) - reach > 0
