"""One step of training, as a sentence: look, compare, learn. The file to read first."""

from __future__ import annotations

from dataclasses import dataclass

from splatmeter.backend import Explore, ExposureStep, TrainStep
from splatmeter.densify.densifier import Densifier
from splatmeter.ops import Pinhole
from splatmeter.photos.cache import PhotoCache
from splatmeter.train.config import TrainConfig
from splatmeter.train.photo_exposures import ExposureRates
from splatmeter.train.plan import Course
from splatmeter.train.progressive import Stages
from splatmeter.train.schedule import Schedule, next_degree
from splatmeter.train.state import TrainingState

LOOK_AHEAD = 4
"""Photos of so many steps to come are being decoded, so that a few slow ones in a row are still in time."""


@dataclass(frozen=True, slots=True)
class Step:
    """Holds the parts, changes the state."""

    config: TrainConfig
    views: Stages
    photos: PhotoCache
    schedule: Schedule
    densifier: Densifier
    explore: Explore | None = None
    exposure: ExposureRates | None = None
    course: Course | None = None
    """Where a plan says how far a run is."""

    def __call__(self, state: TrainingState) -> None:
        number = state.step + 1
        degree = self._degree(state.sh_degree, number)
        photographed = state.sampler.peek()
        view = self.views.at(number)[photographed]
        photo = self.photos.load(view.photo)  # where it fails, nothing has changed yet
        state.sampler.next()
        self._prefetch(state, number)
        ticket = state.model.train_step(
            TrainStep(
                camera=view.camera,
                photo=photo,
                settings=self.config.step_settings(degree, self._gathers_absolute(number)),
                ssim_weight=self.config.lambda_dssim,
                rates=self.schedule.rates(number),
                # as in the original, where new parameters have no gradients yet
                learns=not self.densifier.grows_at(number),
                explore=self._exploration(state.model.count, number, view.camera),
                exposure=self._exposure(state, number, photographed),
            )
        )
        state.stepped(view.name, degree, ticket)

    def _exposure(self, state: TrainingState, number: int, photo: int) -> ExposureStep | None:
        return self.exposure.step(number, photo) if self.exposure and state.exposed else None

    def _degree(self, before: int, number: int) -> int:
        if self.course is not None:
            return self.course.degree(number, self.config.sh_degree)
        return next_degree(before, number, self.config.sh_degree, self.config.sh_interval)

    def _gathers_absolute(self, number: int) -> bool:
        return self.densifier.strategy.absolute_gradients and self.densifier.observes(number)

    def _exploration(self, gaussians: int, number: int, camera: Pinhole) -> Explore | None:
        """By the number of the step alone: a resumed run explores at the same steps, with the same draws."""
        if self.explore is None or number % self.explore.steps:
            return None
        return self.explore.as_means(gaussians, camera.width * camera.height)

    def _prefetch(self, state: TrainingState, number: int) -> None:
        for ahead in range(LOOK_AHEAD):
            self.photos.prefetch(self.views.at(number + 1 + ahead)[state.sampler.peek(ahead)].photo)
