"""What is said about quality, against PSNR, SSIM and LPIPS of the same phase."""

from __future__ import annotations

import re

from splatmeter.lab.handlog import word_lists
from splatmeter.lab.handlog.arithmetic import candidates, lines_text
from splatmeter.lab.handlog.quantities import Quantity
from splatmeter.lab.handlog.subjects import named_before
from splatmeter.lab.handlog.values import HandLog, HandPhase, Said
from splatmeter.lab.samples.finding import Finding, Severity

NOTICEABLE = {"psnr": 0.15, "ssim": 0.005, "lpips": 0.01}
"""A change that nobody should call none."""
_SIGN = {"psnr": 1, "ssim": 1, "lpips": -1}


def quality_claims(log: HandLog) -> list[Finding]:
    findings: list[Finding] = []
    homes = [(phase, said) for phase in log.phases for said in phase.said] + [
        (None, said) for said in log.loose
    ]
    for home, said in homes:
        text = said.passage.words
        for pattern, wanted in ((word_lists.NO_QUALITY_LOSS, 0), (word_lists.BETTER_QUALITY, 1)):
            for found in pattern.finditer(text):
                if word_lists.NOT_MEASURED.search(
                    text[max(0, found.start() - 40) : found.start()]
                ) or re.search(r"\bmust|\bmuss|\bdarf", text[: found.start()][-40:], re.I):
                    continue
                for phase in [home] if home else _named(log, text, found.start()):
                    finding = _contradicted(log, phase, said, found, wanted)
                    findings += [finding] if finding else []
    return findings


def _named(log: HandLog, text: str, position: int) -> list[HandPhase]:
    names = dict.fromkeys(named_before(log, text, position, compared=False))
    return [phase for name in names if (phase := log.phase(name))]


def _contradicted(
    log: HandLog, phase: HandPhase, said: Said, found: re.Match[str], wanted: int
) -> Finding | None:
    """Only if every phase that may be meant contradicts the claim."""
    for metric, least in NOTICEABLE.items():
        key = f"test {metric}"
        own = phase.figure(key)
        others = [o for o in _meant(log, phase, key) if o.name != phase.name]
        if own is None or not others:
            continue
        moves = [(o, _gain(metric, o.figures[key].quantity, own.quantity)) for o in others]
        wrong = [gain < -least if wanted == 0 else gain < 0 for _, gain in moves]
        if all(wrong):
            other = moves[0][0]
            sentence = (
                f"{phase.name}: '{found.group()}', but {metric.upper()} is {own.quantity.text} after "
                f"{other.figures[key].quantity.text} of {other.name} "
                f"({own.quantity.value - other.figures[key].quantity.value:+.3g})."
            )
            return Finding(
                "quality claim", sentence, Severity.WRONG, lines_text([said.passage.line_at(found.start())])
            )
    return None


def _meant(log: HandLog, phase: HandPhase, key: str) -> list[HandPhase]:
    """Who names a parent does not mean a neighbour that was given up."""
    parents = [other for name in phase.parents if (other := log.phase(name)) and other.figure(key)]
    if not parents:
        return candidates(log, phase, key)
    first = [log.baseline] if log.baseline and log.baseline.figure(key) else []
    return [*parents, *first]


def _gain(metric: str, before: Quantity, after: Quantity) -> float:
    """How much better, at best, within the roundings."""
    return after.high - before.low if _SIGN[metric] > 0 else before.high - after.low
