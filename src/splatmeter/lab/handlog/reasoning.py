"""Conclusions that a log's own facts do not carry: goals already met, 'current' figures of the past."""

from __future__ import annotations

import re

from splatmeter.lab.handlog import word_lists
from splatmeter.lab.handlog.arithmetic import lines_text
from splatmeter.lab.handlog.evidence import CLAIMED
from splatmeter.lab.handlog.mentions import PEAKS, Role
from splatmeter.lab.handlog.quantities import gigabytes
from splatmeter.lab.handlog.values import HandLog, HandPhase
from splatmeter.lab.samples.finding import Finding, Severity

_STILL_TO_DO = re.compile(
    r"\b(?:needed|necessary|required|must|have|has|nötig|müssen|muss)\b[^.;]{0,40}\b(?:reduce|bring|get|"
    r"push|lower|cut|senken|drücken|bringen)\b[^.;]{0,40}"
    r"\b(?:below|under|unter)\s*$",
    re.IGNORECASE,
)
_SPILLED = re.compile(
    r"\b(?:causes?|visible|spike in|used|uses|spills? (?:in)?to)\b[^.;]{0,40}\bshared\b|"
    r"\bshared\b[^.;]{0,30}\b(?:visible|spike|used|usage)\b",
    re.IGNORECASE,
)
_NOT_SPILLED = re.compile(r"\bzero\b|\bno\b|\beliminat|\bwithout\b|\bnone\b|\bkein|\bnot\b", re.IGNORECASE)
_CURRENT = re.compile(r"^\W*(?:current|currently|aktuell\w*|derzeit\w*)\b", re.IGNORECASE)
_AS_BASELINE = re.compile(
    r"\b(?:metrics|quality|psnr|ssim|lpips)\b[^.;]{0,30}\b(?:identical|same|equal|"
    r"unchanged)\b[^.;]{0,12}\bbaseline\b",
    re.IGNORECASE,
)
_FULL = re.compile(r"\bfull\s+(\d+)\s?(k?)\b[^.;]{0,12}\b(?:run|training|iterations?)\b", re.IGNORECASE)
_ONE_AT_A_TIME = re.compile(
    r"\bonly (?:one|1|a single)\b[^.;]{0,40}\bat a time\b|\bnur ein\w*\b[^.;]{0,40}\bgleichzeitig\b",
    re.IGNORECASE,
)
_BECAUSE_FEWER = re.compile(
    r"\b(?:because|due to|since|thanks to|wegen|weil)\b[^.;]{0,20}\b(?:fewer|less|"
    r"weniger)\b[^.;(]{0,20}\b(?:cameras|images|views|photos|bilder|kameras)\b(?:\s*\([^)]{0,30}\))?",
    re.IGNORECASE,
)
_GOOD = re.compile(r"\bgood\b|\bsame\b|\bok\b|\bgut\b|\bpass|\bkept\b", re.IGNORECASE)


def already_below(log: HandLog) -> list[Finding]:
    """'needed to reduce the peak below 16 GB', where the peak is 15.62 GB."""
    findings: list[Finding] = []
    for phase in log.phases:
        for said in phase.said:
            for mention in said.mentions:
                before = said.passage.words[max(0, mention.quantity.start - 100) : mention.quantity.start]
                own = phase.figures.get(mention.key)
                if (
                    mention.quantity.unit == "B"
                    and own
                    and _STILL_TO_DO.search(before)
                    and own.quantity.high < mention.quantity.value
                ):
                    sentence = (
                        f"{phase.name}: it is called necessary to bring {mention.key} below "
                        f"{mention.quantity.text}, but the "
                        f"phase itself has {own.quantity.text}, which is below already."
                    )
                    findings.append(
                        Finding("goal already met", sentence, Severity.DOUBT, lines_text([mention.line]))
                    )
    return findings


def spilled_below_the_card(log: HandLog) -> list[Finding]:
    """Shared memory in use although every peak of the phase fits into the card."""
    findings: list[Finding] = []
    size = min((card.said or card.bytes / 2**30 for card in log.cards), default=0) * 1e9
    for phase in log.phases:
        peaks = [phase.figures[key].quantity for key in PEAKS if key in phase.figures]
        most = max(peaks, key=lambda q: q.value, default=None)
        for said in phase.said:
            found = _SPILLED.search(said.passage.words)
            if not found or most is None or not size or most.high >= size:
                continue
            around = said.passage.words[max(0, found.start() - 30) : found.end() + 30]
            if not _NOT_SPILLED.search(around):
                sentence = (
                    f"{phase.name} is said to use shared memory, but its largest peak is {most.text}, below "
                    f"the card's "
                    f"{gigabytes(size)}: either the peak was higher than measured, or the limit is lower "
                    f"than written."
                )
                findings.append(
                    Finding(
                        "spill below the limit",
                        sentence,
                        Severity.DOUBT,
                        lines_text([said.passage.line_at(found.start())]),
                    )
                )
                break
    return findings


def outdated_current(log: HandLog) -> list[Finding]:
    """'Current eval VRAM: 8.0 GB' after a phase that has 4.7 GB."""
    findings: list[Finding] = []
    for phase in log.phases:
        for said in phase.said:
            for mention in said.values() if _CURRENT.match(said.passage.words) else ():
                earlier = [p for p in log.before(phase) if mention.key in p.figures]
                own = [m for s in phase.said if s is not said for m in s.values(mention.key)]
                latest = earlier[-1].figures[mention.key].quantity if earlier and not own else None
                if latest and latest.unit == mention.quantity.unit and not latest.agrees(mention.quantity):
                    sentence = (
                        f"{phase.name}: the current {mention.key} is given as {mention.quantity.text}, but "
                        f"the latest phase "
                        f"that measured it, {earlier[-1].name}, has {latest.text}."
                    )
                    findings.append(
                        Finding(
                            "current figure is outdated", sentence, Severity.DOUBT, lines_text([mention.line])
                        )
                    )
    return findings


def equal_to_nothing(log: HandLog) -> list[Finding]:
    """'All metrics identical to baseline', which has none."""
    baseline = log.baseline
    if baseline is None or baseline.metrics("test") or baseline.metrics("train"):
        return []
    findings: list[Finding] = []
    for phase in log.phases:
        for said in phase.said:
            if found := _AS_BASELINE.search(said.passage.words):
                sentence = (
                    f"{phase.name}: '{found.group()}', but {baseline.name} has no metrics to be identical to."
                )
                findings.append(
                    Finding(
                        "equal to nothing",
                        sentence,
                        Severity.DOUBT,
                        lines_text([said.passage.line_at(found.start())]),
                    )
                )
    return findings


def not_the_full_run(log: HandLog) -> list[Finding]:
    """'Full 30K run' that starts at 7000."""
    findings: list[Finding] = []
    for phase in log.phases:
        found = _FULL.search(phase.title)
        if not found or not phase.start or not phase.start.step or not phase.last_step:
            continue
        said, ran = int(found[1]) * (1000 if found[2] else 1), phase.last_step - phase.start.step
        if said != ran:
            sentence = (
                f"{phase.name}: the title says '{found.group()}', but it went from iteration "
                f"{phase.start.step} to "
                f"{phase.last_step}: {ran} iterations."
            )
            findings.append(
                Finding(
                    "not the full run", sentence, Severity.DOUBT, lines_text([phase.line, phase.start.line])
                )
            )
    return findings


def memory_by_count(log: HandLog) -> list[Finding]:
    """One image at a time, and yet less memory because there are fewer images."""
    lines = [(text, line) for line, text in log.lines]
    single = next(((m.group(), line) for text, line in lines if (m := _ONE_AT_A_TIME.search(text))), None)
    fewer = next(((m.group(), line) for text, line in lines if (m := _BECAUSE_FEWER.search(text))), None)
    if single is None or fewer is None:
        return []
    sentence = (
        f"'{single[0]}' (line {single[1]}) and '{fewer[0]}' (line {fewer[1]}) exclude each other: who holds "
        f"one image at a "
        "time does not need less memory for fewer of them."
    )
    return [Finding("memory by count", sentence, Severity.DOUBT, lines_text([single[1], fewer[1]]))]


def quality_of_another_run(log: HandLog) -> list[Finding]:
    """Called good by the measure of the quality baseline, but evaluated at another step or resolution."""
    usual = log.configuration
    findings: list[Finding] = []
    for row in log.table if log.quality_baseline else ():
        phase = log.phase(row.phase)
        verdict = next((cell for head, cell in row.cells.items() if word_lists.QUALITY.search(head)), "")
        if phase is None or not _GOOD.search(verdict):
            continue
        reasons: list[str] = []
        if phase.evaluated_step and usual.evaluated_step and phase.evaluated_step != usual.evaluated_step:
            reasons.append(f"at iteration {phase.evaluated_step} instead of {usual.evaluated_step}")
        if phase.resolution and usual.resolution and phase.resolution != usual.resolution:
            reasons.append(f"at -r{phase.resolution} instead of -r{usual.resolution}")
        if reasons:
            sentence = (
                f"{phase.name}: quality is called '{verdict}', but it was measured {' and '.join(reasons)}: "
                f"the quality baseline says nothing about that."
            )
            findings.append(
                Finding("quality of another run", sentence, Severity.DOUBT, lines_text([row.line]))
            )
    return findings


def judged_too_early(log: HandLog) -> list[Finding]:
    """Quality measured before half of the timed iterations are done."""
    c = log.configuration
    if not c.first_step or not c.last_step or not c.last_evaluated_step or c.last_step <= c.first_step:
        return []
    share = (c.last_evaluated_step - c.first_step) / (c.last_step - c.first_step)
    if not 0 < share < 0.5:
        return []
    sentence = (
        f"Runs go from iteration {c.first_step} to {c.last_step}, but quality is measured at "
        f"{c.last_evaluated_step}, after "
        f"{100 * share:.0f} % of them: what the other {c.last_step - c.last_evaluated_step} iterations do "
        f"to it is not seen."
    )
    line = next(
        (line for line, text in log.lines if "eval" in text.lower() and str(c.last_evaluated_step) in text), 0
    )
    return [Finding("quality judged too early", sentence, Severity.DOUBT, lines_text([line]))]


def success_without_quality(log: HandLog) -> list[Finding]:
    """The log demands a quality of every phase, and calls one a success that has none."""
    demanded = bool(log.quality_baseline) and any(
        re.search(r"\bmust\b|\bmüssen\b|\bkeep\b", t, re.I) and word_lists.QUALITY.search(t)
        for _, t in log.lines
    )
    return [
        Finding(
            "success without quality",
            f"{phase.name} is called a {phase.status}, but has no metrics, which the log demands of every "
            f"phase.",
            Severity.DOUBT,
            lines_text([phase.line]),
        )
        for phase in log.phases
        if demanded and phase.status in CLAIMED and not _has_metrics(phase)
    ]


def _has_metrics(phase: HandPhase) -> bool:
    return any(
        m.role is Role.VALUE and m.key.endswith(("psnr", "ssim", "lpips"))
        for s in phase.said
        for m in s.mentions
    ) or bool(phase.metrics("test") or phase.metrics("train"))
