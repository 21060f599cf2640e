"""The stages from files to a scene, one function each; what one leaves is what the next begins with."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from splatmeter.capture.cameras import guesses
from splatmeter.capture.clean import clean_photos
from splatmeter.capture.engine import Engine, Model, Tell
from splatmeter.capture.job import STAGES, Job, Prepared
from splatmeter.capture.likeness import likeness
from splatmeter.capture.listing import FEWEST_PHOTOS
from splatmeter.capture.more_points import add_points
from splatmeter.capture.pairs import chosen_matching, chunks, planned
from splatmeter.capture.work import Work
from splatmeter.errors import InputError
from splatmeter.process_memory import peak_bytes, reset_peak

FEWEST_PAIRS, MOST_PAIRS = 100, 500
"""Matched in one call: what is lost at most when the process is killed. Each call prepares the features of
its photos anew, 0.1 s a photo: with 100 pairs a call that adds a tenth, so long lists go in long pieces."""
STEPS = 8

Say = Callable[[dict[str, Any]], None]
"""Takes what the parent process is to hear."""


def run_stages(job: Job, work: Work, engine: Callable[[], Engine], say: Say) -> None:
    """Whatever is not finished yet, in order; the library is loaded when the first stage needs it."""
    held: list[Engine] = []

    def library() -> Engine:
        if not held:
            held.append(engine())
        return held[0]

    for stage in STAGES:
        if work.finished(stage):
            say({"stage": stage, "finished": True, "before": True})
            continue
        say({"stage": stage, "done": 0, "total": 0})
        started, cpu = time.perf_counter(), time.process_time()
        reset_peak()

        def tell(done: int, total: int, stage: str = stage) -> None:
            say({"stage": stage, "done": done, "total": total})

        result = _STAGES[stage](job, work, library, tell)
        spent = {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu}
        work.finish(stage, {**result, "spent": {**spent, "peak_bytes": peak_bytes()}})
        say({"stage": stage, "finished": True, "before": False})


Library = Callable[[], Engine]


def _photos(job: Job, work: Work, library: Library, tell: Tell) -> dict[str, Any]:
    return clean_photos(job, work, tell).to_json()


def _features(job: Job, work: Work, library: Library, tell: Tell) -> dict[str, Any]:
    prepared, before = _prepared(work), 0
    total = len(prepared.photos)
    for camera in guesses(prepared.photos, job.settings.single_camera):
        base = before
        library().extract(camera, lambda done, _, base=base: tell(base + done, total))
        before += len(camera.photos)
    return {"features": sorted(library().feature_counts().items())}


def _pairs(job: Job, work: Work, library: Library, tell: Tell) -> dict[str, Any]:
    numbers = [photo.number for photo in _prepared(work).photos]
    matching = chosen_matching(job.settings.matching, len(numbers), job.video is not None)
    alike = None
    if matching != "exhaustive":
        alike = likeness(numbers, library().descriptors, job.settings.seed)
    pairs = planned(matching, len(numbers), alike)
    return {"matching": matching, "pairs": [(numbers[one], numbers[other]) for one, other in pairs]}


def _matching(job: Job, work: Work, library: Library, tell: Tell) -> dict[str, Any]:
    pairs, done = [(one, other) for one, other in work.result("pairs")["pairs"]], 0
    for chunk in chunks(pairs, min(MOST_PAIRS, max(FEWEST_PAIRS, len(pairs) // STEPS))):
        library().match(chunk)
        done += len(chunk)
        tell(done, len(pairs))
    return {"inliers": [(*pair, count) for pair, count in sorted(library().inliers().items())]}


def _mapping(job: Job, work: Work, library: Library, tell: Tell) -> dict[str, Any]:
    photos = _prepared(work).photos
    models = library().reconstruct(len(photos), tell)
    if not models or len(models[0].numbers) < FEWEST_PHOTOS or not models[0].points:
        raise InputError(nothing_fits(work, len(photos)))
    return {"models": [asdict(model) for model in models]}


def _undistortion(job: Job, work: Work, library: Library, tell: Tell) -> dict[str, Any]:
    library().undistort(models_of(work)[0], _prepared(work).photos, tell)
    shutil.rmtree(work.maps, ignore_errors=True)  # of a scene before, if this stage is done anew
    return {}


def _points(job: Job, work: Work, library: Library, tell: Tell) -> dict[str, Any]:
    settings = job.settings
    return {"added": add_points(work.scene, work.maps, settings.threads, settings.seed, tell)}


_STAGES = {
    "photos": _photos,
    "features": _features,
    "pairs": _pairs,
    "matching": _matching,
    "mapping": _mapping,
    "undistortion": _undistortion,
    "points": _points,
}


def models_of(work: Work) -> list[Model]:
    """Largest first."""
    return [
        Model(m["folder"], tuple(m["numbers"]), m["points"], m["error"], tuple(m["cameras"]))
        for m in work.result("mapping")["models"]
    ]


def nothing_fits(work: Work, photos: int) -> str:
    """Why there is no scene at all, from what the stages before found."""
    features = sorted(count for _, count in work.result("features")["features"])
    inliers = [count for _, _, count in work.result("matching")["inliers"]]
    middle = features[len(features) // 2] if features else 0
    if middle < 200:
        return (
            f"No scene could be made of the {photos} photos: most show too little detail (about {middle} "
            "features each). Photograph something with texture, in focus and in good light."
        )
    if not inliers or max(inliers) < 50:
        return (
            f"No scene could be made of the {photos} photos: no two of them show enough of the same. "
            "Take them so that each shares two thirds of its view with the next."
        )
    return (
        f"No scene could be made of the {photos} photos: some match, but not from places far enough apart. "
        "Walk around the subject between photos instead of turning on the spot or zooming."
    )


def _prepared(work: Work) -> Prepared:
    return Prepared.from_json(work.result("photos"))
