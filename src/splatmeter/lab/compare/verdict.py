"""The closed set of verdicts, decided by rules that were written down before the runs. First match wins:
questionable, quality lost, slower, faster, no speed-up, undecided.

*Faster* and *slower* ask that the whole 95 % interval lie on one side of 1 and, where an A/A leans, beyond
what the A/A showed. The A/A is otherwise an estimate of noise (noise.py) and no hurdle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from splatmeter.lab.compare.metric import MetricResult, Quality, more_seeds
from splatmeter.lab.compare.noise import NoiseFloor
from splatmeter.lab.compare.power import more_blocks
from splatmeter.lab.compare.quality import QUALITY_GAIN
from splatmeter.lab.compare.ratio import FEWEST_BLOCKS, Estimate, SpeedEvidence
from splatmeter.lab.compare.samples import NOTHING, Finding, Subject, Verdict, VerdictKind

TOLERATED_DIFFERENCE = 0.02


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


def judge(comparison: Comparison) -> Verdict:
    for rule in (_questionable, _quality_lost, _slower, _faster, _no_speed_up):
        verdict = rule(comparison)
        if verdict is not None:
            return verdict
    return _undecided(comparison)


def declared(kind: VerdictKind, reason: str) -> Verdict:
    """Planned or on hold: said by a person, with the reason."""
    if kind not in (VerdictKind.PLANNED, VerdictKind.ON_HOLD):
        raise ValueError(f"only planned and on hold are declared; {kind.value} is measured")
    if not reason.strip():
        raise ValueError(f"{kind.value} needs a reason")
    return Verdict(kind, f"{kind.value.capitalize()}: {reason.strip().rstrip('.')}.")


def verify(first: Comparison, second: Comparison) -> Verdict:
    """The verdict on a repetition: *verified* if both are faster, independent, and overlap."""
    verdict = judge(second)
    if judge(first).kind is not VerdictKind.FASTER or verdict.kind is not VerdictKind.FASTER:
        return verdict
    a, b = first.speed.main.interval_95, second.speed.main.interval_95
    named = first.runs and second.runs
    if (first.reference, first.candidate) != (second.reference, second.candidate):
        missing = "the two comparisons are of different arms"
    elif not named or set(first.runs) & set(second.runs):
        missing = "the two comparisons share runs, so the second is no independent repetition"
    elif second.sequence <= first.sequence:
        missing = "the second comparison is not later than the first"
    elif changed := first.subject.obstacle(second.subject):
        missing = changed
    elif not a.overlaps(b):
        missing = f"the intervals [{a.low:.4f}, {a.high:.4f}] and [{b.low:.4f}, {b.high:.4f}] do not overlap"
    else:
        sentence = (
            f"Verified: {second.candidate} was faster than {second.reference} twice, "
            f"{_ratio(first.speed.main)} and, repeated later, {_ratio(second.speed.main)}."
        )
        return Verdict(VerdictKind.VERIFIED, sentence, verdict.reasons, verdict.below_tolerated_difference)
    return Verdict(verdict.kind, verdict.sentence, (*verdict.reasons, f"Not verified: {missing}."))


def may_stop(comparison: Comparison) -> bool:
    """Whether `--until-decided` may stop: on speed alone, by its anytime-valid interval, or because an
    objection stands that more blocks cannot remove.

    Quality is judged once, when it has stopped. Its bounds hold for one look; they would not if a run ended
    as soon as they please somebody, and they stay honest because the times they are looked at ignore them.
    """
    objections = [f for f in comparison.findings if f.questions_the_verdict and f.kind != QUALITY_GAIN]
    if objections or (comparison.noise is not None and comparison.noise.failed):
        return True
    return _shown_faster(comparison) or any(rule(comparison) for rule in (_slower, _no_speed_up))


def _questionable(comparison: Comparison) -> Verdict | None:
    reasons = [finding.sentence for finding in comparison.findings if finding.questions_the_verdict]
    if comparison.noise is not None and comparison.noise.failed:
        reasons.append(comparison.noise.sentence)
    if comparison.speed.disagreement:
        reasons.append(f"The estimates disagree: {comparison.speed.disagreement}.")
    if not reasons:
        return None
    others = "" if len(reasons) == 1 else f" ({len(reasons) - 1} more)"
    sentence = f"Questionable: {reasons[0]}{others}"
    return _verdict(comparison, VerdictKind.QUESTIONABLE, sentence, tuple(reasons))


def _quality_lost(comparison: Comparison) -> Verdict | None:
    lost = [result for result in comparison.quality if result.quality is Quality.LOST]
    if not lost:
        return None
    speed = f"{comparison.candidate} against {comparison.reference}: {_ratio(comparison.speed.main)}."
    return _verdict(
        comparison,
        VerdictKind.QUALITY_LOST,
        f"Quality lost: {lost[0].sentence}",
        (*(result.sentence for result in lost[1:]), speed),
    )


def _slower(comparison: Comparison) -> Verdict | None:
    estimate = comparison.speed.main
    beyond = -estimate.log_mean - estimate.half_width > _hurdle(comparison)
    if estimate.blocks < FEWEST_BLOCKS or not beyond:
        return None
    return _verdict(
        comparison,
        VerdictKind.SLOWER,
        f"Slower: {comparison.candidate} against {comparison.reference} {_ratio(estimate)}, "
        f"{_times(1 / estimate.ratio)} the time per step.",
    )


def _faster(comparison: Comparison) -> Verdict | None:
    estimate = comparison.speed.main
    if not _shown_faster(comparison) or _quality_obstacle(comparison):
        return None
    return _verdict(
        comparison,
        VerdictKind.FASTER,
        f"Faster: {comparison.candidate} against {comparison.reference} {_ratio(estimate)}.",
        tuple(result.sentence for result in comparison.quality),
    )


def _no_speed_up(comparison: Comparison) -> Verdict | None:
    estimate, tolerated = comparison.speed.main, comparison.tolerated_difference
    if estimate.blocks < FEWEST_BLOCKS or not estimate.interval_90.inside(1 - tolerated, 1 + tolerated):
        return None
    bounds = estimate.interval_90
    return _verdict(
        comparison,
        VerdictKind.NO_SPEED_UP,
        f"No speed-up: {comparison.candidate} against {comparison.reference} {estimate.ratio:.4f}, 90 % "
        f"interval [{bounds.low:.4f}, {bounds.high:.4f}] inside 1 ± {100 * tolerated:.3g} % over "
        f"{estimate.blocks} blocks.",
    )


def _undecided(comparison: Comparison) -> Verdict:
    estimate = comparison.speed.main
    head = f"Undecided: {comparison.candidate} against {comparison.reference} {_ratio(estimate)}"
    obstacle = _quality_obstacle(comparison)
    if _shown_faster(comparison) and obstacle:
        return _undecided_quality(comparison, f"{head}, but {obstacle}")
    more = more_blocks(estimate, comparison.tolerated_difference, _hurdle(comparison))
    if estimate.blocks < FEWEST_BLOCKS:
        more = max(more or 0, FEWEST_BLOCKS - estimate.blocks)
    if more is None:
        advice = "more blocks will hardly decide it: lengthen the runs or use --slices"
    else:
        command = _command(comparison, estimate.blocks + more)
        advice = f"needs about {more} more block{'s' if more != 1 else ''}, all in one session: `{command}`"
    one_sided = estimate.interval_95.low > 1 or estimate.interval_95.high < 1
    if one_sided and estimate.blocks >= FEWEST_BLOCKS and not _shown_faster(comparison):
        head += ", not beyond what the leaning A/A control showed"
    reasons = (*_quality_reasons(comparison), *_notes(comparison))
    return Verdict(VerdictKind.UNDECIDED, f"{head}; {advice}.", reasons, more_blocks=more)


def _command(comparison: Comparison, blocks: int) -> str:
    """What measures the same with this many blocks; the arms of an A/A are one phase with two labels."""
    reference, _, label = comparison.reference.partition("#")
    word = {"": "ab", "unwatched": "overhead"}.get(label, "aa")
    arms = reference if label else f"{reference} {comparison.candidate}"
    until = " --until-decided" if comparison.speed.main.method.startswith("anytime") else ""
    return f"splatmeter lab {word} {arms} --blocks {blocks}{until}"


def _undecided_quality(comparison: Comparison, sentence: str) -> Verdict:
    """Fast enough; what is missing are seeds, and they need no timing."""
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
    reasons = (*_quality_reasons(comparison), *_notes(comparison))
    return Verdict(VerdictKind.UNDECIDED, sentence, reasons, more_seeds=more)


def _shown_faster(comparison: Comparison) -> bool:
    estimate = comparison.speed.main
    beyond = estimate.log_mean - estimate.half_width > _hurdle(comparison)
    return estimate.blocks >= FEWEST_BLOCKS and beyond


def _quality_obstacle(comparison: Comparison) -> str:
    """Why *faster* may not be said yet; empty if nothing stands in the way."""
    if comparison.lacking:
        return f"its quality is not known: {comparison.lacking[0]}"
    if not comparison.quality:
        return "its quality was not compared: no evaluation of the same split at the same step in both arms."
    open_ones = [result for result in comparison.quality if not result.acceptable]
    return f"quality is not settled: {open_ones[0].sentence}" if open_ones else ""


def _quality_reasons(comparison: Comparison) -> tuple[str, ...]:
    open_ones = (result.sentence for result in comparison.quality if not result.acceptable)
    return (*comparison.lacking, *open_ones)


def _hurdle(comparison: Comparison) -> float:
    """What a leaning A/A adds to 1; 0 otherwise."""
    if comparison.noise is None or not math.isfinite(comparison.noise.estimate.half_width):
        return 0.0
    return comparison.noise.hurdle(comparison.speed.main.half_width)


def _verdict(
    comparison: Comparison, kind: VerdictKind, sentence: str, reasons: tuple[str, ...] = ()
) -> Verdict:
    """Adds what is said beside every verdict: notes of the audit, and a difference too small to matter."""
    tolerated = comparison.tolerated_difference
    directed = kind in (VerdictKind.FASTER, VerdictKind.SLOWER)
    below = directed and abs(comparison.speed.main.ratio - 1) < tolerated
    if below:
        sentence = f"{sentence.rstrip('.')}; below the tolerated difference of {100 * tolerated:.3g} %."
    lacking = comparison.lacking if kind is not VerdictKind.FASTER else ()
    told = (*reasons, *lacking, *_notes(comparison))
    return Verdict(kind, sentence, told, below)


def _notes(comparison: Comparison) -> tuple[str, ...]:
    """Of the audit, and of an A/A that leans: said beside every verdict, decided or not."""
    notes = tuple(finding.sentence for finding in comparison.findings if not finding.questions_the_verdict)
    noise = comparison.noise
    leaning = noise is not None and noise.leans and not noise.failed
    return (*notes, noise.sentence) if noise is not None and leaning else notes


def _ratio(estimate: Estimate) -> str:
    bounds = estimate.interval_95
    if not estimate.blocks:
        return "has no block in which both arms have a run that counts"
    if math.isinf(bounds.high):
        return f"{estimate.ratio:.4f} after {estimate.blocks} blocks, no interval yet"
    return f"{estimate.ratio:.4f} [{bounds.low:.4f}, {bounds.high:.4f}] over {estimate.blocks} blocks"


def _times(factor: float) -> str:
    return f"{factor:.3f} ×"
