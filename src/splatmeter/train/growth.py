"""What a completed step leaves to be done before the next: densify, prune, reset, refresh the 3D filter."""

from __future__ import annotations

from dataclasses import dataclass

from splatmeter.densify import prune
from splatmeter.densify.densifier import Change, Densifier
from splatmeter.events import Densified
from splatmeter.gaussians import filter3d, gaussians
from splatmeter.ops import Backend, Pinhole
from splatmeter.train.config import TrainConfig
from splatmeter.train.state import TrainingState

FILTER_INTERVAL = 100
"""After densification the 3D filter is refreshed every so many steps, and not in the last so many."""


@dataclass(frozen=True, slots=True)
class Growth:
    config: TrainConfig
    backend: Backend
    densifier: Densifier
    cameras: tuple[Pinhole, ...]
    """Of the training views: they define the 3D filter."""

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
        self.backend.settle(state.table)
        change = self._change(state, grows, prunes)
        if grows or refreshes:
            self.refresh_filter(state)
        event = None if change is None else _densified(state, change)
        if resets:
            prune.reset_opacities(state.table)
        return event

    def refresh_filter(self, state: TrainingState) -> None:
        """Over the train cameras; without the 3D filter the column stays zero."""
        if self.config.uses_filter_3d:
            filter3d.refresh(state.table, self.cameras, self.backend)

    def _change(self, state: TrainingState, grows: bool, prunes: bool) -> Change | None:
        if grows:
            state.table, change = self.densifier.grow(state.step, state.table, state.generator)
        elif prunes:
            state.table, change = self.densifier.prune(state.table, state.generator)
        else:
            return None
        return change

    def _refreshes_at(self, step: int) -> bool:
        """Strictly inside, as in the original: 15100 to 29800 by default."""
        until, end = self.config.densify_until_iter, self.config.iterations
        return step % FILTER_INTERVAL == 0 and until < step < end - FILTER_INTERVAL


def _densified(state: TrainingState, change: Change) -> Densified:
    return Densified(
        step=state.step,
        cloned=change.cloned,
        split=change.split,
        pruned=change.pruned,
        gaussians=state.table.count,
        mean_opacity=gaussians.mean_opacity(state.table),
    )
