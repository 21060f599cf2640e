"""Which Gaussians go, and the opacity reset that makes them prove themselves."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from splatmeter.gaussians import gaussians
from splatmeter.ops import (
    F32,
    LOG_SCALES,
    OPACITY_LOGITS,
    OPTIMIZED,
    SECOND_GEOMETRY,
    Table,
)

LOWEST_OPACITY = 0.005
"""Below this a Gaussian is hardly drawn (1/255 is 0.0039)."""

LARGEST_SHARE = 0.1
"""The original's world-size prune: largest scale above this share of the extent."""

RESET_OPACITY = 0.01

BLOCK_ROWS = 65_536
"""Opacities are reset for so many rows at a time: filters in double precision take 100 bytes a row."""


def faint(table: Table, threshold: float) -> NDArray[np.bool_]:
    """By the raw opacity, without the 3D filter, as in the original; what is not a number goes as well."""
    logits = table.geometry[:, OPACITY_LOGITS]  # [N]
    visible = logits >= np.float32(math.log(threshold / (1 - threshold)))  # [N] false for NaN
    return ~visible | ~_all_numbers(table.geometry[:, OPTIMIZED]) | ~_all_numbers(table.harmonics)


def _all_numbers(rows: F32) -> NDArray[np.bool_]:
    """A sum is a number only if all of its terms are [N]. einsum takes less than half of sum's time."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.isfinite(np.einsum("ij->i", rows))


def largest_scales(table: Table) -> F32:
    """Raw, without the 3D filter [N]."""
    return gaussians.largest(table.geometry[:, LOG_SCALES])


def reset_opacities(table: Table) -> None:
    """Limit the *filtered* opacity to 0.01, and forget the opacity's moments.

    Where it is below already nothing changes. Elsewhere o' = c o with the filter's coefficient c, so the
    stored opacity that gives 0.01 is o * 0.01 / o'. The table must be settled.
    """
    for start in range(0, table.count, BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        moments = (table.geometry_moments[:0], table.harmonics_first[:0], table.harmonics_second[:0])
        _lower(Table(table.geometry[part], table.harmonics[part], *moments))
    table.geometry_moments[:, OPACITY_LOGITS] = 0
    table.geometry_moments[:, SECOND_GEOMETRY + OPACITY_LOGITS] = 0


def _lower(rows: Table) -> None:
    """In place: the rows are a view of the table."""
    filtered = gaussians.filtered_opacities(rows).astype(np.float64)  # [R]
    high = filtered > RESET_OPACITY  # [R]
    opacities = gaussians.opacities(rows).astype(np.float64)[high] * (RESET_OPACITY / filtered[high])
    rows.geometry[high, OPACITY_LOGITS] = gaussians.logit(opacities)
