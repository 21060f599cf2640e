"""All that changes while training: what a checkpoint must hold, and nothing else."""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from splatmeter.ops import Table
from splatmeter.scene.sampler import WIDE_PIXELS, ViewSampler
from splatmeter.scene.scene import Scene
from splatmeter.train.config import TrainConfig
from splatmeter.update.optimizer import Optimizer

RECENT_LOSSES = 100


@dataclass(frozen=True, slots=True)
class Ancestry:
    """Names of all images that trained the state this run began with; an original's file does not tell."""

    images: tuple[str, ...] = ()
    known: bool = True

    def joined(self, names: tuple[str, ...]) -> Ancestry:
        return Ancestry(tuple(sorted({*self.images, *names})), self.known)

    def listed(self) -> tuple[str, ...]:
        return self.images if self.known else ("unknown", *self.images)


@dataclass(slots=True, eq=False)
class TrainingState:
    """`step` counts completed steps. What the densifier owes after step s happens at the beginning of step
    s + 1, so that models and metrics of a step are never those of a set that has not learned yet."""

    table: Table
    optimizer: Optimizer
    sampler: ViewSampler
    generator: np.random.Generator
    step: int = 0
    grown: int = 0
    """Steps whose densification, reset and filter refresh have been done."""
    sh_degree: int = 0
    loss_average: float = 0.0
    recent_losses: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT_LOSSES))
    ancestry: Ancestry = field(default_factory=Ancestry)

    def note_loss(self, loss: float) -> None:
        self.loss_average = 0.4 * loss + 0.6 * self.loss_average
        self.recent_losses.append(loss)

    @property
    def recent_loss(self) -> float:
        return sum(self.recent_losses) / len(self.recent_losses) if self.recent_losses else float("nan")


def view_sampler(scene: Scene, config: TrainConfig) -> ViewSampler:
    """The original's order of views for a seed; wide ones come more often where asked for."""
    wide = [index for index, view in enumerate(scene.train) if view.camera.width >= WIDE_PIXELS]
    return ViewSampler(len(scene.train), config.seed, wide if config.sample_more_highres else ())


def poses_fingerprint(scene: Scene) -> str:
    """Of names and poses of all views: the same for every split, resolution and images folder of a scene."""
    digest = hashlib.sha256()
    for view in sorted((*scene.train, *scene.test), key=lambda view: view.name):
        digest.update(view.name.encode())
        digest.update(np.round(view.camera.rotation, 5).astype("<f8").tobytes())
        digest.update(np.round(view.camera.translation, 5).astype("<f8").tobytes())
    return digest.hexdigest()
