"""The built-in city: a small town of any size, for trying out what large scenes need.

Streets in a grid, houses around yards, parks, trees and cars, photographed from the air and from the street
by our own ray tracer (native/demo), as an ordinary COLMAP folder. The same size and seed give the same bytes
on the same machine, with any number of threads; a larger city has the blocks of a smaller one, and more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import UsageError
from splatmeter.ops import Pinhole
from splatmeter.scene.built_in import (
    BuiltIn,
    Progress,
    checked_seed,
    numbers_of,
    ray_tracer,
    usable_cores,
)
from splatmeter.scene.city_cameras import city_shots, count_of_photos
from splatmeter.scene.colmap_writer import Tracks, write_colmap
from splatmeter.scene.points import PointCloud

VERSION = 2
"""Goes up whenever the pictures change, so that older copies in the cache are not mistaken for this one."""
LARGEST_SIZE = 20
SMALLEST_SIDE, LARGEST_SIDE = 16, 4096  # of a photo, in pixels
SAMPLES = 16  # per pixel, a square number
POINTS_PER_BLOCK = 4000
LONGEST_TRACK = 12
"""A point remembers the nearest cameras that see it, so many at most."""
DRAWS_AT_ONCE = 2**16  # bounds the memory of points that are not kept
POSITION_NOISE = 0.002
"""Standard deviation of a point's error, as a share of its distance from the camera that found it."""


@dataclass(frozen=True, slots=True)
class CitySize:
    """What city is made; part of the stamp."""

    size: int = 2
    """Blocks on a side, 40 m each."""
    width: int = 480
    height: int = 320
    seed: int = 0
    samples: int = SAMPLES
    points_per_block: int = POINTS_PER_BLOCK

    @property
    def photos(self) -> int:
        return count_of_photos(self.size)

    @property
    def points(self) -> int:
        return self.points_per_block * self.size * self.size

    def checked(self) -> CitySize:
        checked_seed(self.seed)
        if not 1 <= self.size <= LARGEST_SIZE:
            raise UsageError(f"--size is {self.size}, but must be from 1 to {LARGEST_SIZE} blocks on a side.")
        for name, side in (("--width", self.width), ("--height", self.height)):
            if not SMALLEST_SIDE <= side <= LARGEST_SIDE:
                raise UsageError(
                    f"{name} is {side}, but must be from {SMALLEST_SIDE} to {LARGEST_SIDE} pixels."
                )
        return self


def make_city_scene(
    folder: Path, size: CitySize, *, threads: int | None = None, progress: Progress | None = None
) -> Path:
    """Fills `folder` with photos and cameras, or finds that it already holds exactly this city."""
    return _built_in(size.checked()).put_into(folder, _filling(size, threads, progress))


def cached_city_scene(
    size: CitySize, *, threads: int | None = None, progress: Progress | None = None
) -> Path:
    """The city from the cache of this user; made on the first call."""
    values = asdict(size.checked())
    name = "-".join([f"city-{VERSION}", *(str(value) for value in values.values())])
    return _built_in(size).cached(name, _filling(size, threads, progress))


def is_city_scene(folder: Path, size: CitySize) -> bool:
    """Whether the folder bears this version's stamp and still has all photos."""
    return _built_in(size).is_in(folder)


def photograph(camera: Pinhole, size: CitySize, threads: int = 1) -> NDArray[np.uint8]:
    """The city as this camera sees it, box-filtered. # [H, W, 3]"""
    return ray_tracer().city_photo(
        numbers_of([camera]), camera.width, camera.height, size.samples, size.seed, size.size, threads
    )


def surface_points(cameras: list[Pinhole], size: CitySize, threads: int = 1) -> tuple[PointCloud, Tracks]:
    """What structure from motion would leave: points that two cameras see at least, a little off."""
    numbers, tracer = numbers_of(cameras), ray_tracer()  # [C, 16]
    picture = (size.width, size.height, size.samples, size.seed, size.size, threads)
    rounds = []
    first, found = 0, 0
    while found < size.points:  # a few draws in a hundred are seen by one camera only
        draws = min(max(64, math.ceil(1.1 * (size.points - found))), DRAWS_AT_ONCE)
        rounds.append(tracer.city_points(numbers, *picture, first, draws, LONGEST_TRACK))
        first, found = first + draws, found + len(rounds[-1][0])
    columns = [np.concatenate(column) for column in zip(*rounds, strict=True)]
    positions, distances, colors, counts = (column[: size.points] for column in columns[:4])
    seen = int(counts.sum())
    noise = np.random.default_rng([size.seed, 5]).normal(0, POSITION_NOISE, positions.shape)  # [N, 3]
    placed = (positions + noise * distances[:, None]).astype(np.float32)  # [N, 3] world
    return PointCloud(placed, colors), Tracks(counts, columns[4][:seen], columns[5][:seen])


def _built_in(size: CitySize) -> BuiltIn:
    stamp = {"scene": "splatmeter city", "version": VERSION, **asdict(size)}
    return BuiltIn("this city (its stamp names another size or seed, or is missing)", stamp, size.photos)


def _filling(size: CitySize, threads: int | None, progress: Progress | None) -> Callable[[Path], None]:
    return lambda making: _fill(making, size, threads or usable_cores(), progress)


def _fill(folder: Path, size: CitySize, threads: int, progress: Progress | None) -> None:
    from PIL import Image

    shots = city_shots(size.size, size.seed, size.width, size.height)
    digits = max(3, len(str(len(shots))))
    names = [f"city_{number:0{digits}d}_{shot.view}.png" for number, shot in enumerate(shots, start=1)]
    (folder / "images").mkdir()
    saving: Future[None] | None = None
    with ThreadPoolExecutor(1) as beside:  # compresses a photo while the next one is traced
        for done, (shot, name) in enumerate(zip(shots, names, strict=True), start=1):
            picture = Image.fromarray(photograph(shot.camera, size, threads))
            if saving is not None:
                saving.result()
            saving = beside.submit(picture.save, folder / "images" / name)
            if progress is not None:
                progress(done, len(shots))
        if saving is not None:
            saving.result()
    cameras = [shot.camera for shot in shots]
    points, tracks = surface_points(cameras, size, threads)
    write_colmap(folder, cameras, names, points, tracks)
