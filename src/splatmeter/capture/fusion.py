"""Points from how far away pixels are: only those that several photos agree on, each about once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from splatmeter.capture.sweep import Near, rays_of
from splatmeter.ops import F32, F64, Pinhole

LOWEST_SCORE = 0.6
"""Agreement of windows below which a distance is a guess."""
SAME = 0.01
"""Part of the distance by which two photos may differ about it."""
AGREEING = 2
"""Other photos that must find the same distance, where there are so many beside it."""
CELL = 3
"""Pixels: of each square of so many the best point is taken, if no photo before has given one there."""

Maps = Callable[[int], Near]
"""What was found for the photo at this place in the list."""


class Fusion:
    def __init__(self, cameras: Sequence[Pinhole], beside: Sequence[Sequence[int]], maps: Maps) -> None:
        self._cameras, self._beside, self._maps = cameras, beside, maps
        self._taken = [np.zeros(_cells(camera), np.bool_) for camera in cameras]

    def points(self, place: int, shown: NDArray[np.bool_]) -> tuple[F32, NDArray[np.int64]]:
        """New points [N, 3] of this photo where `shown` [h, w], and their rows and columns [N, 2] in it."""
        near, camera = self._maps(place), self._cameras[place]
        rows, columns = self._candidates(place, near, shown)
        depth = 1 / near.inverse[rows, columns].astype(np.float64)  # [C]
        rays = rays_of(camera)[rows, columns]  # [C, 3]
        world = (rays * depth[:, None] - camera.translation) @ camera.rotation  # [C, 3]
        agreeing = np.zeros(len(world), np.int32)
        seen: list[tuple[int, NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]] = []
        for other in self._beside[place]:
            same, r, c = self._agrees(world, other)
            agreeing += same
            seen.append((other, same, r, c))
        good = agreeing >= max(1, min(AGREEING, len(seen)))
        good &= _first_in_cell(rows, columns, near.score[rows, columns], good, self._taken[place].shape)
        for other, same, r, c in seen:
            marked = good & same
            self._taken[other][r[marked] // CELL, c[marked] // CELL] = True
        return world[good].astype(np.float32), np.stack([rows[good], columns[good]], axis=1)

    def _candidates(
        self, place: int, near: Near, shown: NDArray[np.bool_]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        height, width = near.score.shape
        free = ~np.repeat(np.repeat(self._taken[place], CELL, 0), CELL, 1)[:height, :width]
        rows, columns = np.nonzero(free & shown & (near.score >= LOWEST_SCORE) & (near.inverse > 0))
        return rows, columns

    def _agrees(self, world: F64, other: int) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]:
        """Whether the other photo finds each point where it is, and the pixels that it has there."""
        camera, near = self._cameras[other], self._maps(other)
        x, y, depth = (world @ camera.rotation.T + camera.translation).T
        ahead = depth > 0
        safe = np.where(ahead, depth, 1)
        columns = np.floor(np.clip(camera.fx * x / safe + camera.cx, -1, camera.width)).astype(np.intp)
        rows = np.floor(np.clip(camera.fy * y / safe + camera.cy, -1, camera.height)).astype(np.intp)
        inside = ahead & (columns >= 0) & (rows >= 0) & (columns < camera.width) & (rows < camera.height)
        columns, rows = np.where(inside, columns, 0), np.where(inside, rows, 0)
        found = near.inverse[rows, columns]
        same = inside & (np.abs(found * safe - 1) < SAME) & (near.score[rows, columns] >= LOWEST_SCORE)
        return same, rows, columns


def _cells(camera: Pinhole) -> tuple[int, int]:
    return -(-camera.height // CELL), -(-camera.width // CELL)


def _first_in_cell(
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
    scores: F32,
    good: NDArray[np.bool_],
    cells: tuple[int, int],
) -> NDArray[np.bool_]:
    """The best of the good ones in each cell."""
    chosen = np.zeros(len(rows), np.bool_)
    usable = np.nonzero(good)[0]
    usable = usable[np.argsort(-scores[usable], kind="stable")]
    cell = (rows[usable] // CELL) * cells[1] + columns[usable] // CELL
    chosen[usable[np.unique(cell, return_index=True)[1]]] = True
    return chosen
