"""Writing glTF and GLB with KHR_gaussian_splatting (Khronos' release candidate of July 2026), without loss.

glTF has y up and PLY files have y down, so a model is turned by half a turn about z. The extension has no
place for a mark of the 2D filter; ours stands in `extras` of the primitive.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from splatmeter import __version__
from splatmeter.errors import UsageError
from splatmeter.files.atomic import replacing, write_text
from splatmeter.formats import motion, packing
from splatmeter.formats.fused import Fused
from splatmeter.gaussians import marks
from splatmeter.gaussians.harmonics import rgb_from_dc
from splatmeter.ops import F32

EXTENSION = "KHR_gaussian_splatting"
GLB, JSON_CHUNK, BINARY_CHUNK = b"glTF", b"JSON", b"BIN\0"
LARGEST_GLB = 2**32 - 1
FLOAT, BYTE = 5126, 5121
_TYPES = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}


def harmonic_names(sh_degree: int) -> list[str]:
    """Attributes in the order of the table's coefficients."""
    return [
        f"{EXTENSION}:SH_DEGREE_{degree}_COEF_{number}"
        for degree in range(sh_degree + 1)
        for number in range(2 * degree + 1)
    ]


def write(path: Path, model: Fused) -> list[str]:
    """One .glb, or a .gltf with a .bin beside it."""
    if path.suffix.lower() == ".gltf":
        binary = path.with_suffix(".bin")
        with replacing(binary) as stream:
            record = _record(_write_attributes(stream, model), model, binary.name)
        write_text(path, json.dumps(record, indent=1))
        return []
    with replacing(path) as stream:
        _write_glb(stream, model, path)
    return []


def _write_glb(stream: BinaryIO, model: Fused, path: Path) -> None:
    """The JSON comes first and tells sizes only, so it is made before the arrays are written."""
    described = [(name, _description(values, name)) for name, values in _attributes(model)]
    text = json.dumps(_record(described, model, None)).encode("utf-8")
    text += b" " * (-len(text) % 4)
    binary = sum(padded(entry["bytes"]) for _, entry in described)
    whole = 12 + 8 + len(text) + 8 + binary
    if whole > LARGEST_GLB:
        raise UsageError(
            f"{path.name} can have 4 GiB, too little for {model.count} Gaussians; write a .gltf."
        )
    stream.write(struct.pack("<4sII", GLB, 2, whole))
    stream.write(struct.pack("<I4s", len(text), JSON_CHUNK) + text)
    stream.write(struct.pack("<I4s", binary, BINARY_CHUNK))
    _write_attributes(stream, model)


def _write_attributes(stream: BinaryIO, model: Fused) -> list[tuple[str, dict[str, Any]]]:
    described = []
    for name, values in _attributes(model):
        described.append((name, _description(values, name)))
        stream.write(values.tobytes() + bytes(padded(values.nbytes) - values.nbytes))
    return described


def padded(size: int) -> int:
    return -(-size // 4) * 4


def _attributes(model: Fused) -> Any:
    """One after the other, so that only one copy is in memory at a time."""
    turned = motion.half_turn_rotations(model.rotations)
    yield "POSITION", motion.half_turn_means(model.means).astype("<f4")
    yield "COLOR_0", _fallback_colors(model)
    yield f"{EXTENSION}:ROTATION", np.roll(turned, -1, axis=1).astype("<f4")  # (x, y, z, w)
    with np.errstate(over="ignore"):
        yield f"{EXTENSION}:SCALE", np.exp(model.log_scales).astype("<f4")
    yield f"{EXTENSION}:OPACITY", np.clip(model.opacities, 0, 1).astype("<f4")
    for index, name in enumerate(harmonic_names(model.sh_degree)):
        yield name, (model.harmonics[:, index] * motion.HALF_TURN_SIGNS[index]).astype("<f4")


def _fallback_colors(model: Fused) -> NDArray[np.uint8]:
    """For viewers that show points instead; glTF wants them linear."""
    rgb = np.clip(rgb_from_dc(model.harmonics[:, 0]), 0, 1)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return packing.to_bytes(np.column_stack([linear, model.opacities]) * 255)


def _description(values: NDArray[Any], name: str) -> dict[str, Any]:
    width = values.shape[1] if values.ndim == 2 else 1
    accessor: dict[str, Any] = {
        "componentType": BYTE if values.dtype == np.uint8 else FLOAT,
        "count": len(values),
        "type": _TYPES[width],
    }
    if values.dtype == np.uint8:
        accessor["normalized"] = True
    if name == "POSITION" and len(values):
        accessor |= {"min": _floats(values.min(axis=0)), "max": _floats(values.max(axis=0))}
    return {"accessor": accessor, "bytes": values.nbytes}


def _floats(values: F32) -> list[float]:
    return [float(value) for value in values]


def _record(described: list[tuple[str, dict[str, Any]]], model: Fused, binary: str | None) -> dict[str, Any]:
    views: list[dict[str, int]] = []
    offset = 0
    for _, entry in described:
        views.append({"buffer": 0, "byteOffset": offset, "byteLength": entry["bytes"]})
        offset += padded(entry["bytes"])
    accessors = [{"bufferView": index} | entry["accessor"] for index, (_, entry) in enumerate(described)]
    look = {"kernel": "ellipse", "colorSpace": "srgb_rec709_display"}
    look |= {"projection": "perspective", "sortingMethod": "cameraDistance"}
    primitive: dict[str, Any] = {
        "attributes": {name: index for index, (name, _) in enumerate(described)},
        "mode": 0,
        "extensions": {EXTENSION: look},
    }
    if model.settings is not None:
        primitive["extras"] = {"comments": marks.written(model.settings)}
    return {
        "asset": {"version": "2.0", "generator": f"splatmeter {__version__}"},
        "extensionsUsed": [EXTENSION],
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [primitive]}],
        "accessors": accessors,
        "bufferViews": views,
        "buffers": [({"uri": binary} if binary else {}) | {"byteLength": offset}],
    }
