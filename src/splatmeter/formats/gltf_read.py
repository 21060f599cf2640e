"""Reading glTF and GLB with KHR_gaussian_splatting: every primitive of Gaussians, where its node puts it."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import numpy as np

from splatmeter.errors import InputError
from splatmeter.formats import motion, reading
from splatmeter.formats.gltf import BINARY_CHUNK, EXTENSION, GLB, JSON_CHUNK, harmonic_names
from splatmeter.gaussians import marks
from splatmeter.gaussians.harmonics import HIGHEST_DEGREE, coefficients_of
from splatmeter.gaussians.ply import Model
from splatmeter.ops import (
    F64,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    RasterSettings,
    Table,
    empty_table,
)

LONGEST_JSON = 2**26
NEAREST_OPACITY = 1e-7  # of floats, which are finer than bytes
SMALLEST_SCALE = 1e-30
_WIDTHS = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}
_KINDS = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5126: "<f4"}


@dataclass(frozen=True, slots=True, eq=False)
class Asset:
    record: dict[str, Any]
    buffers: list[bytes]


def read(stream: BinaryIO, path: Path, size: int) -> Model:
    form = "glTF" if stream.read(4) != GLB else "GLB"
    stream.seek(0)
    with reading.garbled(path, form):
        asset = _glb(stream, size) if form == "GLB" else _gltf(stream, path, size)
        placed = [
            (primitive, place)
            for mesh, place in _placed_meshes(asset.record)
            for primitive in asset.record["meshes"][mesh]["primitives"]
            if EXTENSION in primitive.get("extensions", {})
        ]
        if not placed:
            raise InputError(f"{path} holds no Gaussians: no primitive has {EXTENSION}.")
        counts = [_accessor_count(asset, primitive["attributes"]["POSITION"]) for primitive, _ in placed]
        reading.check_count(sum(counts), sum(map(len, asset.buffers)), path)
        parts = [_part(asset, primitive, place, path) for primitive, place in placed]
        table = _joined([part for part, _ in parts])
        degree = max(part_degree for _, part_degree in parts)
        return reading.finished(table, degree, form, _told(placed[0][0], degree))


def _told(primitive: dict[str, Any], degree: int) -> RasterSettings | None:
    extras = primitive.get("extras")
    comments = extras.get("comments", ()) if isinstance(extras, dict) else ()
    return marks.told([text for text in comments if isinstance(text, str)], degree)


# ---- the file's parts -------------------------------------------------------------------------------------
def _glb(stream: BinaryIO, size: int) -> Asset:
    _, version, _ = struct.unpack("<4sII", stream.read(12))
    length, kind = struct.unpack("<I4s", stream.read(8))
    if version != 2 or kind != JSON_CHUNK or length > min(size, LONGEST_JSON):
        raise ValueError(f"version {version}, first chunk of {length} bytes")
    record = reading.parsed_json(stream.read(length))
    head = stream.read(8)
    if not head:
        return Asset(record, [b""])
    length, kind = struct.unpack("<I4s", head)
    if kind != BINARY_CHUNK or length > size:
        raise ValueError("the chunk with the arrays is missing or cut off")
    return Asset(record, [stream.read(length)])


def _gltf(stream: BinaryIO, path: Path, size: int) -> Asset:
    if size > LONGEST_JSON * 16:
        raise ValueError(f"{size} bytes of JSON")
    record = reading.parsed_json(stream.read(size))
    return Asset(record, [_buffer(buffer["uri"], path) for buffer in record.get("buffers", [])])


def _buffer(uri: str, path: Path) -> bytes:
    """Inside the file, or a file beside it: never one elsewhere, never one from the network."""
    if uri.startswith("data:"):
        return base64.b64decode(uri.partition(",")[2], validate=True)
    name = unquote(uri)
    beside = path.parent / name
    if ":" in name or not beside.resolve().is_relative_to(path.parent.resolve()):
        raise InputError(f"{path} names {name[:60]!r} for its arrays, which is no file beside it.")
    if not beside.is_file():
        raise InputError(f"{path} keeps its arrays in {name[:60]!r}, which is not there; copy both files.")
    return beside.read_bytes()


def _placed_meshes(record: dict[str, Any]) -> Iterator[tuple[int, F64]]:
    """Meshes of the scene with the matrix that places them; every node once, as glTF demands."""
    nodes = record.get("nodes", [])
    scenes = record.get("scenes", [])
    roots = scenes[record.get("scene", 0)].get("nodes", []) if scenes else range(len(nodes))
    waiting: list[tuple[int, F64]] = [(int(node), np.eye(4)) for node in roots]
    seen: set[int] = set()
    while waiting:
        number, above = waiting.pop()
        if number in seen or number < 0:
            raise ValueError(f"node {number} has two parents")
        seen.add(number)
        place = above @ _matrix(nodes[number])
        if "mesh" in nodes[number]:
            yield nodes[number]["mesh"], place
        waiting += [(int(child), place) for child in nodes[number].get("children", [])]


def _matrix(node: dict[str, Any]) -> F64:
    if "matrix" in node:
        return np.array(node["matrix"], np.float64).reshape(4, 4).T
    x, y, z, w = map(float, node.get("rotation", (0, 0, 0, 1)))
    found = np.eye(4)
    found[:3, :3] = motion.matrix(np.array([w, x, y, z])) * np.array(node.get("scale", (1, 1, 1)), np.float64)
    found[:3, 3] = np.array(node.get("translation", (0, 0, 0)), np.float64)
    return found


# ---- Gaussians --------------------------------------------------------------------------------------------
def _accessor_count(asset: Asset, index: int) -> int:
    return int(asset.record["accessors"][index]["count"])


def _array(asset: Asset, index: int, width: int) -> np.ndarray:
    """Values of an accessor as floats [N, width]; a view of the file until then."""
    accessor = asset.record["accessors"][index]
    if _WIDTHS[accessor["type"]] != width or "sparse" in accessor:
        raise ValueError(f"an accessor is {accessor['type']}, or sparse")
    view = asset.record["bufferViews"][accessor["bufferView"]]
    buffer = asset.buffers[view["buffer"]]
    kind = np.dtype(_KINDS[accessor["componentType"]])
    element = kind.itemsize * width
    stride = int(view.get("byteStride") or element)
    inside, count = int(accessor.get("byteOffset", 0)), int(accessor["count"])
    start, length = int(view.get("byteOffset", 0)), int(view["byteLength"])
    needed = inside + stride * (count - 1) + element if count else 0
    if min(inside, start, count, stride - element) < 0 or needed > length or start + length > len(buffer):
        raise ValueError(f"an accessor of {count} elements does not fit its {length} bytes")
    values = np.ndarray((count, width), kind, buffer, start + inside, (stride, kind.itemsize))
    if accessor.get("normalized"):
        return np.maximum(values / np.float32(np.iinfo(kind).max), -1)
    return values.astype(np.float32)


def _part(asset: Asset, primitive: dict[str, Any], place: F64, path: Path) -> tuple[Table, int]:
    """The Gaussians of one primitive in the axes of PLY files, and the degree of their harmonics."""
    _check_look(primitive["extensions"][EXTENSION], path)
    attributes = primitive["attributes"]
    count = _accessor_count(asset, attributes["POSITION"])
    means = _array(asset, attributes["POSITION"], 3)
    rotations, scales, opacities = (
        _array(asset, attributes[f"{EXTENSION}:{name}"], width)
        for name, width in (("ROTATION", 4), ("SCALE", 3), ("OPACITY", 1))
    )
    if {len(array) for array in (means, rotations, scales, opacities)} != {count}:
        raise ValueError("its attributes have different lengths")
    degree = max(d for d in range(HIGHEST_DEGREE + 1) if harmonic_names(d)[-1] in attributes)
    table = empty_table(count, trainable=False)
    table.geometry[:, MEANS] = means
    table.geometry[:, ROTATIONS] = np.roll(rotations, 1, axis=1)  # from (x, y, z, w)
    table.geometry[:, LOG_SCALES] = np.log(np.maximum(scales, np.float32(SMALLEST_SCALE)))
    table.geometry[:, OPACITY_LOGITS] = reading.logits(opacities[:, 0], NEAREST_OPACITY)
    for index, name in enumerate(harmonic_names(degree)[: coefficients_of(degree)]):
        table.harmonics[:, 3 * index : 3 * index + 3] = _array(asset, attributes[name], 3)
    if not np.array_equal(place, np.eye(4)):
        motion.move(table, *_taken_apart(place, path))
    motion.half_turn(table)
    return table, degree


def _check_look(look: dict[str, Any], path: Path) -> None:
    inner = ", ".join(look.get("extensions", {}))
    if inner:
        raise InputError(f"{path} uses {inner[:80]} inside {EXTENSION}, which splatmeter does not read.")
    kernel, space = look.get("kernel", "ellipse"), look.get("colorSpace", "srgb_rec709_display")
    if kernel != "ellipse" or space != "srgb_rec709_display":
        raise InputError(
            f"{path} has Gaussians of kernel {str(kernel)[:40]!r} in {str(space)[:40]!r}; splatmeter draws "
            "'ellipse' in 'srgb_rec709_display'."
        )


def _taken_apart(place: F64, path: Path) -> tuple[F64, float, F64]:
    """A rotation, one scale and a shift; other transforms have no Gaussians of the same kind."""
    lengths = np.linalg.norm(place[:3, :3], axis=0)
    scale = float(lengths.mean())
    turn = place[:3, :3] / scale if scale > 0 else np.zeros((3, 3))
    skew = np.abs(turn @ turn.T - np.eye(3)).max()
    if not (np.isfinite(place).all() and skew < 1e-3 and np.linalg.det(turn) > 0):
        raise InputError(
            f"{path} stretches or mirrors its Gaussians by a node's transform; bake it in first."
        )
    return turn, scale, place[:3, 3]


def _joined(parts: list[Table]) -> Table:
    if len(parts) == 1:
        return parts[0]
    whole = empty_table(0, trainable=False)
    whole.geometry = np.concatenate([part.geometry for part in parts])
    whole.harmonics = np.concatenate([part.harmonics for part in parts])
    return whole
