"""The 3D smoothing filter: no Gaussian may be finer than the finest sampling any training camera gives it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splatmeter.ops import FILTER_3D, MEANS, Backend, Pinhole, Table

FILTER_VARIANCE = 0.2
"""Variance of the filter in squared sampling intervals, the paper's s."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many Gaussians the cameras see. With `seen` 0 no filter could be computed and all are 0."""

    seen: int
    total: int

    @property
    def any_seen(self) -> bool:
        return self.seen > 0


def refresh(table: Table, cameras: Sequence[Pinhole], backend: Backend) -> Coverage:
    """Writes column FILTER_3D: f = d / F * sqrt(0.2) with d the smallest depth over the cameras that see the
    Gaussian, and F the largest focal length of all (one for all cameras, as in the original).

    Gaussians nobody sees get the coarsest filter of those somebody does.
    """
    if not table.count or not cameras:
        table.geometry[:, FILTER_3D] = 0
        return Coverage(0, table.count)
    means = np.ascontiguousarray(table.geometry[:, MEANS])  # [N, 3]
    distance = backend.sampling_distance(means, cameras)  # [N]
    seen = np.isfinite(distance)  # [N]
    if not seen.any():
        table.geometry[:, FILTER_3D] = 0
        return Coverage(0, table.count)
    focal = max(camera.fx for camera in cameras)
    distance = np.where(seen, distance, distance[seen].max())  # [N]
    table.geometry[:, FILTER_3D] = distance * (math.sqrt(FILTER_VARIANCE) / focal)
    return Coverage(int(np.count_nonzero(seen)), table.count)
