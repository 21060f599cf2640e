"""Models as PLY files: the original's 63 properties, the fused 62 that viewers read, and what others write.

Values are stored forms (log scale, logit opacity, raw quaternion); f_rest is channel-major in the file and
coefficient-major in the table. Files are read and written in small blocks, so memory stays near the table's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from splatmeter import __version__
from splatmeter.backend import Model as Training
from splatmeter.errors import InputError, MissingFile
from splatmeter.gaussians import gaussians, marks
from splatmeter.gaussians.atomic import replacing
from splatmeter.gaussians.harmonics import coefficients_of, degree_of
from splatmeter.gaussians.ply_header import SUPPORTED, Element, Header, read_header
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

ROWS = 4096  # rows a block: about 1 MiB of file
TEXT_BLOCK = 2**22

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
    lines = ["ply", "format binary_little_endian 1.0"]
    lines += ["comment " + " ".join(text.split()) for text in (f"splatmeter {__version__}", *comments)]
    lines += [f"element vertex {source.count}", *(f"property float {name}" for name in names), "end_header"]
    rest = rest_columns(sh_degree)
    with replacing(Path(path)) as stream:
        stream.write(("\n".join(lines) + "\n").encode("utf-8"))
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


def read_stream(stream: BinaryIO, path: Path, size: int) -> Model:
    """The reader itself; `path` only names the file in messages, `size` is what the stream holds in bytes."""
    header = read_header(stream, path)
    earlier, vertex = header.before("vertex")
    if vertex is None:
        raise InputError(f"{path} has no element 'vertex', so it holds no Gaussians. {SUPPORTED}.")
    degree = _check_properties(vertex, path)
    if vertex.has_list or any(element.has_list for element in earlier):
        raise InputError(f"{path}: list properties before the end of the vertices are not supported.")
    _check_size(header, earlier, vertex, size, path)
    table = empty_table(vertex.count, trainable=False)
    blocks = _binary_blocks if header.order else _text_blocks
    columns = _columns(vertex, degree)
    start = nonfinite = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for block in blocks(stream, header, earlier, vertex, path):
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
        raise InputError(f"{path} is a compressed PLY. {SUPPORTED}; decompress it first.")
    missing = [name for name in _REQUIRED if name not in names]
    if missing:
        listed = ", ".join(missing[:4]) + (", ..." if len(missing) > 4 else "")
        raise InputError(
            f"{path} lacks {len(missing)} of the properties of Gaussians ({listed}). {SUPPORTED}."
        )
    rest = sum(name.startswith("f_rest_") for name in names)
    if rest not in (0, 9, 24, 45) or any(f"f_rest_{index}" not in names for index in range(rest)):
        raise InputError(f"{path}: {rest} f_rest properties fit no SH degree (0, 9, 24 and 45 do).")
    return degree_of(1 + rest // 3)


def _check_size(header: Header, earlier: list[Element], vertex: Element, size: int, path: Path) -> None:
    """Before anything is allocated: could the file hold what its header promises?"""
    needed = header.data_offset
    for element in (*earlier, vertex):
        if header.order:
            needed += element.count * header.row_type(element).itemsize
        else:
            needed += element.count * max(1, 2 * len(element.properties)) - 1  # one digit, one space
    if needed > size:
        raise InputError(
            f"{path} promises {vertex.count} Gaussians, at least {needed} bytes, but has {size}; "
            "it is cut off or damaged. Copy or export it again."
        )


def _columns(vertex: Element, degree: int) -> dict[str, tuple[bool, int]]:
    """Property -> (of the harmonics?, column of the table)."""
    columns = {name: (False, column) for name, column in _GEOMETRY.items()}
    columns |= {f"f_dc_{channel}": (True, channel) for channel in range(3)}
    columns |= {f"f_rest_{index}": (True, column) for index, column in enumerate(rest_columns(degree))}
    present = {name for name, _ in vertex.properties}
    return {name: place for name, place in columns.items() if name in present}


def _binary_blocks(
    stream: BinaryIO, header: Header, earlier: list[Element], vertex: Element, path: Path
) -> Iterator[NDArray[np.void]]:
    row = header.row_type(vertex)
    stream.seek(header.data_offset + sum(e.count * header.row_type(e).itemsize for e in earlier))
    for start in range(0, vertex.count, ROWS):
        wanted = min(ROWS, vertex.count - start)
        data = stream.read(wanted * row.itemsize)
        if len(data) < wanted * row.itemsize:
            raise InputError(f"{path} ends in the middle of Gaussian {start + len(data) // row.itemsize}.")
        yield np.frombuffer(data, row)


def _text_blocks(
    stream: BinaryIO, header: Header, earlier: list[Element], vertex: Element, path: Path
) -> Iterator[NDArray[np.void]]:
    width = len(vertex.properties)
    row = np.dtype([(name, "f8") for name, _ in vertex.properties])
    skip = sum(element.count * len(element.properties) for element in earlier)
    left = vertex.count * width
    held: list[bytes] = []
    stream.seek(header.data_offset)
    for words in _words(stream, path):
        skipped = min(skip, len(words))
        skip -= skipped
        held += words[skipped : skipped + left - len(held)]
        whole = len(held) // width * width
        try:
            yield np.array(held[:whole], np.float64).view(row)
        except ValueError:
            raise InputError(f"{path}: something among the values is not a number.") from None
        held, left = held[whole:], left - whole
        if not left:
            return
    if left:
        raise InputError(f"{path} ends before its {vertex.count} Gaussians are complete.")


def _words(stream: BinaryIO, path: Path) -> Iterator[list[bytes]]:
    """Blank-separated words in pieces of bounded size."""
    tail = b""
    while block := stream.read(TEXT_BLOCK):
        words = (tail + block).split()
        tail = words.pop() if words and not block[-1:].isspace() else b""
        if len(tail) > 1000:
            raise InputError(f"{path}: something among the values is not a number.")
        yield words
    yield [tail] if tail else []
