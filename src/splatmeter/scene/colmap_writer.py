"""Writes a sparse model that COLMAP, splatmeter and every other trainer read: sparse/0/*.bin."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from splatmeter.ops import Pinhole
from splatmeter.scene.camera import quaternion_of_rotation
from splatmeter.scene.points import PointCloud

_PINHOLE = 1
# One point without a track, packed as in points3D.bin: 51 bytes.
_POINT = np.dtype([("id", "<u8"), ("xyz", "<f8", 3), ("rgb", "u1", 3), ("error", "<f8"), ("track", "<u8")])


def write_colmap(folder: Path, cameras: Sequence[Pinhole], names: Sequence[str], points: PointCloud) -> Path:
    """Fills <folder>/sparse/0 and returns it; cameras[i] belongs to the photo names[i]."""
    if len(cameras) != len(names):
        raise ValueError(f"{len(cameras)} cameras for {len(names)} names")
    sparse = Path(folder) / "sparse" / "0"
    sparse.mkdir(parents=True, exist_ok=True)
    lenses = {_lens(camera): number for number, camera in reversed(list(enumerate(cameras, start=1)))}
    (sparse / "cameras.bin").write_bytes(_cameras_bytes(lenses))
    (sparse / "images.bin").write_bytes(_images_bytes(cameras, names, lenses))
    (sparse / "points3D.bin").write_bytes(_points_bytes(points))
    return sparse


_Lens = tuple[int, int, float, float, float, float]


def _lens(camera: Pinhole) -> _Lens:
    return camera.width, camera.height, camera.fx, camera.fy, camera.cx, camera.cy


def _cameras_bytes(lenses: dict[_Lens, int]) -> bytes:
    ordered = sorted(lenses.items(), key=lambda pair: pair[1])
    rows = [struct.pack("<iiQQ4d", number, _PINHOLE, *lens) for lens, number in ordered]
    return struct.pack("<Q", len(rows)) + b"".join(rows)


def _images_bytes(cameras: Sequence[Pinhole], names: Sequence[str], lenses: dict[_Lens, int]) -> bytes:
    rows = [struct.pack("<Q", len(cameras))]
    for number, (camera, name) in enumerate(zip(cameras, names, strict=True), start=1):
        pose = (*quaternion_of_rotation(camera.rotation).tolist(), *np.asarray(camera.translation).tolist())
        rows.append(struct.pack("<i7di", number, *pose, lenses[_lens(camera)]))
        rows.append(name.encode("utf-8") + b"\0" + struct.pack("<Q", 0))
    return b"".join(rows)


def _points_bytes(points: PointCloud) -> bytes:
    rows = np.zeros(points.count, _POINT)
    rows["id"] = np.arange(1, points.count + 1)
    rows["xyz"] = points.positions
    rows["rgb"] = points.colors
    return struct.pack("<Q", points.count) + rows.tobytes()
