"""What the stages need of a structure-from-motion library; tests bring one of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from splatmeter.capture.job import CleanPhoto
from splatmeter.capture.pairs import Pair

Tell = Callable[[int, int], None]
"""Called with how much of a stage is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class CameraGuess:
    """One lens and the photos it took."""

    photos: tuple[CleanPhoto, ...]
    width: int
    height: int
    focal: float
    known: bool
    """True where photos told it; else it is a guess that reconstruction must mend."""


@dataclass(frozen=True, slots=True)
class Model:
    """One connected piece of the world."""

    folder: str
    numbers: tuple[int, ...]
    """Numbers of the photos it placed."""
    points: int
    error: float
    """Mean reprojection error in pixels."""
    cameras: tuple[str, ...] = ()
    """Each lens in words."""


class Engine(Protocol):
    def extract(self, camera: CameraGuess, tell: Tell) -> None:
        """Features of these photos; those that are there already are left alone."""
        ...

    def feature_counts(self) -> dict[int, int]: ...

    def descriptors(self, number: int) -> NDArray[np.uint8]: ...  # [n, 128]

    def match(self, pairs: Sequence[Pair]) -> None:
        """By numbers; pairs that were matched already are left alone."""
        ...

    def inliers(self) -> dict[Pair, int]:
        """Verified matches of each pair that has any."""
        ...

    def reconstruct(self, total: int, tell: Tell) -> list[Model]: ...

    def undistort(self, model: Model, photos: Sequence[CleanPhoto], tell: Tell) -> None:
        """Leaves a finished scene in the work folder."""
        ...
