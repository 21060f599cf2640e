"""From what scene files say about a camera to the pinhole that is rendered.

The convention, once: a point x of the world lies at R x + t in camera axes x right, y down, z forward, and
lands on the pixel coordinates (fx X/Z + cx, fy Y/Z + cy), where the first pixel covers [0, 1) and has its
centre at 0.5. COLMAP counts the same way. Resizing an image therefore only multiplies fx, cx by the ratio of
the widths and fy, cy by the ratio of the heights, without a half-pixel correction.

Differs from the original: it forgets the principal point and assumes the image centre.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splatmeter.ops import F64, Pinhole

LARGEST_ROTATION_ERROR = 1e-2
"""How far R R^T may be from the identity before a matrix no longer counts as a rotation."""


@dataclass(frozen=True, slots=True)
class Intrinsics:
    """A pinhole at the size it was calibrated for; photos may be smaller."""

    fx: float
    fy: float
    cx: float
    cy: float
    width: int
    height: int


@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """World to camera."""

    rotation: F64  # [3, 3]
    translation: F64  # [3]


def pinhole(intrinsics: Intrinsics, pose: Pose, width: int, height: int) -> Pinhole:
    """The camera as seen in an image of width x height, which shows the same field of view."""
    across, down = width / intrinsics.width, height / intrinsics.height
    return Pinhole(
        rotation=pose.rotation,
        translation=pose.translation,
        fx=intrinsics.fx * across,
        fy=intrinsics.fy * down,
        cx=intrinsics.cx * across,
        cy=intrinsics.cy * down,
        width=width,
        height=height,
    )


def centered(focal: float, width: int, height: int) -> Intrinsics:
    """Square pixels and the axis through the middle: how rendered data sets are made."""
    return Intrinsics(focal, focal, width / 2, height / 2, width, height)


def focal_of_angle(angle: float, width: int) -> float:
    """Focal length in pixels of a horizontal field of view in radians."""
    return width / (2 * math.tan(angle / 2))


def pose_from_quaternion(quaternion: F64, translation: F64) -> Pose:
    """COLMAP's world-to-camera (w, x, y, z) and translation; ValueError where they are no pose."""
    length = math.hypot(*quaternion.tolist())
    if not (math.isfinite(length) and _single_precision(translation)):
        raise ValueError("is not finite")
    if length < 1e-12:
        raise ValueError("has a rotation quaternion of length zero")
    w, x, y, z = (quaternion / length).tolist()
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )  # [3, 3]
    return Pose(rotation, np.array(translation, np.float64))


def quaternion_of_rotation(rotation: F64) -> F64:
    """(w, x, y, z) with w >= 0; built on the largest component, so nothing is divided by almost zero."""
    r = np.asarray(rotation, np.float64)
    xx, yy, zz = r[0, 0], r[1, 1], r[2, 2]
    # Each row is 4 q_k (w, x, y, z) for one k; the one with the largest diagonal is the safest. [4, 4]
    rows = np.array(
        [
            [1 + xx + yy + zz, r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]],
            [r[2, 1] - r[1, 2], 1 + xx - yy - zz, r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]],
            [r[0, 2] - r[2, 0], r[0, 1] + r[1, 0], 1 - xx + yy - zz, r[1, 2] + r[2, 1]],
            [r[1, 0] - r[0, 1], r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], 1 - xx - yy + zz],
        ]
    )
    best = rows[int(np.argmax(np.diagonal(rows)))]  # [4]
    quaternion = best / np.linalg.norm(best)
    return -quaternion if quaternion[0] < 0 else quaternion


def pose_from_nerf(camera_to_world: F64) -> Pose:
    """Inverts a transform_matrix [4, 4] (x right, y up, z backward); ValueError where it is no pose."""
    if not _single_precision(camera_to_world):
        raise ValueError("is not finite")
    matrix = np.array(camera_to_world, np.float64)  # [4, 4]
    matrix[:3, 1:3] *= -1
    rotation = matrix[:3, :3]
    error = np.abs(rotation @ rotation.T - np.eye(3)).max()
    if error > LARGEST_ROTATION_ERROR or np.linalg.det(rotation) < 0:
        raise ValueError("has no rotation in its upper left 3x3 block")
    inverse = _inverse(rotation)
    return Pose(inverse, 0.0 - turned(matrix[None, :3, 3], inverse)[0])


def turned(points: F64, matrix: F64) -> F64:
    """Points [N, 3] by a matrix [3, 3]. Libraries of linear algebra round otherwise from processor to
    processor, and scenes are told apart by the bits of their cameras and points."""
    x, y, z = (points[:, k, None] * matrix[:, k] for k in range(3))  # [N, 3] each
    return x + y + z


def _inverse(matrix: F64) -> F64:
    """Of [3, 3], with the same bits on every machine."""
    a, b, c = matrix.T
    rows = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)])  # [3, 3]
    determinant = a[0] * rows[0, 0] + a[1] * rows[0, 1] + a[2] * rows[0, 2]
    return rows / determinant + 0.0  # no negative zeros


def looked_at(cameras: Sequence[Pinhole]) -> F64:
    """The point nearest to all optical axes [3]; the cameras' middle where they look in parallel, or where
    that point lies behind most of them, because they look outward."""
    positions = np.stack([camera.position for camera in cameras])  # [N, 3]
    axes = np.stack([camera.rotation[2] for camera in cameras])  # [N, 3]
    across = np.eye(3) - axes[:, :, None] * axes[:, None, :]  # [N, 3, 3]
    middle = positions.mean(axis=0)
    total = across.sum(axis=0)  # [3, 3]
    if np.linalg.cond(total) > 1e4:
        return middle
    point = np.linalg.solve(total, np.einsum("nij,nj->i", across, positions))
    in_front = np.einsum("ni,ni->n", point - positions, axes) > 0  # [N]
    return point if in_front.mean() > 0.5 else middle


def upward(cameras: Sequence[Pinhole]) -> F64:
    """People hold cameras level: up is square to the pictures' horizontal axes, on the side of their tops.

    Where those axes do not tell (all alike, or cameras lying on their side), it is the mean of the tops.
    """
    tops = -np.stack([camera.rotation[1] for camera in cameras]).mean(axis=0)  # [3]
    tops = tops / np.linalg.norm(tops) if np.linalg.norm(tops) > 1e-6 else np.array([0.0, -1.0, 0.0])
    sides = np.stack([camera.rotation[0] for camera in cameras])  # [V, 3]
    spread, axes = np.linalg.eigh(sides.T @ sides / len(cameras))  # ascending
    square = axes[:, 0] * (1 if axes[:, 0] @ tops >= 0 else -1)
    told = spread[1] > 4 * spread[0] + 0.02 and square @ tops > 0.7
    return square if told else tops


def _single_precision(values: F64) -> bool:
    """Finite and far from float32's limit, where squares of distances still are numbers."""
    return bool((np.abs(values) < 1e15).all())
