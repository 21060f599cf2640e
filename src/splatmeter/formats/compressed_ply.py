"""Compressed PLY, PlayCanvas' format: chunks of 256 Gaussians with bounds, 16 bytes each and their harmonics.

Neighbours in space share a chunk, so that its bounds are narrow: Gaussians are written in Morton order.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from splatmeter import __version__
from splatmeter.files.atomic import replacing
from splatmeter.files.ply_header import Header, header_bytes, read_header
from splatmeter.files.ply_rows import all_rows
from splatmeter.formats import packing, reading
from splatmeter.formats.fused import Fused
from splatmeter.gaussians import marks
from splatmeter.gaussians.harmonics import dc_from_rgb, degree_of, rgb_from_dc
from splatmeter.gaussians.ply import ADVICE, Model, rest_columns
from splatmeter.ops import F32, LOG_SCALES, MEANS, OPACITY_LOGITS, ROTATIONS, Table, empty_table

CHUNK = 256
WIDEST_LOG_SCALE = 20
PACKED = ("packed_position", "packed_rotation", "packed_scale", "packed_color")
HARMONICS_RANGE = 8  # coefficients from -4 to 4


def is_compressed(header: Header) -> bool:
    _, vertex = header.before("vertex")
    return vertex is not None and any(name == "packed_position" for name, _ in vertex.properties)


# ---- reading ----------------------------------------------------------------------------------------------
def read(stream: BinaryIO, path: Path, size: int) -> Model:
    header = read_header(stream, path, ADVICE)
    with reading.garbled(path, "compressed PLY"):
        chunks = _element(stream, header, "chunk", size, path)
        rows = _element(stream, header, "vertex", size, path)
        rest = _element(stream, header, "sh", size, path) if header.before("sh")[1] else None
        if len(chunks) * CHUNK < len(rows) or (rest is not None and len(rest) < len(rows)):
            raise ValueError(f"{len(chunks)} chunks do not hold {len(rows)} Gaussians")
        degree = 0 if rest is None else degree_of(1 + len(rest.dtype.names or ()) // 3)
        return reading.finished(
            _table(rows, chunks, rest, degree), degree, "compressed PLY", comments=header.comments
        )


def _element(stream: BinaryIO, header: Header, name: str, size: int, path: Path) -> NDArray[np.void]:
    if header.before(name)[1] is None or not header.order:
        raise ValueError(f"the element {name} is missing, or is not binary")
    return all_rows(stream, path, header, name, size, ADVICE)


def _table(
    rows: NDArray[np.void], chunks: NDArray[np.void], rest: NDArray[np.void] | None, degree: int
) -> Table:
    table = empty_table(len(rows), trainable=False)
    position, rotation, scale, color = (rows[name].astype(np.uint32) for name in PACKED)
    chunk = np.arange(len(rows)) // CHUNK  # [N]
    table.geometry[:, MEANS] = _between(chunks, chunk, "", _unpacked_11_10_11(position))
    table.geometry[:, LOG_SCALES] = _between(chunks, chunk, "scale_", _unpacked_11_10_11(scale))
    others = np.stack([packing.from_bits(rotation, shift, 10) for shift in (20, 10, 0)], axis=1)
    largest = rotation >> np.uint32(30)
    table.geometry[:, ROTATIONS] = packing.from_smallest_three(largest, (others * 2 - 1) * packing.HALF_ROOT)
    rgb = np.stack([packing.from_bits(color, shift, 8) for shift in (24, 16, 8)], axis=1)
    if "min_r" in (chunks.dtype.names or ()):
        rgb = _between(chunks, chunk, "", rgb, "rgb")
    table.harmonics[:, :3] = dc_from_rgb(rgb)
    table.geometry[:, OPACITY_LOGITS] = reading.logits(packing.from_bits(color, 0, 8))
    if rest is not None:
        for index, column in enumerate(rest_columns(degree)):
            table.harmonics[: len(rows), column] = _harmonic(rest[f"f_rest_{index}"][: len(rows)])
    return table


def _between(
    chunks: NDArray[np.void],
    chunk: NDArray[np.intp],
    what: str,
    shares: NDArray[np.float64],
    axes: str = "xyz",
) -> NDArray[np.float64]:
    low, high = (
        np.stack([chunks[f"{end}_{what}{axis}"] for axis in axes], axis=1)[chunk] for end in ("min", "max")
    )
    return low * (1 - shares) + high * shares  # [N, 3]


def _unpacked_11_10_11(words: NDArray[np.uint32]) -> NDArray[np.float64]:
    return np.stack([packing.from_bits(words, *place) for place in ((21, 11), (11, 10), (0, 11))], axis=1)


def _harmonic(values: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The middle of a step, but the ends of the range where it ends."""
    shares = (values + 0.5) / 256
    shares[values == 0], shares[values == 255] = 0, 1
    return (shares - 0.5) * HARMONICS_RANGE


# ---- writing ----------------------------------------------------------------------------------------------
def write(path: Path, model: Fused) -> list[str]:
    model = model.rows(packing.morton_order(model.means))
    chunks = -(-model.count // CHUNK)
    padded = np.minimum(np.arange(chunks * CHUNK), model.count - 1)  # the last Gaussian fills its chunk
    log_scales = np.clip(model.log_scales, -WIDEST_LOG_SCALE, WIDEST_LOG_SCALE)
    rgb = rgb_from_dc(model.harmonics[:, 0])
    positions, scales, colors = (_shares(values, padded) for values in (model.means, log_scales, rgb))
    ends = [end for low, high, _ in (positions, scales, colors) for end in (low, high)]
    packed = np.empty((model.count, 4), "<u4")
    packed[:, 0] = _packed_11_10_11(positions[2])
    packed[:, 1] = _packed_rotations(model.rotations)
    packed[:, 2] = _packed_11_10_11(scales[2])
    packed[:, 3] = _packed_color(colors[2], model.opacities)
    rest = model.harmonics[:, 1:].transpose(0, 2, 1).reshape(model.count, -1)  # channel by channel
    stepped = np.clip(np.floor((rest / HARMONICS_RANGE + 0.5) * 256), 0, 255).astype(np.uint8)
    with replacing(path) as stream:
        stream.write(_header(model, chunks, rest.shape[1]))
        for block in (np.concatenate(ends, axis=1).astype("<f4"), packed, stepped):
            stream.write(block.tobytes())
    return []


def _header(model: Fused, chunks: int, rest: int) -> bytes:
    bounds = [f"{end}_{part}{axis}" for part in ("", "scale_") for end in ("min", "max") for axis in "xyz"]
    bounds += [f"{end}_{channel}" for end in ("min", "max") for channel in "rgb"]
    elements = {
        "chunk": (chunks, [("float", name) for name in bounds]),
        "vertex": (model.count, [("uint", name) for name in PACKED]),
    }
    if rest:
        elements["sh"] = model.count, [("uchar", f"f_rest_{index}") for index in range(rest)]
    return header_bytes(elements, (f"splatmeter {__version__}", *marks.written(model.settings)))


def _shares(values: F32, padded: NDArray[np.intp]) -> tuple[F32, F32, NDArray[np.float64]]:
    """Lowest and highest of each chunk [C, 3], and where between them each value lies [N, 3]."""
    grouped = values[padded].reshape(-1, CHUNK, 3)
    low, high = grouped.min(axis=1), grouped.max(axis=1)
    chunk = np.arange(len(values)) // CHUNK
    span = (high.astype(np.float64) - low)[chunk]
    offset = values.astype(np.float64) - low[chunk]
    return low, high, np.divide(offset, span, out=np.zeros_like(span), where=span > 0)


def _packed_11_10_11(shares: NDArray[np.float64]) -> NDArray[np.uint32]:
    x, y, z = (packing.to_bits(shares[:, axis], bits) for axis, bits in ((0, 11), (1, 10), (2, 11)))
    return x << np.uint32(21) | y << np.uint32(11) | z


def _packed_rotations(quaternions: F32) -> NDArray[np.uint32]:
    largest, others = packing.smallest_three(quaternions)
    words = largest.astype(np.uint32)
    for column in range(3):
        words = words << np.uint32(10) | packing.to_bits(others[:, column] * packing.HALF_ROOT + 0.5, 10)
    return words


def _packed_color(shares: NDArray[np.float64], opacities: F32) -> NDArray[np.uint32]:
    words = np.zeros(len(shares), np.uint32)
    for column in range(3):
        words = words << np.uint32(8) | packing.to_bits(shares[:, column], 8)
    return words << np.uint32(8) | packing.to_bits(opacities, 8)
