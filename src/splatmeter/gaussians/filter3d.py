"""The 3D smoothing filter: no Gaussian may be finer than the finest sampling any training camera gives it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from splatmeter.ops import F32, FILTER_3D, MEANS, Pinhole, Table

FILTER_VARIANCE = 0.2
"""Variance of the filter in squared sampling intervals, the paper's s."""


def refresh(
    table: Table, cameras: Sequence[Pinhole], sampling_distance: Callable[[F32, Sequence[Pinhole]], F32]
) -> None:
    """Writes column FILTER_3D: f = d / F * sqrt(0.2) with d the smallest depth over the cameras that see the
    Gaussian, and F the largest focal length of all (one for all cameras, as in the original).

    Gaussians nobody sees get the coarsest filter of those somebody does; where nobody sees any, all are 0.
    `sampling_distance` is an engine's: means [N, 3] -> d [N], inf where no camera sees the point.
    """
    table.geometry[:, FILTER_3D] = 0
    if not table.count or not cameras:
        return
    means = np.ascontiguousarray(table.geometry[:, MEANS])  # [N, 3]
    distance = sampling_distance(means, cameras)  # [N]
    seen = np.isfinite(distance)  # [N]
    if not seen.any():
        return
    focal = max(camera.fx for camera in cameras)
    distance = np.where(seen, distance, distance[seen].max())  # [N]
    table.geometry[:, FILTER_3D] = distance * (math.sqrt(FILTER_VARIANCE) / focal)
