"""The first Gaussians: one small, round, faint one for each point of the cloud."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from splatmeter.backend import Backend
from splatmeter.errors import InputError
from splatmeter.gaussians.harmonics import dc_from_rgb
from splatmeter.ops import (
    F32,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    Table,
    empty_table,
)

if TYPE_CHECKING:
    from splatmeter.scene.scene import PointCloud

FIRST_OPACITY = 0.1
SMALLEST_SQUARED_DISTANCE = 1e-7
"""Coinciding points still get a size (the original's constant)."""

LONELY_SQUARED_DISTANCE = 1.0
"""A cloud of one point has no neighbour to take a size from; one world unit is what the sigma becomes."""


def from_points(points: PointCloud, backend: Backend) -> Table:
    """A trainable table in Morton order: neighbours in space become neighbours in memory."""
    positions = np.ascontiguousarray(points.positions, np.float32)  # [N, 3]
    if not len(positions):
        raise InputError("The scene has no points to start from; give it a points3D.ply.")
    _refuse_non_finite(positions)
    order = backend.morton_order(positions)  # [N]
    positions = np.ascontiguousarray(positions[order])
    table = empty_table(len(positions))
    table.geometry[:, MEANS] = positions
    table.geometry[:, LOG_SCALES] = 0.5 * np.log(_squared_distances(positions, backend))[:, None]
    table.geometry[:, ROTATIONS] = (1, 0, 0, 0)
    table.geometry[:, OPACITY_LOGITS] = math.log(FIRST_OPACITY / (1 - FIRST_OPACITY))
    table.harmonics[:, :3] = dc_from_rgb(points.colors[order] / 255.0)  # [N, 3]
    return table


def _squared_distances(positions: F32, backend: Backend) -> F32:
    """Mean squared distance to the three nearest others, or to as many others as there are."""
    count = len(positions)
    if count == 1:
        return np.full(1, LONELY_SQUARED_DISTANCE, np.float32)
    if count <= 3:
        offsets = positions[:, None] - positions[None]  # [N, N, 3]
        distances = (offsets.astype(np.float64) ** 2).sum(axis=2).sum(axis=1) / (count - 1)  # [N]
    else:
        distances = backend.neighbour_distance(positions)  # [N]
    return np.maximum(distances, SMALLEST_SQUARED_DISTANCE).astype(np.float32)


def _refuse_non_finite(positions: F32) -> None:
    bad = int((~np.isfinite(positions).all(axis=1)).sum())
    if bad:
        raise InputError(f"{bad} of {len(positions)} points of the cloud are not finite; remove them first.")
