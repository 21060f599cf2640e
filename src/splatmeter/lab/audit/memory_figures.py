"""Peaks that are impossible, or that could not have been seen."""

from __future__ import annotations

from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.memory_floor import held_bytes_per_gaussian, step_bytes_per_gaussian
from splatmeter.lab.samples.run_sample import RunSample, StagePeak

FEWEST_SAMPLES = 3
NOT_A_SIZE = 2**63
"""NVML's "not available" read as a number is 2^64 - 1."""
GB = 1e9


def floor_bytes(run: RunSample) -> tuple[int, str]:
    """The least the training of this run had to hold at once, and the sum in words."""
    count = max(run.gaussians_start, run.gaussians_end, *(point.gaussians for point in run.rates), 0)
    per = step_bytes_per_gaussian if run.holds_gradients else held_bytes_per_gaussian
    each = per(run.sh_degree)
    words = f"{count:,} Gaussians × {each} B = {count * each / GB:.2f} GB"
    if run.image_bytes_held:
        words += f", photos {run.image_bytes_held / GB:.2f} GB"
    return count * each + run.image_bytes_held, words


def below_the_floor(run: RunSample) -> list[Finding]:
    """A peak of training smaller than what training must hold."""
    floor, words = floor_bytes(run)
    return [
        _finding(
            run,
            "memory below the floor",
            f"the {name} peak of training in {run.name} is {value / GB:.2f} GB, but {words}, together at "
            f"least {floor / GB:.2f} GB before any buffer: it is not believable.",
            Severity.WRONG,
        )
        for peak in run.peaks
        if peak.stage == "training"
        for name, value in _training_figures(peak)
        if value < floor
    ]


def doubtful_sampling(run: RunSample) -> list[Finding]:
    """A peak taken too late, too seldom, or by a sampler slower than its stage."""
    findings: list[Finding] = []
    for peak in run.peaks:
        about = f"the {peak.stage} peak of {run.name}"
        if peak.taken_after_stage:
            reason = f"{about} was read after {peak.stage} had ended, when its memory may have been freed."
        elif _slower_than_stage(peak):
            reason = (
                f"{about} comes from a sample every {peak.sampler_seconds:.3g} s of a stage that lasted "
                f"{peak.stage_seconds:.3g} s."
            )
        elif peak.samples is not None and peak.samples < FEWEST_SAMPLES:
            reason = f"{about} rests on {peak.samples} samples; fewer than {FEWEST_SAMPLES} miss peaks."
        else:
            continue
        findings.append(_finding(run, f"doubtful {peak.stage} peak", reason, Severity.DOUBT))
    return findings


def impossible_values(run: RunSample) -> list[Finding]:
    """Reserved below allocated, the card below one of its processes, or no size at all."""
    reasons = [reason for peak in run.peaks for reason in _impossible(peak, run)]
    return [_finding(run, "impossible memory value", reason, Severity.WRONG) for reason in reasons[:3]]


def _impossible(peak: StagePeak, run: RunSample) -> list[str]:
    stage = f"in {peak.stage} of {run.name}"
    named = _named(peak)
    broken = [
        f"{name} memory {stage} reads {value}, at least 2^63: 'not available' taken for a number."
        for name, value in named.items()
        if value >= NOT_A_SIZE
    ]
    if broken:
        return broken
    reasons: list[str] = []
    on_card = {name: value for name, value in named.items() if name != "process"}
    for name, value in on_card.items():
        if run.card_bytes and value > 2 * run.card_bytes:
            reasons.append(
                f"{name} memory {stage} is {value / GB:.2f} GB, more than twice the card's "
                f"{run.card_bytes / GB:.2f} GB."
            )
    for smaller, larger in (("reserved", "allocated"), ("device", "reserved"), ("device", "allocated")):
        if smaller in on_card and larger in on_card and on_card[smaller] < on_card[larger]:
            reasons.append(
                f"{smaller} memory {stage} is {on_card[smaller] / GB:.2f} GB, less than the {larger} "
                f"{on_card[larger] / GB:.2f} GB it must contain."
            )
    return reasons


def _named(peak: StagePeak) -> dict[str, int]:
    figures = {
        "process": peak.process_bytes,
        "allocated": peak.allocated_bytes,
        "reserved": peak.reserved_bytes,
        "device": peak.device_bytes,
    }
    return {name: value for name, value in figures.items() if value is not None}


def _training_figures(peak: StagePeak) -> list[tuple[str, int]]:
    """Where the Gaussians live: on the card if it was observed, in ordinary memory otherwise."""
    named = _named(peak)
    on_card = [(name, value) for name, value in named.items() if name != "process"]
    return on_card or list(named.items())


def _slower_than_stage(peak: StagePeak) -> bool:
    known = peak.sampler_seconds is not None and peak.stage_seconds is not None
    return known and peak.sampler_seconds > peak.stage_seconds  # type: ignore[operator]


def _finding(run: RunSample, kind: str, sentence: str, severity: Severity) -> Finding:
    return Finding(kind, sentence[0].upper() + sentence[1:], severity, run.arm.name)
