"""Which points each photo sees: by COLMAP's tracks where there are any, else by projecting them.

A projection takes for visible what lies behind a wall; photos are then given to more blocks than they help.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from splatmeter.ops import F32, F64, NEAR, Pinhole
from splatmeter.scene.scene import Scene, View
from splatmeter.scene.tracks import by_photo, read_tracks

MOST_WITNESSES = 100_000
"""Points that are projected: evenly chosen ones tell shares as well as all of them."""

FEWEST_TRACKED = 0.9
"""Share of the photos that tracks must know, or they are of another state of the scene."""


class Sightings(Protocol):
    @property
    def how(self) -> str: ...

    @property
    def positions(self) -> F64: ...  # [W, 3] world

    def seen(self, photo: int) -> NDArray[np.int64]:
        """Rows of positions that this photo sees; photos count as in the list they were made of."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Tracked:
    positions: F64
    rows: Sequence[NDArray[np.int64]]
    how: str = "tracks"

    def seen(self, photo: int) -> NDArray[np.int64]:
        return self.rows[photo]


@dataclass(frozen=True, slots=True, eq=False)
class Projected:
    positions: F64
    cameras: Sequence[Pinhole]
    how: str = "projection"

    def seen(self, photo: int) -> NDArray[np.int64]:
        return np.flatnonzero(in_picture(self.positions, self.cameras[photo]))


def sightings(scene: Scene, views: Sequence[View]) -> Sightings:
    return _tracked(scene.source, scene.kind, views) or Projected(
        evenly(scene.points.positions, MOST_WITNESSES).astype(np.float64), [view.camera for view in views]
    )


def _tracked(source: Path, kind: str, views: Sequence[View]) -> Tracked | None:
    found = read_tracks(source) if kind == "colmap" else None
    if found is None:
        return None
    tracks, named = found
    rows = by_photo(tracks, named, [view.name for view in views])
    known = sum(len(seen) > 0 for seen in rows)
    return Tracked(tracks.positions, rows) if known >= FEWEST_TRACKED * len(views) else None


def evenly(points: F32, most: int) -> F32:
    """At most so many, evenly chosen in their order."""
    count = len(points)
    return points if count <= most else points[np.arange(most) * count // most]


def in_picture(points: F64, camera: Pinhole) -> NDArray[np.bool_]:
    """Whether a point would be drawn inside the picture, if nothing hid it [N]."""
    x, y, z = (points @ camera.rotation.T + camera.translation).T  # [N] each
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        across, down = camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy
    inside = (across >= 0) & (across < camera.width) & (down >= 0) & (down < camera.height)
    return (z > NEAR) & inside
