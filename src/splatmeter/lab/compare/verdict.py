"""The closed set of verdicts, decided by rules that were written down before the runs. First match wins:
questionable, quality lost, slower, faster, no speed-up, undecided; aim_verdict.py has those of other aims.

*Faster* and *slower* ask that the whole 95 % interval lie on one side of 1 and, where an A/A leans, beyond
what the A/A showed. The A/A is otherwise an estimate of noise (noise.py) and no hurdle. Where a protocol has
several scenes, the interval is of their geometric mean, and one scene that is shown to be slower is enough.
Where machines disagree (machines.py) there is no common interval: *faster* must be shown by each of them.
"""

from __future__ import annotations

import math

from splatmeter.lab.compare import aim_verdict
from splatmeter.lab.compare.comparison import TOLERATED_DIFFERENCE as TOLERATED_DIFFERENCE
from splatmeter.lab.compare.comparison import Comparison as Comparison
from splatmeter.lab.compare.comparison import (
    by_machine,
    command,
    hurdle,
    machines_that_lose,
    notes,
    quality_lost,
    quality_obstacle,
    quality_reasons,
    questionable,
    ratio_text,
    scenes_that_lose,
    speed_text,
    undecided_quality,
    with_notes,
)
from splatmeter.lab.compare.power import more_blocks
from splatmeter.lab.compare.quality import QUALITY_GAIN
from splatmeter.lab.compare.ratio import FEWEST_BLOCKS, Interval
from splatmeter.lab.samples.aim import Aim
from splatmeter.lab.samples.verdict_kinds import GAINS, Verdict, VerdictKind


def judge(comparison: Comparison) -> Verdict:
    if comparison.aim is not Aim.SPEED:
        return aim_verdict.judge_aim(comparison)
    for rule in (questionable, quality_lost, _slower, _machines_apart, _faster, _no_speed_up):
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
    """The verdict on a repetition: *verified* if both show the same gain, are independent, and overlap."""
    verdict, before = judge(second), judge(first)
    if verdict.kind not in GAINS or before.kind is not verdict.kind:
        return verdict
    named = first.runs and second.runs
    if (first.reference, first.candidate) != (second.reference, second.candidate):
        missing = "the two comparisons are of different arms"
    elif not named or set(first.runs) & set(second.runs):
        missing = "the two comparisons share runs, so the second is no independent repetition"
    elif second.sequence <= first.sequence:
        missing = "the second comparison is not later than the first"
    elif changed := first.subject.obstacle(second.subject):
        missing = changed
    elif apart := _apart(first, second, verdict.kind):
        missing = apart
    else:
        sentence = (
            f"Verified: {second.candidate} was {verdict.kind.value} than {second.reference} twice, "
            f"{_decisive(first, verdict.kind)} and, repeated later, {_decisive(second, verdict.kind)}."
        )
        below = verdict.below_tolerated_difference
        return Verdict(VerdictKind.VERIFIED, sentence, verdict.reasons, below, gain=verdict.kind)
    return Verdict(verdict.kind, verdict.sentence, (*verdict.reasons, f"Not verified: {missing}."))


def _apart(first: Comparison, second: Comparison, kind: VerdictKind) -> str:
    """Two intervals of one quantity that exclude each other; empty if all overlap."""
    pairs = [(a, b) for a, b in zip(_intervals(first, kind), _intervals(second, kind), strict=False)]
    for a, b in pairs:
        if not a.overlaps(b):
            return f"the intervals [{a.low:.4f}, {a.high:.4f}] and [{b.low:.4f}, {b.high:.4f}] do not overlap"
    return ""


def _intervals(comparison: Comparison, kind: VerdictKind) -> list[Interval]:
    parts = comparison.machines if comparison.apart else (comparison,)
    speed = [part.speed.main.interval_95 for part in parts] if kind in _OF_SPEED else []
    return [*speed, *(figure.estimate.interval_95 for figure in comparison.figures)]


_OF_SPEED = (VerdictKind.FASTER, VerdictKind.FASTER_AND_LEANER)


def _decisive(comparison: Comparison, kind: VerdictKind) -> str:
    """The ratio that the verdict rests on."""
    if kind in _OF_SPEED:
        return by_machine(comparison) if comparison.apart else ratio_text(comparison.speed.main)
    return ", ".join(f"{figure.name} {figure.ratio}" for figure in comparison.figures)


def may_stop(comparison: Comparison) -> bool:
    """Whether `--until-decided` may stop: on speed (and memory) alone, by anytime-valid intervals, or because
    an objection stands that more blocks cannot remove.

    Quality is judged once, when it has stopped. Its bounds hold for one look; they would not if a run ended
    as soon as they please somebody, and they stay honest because the times they are looked at ignore them.
    """
    objections = [f for f in comparison.findings if f.questions_the_verdict and f.kind != QUALITY_GAIN]
    if objections or (comparison.noise is not None and comparison.noise.failed):
        return True
    if comparison.aim is not Aim.SPEED:
        return aim_verdict.settled(comparison)
    return _shown_faster(comparison) or any(rule(comparison) for rule in (_slower, _no_speed_up))


def speed_shown(comparison: Comparison) -> VerdictKind | None:
    """What is shown about speed alone, without quality and objections; None while nothing is."""
    if _slower(comparison):
        return VerdictKind.SLOWER
    if _shown_faster(comparison):
        return VerdictKind.FASTER
    return VerdictKind.NO_SPEED_UP if _no_speed_up(comparison) else None


def _slower(comparison: Comparison) -> Verdict | None:
    estimate = comparison.speed.main
    slow = scenes_that_lose(comparison, 0.0)
    if slow:
        part, own = slow[0]
        others = f", and on {', '.join(other.scene for other, _ in slow[1:])}" if slow[1:] else ""
        return with_notes(
            comparison,
            VerdictKind.SLOWER,
            f"Slower on {part.scene}{others}: {comparison.arms} {ratio_text(own)} there; "
            f"{speed_text(comparison)}.",
        )
    lost = machines_that_lose(comparison, 0.0)
    if lost:
        names = " and ".join(part.machine for part, _ in lost)
        sentence = f"Slower on {names}: {comparison.arms} {by_machine(comparison)}."
        return with_notes(comparison, VerdictKind.SLOWER, sentence)
    beyond = -estimate.log_mean - estimate.half_width > hurdle(comparison.noise, estimate)
    if estimate.blocks < FEWEST_BLOCKS or not beyond:
        return None
    return with_notes(
        comparison,
        VerdictKind.SLOWER,
        f"Slower: {comparison.arms} {speed_text(comparison)}, {1 / estimate.ratio:.3f} × the time per step.",
    )


def _machines_apart(comparison: Comparison) -> Verdict | None:
    """Without a common ratio: each machine speaks for itself, and a claim needs every one of them."""
    if not comparison.apart or comparison.agreement is None:
        return None
    ratios, why = by_machine(comparison), comparison.agreement.sentence
    obstacle = quality_obstacle(comparison)
    if all(_shown_faster(part) for part in comparison.machines) and not obstacle:
        count = len(comparison.machines)
        return with_notes(
            comparison,
            VerdictKind.FASTER,
            f"Faster on each of {count} machines, which do not share one ratio: {comparison.arms} {ratios}.",
            tuple(result.sentence for result in comparison.quality),
        )
    advice = "" if math.isnan(comparison.agreement.chance) else " What holds on one machine is not pooled."
    sentence = f"Undecided: {comparison.arms} {ratios}. {why}{advice}"
    return Verdict(VerdictKind.UNDECIDED, sentence, (*quality_reasons(comparison), *notes(comparison)))


def _faster(comparison: Comparison) -> Verdict | None:
    if not _shown_faster(comparison) or quality_obstacle(comparison):
        return None
    return with_notes(
        comparison,
        VerdictKind.FASTER,
        f"Faster: {comparison.arms} {speed_text(comparison)}.",
        tuple(result.sentence for result in comparison.quality),
    )


def _no_speed_up(comparison: Comparison) -> Verdict | None:
    estimate, tolerated = comparison.speed.main, comparison.tolerated_difference
    if estimate.blocks < FEWEST_BLOCKS or not estimate.interval_90.inside(1 - tolerated, 1 + tolerated):
        return None
    bounds = estimate.interval_90
    return with_notes(
        comparison,
        VerdictKind.NO_SPEED_UP,
        f"No speed-up: {comparison.arms} {estimate.ratio:.4f}, 90 % "
        f"interval [{bounds.low:.4f}, {bounds.high:.4f}] inside 1 ± {100 * tolerated:.3g} % over "
        f"{estimate.blocks} blocks.",
    )


def _undecided(comparison: Comparison) -> Verdict:
    estimate = comparison.speed.main
    head = f"Undecided: {comparison.arms} {speed_text(comparison)}"
    obstacle = quality_obstacle(comparison)
    if _shown_faster(comparison) and obstacle:
        return undecided_quality(comparison, f"{head}, but {obstacle}")
    more = more_blocks(estimate, comparison.tolerated_difference, hurdle(comparison.noise, estimate))
    if estimate.blocks < FEWEST_BLOCKS:
        more = max(more or 0, FEWEST_BLOCKS - estimate.blocks)
    if more is None:
        advice = "more blocks will hardly decide it: lengthen the runs or use --slices"
    else:
        asked = command(comparison, estimate.blocks + more)
        advice = f"needs about {more} more block{'s' if more != 1 else ''}, all in one session: `{asked}`"
    one_sided = estimate.interval_95.low > 1 or estimate.interval_95.high < 1
    if one_sided and estimate.blocks >= FEWEST_BLOCKS and not _shown_faster(comparison):
        head += ", not beyond what the leaning A/A control showed"
    reasons = (*quality_reasons(comparison), *notes(comparison))
    return Verdict(VerdictKind.UNDECIDED, f"{head}; {advice}.", reasons, more_blocks=more)


def _shown_faster(comparison: Comparison) -> bool:
    estimate = comparison.speed.main
    beyond = estimate.log_mean - estimate.half_width > hurdle(comparison.noise, estimate)
    return estimate.blocks >= FEWEST_BLOCKS and beyond
