"""From the events of one run to its result: pure functions, so that a result can be made again from the
evidence.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from splatmeter.events import Densified, Evaluated, Failed, Finished, Progress, Saved, Started, Warned
from splatmeter.lab.executor import Arrival
from splatmeter.lab.record.result import RunEvaluation, RunResult, RunStart, RunTiming, SavedModel, Window
from splatmeter.lab.samples.run_sample import Clocks, RatePoint


@dataclass(frozen=True, slots=True)
class Timing:
    """One number per run, and what it was taken from."""

    steps: int
    seconds: float
    measured_steps: int
    gaussian_steps: float

    @property
    def rate(self) -> float:
        return self.steps / self.seconds if self.seconds > 0 else math.nan


def timing(progress: Sequence[Progress], window: Window) -> Timing | None:
    """Time from step W to step N; stretches whose clock stood still were cut out and are not counted.

    Where steps were cut out, the time of the others is scaled to N - W, so that arms stay comparable.
    """
    border = window.first + window.warm_up
    inside = [item for item in progress if border <= item.step <= window.last]
    seconds, measured, gaussian_steps = 0.0, 0, 0.0
    for before, after in pairwise(inside):
        passed = after.clock_seconds - before.clock_seconds
        if passed > 0 and after.step > before.step:
            seconds += passed
            measured += after.step - before.step
            gaussian_steps += (after.step - before.step) * 0.5 * (before.gaussians + after.gaussians)
    if not measured:
        return None
    steps = max(1, window.last - border)
    return Timing(steps, seconds * steps / measured, measured, gaussian_steps)


def clocks(arrivals: Sequence[Arrival], window: Window, ended: float) -> Clocks | None:
    """The training clock beside the lab's watch; `ended` is when the process did."""
    border = window.first + window.warm_up
    inside = [a for a in arrivals if isinstance(a.event, Progress) and border <= a.event.step <= window.last]
    measured = timing([a.event for a in inside if isinstance(a.event, Progress)], window)
    if measured is None:
        return None
    warm_up = window.warm_up * measured.seconds / measured.steps
    return Clocks(
        start_up_seconds=max(0.0, inside[0].seconds - warm_up),
        wall_seconds=max(0.0, ended - inside[0].seconds),
        on_clock_seconds=measured.seconds * measured.measured_steps / measured.steps,
        covered=measured.measured_steps / measured.steps,
    )


def clock_at(progress: Sequence[Progress], window: Window, steps: Iterable[int]) -> dict[str, float]:
    """Seconds of the training clock from the start of the run to each of these steps, by its reports.

    A straight line between two reports. Stretches that were cut out, and the steps before the first report
    of a run whose clock did not begin at 0, take as long as the others do on average.
    """
    if len(progress) < 2:
        return {}
    whole = timing(progress, Window(window.first, window.last, 0))
    each = whole.seconds / whole.steps if whole else math.nan
    known = progress[0].clock_seconds if window.first == 0 else 0.0
    passed = [known if known > 0 else (progress[0].step - window.first) * each]
    for before, after in pairwise(progress):
        seconds, count = after.clock_seconds - before.clock_seconds, after.step - before.step
        passed.append(passed[-1] + (seconds if seconds > 0 else max(0, count) * each))
    reports = [item.step for item in progress]
    found: dict[str, float] = {}
    for step in steps:
        place = bisect.bisect_left(reports, step)
        if place == len(reports) or not math.isfinite(passed[place]):
            continue
        first = (window.first, 0.0) if place == 0 else (reports[place - 1], passed[place - 1])
        share = (step - first[0]) / max(1, reports[place] - first[0])
        found[str(step)] = first[1] + share * (passed[place] - first[1])
    return found


def rates(progress: Sequence[Progress], pieces: int = 20) -> tuple[RatePoint, ...]:
    """Speed over about twenty stretches, to see it collapse."""
    stride = max(1, len(progress) // pieces)
    chosen = progress[::stride]
    found: list[RatePoint] = []
    for before, after in pairwise(chosen):
        passed = after.clock_seconds - before.clock_seconds
        if passed > 0 and after.step > before.step:
            rate = (after.step - before.step) / passed
            found.append(RatePoint(after.step, after.gaussians, rate))
    return tuple(found)


def passes(progress: Iterable[Progress], window: Window) -> dict[str, float]:
    """Seconds per pass inside the timed window."""
    total: dict[str, float] = {}
    for item in progress:
        if window.first + window.warm_up < item.step <= window.last:
            for name, seconds in item.passes.items():
                total[name] = total.get(name, 0.0) + seconds
    return total


def summarize(arrivals: Sequence[Arrival], window: Window) -> RunResult:
    """Everything the events tell; what they do not tell is None, never 0."""
    events = [arrival.event for arrival in arrivals]
    progress = [event for event in events if isinstance(event, Progress)]
    started = next((event for event in events if isinstance(event, Started)), None)
    finished = next((event for event in events if isinstance(event, Finished)), None)
    failed = next((event for event in events if isinstance(event, Failed)), None)
    last = progress[-1] if progress else None
    loss = finished.loss if finished and not math.isnan(finished.loss) else (last.loss if last else math.nan)
    first_count = (started.gaussians if started else 0) or (progress[0].gaussians if progress else 0)
    last_count = (finished.gaussians if finished else 0) or (last.gaussians if last else 0)
    return RunResult(
        status=_status(finished, failed),
        message=failed.message if failed else "",
        timing=_timing(progress, window),
        window=window,
        first_iteration_seconds=next((a.seconds for a in arrivals if isinstance(a.event, Progress)), None),
        passes=passes(progress, window),
        rates=rates(progress),
        started=_started(started),
        last_step=max((event.step for event in progress), default=window.first),
        gaussians_start=first_count or None,
        gaussians_end=last_count or None,
        loss=_known(loss),
        loss_last_100=_known(finished.loss_last_100) if finished else None,
        mean_opacity=_known(_opacity(finished, events)),
        evaluations=tuple(_evaluation(event) for event in events if isinstance(event, Evaluated)),
        clock_at=clock_at(progress, window, _judged_steps(events)),
        peak_bytes=dict(finished.peak_memory_bytes) if finished else {},
        models=_models(events),
        warnings=tuple(event.message for event in events if isinstance(event, Warned)),
    )


def _timing(progress: Sequence[Progress], window: Window) -> RunTiming | None:
    found = timing(progress, window)
    if found is None:
        return None
    per_second = found.gaussian_steps / found.measured_steps * found.rate
    return RunTiming(found.steps, found.seconds, found.measured_steps, found.rate, per_second)


def _known(value: float) -> float | None:
    """A result file has no NaN."""
    return value if math.isfinite(value) else None


def _opacity(finished: Finished | None, events: Sequence[object]) -> float:
    densified = [event for event in events if isinstance(event, Densified)]
    opacity = finished.mean_opacity if finished else math.nan
    return densified[-1].mean_opacity if math.isnan(opacity) and densified else opacity


def _judged_steps(events: Sequence[object]) -> list[int]:
    """Steps that were evaluated, or whose model was saved to be."""
    judged = [event.step for event in events if isinstance(event, Evaluated)]
    return sorted({*judged, *(model.step for model in _models(events))})


def _status(finished: Finished | None, failed: Failed | None) -> str:
    if failed or not finished:
        return "failed"
    return "finished" if finished.reason == "completed" else finished.reason


def _started(event: Started | None) -> RunStart:
    if event is None:
        return RunStart()
    return RunStart(
        config=dict(event.config),
        train_images=tuple(event.train_images),
        test_images=tuple(event.test_images),
        ancestor_images=tuple(event.ancestor_images),
        hashes=dict(event.hashes),
        environment=dict(event.environment),
    )


def _evaluation(event: Evaluated) -> RunEvaluation:
    return RunEvaluation(
        step=event.step,
        split=event.split,
        metrics=dict(event.metrics),
        images=tuple(sorted(event.per_view)),
        peak_memory_bytes=event.peak_memory_bytes or None,
        exposure=event.exposure,
    )


def _models(events: Sequence[object]) -> tuple[SavedModel, ...]:
    saved = [event for event in events if isinstance(event, Saved) and event.content == "model"]
    return tuple(SavedModel(event.path, event.sha256, event.step) for event in saved)
