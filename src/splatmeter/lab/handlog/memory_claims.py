"""Peaks in a written log that cannot be, by the floor of what training must hold."""

from __future__ import annotations

import math
import re

from splatmeter.lab.handlog.mentions import PEAKS, Role
from splatmeter.lab.handlog.quantities import gigabytes
from splatmeter.lab.handlog.values import HandFigure, HandLog, HandPhase
from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.memory_floor import held_bytes_per_gaussian, step_bytes_per_gaussian

PHOTO_SIZES = {
    "bicycle": (4946, 3286),
    "bonsai": (3118, 2078),
    "counter": (3115, 2076),
    "flowers": (5025, 3312),
    "garden": (5187, 3361),
    "kitchen": (3115, 2078),
    "room": (3114, 2075),
    "stump": (4978, 3300),
    "treehill": (5068, 3326),
}
"""Full size of the photos of the Mip-NeRF 360 scenes, for logs that name the scene only."""
BYTES_PER_PIXEL = 12
"""The original keeps each photo on the card as three floats a pixel."""
GIB_IN_GB = 2.0**30 / 1e9
"""Who writes GB may mean GiB: the floor has to be missed in both."""
_OTHER_TRAINERS = re.compile(
    r"\bsplatmeter\b|\bgsplat\b|nerfstudio|opensplat|\bbrush\b|lichtfeld|\bpostshot\b", re.IGNORECASE
)
_PHOTOS_ELSEWHERE = re.compile(
    r"data[_-]device\W+cpu|(?:photos|images) (?:to|on|in) (?:the )?(?:host|cpu|ram)|bilder im ram",
    re.IGNORECASE,
)
_FEWER_HARMONICS = re.compile(
    r"\bSH[\s-]?(?:degree|grad)?\s?[0-2]\b|\bno SH\b|ohne SH|\bfp16|half[- ]precision|halbe genauigkeit|"
    r"quanti[sz]ed|compress",
    re.IGNORECASE,
)
_SPILLS = re.compile(
    r"\bspill|\bshared\b|\bswap|\boverflow|\bunified|\boffload|\bauslager|\boom\b|out of memory",
    re.IGNORECASE,
)


def photo_size(log: HandLog, resolution: int | None) -> tuple[int, int] | None:
    """Width and height at a reduction, if the log names a scene whose photos are known."""
    scene = log.configuration.scene.replace("\\", "/").rstrip("/").rpartition("/")[2].lower()
    full = PHOTO_SIZES.get(scene)
    if full is None or not resolution:
        return None
    return math.floor(full[0] / resolution + 0.5), math.floor(full[1] / resolution + 0.5)


def claimed_below_the_floor(log: HandLog) -> list[Finding]:
    """A peak of training smaller than Gaussians and photos together."""
    findings: list[Finding] = []
    for phase in log.phases:
        count = phase.quantity("gaussians")
        peak = phase.figures.get("training peak") or phase.figures.get("reported peak")
        if count is None or peak is None or peak.quantity.unit != "B":
            continue
        if any(_FEWER_HARMONICS.search(said.passage.words) for said in phase.said):
            continue  # the floor is that of full harmonics in floats
        step = count.value * step_bytes_per_gaussian()
        photos, words = _photos(log, phase)
        generous = GIB_IN_GB if "i" not in peak.quantity.text.lower() else 1.0
        if peak.quantity.high * generous >= step + photos:
            continue
        findings.append(_implausible(phase, count.value, peak, (photos, words)))
    return findings


def _implausible(phase: HandPhase, count: float, peak: HandFigure, photos: tuple[float, str]) -> Finding:
    held, step = held_bytes_per_gaussian(), step_bytes_per_gaussian()
    sentence = (
        f"{phase.name}: a peak of {peak.quantity.text} is not believable: {count:,.0f} Gaussians × {held} B "
        f"(parameters and Adam's moments) = {gigabytes(count * held)}, × {step} B in a step with gradients = "
        f"{gigabytes(count * step)}, before the context and the rasterizer's buffers"
    )
    if photos[0]:
        total = count * step + photos[0]
        sentence += f"; {photos[1]}, together at least {gigabytes(total)}"
    return Finding("memory below the floor", sentence + ".", Severity.WRONG, f"line {peak.line}")


def _photos(log: HandLog, phase: HandPhase) -> tuple[float, str]:
    everything = " ".join(text for _, text in log.lines)
    if _OTHER_TRAINERS.search(everything) or _PHOTOS_ELSEWHERE.search(everything):
        return 0.0, ""
    size = photo_size(log, phase.resolution or log.configuration.resolution)
    count = log.configuration.train_images
    if size is None or not count:
        return 0.0, ""
    total = float(count * size[0] * size[1] * BYTES_PER_PIXEL)
    return total, (
        f"{count} training photos at {size[0]}×{size[1]}, kept as floats × {BYTES_PER_PIXEL} B a pixel as "
        f"the original does, are {total / 1e9:.1f} GB"
    )


def above_the_card(log: HandLog) -> list[Finding]:
    """A peak beyond the memory of the card that the log names; if it names several, of the largest."""
    if not log.cards:
        return []
    findings: list[Finding] = []
    for card in log.cards:
        if card.impossible:
            sold = " or ".join(map(str, card.sold))
            sentence = f"{card.name} is given {card.said} GB, but is sold with {sold} GB."
            findings.append(Finding("no such card", sentence, Severity.DOUBT, f"line {card.line}"))
    largest = max(log.cards, key=lambda card: card.bytes)
    for said in [*log.loose, *(said for phase in log.phases for said in phase.said)]:
        if _SPILLS.search(said.passage.words):
            continue
        for mention in said.mentions:
            measured = mention.role in (Role.VALUE, Role.BEFORE) and mention.key in PEAKS
            if measured and mention.quantity.unit == "B" and mention.quantity.low > largest.bytes:
                sentence = (
                    f"{mention.key} {mention.quantity.text} is more than the {largest.name} of the log has: "
                    f"{largest.bytes / 2**30:.0f} GiB = {gigabytes(largest.bytes)}."
                )
                findings.append(
                    Finding("memory above the card", sentence, Severity.WRONG, f"line {mention.line}")
                )
    return findings


def less_for_more_pixels(log: HandLog) -> list[Finding]:
    """A finer resolution that is said to need less memory than a coarser one."""
    findings: list[Finding] = []
    measured = [(p, f) for p in log.phases if (f := _training_peak(p)) and _resolution(log, p)]
    for phase, peak in measured:
        coarser = [(p, f) for p, f in measured if _resolution(log, p) > _resolution(log, phase)]
        if not coarser:
            continue
        other, least = min(coarser, key=lambda pair: pair[1].quantity.value)
        if peak.quantity.high < least.quantity.low:
            factor = (_resolution(log, other) / _resolution(log, phase)) ** 2
            sentence = (
                f"{phase.name} has {factor:.3g} times the pixels of {other.name} "
                f"(-r{_resolution(log, phase)} against -r{_resolution(log, other)}), yet its peak of "
                f"{peak.quantity.text} is below that run's {least.quantity.text}."
            )
            findings.append(
                Finding("less memory for more pixels", sentence, Severity.DOUBT, f"line {peak.line}")
            )
    return findings


def differences_from_estimates(log: HandLog) -> list[Finding]:
    """A difference to the megabyte from a number that was itself estimated."""
    findings: list[Finding] = []
    for phase in log.phases:
        for key, figure in phase.figures.items():
            for change in figure.changes:
                other = log.phase(change.reference)
                source = other.figures.get(key) if other else None
                if other and source and source.estimated and not figure.estimated:
                    sentence = (
                        f"{phase.name}: '{change.quantity.text}' of {key} is taken from "
                        f"{source.quantity.text} of {other.name}, which the log calls an estimate."
                    )
                    findings.append(
                        Finding("difference from an estimate", sentence, Severity.NOTE, f"line {figure.line}")
                    )
    return findings


def _training_peak(phase: HandPhase) -> HandFigure | None:
    figure = phase.figures.get("training peak") or phase.figures.get("reported peak")
    return figure if figure and figure.quantity.unit == "B" else None


def _resolution(log: HandLog, phase: HandPhase) -> int:
    return phase.resolution or log.configuration.resolution or 0
