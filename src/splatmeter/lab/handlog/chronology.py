"""Days that cannot be, phases older than what they build on, and phases with two parents."""

from __future__ import annotations

import datetime
import re
from itertools import pairwise

from splatmeter.lab.handlog.arithmetic import lines_text
from splatmeter.lab.handlog.dates import days_in
from splatmeter.lab.handlog.reading import parents_in
from splatmeter.lab.handlog.values import HandLog, HandPhase
from splatmeter.lab.samples.finding import Finding, Severity

FEWEST_DATED = 4
"""Entries in order that are needed before one is called out of order."""
_AHEAD = re.compile(
    r"\bplan|\bdue\b|\bdeadline|\buntil\b|\bnext\b|\bbis\b|\bgeplant|\bscheduled|\btarget|\btodo\b|\beta\b|"
    r"\bfällig|\bsoll",
    re.IGNORECASE,
)


def impossible_days(log: HandLog, today: datetime.date) -> list[Finding]:
    findings: list[Finding] = []
    seen: set[tuple[int, str]] = set()
    for said in [*log.loose, *(said for phase in log.phases for said in phase.said)]:
        text = said.passage.words
        for day in days_in(text):
            line = said.passage.line_at(day.start)
            if (line, day.text) in seen:
                continue
            seen.add((line, day.text))
            if day.day is None:
                sentence = f"{day.text} is no day of the calendar."
                findings.append(Finding("impossible date", sentence, Severity.WRONG, lines_text([line])))
            elif day.day > today + datetime.timedelta(days=1) and not _AHEAD.search(text):
                sentence = f"{day.text} lies in the future: today is {today.isoformat()}."
                findings.append(Finding("impossible date", sentence, Severity.WRONG, lines_text([line])))
    return findings


def older_than_its_parent(log: HandLog, today: datetime.date) -> list[Finding]:
    findings: list[Finding] = []
    for phase in log.phases:
        for parent in filter(None, map(log.phase, phase.parents)):
            if phase.day and parent.day and phase.day < parent.day:
                sentence = (
                    f"{phase.name} builds on {parent.name}, but is dated {phase.day.isoformat()}, before it "
                    f"({parent.day.isoformat()})."
                )
                findings.append(
                    Finding(
                        "older than its parent", sentence, Severity.WRONG, lines_text([_line_of_day(phase)])
                    )
                )
    return findings or _out_of_order(log, today)


def _line_of_day(phase: HandPhase) -> int:
    for said in phase.said:
        for day in days_in(said.passage.words):
            if day.day == phase.day:
                return said.passage.line_at(day.start)
    return phase.line


def _out_of_order(log: HandLog, today: datetime.date) -> list[Finding]:
    """One day that breaks an order which all others keep."""
    dated = [(p, p.day) for p in log.phases if p.day and p.day <= today]
    if len(dated) < FEWEST_DATED:
        return []
    for sign in (1, -1):
        if _ordered([day for _, day in dated], sign):
            return []
    for sign in (1, -1):
        odd = [
            i
            for i in range(len(dated))
            if _ordered([day for j, (_, day) in enumerate(dated) if j != i], sign)
        ]
        if len(odd) == 1 or (len(odd) == 2 and odd[1] - odd[0] == 1):
            phase, day = dated[odd[-1]]
            neighbour = dated[odd[-1] - 1]
            sentence = (
                f"{phase.name} is dated {day.isoformat()}, out of the order that all others keep "
                f"({neighbour[0].name}: {neighbour[1].isoformat()})."
            )
            return [Finding("date out of order", sentence, Severity.DOUBT, lines_text([_line_of_day(phase)]))]
    return []


def _ordered(days: list[datetime.date], sign: int) -> bool:
    return all((b - a).days * sign >= 0 for a, b in pairwise(days))


def two_parents(log: HandLog) -> list[Finding]:
    """'parent: T0, based on T2' in one line."""
    findings: list[Finding] = []
    for phase in log.phases:
        for said in phase.said:
            parents = list(dict.fromkeys(parents_in(said.passage.words, log.called, phase.name)))
            if len(parents) > 1:
                sentence = (
                    f"{phase.name} names {len(parents)} parents in one line, {' and '.join(parents)}: "
                    f"against which is it counted?"
                )
                findings.append(
                    Finding("two parents", sentence, Severity.DOUBT, lines_text([said.passage.line_at(0)]))
                )
    return findings
