"""Claims on too little evidence: single runs, metrics that agree too well, a baseline that is none."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from splatmeter.lab.handlog.quantities import change_percent
from splatmeter.lab.handlog.values import HandFigure, HandLog, HandPhase
from splatmeter.lab.samples.finding import Finding, Severity

BLOCK_DEVIATION = 0.02
"""s_d of a good machine by the procedure; a busy one has shown 3-14 %."""
SINGLE_PAIR = 100 * 1.96 * BLOCK_DEVIATION
"""Percent by which one pair of runs scatters (95 %) without any difference between the arms."""
FEWEST_DIGITS = 4
CLAIMED = ("success", "verified", "faster")


def too_small_for_single_runs(log: HandLog) -> list[Finding]:
    """A difference of speed that one run against another cannot show."""
    findings: list[Finding] = []
    if log.configuration.repeated:
        return []
    for position, phase in enumerate(log.phases):
        speed = phase.figures.get("speed")
        if speed is None or phase.repeated or speed.interval or not speed.changes:
            continue
        named = next((c.reference for c in speed.changes if c.reference), "")
        other = log.phase(named) or next(
            (p for p in log.phases[:position][::-1] if "speed" in p.figures), None
        )
        before = other.quantity("speed") if other else None
        if other is None or before is None:
            continue
        percent, _, _ = change_percent(before, speed.quantity)
        if abs(percent) < SINGLE_PAIR:
            sentence = (
                f"{phase.name}: {before.text} → {speed.quantity.text} is {percent:+.2f} % from one run "
                f"against one run of {other.name}; even at a spread of {100 * BLOCK_DEVIATION:.0f} % a "
                "block, a single pair of equal programs differs by up to ±1.96 × "
                f"{100 * BLOCK_DEVIATION:.0f} % = ±{SINGLE_PAIR:.1f} %."
            )
            # Only who claims a success on it is contradicted; who writes it down is told.
            claimed = phase.status in CLAIMED or "✅" in phase.marks
            severity = Severity.DOUBT if claimed else Severity.NOTE
            findings.append(Finding("too small for single runs", sentence, severity, f"line {speed.line}"))
    return findings


def identical_metrics(log: HandLog) -> list[Finding]:
    """Test metrics equal in every digit written, between runs whose losses differ."""
    findings: list[Finding] = []
    for a, b in combinations(log.phases, 2):
        first, second = a.metrics("test"), b.metrics("test")
        shared = sorted(first.keys() & second.keys())
        same = [name for name in shared if _written(first[name]) == _written(second[name])]
        if len(shared) < 2 or same != shared or a.evaluated_step != b.evaluated_step:
            continue
        before, after = a.quantity("loss"), b.quantity("loss")
        if before is None or after is None or before.value == after.value:
            continue
        if max(_digits(first[name]) for name in shared) < FEWEST_DIGITS:
            continue
        longest = max(shared, key=lambda name: _decimals(first[name]))
        step = f" at iteration {a.evaluated_step}" if a.evaluated_step else ""
        sentence = (
            f"{a.name} and {b.name} have the same {', '.join(n.upper() for n in shared)} on the test "
            f"set{step} to the last digit ({longest.upper()} {_written(first[longest])}, "
            f"{_decimals(first[longest])} decimals), while their losses differ ({before.text}, "
            f"{after.text}): either one checkpoint was evaluated twice, or the runs were identical until "
            "then and the second adds no evidence."
        )
        findings.append(Finding("identical metrics", sentence, Severity.DOUBT, f"lines {a.line}, {b.line}"))
    return findings


def baseline_from_a_candidate(log: HandLog) -> list[Finding]:
    """The quality that all must keep was measured on one of those who must keep it."""
    wanted = log.quality_baseline
    if len(wanted) < 2:
        return []
    baseline = log.baseline
    if baseline is None or baseline.metrics("test"):
        return []
    source = next((phase for phase in log.phases if _rounds_to(phase, wanted)), None)
    if source is None or source is baseline:
        return []
    pairs = ", ".join(
        f"{name.upper()} {wanted[name].quantity.text} from {_written(figure)}"
        for name, figure in source.metrics("test").items()
        if name in wanted
    )
    sentence = (
        f"The quality baseline is that of {source.name} ({pairs}), a candidate; {baseline.name} has no test "
        f"metrics, so a loss that came before {source.name} cannot be seen, and {source.name} is its own "
        "measure."
    )
    line = min(figure.line for figure in wanted.values())
    return [Finding("baseline from a candidate", sentence, Severity.DOUBT, f"line {line}")]


def _rounds_to(phase: HandPhase, wanted: Mapping[str, HandFigure]) -> bool:
    figures = phase.metrics("test")
    shared = [name for name in figures if name in wanted]
    agree = all(figures[name].quantity.agrees(wanted[name].quantity) for name in shared)
    return len(shared) >= 2 and agree


def _written(figure: HandFigure) -> str:
    return figure.quantity.text.split(" ")[0]


def _digits(figure: HandFigure) -> int:
    return len(_written(figure).replace(".", "").lstrip("0"))


def _decimals(figure: HandFigure) -> int:
    return len(_written(figure).partition(".")[2])
