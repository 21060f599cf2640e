"""Which matrices are poses, and what is wrong with those that are not."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatmeter.camera.passed_numbers import F64, numbers, require_finite
from splatmeter.errors import UsageError

LARGEST_ERROR = 1e-3
"""How far R R^T may be from the identity before a matrix no longer counts as a rotation."""
EXACT = 1e-9
"""An error up to this is left as it is; a larger one is removed."""


def rigid(pose: ArrayLike) -> tuple[F64, F64]:
    """Rotation [3, 3] and translation [3] of a pose [4, 4] or [3, 4]; UsageError where it is none."""
    matrix = numbers("The pose", pose)
    if matrix.shape not in ((4, 4), (3, 4)):
        raise UsageError(f"The pose has the shape {matrix.shape}, but must be a matrix of 4x4 or 3x4.")
    require_finite("The pose", matrix)
    if matrix.shape == (4, 4):
        _check_last_row(matrix)
    return _rotation(matrix[:3, :3].copy()), matrix[:3, 3].copy()


def _check_last_row(matrix: F64) -> None:
    expected = np.array([0.0, 0.0, 0.0, 1.0])
    if np.abs(matrix[3] - expected).max() <= LARGEST_ERROR:
        return
    transposed = np.abs(matrix[:, 3] - expected).max() <= LARGEST_ERROR
    remedy = "It looks transposed: pass pose.T." if transposed else "Is it a projection matrix?"
    last = ", ".join(f"{value:g}" for value in matrix[3])
    raise UsageError(f"The pose's last row is ({last}), but must be (0, 0, 0, 1). {remedy}")


def _rotation(matrix: F64) -> F64:
    """The matrix itself where it is a rotation to the last bits, else the nearest one."""
    error = _error(matrix)
    if error > LARGEST_ERROR:
        raise UsageError(_what_is_wrong(matrix))
    if np.linalg.det(matrix) < 0:
        raise UsageError(
            "The pose mirrors: it is left-handed, the determinant of its left 3x3 block being -1. Negate one "
            "of the block's columns. (From OpenGL axes it takes two: pose @ np.diag([1, -1, -1, 1]).)"
        )
    if error <= EXACT:
        return matrix
    left, _, right = np.linalg.svd(matrix)
    return left @ right


def _what_is_wrong(matrix: F64) -> str:
    lengths = np.linalg.norm(matrix, axis=0)  # [3]
    scale = float(lengths.mean())
    if scale > 0 and _error(matrix / scale) <= LARGEST_ERROR:
        return (
            f"The pose scales by {scale:.4g}, which no camera does. Divide its left 3x3 block by that; if "
            "the whole scene was scaled, its Gaussians must be, too."
        )
    told = ", ".join(f"{length:.4g}" for length in lengths)
    return (
        "The pose's left 3x3 block is no rotation: its columns must have length 1 and be at right angles, "
        f"but have the lengths {told}."
    )


def _error(matrix: F64) -> float:
    return float(np.abs(matrix @ matrix.T - np.eye(3)).max())


def unit(vector: NDArray[np.floating], otherwise: str) -> F64:
    """UsageError with the sentence `otherwise` where the vector has no length."""
    length = float(np.linalg.norm(vector))
    if length < 1e-12:
        raise UsageError(otherwise)
    return np.asarray(vector / length, np.float64)
