"""The noise and the pull of 3DGS-MCMC, in float64 and from the same random bits as the native engine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...ops import (
    F64,
    LAST_UPDATE,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    SECOND_GEOMETRY,
    Table,
)
from ..kernels import Exploration
from ..lazy_adam import pending_of

GATE_SLOPE, GATE_MIDDLE = 100.0, 0.005
GATE_CUT_OFF = 1e-8
"""Below this share of the noise none is added."""


def explore(table: Table, exploration: Exploration) -> None:
    geometry = table.geometry.astype(np.float64)  # [N, 16]
    opacity = 1 / (1 + np.exp(-geometry[:, OPACITY_LOGITS]))  # [N]
    scale = np.exp(geometry[:, LOG_SCALES])  # [N, 3]
    second = _second_moments(table) * exploration.second_correction  # [N, 11]
    steps, rates = exploration.steps, exploration.rates
    slope = exploration.opacity_weight * opacity * (1 - opacity)  # [N]
    geometry[:, OPACITY_LOGITS] -= steps * rates.opacity * _share(slope, second[:, OPACITY_LOGITS])
    slope = exploration.scale_weight * scale  # [N, 3]
    geometry[:, LOG_SCALES] -= steps * rates.scale * _share(slope, second[:, LOG_SCALES])
    gate = 1 / (1 + np.exp(GATE_SLOPE * (opacity - GATE_MIDDLE)))  # [N]
    strength = np.where(gate > GATE_CUT_OFF, gate, 0) * exploration.noise_distance
    axes = _rotations(geometry[:, ROTATIONS]) * scale[:, None, :]  # [N, 3, 3]
    draws = normals(exploration, table.count)  # [N, 3]
    geometry[:, MEANS] += strength[:, None] * np.einsum("nij,nkj,nk->ni", axes, axes, draws)
    table.geometry[:] = geometry


def normals(exploration: Exploration, count: int) -> F64:
    """Three standard normal numbers for each row [N, 3]."""
    first, *others = (np.uint32(key) for key in exploration.random_keys())
    rows = np.arange(count, dtype=np.uint32)
    one, two, three, four = (_mixed(_mixed(rows + first) ^ key) for key in others)  # each [N]
    return np.stack([*_two_normals(one, two), _two_normals(three, four)[0]], axis=1)


def _mixed(bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return bits ^ (bits >> np.uint32(16))


def _two_normals(one: NDArray[np.uint32], two: NDArray[np.uint32]) -> tuple[F64, F64]:
    """Box and Muller; the lowest bit of `two` is the sign of the cosine."""
    radius = np.sqrt(-2 * np.log(((one >> np.uint32(8)) + 1) / 2**24))
    angle = ((two >> np.uint32(8)) / 2**24 - 0.5) * np.pi
    sign = np.where(two & np.uint32(1), -1.0, 1.0)
    return radius * np.sin(angle), radius * np.cos(angle) * sign


def _second_moments(table: Table) -> F64:
    """As they would be had unseen rows not been left behind [N, 11]."""
    moments = table.geometry_moments[:, SECOND_GEOMETRY : SECOND_GEOMETRY + 11].astype(np.float64) ** 2
    pending = pending_of(table)
    if pending is None:
        return moments
    age = np.maximum(pending.step - table.geometry[:, LAST_UPDATE], 0)  # [N]
    return moments * (float(pending.second_decay[1]) ** age)[:, None]


def _share(slope: F64, second: F64) -> F64:
    return slope / np.sqrt(np.maximum(second + slope * slope, 1e-37))


def _rotations(quaternions: F64) -> F64:
    """From (w, x, y, z) of any length [N, 4] to [N, 3, 3]."""
    length = np.linalg.norm(quaternions, axis=1, keepdims=True)
    w, x, y, z = (quaternions / np.maximum(length, 1e-12)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
