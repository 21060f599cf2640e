"""`splatmeter train --dry-run`: five lines for a person, or with --json everything for a program."""

from __future__ import annotations

import dataclasses
from typing import Any

from splatmeter.backend import Backend
from splatmeter.listeners.memory_words import span
from splatmeter.photos.whole import require_whole
from splatmeter.scene.scene import Scene, load_scene
from splatmeter.train.assemble import predicted
from splatmeter.train.config import TrainConfig, to_json
from splatmeter.train.memory_prediction import Prediction
from splatmeter.train.plan import read as read_plan
from splatmeter.train.plan_at_start import doubts
from splatmeter.units import bytes_text, count_text, duration_text


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """What would be trained, how, and whether it fits."""

    config: TrainConfig
    engine: Backend
    scene: Scene
    prediction: Prediction

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.scene.notes, *doubts(self.config.plan))

    def record(self) -> dict[str, Any]:
        return {
            "config": to_json(self.config),
            "backend": self.engine.facts.name,
            "device": self.engine.facts.device,
            "threads": self.engine.facts.details.get("threads"),
            "scene": self.scene.kind,
            "photo_sizes": self.scene.photo_sizes,
            "train_images": [view.name for view in self.scene.train],
            "test_images": [view.name for view in self.scene.test],
            "notes": list(self.notes),
            "predicted_memory": dataclasses.asdict(self.prediction),
        }

    def lines(self) -> list[str]:
        told = {
            "scene": self._scene(),
            "photos": self._photos(),
            "Gaussians": self._gaussians(),
            "memory": self._memory(),
            "run": self._run(),
        }
        return [f"{name:<10} {text}" for name, text in told.items()]

    def _scene(self) -> str:
        tests = f", {len(self.scene.test)} for tests" if self.scene.test else ", none for tests (--eval)"
        return (
            f"{self.scene.source.name} ({self.scene.kind}): {len(self.scene.train)} photos to train on{tests}"
        )

    def _photos(self) -> str:
        sizes = self.scene.photo_sizes
        size = "x".join(map(str, sizes[0])) + (f" and {len(sizes) - 1} smaller sizes" if sizes[1:] else "")
        everything = sum(view.photo.nbytes for view in self.scene.train)
        kept = self.prediction.photo_cache_bytes
        how = "all of it" if kept >= everything else bytes_text(kept)
        return f"{size} pixels; {bytes_text(everything)} decoded, {how} kept in memory"

    def _gaussians(self) -> str:
        low, high = map(count_text, self.prediction.expected_gaussians)
        start = count_text(self.prediction.gaussians)
        later = "and hardly more later" if high == start else f"later {span(low, high)} at most"
        return f"{start} at the start, {later}"

    def _memory(self) -> str:
        low, high = self.prediction.expected_bytes
        free = self.prediction.available_bytes
        fits = "it fits" if high <= free else "it does not fit" if low > free else "set a limit with --memory"
        limit = "" if self.prediction.cap is None else f", limit {bytes_text(self.prediction.cap.limit)}"
        return f"{span(bytes_text(low), bytes_text(high))}{limit}; {bytes_text(free)} are free: {fits}"

    def _length(self) -> str:
        if self.config.plan is not None:
            return f"{read_plan(self.config.plan).end} steps"
        if self.config.seconds is not None:
            return f"as many steps as {duration_text(self.config.seconds)} allow"
        return f"{self.config.iterations} steps"

    def _run(self) -> str:
        facts = self.engine.facts
        threads = facts.details.get("threads")
        where = facts.device + (f", {threads} threads" if threads else "")
        return f"{self._length()} on {where}, into {self.config.model_path}"


def plan(config: TrainConfig, engine: Backend) -> Planned:
    """Everything that can be wrong before the first step shows here too."""
    scene = load_scene(config.scene_options())
    require_whole([view.photo for view in (*scene.train, *scene.test)])
    prediction = predicted(config, scene, engine)
    if prediction.cap is not None:
        prediction.cap.require(prediction.gaussians)
    return Planned(config, engine, scene, prediction)
