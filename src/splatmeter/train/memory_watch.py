"""What a run holds while it runs, and what it says about that."""

from __future__ import annotations

from splatmeter.backend import EngineMemory
from splatmeter.events import Densified
from splatmeter.process_memory import StagePeaks
from splatmeter.train.assemble import Parts
from splatmeter.train.memory_forecast import RANDOM_POINTS, Forecast, Range
from splatmeter.train.memory_prediction import LEAST_OF_PREDICTED


class MemoryWatch:
    """Looks at the parts of a run, and asks its forecast."""

    def __init__(self, parts: Parts, peaks: StagePeaks) -> None:
        self._parts = parts
        self._peaks = peaks
        budget = parts.step.densifier.settings.max_gaussians
        told = (parts.prediction.bytes_later, LEAST_OF_PREDICTED, budget, parts.scene.kind in RANDOM_POINTS)
        self._forecast = Forecast(parts.config, *told)
        self._forecast.begin(parts.state.step, parts.state.model.count)

    @property
    def _engine(self) -> EngineMemory:
        return self._parts.backend.memory

    def densified(self, change: Densified) -> None:
        counts = (change.gaussians, change.wanted, change.allowed, change.demand)
        self._forecast.note(change.step, *counts)

    def replanned(self) -> None:
        """The run has other lengths from here on."""
        self._forecast.go_by(self._parts.config)

    def parts(self) -> dict[str, int]:
        return {
            "peak": max(self._peaks.peaks.values(), default=0),
            "photos": self._parts.photos.kept_bytes,
            "buffers": self._engine.buffers(),
        }

    def device_bytes(self) -> int:
        return 0 if self._engine.of_the_host else self._engine.held()

    def forecast(self, so_far: int) -> Range:
        """Zeros while it is too early to tell. On a card memory is reserved in advance: its peak tells
        nothing about growth."""
        state = self._parts.state
        told = self._forecast.peak_bytes(state.step, so_far, state.model.count)
        if told is None or not self._engine.of_the_host:
            return Range(0, 0)
        cap = self._parts.prediction.cap
        return told if cap is None else Range(*(min(size, max(so_far, cap.limit)) for size in told))

    def stages(self) -> dict[str, int]:
        """Peaks. On a card what is held is reserved: said in the way in which others tell it too."""
        found = dict(self._peaks.peaks)
        if self._engine.of_the_host:
            return found
        return found | {f"{stage} reserved": size for stage, size in found.items()}
