"""A safetensors file, written in one stream and replaced atomically, and read with every byte checked.

The library's own writer needs a second copy of all arrays in memory; the format is simple enough to stream.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import CheckpointError, MissingFile
from splatmeter.files.atomic import replacing
from splatmeter.ops import aligned

FORMAT = "splatmeter checkpoint"
VERSION = 1
_DTYPES = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_LARGEST_HEADER = 100_000_000  # the format's own limit

BLOCK_ROWS = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A float32 array [count, width] that is read a block of rows at a time: it may lie on a device."""

    count: int
    width: int
    read: Callable[[slice], NDArray[np.float32]]

    @property
    def shape(self) -> tuple[int, int]:
        return self.count, self.width

    @property
    def dtype(self) -> np.dtype[Any]:
        return _DTYPES["F32"]

    @property
    def nbytes(self) -> int:
        return self.count * self.width * self.dtype.itemsize


Arrays = Mapping[str, NDArray[Any] | Rows]


def write(path: Path, arrays: Arrays, state: Mapping[str, Any]) -> str:
    """Complete or not at all: temporary file, fsync, rename. Returns the file's sha256."""
    header = _header(arrays, json.dumps(state, sort_keys=True))
    digest = hashlib.sha256()
    with replacing(path) as file:
        for part in itertools.chain([header], *map(_blocks, arrays.values())):
            file.write(part)
            digest.update(part)
    return digest.hexdigest()


def read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and state; CheckpointError for anything that is not wholly what was written."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            header, begin = _read_header(path, file, size)
            metadata = _metadata(path, header)
            arrays = _read_arrays(path, file, header, size - begin)
    except FileNotFoundError:
        raise MissingFile(f"The checkpoint {path} does not exist.") from None
    except OSError as problem:
        raise CheckpointError(
            f"The checkpoint {path} cannot be read ({problem.strerror or problem})."
        ) from problem
    if _digest(arrays, metadata["state"]) != metadata.get("sha256"):
        raise CheckpointError(
            f"The checkpoint {path} is damaged: its content does not match its sha256. {_REMEDY}"
        )
    return arrays, json.loads(metadata["state"])


def rows_of(path: Path, array: str) -> int | None:
    """How many an array has, by the file's header alone; None where that does not say."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            header, _ = _read_header(path, file, size)
        rows, width = map(int, header[array]["shape"])
        return rows if 0 <= rows * width * 4 <= size else None
    except (OSError, CheckpointError, KeyError, IndexError, TypeError, ValueError):
        return None  # whoever reads the whole file will say what is wrong


_REMEDY = "Use an earlier checkpoint or copy the file again."


def _header(arrays: Arrays, state: str) -> bytes:
    entries: dict[str, Any] = {
        "__metadata__": {
            "format": FORMAT,
            "version": str(VERSION),
            "sha256": _digest(arrays, state),
            "state": state,
        }
    }
    begin = 0
    for name, array in arrays.items():
        end = begin + array.nbytes
        entries[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [begin, end],
        }
        begin = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # arrays begin aligned
    return len(text).to_bytes(8, "little") + text


def _digest(arrays: Arrays, state: str) -> str:
    """Covers the state and, in order of name, the name, type, shape and bytes of each array."""
    digest = hashlib.sha256(state.encode())
    for name in sorted(arrays):
        digest.update(f"{name}{arrays[name].dtype}{arrays[name].shape}".encode())
        for block in _blocks(arrays[name]):
            digest.update(block)
    return digest.hexdigest()


def _blocks(array: NDArray[Any] | Rows) -> Iterator[memoryview]:
    if not isinstance(array, Rows):
        yield _bytes(array)
        return
    for start in range(0, array.count, BLOCK_ROWS):
        yield _bytes(array.read(slice(start, start + BLOCK_ROWS)))


def _bytes(array: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _read_header(path: Path, file: BinaryIO, size: int) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(file.read(8), "little")
    if length > _LARGEST_HEADER:
        raise CheckpointError(f"{path} is not a checkpoint of splatmeter.")
    if size < 8 or 8 + length > size:
        raise CheckpointError(f"The checkpoint {path} is cut off after {size} bytes. {_REMEDY}")
    try:
        header = json.loads(file.read(length))
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise CheckpointError(f"{path} is not a checkpoint of splatmeter, or is damaged.")
    return header, 8 + length


def _metadata(path: Path, header: dict[str, Any]) -> dict[str, str]:
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT or "state" not in metadata:
        raise CheckpointError(f"{path} is not a checkpoint of splatmeter.")
    if metadata.get("version") != str(VERSION):
        raise CheckpointError(
            f"The checkpoint {path} is of version {metadata.get('version')}; "
            f"this splatmeter reads version {VERSION}. "
            "Use the splatmeter that wrote it."
        )
    return metadata


def _read_arrays(path: Path, file: BinaryIO, header: dict[str, Any], left: int) -> dict[str, NDArray[Any]]:
    try:
        entries = sorted(header.items(), key=lambda entry: entry[1]["data_offsets"][0])
        sizes = {
            name: (_DTYPES[entry["dtype"]], tuple(map(int, entry["shape"])), entry["data_offsets"])
            for name, entry in entries
        }
        position = 0
        for dtype, shape, (begin, end) in sizes.values():
            if begin != position or end - begin != dtype.itemsize * int(np.prod(shape, dtype=object)):
                raise ValueError
            position = end
    except (KeyError, TypeError, ValueError, IndexError):
        raise CheckpointError(
            f"The checkpoint {path} is damaged: its header makes no sense. {_REMEDY}"
        ) from None
    if position != left:
        state = "cut off" if left < position else "damaged"
        raise CheckpointError(
            f"The checkpoint {path} is {state}: {left} of {position} bytes are there. {_REMEDY}"
        )
    arrays: dict[str, NDArray[Any]] = {}
    for name, (dtype, shape, _) in sizes.items():
        arrays[name] = aligned(shape, dtype)
        file.readinto(_bytes(arrays[name]))  # type: ignore[attr-defined]
    return arrays
