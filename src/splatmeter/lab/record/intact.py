"""Does a result still say what its evidence says? Results are made from events; they can be made again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from splatmeter.lab.json_files import read_json
from splatmeter.lab.record.result import RunEvaluation, RunResult, RunTiming, evaluations_from, result_from
from splatmeter.lab.record.run_folder import arrivals
from splatmeter.lab.record.summary import summarize
from splatmeter.lab.samples.run_sample import OURS

_SHAPE: Mapping[str, tuple[type, ...]] = {
    "identity": (dict,),
    "status": (str,),
    "message": (str,),
    "timing": (dict, type(None)),
    "rates": (list,),
    "passes": (dict,),
    "evaluations": (list,),
    "last_step": (int,),
    "started": (dict,),
    "models": (list,),
    "warnings": (list,),
    "peaks": (list,),
}
_NUMBERS = {"identity": ("block", "attempt", "place", "seed"), "timing": ("seconds", "steps")}
_TEXTS = ("session", "arm", "phase", "machine")


def objection(folder: Path, record: Any, judged: Path) -> str:
    """Why this result must not be used, in a sentence; empty if it may."""
    if not isinstance(record, dict):
        return "its result.json is damaged or was never finished."
    broken = _misshapen(record)
    if broken:
        return f"its result.json is damaged: {broken}."
    try:
        result = result_from(record)
        changed = _changed(folder, result) or _moved(folder, result) or _rewritten(result, judged)
    except (TypeError, KeyError, ValueError, AttributeError):
        return "its result.json is damaged: a field has another form than the lab writes."
    return f"its result.json was changed after the run: {changed}." if changed else ""


def _misshapen(record: Mapping[str, Any]) -> str:
    for name, kinds in _SHAPE.items():
        if not isinstance(record.get(name), kinds):
            return f"{name} is missing or no {kinds[0].__name__}"
    for name, fields in _NUMBERS.items():
        for key in fields if record[name] else ():
            if isinstance(record[name].get(key), bool) or not isinstance(record[name].get(key), (int, float)):
                return f"{name}.{key} is no number"
    if not all(isinstance(record["identity"].get(key), str) for key in _TEXTS):
        return "its identity is not whole"
    if record["timing"] and not 0 < record["timing"]["seconds"] < math.inf:
        return "timing.seconds is no time"
    return ""


def _changed(folder: Path, result: RunResult) -> str:
    """What the events give against what the result says; results of older versions have no window."""
    if result.window is None:
        return ""
    again = summarize(arrivals(folder), result.window)
    if not result.sliced and (words := _differs(again.timing, result.timing)):
        return words
    for name in ("last_step", "gaussians_start", "gaussians_end", "loss"):
        stated, found = getattr(result, name), getattr(again, name)
        if not _same(found, stated):
            return f"it says {name} {stated!r} where its events give {found!r}"
    told = result.clock_at  # results of older versions have none
    if told is not None and not result.sliced:
        for step, seconds in (again.clock_at or {}).items():
            if not _same(seconds, told.get(step)):
                return f"it says {told.get(step)!r} s at step {step} where its events give {seconds!r}"
    printed = [_figures(item) for item in result.evaluations if item.judged_by != OURS]
    if printed != [_figures(item) for item in again.evaluations]:
        return "its metrics are not those that its events tell"
    if result.finished and not again.finished:
        return f"it says that the run finished; its events end with {again.message or again.status!r}"
    return ""


def _moved(folder: Path, result: RunResult) -> str:
    """Where it ran is written down twice, before the run and after it."""
    began = read_json(folder / "environment.json")
    machine = began.get("machine") if isinstance(began, dict) else None
    if machine in (None, result.identity.machine):
        return ""
    return f"it says machine {result.identity.machine} where the run began on {machine}"


def _differs(again: RunTiming | None, timing: RunTiming | None) -> str:
    for name in ("seconds", "steps", "measured_steps", "steps_per_second"):
        found, stated = getattr(again, name, None), getattr(timing, name, None)
        if not _same(found, stated):
            return f"it says {name} {stated!r} where its events give {found!r}"
    return ""


def _rewritten(result: RunResult, judged: Path) -> str:
    """Metrics of our own, against the file that they were copied from, where that is still there."""
    for item in result.evaluations:
        if item.judged_by != OURS or not item.judged_in:
            continue
        kept = read_json(judged / f"{item.judged_in}.json")
        if not isinstance(kept, dict):
            continue
        if _figures(item)[1:] not in [_figures(found)[1:] for found in evaluations_from(kept)]:
            return f"its metrics at step {item.step} are not those that were computed for its model"
    return ""


def _figures(item: RunEvaluation) -> tuple[Any, ...]:
    metrics = {k: v for k, v in item.metrics.items() if v is not None and math.isfinite(v)}
    return item.step, item.split, item.exposure, tuple(sorted(metrics.items()))


def _same(a: Any, b: Any) -> bool:
    """Not-a-number is null in a file."""
    unknown = [value is None or (isinstance(value, float) and math.isnan(value)) for value in (a, b)]
    if any(unknown):
        return all(unknown)
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
