"""A model to a file, in every form that there is; the file's name tells which, unless somebody says so."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from splatmeter.errors import UsageError
from splatmeter.files.atomic import replacing, write_text
from splatmeter.formats import registry
from splatmeter.gaussians import ply
from splatmeter.gaussians.harmonics import coefficients_of
from splatmeter.ops import FILTER_3D, LOG_SCALES, MEANS, OPACITY_LOGITS, ROTATIONS, RasterSettings, Table

Form = Literal["fused", "unfused", "plain", "compressed", "spz", "spz3", "splat", "gltf", "npz", "page"]

_OWN = {".ply": ("fused", "unfused", "plain"), ".npz": ("npz",), ".html": ("page",), ".htm": ("page",)}
"""Besides those of formats/registry.py; the first one of an ending is its default."""


def form_of(path: Path, wished: str | None = None) -> str:
    """The form that is wished for where it fits the file's name, else the one that the name asks for."""
    fitting = _OWN.get(path.suffix.lower(), ())
    form = wished or registry.default_form(path) or next(iter(fitting), None)
    if form is None:
        known = ".ply, .compressed.ply, .spz, .splat, .glb, .gltf, .npz and .html"
        also = "; SOG it only reads" if path.suffix.lower() == ".sog" else ""
        raise UsageError(f"Cannot write {path.name}: splatmeter writes {known}{also}.")
    if form not in fitting and not (form in registry.WRITTEN and registry.fits(path, form)):
        raise UsageError(f"--format {form} does not fit {path.name}; change one of them.")
    return form


def write(
    path: Path, table: Table, degree: int, form: str, settings: RasterSettings | None, step: int
) -> list[str]:
    """Every form but a page (that is page/from_model.py); returns sentences that people should read."""
    if form == "npz":
        _write_arrays(path, table, degree, settings)
        return []
    if form in registry.WRITTEN:
        return registry.write_model(path, form, table, degree, settings)
    writers = {"fused": ply.write_fused, "unfused": ply.write_model, "plain": ply.write_plain}
    writers[form](path, table, degree, [f"step {step}"] if step else [], settings)
    return []


def write_page(path: Path, html: str) -> None:
    write_text(path, html)


def _write_arrays(path: Path, table: Table, degree: int, settings: RasterSettings | None) -> None:
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
