"""Points from a PLY file of any origin: text or binary, with or without normals, colours, faces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import InputError
from splatmeter.scene.points import NEUTRAL_COLOR, PointCloud, checked_cloud

_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1", "short": "i2", "int16": "i2", "ushort": "u2",
    "uint16": "u2", "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4", "float": "f4", "float32": "f4",
    "double": "f8", "float64": "f8",
}  # fmt: skip
_ORDERS = {"ascii": "=", "binary_little_endian": "<", "binary_big_endian": ">"}
_LONGEST_HEADER = 2**16
_COLOR_NAMES = (("red", "green", "blue"), ("diffuse_red", "diffuse_green", "diffuse_blue"), ("r", "g", "b"))


@dataclass(frozen=True, slots=True)
class _Header:
    encoding: str
    count: int
    vertex: np.dtype[np.void]
    body: int  # where the data begins


def parse_points(data: bytes, where: Path) -> PointCloud:
    """Without colours the points become neutral grey."""
    header = _parse_header(data, where)
    read = _ascii_rows if header.encoding == "ascii" else _binary_rows
    with np.errstate(over="ignore", invalid="ignore"):
        rows = read(data, header, where)  # [N]
        positions = np.stack([rows[axis].astype(np.float64) for axis in "xyz"], axis=1)  # [N, 3]
        return checked_cloud(positions, _colors(rows), where)


def _parse_header(data: bytes, where: Path) -> _Header:
    end = data.find(b"end_header", 0, _LONGEST_HEADER)
    newline = data.find(b"\n", end, end + 16)
    if not data.startswith(b"ply") or end < 0 or newline < 0:
        raise _refused(where, "has no PLY header")
    encoding, count, fields, inside = "", -1, [], False
    for line in data[:end].decode("ascii", "replace").splitlines():
        match line.split():
            case ["format", name, *_] if name in _ORDERS:
                encoding = name
            case ["element", "vertex", number] if count < 0:
                count, inside = _count(number, where), True
            case ["element", name, *_]:
                inside = False
                if count < 0:
                    raise _refused(where, f"begins with the element {name[:40]!r} instead of vertex")
            case ["property", kind, name] if inside:
                fields.append((name, kind))
            case ["property", "list", *_] if inside:
                raise _refused(where, "has a list among the vertex properties")
    names = [name for name, _ in fields]
    if not encoding or count < 0 or not {"x", "y", "z"} <= set(names) or len(set(names)) != len(names):
        raise _refused(where, "does not describe vertices with x, y and z")
    unknown = [kind for _, kind in fields if kind not in _TYPES]
    if unknown:
        raise _refused(where, f"has a property of the unknown type {unknown[0][:40]!r}")
    vertex = np.dtype([(name, _ORDERS[encoding] + _TYPES[kind]) for name, kind in fields])
    return _Header(encoding, count, vertex, newline + 1)


def _binary_rows(data: bytes, header: _Header, where: Path) -> NDArray[np.void]:
    room = (len(data) - header.body) // header.vertex.itemsize
    if header.count > room:
        raise _refused(where, f"says it has {header.count} points but has room for {room}")
    return np.frombuffer(data, header.vertex, header.count, header.body)  # [N]


def _ascii_rows(data: bytes, header: _Header, where: Path) -> NDArray[np.void]:
    names = header.vertex.names or ()
    words = data[header.body :].split()
    if header.count * len(names) > len(words):
        raise _refused(
            where, f"says it has {header.count} points but has room for {len(words) // len(names)}"
        )
    try:
        values = np.array([float(word) for word in words[: header.count * len(names)]], np.float64)
    except ValueError:
        raise _refused(where, "holds something that is not a number") from None
    rows = np.empty(header.count, header.vertex)  # [N]
    for name, column in zip(names, values.reshape(header.count, len(names)).T, strict=True):
        kind = header.vertex[name]
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


def _count(text: str, where: Path) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise _refused(where, f"says it has {text[:40]!r} points")
    return int(text)


def _refused(where: Path, why: str) -> InputError:
    return InputError(
        f"{where} {why}. Export the points again as PLY, or remove the file to use points3D.bin."
    )
