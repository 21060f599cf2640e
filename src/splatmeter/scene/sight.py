"""How large things look in the photos of a scene."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from splatmeter.ops import F64, NEAR, Pinhole

MOST_CAMERAS, MOST_POINTS = 32, 10_000
"""Evenly chosen: medians of more would say the same."""


def pixels_per_unit(positions: F64, cameras: Sequence[Pinhole]) -> float:
    """Pixels that one unit of length takes across a photo, where its points are: medians over the points that
    a camera sees, and over cameras; 0 where none sees any."""
    points = positions[:: max(1, len(positions) // MOST_POINTS)]  # [P, 3]
    found = [_seen_by(camera, points) for camera in cameras[:: max(1, len(cameras) // MOST_CAMERAS)]]
    sizes = [size for size in found if size > 0]
    return float(np.median(sizes)) if sizes else 0.0


def _seen_by(camera: Pinhole, points: F64) -> float:
    x, y, z = camera.rotation @ points.T + camera.translation[:, None]  # each [P]
    ahead = z > NEAR
    x, y, z = x[ahead], y[ahead], z[ahead]
    u, v = camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy  # [P] pixels
    seen = (u >= 0) & (u <= camera.width) & (v >= 0) & (v <= camera.height)
    return float(camera.fx / np.median(z[seen])) if seen.any() else 0.0
