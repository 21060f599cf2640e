"""`splatmeter export`: a model for viewers, for other trainers, or for NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from splatmeter.backends.registry import BackendName
from splatmeter.cli import arguments, models
from splatmeter.errors import UsageError
from splatmeter.gaussians import ply
from splatmeter.gaussians.atomic import replacing
from splatmeter.gaussians.harmonics import coefficients_of
from splatmeter.ops import FILTER_3D, LOG_SCALES, MEANS, OPACITY_LOGITS, ROTATIONS, RasterSettings, Table
from splatmeter.units import bytes_text, count_text

DESCRIPTION = """Write a model for viewers and other tools.

fused    62 properties; the 3D filter is in scales and opacities. For viewers, and the default for .ply.
unfused  63 properties with the column filter_3D, as the original trainer writes it.
plain    62 properties, the 3D filter left out: as if it had never been there.
npz      arrays for NumPy, stored forms. The default for .npz.

Viewers still need the 2D filter: kernel size and compensation stand in the file's comments.

Examples:
  splatmeter export -m output/garden -o garden.ply
  splatmeter export -m output/garden/chkpnt7000.safetensors -o early.ply
  splatmeter export -m garden.ply -o garden.npz"""

SHORT = {**models.SHORT, "-o": "--output", "--output_ply": "--output"}


@dataclass(frozen=True)
class ExportArguments:
    model_path: Path
    """Run folder, PLY, or checkpoint (.safetensors)."""
    output: Path
    """File to write: .ply or .npz."""
    format: Literal["fused", "unfused", "plain", "npz"] | None = None
    """See above; by default the one that fits the file's ending."""
    iteration: int = -1
    """Which saved model of a run folder; -1 is the latest."""
    sh_degree: int | None = None
    """Leave out harmonics above this degree; smaller files, flatter colours."""
    kernel_size: float | None = None
    """Of the 2D Mip filter, for the file's comments, where the model does not tell it."""
    backend: BackendName = "native"
    """Only checkpoints need it."""


def run(words: Sequence[str]) -> int:
    chosen = arguments.parse(ExportArguments, "splatmeter export", words, DESCRIPTION, SHORT)
    form = _form(chosen)
    asked = models.ModelArguments(chosen.model_path, backend=chosen.backend, device="cpu")
    opened = models.open_model(chosen.model_path, chosen.iteration, asked.engine)
    table = models.finite_table(opened)
    degree = opened.model.sh_degree
    if chosen.sh_degree is not None:
        if not 0 <= chosen.sh_degree <= degree:
            raise UsageError(f"--sh-degree is {chosen.sh_degree}, but this model has degrees 0 to {degree}.")
        degree = chosen.sh_degree
    if form == "plain" and table.geometry[:, FILTER_3D].any():
        models.say("Leaving the 3D filter out changes how the model looks; --format fused keeps it.")
    settings = _settings(opened, chosen)
    write(chosen.output, table, degree, form, settings, opened.step)
    size = bytes_text(chosen.output.stat().st_size)
    print(f"{chosen.output}: {count_text(table.count)} Gaussians, SH degree {degree}, {form}, {size}")
    return 0


def _form(chosen: ExportArguments) -> str:
    suffix = chosen.output.suffix.lower()
    if suffix not in (".ply", ".npz"):
        raise UsageError(f"Cannot write {chosen.output.name}: splatmeter writes .ply and .npz.")
    form = chosen.format or ("npz" if suffix == ".npz" else "fused")
    if (form == "npz") != (suffix == ".npz"):
        raise UsageError(f"--format {form} does not fit {chosen.output.name}; change one of them.")
    return form


def _settings(opened: models.Opened, chosen: ExportArguments) -> RasterSettings | None:
    if chosen.kernel_size is not None:
        return RasterSettings(opened.model.sh_degree, chosen.kernel_size)
    if opened.config is not None:
        return opened.config.raster_settings(opened.model.sh_degree)
    return opened.model.settings()


def write(
    path: Path, table: Table, degree: int, form: str, settings: RasterSettings | None, step: int
) -> None:
    if form == "npz":
        write_arrays(path, table, degree, settings)
        return
    writers = {"fused": ply.write_fused, "unfused": ply.write_model, "plain": ply.write_plain}
    writers[form](path, table, degree, [f"step {step}"] if step else [], settings)


def write_arrays(path: Path, table: Table, degree: int, settings: RasterSettings | None) -> None:
    """Stored forms: log scales, opacity logits, quaternions (w, x, y, z) as they are."""
    count = coefficients_of(degree)
    with replacing(path) as stream:
        np.savez(
            stream,
            means=table.geometry[:, MEANS],
            log_scales=table.geometry[:, LOG_SCALES],
            rotations=table.geometry[:, ROTATIONS],
            opacity_logits=table.geometry[:, OPACITY_LOGITS],
            filter_3d=table.geometry[:, FILTER_3D],
            harmonics=table.harmonics[:, : 3 * count].reshape(-1, count, 3),
            sh_degree=degree,
            kernel_size=settings.kernel_size if settings else np.nan,
            compensate=settings.compensate if settings else True,
        )
