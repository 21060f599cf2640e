"""COLMAP's text files. Names of photos may contain spaces: everything after the ninth field is the name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import InputError
from splatmeter.ops import F64
from splatmeter.scene.colmap_binary import PARAMETER_COUNTS, UNKNOWN, ColmapCamera, ColmapImage
from splatmeter.scene.points import PointCloud, checked_cloud

_BYTE = frozenset(range(256))


def parse_cameras(data: bytes, where: Path) -> list[ColmapCamera]:
    cameras = []
    for number, line in _entries(_lines(data, where)):
        fields = line.split()
        try:
            identity, model, width, height = int(fields[0]), fields[1], int(fields[2]), int(fields[3])
            parameters = tuple(float(field) for field in fields[4:])
        except (ValueError, IndexError):
            raise _malformed(where, number, "a camera") from None
        if model not in PARAMETER_COUNTS:
            raise InputError(f"{where}: camera {identity} has the unknown model {model[:40]!r}. {UNKNOWN}")
        if len(parameters) != PARAMETER_COUNTS[model]:
            raise _malformed(where, number, "a camera")
        cameras.append(ColmapCamera(identity, model, width, height, parameters))
    return cameras


def parse_images(data: bytes, where: Path) -> list[ColmapImage]:
    """Each image has two lines; the second, with its 2D features, may be empty and is skipped."""
    images = []
    lines = _lines(data, where)
    for number, line in _entries(lines):
        fields = line.split(None, 9)
        try:
            pose = tuple(float(field) for field in fields[1:8])
            images.append(ColmapImage(fields[9].rstrip(), int(fields[8]), pose, int(fields[0])))
        except (ValueError, IndexError):
            raise _malformed(where, number, "an image") from None
        next(lines, None)
    return images


def parse_points(data: bytes, where: Path) -> PointCloud:
    positions, colors = [], []
    for number, line in _entries(_lines(data, where)):
        fields = line.split(None, 7)
        try:
            positions.append([float(field) for field in fields[1:4]])
            colors.append([int(field) for field in fields[4:7]])
        except ValueError:
            raise _malformed(where, number, "a point") from None
        if len(positions[-1]) != 3 or len(colors[-1]) != 3 or not set(colors[-1]) <= _BYTE:
            raise _malformed(where, number, "a point")
    rows = np.array(positions, np.float64).reshape(-1, 3)  # [N, 3]
    return checked_cloud(rows, np.array(colors, np.uint8).reshape(-1, 3), where)


def parse_tracks(data: bytes, where: Path) -> tuple[F64, NDArray[np.int64], NDArray[np.int64]]:
    """Positions [P, 3]; for each time that a photo saw a point its row [M] and the photo's number [M]."""
    positions: list[list[float]] = []
    rows: list[int] = []
    numbers: list[int] = []
    for number, line in _entries(_lines(data, where)):
        fields = line.split()
        try:
            positions.append([float(field) for field in fields[1:4]])
            seen = [int(field) for field in fields[8::2]]
        except ValueError:
            raise _malformed(where, number, "a point") from None
        if len(positions[-1]) != 3:
            raise _malformed(where, number, "a point")
        rows += [len(positions) - 1] * len(seen)
        numbers += seen
    found = np.array(positions, np.float64).reshape(-1, 3)  # [P, 3]
    return found, np.array(rows, np.int64), np.array(numbers, np.int64)


def _lines(data: bytes, where: Path) -> Iterator[tuple[int, str]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{where} is not a text file in UTF-8. Convert it, or re-run colmap.") from None
    # Not splitlines(): that would also split at separators which may be part of a name.
    return enumerate(text.split("\n"), start=1)


def _entries(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Lines that are neither empty nor a comment."""
    for number, line in lines:
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            yield number, stripped


def _malformed(where: Path, line: int, what: str) -> InputError:
    return InputError(
        f"{where}, line {line}, is not {what} as COLMAP writes it. Correct it, or re-run colmap."
    )
