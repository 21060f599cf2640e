"""Percentages, factors and differences that do not follow from the log's own numbers."""

from __future__ import annotations

from collections.abc import Sequence

from splatmeter.lab.handlog.claims import Claim, claimed_changes
from splatmeter.lab.handlog.quantities import Quantity, change_percent, gigabytes
from splatmeter.lab.handlog.values import HandLog, HandPhase
from splatmeter.lab.samples.finding import Finding, Severity


def wrong_changes(log: HandLog) -> list[Finding]:
    """'from 15.62 GB to 8.0 GB (51 %)', '8.0 GB (-7.62 GB from Phase 1)', '1.7x faster than 0.1'."""
    wrong: dict[tuple[str, str], tuple[list[int], Severity]] = {}
    for claim in claimed_changes(log):
        after = claim.after or _figure(claim.phase, claim.key)
        candidates = _before(log, claim)
        if after is None or not candidates or any(_follows(claim, b, after) for _, b in candidates):
            continue
        # A column of changes is usually counted from the baseline, a sentence from the phase before.
        base = [
            item for item in candidates if claim.in_table and log.baseline and item[0] == log.baseline.name
        ]
        name, before = (base or candidates)[0]
        sentence = (
            _pair_sentence(claim, before, after) if claim.before else _sentence(claim, name, before, after)
        )
        kind = "wrong percentage" if claim.before or claim.in_table else "wrong difference"
        wrong.setdefault((kind, sentence), ([], Severity.WRONG))[0].append(claim.line)
    return [
        Finding(kind, said, severity, lines_text(lines)) for (kind, said), (lines, severity) in wrong.items()
    ]


def _figure(phase: HandPhase | None, key: str) -> Quantity | None:
    figure = phase.figure(key) if phase else None
    return figure.quantity if figure else None


def _before(log: HandLog, claim: Claim) -> list[tuple[str, Quantity]]:
    """What it may be counted from; every one of them has to contradict before the claim is called wrong."""
    if claim.before is not None:
        return [("", claim.before)]
    phases: list[HandPhase] = [phase for name in claim.references if (phase := log.phase(name))]
    if not claim.references:
        if claim.phase is None:
            return []
        phases = candidates(log, claim.phase, claim.key, previous=claim.previous)
    found = [(phase.name, value) for phase in phases for value in phase.all_values(claim.key)[:1]]
    return [(name, value) for name, value in found if value.value]


def candidates(log: HandLog, phase: HandPhase, key: str, previous: bool = False) -> list[HandPhase]:
    """Phases that an unnamed comparison may mean: the one before, parents, the baseline, the best so far."""
    earlier = [other for other in log.before(phase) if other.figure(key)]
    parents = [other for name in phase.parents if (other := log.phase(name)) and other.figure(key)]
    if previous or not earlier:
        return [*earlier[-1:], *parents]
    best = max(earlier, key=lambda other: other.all_values(key)[0].value)
    return [*earlier[-1:], *parents, *([log.baseline] if log.baseline in earlier else earlier[:1]), best]  # type: ignore[list-item]


def _follows(claim: Claim, before: Quantity, after: Quantity) -> bool:
    return any(_matches(claim, low, high) for low, high in _readings(claim, before, after))


def _readings(claim: Claim, before: Quantity, after: Quantity) -> list[tuple[float, float]]:
    """The ranges that the figures allow for the claimed number, in each sense that the words may have."""
    if before.unit != after.unit:
        return [(float("-inf"), float("inf"))]
    unit = claim.quantity.unit
    if unit in ("%", "x"):
        _, low, high = change_percent(before, after)
        ranges = [(low, high)]
        if claim.key == "time" or after.unit == "s" or after.per_step or before.per_step:
            _, *turned = change_percent(after, before)
            ranges.append((turned[0], turned[1]))
        if unit == "x":
            more = [(1 + low / 100, 1 + high / 100) for low, high in ranges]
            return [*more, *((1 / b, 1 / a) for a, b in more if a > 0 and claim.direction <= 0)]
        return [(100 + low, 100 + high) for low, high in ranges] if claim.remaining else ranges
    if unit == "s/it":
        return [(1 / after.high - 1 / before.low, 1 / after.low - 1 / before.high)]
    return [(after.low - before.high, after.high - before.low)]


def _matches(claim: Claim, low: float, high: float) -> bool:
    claimed = claim.quantity
    slack = 1e-9 * max(1.0, abs(claimed.value))
    least, most = claim.interval if claim.interval else (claimed.low, claimed.high)
    if claim.remaining or claimed.unit == "x" or claimed.signed:
        return low <= most + slack and least - slack <= high
    if claim.direction and claim.key not in ("time",):
        least, most = (least, most) if claim.direction > 0 else (-most, -least)
        if low <= most + slack and least - slack <= high:
            return True
        return claimed.unit == "%" and claim.key == "speed" and _turned_fits(claim, low, high)
    lowest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    return lowest <= most + slack and least - slack <= max(abs(low), abs(high))


def _turned_fits(claim: Claim, low: float, high: float) -> bool:
    """Where figures are seconds a step, '-12 %' and '12 % faster' are both right."""
    per_step = claim.after is not None and claim.after.per_step
    return per_step and low <= -claim.direction * claim.quantity.value <= high


def _pair_sentence(claim: Claim, before: Quantity, after: Quantity) -> str:
    change = 100 * (after.value - before.value) / before.value if before.value else float("inf")
    sentence = (
        f"'{claim.quantity.text}' for {before.text} → {after.text} does not follow: ({plain_number(after)} − "
        f"{plain_number(before)}) / {plain_number(before)} = {change:+.1f} %, not {claim.quantity.text}"
    )
    share = 100 * after.value / before.value if before.value else 0.0
    if (
        claim.quantity.unit == "%"
        and not claim.remaining
        and abs(share - abs(claim.quantity.value)) <= claim.quantity.half + 0.5
    ):
        left, whole = plain_number(after), plain_number(before)
        sentence += f"; {left} is {share:.1f} % of {whole}: what remained, not what went"
    return sentence + "."


def _sentence(claim: Claim, name: str, before: Quantity, after: Quantity) -> str:
    percent, _, _ = change_percent(before, after)
    difference = after.value - before.value
    shown = f"{difference / 1e9:+.2f} GB" if after.unit == "B" else f"{difference:+.4g} {after.unit}".strip()
    whose = f"{claim.phase.name}: " if claim.phase else ""
    place = "The table's " if claim.in_table else ""
    subtraction = f"{plain_number(after)} − {plain_number(before)}"
    return (
        f"{place}{whose}'{claim.quantity.text}' beside {claim.key} {after.text} does not follow from "
        f"{before.text} of {name}: {subtraction} = {shown}, {percent:+.1f} %."
    )


def plain_number(quantity: Quantity) -> str:
    if quantity.unit == "B":
        return gigabytes(quantity.value).removesuffix(" GB")
    if quantity.per_step:
        return f"{quantity.value:.4g}"
    return quantity.text.strip("~≈ ").split(" ")[0]


def lines_text(lines: Sequence[int]) -> str:
    unique = sorted(set(lines))
    return ("line " if len(unique) == 1 else "lines ") + ", ".join(map(str, unique))
