"""`splatmeter export`: a model for viewers, for other trainers, or for NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from splatmeter.backends.registry import BackendName
from splatmeter.cli import arguments, models
from splatmeter.errors import UsageError
from splatmeter.gaussians import gaussians
from splatmeter.gaussians.crop import inside
from splatmeter.models.opening import Opened, finite_table, open_model
from splatmeter.models.writing import Form, form_of, write, write_page
from splatmeter.ops import FILTER_3D, MEANS, RasterSettings, Table
from splatmeter.units import bytes_text, count_text

DESCRIPTION = """Write a model for viewers and other tools.

Formats:
  fused       PLY, 62 properties; the 3D filter is in scales and opacities. For viewers; the default for .ply.
  unfused     PLY, 63 properties with the column filter_3D, as the original trainer writes it.
  plain       PLY, 62 properties, without the 3D filter.
  compressed  PlayCanvas' compressed PLY. The default for .compressed.ply.
  spz, spz3   SPZ of version 4 (the default for .spz; extra 'spz'), and 3 for older readers.
  splat       32 bytes per Gaussian, without harmonics. The default for .splat.
  gltf        glTF with KHR_gaussian_splatting. The default for .glb and .gltf.
  npz         arrays for NumPy, as the trainer stores them. The default for .npz.
  page        one HTML file with a viewer of our own, both filters included. The default for .html.

All but unfused, plain and npz hold the 3D filter in scales and opacities. Viewers still need the 2D
filter: files say so where their format allows it (docs/formats.md).

Examples:
  splatmeter export -m output/garden -o garden.ply
  splatmeter export -m output/garden/chkpnt7000.safetensors -o early.ply
  splatmeter export -m garden.ply -o garden.npz
  splatmeter export output/garden -o table.spz --crop -1,-1,-1,1,1,1
  splatmeter export output/garden -o garden.html
  splatmeter export output/garden -o garden.html --with-photos --title 'Our garden'"""

SHORT = {**models.SHORT, "-o": "--output", "--output_ply": "--output"}


@dataclass(frozen=True)
class ExportArguments:
    model_path: Path
    """Run folder, model file (PLY, SPZ, SOG, .splat, glTF), or checkpoint (.safetensors)."""
    output: Path
    """File to write: .ply, .compressed.ply, .spz, .splat, .glb, .gltf, .npz or .html."""
    format: Form | None = None
    """See above; by default the one that fits the file's ending."""
    iteration: int = -1
    """Which saved model of a run folder; -1 is the latest."""
    sh_degree: int | None = None
    """Leave out harmonics above this degree; smaller files, flatter colours."""
    crop: str | None = None
    """Keep what lies in a box: xmin,ymin,zmin,xmax,ymax,zmax, in world units (see `splatmeter info`)."""
    kernel_size: float | None = None
    """Variance of the 2D Mip filter, to note in the file, where the model does not say it."""
    title: str | None = None
    """Title of a page; by default the name of the scene's folder."""
    with_photos: bool = False
    """Put photos into the page to compare with: at most 48, small, and nothing but pixels."""
    source_path: Path | None = None
    """Scene folder, for the page's views and photos; by default the one the run was trained on."""
    max_gaussians: int | None = None
    """Put at most this many Gaussians into the page: those that cover most of the picture."""
    backend: BackendName = "native"
    """Only checkpoints and pages need it."""


def run(words: Sequence[str]) -> int:
    if words and not words[0].startswith("-"):
        words = ["--model-path", *words]
    words = arguments.joined(words, "--crop")
    chosen = arguments.parse(ExportArguments, "splatmeter export", words, DESCRIPTION, SHORT)
    form, box = _form(chosen), _box(chosen.crop)
    asked = models.ModelArguments(chosen.model_path, backend=chosen.backend, device="cpu")
    opened = _cropped(open_model(chosen.model_path, chosen.iteration, asked.engine), box)
    degree = opened.model.sh_degree
    if chosen.sh_degree is not None:
        if not 0 <= chosen.sh_degree <= degree:
            raise UsageError(f"--sh-degree is {chosen.sh_degree}, but this model has degrees 0 to {degree}.")
        degree = chosen.sh_degree
    if form == "page":
        return _write_page(opened, chosen, asked)
    table = finite_table(opened, models.say)
    if form == "plain" and table.geometry[:, FILTER_3D].any():
        models.say("Leaving the 3D filter out changes how the model looks; --format fused keeps it.")
    settings = _settings(opened, chosen)
    for note in write(chosen.output, table, degree, form, settings, opened.step):
        models.say(note)
    size = bytes_text(chosen.output.stat().st_size)
    print(f"{chosen.output}: {count_text(table.count)} Gaussians, SH degree {degree}, {form}, {size}")
    return 0


def _form(chosen: ExportArguments) -> str:
    form = form_of(chosen.output, chosen.format)
    wishes = (chosen.title, chosen.max_gaussians, chosen.with_photos or None)
    if form != "page" and wishes != (None, None, None):
        raise UsageError("--title, --with-photos and --max-gaussians are for pages; write to a .html file.")
    return form


def _box(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        box = tuple(float(word) for word in text.replace(",", " ").split())
    except ValueError:
        box = ()
    if len(box) != 6 or not all(low <= high for low, high in zip(box[:3], box[3:], strict=True)):
        raise UsageError(f"--crop is {text!r}, but must be a box: xmin,ymin,zmin,xmax,ymax,zmax.")
    return box


def _cropped(opened: Opened, box: tuple[float, ...] | None) -> Opened:
    if box is None:
        return opened
    before = opened.model.table
    table = inside(before, box)
    if not table.count:
        low, high = (tuple(round(float(x), 3) for x in end) for end in _ends(before))
        raise UsageError(f"--crop leaves nothing of {opened.path}, which reaches from {low} to {high}.")
    models.say(f"{count_text(table.count)} of {count_text(before.count)} Gaussians lie in the box.")
    broken = int(table.count - np.count_nonzero(gaussians.finite_rows(table)))
    return replace(opened, model=replace(opened.model, table=table, nonfinite=broken))


def _ends(table: Table) -> tuple[np.ndarray, np.ndarray]:
    means = gaussians.only_finite(table).geometry[:, MEANS]
    return (means.min(axis=0), means.max(axis=0)) if len(means) else (np.zeros(3), np.zeros(3))


def _write_page(opened: Opened, chosen: ExportArguments, asked: models.ModelArguments) -> int:
    from splatmeter.cli import export_page

    wishes = export_page.PageWishes(
        chosen.title, chosen.with_photos, chosen.max_gaussians, chosen.kernel_size, chosen.source_path,
        chosen.sh_degree,
    )  # fmt: skip
    made = export_page.made(opened, wishes)
    write_page(chosen.output, made.html)
    size = bytes_text(chosen.output.stat().st_size)
    print(f"{chosen.output}: {count_text(made.count)} Gaussians, SH degree {made.degree}, page, {size}")
    told = export_page.rounding(opened, made, asked.engine)
    if told:
        print(told)
    return 0


def _settings(opened: Opened, chosen: ExportArguments) -> RasterSettings | None:
    if chosen.kernel_size is not None:
        return RasterSettings(opened.model.sh_degree, chosen.kernel_size)
    if opened.config is not None:
        return opened.config.raster_settings(opened.model.sh_degree)
    return opened.model.settings()
