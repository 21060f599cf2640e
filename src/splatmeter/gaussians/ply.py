"""Models as PLY files: the original's 63 properties, the fused 62 that viewers read, and what others write.

Values are stored forms (log scale, logit opacity, raw quaternion); f_rest is channel-major in the file and
coefficient-major in the table. Files are read and written in small blocks, so memory stays near the table's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from splatmeter import __version__
from splatmeter.backend import Model as Training
from splatmeter.errors import InputError, MissingFile
from splatmeter.files.atomic import replacing
from splatmeter.files.ply_header import Element, header_bytes, read_header
from splatmeter.files.ply_rows import ROWS, check_size, read_rows
from splatmeter.gaussians import gaussians, marks
from splatmeter.gaussians.harmonics import coefficients_of, degree_of
from splatmeter.ops import (
    F32,
    FILTER_3D,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    RasterSettings,
    Table,
    empty_table,
)

ADVICE = (
    "Copy or export it again; splatmeter reads PLY files of 3DGS and Mip-Splatting "
    "(plain or fused, SH degree 0 to 3)."
)

Numbers = NDArray[np.floating]
Block = Callable[[Table, list[int]], F32]

_GEOMETRY = {
    "x": 0, "y": 1, "z": 2, "scale_0": 3, "scale_1": 4, "scale_2": 5,
    "rot_0": 6, "rot_1": 7, "rot_2": 8, "rot_3": 9, "opacity": OPACITY_LOGITS, "filter_3D": FILTER_3D,
}  # fmt: skip
_REQUIRED = [name for name in _GEOMETRY if name != "filter_3D"] + ["f_dc_0", "f_dc_1", "f_dc_2"]


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """What a file held. `filtered` tells whether it carried a 3D filter of its own (column filter_3D)."""

    table: Table
    sh_degree: int
    filtered: bool
    comments: tuple[str, ...]
    nonfinite: int = 0
    """Rows with a NaN or an infinity; they are kept as they are."""

    told: RasterSettings | None = None
    """How it is to be drawn, where the format has a place of its own for that."""
    form: str = "PLY"

    def settings(self) -> RasterSettings | None:
        """How the writer rendered it, if the file says so; None if it does not."""
        return self.told or marks.told(self.comments, self.sh_degree)


def property_names(sh_degree: int, *, with_filter: bool) -> list[str]:
    rest = 3 * (coefficients_of(sh_degree) - 1)
    names = ["x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2"]
    names += [f"f_rest_{index}" for index in range(rest)]
    names += ["opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"]
    return [*names, "filter_3D"] if with_filter else names


def rest_columns(sh_degree: int) -> list[int]:
    """Table column of each f_rest property, in the file's order."""
    return [3 * k + channel for channel in range(3) for k in range(1, coefficients_of(sh_degree))]


# ---- writing ----------------------------------------------------------------------------------------------
def write_model(
    path: Path,
    source: Table | Training,
    sh_degree: int,
    comments: Sequence[str] = (),
    settings: RasterSettings | None = None,
) -> None:
    """The trainer's own file: raw values and, last, filter_3D."""
    _write(path, source, sh_degree, ["filter_3d column", *marks.written(settings), *comments], _raw_block)


def write_fused(
    path: Path,
    source: Table | Training,
    sh_degree: int,
    comments: Sequence[str] = (),
    settings: RasterSettings | None = None,
) -> None:
    """The file for viewers: the 3D filter is already in scales and opacities."""
    _write(path, source, sh_degree, ["filter_3d fused", *marks.written(settings), *comments], _fused_block)


def write_plain(
    path: Path,
    source: Table | Training,
    sh_degree: int,
    comments: Sequence[str] = (),
    settings: RasterSettings | None = None,
) -> None:
    """Raw values without any 3D filter: what a plain 3DGS trainer would have written."""
    _write(path, source, sh_degree, ["filter_3d none", *marks.written(settings), *comments], _plain_block)


def _write(
    path: Path, source: Table | Training, sh_degree: int, comments: Sequence[str], block: Block
) -> None:
    names = property_names(sh_degree, with_filter=block is _raw_block)
    elements = {"vertex": (source.count, [("float", name) for name in names])}
    rest = rest_columns(sh_degree)
    with replacing(Path(path)) as stream:
        stream.write(header_bytes(elements, (f"splatmeter {__version__}", *comments)))
        for start in range(0, source.count, ROWS):
            whole = isinstance(source, Table)
            rows = _rows(source, start) if whole else source.download(slice(start, start + ROWS))
            stream.write(block(rows, rest).data)


def _rows(table: Table, start: int) -> Table:
    """A view of one block; moments are not needed to write."""
    return Table(
        table.geometry[start : start + ROWS],
        table.harmonics[start : start + ROWS],
        table.geometry_moments[:0],
        table.harmonics_first[:0],
        table.harmonics_second[:0],
    )


def _plain_block(rows: Table, rest: list[int]) -> F32:
    return _assemble(rows, rest, rows.geometry[:, OPACITY_LOGITS], rows.geometry[:, LOG_SCALES], [])


def _raw_block(rows: Table, rest: list[int]) -> F32:
    filters = [rows.geometry[:, FILTER_3D, None]]
    return _assemble(rows, rest, rows.geometry[:, OPACITY_LOGITS], rows.geometry[:, LOG_SCALES], filters)


def _fused_block(rows: Table, rest: list[int]) -> F32:
    log_scales, logits = gaussians.fused(rows)  # [R, 3], [R]
    return _assemble(rows, rest, logits, log_scales, [])


def _assemble(
    rows: Table,
    rest: list[int],
    logits: Numbers,
    log_scales: Numbers,
    last: list[F32],
) -> F32:
    geometry = rows.geometry
    normals = np.zeros((rows.count, 3), np.float32)
    parts = [geometry[:, MEANS], normals, rows.harmonics[:, :3], rows.harmonics[:, rest]]
    parts += [logits[:, None], log_scales, geometry[:, ROTATIONS], *last]
    return np.concatenate(parts, axis=1, dtype="<f4", casting="same_kind")  # [R, 62 or 63]


# ---- reading ----------------------------------------------------------------------------------------------
def read_model(path: Path) -> Model:
    """Any 3DGS or Mip-Splatting PLY: properties in any order and type, binary of both orders or text."""
    path = Path(path)
    if not path.exists():
        raise MissingFile(f"There is no file {path}.")
    if not path.is_file():
        raise InputError(f"{path} is not a file; name a .ply model.")
    try:
        with path.open("rb") as stream:
            return read_stream(stream, path, path.stat().st_size)
    except OSError as problem:
        raise InputError(f"Cannot read {path}: {problem.strerror or problem}.") from problem


def is_whole(path: Path) -> bool:
    """Whether a model is there with all rows that its head announces; only the head is read."""
    try:
        with path.open("rb") as stream:
            header = read_header(stream, path, ADVICE)
            if header.before("vertex")[1] is None:
                return False
            check_size(path, header, "vertex", path.stat().st_size, ADVICE)
    except (OSError, InputError):
        return False
    return True


def read_stream(stream: BinaryIO, path: Path, size: int) -> Model:
    """The reader itself; `path` only names the file in messages, `size` is what the stream holds in bytes."""
    header = read_header(stream, path, ADVICE)
    _, vertex = header.before("vertex")
    if vertex is None:
        raise InputError(f"{path} has no element 'vertex', so it holds no Gaussians. {ADVICE}")
    degree = _check_properties(vertex, path)
    blocks = read_rows(stream, path, header, "vertex", size, ADVICE)
    table = empty_table(vertex.count, trainable=False)
    columns = _columns(vertex, degree)
    start = nonfinite = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for block in blocks:
            stop = start + len(block)
            for name, (harmonics, column) in columns.items():
                (table.harmonics if harmonics else table.geometry)[start:stop, column] = block[name]
            nonfinite += int((~gaussians.finite_rows(_rows(table, start))[: len(block)]).sum())
            start = stop
    return Model(table, degree, "filter_3D" in columns, header.comments, nonfinite)


def _check_properties(vertex: Element, path: Path) -> int:
    """The degree of the harmonics; InputError when something a Gaussian needs is not there."""
    names = {name for name, _ in vertex.properties}
    if "packed_position" in names:
        raise InputError(f"{path} is a compressed PLY file. Decompress it first. {ADVICE}")
    missing = [name for name in _REQUIRED if name not in names]
    if missing:
        listed = ", ".join(missing[:4]) + (", ..." if len(missing) > 4 else "")
        raise InputError(
            f"{path} lacks {len(missing)} of the properties of Gaussians ({listed}). {ADVICE}"
        )
    rest = sum(name.startswith("f_rest_") for name in names)
    if rest not in (0, 9, 24, 45) or any(f"f_rest_{index}" not in names for index in range(rest)):
        raise InputError(f"{path}: {rest} f_rest properties fit no SH degree (0, 9, 24 and 45 do). {ADVICE}")
    return degree_of(1 + rest // 3)


def _columns(vertex: Element, degree: int) -> dict[str, tuple[bool, int]]:
    """Property -> (of the harmonics?, column of the table)."""
    columns = {name: (False, column) for name, column in _GEOMETRY.items()}
    columns |= {f"f_dc_{channel}": (True, channel) for channel in range(3)}
    columns |= {f"f_rest_{index}": (True, column) for index, column in enumerate(rest_columns(degree))}
    present = {name for name, _ in vertex.properties}
    return {name: place for name, place in columns.items() if name in present}
