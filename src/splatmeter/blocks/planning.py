"""From a scene and a grid to blocks: which photos and points each gets, and what stands in for the rest.

A block is its cell with a margin around it. Photos that see enough of the cell belong to it. All points
inside are its own; of those outside that its photos see a thinned choice stands in, so that the pictures it
is compared with have something behind and beside the block. Stand-ins learn, but only Gaussians inside the
block become more, and whatever lies outside the cell is dropped when blocks are joined.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import HalfSpaces
from splatmeter.blocks.grid import Grid, divide
from splatmeter.blocks.sightings import Sightings, in_picture, sightings
from splatmeter.densify.region import inside
from splatmeter.errors import InputError
from splatmeter.ops import F32, F64
from splatmeter.scene.points import FARTHEST
from splatmeter.scene.scene import FEWEST_POINTS, PointCloud, Scene, View, fingerprint

LEAST_SHARE = 0.05
"""Share of what a photo sees that must lie in a cell for the photo to belong to it."""

FEWEST_PHOTOS = 3
"""The fewest photos that a block can be trained on."""

STAND_IN_SHARE = 0.5
"""Stand-ins for each point inside a block, at most."""

FEWEST_STAND_INS = 1000
ASKED_PHOTOS = 64
"""Photos of a block that are asked which points outside they see."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    name: str
    """Its place in the grid, counted from 1: slab, then cell."""
    cell: tuple[int, int]
    train: tuple[str, ...]
    test: tuple[str, ...]
    points: PointCloud
    """Those inside, then stand-ins."""
    own: int
    """Points in the cell itself."""
    inside: int
    """And with its margin."""
    load: float
    """Share of all that photos look at."""
    region: HalfSpaces

    @property
    def stand_ins(self) -> int:
        return self.points.count - self.inside

    def scene(self, whole: Scene) -> Scene:
        """As training will find it."""
        train, test = set(self.train), set(self.test)
        return dataclasses.replace(
            whole,
            train=tuple(view for view in whole.train if view.name in train),
            test=tuple(view for view in whole.test if view.name in test),
            points=self.points,
        )

    def share_of(self, gaussians: int) -> int:
        """Its share of the whole scene's budget, plus margins and stand-ins, which are dropped later."""
        grown = gaussians * self.load * self.inside / max(1, self.own)
        return max(1, math.ceil(grown) + self.stand_ins)


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    grid: Grid
    shape: tuple[int, int]
    blocks: tuple[Block, ...]
    how: str
    """Photos were given to blocks by 'tracks' or by 'projection'."""
    scene: str
    """Fingerprint of the whole one."""

    def record(self) -> dict[str, Any]:
        """What all blocks of a division share, and no other division has."""
        shared = {"shape": list(self.shape), "grid": self.grid.record(), "scene": self.scene}
        plain = json.loads(json.dumps(shared))
        digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
        return {"id": digest[:16], **plain}


def planned(scene: Scene, shape: tuple[int, int]) -> Division:
    """InputError where a block would have too little to train on."""
    views = (*scene.train, *scene.test)
    found = sightings(scene, views)
    loads = _loads(found, len(scene.train))  # [W]
    middle = np.mean([view.camera.position for view in scene.train], axis=0)
    near = np.linalg.norm(np.nan_to_num(found.positions, posinf=1e150, neginf=1e150) - middle, axis=1)
    usable = (loads > 0) & np.isfinite(found.positions).all(axis=1) & (near <= FARTHEST * scene.extent)  # [W]
    if not usable.any():
        raise InputError(f"No photo of {scene.source} sees any of its points: it cannot be divided.")
    centers = np.stack([view.camera.position for view in views])  # [V, 3]
    grid = divide(centers, found.positions[usable], loads[usable], shape)
    numbers = np.where(usable, grid.numbers_of(found.positions), -1)  # [W]
    members = _members(found, numbers, len(views), len(grid.cells))  # [V, C]
    total = loads[usable].sum()
    cells_of_points = grid.numbers_of(scene.points.positions)  # [P]
    blocks: list[Block] = []
    for number, cell in enumerate(grid.cells):
        taken = [view for view, member in zip(views, members[:, number], strict=True) if member]
        load = float(loads[numbers == number].sum() / total)
        blocks.append(_block(scene, grid, cell, taken, cells_of_points == number, load))
    _require(blocks, shape, scene)
    return Division(grid, shape, tuple(blocks), found.how, fingerprint(scene))


def _loads(found: Sightings, photos: int) -> F64:
    """How often training photos see each point [W]."""
    loads = np.zeros(len(found.positions))
    for photo in range(photos):
        loads[found.seen(photo)] += 1
    return loads


def _members(found: Sightings, numbers: NDArray[np.int64], photos: int, cells: int) -> NDArray[np.bool_]:
    """Which photo belongs to which cell [V, C]: every one to at least that of which it sees most."""
    members = np.zeros((photos, cells), np.bool_)
    for photo in range(photos):
        seen = numbers[found.seen(photo)]
        counts = np.bincount(seen[seen >= 0], minlength=cells)  # [C]
        members[photo] = counts >= LEAST_SHARE * max(1, counts.sum())
        members[photo, int(counts.argmax())] = True
    return members


def _block(
    scene: Scene,
    grid: Grid,
    cell: tuple[int, int],
    views: Sequence[View],
    own: NDArray[np.bool_],
    load: float,
) -> Block:
    region = grid.region(cell)
    held = {view.name for view in scene.test}
    positions = scene.points.positions
    within = own | inside(positions, region)  # [P]
    rows = np.flatnonzero(within)
    train = [view for view in views if view.name not in held]
    more = _stand_ins(positions, np.flatnonzero(~within), train, len(rows))
    chosen = np.concatenate([rows, more])
    return Block(
        name=f"{cell[0] + 1}-{cell[1] + 1}",
        cell=cell,
        train=tuple(view.name for view in train),
        test=tuple(view.name for view in views if view.name in held),
        points=PointCloud(positions[chosen], scene.points.colors[chosen]),
        own=int(np.count_nonzero(own)),
        inside=len(rows),
        load=load,
        region=region,
    )


def _stand_ins(
    positions: F32, outside: NDArray[np.int64], views: Sequence[View], points_inside: int
) -> NDArray[np.int64]:
    """Rows of points outside, the more often the block's photos see them the more likely [K]."""
    wanted = max(FEWEST_STAND_INS, int(STAND_IN_SHARE * points_inside))
    thinned = outside[:: max(1, len(outside) // (8 * wanted))]
    where = positions[thinned].astype(np.float64)
    asked = views[:: max(1, len(views) // ASKED_PHOTOS)]
    looks = sum((in_picture(where, view.camera) for view in asked), np.zeros(len(thinned)))  # [T]
    if not len(thinned) or not looks.any():
        return outside[:0]
    total = np.cumsum(looks)
    places = (np.arange(wanted) + 0.5) / wanted * total[-1]
    if wanted >= np.count_nonzero(looks):
        return thinned[looks > 0]
    return thinned[np.unique(np.searchsorted(total, places))]


def _require(blocks: Sequence[Block], shape: tuple[int, int], scene: Scene) -> None:
    for block in blocks:
        if block.own < FEWEST_POINTS:
            lack = f"{block.own} points inside, and at least {FEWEST_POINTS} are needed"
        elif len(block.train) < FEWEST_PHOTOS:
            lack = f"{len(block.train)} photos that see enough of it, and at least {FEWEST_PHOTOS} are needed"
        else:
            continue
        smaller = " or ".join(
            f"{across}x{within}"
            for across, within in ((shape[0] - 1, shape[1]), (shape[0], shape[1] - 1))
            if across >= 1 and within >= 1
        )
        advice = f"Use fewer blocks, such as {smaller}." if smaller else "Train it without --blocks."
        raise InputError(
            f"Block {block.name} of {shape[0]}x{shape[1]} would have {lack} ({scene.source}). {advice}"
        )
