"""All that changes while training: what a checkpoint must hold, and nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from splatmeter.backend import Model, Ticket
from splatmeter.scene.sampler import WIDE_PIXELS, ViewSampler
from splatmeter.scene.scene import Scene
from splatmeter.train.config import TrainConfig
from splatmeter.train.losses import Begun, Losses, NonFiniteLossError


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
    """`step` counts steps that were handed to the engine. What the densifier owes after step s happens at the
    beginning of step s + 1, so that models and metrics of a step are never those of a set that has not
    learned yet."""

    model: Model
    losses: Losses
    sampler: ViewSampler
    step: int = 0
    grown: int = 0
    """Steps whose densification, reset and filter refresh have been done."""
    sh_degree: int = 0
    exposed: bool = False
    """The model has exposures of photos, and learns them."""
    ancestry: Ancestry = field(default_factory=Ancestry)

    def stepped(self, view: str, degree: int, ticket: Ticket) -> None:
        """One more step is under way. NonFiniteLossError, and the state of the step before, where the loss of
        this or an earlier one turned out to be no number."""
        begun = Begun(self.step + 1, view, self.sh_degree, ticket)
        self.step, self.sh_degree = begun.step, degree
        try:
            self.losses.expect(begun)
        except NonFiniteLossError as problem:
            self._go_back_before(problem.begun)
            raise

    def catch_up(self) -> None:
        """Wait until all steps are done: before anybody reads or rearranges the model. Raises as above."""
        try:
            self.losses.read_all()
        except NonFiniteLossError as problem:
            self._go_back_before(problem.begun)
            raise

    def _go_back_before(self, bad: Begun) -> None:
        """Nothing was densified since: that waits for all steps. The bad step's view counts as drawn."""
        self.losses.forget_unread()
        self.sampler.back(self.step - bad.step)
        self.step, self.sh_degree = bad.step - 1, bad.degree_before
        self.grown = min(self.grown, self.step)


def view_sampler(scene: Scene, config: TrainConfig) -> ViewSampler:
    """The original's order of views for a seed; wide ones come more often where asked for."""
    wide = [index for index, view in enumerate(scene.train) if view.camera.width >= WIDE_PIXELS]
    return ViewSampler(len(scene.train), config.seed, wide if config.sample_more_highres else ())


def poses_fingerprint(scene: Scene) -> str:
    """Covers names and poses of all views: the same for every split, resolution and folder of images."""
    digest = hashlib.sha256()
    for view in sorted((*scene.train, *scene.test), key=lambda view: view.name):
        digest.update(view.name.encode())
        for values in (view.camera.rotation, view.camera.translation):
            digest.update((np.round(values, 5) + 0.0).astype("<f8").tobytes())  # zero has no sign
    return digest.hexdigest()
