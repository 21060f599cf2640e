"""Questions about points in space: who sees them, who is near, and in which order to store them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...ops import F32, NEAR, Pinhole

MARGIN = 0.15
"""A camera also counts as seeing what lies this part of the image beyond its border."""

MORTON_BITS = 10  # per axis
ROWS_AT_ONCE = 512


def sampling_distance(means: F32, cameras: Sequence[Pinhole], *, dtype: torch.dtype) -> F32:
    """Depth along the optical axis, not Euclidean distance; occlusion does not count."""
    points = torch.as_tensor(means, dtype=dtype)  # [N, 3]
    nearest = torch.full((len(points),), torch.inf, dtype=dtype)  # [N]
    for camera in cameras:
        rotation = torch.as_tensor(camera.rotation, dtype=dtype)
        position = points @ rotation.T + torch.as_tensor(camera.translation, dtype=dtype)  # [N, 3]
        x, y, z = position.unbind(-1)
        u = x / z.clamp(min=0.001) * camera.fx + camera.cx
        v = y / z.clamp(min=0.001) * camera.fy + camera.cy
        sees = (z > NEAR) & within(u, camera.width) & within(v, camera.height)  # [N]
        nearest = torch.where(sees, torch.minimum(nearest, z), nearest)
    return nearest.numpy()


def within(coordinate: Tensor, size: int) -> Tensor:
    return (coordinate >= -MARGIN * size) & (coordinate <= (1 + MARGIN) * size)


def neighbour_distance(points: F32, *, dtype: torch.dtype) -> F32:
    """Brute force. With fewer than three other points it is the mean over those there are; alone it is 0."""
    positions = torch.as_tensor(points, dtype=dtype)  # [N, 3]
    count = len(positions)
    neighbours = min(3, count - 1)
    result = torch.zeros(count, dtype=dtype)
    if neighbours < 1:
        return result.numpy()
    for start in range(0, count, ROWS_AT_ONCE):
        rows = torch.arange(start, min(start + ROWS_AT_ONCE, count))  # [P]
        squared = (positions[rows, None, :] - positions[None, :, :]).square().sum(dim=-1)  # [P, N]
        squared[torch.arange(len(rows)), rows] = torch.inf  # not oneself
        result[rows] = squared.topk(neighbours, largest=False).values.mean(dim=1)
    return result.numpy()


def morton_order(means: F32) -> NDArray[np.int64]:
    """Cells of a 1024^3 grid over the 1st to 99th percentile, so that a few far points do not coarsen it."""
    points = np.nan_to_num(np.asarray(means, np.float64), posinf=0.0, neginf=0.0)  # [N, 3]
    if len(points) == 0:
        return np.zeros(0, np.int64)
    low, high = np.percentile(points, [1, 99], axis=0)  # [3] each
    size = np.where(high > low, high - low, 1.0)
    largest = 2**MORTON_BITS - 1
    cells = np.clip((points - low) / size * largest, 0, largest).astype(np.int64)  # [N, 3]
    code = np.zeros(len(points), np.int64)
    for bit in range(MORTON_BITS):
        for axis in range(3):
            code |= ((cells[:, axis] >> bit) & 1) << (3 * bit + axis)
    return np.argsort(code, kind="stable")
