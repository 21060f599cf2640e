"""How many Gaussians there is memory for. Systems promise more than they have and end whoever takes it, so
that asking them is too late: growth ends before."""

from __future__ import annotations

from dataclasses import dataclass

from splatmeter.backend import EngineMemory
from splatmeter.events import Warned
from splatmeter.photos.cache import PhotoCache
from splatmeter.train.memory_cap import MOST_GROWTH
from splatmeter.train.memory_prediction import Prediction
from splatmeter.units import count_text

USABLE = 0.95
"""Share of what is free that growth may take: other programs move, too."""
USUAL_GROWTH = 1.3
"""Photos make room for that much; more than that in one densification is rare, and is cut short."""
FULL = 0.99


@dataclass(slots=True)
class Room:
    engine: EngineMemory
    prediction: Prediction
    photos: PhotoCache
    limit: int | None = None
    """Of Gaussians; None as long as there is room for whatever may come."""

    def gaussians(self) -> int | None:
        """That fit, those which are there included; None on a card, which says no by itself."""
        if not self.engine.of_the_host:
            return None
        told = self.prediction
        at_first = told.gaussians * told.bytes_per_gaussian + told.photo_cache_bytes + told.early_bytes
        besides = told.start_bytes - at_first + self.photos.kept_bytes
        whole = self.engine.held() + USABLE * self.engine.available()
        return max(0, int((whole - besides) / told.bytes_per_gaussian))

    def budget(self, count: int, allowed: int | None) -> int | None:
        """For a densification of so many, where `allowed` are. Photos give way first."""
        fits = self.gaussians()
        while fits is not None and fits < USUAL_GROWTH * count and self.photos.give_way():
            fits = self.gaussians()
        most = MOST_GROWTH * count if allowed is None else min(allowed, MOST_GROWTH * count)
        self.limit = None if fits is None or fits >= most else max(count, fits)
        return allowed if self.limit is None else self.limit

    def full(self, count: int) -> Warned | None:
        if self.limit is None or count < FULL * self.limit:
            return None
        return Warned(
            f"Memory is full with {count_text(count)} Gaussians: from here on they are only exchanged.",
            "For more detail close other programs, or divide the scene: --blocks 2x2.",
        )
