"""Where a visitor of the page may stand: the cameras, what they look at, and which way is up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from splatmeter.ops import F64, Pinhole
from splatmeter.scene.camera_files import upward

MOST_VIEWS = 400
"""In a page, evenly chosen; nobody leafs through more."""
WIDE = 1200, 900
"""Pixels of the picture where no camera is known; its lens sees 62 degrees across."""


@dataclass(frozen=True, slots=True, eq=False)
class Viewpoint:
    camera: Pinhole
    held_out: bool = False
    photo: str = ""
    """As a data address; empty without one."""


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """What the controls of the page need to know, in world coordinates."""

    start: Pinhole
    first: int
    """Which of the views that is; -1 where there are none."""
    up: F64  # [3] unit
    focus: F64  # [3] what most cameras look at
    distance: float
    """From there to a usual camera."""


def surroundings(views: Sequence[Viewpoint], means: F64) -> Surroundings:
    """`means` [N, 3] are the Gaussians'."""
    if not views:
        return _without_cameras(means)
    cameras = [view.camera for view in views]
    focus = looked_at(cameras, means)
    distance = float(np.median([np.linalg.norm(camera.position - focus) for camera in cameras]))
    first = _first(views, focus)
    return Surroundings(cameras[first], first, upward(cameras), focus, max(distance, 1e-6))


def _first(views: Sequence[Viewpoint], focus: F64) -> int:
    """The view that looks most nearly at the focus, among those held out if there are any."""
    wanted = [number for number, view in enumerate(views) if view.held_out] or list(range(len(views)))
    return max(wanted, key=lambda number: _aim(views[number].camera, focus))


def _aim(camera: Pinhole, focus: F64) -> float:
    way = focus - camera.position
    return float(camera.rotation[2] @ way / max(float(np.linalg.norm(way)), 1e-12))


def looked_at(cameras: Sequence[Pinhole], means: F64) -> F64:
    """The point nearest to all optical axes; the middle of the Gaussians where the axes do not meet."""
    middle = np.median(means, axis=0) if len(means) else np.zeros(3)
    axes = np.stack([camera.rotation[2] for camera in cameras])  # [V, 3]
    places = np.stack([camera.position for camera in cameras])  # [V, 3]
    across = np.eye(3) - axes[:, :, None] * axes[:, None, :]  # [V, 3, 3]
    total = across.sum(axis=0)
    if np.linalg.eigvalsh(total)[0] < 0.02 * len(cameras):  # nearly parallel
        return middle
    point = np.linalg.solve(total, (across @ places[:, :, None]).sum(axis=0)[:, 0])
    ahead = ((point - places) * axes).sum(axis=1) > 0  # [V]
    return point if ahead.mean() > 0.7 else middle


def _without_cameras(means: F64) -> Surroundings:
    """From outside and a little from above, y pointing down as COLMAP has it."""
    middle = np.median(means, axis=0) if len(means) else np.zeros(3)
    radius = float(np.quantile(np.linalg.norm(means - middle, axis=1), 0.8)) if len(means) else 1.0
    radius = max(radius, 1e-3)
    position = middle + radius * np.array([0.6, -0.8, -2.0])
    ahead = (middle - position) / np.linalg.norm(middle - position)
    right = np.cross(ahead, [0.0, -1.0, 0.0])
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(ahead, right), ahead])  # [3, 3]
    width, height = WIDE
    start = Pinhole(rotation, -rotation @ position, 1000.0, 1000.0, width / 2, height / 2, width, height)
    far = float(np.linalg.norm(middle - position))
    return Surroundings(start, -1, np.array([0.0, -1.0, 0.0]), middle, far)


def evenly(views: Sequence[Viewpoint], most: int = MOST_VIEWS) -> list[Viewpoint]:
    """All, or so many of them in their order."""
    if len(views) <= most:
        return list(views)
    return [views[round(place)] for place in np.linspace(0, len(views) - 1, most)]


def record(camera: Pinhole, origin: F64) -> dict[str, Any]:
    """As web/camera.js has it."""
    return {
        "position": [round(float(value), 9) for value in camera.position - origin],
        "rotation": [round(float(value), 9) for value in camera.rotation.ravel()],
        **{name: round(float(getattr(camera, name)), 6) for name in ("fx", "fy", "cx", "cy")},
        "width": camera.width,
        "height": camera.height,
    }
