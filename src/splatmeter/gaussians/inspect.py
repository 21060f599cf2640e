"""A model in numbers: what a person wants to know before rendering, exporting or trusting it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from splatmeter.gaussians import gaussians
from splatmeter.gaussians.ply import Model
from splatmeter.ops import FILTER_3D, MEANS

PERCENTILES = (0, 1, 10, 50, 90, 99, 100)

INVISIBLE_BELOW = 1 / 255
"""A Gaussian whose filtered opacity is lower never reaches a pixel."""

HUGE_SHARE = 0.1
"""Share of the model's extent above which the original prunes a Gaussian."""

Spread = Mapping[str, float]
"""Percentile -> value."""


@dataclass(frozen=True, slots=True)
class Description:
    gaussians: int
    sh_degree: int
    filtered: bool
    """The file carries a 3D filter (column filter_3D)."""
    nonfinite: int
    invisible: int
    huge: int
    center: tuple[float, ...]
    """Median of the means, world."""
    extent: float
    """Distance from the centre within which 95 % of the means lie."""
    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    opacities: Spread
    """Filtered."""
    scales: Spread
    """Filtered, longest axis, world units."""
    anisotropy: Spread
    """Longest axis over the middle one."""
    filter_3d: Spread
    memory_bytes: int
    comments: tuple[str, ...]
    form: str
    kernel_size: float | None
    """Variance of the 2D filter that the file asks for; None where it does not say."""
    compensate: bool | None


def describe(model: Model) -> Description:
    """Distributions are over the finite rows only."""
    table, settings = model.table, model.settings()
    finite = gaussians.finite_rows(table)  # [N]
    means = table.geometry[finite, MEANS].astype(np.float64)  # [M, 3]
    sorted_scales = np.sort(gaussians.filtered_scales(table)[finite], axis=1)  # [M, 3]
    opacities = gaussians.filtered_opacities(table)[finite]  # [M]
    center = np.median(means, axis=0) if len(means) else np.zeros(3)
    distances = np.linalg.norm(means - center, axis=1)  # [M]
    extent = float(np.percentile(distances, 95)) if len(means) else 0.0
    longest, middle = sorted_scales[:, 2], np.maximum(sorted_scales[:, 1], np.float32(1e-30))
    with np.errstate(over="ignore"):
        anisotropy = longest / middle
    return Description(
        gaussians=table.count,
        sh_degree=model.sh_degree,
        filtered=model.filtered,
        nonfinite=int(table.count - np.count_nonzero(finite)),
        invisible=int(np.count_nonzero(opacities < INVISIBLE_BELOW)),
        huge=int(np.count_nonzero(longest > HUGE_SHARE * extent)) if extent else 0,
        center=tuple(map(float, center)),
        extent=extent,
        lowest=tuple(map(float, means.min(axis=0))) if len(means) else (0.0,) * 3,
        highest=tuple(map(float, means.max(axis=0))) if len(means) else (0.0,) * 3,
        opacities=_spread(opacities),
        scales=_spread(longest),
        anisotropy=_spread(anisotropy),
        filter_3d=_spread(table.geometry[finite, FILTER_3D]),
        memory_bytes=table.geometry.nbytes + table.harmonics.nbytes,
        comments=model.comments,
        form=model.form,
        kernel_size=settings.kernel_size if settings else None,
        compensate=settings.compensate if settings else None,
    )


def _spread(values: np.ndarray) -> Spread:
    if not len(values):
        return {}
    found = np.percentile(values.astype(np.float64), PERCENTILES)
    return {str(percentile): float(value) for percentile, value in zip(PERCENTILES, found, strict=True)}
