"""What a completed step leaves to be done before the next: densify, prune, reset, refresh the 3D filter."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from splatmeter.backend import Change, GrowthRule, Model
from splatmeter.densify.densifier import Densifier
from splatmeter.errors import NotEnoughMemory
from splatmeter.events import Densified
from splatmeter.ops import VISITS, Pinhole
from splatmeter.train.config import TrainConfig
from splatmeter.train.progressive import Stages
from splatmeter.train.room import Room
from splatmeter.train.state import TrainingState

SAMPLES, SAMPLE_ROWS = 16, 4096
LEAST_SHARE = 1e-4
"""A scene of which photos show less than this is a large one: nothing is too crowded there."""
MOST_ROWS = 2**31 - 1

FILTER_INTERVAL = 100
"""After densification the 3D filter is refreshed every so many steps, and not in the last so many."""


@dataclass(frozen=True, slots=True)
class Growth:
    config: TrainConfig
    densifier: Densifier
    cameras: tuple[Pinhole, ...]
    """Those of the training views: they define the 3D filter."""
    room: Room
    views: Stages

    def __call__(self, state: TrainingState) -> Densified | None:
        """Does what is owed for `state.step`, once."""
        if state.grown >= state.step:
            return None
        event = self._owed(state, state.step)
        state.grown = state.step
        return event

    def _owed(self, state: TrainingState, step: int) -> Densified | None:
        grows, resets = self.densifier.grows_at(step), self.densifier.resets_at(step)
        prunes = self.densifier.prunes_at(step) and not grows
        refreshes = self._refreshes_at(step) and not grows
        if not (grows or resets or prunes or refreshes):
            return None
        state.catch_up()
        if not (grows or prunes):  # which settle by themselves
            state.model.settle()
        rule = self._rule(state) if grows else None
        change = self._change(state, rule, prunes)
        if grows or refreshes:
            self.refresh_filter(state.model)
        event = None if change is None else _densified(state, change, rule)
        if resets:
            state.model.reset_opacities()
        return event

    def refresh_filter(self, model: Model) -> None:
        """Over the train cameras; without the 3D filter the column stays zero."""
        if self.config.uses_filter_3d:
            model.refresh_filter(self.cameras)

    def _rule(self, state: TrainingState) -> GrowthRule:
        rule = self.densifier.rule(state.step, state.losses.recent_mean)
        budget = self.room.budget(state.model.count, self._allowed(state, rule.budget))
        return replace(rule, budget=budget)

    def _change(self, state: TrainingState, rule: GrowthRule | None, prunes: bool) -> Change | None:
        if rule is not None:
            return self._grown(state, rule)
        return state.model.prune(self.densifier.lowest_opacity(aggressive=True)) if prunes else None

    def _grown(self, state: TrainingState, rule: GrowthRule) -> Change:
        """What does not fit has changed nothing. Photos can be decoded again, Gaussians cannot be had
        otherwise."""
        while True:
            try:
                return state.model.grow(rule)
            except NotEnoughMemory:
                if not self.room.photos.give_way():
                    raise

    def _allowed(self, state: TrainingState, budget: int | None) -> int | None:
        """With --max-per-pixel: photos that are shown smaller cannot tell many Gaussians apart, and most of a
        Gaussian's cost has nothing to do with pixels."""
        per_pixel = self.config.max_per_pixel
        if not per_pixel or not self.views.smaller_at(state.step):
            return budget
        share = visible_share(state.model, self.densifier.observed(state.step))
        crowd = int(min(per_pixel * self.views.pixels(state.step) / share, MOST_ROWS))
        return crowd if budget is None else min(budget, crowd)

    def _refreshes_at(self, step: int) -> bool:
        """Strictly inside, as in the original: 15100 to 29800 by default."""
        until, end = self.config.densify_until_iter, self.config.iterations
        return step % FILTER_INTERVAL == 0 and until < step < end - FILTER_INTERVAL


def visible_share(model: Model, steps: int) -> float:
    """The share of the Gaussians that a photo shows on average, from so many steps' visits to rows here and
    there: neighbours in the table are neighbours in space."""
    starts = np.linspace(0, max(0, model.count - SAMPLE_ROWS), SAMPLES).astype(np.int64)
    samples = [model.stored("geometry", slice(start, start + SAMPLE_ROWS))[:, VISITS] for start in starts]
    visits = float(np.concatenate(samples).mean(dtype=np.float64)) if model.count else 0.0
    return min(1.0, max(LEAST_SHARE, visits / max(1, steps)))


def _densified(state: TrainingState, change: Change, rule: GrowthRule | None) -> Densified:
    return Densified(
        step=state.step,
        cloned=change.cloned,
        split=change.split,
        pruned=change.pruned,
        gaussians=state.model.count,
        mean_opacity=state.model.mean_opacity(),
        wanted=change.wanted,
        demand=change.demand,
        allowed=(rule.budget if rule else None) or 0,
    )
