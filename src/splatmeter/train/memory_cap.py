"""--memory: one limit for everything this process holds. Gaussians come first, photos take what they leave.

How many Gaussians fit is known before the start and depends on nothing but the scene, the settings and the
engine, so that a run with a limit is as repeatable as one without.
"""

from __future__ import annotations

from dataclasses import dataclass

from splatmeter.errors import NotEnoughMemory
from splatmeter.events import Warned
from splatmeter.units import bytes_text, count_text

MOST_GROWTH = 2
"""One densification adds at most one Gaussian for each there is: photos make room for that beforehand."""


@dataclass(frozen=True, slots=True)
class MemoryCap:
    limit: int
    besides: int
    """What is needed besides Gaussians and kept photos: program, images of a step, photos on their way."""
    per_gaussian: int

    @property
    def most_gaussians(self) -> int:
        return max(0, (self.limit - self.besides) // self.per_gaussian)

    def photo_bytes(self, gaussians: int) -> int:
        """For photos to be kept, while there are so many Gaussians and until they have grown once more."""
        grown = min(self.most_gaussians, MOST_GROWTH * gaussians)
        return max(0, self.limit - self.besides - max(grown, gaussians) * self.per_gaussian)

    def require(self, gaussians: int) -> None:
        """NotEnoughMemory where not even the start fits."""
        needed = self.besides + gaussians * self.per_gaussian
        if needed > self.limit:
            raise NotEnoughMemory(
                f"--memory allows {bytes_text(self.limit)}, but the start alone, with {gaussians} Gaussians, "
                f"needs {bytes_text(needed)}. Allow that much, or use a coarser --resolution."
            )

    def full(self) -> Warned:
        return Warned(
            f"--memory {bytes_text(self.limit)} is full with {count_text(self.most_gaussians)} Gaussians: "
            "from here on they are only exchanged.",
            "Allow more for more detail.",
        )
