"""Which format a file is, and who reads and writes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from splatmeter.errors import InputError, MissingFile, UsageError
from splatmeter.files.ply_header import read_header
from splatmeter.formats import compressed_ply, gltf, gltf_read, sog, splat, spz
from splatmeter.formats.fused import Fused, fused
from splatmeter.gaussians import marks, ply
from splatmeter.gaussians.ply import Model
from splatmeter.ops import RasterSettings, Table

READ = "PLY (plain, fused or compressed), SPZ, SOG, .splat, and glTF or GLB with Gaussians"

Read = Callable[[BinaryIO, Path, int], Model]
Write = Callable[[Path, Fused], list[str]]

WRITTEN: dict[str, tuple[tuple[str, ...], Write]] = {
    "compressed": ((".ply",), compressed_ply.write),
    "spz": ((".spz",), lambda path, model: spz.write(path, model, 4)),
    "spz3": ((".spz",), lambda path, model: spz.write(path, model, 3)),
    "splat": ((".splat",), splat.write),
    "gltf": ((".glb", ".gltf"), gltf.write),
}
"""Form -> endings that fit it, and its writer; the first form of an ending is its default."""

_TWO_WAYS = ("spz", "spz3")
"""Their mark knows only Mip-Splatting and everything else."""


# ---- reading ----------------------------------------------------------------------------------------------
def read_model(path: Path) -> Model:
    """Any model file, known by its first bytes, or by its ending where those say nothing."""
    path = Path(path)
    if not path.exists():
        raise MissingFile(f"There is no file {path}.")
    if not path.is_file():
        raise InputError(f"{path} is not a file; name a model, e.g. a .ply or .spz.")
    try:
        with path.open("rb") as stream:
            read = _reader(stream, path)
            stream.seek(0)
            return read(stream, path, path.stat().st_size)
    except OSError as problem:
        raise InputError(f"Cannot read {path}: {problem.strerror or problem}.") from problem


def _reader(stream: BinaryIO, path: Path) -> Read:
    if path.suffix.lower() == ".splat":  # it begins with a position, which may look like anything
        return splat.read
    start = stream.read(4)
    stream.seek(0)
    if start.startswith(b"ply"):
        compressed = compressed_ply.is_compressed(read_header(stream, path, ply.ADVICE))
        return compressed_ply.read if compressed else ply.read_stream
    if start == spz.MAGIC or start.startswith(spz.GZIP):
        return spz.read
    if start == gltf.GLB or path.suffix.lower() == ".gltf":
        return gltf_read.read
    if start.startswith(sog.ZIP) or path.name.lower() == "meta.json":
        return sog.read
    raise InputError(f"{path} is no model that splatmeter knows. It reads {READ}.")


# ---- writing ----------------------------------------------------------------------------------------------
def default_form(path: Path) -> str | None:
    """The form that a file's name asks for; None where it is not one of these."""
    if path.name.lower().endswith(".compressed.ply"):
        return "compressed"
    fitting = (form for form in WRITTEN if fits(path, form))
    return next(fitting, None) if path.suffix.lower() != ".ply" else None


def fits(path: Path, form: str) -> bool:
    return path.suffix.lower() in WRITTEN[form][0]


def write_model(
    path: Path, form: str, table: Table, sh_degree: int, settings: RasterSettings | None
) -> list[str]:
    """Fused, in one of the forms above; what people should know about it comes back as sentences."""
    if not table.count:
        raise UsageError(f"There are no Gaussians to write to {path.name}.")
    notes = WRITTEN[form][1](path, fused(table, sh_degree, settings))
    return notes + _about_the_mark(path, form, sh_degree, settings)


def _about_the_mark(path: Path, form: str, sh_degree: int, settings: RasterSettings | None) -> list[str]:
    if settings is None:
        return []
    option = f"-k {settings.kernel_size:g}"
    if form == "splat":
        flat = " and no harmonics, so colours do not depend on the direction of view" if sh_degree else ""
        told = f"; read it again with {option}" if settings.compensate else ""
        return [f"{path.name} has no place for the 2D filter{flat}{told}."]
    if form in _TWO_WAYS and not marks.held(settings):
        return [f"{path.name} cannot tell its kernel size; read it again with {option}."]
    return []
