"""Percentages and differences that do not follow from the log's own numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from splatmeter.lab.compare.samples import Finding, Severity
from splatmeter.lab.handlog.values import Change, Figure, HandLog, HandPhase, TableRow
from splatmeter.lab.handlog.quantities import Quantity, change_percent, first_quantity, gigabytes, quantities

_ARROW = re.compile(r"^\s*(?:to|→|->|=>|⟶|down to|up to)\s*$", re.IGNORECASE)
_THEN_PERCENT = re.compile(r"^[\s(,:;=!*]*(?:a |an |by |or |i\.e\.,? |which is |that is )*$", re.IGNORECASE)
_PERCENT_THEN = re.compile(r"^\s*(?:[a-z\-]+\s+){0,3}[\s(,:]*(?:from\s*)?$", re.IGNORECASE)
_OF_BEFORE = re.compile(r"^\s*of\b", re.IGNORECASE)


def percentages_in_prose(log: HandLog) -> list[Finding]:
    """'dropped from 15.62 GB to 8.0 GB (51% reduction)', 'reduced 51% (15.62 GB → 8.0 GB)'."""
    wrong: dict[str, list[int]] = {}
    for line, text in log.lines:
        for before, after, percent, remaining in _claims(text):
            if before.value and (sentence := _contradiction(before, after, percent, remaining)):
                wrong.setdefault(sentence, []).append(line)
    return [
        Finding("wrong percentage", sentence, Severity.WRONG, _lines_text(lines))
        for sentence, lines in wrong.items()
    ]


def _claims(text: str) -> Iterator[tuple[Quantity, Quantity, Quantity, bool]]:
    found = quantities(text)
    for i in range(len(found) - 1):
        before, after = found[i], found[i + 1]
        if not _ARROW.match(text[before.end : after.start]) or "%" in (before.unit, after.unit):
            continue
        if before.unit not in ("", after.unit):
            continue
        before = _with_unit_of(before, after)
        following = found[i + 2] if i + 2 < len(found) else None
        preceding = found[i - 1] if i else None
        if following and following.unit == "%" and _THEN_PERCENT.match(text[after.end : following.start]):
            yield before, after, following, bool(_OF_BEFORE.match(text[following.end :]))
        elif (
            preceding and preceding.unit == "%" and _PERCENT_THEN.match(text[preceding.end : found[i].start])
        ):
            yield before, after, preceding, False


def _with_unit_of(before: Quantity, after: Quantity) -> Quantity:
    """'from 15.62 to 8.0 GB': the unit stands once."""
    if before.unit or not after.unit:
        return before
    written = first_quantity(f"{before.text} {after.text.lstrip('~≈+-−0123456789., ')}")
    return written if written and written.unit == after.unit else before


def _contradiction(before: Quantity, after: Quantity, percent: Quantity, remaining: bool) -> str:
    change, low, high = change_percent(before, after)
    if remaining:
        change, low, high = 100 + change, 100 + low, 100 + high
    elif not percent.signed:
        change, low, high = _magnitudes(change, low, high)
    if low <= percent.high + 1e-9 and percent.low - 1e-9 <= high:
        return ""
    sentence = (
        f"'{percent.text}' for {before.text} → {after.text} does not follow: ({_number(after)} − "
        f"{_number(before)}) / {_number(before)} = {100 * (after.value - before.value) / before.value:+.1f} "
        f"%, not {percent.text}"
    )
    share = 100 * after.value / before.value
    if not remaining and abs(share - abs(percent.value)) <= percent.half + 1e-9:
        sentence += f"; {_number(after)} is {share:.1f} % of {_number(before)}: what remained, not what went"
    return sentence + "."


def _magnitudes(change: float, low: float, high: float) -> tuple[float, float, float]:
    least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    return abs(change), least, max(abs(low), abs(high))


def changes_beside_figures(log: HandLog) -> list[Finding]:
    """'8.0 GB (-7.62 GB from Phase 1)', '11.36 it/s (+2.2%)', '(same as Phase 1)'."""
    findings: list[Finding] = []
    for position, phase in enumerate(log.phases):
        for key, figure in phase.figures.items():
            for change in figure.changes:
                references = _references(log, position, key, change)
                if references and not any(_follows(r, figure, change) for _, r in references):
                    findings.append(_wrong_change(phase, key, figure, change, references[0]))
            findings += _wrong_equality(log, phase, key, figure)
    return findings


def _references(log: HandLog, position: int, key: str, change: Change) -> list[tuple[str, Figure]]:
    """The named phase; without a name the phase before and the baseline, either of which may be meant."""
    if change.reference:
        named = log.phase(change.reference)
        return [(named.name, named.figures[key])] if named and key in named.figures else []
    earlier = [phase for phase in log.phases[:position] if key in phase.figures]
    meant = [*earlier[-1:], *earlier[:1]]
    return [(phase.name, phase.figures[key]) for phase in meant]


def _follows(reference: Figure, figure: Figure, change: Change) -> bool:
    before, after, claim = reference.quantity, figure.quantity, change.quantity
    if claim.unit == "%" and after.unit != "%":
        _, low, high = change_percent(before, after)
    else:
        low, high = after.low - before.high, after.high - before.low
    slack = 1e-9 * max(1.0, abs(claim.value))
    return low <= claim.high + slack and claim.low - slack <= high


def _wrong_change(
    phase: HandPhase, key: str, figure: Figure, change: Change, reference: tuple[str, Figure]
) -> Finding:
    before, after = reference[1].quantity, figure.quantity
    percent, _, _ = change_percent(before, after)
    difference = after.value - before.value
    shown = f"{difference / 1e9:+.2f} GB" if after.unit == "B" else f"{difference:+.4g} {after.unit}".strip()
    sentence = (
        f"{phase.name}: '{change.quantity.text}' beside {key} {after.text} does not follow from "
        f"{before.text} of {reference[0]}: {_number(after)} − {_number(before)} = {shown}, {percent:+.1f} %."
    )
    return Finding("wrong difference", sentence, Severity.WRONG, _lines_text([figure.line]))


def _wrong_equality(log: HandLog, phase: HandPhase, key: str, figure: Figure) -> list[Finding]:
    other = log.phase(figure.same_as) if figure.same_as else None
    if other is None or key not in other.figures or other.figures[key].quantity.agrees(figure.quantity):
        return []
    before = other.figures[key].quantity
    percent, _, _ = change_percent(before, figure.quantity)
    sentence = (
        f"{phase.name}: {key} {figure.quantity.text} is called the same as {other.name}'s, which is "
        f"{before.text} ({percent:+.1f} %)."
    )
    return [Finding("not the same", sentence, Severity.WRONG, _lines_text([figure.line]))]


def table_against_sections(log: HandLog) -> list[Finding]:
    """The comparison table: its changes against its own speeds, its speeds against the sections."""
    findings: list[Finding] = []
    speeds = [(row, quantity) for row in log.table if (quantity := _speed_cell(row)) is not None]
    for position, (row, speed) in enumerate(speeds):
        phase = log.phase(row.phase)
        written = phase.quantity("speed") if phase else None
        if written is not None and not written.agrees(_in_unit_of(speed, written)):
            sentence = f"The table gives {row.name} {speed.text}, its section {written.text}."
            findings.append(
                Finding("table contradicts section", sentence, Severity.WRONG, _lines_text([row.line]))
            )
        claim = first_quantity(_cell(row, "change"), "%")
        if claim is None or not position:
            continue
        candidates = [speeds[0], speeds[position - 1]]
        if not any(_percent_follows(before, speed, claim) for _, before in candidates):
            findings.append(_wrong_cell(row, speed, claim, speeds[0]))
    return findings


def _percent_follows(before: Quantity, after: Quantity, claim: Quantity) -> bool:
    _, low, high = change_percent(before, after)
    return low <= claim.high + 1e-9 and claim.low - 1e-9 <= high


def _wrong_cell(row: TableRow, speed: Quantity, claim: Quantity, first: tuple[TableRow, Quantity]) -> Finding:
    percent, _, _ = change_percent(first[1], speed)
    sentence = (
        f"The table's '{claim.text}' for {row.name} does not follow: {_number(speed)} against "
        f"{_number(first[1])} of {first[0].name} is {percent:+.1f} %."
    )
    return Finding("wrong percentage", sentence, Severity.WRONG, _lines_text([row.line]))


def _cell(row: TableRow, word: str) -> str:
    return next((text for header, text in row.cells.items() if word in header.lower()), "")


def _speed_cell(row: TableRow) -> Quantity | None:
    text = _cell(row, "speed")
    return (
        first_quantity(f"{text} it/s") if re.match(r"^[~≈]?\d[\d.]*$", text) else first_quantity(text, "it/s")
    )


def _in_unit_of(quantity: Quantity, other: Quantity) -> Quantity:
    return quantity if quantity.unit == other.unit else other


def _number(quantity: Quantity) -> str:
    if quantity.unit == "B":
        return gigabytes(quantity.value).removesuffix(" GB")
    return quantity.text.strip("~≈ ").split(" ")[0]


def _lines_text(lines: Sequence[int]) -> str:
    unique = sorted(set(lines))
    return ("line " if len(unique) == 1 else "lines ") + ", ".join(map(str, unique))
