"""One step of training, as a sentence: look, compare, learn. The file to read first."""

from __future__ import annotations

import math
from dataclasses import dataclass

from splatmeter.densify.densifier import Densifier
from splatmeter.loss.loss import ImageLoss, LossValue
from splatmeter.ops import Backend
from splatmeter.photos.cache import PhotoCache
from splatmeter.train.config import TrainConfig
from splatmeter.train.progressive import Stages
from splatmeter.train.state import TrainingState
from splatmeter.update.exploration import Explorer
from splatmeter.update.schedule import Schedule, next_degree

LOOK_AHEAD = 4
"""Photos of so many steps to come are being decoded, so that a few slow ones in a row are still in time."""


class NonFiniteLossError(Exception):
    """Met before anything was changed: the state is still that of the step before."""

    def __init__(self, view: str, loss: float) -> None:
        super().__init__(f"the loss of view {view} is {loss}")


@dataclass(frozen=True, slots=True)
class Step:
    """Holds the parts, changes the state."""

    config: TrainConfig
    backend: Backend
    views: Stages
    photos: PhotoCache
    loss: ImageLoss
    schedule: Schedule
    densifier: Densifier
    explorer: Explorer | None = None

    def __call__(self, state: TrainingState) -> LossValue:
        number = state.step + 1
        degree = next_degree(state.sh_degree, number, self.config.sh_degree, self.config.sh_interval)
        view = self.views.at(number)[state.sampler.peek()]
        photo = self.photos.load(view.photo)  # u8 [3, H, W]; where it fails, nothing has changed yet
        state.sampler.next()
        for ahead in range(LOOK_AHEAD):
            self.photos.prefetch(self.views.at(number + 1 + ahead)[state.sampler.peek(ahead)].photo)
        settings = self.config.raster_settings(degree, absolute_gradients=self._gathers_absolute(number))
        rendering, tape = self.backend.forward(state.table, view.camera, settings)
        loss, image_gradient = self.loss.value_and_gradient(rendering.color, photo)
        if not math.isfinite(loss.total):
            raise NonFiniteLossError(view.name, loss.total)
        if self.densifier.grows_at(number):  # as in the original, where new parameters have no gradients yet
            state.optimizer.observe(tape, image_gradient)
        else:
            state.optimizer.update(state.table, tape, image_gradient, self.schedule.rates(number))
        if self.explorer is not None:
            self.explorer(number, state.table, state.optimizer, self.schedule.rates(number))
        state.step, state.sh_degree = number, degree
        state.note_loss(loss.total)
        return loss

    def _gathers_absolute(self, number: int) -> bool:
        return self.config.densification == "gof" and self.densifier.observes(number)
