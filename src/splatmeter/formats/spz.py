"""SPZ, the compressed format of Niantic: versions 2 to 4 are read, 3 and 4 written.

Version 4 is a plain header, a table of sizes and one zstd stream per attribute; before that everything was
one gzip stream. The flag "antialiased" is the mark of the 2D Mip filter. Coordinates are taken and written as
they are, as the library's own converters do.
"""

from __future__ import annotations

import gzip
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import InputError
from splatmeter.files.atomic import replacing
from splatmeter.formats import packing, reading, zstd
from splatmeter.formats.fused import Fused
from splatmeter.gaussians import marks
from splatmeter.gaussians.harmonics import HIGHEST_DEGREE, coefficients_of
from splatmeter.gaussians.ply import Model
from splatmeter.ops import F32, LOG_SCALES, MEANS, OPACITY_LOGITS, ROTATIONS, Table, empty_table

MAGIC = b"NGSP"
GZIP = b"\x1f\x8b"
ANTIALIASED = 1
COLOR_SCALE = 0.15  # of the constant harmonic: leaves room below black and above white
COMMON_FRACTION = 12  # bits behind the point, as everybody writes them
MOST_FRACTION = 20
STEPS_PER_GAUSSIAN = 8  # positions are rounded to this share of a small Gaussian's longest axis
FIRST_DEGREE_BITS = 6  # of the 8 bits of a harmonic, those that are used. The library takes 5 and 4,
HIGHER_DEGREE_BITS = 6  # which cost 0.77 dB on garden where these cost 0.04, in files 0.74 times as large
NEGATIVE, MAGNITUDE = 1 << 9, (1 << 9) - 1  # of a quaternion's component: a sign and 9 bits


@dataclass(frozen=True, slots=True)
class Header:
    version: int
    count: int
    sh_degree: int
    fraction: int
    flags: int

    def sizes(self) -> list[int]:
        """Bytes of positions, opacities, colours, scales, rotations and harmonics."""
        a_row = [9, 1, 3, 3, 3 if self.version == 2 else 4, 3 * (coefficients_of(self.sh_degree) - 1)]
        return [self.count * width for width in a_row]


# ---- reading ----------------------------------------------------------------------------------------------
def read(stream: BinaryIO, path: Path, size: int) -> Model:
    start = stream.read(4)
    stream.seek(0)
    with reading.garbled(path, "SPZ"):
        header, streams = (_plain if start == MAGIC else _zipped)(stream, path, size)
        told = marks.MIP if header.flags & ANTIALIASED else None
        degree = min(header.sh_degree, HIGHEST_DEGREE)
        left_out = ("harmonics of degree 4 are left out",) if header.sh_degree > degree else ()
        return reading.finished(_table(header, streams), degree, f"SPZ {header.version}", told, left_out)


def _header(data: bytes, path: Path, stored: int) -> Header:
    magic, version, count, degree, fraction, flags = struct.unpack_from("<4sIIBBB", data)
    if magic != MAGIC:
        raise InputError(f"{path} is no SPZ file (its first bytes are not NGSP).")
    if not 2 <= version <= 4:
        raise InputError(f"{path} is SPZ of version {version}; splatmeter reads 2, 3 and 4.")
    if degree > HIGHEST_DEGREE + 1 or fraction > 30:
        raise ValueError(f"degree {degree} with {fraction} bits behind the point")
    reading.check_count(count, stored, path)
    return Header(version, count, degree, fraction, flags)


def _zipped(stream: BinaryIO, path: Path, size: int) -> tuple[Header, list[bytes]]:
    with gzip.GzipFile(fileobj=stream, mode="rb") as content:
        header = _header(content.read(16), path, size)
        streams = [content.read(wanted) for wanted in header.sizes()]
        content.read(1)  # behind the last byte the checksum is compared
    return header, _whole(header, streams)


def _plain(stream: BinaryIO, path: Path, size: int) -> tuple[Header, list[bytes]]:
    start = stream.read(32)
    header = _header(start, path, size)
    if header.version < 4:
        raise ValueError("versions before 4 are gzip streams")
    streams, table = struct.unpack_from("<BI", start, 15)
    sizes = [wanted for wanted in header.sizes() if wanted] if header.count else []
    if header.count and streams != len(sizes):
        raise ValueError(f"{streams} streams instead of {len(sizes)}")
    stream.seek(table)
    listed = np.frombuffer(stream.read(16 * len(sizes)), "<u8").reshape(-1, 2)  # compressed, then not
    if listed[:, 1].tolist() != sizes or sum(listed[:, 0].tolist()) > size:
        raise ValueError("its table of streams does not fit the number of Gaussians")
    found = [
        zstd.decompress(stream.read(stored), wanted)
        for stored, wanted in zip(listed[:, 0].tolist(), sizes, strict=True)
    ]
    return header, _whole(header, found + [b""] * (6 - len(found)))


def _whole(header: Header, streams: list[bytes]) -> list[bytes]:
    for found, wanted in zip(streams, header.sizes(), strict=True):
        if len(found) != wanted:
            raise ValueError(f"{len(found)} of {wanted} bytes are there")
    return streams


def _table(header: Header, streams: list[bytes]) -> Table:
    positions, opacities, colors, scales, rotations, harmonics = (
        np.frombuffer(data, np.uint8) for data in streams
    )
    table = empty_table(header.count, trainable=False)
    parts = positions.reshape(-1, 3, 3).astype(np.int32)  # [N, 3, 3] low byte first
    fixed = parts[..., 0] | parts[..., 1] << 8 | parts[..., 2] << 16
    table.geometry[:, MEANS] = np.ldexp(np.float64(1), -header.fraction) * ((fixed ^ 0x800000) - 0x800000)
    table.geometry[:, OPACITY_LOGITS] = reading.logits(opacities / 255)
    table.geometry[:, LOG_SCALES] = scales.reshape(-1, 3) / np.float32(16) - 10
    table.geometry[:, ROTATIONS] = _quaternions(rotations, header.version)
    table.harmonics[:, :3] = (colors.reshape(-1, 3) / 255 - 0.5) / COLOR_SCALE
    rest = 3 * (coefficients_of(header.sh_degree) - 1)
    kept = min(rest, table.harmonics.shape[1] - 3)
    values = harmonics.reshape(header.count, rest)[:, :kept]
    table.harmonics[:, 3 : 3 + kept] = (values.astype(np.float32) - 128) / 128
    return table


def _quaternions(packed: NDArray[np.uint8], version: int) -> F32:
    """(w, x, y, z)"""
    if version == 2:
        vector = packed.reshape(-1, 3) / np.float32(127.5) - 1  # [N, 3]
        real = np.sqrt(np.maximum(1 - np.square(vector).sum(axis=1), 0))  # [N]
        return np.column_stack([real, vector]).astype(np.float32)
    words = packed.reshape(-1, 4).view("<u4").ravel()
    parts = np.stack([packing.field(words, shift, 10) for shift in (20, 10, 0)], axis=1)  # [N, 3]
    length = (parts & MAGNITUDE) / MAGNITUDE * packing.HALF_ROOT
    others = np.where(parts & NEGATIVE, -length, length)
    found = packing.from_smallest_three(words >> np.uint32(30), others)  # (x, y, z, w)
    return np.roll(found, 1, axis=1)


# ---- writing ----------------------------------------------------------------------------------------------
def write(path: Path, model: Fused, version: int) -> list[str]:
    """What had to be left out or changed, as sentences."""
    fraction = _fraction(model)
    near = np.flatnonzero(np.abs(model.means).max(axis=1) < 2.0 ** (23 - fraction) - 1)
    far = model.count - len(near)
    model = model if not far else model.rows(near)
    flags = ANTIALIASED if model.settings is not None and model.settings.compensate else 0
    header = Header(version, model.count, model.sh_degree, fraction, flags)
    streams = [part.tobytes() for part in _streams(model, fraction)]
    with replacing(path) as stream:
        (_write_4 if version == 4 else _write_3)(stream, header, streams)
    return [f"{far} Gaussians lie too far away for SPZ's positions and are left out."] if far else []


def _fraction(model: Fused) -> int:
    """Bits behind the point: what small Gaussians need, as long as (nearly) all positions fit 24 bits."""
    if not model.count:
        return COMMON_FRACTION
    small = float(np.exp(np.percentile(model.log_scales.max(axis=1), 10)))
    needed = int(np.ceil(np.log2(STEPS_PER_GAUSSIAN / max(small, 1e-9))))
    reach = np.abs(model.means).max(axis=1)  # [N]
    room = int(np.floor(22.99 - np.log2(max(float(reach.max()), 1e-9))))
    if room < COMMON_FRACTION:  # a few strays must not cost everybody's precision
        room = int(np.floor(22.99 - np.log2(max(float(np.percentile(reach, 99.9)), 1e-9))))
    return int(np.clip(min(max(needed, COMMON_FRACTION), room), 0, MOST_FRACTION))


def _write_3(stream: BinaryIO, header: Header, streams: list[bytes]) -> None:
    with gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=6, mtime=0) as packed:
        for part in (_start(header) + b"\0", *streams):
            packed.write(part)


def _write_4(stream: BinaryIO, header: Header, streams: list[bytes]) -> None:
    used = [data for data in streams if data]
    packed = [zstd.compress(data) for data in used]
    sizes = [struct.pack("<QQ", len(small), len(data)) for small, data in zip(packed, used, strict=True)]
    start = _start(header) + struct.pack("<BI12x", len(used), 32)
    stream.write(b"".join((start, *sizes, *packed)))


def _start(header: Header) -> bytes:
    fields = (header.version, header.count, header.sh_degree, header.fraction, header.flags)
    return struct.pack("<4sIIBBB", MAGIC, *fields)


def _streams(model: Fused, fraction: int) -> list[NDArray[np.uint8]]:
    fixed = np.rint(np.ldexp(model.means.astype(np.float64), fraction)).astype("<i4")  # [N, 3]
    positions = np.ascontiguousarray(fixed).view(np.uint8).reshape(-1, 3, 4)[..., :3]
    colors = packing.to_bytes((model.harmonics[:, 0] * COLOR_SCALE + 0.5) * 255)
    scales = packing.to_bytes((model.log_scales + 10) * 16)
    rest = model.harmonics[:, 1:]
    first = _harmonic_bytes(rest[:, :3], FIRST_DEGREE_BITS)
    higher = _harmonic_bytes(rest[:, 3:], HIGHER_DEGREE_BITS)
    harmonics = np.concatenate([first, higher], axis=1)
    return [positions, packing.to_bytes(model.opacities * 255), colors, scales, _rotations(model), harmonics]


def _harmonic_bytes(values: F32, bits: int) -> NDArray[np.uint8]:
    """The nearest multiple of a step, counted from 128, which is zero."""
    step = 1 << (8 - bits)
    stepped = np.rint(values * (128 / step)) * step + 128
    return np.clip(stepped, 0, 255).astype(np.uint8)


def _rotations(model: Fused) -> NDArray[np.uint8]:
    largest, others = packing.smallest_three(np.roll(model.rotations, -1, axis=1))  # (x, y, z, w)
    length = packing.to_bits(np.abs(others) / packing.HALF_ROOT, 9)
    parts = length | np.where((others < 0) & (length > 0), NEGATIVE, 0).astype(np.uint32)
    words = largest.astype(np.uint32)
    for column in range(3):
        words = words << np.uint32(10) | parts[:, column]
    return words.astype("<u4").view(np.uint8)
