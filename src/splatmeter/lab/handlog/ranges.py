"""Figures that no run can have."""

from __future__ import annotations

import re

from splatmeter.lab.handlog.arithmetic import lines_text
from splatmeter.lab.handlog.mentions import Mention, Role
from splatmeter.lab.handlog.values import HandLog, Said
from splatmeter.lab.samples.finding import Finding, Severity

_POSSIBLE = {
    "ssim": (-1.0, 1.0, "SSIM is at most 1"),
    "lpips": (0.0, 2.0, "LPIPS lies between 0 and about 1"),
    "psnr": (0.0, 100.0, "PSNR of 8-bit pictures lies between 0 and 100 dB"),
    "l1": (0.0, 1.0, "L1 of colours between 0 and 1 lies there too"),
    "opacity": (0.0, 1.0, "opacity lies between 0 and 1"),
    "loss": (0.0, float("inf"), "the loss is a sum of things that are not negative"),
    "peak": (0.0, float("inf"), "no run needs negative memory"),
    "speed": (0.0, float("inf"), "no run goes backwards"),
    "gaussians": (0.0, float("inf"), "no model has fewer than none"),
}
_ALONE = re.compile(r"^[^:]{0,60}:\s*$")


def impossible_figures(log: HandLog) -> list[Finding]:
    findings: list[Finding] = []
    everything = [*log.loose, *(said for phase in log.phases for said in phase.said)]
    for said in everything:
        for mention in said.mentions:
            bounds = _POSSIBLE.get(mention.key.rpartition(" ")[2])
            if not bounds or not _is_result(said, mention):
                continue
            low, high, why = bounds
            if not low <= mention.quantity.value <= high:
                sentence = f"{mention.key} {mention.quantity.text} cannot be: {why}."
                findings.append(
                    Finding("impossible figure", sentence, Severity.WRONG, lines_text([mention.line]))
                )
    return findings + _more_than_all(log)


def _is_result(said: Said, mention: Mention) -> bool:
    """A number with a minus is a result only behind a label alone, with nothing that compares."""
    if said.heading not in ("", "row"):
        return False
    if not mention.quantity.signed:
        return mention.role is Role.VALUE
    text = said.passage.words
    label, rest = text[: mention.quantity.start], text[mention.quantity.end :]
    compares = re.search(
        r"Δ|delta|change|diff|gain|sav|änderung|\bvs\b|from|against|than|gegenüber|reduc|less|weniger",
        label + rest,
        re.IGNORECASE,
    )
    return (
        mention.quantity.value < 0 and bool(_ALONE.match(label)) and not compares and len(said.mentions) == 1
    )


def _more_than_all(log: HandLog) -> list[Finding]:
    """'120 % less memory'."""
    findings: list[Finding] = []
    for said in [*log.loose, *(said for phase in log.phases for said in phase.said)]:
        for mention in said.mentions:
            behind = said.passage.words[mention.quantity.end : mention.quantity.end + 24]
            less = re.match(
                r"^\s*(?:less|fewer|reduction|weniger|lower|saved|smaller)\b", behind, re.IGNORECASE
            )
            if mention.quantity.unit == "%" and less and abs(mention.quantity.value) > 100:
                sentence = (
                    f"'{mention.quantity.text}{behind[: less.end()]}' cannot be: nothing can shrink by more "
                    f"than all of it."
                )
                findings.append(
                    Finding("impossible figure", sentence, Severity.WRONG, lines_text([mention.line]))
                )
    return findings
