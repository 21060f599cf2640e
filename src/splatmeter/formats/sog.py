"""SOG 2, PlayCanvas' format of WebP pictures with codebooks, read only: a zip, or meta.json with pictures."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from splatmeter.errors import InputError
from splatmeter.formats import packing, reading
from splatmeter.gaussians import marks
from splatmeter.gaussians.harmonics import coefficients_of
from splatmeter.gaussians.ply import Model
from splatmeter.ops import (
    F32,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    RasterSettings,
    Table,
    empty_table,
)

ZIP = b"PK"
LONGEST_META = 2**22
SPARE_PIXELS = 2**16  # pictures are a little larger than the number of Gaussians
MOST_SHRUNK = 16  # pictures are compressed already; what a zip shrinks further is no picture
A_ROW_OF_PALETTE = 64
LARGEST_PALETTE = 2**16
FIRST_TAG = 252  # of a quaternion: which of its components is the largest
_LOOKS = {"antialiased": marks.MIP, "default": marks.PLAIN}

Fetch = Callable[[str, int], bytes]
"""A part of the model by its name, of at most so many bytes."""


def read(stream: BinaryIO, path: Path, size: int) -> Model:
    with reading.garbled(path, "SOG"):
        if path.name.lower() == "meta.json":
            return _read(path, _beside(path), stream.read(LONGEST_META))
        with zipfile.ZipFile(stream) as archive:
            fetch = _inside(archive)
            return _read(path, fetch, fetch("meta.json", LONGEST_META))


def _inside(archive: zipfile.ZipFile) -> Fetch:
    def fetch(name: str, most: int) -> bytes:
        found = archive.getinfo(name)
        if found.file_size > min(most, LONGEST_META + MOST_SHRUNK * found.compress_size):
            raise ValueError(f"{name[:60]} would unpack to {found.file_size} bytes")
        return archive.read(found)

    return fetch


def _beside(path: Path) -> Fetch:
    def fetch(name: str, most: int) -> bytes:
        if Path(name).name != name:
            raise InputError(f"{path} names {name[:60]!r}, which is no file beside it.")
        with (path.parent / name).open("rb") as part:
            return part.read(most)

    return fetch


def _read(path: Path, fetch: Fetch, meta: bytes) -> Model:
    record = reading.parsed_json(meta)
    if record.get("version") != 2:
        version = str(record.get("version", 1))[:20]
        raise InputError(f"{path} is SOG of version {version}; splatmeter reads 2.")
    count = record["count"]
    if not isinstance(count, int) or count < 0:
        raise ValueError("no number of Gaussians")
    pictures = _Pictures(fetch, count, path)
    table, degree = _table(record, pictures, count)
    return reading.finished(table, degree, "SOG 2", _look(record))


def _look(record: dict[str, Any]) -> RasterSettings | None:
    model = record.get("model")
    return _LOOKS.get(model) if isinstance(model, str) else None


class _Pictures:
    """WebP pictures, refused before they are decoded where their size does not fit."""

    def __init__(self, fetch: Fetch, count: int, path: Path) -> None:
        self._fetch, self._count, self._path = fetch, count, path

    def require_enough(self, name: str) -> None:
        """Positions are as good as noise: their picture is no smaller than a byte a Gaussian."""
        data = self._fetch(str(name), 16 * self._count + SPARE_PIXELS)
        reading.check_count(self._count, len(data), self._path)

    def first_rows(self, name: str) -> NDArray[np.uint8]:
        """Pixels as rows, one a Gaussian. # [N, 4]"""
        pixels = self.picture(name, self._count, self._count * 2 + SPARE_PIXELS).reshape(-1, 4)
        return pixels[: self._count]

    def picture(self, name: str, least: int, most: int) -> NDArray[np.uint8]:
        data = self._fetch(str(name), 8 * most)
        width, height = _size(data)
        if not least <= width * height <= most:
            raise ValueError(f"{str(name)[:60]} has {width} x {height} pixels")
        with Image.open(io.BytesIO(data), formats=("WEBP",)) as found:
            if found.size != (width, height):
                raise ValueError(f"{str(name)[:60]} has two sizes")
            return np.asarray(found.convert("RGBA"))


def _size(data: bytes) -> tuple[int, int]:
    """Size of a WebP picture, from its first bytes: decoders ask for memory as soon as they open one."""
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        packed = int.from_bytes(data[21:25], "little")
        return 1 + (packed & 0x3FFF), 1 + (packed >> 14 & 0x3FFF)
    raise ValueError("a picture is no lossless WebP")


def _table(record: dict[str, Any], pictures: _Pictures, count: int) -> tuple[Table, int]:
    pictures.require_enough(record["means"]["files"][0])
    low, high = (pictures.first_rows(name) for name in record["means"]["files"][:2])
    table = empty_table(count, trainable=False)
    shares = (low[:, :3] | high[:, :3].astype(np.uint16) << 8) / 65535  # [N, 3]
    lowest, highest = (_numbers(record["means"][end], 3) for end in ("mins", "maxs"))
    logarithmic = lowest + shares * (highest - lowest)
    table.geometry[:, MEANS] = np.sign(logarithmic) * np.expm1(np.abs(logarithmic))
    table.geometry[:, ROTATIONS] = _quaternions(pictures.first_rows(record["quats"]["files"][0]))
    scales = pictures.first_rows(record["scales"]["files"][0])
    table.geometry[:, LOG_SCALES] = _codebook(record["scales"])[scales[:, :3]]
    colors = pictures.first_rows(record["sh0"]["files"][0])
    table.harmonics[:, :3] = _codebook(record["sh0"])[colors[:, :3]]
    table.geometry[:, OPACITY_LOGITS] = reading.logits(colors[:, 3] / 255)
    higher = record.get("shN")
    return table, _add_harmonics(table, higher, pictures) if higher else 0


def _quaternions(pixels: NDArray[np.uint8]) -> F32:
    tags = pixels[:, 3].astype(np.intp) - FIRST_TAG
    others = (pixels[:, :3] / 255 * 2 - 1) * packing.HALF_ROOT  # [N, 3]
    found = packing.from_smallest_three(np.maximum(tags, 0), others)
    found[tags < 0] = (1, 0, 0, 0)
    return found


def _add_harmonics(table: Table, higher: dict[str, Any], pictures: _Pictures) -> int:
    """Each Gaussian names a palette entry; its coefficients lie side by side in a picture. The degree."""
    degree, palette = int(higher["bands"]), int(higher["count"])
    if not 1 <= degree <= 3 or not 1 <= palette <= LARGEST_PALETTE:
        raise ValueError(f"{palette} harmonics of degree {degree}")
    rest = coefficients_of(degree) - 1
    width = A_ROW_OF_PALETTE * rest
    most = (palette + A_ROW_OF_PALETTE) * rest + SPARE_PIXELS
    centers = pictures.picture(higher["files"][0], palette * rest, most)
    if centers.shape[1] != width:
        raise ValueError(f"the palette is {centers.shape[1]} pixels wide instead of {width}")
    entries = _codebook(higher)[centers[..., :3].reshape(-1, rest * 3)]  # [P, 3 * rest]
    labels = pictures.first_rows(higher["files"][1])
    chosen = labels[:, 0] | labels[:, 1].astype(np.intp) << 8  # [N]
    known = chosen < min(palette, len(entries))
    table.harmonics[known, 3 : 3 + 3 * rest] = entries[chosen[known]]
    return degree


def _codebook(part: dict[str, Any]) -> F32:
    """256 values, so that no byte can point beside it; a shorter book goes on with zeros."""
    found = np.zeros(256, np.float32)
    values = _numbers(part["codebook"])[:256]
    found[: len(values)] = values
    return found


def _numbers(values: Sequence[Any], wanted: int | None = None) -> NDArray[np.float64]:
    found = np.array(values, np.float64)
    if found.ndim != 1 or (wanted is not None and len(found) != wanted):
        raise ValueError("a list of numbers is garbled")
    return found
