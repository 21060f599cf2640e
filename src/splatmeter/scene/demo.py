"""The built-in scene: a small garden, photographed by our own ray tracer, as an ordinary COLMAP folder.

It exists so that everything works offline and within seconds. It is hard where anti-aliasing matters (brick
joints, tiles, stripes, pickets, thin rods) and easy where splatting is weak (hardly any reflections).
The same seed gives the same bytes on the same machine, with any number of threads.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatmeter.ops import Pinhole
from splatmeter.scene.built_in import (
    BuiltIn,
    Progress,
    checked_seed,
    looking_at,
    numbers_of,
    ray_tracer,
    usable_cores,
)
from splatmeter.scene.camera_files import centered, focal_of_angle
from splatmeter.scene.colmap_writer import write_colmap
from splatmeter.scene.points import PointCloud

VERSION = 2
"""Goes up whenever the pictures change, so that older copies in the cache are not mistaken for this one."""

FIELD_OF_VIEW = math.radians(55)
AZIMUTH_STEP = math.radians(18.75)
"""Eight steps are 150 degrees: the test views (every eighth photo) end up all around the garden."""
TARGET = np.array([0.0, 0.0, 0.66])  # the table top, roughly
NEAREST, FARTHEST = 3.3, 4.55  # from the axis of the garden; inside the fence
LOWEST, HIGHEST = 1.15, 2.9
POSITION_NOISE = 0.003
"""Standard deviation of a point's error, as a share of its distance from the middle plus one."""


@dataclass(frozen=True, slots=True)
class DemoSize:
    """How much is made; part of the stamp."""

    photos: int
    width: int
    height: int
    samples: int  # per pixel, a square number
    points: int


FULL = DemoSize(photos=48, width=320, height=240, samples=16, points=4000)
QUICK = DemoSize(photos=20, width=128, height=96, samples=16, points=1500)


def make_demo_scene(
    folder: Path,
    seed: int = 0,
    quick: bool = False,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Fills `folder` with photos and cameras, or finds that it already holds exactly this scene.

    The folder appears complete or not at all: it is made under another name beside and then renamed.
    """
    size = QUICK if quick else FULL
    checked_seed(seed)
    return _garden(seed, size).put_into(
        folder, lambda making: _fill(making, seed, size, threads or usable_cores(), progress)
    )


def cached_demo_scene(
    seed: int = 0, quick: bool = False, *, threads: int | None = None, progress: Progress | None = None
) -> Path:
    """The scene from the cache of this user; made on the first call."""
    size = QUICK if quick else FULL
    name = f"demo-{VERSION}-seed-{checked_seed(seed)}{'-quick' if quick else ''}"
    return _garden(seed, size).cached(
        name, lambda making: _fill(making, seed, size, threads or usable_cores(), progress)
    )


def is_demo_scene(folder: Path, seed: int, size: DemoSize) -> bool:
    """Whether the folder bears this version's stamp and still has all photos."""
    return _garden(seed, size).is_in(folder)


def demo_cameras(seed: int, size: DemoSize) -> list[Pinhole]:
    """On an orbit round the table, each at its own distance and height."""
    lens = centered(focal_of_angle(FIELD_OF_VIEW, size.width), size.width, size.height)
    generator = np.random.default_rng(seed)
    cameras: list[Pinhole] = []
    for number in range(size.photos):
        # Fractions of irrational multiples fill both ranges evenly for any number of photos.
        distance = NEAREST + (FARTHEST - NEAREST) * ((0.5 + number * 0.7548777) % 1)
        height = LOWEST + (HIGHEST - LOWEST) * ((0.5 + number * 0.5698403) % 1)
        azimuth = AZIMUTH_STEP * number + generator.normal(0, 0.03)
        eye = np.array([distance * math.cos(azimuth), distance * math.sin(azimuth), height])
        rotation = looking_at(eye, TARGET + generator.normal(0, 0.06, 3))
        cameras.append(
            Pinhole(rotation, -rotation @ eye, lens.fx, lens.fy, lens.cx, lens.cy, size.width, size.height)
        )
    return cameras


def photograph(camera: Pinhole, *, samples: int, seed: int, threads: int = 1) -> NDArray[np.uint8]:
    """The garden as this camera sees it, box-filtered. # [H, W, 3]"""
    return ray_tracer().demo_photo(
        numbers_of([camera]), camera.width, camera.height, samples, seed, threads
    )


def surface_points(cameras: list[Pinhole], size: DemoSize, seed: int, threads: int = 1) -> PointCloud:
    """What structure from motion would leave: points where cameras look, a little off, with 8-bit colours."""
    positions, colors = ray_tracer().demo_points(
        numbers_of(cameras), size.width, size.height, 16, seed, threads, size.points
    )  # [N, 3] exact, [N, 3]
    distance = np.linalg.norm(positions, axis=1, keepdims=True)  # [N, 1]
    noise = np.random.default_rng([seed, 1]).normal(0, POSITION_NOISE, positions.shape)  # [N, 3]
    return PointCloud((positions + noise * (1 + distance)).astype(np.float32), colors)


def _fill(folder: Path, seed: int, size: DemoSize, threads: int, progress: Progress | None) -> None:
    from PIL import Image

    cameras = demo_cameras(seed, size)
    names = [f"garden_{number:03d}.png" for number in range(1, size.photos + 1)]
    (folder / "images").mkdir()
    for done, (camera, name) in enumerate(zip(cameras, names, strict=True), start=1):
        pixels = photograph(camera, samples=size.samples, seed=seed, threads=threads)  # [H, W, 3]
        Image.fromarray(pixels).save(folder / "images" / name)
        if progress is not None:
            progress(done, size.photos)
    write_colmap(folder, cameras, names, surface_points(cameras, size, seed, threads))


def _garden(seed: int, size: DemoSize) -> BuiltIn:
    stamp = {"scene": "splatmeter demo garden", "version": VERSION, "seed": seed, **asdict(size)}
    return BuiltIn("this demo scene", stamp, size.photos)
