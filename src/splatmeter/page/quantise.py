"""A model as few bytes as a page can carry, and back again: every value is a whole number of steps.

What a Gaussian loses is at most half a step of each value. Its 3D filter goes into scales and opacities
first, as in a fused PLY; those too faint to be drawn by any camera are left out. `web/decode.js` reads the
same bytes; `restored` is its twin, for tests and for telling what the steps cost.

The bytes: per chunk of CHUNK neighbours the corner and the steps of its positions (float32), then planes of
one byte a Gaussian in the order in which `quantised` names them: like bytes together are what deflate makes
small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.gaussians import gaussians
from splatmeter.gaussians.harmonics import coefficients_of
from splatmeter.ops import (
    F32,
    F64,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    Table,
    empty_table,
)

Codes = NDArray[np.int64]
Bytes = NDArray[np.uint8]

CHUNK = 256
FAINTEST = 1 / 255
"""An opacity no larger than this is never drawn, whatever the 2D filter does."""
POSITION_SHARE = 0.06
"""Steps of positions, in parts of the thinnest axes around: nobody sees a shift so small."""
LOG_SCALE_STEP = 0.03
OPACITY_LEVELS = 511
ROTATION_LEVELS = 511
COLOR_STEP = 0.01
"""Rounding of the constant harmonics, as brightness and two colour differences; 0.01 is 0.7 of 255."""
HARMONIC_STEP = 0.014
"""Rounding of all others. They are most of the bytes and cost most of the quality: coarser steps only where
a page would grow too large."""
LARGEST_LOG_SCALE = 30.0
"""Beyond e^30 a Gaussian is everywhere; below e^-30 it is nowhere."""


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """The bytes, before deflating, and what one must know to read them."""

    header: dict[str, Any]
    data: bytes
    origin: F64  # [3] world: where the page's own coordinates begin; it stays outside

    @property
    def count(self) -> int:
        return int(self.header["count"])


# ---- to bytes ---------------------------------------------------------------------------------------------
def quantised(table: Table, degree: int, coarseness: float = 1.0) -> Packed:
    """Takes finite rows only; their order becomes that of a curve through space."""
    step = HARMONIC_STEP * coarseness
    log_scales, logits = gaussians.fused(table)  # [N, 3], [N]
    opacities = gaussians.sigmoid(logits)  # [N]
    drawn = np.flatnonzero(opacities > FAINTEST)  # [M]
    means = table.geometry[:, MEANS].astype(np.float64)  # [N, 3] world
    rows = drawn[np.argsort(curve_places(means[drawn]), kind="stable")]  # [M]
    origin = np.median(means[rows], axis=0) if len(rows) else np.zeros(3)
    means = (means[rows] - origin).astype(np.float32)  # [M, 3] page: a place on Earth does not shine through
    log_scales = np.clip(log_scales[rows], -LARGEST_LOG_SCALE, LARGEST_LOG_SCALE)  # [M, 3]
    lowest = float(log_scales.min()) if len(rows) else 0.0
    corners, positions = _positions(means, np.exp(log_scales.min(axis=1)))
    scales = np.rint((log_scales - lowest) / LOG_SCALE_STEP).astype(np.int64)  # [M, 3]
    opacity = np.rint(opacities[rows] * OPACITY_LEVELS).astype(np.int64)  # [M]
    count = coefficients_of(degree)
    harmonics = table.harmonics[rows, : 3 * count].reshape(len(rows), count, 3)
    planes = [
        *_two_planes(positions),
        *_two_planes(scales),
        *_rotation_planes(table.geometry[rows, ROTATIONS]),
        *_two_planes(opacity[:, None]),
        *_harmonic_planes(harmonics.astype(np.float64), step),
    ]
    header = {
        "count": len(rows),
        "degree": degree,
        "chunk": CHUNK,
        "lowestLogScale": lowest,
        "logScaleStep": LOG_SCALE_STEP,
        "opacityLevels": OPACITY_LEVELS,
        "rotationLevels": ROTATION_LEVELS,
        "colorStep": COLOR_STEP,
        "harmonicStep": step,
    }
    return Packed(header, corners.tobytes() + b"".join(plane.tobytes() for plane in planes), origin)


def curve_places(means: F64) -> NDArray[np.uint64]:
    """Where each lies on a Morton curve: neighbours in space become neighbours in the file.

    Distances are squeezed (arsinh), so that a few far away do not push all others into one cell.
    """
    if not len(means):
        return np.zeros(0, np.uint64)
    middle = np.median(means, axis=0)
    reach = np.maximum(np.median(np.abs(means - middle), axis=0), 1e-12)
    squeezed = np.arcsinh((means - middle) / reach).astype(np.float64)  # [N, 3]
    low, high = squeezed.min(axis=0), squeezed.max(axis=0)
    cells = ((squeezed - low) / np.maximum(high - low, 1e-12) * (2**21 - 1)).astype(np.uint64)  # [N, 3]
    return _spread(cells[:, 0]) | _spread(cells[:, 1]) << np.uint64(1) | _spread(cells[:, 2]) << np.uint64(2)


def _spread(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Two zeros between neighbouring bits of 21-bit numbers."""
    for shift, mask in (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ):
        bits = (bits | bits << np.uint64(shift)) & np.uint64(mask)
    return bits


def _positions(means: F32, thinnest: F64) -> tuple[F32, Codes]:
    """Corner and step per chunk and axis [C, 6], and codes [M, 3] below 65536."""
    count = len(means)
    starts = np.arange(0, count, CHUNK)
    if not count:
        return np.zeros((0, 6), "<f4"), np.zeros((0, 3), np.int64)
    low = np.minimum.reduceat(means, starts).astype("<f4")  # [C, 3]
    high = np.maximum.reduceat(means, starts)  # [C, 3]
    fine = np.array([np.quantile(thinnest[s : s + CHUNK], 0.1) for s in starts]) * POSITION_SHARE  # [C]
    span = (high - low).astype(np.float64)
    step = np.maximum(np.maximum(span / 65_535, fine[:, None]), 1e-30).astype("<f4")  # [C, 3]
    of = np.arange(count) // CHUNK
    codes = np.rint((means - low[of]).astype(np.float64) / step[of]).astype(np.int64)  # [M, 3]
    return np.concatenate([low, step], axis=1), np.minimum(codes, 65_535)


def _two_planes(codes: Codes) -> list[Bytes]:
    """Low bytes of all columns, then high bytes of all columns."""
    columns = np.ascontiguousarray(codes.T)
    return [(columns & 255).astype(np.uint8), (columns >> 8).astype(np.uint8)]


def _rotation_planes(rotations: F32) -> list[Bytes]:
    """The three smaller parts of the quaternion, ten bits each, and which one is left out: four bytes."""
    unit = rotations.astype(np.float64)
    length = np.linalg.norm(unit, axis=1, keepdims=True)
    unit = np.where(length > 1e-12, unit / np.maximum(length, 1e-12), [1.0, 0.0, 0.0, 0.0])  # [M, 4]
    largest = np.abs(unit).argmax(axis=1)  # [M]
    unit *= np.where(np.take_along_axis(unit, largest[:, None], 1) < 0, -1, 1)
    rest = unit[np.arange(4)[None, :] != largest[:, None]].reshape(-1, 3)  # [M, 3] within +-1/sqrt(2)
    codes = np.rint((rest * np.sqrt(0.5) + 0.5) * ROTATION_LEVELS).astype(np.int64)  # [M, 3]
    tops = codes >> 8
    last = tops[:, 0] | tops[:, 1] << 2 | tops[:, 2] << 4 | largest << 6  # [M]
    return [(codes.T & 255).astype(np.uint8), last.astype(np.uint8)]


def _harmonic_planes(harmonics: F64, step: float) -> list[Bytes]:
    """[M, K, 3]: sixteen bits of the constant ones, a signed byte of each other."""
    turned = to_differences(harmonics)  # [M, K, 3]
    constant = np.rint(turned[:, 0] / COLOR_STEP).astype(np.int64)  # [M, 3]
    planes = _two_planes(np.clip(constant, -32_768, 32_767) & 65_535)
    for k in range(1, harmonics.shape[1]):
        codes = np.rint(turned[:, k] / step)  # [M, 3]
        planes.append(np.ascontiguousarray(np.clip(codes, -127, 127).astype(np.int8).T).view(np.uint8))
    return planes


def to_differences(rgb: F64) -> F64:
    """Red, green, blue -> brightness, orange minus blue, green minus the others (YCoCg)."""
    red, green, blue = np.moveaxis(rgb, -1, 0)
    return np.stack([(red + 2 * green + blue) / 4, (red - blue) / 2, (2 * green - red - blue) / 4], axis=-1)


def from_differences(turned: F64) -> F64:
    bright, orange, green = np.moveaxis(turned, -1, 0)
    return np.stack([bright - green + orange, bright + green, bright - green - orange], axis=-1)


# ---- and back ---------------------------------------------------------------------------------------------
class _Reader:
    def __init__(self, packed: Packed) -> None:
        self._data = np.frombuffer(packed.data, np.uint8)
        self._count = packed.count
        self._place = 0

    def corners(self, chunks: int) -> F64:
        self._place = 24 * chunks
        return self._data[: self._place].view("<f4").reshape(chunks, 6).astype(np.float64)

    def planes(self, columns: int) -> Codes:
        """The next bytes as [M, columns]."""
        begin, self._place = self._place, self._place + columns * self._count
        return self._data[begin : self._place].reshape(columns, self._count).T.astype(np.int64)

    def two_planes(self, columns: int) -> Codes:
        return self.planes(columns) | self.planes(columns) << 8


def restored(packed: Packed) -> Table:
    """What the page draws, as an ordinary model without a 3D filter; the opacity is capped below 1."""
    header, count = packed.header, packed.count
    reader = _Reader(packed)
    corners = reader.corners(-(-count // header["chunk"]))
    table = empty_table(count, trainable=False)
    of = np.arange(count) // header["chunk"]
    table.geometry[:, MEANS] = corners[of, :3] + reader.two_planes(3) * corners[of, 3:] + packed.origin
    table.geometry[:, LOG_SCALES] = header["lowestLogScale"] + reader.two_planes(3) * header["logScaleStep"]
    table.geometry[:, ROTATIONS] = _rotations(reader, header["rotationLevels"])
    opacity = reader.two_planes(1)[:, 0] / header["opacityLevels"]
    table.geometry[:, OPACITY_LOGITS] = gaussians.logit(np.clip(opacity, 1e-6, 1 - 1e-6))
    _read_harmonics(reader, header, table.harmonics)
    return table


def _rotations(reader: _Reader, levels: int) -> F64:
    low, last = reader.planes(3), reader.planes(1)[:, 0]
    codes = low | (last[:, None] >> np.array([0, 2, 4]) & 3) << 8  # [M, 3]
    rest = (codes / levels - 0.5) * np.sqrt(2)
    largest = last >> 6
    quaternions = np.empty((len(last), 4))
    quaternions[np.arange(4)[None, :] != largest[:, None]] = rest.ravel()
    missing = np.sqrt(np.maximum(1 - (rest**2).sum(axis=1), 0))
    np.put_along_axis(quaternions, largest[:, None], missing[:, None], 1)
    return quaternions


def _read_harmonics(reader: _Reader, header: dict[str, Any], into: F32) -> None:
    constant = reader.two_planes(3).astype(np.uint16).view(np.int16)  # [M, 3]
    into[:, :3] = from_differences(constant * header["colorStep"])
    for k in range(1, coefficients_of(header["degree"])):
        codes = reader.planes(3).astype(np.uint8).view(np.int8)  # [M, 3]
        into[:, 3 * k : 3 * k + 3] = from_differences(codes * header["harmonicStep"])
