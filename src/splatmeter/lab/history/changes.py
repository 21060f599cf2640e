"""What changed, by the rules of the lab and by nothing else: one comparison inside one session."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from splatmeter.lab.audit.untold_memory import UNTOLD
from splatmeter.lab.compare.aim_verdict import peak_shown
from splatmeter.lab.compare.comparison import Comparison, questionable
from splatmeter.lab.compare.metric import MetricResult, Quality
from splatmeter.lab.compare.verdict import judge, speed_shown, verify
from splatmeter.lab.history.readings import step_of
from splatmeter.lab.history.tracks import METRICS, Against, Change, Reading
from splatmeter.lab.judgement.verdicts import Judgements
from splatmeter.lab.samples.aim import Aim
from splatmeter.lab.samples.verdict_kinds import VerdictKind
from splatmeter.lab.session.session_plan import SessionPlan

_PEAKS = {"training_peak": "training peak", "evaluation_peak": "evaluation peak"}
_CHANGES = {
    VerdictKind.FASTER: Change.BETTER,
    VerdictKind.SLOWER: Change.WORSE,
    VerdictKind.NO_SPEED_UP: Change.SAME,
    VerdictKind.LEANER: Change.BETTER,
    VerdictKind.MORE_MEMORY: Change.WORSE,
    VerdictKind.NO_GAIN: Change.SAME,
    None: Change.OPEN,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Compared:
    """Two phases in one session: judged by their aim, and by their peaks as well."""

    own: Comparison
    peaks: Comparison
    against: Against


class SessionComparisons:
    """Remembers what earlier sessions said of the same pair, so that a repetition can verify it."""

    def __init__(self, judgements: Judgements) -> None:
        self._judgements = judgements
        self._before: dict[tuple[str, str], Comparison] = {}
        self._found: dict[tuple[str, str, str], Compared] = {}

    def compared(self, plan: SessionPlan, reference: str, candidate: str) -> Compared:
        """Asked in the order of sessions; the labels are those of phases."""
        key = (plan.session, reference, candidate)
        if key not in self._found:
            own = self._judgements.comparison(reference, candidate, [plan.session])
            both = own if own.aim.of_memory or plan.slices else self._with_peaks(plan, reference, candidate)
            before = self._before.get((reference, candidate))
            verdict = verify(before, own) if before is not None else judge(own)
            if reference != candidate:
                self._before[reference, candidate] = own
            bounds = own.speed.main.interval_95
            told = (own.speed.main.ratio, bounds.low, bounds.high, own.speed.main.blocks)
            self._found[key] = Compared(own, both, Against(reference, *told, {}, verdict))
        return self._found[key]

    def _with_peaks(self, plan: SessionPlan, reference: str, candidate: str) -> Comparison:
        return self._judgements.comparison(reference, candidate, [plan.session], Aim.BOTH)


def against_in_scene(found: Compared, scene: str, readings: Mapping[str, Reading], control: bool) -> Against:
    """With its changes marked; each of several scenes is judged as if it were alone, the verdict is theirs
    together. An A/A shows noise, and noise is no change.
    """
    own = _part(found.own, scene)
    speed = own.speed.main
    bounds = speed.interval_95
    return dataclasses.replace(
        found.against,
        ratio=speed.ratio,
        low=bounds.low,
        high=bounds.high,
        blocks=speed.blocks,
        changes={} if control else _changes(found, scene, readings),
    )


def _part(whole: Comparison, scene: str) -> Comparison:
    return next((part for part in whole.scenes if part.scene == scene), whole)


def _changes(found: Compared, scene: str, readings: Mapping[str, Reading]) -> dict[str, Change]:
    own, peaks = _part(found.own, scene), _part(found.peaks, scene)
    doubted = questionable(found.own) is not None
    marks = {"speed": _CHANGES[speed_shown(own)]}
    for name in METRICS:
        if name in readings:
            marks[name] = _quality(own.quality, name, step_of(readings[name].basis))
    figures = {figure.name: figure for figure in peaks.figures}
    untold = any(finding.kind == UNTOLD for finding in found.peaks.findings)
    for name, figure_name in _PEAKS.items():
        figure = figures.get(figure_name)
        if name in readings and figure is not None:
            failed = figure.noise is not None and figure.noise.failed
            shown = _CHANGES[peak_shown(figure, own.tolerated_difference)]
            marks[name] = Change.DOUBTED if untold or failed else shown
    known = {name: mark for name, mark in marks.items() if name in readings}
    return {name: Change.DOUBTED if doubted else mark for name, mark in known.items()}


def _quality(results: tuple[MetricResult, ...], metric: str, step: int) -> Change:
    found = next((result for result in results if (result.metric, result.step) == (metric, step)), None)
    if found is None or found.quality is Quality.UNDECIDED:
        return Change.OPEN
    if found.quality is Quality.LOST:
        return Change.WORSE
    return Change.BETTER if found.gained else Change.SAME
