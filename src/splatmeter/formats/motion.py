"""Models turned, moved and scaled as a whole: positions, axes, sizes, and the colours' directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from splatmeter.ops import F32, F64, LOG_SCALES, MEANS, ROTATIONS, Table

_BANDS = (slice(1, 4), slice(4, 9), slice(9, 16))
_ORDERS = np.array([0, -1, 0, 1, -2, -1, 0, 1, 2, -3, -2, -1, 0, 1, 2, 3])
HALF_TURN_SIGNS = np.where(_ORDERS % 2, -1, 1).astype(np.float32)  # [16]
"""What half a turn about z does to each harmonic: those of odd order change their sign."""


def half_turn_means(means: F32) -> F32:
    return means * np.array([-1, -1, 1], np.float32)


def half_turn_rotations(rotations: F32) -> F32:
    """(w, x, y, z), turned about z from outside: components change places, so nothing is lost."""
    w, x, y, z = rotations.T
    return np.stack([-z, -y, x, w], axis=1)


def half_turn(table: Table) -> None:
    """In place: between the axes of glTF (y up) and those of PLY files (y down)."""
    table.geometry[:, MEANS] = half_turn_means(table.geometry[:, MEANS])
    table.geometry[:, ROTATIONS] = half_turn_rotations(table.geometry[:, ROTATIONS])
    table.harmonics *= np.repeat(HALF_TURN_SIGNS, 3)


def move(table: Table, turn: F64, scale: float, shift: F64) -> None:
    """In place: x becomes scale * turn @ x + shift; `turn` is a proper rotation [3, 3]."""
    means = table.geometry[:, MEANS].astype(np.float64)
    table.geometry[:, MEANS] = scale * means @ turn.T + shift
    table.geometry[:, LOG_SCALES] += np.float32(np.log(scale))
    rotations = table.geometry[:, ROTATIONS].astype(np.float64)
    table.geometry[:, ROTATIONS] = _product(_quaternion(turn), rotations)
    colors = table.harmonics.reshape(-1, 16, 3)
    for band in _BANDS:
        mixed = _turned_band(turn, band)
        colors[:, band] = np.einsum("ij,njc->nic", mixed, colors[:, band].astype(np.float64))


def _turned_band(turn: F64, band: slice) -> F64:
    """Coefficients of f(turn^-1 d) from those of f(d): both are known at more directions than unknowns."""
    directions = np.random.default_rng(0).normal(size=(64, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    known, wanted = basis(directions)[:, band], basis(directions @ turn)[:, band]
    return np.linalg.pinv(known) @ wanted


def basis(directions: F64) -> F64:
    """The 16 harmonics as 3DGS signs and orders them. # [D, 16]"""
    x, y, z = directions.T
    columns = [
        np.full_like(x, 0.28209479177387814),
        -0.4886025119029199 * y, 0.4886025119029199 * z, -0.4886025119029199 * x,
        1.0925484305920792 * x * y, -1.0925484305920792 * y * z, 0.31539156525252005 * (3 * z * z - 1),
        -1.0925484305920792 * x * z, 0.5462742152960396 * (x * x - y * y),
        -0.5900435899266435 * y * (3 * x * x - y * y), 2.890611442640554 * x * y * z,
        -0.4570457994644658 * y * (5 * z * z - 1), 0.3731763325901154 * z * (5 * z * z - 3),
        -0.4570457994644658 * x * (5 * z * z - 1), 1.445305721320277 * z * (x * x - y * y),
        -0.5900435899266435 * x * (x * x - 3 * y * y),
    ]  # fmt: skip
    return np.stack(columns, axis=1)


def matrix(quaternion: NDArray[np.floating]) -> F64:
    """The rotation of a unit quaternion (w, x, y, z). # [3, 3]"""
    w, x, y, z = np.asarray(quaternion, np.float64)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _quaternion(turn: F64) -> F64:
    """(w, x, y, z): the eigenvector of the largest eigenvalue, which is sound for every rotation."""
    m = turn
    symmetric = np.array(
        [
            [m[0, 0] + m[1, 1] + m[2, 2], 0, 0, 0],
            [m[2, 1] - m[1, 2], m[0, 0] - m[1, 1] - m[2, 2], 0, 0],
            [m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], m[1, 1] - m[0, 0] - m[2, 2], 0],
            [m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], m[2, 2] - m[0, 0] - m[1, 1]],
        ]
    )
    return np.linalg.eigh(symmetric)[1][:, -1]  # reads the lower triangle


def _product(left: F64, right: F64) -> F64:
    """The turn `right` [N, 4], then `left` [4]."""
    w, x, y, z = left
    by = np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])
    return right @ by.T
