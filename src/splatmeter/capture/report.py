"""What became of the photos: a JSON file without places on this machine, and the same as lines for people."""

from __future__ import annotations

from typing import Any

from splatmeter.capture.job import STAGES, Job, Prepared
from splatmeter.capture.reasons import reasons
from splatmeter.capture.stages import models_of
from splatmeter.capture.work import Work
from splatmeter.units import bytes_text, count_text, duration_text

NAME = "from_photos.json"
MOST_LISTED = 12
"""Photos without a place that are printed; the file has all of them."""
LARGE_ERROR = 1.5
"""Pixels; good scenes have 0.4 to 1."""


def report(job: Job, work: Work) -> dict[str, Any]:
    """From what the stages left."""
    prepared, models = Prepared.from_json(work.result("photos")), models_of(work)
    results = {stage: work.result(stage) for stage in STAGES}
    features = {number: count for number, count in results["features"]["features"]}
    inliers = {(one, other): count for one, other, count in results["matching"]["inliers"]}
    names = {photo.number: photo.name for photo in prepared.photos}
    unplaced = reasons(prepared.photos, [model.numbers for model in models], features, inliers)
    best = models[0]
    settings = job.settings
    return {
        "made_by": "splatmeter scene from-photos",
        "job": job.fingerprint(),
        "photos": len(prepared.photos) + len(prepared.left_out),
        "registered": len(best.numbers),
        "points": best.points,
        "points_added": results["points"]["added"],
        "reprojection_error_pixels": round(best.error, 4),
        "cameras": list(best.cameras),
        "matching": results["pairs"]["matching"],
        "pairs": len(results["pairs"]["pairs"]),
        "pairs_that_match": len(inliers),
        "other_groups": [[names[number] for number in model.numbers] for model in models[1:]],
        "left_out": [
            {"photo": photo.name, "reason": photo.reason, "advice": photo.advice}
            for photo in (*prepared.left_out, *unplaced)
        ],
        "notes": [*job.notes, *prepared.notes],
        "settings": {
            "camera_model": settings.camera_model,
            "single_camera": settings.single_camera,
            "max_size": settings.max_size,
            "seed": settings.seed,
        },
        "stages": {stage: results[stage]["spent"] for stage in STAGES},
    }


def lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """One line a fact, in the order a person asks."""
    share = facts["registered"] / max(1, facts["photos"])
    added = facts.get("points_added", 0)  # reports of before do not have it
    shown = [
        (
            "photos",
            f"{facts['registered']} of {facts['photos']} have found their place ({100 * share:.0f} %)",
        ),
        (
            "points",
            f"{count_text(facts['points'])}, off by {facts['reprojection_error_pixels']:.2f} px on average"
            + (f", and {count_text(added)} by comparing pixels" if added else ""),
        ),
        *(("camera", camera) for camera in facts["cameras"][:4]),
        ("pairs", f"{facts['pairs']} compared ({facts['matching']}), {facts['pairs_that_match']} match"),
    ]
    if len(facts["cameras"]) > 4:
        shown.insert(6, ("camera", f"and {len(facts['cameras']) - 4} more"))
    spent = [(stage, facts["stages"][stage]) for stage in STAGES if stage in facts["stages"]]
    took = ", ".join(f"{stage} {duration_text(s['seconds'])}" for stage, s in spent if s["seconds"] >= 0.05)
    peak = max(s["peak_bytes"] for _, s in spent)
    total = sum(s["seconds"] for _, s in spent)
    shown.append(("time", f"{duration_text(total)} ({took}), at most {bytes_text(peak)} of memory"))
    shown += [("note", note) for note in facts["notes"]]
    return shown + _failures(facts) + _warnings(facts, share)


def _failures(facts: dict[str, Any]) -> list[tuple[str, str]]:
    shown = [
        ("without", f"{photo['photo']}: {photo['reason']}. {photo['advice']}.")
        for photo in facts["left_out"][:MOST_LISTED]
    ]
    more = len(facts["left_out"]) - MOST_LISTED
    return [*shown, ("without", f"and {more} more; {NAME} in the scene lists them.")] if more > 0 else shown


def _warnings(facts: dict[str, Any], share: float) -> list[tuple[str, str]]:
    warnings: list[str] = []
    if share < 0.6:
        warnings.append(
            "Many photos have no place. The scene may lack whole sides: add photos between the groups, with "
            "two thirds of overlap."
        )
    if facts["reprojection_error_pixels"] > LARGE_ERROR:
        warnings.append(
            "The error is large; renders will be soft. Try another --camera-model (OPENCV for wide lenses)."
        )
    return [("warning", text) for text in warnings]
