"""Does a result still say what its evidence says? Results are made from events; they can be made again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from splatmeter.lab.atomic import read_json
from splatmeter.lab.record.run_folder import arrivals
from splatmeter.lab.record.summary import Window, summarize

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
        changed = _changed(folder, record) or _moved(folder, record) or _rewritten(record, judged)
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


def _changed(folder: Path, record: Mapping[str, Any]) -> str:
    """What the events give against what the result says; results of older versions have no window."""
    if not isinstance(record.get("window"), dict):
        return ""
    again = summarize(arrivals(folder), Window(**record["window"]))
    if not record.get("sliced") and (words := _differs(again["timing"], record["timing"])):
        return words
    for name in ("last_step", "gaussians_start", "gaussians_end", "loss"):
        if not _same(again[name], record.get(name)):
            return f"it says {name} {record.get(name)!r} where its events give {again[name]!r}"
    told = record.get("clock_at")  # results of older versions have none
    if isinstance(told, dict) and not record.get("sliced"):
        for step, seconds in again["clock_at"].items():
            if not _same(seconds, told.get(step)):
                return f"it says {told.get(step)!r} s at step {step} where its events give {seconds!r}"
    printed = [_figures(item) for item in record["evaluations"] if item.get("judged_by") != OURS]
    if printed != [_figures(item) for item in again["evaluations"]]:
        return "its metrics are not those that its events tell"
    if record["status"] == "finished" and again["status"] != "finished":
        return f"it says that the run finished; its events end with {again['message'] or again['status']!r}"
    return ""


def _moved(folder: Path, record: Mapping[str, Any]) -> str:
    """Where it ran is written down twice, before the run and after it."""
    began = read_json(folder / "environment.json")
    machine = began.get("machine") if isinstance(began, dict) else None
    if machine in (None, record["identity"]["machine"]):
        return ""
    return f"it says machine {record['identity']['machine']} where the run began on {machine}"


OURS = "splatmeter eval"


def _differs(again: Mapping[str, Any] | None, timing: Mapping[str, Any] | None) -> str:
    for name in ("seconds", "steps", "measured_steps", "steps_per_second"):
        found = (again or {}).get(name)
        stated = (timing or {}).get(name)
        if not _same(found, stated):
            return f"it says {name} {stated!r} where its events give {found!r}"
    return ""


def _rewritten(record: Mapping[str, Any], judged: Path) -> str:
    """Metrics of our own, against the file that they were copied from, where that is still there."""
    for item in record["evaluations"]:
        if item.get("judged_by") != OURS or not item.get("judged_in"):
            continue
        kept = read_json(judged / f"{item['judged_in']}.json")
        if not isinstance(kept, dict):
            continue
        if _figures(item)[1:] not in [_figures(found)[1:] for found in kept.get("evaluations", ())]:
            return f"its metrics at step {item['step']} are not those that were computed for its model"
    return ""


def _figures(item: Mapping[str, Any]) -> tuple[Any, ...]:
    metrics = {k: v for k, v in item["metrics"].items() if v is not None and math.isfinite(v)}
    return item["step"], item["split"], item.get("exposure", "none"), tuple(sorted(metrics.items()))


def _same(a: Any, b: Any) -> bool:
    """Not-a-number is null in a file."""
    unknown = [value is None or (isinstance(value, float) and math.isnan(value)) for value in (a, b)]
    if any(unknown):
        return all(unknown)
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
