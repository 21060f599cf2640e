"""Writes a sparse model that COLMAP, splatmeter and every other trainer read: sparse/0/*.bin."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatmeter.ops import F32, Pinhole
from splatmeter.scene.camera_files import quaternion_of_rotation
from splatmeter.scene.points import PointCloud

_PINHOLE = 1
# One point before its track, packed as in points3D.bin: 51 bytes.
_POINT = np.dtype([("id", "<u8"), ("xyz", "<f8", 3), ("rgb", "u1", 3), ("error", "<f8"), ("track", "<u8")])


_FEATURE = np.dtype([("xy", "<f8", 2), ("point", "<i8")])
_TRACK = np.dtype([("image", "<i4"), ("feature", "<i4")])


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    """Which photos show each point, and where: the first point's observations, then the second's, ..."""

    counts: NDArray[np.int32]  # [N] of each point
    images: NDArray[np.int32]  # [M] places in the list of cameras
    pixels: F32  # [M, 2]


NO_TRACKS = Tracks(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros((0, 2), np.float32))


def write_colmap(
    folder: Path,
    cameras: Sequence[Pinhole],
    names: Sequence[str],
    points: PointCloud,
    tracks: Tracks = NO_TRACKS,
) -> Path:
    """Fills <folder>/sparse/0 and returns it; cameras[i] belongs to the photo names[i]."""
    if len(cameras) != len(names):
        raise ValueError(f"{len(cameras)} cameras for {len(names)} names")
    sparse = Path(folder) / "sparse" / "0"
    sparse.mkdir(parents=True, exist_ok=True)
    lenses = {_lens(camera): number for number, camera in reversed(list(enumerate(cameras, start=1)))}
    counts = tracks.counts if len(tracks.counts) else np.zeros(points.count, np.int32)  # [N]
    features, entries = _features_and_entries(counts, tracks, len(cameras))
    (sparse / "cameras.bin").write_bytes(_cameras_bytes(lenses))
    (sparse / "images.bin").write_bytes(_images_bytes(cameras, names, lenses, features))
    (sparse / "points3D.bin").write_bytes(_points_bytes(points, counts, entries))
    return sparse


def _features_and_entries(
    counts: NDArray[np.int32], tracks: Tracks, cameras: int
) -> tuple[list[NDArray[np.void]], NDArray[np.void]]:
    """The same observations twice: as features of each photo, and as entries [M] of the points' tracks."""
    order = np.argsort(tracks.images, kind="stable")  # [M] photo by photo
    per_photo = np.bincount(tracks.images, minlength=cameras)  # [C]
    ends = np.cumsum(per_photo)  # [C]
    features = np.zeros(len(order), _FEATURE)
    features["xy"] = tracks.pixels[order]
    features["point"] = (np.repeat(np.arange(len(counts)), counts) + 1)[order]
    entries = np.zeros(len(order), _TRACK)
    entries["image"] = tracks.images + 1
    entries["feature"][order] = np.arange(len(order)) - np.repeat(ends - per_photo, per_photo)
    return np.split(features, ends[:-1]), entries


_Lens = tuple[int, int, float, float, float, float]


def _lens(camera: Pinhole) -> _Lens:
    return camera.width, camera.height, camera.fx, camera.fy, camera.cx, camera.cy


def _cameras_bytes(lenses: dict[_Lens, int]) -> bytes:
    ordered = sorted(lenses.items(), key=lambda pair: pair[1])
    rows = [struct.pack("<iiQQ4d", number, _PINHOLE, *lens) for lens, number in ordered]
    return struct.pack("<Q", len(rows)) + b"".join(rows)


def _images_bytes(
    cameras: Sequence[Pinhole],
    names: Sequence[str],
    lenses: dict[_Lens, int],
    features: list[NDArray[np.void]],
) -> bytes:
    rows = [struct.pack("<Q", len(cameras))]
    for number, (camera, name) in enumerate(zip(cameras, names, strict=True), start=1):
        pose = (*quaternion_of_rotation(camera.rotation).tolist(), *np.asarray(camera.translation).tolist())
        rows.append(struct.pack("<i7di", number, *pose, lenses[_lens(camera)]))
        own = features[number - 1]
        rows.append(name.encode("utf-8") + b"\0" + struct.pack("<Q", len(own)) + own.tobytes())
    return b"".join(rows)


def _points_bytes(points: PointCloud, counts: NDArray[np.int32], entries: NDArray[np.void]) -> bytes:
    rows = np.zeros(points.count, _POINT)
    rows["id"] = np.arange(1, points.count + 1)
    rows["xyz"] = points.positions
    rows["rgb"] = points.colors
    rows["track"] = counts
    packed, tracks = rows.tobytes(), entries.tobytes()
    pieces, start = [struct.pack("<Q", points.count)], 0
    for number, count in enumerate(counts.tolist()):
        end = start + _TRACK.itemsize * count
        pieces += [packed[number * _POINT.itemsize : (number + 1) * _POINT.itemsize], tracks[start:end]]
        start = end
    return b"".join(pieces)
