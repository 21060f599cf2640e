"""COLMAP's binary files (little endian), parsed from bytes already in memory.

Counts in headers are compared with the length of the file before anything is done with them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import InputError
from splatmeter.ops import F64
from splatmeter.scene.points import PointCloud, checked_cloud

PARAMETER_COUNTS = {
    "SIMPLE_PINHOLE": 3,
    "PINHOLE": 4,
    "SIMPLE_RADIAL": 4,
    "RADIAL": 5,
    "OPENCV": 8,
    "OPENCV_FISHEYE": 8,
    "FULL_OPENCV": 12,
    "FOV": 5,
    "SIMPLE_RADIAL_FISHEYE": 4,
    "RADIAL_FISHEYE": 5,
    "THIN_PRISM_FISHEYE": 12,
    "RAD_TAN_THIN_PRISM_FISHEYE": 16,
    "SIMPLE_DIVISION": 4,
    "DIVISION": 5,
    "SIMPLE_FISHEYE": 3,
    "FISHEYE": 4,
    "EUCM": 6,
    "EQUIRECTANGULAR": 2,
}
"""By name, in the order of the ids in the binary files (COLMAP 4.2)."""
MODEL_NAMES = tuple(PARAMETER_COUNTS)

LONGEST_NAME = 4096


@dataclass(frozen=True, slots=True)
class ColmapCamera:
    number: int
    model: str
    width: int
    height: int
    parameters: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ColmapImage:
    name: str
    camera: int
    pose: tuple[float, ...]  # qw, qx, qy, qz, tx, ty, tz
    number: int


_CAMERA = struct.Struct("<iiQQ")
_IMAGE = struct.Struct("<i7di")
_COUNT = struct.Struct("<Q")
_FEATURE_BYTES = 24  # x, y, id of the 3D point: not needed here
_SMALLEST_IMAGE = _IMAGE.size + 1 + _COUNT.size

_POINT = np.dtype([("id", "<u8"), ("xyz", "<f8", 3), ("rgb", "u1", 3), ("error", "<f8"), ("track", "<u8")])
_POINT_BYTES = _POINT.itemsize  # 51
_TRACK_FIELD = 43  # where the track's length lies in a point
_TRACK_BYTES = 8  # image and feature number of each observation


def parse_cameras(data: bytes, where: Path) -> list[ColmapCamera]:
    offset, cameras = _COUNT.size, []
    for _ in range(_checked_count(data, _CAMERA.size, where)):
        if offset + _CAMERA.size > len(data):
            raise cut_off(where)
        number, model, width, height = _CAMERA.unpack_from(data, offset)
        offset += _CAMERA.size
        if not 0 <= model < len(MODEL_NAMES):
            raise InputError(f"{where}: camera {number} has the unknown model {model}. {UNKNOWN}")
        count = PARAMETER_COUNTS[MODEL_NAMES[model]]
        if offset + 8 * count > len(data):
            raise cut_off(where)
        parameters = struct.unpack_from(f"<{count}d", data, offset)
        offset += 8 * count
        cameras.append(ColmapCamera(number, MODEL_NAMES[model], width, height, parameters))
    return cameras


def parse_images(data: bytes, where: Path) -> list[ColmapImage]:
    """Skips over the 2D features, which make up almost all of the file."""
    offset, images = _COUNT.size, []
    for _ in range(_checked_count(data, _SMALLEST_IMAGE, where)):
        if offset + _SMALLEST_IMAGE > len(data):
            raise cut_off(where)
        number, *pose, camera = _IMAGE.unpack_from(data, offset)
        offset += _IMAGE.size
        end = data.find(b"\0", offset, offset + LONGEST_NAME)
        if end < 0 or end + 1 + _COUNT.size > len(data):
            raise cut_off(where)
        name = _decoded(data[offset:end], where)
        (features,) = _COUNT.unpack_from(data, end + 1)
        offset = end + 1 + _COUNT.size + _FEATURE_BYTES * features
        if offset > len(data):
            raise cut_off(where)
        images.append(ColmapImage(name, camera, tuple(pose), number))
    return images


def parse_points(data: bytes, where: Path) -> PointCloud:
    """Points whose tracks are all equally long (or absent) take no Python loop, others a short one."""
    count = _checked_count(data, _POINT_BYTES, where)
    rows = _equal_tracks(data, count)
    if rows is None:
        offsets = _point_offsets(data, count, where)  # [N]
        rows = np.empty(count, _POINT)
        raw, target = np.frombuffer(data, np.uint8), rows.view(np.uint8).reshape(count, _POINT_BYTES)
        columns = np.arange(_POINT_BYTES)
        for start in range(0, count, 2**16):  # in pieces: the index array is eight times as large as the data
            piece = slice(start, start + 2**16)
            target[piece] = raw[offsets[piece, None] + columns]  # [<= 65536, 51]
    return checked_cloud(rows["xyz"], rows["rgb"], where)


def parse_tracks(data: bytes, where: Path) -> tuple[F64, NDArray[np.int64], NDArray[np.int64]]:
    """Positions [P, 3]; for each time that a photo saw a point its row [M] and the photo's number [M]."""
    count = _checked_count(data, _POINT_BYTES, where)
    offsets = _point_offsets(data, count, where)  # [P]
    raw = np.frombuffer(data, np.uint8)
    positions = raw[offsets[:, None] + np.arange(8, 32)].view("<f8")  # [P, 3]
    lengths = raw[offsets[:, None] + np.arange(_TRACK_FIELD, _POINT_BYTES)].view("<u8")[:, 0].astype(np.int64)
    ends = np.cumsum(lengths)
    rows = np.repeat(np.arange(count), lengths)  # [M]
    within = np.arange(len(rows)) - np.repeat(ends - lengths, lengths)  # [M] place in the track
    begins = offsets[rows] + _POINT_BYTES + _TRACK_BYTES * within  # [M]
    numbers = np.empty(len(rows), np.int64)
    for start in range(0, len(rows), 2**20):  # in pieces: the index array is larger than the data
        piece = slice(start, start + 2**20)
        numbers[piece] = raw[begins[piece, None] + np.arange(4)].view("<i4")[:, 0]
    return positions.astype(np.float64), rows, numbers


def with_more_points(data: bytes, where: Path, points: PointCloud) -> bytes:
    """The file with these points behind its own: no photo is named for them, their error is unknown (-1)."""
    count = _checked_count(data, _POINT_BYTES, where)
    offsets = _point_offsets(data, count, where)  # [P]
    numbers = np.frombuffer(data, np.uint8)[offsets[:, None] + np.arange(8)].view("<u8")  # [P, 1]
    first = int(numbers.max(initial=0)) + 1
    rows = np.zeros(points.count, _POINT)
    rows["id"] = np.arange(first, first + points.count)
    rows["xyz"], rows["rgb"], rows["error"] = points.positions, points.colors, -1
    return _COUNT.pack(count + points.count) + data[_COUNT.size :] + rows.tobytes()


def _equal_tracks(data: bytes, count: int) -> NDArray[np.void] | None:
    """The points as one array [N] if the first track's length holds for all and fills the file exactly."""
    if count == 0:
        return np.empty(0, _POINT)
    (track,) = _COUNT.unpack_from(data, _COUNT.size + _TRACK_FIELD)
    stride = _POINT_BYTES + _TRACK_BYTES * track
    if len(data) != _COUNT.size + count * stride:
        return None
    rows = np.ndarray((count,), _POINT, buffer=data, offset=_COUNT.size, strides=(stride,))
    return rows if (rows["track"] == track).all() else None


def _point_offsets(data: bytes, count: int, where: Path) -> NDArray[np.int64]:
    """Where each point begins [N]: each one's track must be stepped over to find the next."""
    offsets = np.empty(count, np.int64)
    read, offset, last = _COUNT.unpack_from, _COUNT.size, len(data) - _POINT_BYTES
    for index in range(count):
        if offset > last:
            raise cut_off(where)
        offsets[index] = offset
        offset += _POINT_BYTES + _TRACK_BYTES * read(data, offset + _TRACK_FIELD)[0]
    if offset > len(data):
        raise cut_off(where)
    return offsets


def _checked_count(data: bytes, smallest: int, where: Path) -> int:
    if len(data) < _COUNT.size:
        raise InputError(f"{where} is empty or cut off ({len(data)} bytes). {AGAIN}")
    (count,) = _COUNT.unpack_from(data)
    room = (len(data) - _COUNT.size) // smallest
    if count > room:
        raise InputError(f"{where} says it has {count} entries but has room for {room} at most. {AGAIN}")
    return count


def _decoded(name: bytes, where: Path) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(
            f"{where} names the photo {name[:80]!r}, which is not UTF-8. Rename the photo."
        ) from None


def cut_off(where: Path) -> InputError:
    return InputError(f"{where} ends in the middle of an entry. {AGAIN}")


AGAIN = "Copy it again, or re-run colmap."
UNDISTORT = (
    "Only PINHOLE and SIMPLE_PINHOLE cameras can be trained on. Undistort the photos with: "
    "splatmeter scene undistort <this scene> <new scene>"
)
UNKNOWN = "Models of COLMAP 4.2 are known; undistort the photos with the program that made this file."
PANORAMA = "EQUIRECTANGULAR"
NO_PANORAMAS = "Panoramas cannot be trained on. Cut them into ordinary views, and reconstruct those."
