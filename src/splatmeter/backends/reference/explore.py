"""The noise and the pull of 3DGS-MCMC, in float64 and from the same random bits as the native engine."""

from __future__ import annotations

import numpy as np

from ...densify.draws import normals
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
    draws = normals(exploration.random_keys(), np.arange(table.count))  # [N, 3]
    geometry[:, MEANS] += strength[:, None] * np.einsum("nij,nkj,nk->ni", axes, axes, draws)
    table.geometry[:] = geometry


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
