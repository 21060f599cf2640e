"""The sparse cloud a scene starts from: reconstructed points, or random ones where nothing is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import InputError
from splatmeter.ops import F32, F64

RANDOM_POINTS = 100_000
RANDOM_HALF_SIDE = 1.3
"""The NeRF-synthetic objects fit into this cube."""
NEUTRAL_COLOR = 127
"""What every random point becomes in the original once its colours are stored in 8 bits."""


FARTHEST = 1e6
"""Times the cameras' extent. Seen from both ends of it such a point moves by a five-hundredth of a pixel, at
a focal length of 1000: nobody can have measured it, whereas mountains and clouds are far nearer."""


@dataclass(frozen=True, slots=True, eq=False)
class PointCloud:
    """Coloured points of a scene."""

    positions: F32  # [N, 3] world
    colors: NDArray[np.uint8]  # [N, 3]
    dropped: int = 0
    """Points of the file that were left out because they were not finite."""
    impossible: int = 0
    """And because no camera could have seen how far away they are."""

    @property
    def count(self) -> int:
        return len(self.positions)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, one sentence each."""
        total = self.count + self.dropped + self.impossible
        found = [
            (self.dropped, "are not finite"),
            (self.impossible, "are impossibly far away, a million times the cameras' extent,"),
        ]
        return tuple(f"{n} of {total} initial points {why} and were left out." for n, why in found if n)


def random_cloud(count: int = RANDOM_POINTS, half_side: float = RANDOM_HALF_SIDE) -> PointCloud:
    """The original's cloud for scenes without one: always the same, seed 0 of NumPy's legacy generator."""
    generator = np.random.RandomState(0)
    positions = generator.random_sample((count, 3)) * (2 * half_side) - half_side  # [N, 3]
    return PointCloud(positions.astype(np.float32), np.full((count, 3), NEUTRAL_COLOR, np.uint8))


def checked_cloud(positions: F64 | F32, colors: NDArray[np.uint8], where: Path) -> PointCloud:
    """Drops points that are not finite in float32: one of them would poison the whole training."""
    with np.errstate(over="ignore", invalid="ignore"):
        single = np.asarray(positions).astype(np.float32)  # [N, 3]
    finite = np.isfinite(single).all(axis=1)  # [N]
    if not finite.any():
        kind = "no points" if not len(single) else "no point with finite coordinates"
        raise InputError(
            f"{where} holds {kind}, so there is nothing to start from. "
            "Re-run the reconstruction (colmap mapper) or supply a points3D.ply."
        )
    if finite.all():
        return PointCloud(np.ascontiguousarray(single), np.ascontiguousarray(colors))
    return PointCloud(single[finite], colors[finite], int((~finite).sum()))


def without_impossible(points: PointCloud, center: F64, extent: float) -> PointCloud:
    """One point at 1e30 would make itself a Gaussian without a finite size, and coarsen the 3D filter of all
    that no camera sees."""
    offsets = points.positions.astype(np.float64) - center  # [N, 3]
    possible = np.linalg.norm(offsets, axis=1) <= FARTHEST * extent  # [N]
    if possible.all():
        return points
    left_out = int((~possible).sum())
    return PointCloud(points.positions[possible], points.colors[possible], points.dropped, left_out)
