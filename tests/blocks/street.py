"""A street from above: cameras in a row that look down, so that each sees only its own stretch."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from splatmeter.ops import Pinhole
from splatmeter.scene.colmap_writer import write_colmap
from splatmeter.scene.points import PointCloud

WIDTH, HEIGHT, FOCAL = 32, 24, 16.0
ABOVE = 4.0


def camera(x: float, y: float = 0.0) -> Pinhole:
    """At height 4 above the ground z = 0; it sees 8 along x and 6 along y."""
    rotation = np.array([[1.0, 0, 0], [0, -1.0, 0], [0, 0, -1.0]])
    place = np.array([x, y, ABOVE])
    return Pinhole(rotation, -rotation @ place, FOCAL, FOCAL, WIDTH / 2, HEIGHT / 2, WIDTH, HEIGHT)


def points(count: int = 400, length: float = 40.0, seed: int = 1) -> PointCloud:
    generator = np.random.default_rng(seed)
    spread = np.array([length / 2, 2.5, 0.2])
    positions = (generator.uniform(-1, 1, (count, 3)) * spread).astype(np.float32)
    return PointCloud(positions, generator.integers(40, 255, (count, 3)).astype(np.uint8))


def write_street(
    folder: Path, photos: int = 24, cloud: PointCloud | None = None, places: Sequence[float] | None = None
) -> Path:
    """Photos s_00.png ... from left to right, painted with what is below."""
    cloud = points() if cloud is None else cloud
    places = np.linspace(-18, 18, photos).tolist() if places is None else places
    cameras = [camera(x, 0.5 * (-1) ** number) for number, x in enumerate(places)]
    names = [f"s_{number:02d}.png" for number in range(len(cameras))]
    (folder / "images").mkdir(parents=True)
    for name, eye in zip(names, cameras, strict=True):
        Image.fromarray(_painted(eye, cloud)).save(folder / "images" / name)
    write_colmap(folder, cameras, names, cloud)
    return folder


def _painted(eye: Pinhole, cloud: PointCloud) -> np.ndarray:
    x, y, z = (cloud.positions @ eye.rotation.T + eye.translation).T
    across, down = eye.fx * x / z + eye.cx, eye.fy * y / z + eye.cy
    rows, columns = np.mgrid[: eye.height, : eye.width] + 0.5
    image = np.full((eye.height, eye.width, 3), 60.0)
    for index in np.flatnonzero((abs(across - eye.cx) < eye.width) & (abs(down - eye.cy) < eye.height)):
        weight = np.exp(-((columns - across[index]) ** 2 + (rows - down[index]) ** 2) / 2)[..., None]
        image = image * (1 - weight) + weight * cloud.colors[index]
    return image.astype(np.uint8)


def with_tracks(folder: Path, seen: dict[int, list[int]]) -> None:
    """points3D.bin anew; `seen`: for each row of points the numbers of photos, counted from 1."""
    path = folder / "sparse" / "0" / "points3D.bin"
    old = path.read_bytes()
    (count,) = struct.unpack_from("<Q", old)
    rows = [old[8 + 51 * row : 8 + 51 * (row + 1)] for row in range(count)]
    data = [old[:8]]
    for row, raw in enumerate(rows):
        track = seen.get(row, [])
        data += [raw[:43], struct.pack("<Q", len(track)), *(struct.pack("<ii", photo, 7) for photo in track)]
    path.write_bytes(b"".join(data))
