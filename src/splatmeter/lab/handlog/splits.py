"""Which images trained and which judged: leaks, splits that change, counts that cannot all be true."""

from __future__ import annotations

import math
import re

from splatmeter.lab.handlog.quantities import change_percent
from splatmeter.lab.handlog.reading import split_counts
from splatmeter.lab.handlog.values import HandLog, HandPhase, Start
from splatmeter.lab.samples.finding import Finding, Severity

EVERY = 8
"""The original holds out every eighth image."""
_NOUN = r"(?:images?|photos?|views?|cameras?|pictures?)"
_COUNTED = re.compile(
    rf"\b(\d{{1,9}})\s+(?:[A-Za-z\-]+\s+){{0,2}}?{_NOUN}\b(?!\s+(?:pair|at a time))", re.IGNORECASE
)
_CONTRASTED = re.compile(
    rf"{_NOUN}\s*\(\s*(\d{{1,9}})\s*(?:vs\.?|versus|against|of|/)\s*(\d{{1,9}})\s*\)", re.IGNORECASE
)
_OF = re.compile(rf"\b(\d{{1,9}})\s+of\s+(?:the\s+)?(\d{{1,9}})\s+(?:\w+\s+)?{_NOUN}", re.IGNORECASE)
_PART = re.compile(r"\bof\s+(?:the\s+)?\d+\s+(?:test|train)", re.IGNORECASE)
"""'23 of the 24 test views': some of them, which may be any number."""
_DECLARED = re.compile(
    r"declared changes:[^.]*\bsplit\b|split (?:is|was) (?:another|changed on purpose)", re.IGNORECASE
)
_FEWEST = 6
"""'1 image pair' and the five training views that people evaluate count no data set."""


def holds_out(log: HandLog, phase: HandPhase) -> bool | None:
    """What the log says of the phase, or else whether it reports test metrics at all."""
    if phase.held_out is not None:
        return phase.held_out
    return True if phase.metrics("test") else None


def leaked_views(log: HandLog) -> list[Finding]:
    """Test metrics of a run whose checkpoint was trained on every image."""
    leaks: dict[str, list[HandPhase]] = {}
    findings: list[Finding] = []
    for phase in log.phases:
        start = phase.start or (log.configuration.start if "speed" in phase.figures else None)
        if not phase.metrics("test") or start is None or holds_out(log, phase) is False:
            continue
        parent = log.phase(start.phase)
        if parent is None:
            findings.append(_unknown_start(phase, start))
        elif holds_out(log, parent) is False:
            leaks.setdefault(parent.name, []).append(phase)
        elif holds_out(log, parent) is None and parent is not phase:
            findings.append(_unknown_start(phase, start))
    return [_leak(log, name, phases) for name, phases in leaks.items()] + findings


def _leak(log: HandLog, parent: str, phases: list[HandPhase]) -> Finding:
    configuration = log.configuration
    names = " and ".join(phase.name for phase in phases)
    start = phases[0].start or configuration.start
    step = start.step if start else None
    train, test = configuration.train_images, configuration.test_images
    counts = (
        f"all {test} test images were among the {train + test} it trained on"
        if train and test
        else ("every test image was among those it trained on")
    )
    evaluated = phases[0].evaluated_step or configuration.evaluated_step
    seen = ""
    if step and evaluated and evaluated > step:
        seen = (
            f"; of the {evaluated} steps before the evaluation {step} ({100 * step / evaluated:.1f} %) were "
            "taken with the test images"
        )
        if train and test:
            seen += f", about {step / (train + test):.0f} visits to each"
    sentence = (
        f"The test metrics of {names} are leaked: the runs start from the checkpoint of {parent}, which the "
        f"log lists without --eval, so {counts}{seen}. Holding views out afterwards does not make them "
        "unseen."
    )
    return Finding("leaked test views", sentence, Severity.WRONG, f"line {start.line}" if start else parent)


def _unknown_start(phase: HandPhase, start: Start) -> Finding:
    where = f" at iteration {start.step}" if start.step else ""
    sentence = (
        f"{phase.name} reports test metrics, but the log does not say which images trained the "
        f"checkpoint{where} it started from; if any of them are its test images, the metrics are leaked."
    )
    return Finding("unknown ancestry", sentence, Severity.DOUBT, f"line {start.line}")


def changed_splits(log: HandLog) -> list[Finding]:
    """Phases compared with each other although one held views out and the other did not."""
    findings: list[Finding] = []
    for phase in log.phases:
        references = {c.reference for figure in phase.figures.values() for c in figure.changes if c.reference}
        row = next((row for row in log.table if row.phase == phase.name), None)
        if (
            row
            and log.baseline
            and any("%" in text for head, text in row.cells.items() if "change" in head.lower())
        ):
            references.add(log.baseline.name)
        others = [log.phase(name) for name in sorted(references)]
        mine = holds_out(log, phase)
        if any(_DECLARED.search(said.passage.words) for said in phase.said):
            continue
        changed = [o for o in others if o and mine is not None and holds_out(log, o) not in (None, mine)]
        if changed:
            findings.append(_changed(log, phase, changed))
    return findings


def _changed(log: HandLog, phase: HandPhase, others: list[HandPhase]) -> Finding:
    with_split, without = "with --eval", "without"
    mine, theirs = (with_split, without) if holds_out(log, phase) else (without, with_split)
    train, test = log.configuration.train_images, log.configuration.test_images
    counts = f" ({train} train images against {train + test})" if train and test else ""
    sentence = (
        f"{phase.name} ({mine}) is compared with {' and '.join(o.name for o in others)} ({theirs}): the "
        f"training set changed{counts}, so speed, loss and memory are not of the same work"
    )
    a, b = others[0].quantity("loss"), phase.quantity("loss")
    if a and b and a.value != b.value:
        percent, _, _ = change_percent(a, b)
        sentence += f"; the loss moved from {a.text} to {b.text} ({percent:+.1f} %) with it"
    return Finding("split changed", sentence + ".", Severity.DOUBT, f"line {phase.line}")


def mixed_counts(log: HandLog) -> list[Finding]:
    """Every number of images in the log, if they do not belong to one split."""
    splits: dict[tuple[int, int], int] = {}
    loose: dict[int, tuple[int, str]] = {}
    for line, text in log.lines:
        counts = split_counts(text)
        if counts:
            splits.setdefault(counts, line)
        for found in (*_CONTRASTED.finditer(text), *_OF.finditer(text), *_COUNTED.finditer(text)):
            numbers = [int(group) for group in found.groups()]
            for number in numbers[1:] if _PART.search(found.group()) else numbers:
                if number >= _FEWEST:
                    loose.setdefault(number, (line, found.group()))
    allowed = {number for split in splits for number in (*split, sum(split))}
    strange = {number: place for number, place in loose.items() if number not in allowed}
    findings = _every_eighth(log, splits)
    if splits and (strange or len(splits) > 1):
        findings.insert(0, _mixed(splits, strange))
    elif not splits and len(loose) > 3:
        said = ", ".join(f"{n} (line {line})" for n, (line, _) in sorted(loose.items()))
        sentence = f"The log names {len(loose)} different numbers of images and no split: {said}."
        findings.append(Finding("mixed image counts", sentence, Severity.DOUBT))
    return findings


def _mixed(splits: dict[tuple[int, int], int], strange: dict[int, tuple[int, str]]) -> Finding:
    parts = [
        f"line {line} says {train} train + {test} test = {train + test} images"
        for (train, test), line in splits.items()
    ]
    for line, quoted in dict.fromkeys(strange.values()):
        parts.append(f"line {line} says '{quoted}'")
    sentence = f"The image counts do not belong to one split: {'; '.join(parts)}."
    totals = {train + test for train, test in splits}
    for number in strange:
        held = held_out_count(number)
        if number - held in totals:
            sentence += (
                f" Every {EVERY}th of {number} is {held} and leaves {number} − {held} = {number - held}: the "
                f"{number - held} may be what a first split had left."
            )
    return Finding("mixed image counts", sentence, Severity.DOUBT, f"line {min(splits.values())}")


def _every_eighth(log: HandLog, splits: dict[tuple[int, int], int]) -> list[Finding]:
    """The count that --eval would give, unless the log names another rule."""
    everything = " ".join(text for _, text in log.lines)
    if "--eval" not in everything or re.search(
        r"every\s+\d+(?:th|nd|rd)|test[_-]every|llffhold", everything, re.I
    ):
        return []
    findings: list[Finding] = []
    for (train, test), line in splits.items():
        total, expected = train + test, held_out_count(train + test)
        if expected != test:
            sentence = (
                f"{train} train + {test} test = {total} images, but --eval holds out every {EVERY}th: of "
                f"{total} that is ⌈{total} / {EVERY}⌉ = {expected}, not {test}."
            )
            findings.append(Finding("unexpected split", sentence, Severity.DOUBT, f"line {line}"))
    return findings


def held_out_count(total: int) -> int:
    """Images 0, 8, 16, …"""
    return math.ceil(total / EVERY)
