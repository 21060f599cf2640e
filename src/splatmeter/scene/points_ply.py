"""Points as PLY files: of any origin, with or without normals, colours and faces; and our own."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import InputError
from splatmeter.files.ply_header import Element, header_bytes, read_header
from splatmeter.files.ply_rows import all_rows
from splatmeter.scene.points import NEUTRAL_COLOR, PointCloud, checked_cloud

_CHANNELS = ("red", "green", "blue")
_COLOR_NAMES = (_CHANNELS, ("diffuse_red", "diffuse_green", "diffuse_blue"), ("r", "g", "b"))
_ADVICE = "Export the points again as PLY, or remove the file to use points3D.bin."


# ---- reading ----------------------------------------------------------------------------------------------
def parse_points(data: bytes, where: Path) -> PointCloud:
    """Without colours the points become neutral grey."""
    stream = io.BytesIO(data)
    header = read_header(stream, where, _ADVICE)
    vertex = header.elements[0] if header.elements else Element("end_header", 0, [])
    if vertex.name != "vertex":
        raise InputError(f"{where} begins with {vertex.name[:40]!r} instead of vertex. {_ADVICE}")
    if vertex.has_list:
        raise InputError(f"{where} has a list among the vertex properties. {_ADVICE}")
    if not {"x", "y", "z"} <= {name for name, _ in vertex.properties}:
        raise InputError(f"{where} does not describe vertices with x, y and z. {_ADVICE}")
    with np.errstate(over="ignore", invalid="ignore"):
        rows = all_rows(stream, where, header, "vertex", len(data), _ADVICE)  # [N]
        rows = rows if header.order else _as_declared(rows, vertex)
        positions = np.stack([rows[axis].astype(np.float64) for axis in "xyz"], axis=1)  # [N, 3]
        return checked_cloud(positions, _colors(rows), where)


def _as_declared(numbers: NDArray[np.void], vertex: Element) -> NDArray[np.void]:
    """Numbers of a text file in the types that the header names, as near as those come."""
    rows = np.empty(len(numbers), np.dtype(vertex.properties))  # [N]
    for name, _ in vertex.properties:
        kind, column = rows.dtype[name], numbers[name]
        if kind.kind != "f":
            column = np.clip(np.nan_to_num(column), np.iinfo(kind).min, np.iinfo(kind).max)
        rows[name] = column  # [N]
    return rows


def _colors(rows: NDArray[np.void]) -> NDArray[np.uint8]:
    """Bytes as they are, 16 bits by their high byte, fractions times 255: [N, 3]."""
    present = set(rows.dtype.names or ())
    names = next((names for names in _COLOR_NAMES if present >= set(names)), None)
    if names is None:
        return np.full((len(rows), 3), NEUTRAL_COLOR, np.uint8)
    colors = np.stack([rows[name] for name in names], axis=1)  # [N, 3]
    if colors.dtype.kind == "f":
        colors = np.rint(np.clip(np.nan_to_num(colors), 0, 1) * 255)
    elif colors.dtype.itemsize == 2:
        colors = colors >> 8
    return np.clip(colors, 0, 255).astype(np.uint8)


# ---- writing ----------------------------------------------------------------------------------------------
def points_bytes(points: PointCloud, with_normals: bool = False) -> bytes:
    """Normals are zeros: nobody knows them, but the original's tools expect the properties."""
    numbers = ["x", "y", "z", *(["nx", "ny", "nz"] if with_normals else [])]
    rows = np.zeros(points.count, [(name, "<f4") for name in numbers] + [(name, "u1") for name in _CHANNELS])
    for axis, name in enumerate("xyz"):
        rows[name] = points.positions[:, axis]
    for channel, name in enumerate(_CHANNELS):
        rows[name] = points.colors[:, channel]
    properties = [("float", name) for name in numbers] + [("uchar", name) for name in _CHANNELS]
    return header_bytes({"vertex": (points.count, properties)}) + rows.tobytes()
