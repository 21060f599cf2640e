"""Peaks that somebody claims a saving with: is there memory that they do not tell of?"""

from __future__ import annotations

from collections.abc import Sequence

from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.run_sample import RunSample

SLACK_SHARE, SLACK_BYTES = 0.02, 16 << 20
"""What two ways of looking at one process may differ by."""
UNTOLD = "memory not told"
CLAIMED = ("training", "evaluation")
"""Where other stages begin and end is too vague, seen from outside, to hold anybody to it."""


def untold_memory(runs: Sequence[RunSample]) -> list[Finding]:
    """Once an arm: memory seen from outside that no peak of the run accounts for.

    Only asked where a phase aims at memory. A trainer may read its mark after the memory was freed, free it
    before the sampler looks, or hold it in another process; the sampler of the whole tree and what the
    system counted for the process see more than each of them alone.
    """
    found: dict[str, Finding] = {}
    for run in runs:
        sentence = _stage(run) or _whole(run)
        if sentence and run.arm.name not in found:
            found[run.arm.name] = Finding(UNTOLD, sentence, Severity.DOUBT, run.arm.name)
    return list(found.values())


def _stage(run: RunSample) -> str:
    for peak in run.peaks:
        told, seen = peak.process_bytes, peak.seen_bytes
        if peak.stage in CLAIMED and told and seen and _more(seen, told):
            return (
                f"{run.name} tells {told / 1e6:.0f} MB as its {peak.stage} peak; seen from outside it held "
                f"{seen / 1e6:.0f} MB in that stage."
            )
    return ""


def _whole(run: RunSample) -> str:
    told = [peak.process_bytes for peak in run.peaks if peak.process_bytes]
    total = run.total_peak_bytes
    if run.on_a_card or not told or not total or not _more(total, max(told)):
        return ""
    return (
        f"{run.name} held {total / 1e6:.0f} MB at one time, and its stages tell of {max(told) / 1e6:.0f} MB "
        "at most: a peak fell between two samples, into a stage that it does not name, or into another "
        "process."
    )


def _more(seen: int, told: int) -> bool:
    return seen > told * (1 + SLACK_SHARE) + SLACK_BYTES
