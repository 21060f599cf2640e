"""What a run holds while it runs, and what it says about that."""

from __future__ import annotations

from splatmeter import memory
from splatmeter.backend import EngineMemory
from splatmeter.events import Densified
from splatmeter.memory import StagePeaks
from splatmeter.train.assemble import Parts
from splatmeter.train.forecast import Forecast


class MemoryWatch:
    """Looks at the parts of a run, and asks its forecast."""

    def __init__(self, parts: Parts, peaks: StagePeaks) -> None:
        self._parts = parts
        self._peaks = peaks
        budget = parts.step.densifier.settings.max_gaussians
        self._forecast = Forecast(parts.config, parts.prediction.bytes_per_gaussian, budget)

    @property
    def _engine(self) -> EngineMemory:
        return self._parts.backend.memory

    def densified(self, change: Densified) -> None:
        self._forecast.note(change.step, change.gaussians)

    def replanned(self) -> None:
        """The run has other lengths from here on."""
        self._forecast.config = self._parts.config

    def parts(self) -> dict[str, int]:
        return {
            "peak": max(self._peaks.peaks.values(), default=0),
            "photos": self._parts.photos.kept_bytes,
            "buffers": self._engine.buffers(),
        }

    def device_bytes(self) -> int:
        return 0 if self._engine.of_the_host else self._engine.held()

    def forecast_bytes(self, parts: dict[str, int]) -> int:
        """On a card memory is reserved in advance: its peak tells nothing about growth."""
        if not self._engine.of_the_host:
            return 0
        return self._forecast.peak_bytes(self._parts.state.step, parts["peak"], memory.resident_bytes())

    def stages(self) -> dict[str, int]:
        """Peaks. On a card what is held is reserved: said in the way in which others tell it too."""
        found = dict(self._peaks.peaks)
        if self._engine.of_the_host:
            return found
        return found | {f"{stage} reserved": size for stage, size in found.items()}
