"""A camera path nobody has to draw: once around, through where the photos were taken.

Each training camera has an angle about the scene's upright axis. Position and viewing direction become a
low-order Fourier series in that angle, fitted by least squares: smooth, closed, and near the cameras.
Where the photos show one side only, the path swings there and back instead of passing behind the scene.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from splatmeter.errors import UsageError
from splatmeter.ops import F64, Pinhole

HARMONICS = 2
"""Full waves per turn the path may follow; more would reproduce the wobble of a hand-held walk."""

WIDEST_GAP = math.pi / 2
"""A stretch without cameras longer than this is not crossed."""

RIDGE = 1e-3
"""Keeps the fit defined where a part of the circle has no camera."""


def orbit(cameras: Sequence[Pinhole], frames: int) -> list[Pinhole]:
    """`frames` cameras once around the scene, with the first camera's lens and image size."""
    if frames < 1:
        raise UsageError(f"A path of {frames} frames shows nothing; ask for at least 1.")
    if not cameras:
        raise UsageError("A path needs training cameras to follow, but the scene has none.")
    positions = np.stack([camera.position for camera in cameras])  # [C, 3]
    forward = np.stack([camera.rotation[2] for camera in cameras])  # [C, 3] world
    up = _unit(-np.stack([camera.rotation[1] for camera in cameras]).sum(axis=0), cameras[0].rotation[1] * -1)
    focus = _meeting_point(positions, forward)
    angles = _angles(positions - focus, up)  # [C]
    turn = _turn(angles, frames)  # [F]
    places = _fit(angles, positions, turn)  # [F, 3]
    directions = _fit(angles, forward, turn)  # [F, 3]
    return [_aimed(cameras[0], place, way, up) for place, way in zip(places, directions, strict=True)]


def _meeting_point(positions: F64, forward: F64) -> F64:
    """The point nearest to all optical axes; the cameras' centre where the axes are parallel."""
    across = np.eye(3) - forward[:, :, None] * forward[:, None, :]  # [C, 3, 3] projection off each axis
    system = across.sum(axis=0)
    if np.linalg.cond(system) > 1e6:
        return positions.mean(axis=0) + forward.mean(axis=0)
    return np.linalg.solve(system, (across @ positions[:, :, None]).sum(axis=0)[:, 0])  # [3]


def _turn(angles: F64, frames: int) -> F64:
    """The angles to visit: all around from the first camera, or to and fro beside the widest gap."""
    progress = np.arange(frames) / frames  # [F]
    ordered = np.sort(angles)
    gaps = np.diff(np.append(ordered, ordered[0] + 2 * math.pi))  # [C]
    widest = int(np.argmax(gaps))
    if gaps[widest] <= WIDEST_GAP:
        return angles[0] + 2 * math.pi * progress
    begin, span = ordered[(widest + 1) % len(ordered)], 2 * math.pi - gaps[widest]
    return begin + span * (0.5 - 0.5 * np.cos(2 * math.pi * progress))


def _angles(offsets: F64, up: F64) -> F64:
    """The angle of each camera about the axis [C]."""
    aside = np.eye(3)[np.argmin(np.abs(up))]
    right = _unit(np.asarray(np.cross(up, aside), np.float64), aside)
    return np.arctan2(offsets @ np.cross(up, right), offsets @ right)  # [C]


def _fit(angles: F64, values: F64, turn: F64) -> F64:
    basis, wanted = _waves(angles), _waves(turn)  # [C, 5], [F, 5]
    penalty = RIDGE * len(angles) * np.diag([0.0] + [1.0] * (2 * HARMONICS))
    weights = np.linalg.lstsq(basis.T @ basis + penalty, basis.T @ values, rcond=None)[0]  # [5, 3]
    return wanted @ weights  # [F, 3]


def _waves(angles: F64) -> F64:
    columns = [np.ones_like(angles)]
    for order in range(1, HARMONICS + 1):
        columns += [np.cos(order * angles), np.sin(order * angles)]
    return np.stack(columns, axis=1)  # [A, 5]


def _aimed(lens: Pinhole, position: F64, direction: F64, up: F64) -> Pinhole:
    forward = _unit(direction, lens.rotation[2])
    right = _unit(np.cross(forward, up), lens.rotation[0])
    rotation = np.stack([right, np.cross(forward, right), forward])  # [3, 3] world to camera, y down
    return dataclasses.replace(lens, rotation=rotation, translation=-rotation @ position)


def _unit(vector: F64, otherwise: F64) -> F64:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 1e-9 else otherwise / np.linalg.norm(otherwise)
