"""Verdicts on aims other than speed, by rules of the same kind. First match wins.

- memory: questionable, quality lost, slower (by more than the tolerated difference δ), more memory (by more
  than δ), leaner, no gain, undecided. *Leaner* asks that one peak be shown smaller, that no peak be larger by
  more than δ, that speed be not lower by more than δ, each by the 95 % interval, and that quality be held.
- both: as memory; *faster*, *leaner* or *faster and leaner*, whichever is shown.
- time to a quality: later, sooner; quality after a time: worse, better; with quality at the end held.

*No gain* is shown, not assumed: 90 % intervals inside 1 ± δ (of PSNR: inside its tolerance).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from splatmeter.lab.compare.aim_figures import Figure
from splatmeter.lab.compare.comparison import (
    Comparison,
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
    shown_below,
    speed_text,
    undecided_quality,
    with_notes,
)
from splatmeter.lab.compare.power import samples_to_settle
from splatmeter.lab.compare.ratio import FEWEST_BLOCKS, Estimate
from splatmeter.lab.samples.aim import Aim
from splatmeter.lab.samples.verdict_kinds import Verdict, VerdictKind

_GAIN = {Aim.MEMORY: VerdictKind.LEANER, Aim.TIME: VerdictKind.SOONER, Aim.QUALITY: VerdictKind.BETTER}
_LOSS = {
    Aim.MEMORY: VerdictKind.MORE_MEMORY,
    Aim.BOTH: VerdictKind.MORE_MEMORY,
    Aim.TIME: VerdictKind.LATER,
    Aim.QUALITY: VerdictKind.WORSE,
}


def judge_aim(comparison: Comparison) -> Verdict:
    for rule in (questionable, quality_lost, _slower, _lost, _gained, _no_gain):
        verdict = rule(comparison)
        if verdict is not None:
            return verdict
    return _undecided(comparison)


def settled(comparison: Comparison) -> bool:
    """Whether more blocks could tell nothing more than is known of speed and peaks."""
    return bool(_slower(comparison) or _lost(comparison) or _gain(comparison) or _no_gain(comparison))


def peak_shown(figure: Figure, tolerated_difference: float) -> VerdictKind | None:
    """What is shown of one peak alone; None while nothing is."""
    if _shown_lost(figure, math.log1p(-tolerated_difference)):
        return VerdictKind.MORE_MEMORY
    if figure.lacking:
        return None
    if _shown_gained(figure):
        return VerdictKind.LEANER
    bounds = figure.estimate.interval_90
    equal = _enough(figure.estimate) and bounds.inside(1 - tolerated_difference, 1 + tolerated_difference)
    return VerdictKind.NO_GAIN if equal else None


def _margin(comparison: Comparison) -> float:
    """How much a figure may lose without mattering, as a log ratio below 0."""
    share = comparison.tolerance if comparison.aim is Aim.QUALITY else comparison.tolerated_difference
    return math.log1p(-share)


def _slower(comparison: Comparison) -> Verdict | None:
    """Less memory may cost no speed; a time to a quality has the speed in it already."""
    if not comparison.aim.of_memory:
        return None
    least = math.log1p(-comparison.tolerated_difference)
    slow = scenes_that_lose(comparison, least) or machines_that_lose(comparison, least)
    if not slow and not shown_below(comparison.speed.main, least):
        return None
    where = f" on {', '.join(part.scene or part.machine for part, _ in slow)}" if slow else ""
    told = f"{ratio_text(slow[0][1])} there; {speed_text(comparison)}" if slow else speed_text(comparison)
    allowed = f"more than the {100 * comparison.tolerated_difference:.3g} % that less memory may cost"
    sentence = f"Slower{where}: {comparison.arms} {told}, {allowed}."
    return with_notes(comparison, VerdictKind.SLOWER, sentence, _told(comparison))


def _lost(comparison: Comparison) -> Verdict | None:
    """In memory beyond the margin; in time and quality on the wrong side of 1, beyond what an A/A showed."""
    least = _margin(comparison) if comparison.aim.of_memory else 0.0
    for place, figure in enumerate(comparison.figures):
        parts = [(part, part.figures[place]) for part in comparison.scenes if place < len(part.figures)]
        bad = [(part, own) for part, own in parts if _shown_lost(own, least, len(parts))]
        if not bad and not _shown_lost(figure, least):
            continue
        kind = _LOSS[comparison.aim]
        where = f" on {', '.join(part.scene for part, _ in bad)}" if bad else ""
        shown = bad[0][1] if bad else figure
        figures = f"{shown.name} {shown.values}, {shown.ratio}"
        sentence = f"{kind.value.capitalize()}{where}: {comparison.arms}, {figures}."
        return with_notes(comparison, kind, sentence, _told(comparison))
    return None


def _shown_lost(figure: Figure, least: float, shared_by: int = 1) -> bool:
    if figure.lacking or figure.no_loss:
        return False
    return shown_below(figure.estimate, least - hurdle(figure.noise, figure.estimate), shared_by)


def _gained(comparison: Comparison) -> Verdict | None:
    kind = _gain(comparison)
    if kind is None or quality_obstacle(comparison):
        return None
    figures = _told(comparison)
    sentence = f"{kind.value.capitalize()}: {comparison.arms}, {_joined(comparison.figures)}"
    if comparison.aim.of_memory:
        bounds = comparison.speed.main.interval_95
        speed = f"speed {speed_text(comparison)}"
        if bounds.high < 1:
            speed += f", slower, but by less than {100 * comparison.tolerated_difference:.3g} %"
        sentence += f"; {speed}"
    reasons = (*figures, *(result.sentence for result in comparison.quality))
    return with_notes(comparison, kind, f"{sentence}.", reasons)


def _gain(comparison: Comparison) -> VerdictKind | None:
    """What is shown, quality aside."""
    if any(figure.lacking for figure in comparison.figures) or not comparison.figures:
        return None
    gained = any(_shown_gained(figure) for figure in comparison.figures)
    if not comparison.aim.of_memory:
        return _GAIN[comparison.aim] if gained else None
    harmless = all(figure.low > _margin(comparison) for figure in comparison.figures)
    leaner = gained and harmless and _as_fast(comparison)
    if comparison.aim is Aim.MEMORY:
        return VerdictKind.LEANER if leaner else None
    estimate = comparison.speed.main
    faster = _enough(estimate) and estimate.log_mean - estimate.half_width > hurdle(
        comparison.noise, estimate
    )
    if faster and leaner:
        return VerdictKind.FASTER_AND_LEANER
    return VerdictKind.FASTER if faster and harmless else VerdictKind.LEANER if leaner else None


def _shown_gained(figure: Figure) -> bool:
    beyond = figure.low > hurdle(figure.noise, figure.estimate)
    return _enough(figure.estimate) and beyond and not figure.no_gain


def _as_fast(comparison: Comparison) -> bool:
    """Not lower by more than the margin, by the 95 % interval: shown, not assumed."""
    estimate = comparison.speed.main
    least = math.log1p(-comparison.tolerated_difference)
    return _enough(estimate) and estimate.log_mean - estimate.half_width > least


def _no_gain(comparison: Comparison) -> Verdict | None:
    margin = comparison.tolerance if comparison.aim is Aim.QUALITY else comparison.tolerated_difference
    estimates = [figure.estimate for figure in comparison.figures]
    open_ones = any(figure.lacking or figure.no_gain or figure.no_loss for figure in comparison.figures)
    estimates += [comparison.speed.main] if comparison.aim.of_memory else []
    equal = all(_enough(e) and e.interval_90.inside(1 - margin, 1 + margin) for e in estimates)
    if open_ones or not comparison.figures or not equal:
        return None
    sentence = (
        f"No gain: {comparison.arms}, {_joined(comparison.figures)}: inside 1 ± {100 * margin:.3g} % by 90 % "
        "intervals."
    )
    return with_notes(comparison, VerdictKind.NO_GAIN, sentence, _told(comparison))


def _undecided(comparison: Comparison) -> Verdict:
    shown = f": {_joined(comparison.figures)}" if comparison.figures else ""
    head = f"Undecided: {comparison.arms}{shown}"
    obstacle = quality_obstacle(comparison)
    if _gain(comparison) is not None and obstacle:
        return undecided_quality(comparison, f"{head}, but {obstacle}")
    missing = [words for figure in comparison.figures for words in (*figure.lacking, *figure.no_gain)]
    reasons = (*missing, *_told(comparison), *quality_reasons(comparison), *notes(comparison))
    if missing:
        return Verdict(VerdictKind.UNDECIDED, f"{head}; {missing[0]}", reasons)
    if comparison.aim.of_memory and not _as_fast(comparison):
        head += f"; that it is as fast is not shown: speed {speed_text(comparison)}"
    more = _more(comparison)
    if more is None:
        advice = "more blocks will hardly decide it: lengthen the runs"
    else:
        asked = command(comparison, comparison.speed.main.blocks + more)
        advice = f"needs about {more} more block{'s' if more != 1 else ''}, all in one session: `{asked}`"
        if not comparison.aim.of_memory:
            advice += ", each with a seed of its own (seeds in protocol.toml)"
    return Verdict(VerdictKind.UNDECIDED, f"{head}; {advice}.", reasons, more_blocks=more)


def _more(comparison: Comparison) -> int | None:
    """About how many more blocks (or seeds) until what is open is answered, were the estimates the truth."""
    wanted: list[int | None] = []
    if comparison.aim.of_memory and not _as_fast(comparison):
        estimate = comparison.speed.main
        wanted.append(_settles(estimate, estimate.log_mean - math.log1p(-comparison.tolerated_difference)))
    if not any(_shown_gained(figure) for figure in comparison.figures):
        wanted += [_settles(figure.estimate, figure.estimate.log_mean) for figure in comparison.figures]
    known = [more for more in wanted if more is not None]
    return max(1, min(known)) if known else None


def _settles(estimate: Estimate, distance: float) -> int | None:
    if estimate.blocks < 2:
        return FEWEST_BLOCKS - estimate.blocks
    left = abs(distance) - estimate.resolution
    if left <= 0:
        return None
    needed = samples_to_settle(left, estimate.log_deviation, 0.975)
    return None if needed is None else max(0, needed - estimate.blocks)


def _enough(estimate: Estimate) -> bool:
    return estimate.blocks >= FEWEST_BLOCKS


def _told(comparison: Comparison) -> tuple[str, ...]:
    floors = [f"{f.name}: {f.noise.sentence}" for f in comparison.figures if f.noise and f.noise.leans]
    return (*(figure.sentence for figure in comparison.figures), *floors)


def _joined(figures: Sequence[Figure]) -> str:
    """All figures in a row: name, what it was and is, the ratio."""
    return "; ".join(f"{figure.name} {figure.values}, {figure.ratio}" for figure in figures)
