"""What a viewer gets to see: few enough Gaussians, copied between two steps, the rest worked out elsewhere.

The trainer knows nothing of it. Its backend's `upload` notes the model; when a progress event comes, no step
is under way, and the training clock stands still until the listeners are done.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import Backend, Model, OptimizerState
from splatmeter.events import Event, Finished, Planned, Progress, Started
from splatmeter.gaussians import gaussians
from splatmeter.gaussians.harmonics import rgb_from_dc
from splatmeter.listeners.viewer import Splats, Viewer, Viewpoint
from splatmeter.ops import (
    F32,
    FILTER_3D,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    Table,
)
from splatmeter.units import count_text, duration_text

PREVIEW_GAUSSIANS = 100_000
"""Sent at most while training: 3 MB a picture."""

_NEW = OptimizerState()


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Rows copied out of a model that goes on changing.

    Rows not seen for a while are some steps of momentum behind: nothing an eye can tell.
    """

    geometry: F32  # [M, 16]
    harmonics: F32  # [M, 3] the constant ones
    total: int


def sample(source: Table | Model, limit: int) -> Sample:
    geometry = _stored(source, "geometry", slice(None))  # [N, 16]
    rows = chosen_rows(geometry, limit)
    if rows is None:
        return Sample(geometry.copy(), _stored(source, "harmonics", slice(None))[:, :3].copy(), source.count)
    return Sample(geometry[rows], _stored(source, "harmonics", rows)[:, :3].copy(), source.count)


def _stored(source: Table | Model, array: str, rows: slice | NDArray[np.int64]) -> F32:
    return getattr(source, array)[rows] if isinstance(source, Table) else source.stored(array, rows)


def chosen_rows(geometry: F32, limit: int) -> NDArray[np.int64] | None:
    """The `limit` rows that cover most: opacity times the area of a side, without exponentials. None: all."""
    count = len(geometry)
    if count <= limit:
        return None
    area = geometry[:, LOG_SCALES].sum(axis=1) * np.float32(2 / 3)  # [N] logarithm
    weight = area + np.minimum(geometry[:, OPACITY_LOGITS], 0)  # [N] min(x, 0) is log sigmoid(x) within log 2
    np.copyto(weight, -np.inf, where=~np.isfinite(weight))
    return np.sort(np.argpartition(weight, count - limit)[count - limit :])


def splats(taken: Sample) -> Splats:
    """With the 3D filter inside; rows that are no numbers are left out."""
    whole = np.isfinite(taken.geometry[:, : FILTER_3D + 1]).all(axis=1)
    whole &= np.isfinite(taken.harmonics).all(axis=1)
    geometry, harmonics = taken.geometry[whole], taken.harmonics[whole]
    none = np.empty((0, 0), np.float32)
    table = Table(geometry, none, none, none, none)
    return Splats(
        means=np.ascontiguousarray(geometry[:, MEANS]),
        covariances=covariances(gaussians.rotations(table), gaussians.filtered_scales(table)),
        colors=_bytes(rgb_from_dc(harmonics)),
        opacities=_bytes(gaussians.filtered_opacities(table))[:, None],
    )


def covariances(rotations: F32, scales: F32) -> F32:
    """R S S R^T of unit quaternions (w, x, y, z) and scales."""
    w, x, y, z = rotations.T
    axes = np.empty((len(rotations), 3, 3), np.float32)  # [N, 3, 3] columns: the axes, as long as the scales
    axes[:, 0] = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], axis=1)
    axes[:, 1] = np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], axis=1)
    axes[:, 2] = np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=1)
    axes *= scales[:, None, :]
    return axes @ axes.transpose(0, 2, 1)  # [N, 3, 3]


def _bytes(values: F32) -> NDArray[np.uint8]:
    return np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8)


def shown(taken: Sample) -> str:
    """'1.41 M Gaussians', and how many of them are drawn where not all are."""
    drawn = len(taken.geometry)
    rest = "" if drawn == taken.total else f" ({count_text(drawn)} drawn)"
    return f"{count_text(taken.total)}{rest}"


# ---- where to stand ---------------------------------------------------------------------------------------
def viewpoint(folder: Path | None, means: F32) -> Viewpoint:
    """The run's first camera; without one, from beside what most Gaussians surround, with y down."""
    center = np.median(means, axis=0).astype(np.float64) if len(means) else np.zeros(3)
    try:
        cameras = json.loads((folder / "cameras.json").read_text("utf-8")) if folder else []
        positions = np.array([camera["position"] for camera in cameras], np.float64).reshape(-1, 3)
        rotations = np.array([camera["rotation"] for camera in cameras], np.float64).reshape(-1, 3, 3)
    except (OSError, ValueError, KeyError, TypeError):
        positions, rotations = np.empty((0, 3)), np.empty((0, 3, 3))
    if len(positions) and np.isfinite(positions).all() and np.isfinite(rotations).all():
        up = -rotations[:, :, 1].mean(axis=0)
        ahead = max(float((center - positions[0]) @ rotations[0, :, 2]), 1e-3)
        target = positions[0] + ahead * rotations[0, :, 2]
        return Viewpoint(positions[0], target, up / max(float(np.linalg.norm(up)), 1e-9))
    radius = float(np.quantile(np.linalg.norm(means - center, axis=1), 0.8)) if len(means) else 1.0
    return Viewpoint(center + radius * np.array([0.6, -0.8, -2.0]), center, np.array([0.0, -1.0, 0.0]))


# ---- while training ---------------------------------------------------------------------------------------
class Watch:
    """Which Gaussians are being trained."""

    def __init__(self) -> None:
        self.model: Model | None = None

    def over(self, backend: Backend) -> Backend:
        """The same backend; what is uploaded to it is seen, never touched."""

        def upload(table: Table, optimizer: OptimizerState = _NEW, /) -> Model:
            self.model = backend.upload(table, optimizer)
            return self.model

        return dataclasses.replace(backend, upload=upload)


class LiveView:
    """A listener that shows the scene as it trains, to whoever has the page open."""

    def __init__(self, viewer: Viewer, watch: Watch, folder: Path, limit: int = PREVIEW_GAUSSIANS) -> None:
        self.viewer = viewer
        self._watch = watch
        self._folder = folder
        self._limit = limit
        self._config: Mapping[str, Any] = {}
        self._placed = False
        self._told = False

    def __call__(self, event: Event) -> None:
        if isinstance(event, Started):
            self._config = event.config
            level = 255 if event.config.get("white_background") else 0
            self.viewer.paint_background((level, level, level))
        elif isinstance(event, Planned):
            self._config = {**self._config, "iterations": event.iterations}
        elif isinstance(event, Progress) and self._watch.model is not None:
            self._look(event, self._watch.model)
        elif isinstance(event, Finished):
            print(f"Look at it with: splatmeter view {self._folder}", file=sys.stderr)

    def close(self) -> None:
        self.viewer.close()

    def _look(self, event: Progress, model: Model) -> None:
        if not self._placed:
            self._placed = True
            self.viewer.stand(viewpoint(self._folder, model.stored("geometry", slice(None))[:, MEANS]))
        if self.viewer.due():
            begin = perf_counter()
            taken = sample(model, self._limit)
            spent = perf_counter() - begin
            self.viewer.offer(lambda: splats(taken), self._facts(event, taken), spent)
        elif self.viewer.complaint and not self._told:
            self._told = True
            print(self.viewer.complaint, file=sys.stderr)

    def _facts(self, event: Progress, taken: Sample) -> dict[str, str]:
        return {
            "Step": f"{event.step} of {self._config.get('iterations', '?')}",
            "Gaussians": shown(taken),
            "SH degree": f"{event.sh_degree} (shown: without what depends on the direction)",
            "Loss": f"{event.loss:.5f}",
            "Training": duration_text(event.clock_seconds),
        }
