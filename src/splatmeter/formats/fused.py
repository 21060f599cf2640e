"""What files for viewers hold of a model: filtered scales and opacities, unit quaternions, harmonics."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splatmeter.gaussians import gaussians
from splatmeter.gaussians.harmonics import coefficients_of
from splatmeter.ops import F32, MEANS, RasterSettings, Table


@dataclass(frozen=True, slots=True, eq=False)
class Fused:
    means: F32  # [N, 3]
    log_scales: F32  # [N, 3]
    rotations: F32  # [N, 4] unit, (w, x, y, z)
    opacities: F32  # [N] in [0, 1]
    harmonics: F32  # [N, K, 3], the constant one first
    sh_degree: int
    settings: RasterSettings | None
    """By which 2D filter they are to be drawn, if anybody knows."""

    @property
    def count(self) -> int:
        return len(self.means)

    def rows(self, chosen: NDArray[np.bool_] | NDArray[np.integer]) -> Fused:
        arrays = {name: getattr(self, name)[chosen] for name in _ARRAYS}
        return dataclasses.replace(self, **arrays)


_ARRAYS = ("means", "log_scales", "rotations", "opacities", "harmonics")


def fused(table: Table, sh_degree: int, settings: RasterSettings | None) -> Fused:
    kept = coefficients_of(sh_degree)
    rotations = gaussians.rotations(table)
    rotations[~rotations.any(axis=1)] = (1, 0, 0, 0)  # a quaternion of zeros turns nothing
    return Fused(
        np.ascontiguousarray(table.geometry[:, MEANS]),
        gaussians.filtered_log_scales(table).astype(np.float32),
        rotations,
        gaussians.filtered_opacities(table),
        table.harmonics[:, : 3 * kept].reshape(-1, kept, 3),
        sh_degree,
        settings,
    )
