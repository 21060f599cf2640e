"""Everything a verdict may look at, and what the rules of all aims share: objections, quality, notes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from splatmeter.lab.compare.aim_figures import Figure
from splatmeter.lab.compare.margins import TOLERANCE
from splatmeter.lab.compare.metric import MetricResult, Quality, more_seeds
from splatmeter.lab.compare.noise import NoiseFloor, half_width_of
from splatmeter.lab.compare.ratio import FEWEST_BLOCKS, Estimate, SpeedEvidence
from splatmeter.lab.samples.aim import Aim
from splatmeter.lab.samples.finding import Finding
from splatmeter.lab.samples.run_sample import NOTHING, Subject
from splatmeter.lab.samples.verdict_kinds import Verdict, VerdictKind

TOLERATED_DIFFERENCE = 0.02


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether machines tell the same (machines.py has the rule)."""

    holds: bool
    chance: float
    """How often equal machines look this different; nan where it could not be tested."""
    sentence: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything a verdict may look at; `reference` is the parent or the baseline."""

    reference: str
    candidate: str
    speed: SpeedEvidence
    quality: tuple[MetricResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    noise: NoiseFloor | None = None
    tolerated_difference: float = TOLERATED_DIFFERENCE
    runs: tuple[str, ...] = ()
    """Names of the runs used, so that a repetition can be seen to be one."""
    sequence: float = 0.0
    """Place of the session among the lab's sessions: later ones have larger numbers."""
    subject: Subject = NOTHING
    lacking: tuple[str, ...] = ()
    """Evaluations that the protocol promised and that cannot be compared, one sentence each."""
    aim: Aim = Aim.SPEED
    figures: tuple[Figure, ...] = ()
    """What the aim is judged by, where it is not speed alone."""
    scenes: tuple[Comparison, ...] = ()
    """One for each scene, where there are several: speed and figures here are then their geometric means."""
    scene: str = ""
    tolerance: float = TOLERANCE
    """How much PSNR may fall, as a fraction."""
    machines: tuple[Comparison, ...] = ()
    """One for each machine, where there are several; speed here is then that of all blocks, if they agree."""
    machine: str = ""
    """What this one is called, as one of several."""
    agreement: Agreement | None = None

    @property
    def apart(self) -> bool:
        """Several machines without a common ratio."""
        return self.agreement is not None and not self.agreement.holds

    @property
    def arms(self) -> str:
        return f"{self.candidate} against {self.reference}"


def questionable(comparison: Comparison) -> Verdict | None:
    reasons = [finding.sentence for finding in comparison.findings if finding.questions_the_verdict]
    for part in (comparison, *comparison.scenes, *comparison.machines):
        where = f"{part.scene or part.machine}: " if part.scene or part.machine else ""
        if part.noise is not None and part.noise.failed:
            reasons.append(f"{where}{part.noise.sentence}")
        if part.speed.disagreement:
            reasons.append(f"{where}The estimates disagree: {part.speed.disagreement}.")
    for figure in comparison.figures:
        if figure.noise is not None and figure.noise.failed:
            reasons.append(f"{figure.name}: {figure.noise.sentence}")
    if not reasons:
        return None
    others = "" if len(reasons) == 1 else f" ({len(reasons) - 1} more)"
    sentence = f"Questionable: {reasons[0]}{others}"
    return with_notes(comparison, VerdictKind.QUESTIONABLE, sentence, tuple(reasons))


def quality_lost(comparison: Comparison) -> Verdict | None:
    lost = [result for result in comparison.quality if result.quality is Quality.LOST]
    if not lost:
        return None
    others = (*(result.sentence for result in lost[1:]), f"{comparison.arms}: {speed_text(comparison)}.")
    return with_notes(comparison, VerdictKind.QUALITY_LOST, f"Quality lost: {lost[0].sentence}", others)


def quality_obstacle(comparison: Comparison) -> str:
    """Why no gain may be claimed yet; empty if nothing stands in the way."""
    if comparison.lacking:
        return f"its quality is not known: {comparison.lacking[0]}"
    uncompared = [part.scene for part in comparison.scenes if not part.quality]
    if not comparison.quality or uncompared:
        where = f" on {uncompared[0]}" if uncompared else ""
        return (
            f"its quality was not compared{where}: no evaluation of the same split at the same step in both "
            "arms."
        )
    open_ones = [result for result in comparison.quality if not result.acceptable]
    return f"quality is not settled: {open_ones[0].sentence}" if open_ones else ""


def quality_reasons(comparison: Comparison) -> tuple[str, ...]:
    open_ones = (result.sentence for result in comparison.quality if not result.acceptable)
    return (*comparison.lacking, *open_ones)


def undecided_quality(comparison: Comparison, sentence: str) -> Verdict:
    """Gained enough; what is missing are seeds, and they need no timing."""
    open_ones = [result for result in comparison.quality if not result.acceptable]
    needs = [more_seeds(result) for result in open_ones]
    known = [need for need in needs if need is not None]
    more = max(known) if known and len(known) == len(needs) else None
    if more is not None:
        pairs = f"{more} more pair{'s' if more != 1 else ''} of runs with seeds of their own"
        command = f"splatmeter lab quality {comparison.candidate} --against {comparison.reference}"
        sentence += f" Needs about {pairs}, without timing: `{command} --pairs {more}`."
    elif any(result.repeats for result in open_ones):
        sentence += " Let its trainer take a seed: {seed} in its command, or shift_seeds in protocol.toml."
    reasons = (*quality_reasons(comparison), *notes(comparison))
    return Verdict(VerdictKind.UNDECIDED, sentence, reasons, more_seeds=more)


def command(comparison: Comparison, blocks: int) -> str:
    """What measures the same with this many blocks; the arms of an A/A are one phase with two labels."""
    reference, _, label = comparison.reference.partition("#")
    word = {"": "ab", "unwatched": "overhead"}.get(label, "aa")
    arms = reference if label else f"{reference} {comparison.candidate}"
    until = " --until-decided" if comparison.speed.main.method.startswith("anytime") else ""
    return f"splatmeter lab {word} {arms} --blocks {blocks}{until}"


def with_notes(
    comparison: Comparison, kind: VerdictKind, sentence: str, reasons: tuple[str, ...] = ()
) -> Verdict:
    """Adds what is said beside every verdict: notes of the audit, and a difference too small to matter."""
    tolerated = comparison.tolerated_difference
    directed = kind in (VerdictKind.FASTER, VerdictKind.SLOWER)
    below = directed and abs(comparison.speed.main.ratio - 1) < tolerated
    if below:
        sentence = f"{sentence.rstrip('.')}; below the tolerated difference of {100 * tolerated:.3g} %."
    lacking = comparison.lacking if kind is not VerdictKind.FASTER else ()
    return Verdict(kind, sentence, (*reasons, *lacking, *notes(comparison)), below)


def notes(comparison: Comparison) -> tuple[str, ...]:
    """What is said beside every verdict, decided or not: machines, scenes, the audit, an A/A that leans."""
    told = [comparison.agreement.sentence] if comparison.agreement is not None else []
    told += [f"On {part.machine}: speed {ratio_text(part.speed.main)}." for part in comparison.machines]
    told += [f"On {p.machine}: {figure.sentence}" for p in comparison.machines for figure in p.figures]
    told += [f"{part.scene}: speed {ratio_text(part.speed.main)}." for part in comparison.scenes]
    told += [f"{part.scene}: {figure.sentence}" for part in comparison.scenes for figure in part.figures]
    told += [finding.sentence for finding in comparison.findings if not finding.questions_the_verdict]
    noise = comparison.noise
    leaning = noise is not None and noise.leans and not noise.failed
    return (*told, noise.sentence) if noise is not None and leaning else tuple(told)


def hurdle(noise: NoiseFloor | None, estimate: Estimate) -> float:
    """What a leaning A/A adds to 1; 0 otherwise."""
    if noise is None or not math.isfinite(noise.estimate.half_width):
        return 0.0
    return noise.hurdle(estimate.half_width)


def scenes_that_lose(comparison: Comparison, least: float) -> list[tuple[Comparison, Estimate]]:
    """Scenes whose speed is shown to lie below `least` (a log ratio), at a level that all scenes share."""
    found = [(part, part.speed.main) for part in comparison.scenes]
    return [(part, estimate) for part, estimate in found if shown_below(estimate, least, len(found))]


def machines_that_lose(comparison: Comparison, least: float) -> list[tuple[Comparison, Estimate]]:
    """As scenes: what one machine loses does not hide in the mean of others."""
    found = [(part, part.speed.main) for part in comparison.machines]
    return [(part, estimate) for part, estimate in found if shown_below(estimate, least, len(found))]


def by_machine(comparison: Comparison) -> str:
    """The ratios side by side."""
    return "; ".join(f"{ratio_text(part.speed.main)} on {part.machine}" for part in comparison.machines)


def shown_below(estimate: Estimate, least: float, shared_by: int = 1) -> bool:
    if estimate.blocks < FEWEST_BLOCKS:
        return False
    width = half_width_of(estimate, estimate.log_deviation, 0.05 / shared_by) + estimate.resolution
    return estimate.log_mean + max(width, estimate.half_width) < least


def speed_text(comparison: Comparison) -> str:
    """The ratio; with several scenes it is their mean."""
    scenes = len(comparison.scenes)
    if comparison.apart:
        return f"has no ratio of its own: {by_machine(comparison)}"
    mean = f", the geometric mean of {scenes} scenes" if scenes else ""
    mean += f", on {len(comparison.machines)} machines that agree" if comparison.machines else ""
    return f"{ratio_text(comparison.speed.main)}{mean}"


def ratio_text(estimate: Estimate) -> str:
    bounds = estimate.interval_95
    if not estimate.blocks:
        return "has no block in which both arms have a run that counts"
    if math.isinf(bounds.high):
        return f"{estimate.ratio:.4f} after {estimate.blocks} blocks, no interval yet"
    return f"{estimate.ratio:.4f} [{bounds.low:.4f}, {bounds.high:.4f}] over {estimate.blocks} blocks"
