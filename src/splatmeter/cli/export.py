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
page     one HTML file with a viewer of our own, both filters included. The default for .html.

Other viewers still need the 2D filter: kernel size and compensation stand in the file's comments.

Examples:
  splatmeter export -m output/garden -o garden.ply
  splatmeter export -m output/garden/chkpnt7000.safetensors -o early.ply
  splatmeter export -m garden.ply -o garden.npz
  splatmeter export output/garden -o garden.html
  splatmeter export output/garden -o garden.html --with-photos --title 'Our garden'"""

SHORT = {**models.SHORT, "-o": "--output", "--output_ply": "--output"}


@dataclass(frozen=True)
class ExportArguments:
    model_path: Path
    """Run folder, PLY, or checkpoint (.safetensors)."""
    output: Path
    """File to write: .ply, .npz or .html."""
    format: Literal["fused", "unfused", "plain", "npz", "page"] | None = None
    """See above; by default the one that fits the file's ending."""
    iteration: int = -1
    """Which saved model of a run folder; -1 is the latest."""
    sh_degree: int | None = None
    """Leave out harmonics above this degree; smaller files, flatter colours."""
    kernel_size: float | None = None
    """Of the 2D Mip filter, for the file's comments, where the model does not tell it."""
    title: str | None = None
    """Of a page; by default the name of the scene's folder."""
    with_photos: bool = False
    """Put photos into the page to compare with: at most 48, small, and nothing but pixels."""
    source_path: Path | None = None
    """Scene folder, for the page's views and photos; by default the one the run was trained on."""
    max_gaussians: int | None = None
    """Put at most so many into the page: those that cover most."""
    backend: BackendName = "native"
    """Only checkpoints and pages need it."""


def run(words: Sequence[str]) -> int:
    if words and not words[0].startswith("-"):
        words = ["--model-path", *words]
    chosen = arguments.parse(ExportArguments, "splatmeter export", words, DESCRIPTION, SHORT)
    form = _form(chosen)
    asked = models.ModelArguments(chosen.model_path, backend=chosen.backend, device="cpu")
    opened = models.open_model(chosen.model_path, chosen.iteration, asked.engine)
    degree = opened.model.sh_degree
    if chosen.sh_degree is not None:
        if not 0 <= chosen.sh_degree <= degree:
            raise UsageError(f"--sh-degree is {chosen.sh_degree}, but this model has degrees 0 to {degree}.")
        degree = chosen.sh_degree
    if form == "page":
        return _write_page(opened, chosen, asked)
    table = models.finite_table(opened)
    if form == "plain" and table.geometry[:, FILTER_3D].any():
        models.say("Leaving the 3D filter out changes how the model looks; --format fused keeps it.")
    settings = _settings(opened, chosen)
    write(chosen.output, table, degree, form, settings, opened.step)
    size = bytes_text(chosen.output.stat().st_size)
    print(f"{chosen.output}: {count_text(table.count)} Gaussians, SH degree {degree}, {form}, {size}")
    return 0


def _form(chosen: ExportArguments) -> str:
    suffix = chosen.output.suffix.lower()
    fitting = {".ply": ("fused", "unfused", "plain"), ".npz": ("npz",), ".html": ("page",), ".htm": ("page",)}
    if suffix not in fitting:
        raise UsageError(f"Cannot write {chosen.output.name}: splatmeter writes .ply, .npz and .html.")
    form = chosen.format or fitting[suffix][0]
    if form not in fitting[suffix]:
        raise UsageError(f"--format {form} does not fit {chosen.output.name}; change one of them.")
    wishes = (chosen.title, chosen.max_gaussians, chosen.with_photos or None)
    if form != "page" and wishes != (None, None, None):
        raise UsageError("--title, --with-photos and --max-gaussians are for pages; write to a .html file.")
    return form


def _write_page(opened: models.Opened, chosen: ExportArguments, asked: models.ModelArguments) -> int:
    from splatmeter.cli import export_page

    wishes = export_page.PageWishes(
        chosen.title, chosen.with_photos, chosen.max_gaussians, chosen.kernel_size, chosen.source_path,
        chosen.sh_degree,
    )  # fmt: skip
    made = export_page.made(opened, wishes)
    with replacing(chosen.output) as stream:
        stream.write(made.html.encode("utf-8"))
    size = bytes_text(chosen.output.stat().st_size)
    print(f"{chosen.output}: {count_text(made.count)} Gaussians, SH degree {made.degree}, page, {size}")
    told = export_page.rounding(opened, made, asked.engine)
    if told:
        print(told)
    return 0


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
