"""The same figure given twice: in a summary, in a table, in another unit."""

from __future__ import annotations

import re

from splatmeter.lab.handlog import word_lists
from splatmeter.lab.handlog.arithmetic import lines_text
from splatmeter.lab.handlog.mentions import Mention, Role
from splatmeter.lab.handlog.values import HandLog, HandPhase, Said
from splatmeter.lab.samples.finding import Finding, Severity

_IN_CONTRAST = re.compile(r"^\s*,?\s*(?:where(?:as)?|while|wo|während|instead of|statt)\b", re.IGNORECASE)
_BESIDE = re.compile(r"\b(?:where(?:as)?|while|wo|während)\s+$", re.IGNORECASE)
SPEEDS_APART = 0.015
"""Two units of one speed may be rounded apart by this much."""


def tables_against_sections(log: HandLog) -> list[Finding]:
    """A row of the comparison table whose phase says otherwise where it is told."""
    findings: list[Finding] = []
    for phase in log.phases:
        for said in phase.said:
            for mention in said.values() if said.heading == "row" else ():
                own = phase.figures.get(mention.key)
                if own is None or own.line == mention.line or _known(phase, mention, own.line):
                    continue
                sentence = (
                    f"The table gives {phase.name} {mention.quantity.text}, its section {own.quantity.text} "
                    f"({mention.key})."
                )
                findings.append(
                    Finding("table contradicts section", sentence, Severity.WRONG, lines_text([mention.line]))
                )
    return findings


def _known(phase: HandPhase, mention: Mention, main: int) -> bool:
    """Whether the entry itself gives this figure anywhere."""
    own = [
        m.quantity
        for s in phase.said
        if s.heading != "row"
        for m in s.mentions
        if m.key == mention.key or (m.key.endswith("peak") and mention.key.endswith("peak"))
    ]
    return any(
        q.agrees(mention.quantity) or q.unit != mention.quantity.unit
        for q in [*own, *(f.quantity for k, f in phase.figures.items() if k == mention.key)]
    )


def restated_figures(log: HandLog) -> list[Finding]:
    """'Step 4 stays, with 23.1 it/s': a phase named elsewhere with a figure that is not its own."""
    findings: list[Finding] = []
    homes = [(None, said) for said in log.loose] + [
        (phase, said) for phase in log.phases for said in phase.said
    ]
    for home, said in homes:
        text = said.passage.words
        for mention in said.mentions:
            if mention.role not in (Role.VALUE, Role.BEFORE) or not mention.key or mention.key == "time":
                continue
            named = _named(log, home, text, mention)
            phase = log.phase(named) if named else None
            own = phase.figure(mention.key) if phase else None
            if phase is None or own is None or own.quantity.unit != mention.quantity.unit:
                continue
            if any(q.agrees(mention.quantity) for q in _any_peak(phase, mention.key)) or _by_hand(
                own.quantity.value, mention
            ):
                continue
            sentence = (
                f"{phase.name} has {mention.key} {own.quantity.text} in its own entry, but "
                f"{mention.quantity.text} here."
            )
            findings.append(
                Finding("figure restated otherwise", sentence, Severity.WRONG, lines_text([mention.line]))
            )
    return findings


def _any_peak(phase: HandPhase, key: str) -> list:  # type: ignore[type-arg]
    keys = [k for k in phase.figures if k.endswith("peak")] if key == "reported peak" else [key]
    return [q for k in keys for q in phase.all_values(k)]


def _by_hand(value: float, mention: Mention) -> bool:
    """'about 8 GB' for 8.3 is nobody's mistake."""
    return mention.quantity.approximate and abs(mention.quantity.value - value) <= 0.1 * abs(value)


def _named(log: HandLog, home: HandPhase | None, text: str, mention: Mention) -> str:
    """The one phase that the sentence speaks of before the figure, or right behind it."""
    at = mention.quantity.start
    start = max((m.end() for m in word_lists.SENTENCE_END.finditer(text[:at])), default=0)
    if _IN_CONTRAST.match(text[mention.quantity.end : mention.quantity.end + 16]):
        return ""  # '9.4 GB where a0 needed 11.2 GB'
    before = [
        name for name in log.called.within(text[start:at]) if not _BESIDE.search(text[start:][: name[0]])
    ]
    behind = re.match(
        r"^\s?\(?(?:of|in|by|from|von|bei|aus|at)\s+(?:the\s+|der\s+)?",
        text[mention.quantity.end : mention.quantity.end + 12],
        re.IGNORECASE,
    )
    after = log.called.within(text[mention.quantity.end : mention.quantity.end + 40])
    if behind and after and after[0][0] <= behind.end():
        return after[0][2] if home is None or after[0][2] != home.name else ""
    names = {name for _, _, name in before}
    if home is not None or len(names) != 1 or mention.role is Role.BEFORE:
        return ""
    gap = text[start + before[-1][1] : at]
    return (
        names.pop()
        if len(gap) < 60 and not re.search(r"\d\s?%|->|→|\b(?:than|vs|als|gegenüber|against)\b", gap)
        else ""
    )


def two_speeds(log: HandLog) -> list[Finding]:
    """26.3 ms/it beside 33.0 it/s."""
    findings: list[Finding] = []
    for phase in log.phases:
        speeds = [
            m
            for said in phase.said
            if said.heading in ("", "row")
            for m in said.values("speed")
            if m.quantity.unit == "it/s"
        ]
        rates, times = (
            [m for m in speeds if not m.quantity.per_step],
            [m for m in speeds if m.quantity.per_step],
        )
        if not rates or not times or _apart(phase.said, rates[0], times[0]):
            continue
        a, b = rates[0].quantity, times[0].quantity
        if a.agrees(b) or abs(a.value / b.value - 1) <= SPEEDS_APART:
            continue
        sentence = f"{phase.name}: {b.text} are {b.value:.4g} it/s, not {a.text}."
        findings.append(
            Finding("two speeds", sentence, Severity.WRONG, lines_text([times[0].line, rates[0].line]))
        )
    return findings


def _apart(said: tuple[Said, ...], a: Mention, b: Mention) -> bool:
    return abs(a.line - b.line) > 2
