"""What the stored columns mean: active scales and opacities, with and without the 3D smoothing filter.

All of it is computed in float64 and through logarithms where products of scales occur: the plain product
of squared scales underflows in float32 as soon as one axis has collapsed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from splatmeter.gaussians.harmonics import coefficients_of, degree_of
from splatmeter.ops import (
    F32,
    F64,
    FILTER_3D,
    LOG_SCALES,
    OPACITY_LOGITS,
    ROTATIONS,
    Table,
)

__all__ = [
    "coefficients_of",
    "degree_of",
    "filtered_log_scales",
    "filtered_opacities",
    "filtered_scales",
    "finite_rows",
    "fused",
    "harmonics_degree",
    "largest",
    "logit",
    "mean_opacity",
    "only_finite",
    "opacities",
    "opacity_coefficients",
    "rotations",
    "scales",
    "sigmoid",
]


def sigmoid(logits: NDArray[np.floating]) -> F64:
    """Never overflows: the exponent is never positive."""
    decay = np.exp(-np.abs(logits, dtype=np.float64))
    return np.where(np.asarray(logits) >= 0, 1.0, decay) / (1.0 + decay)


def logit(opacity: NDArray[np.floating]) -> F64:
    """Inverse of sigmoid; 0 and 1 become -inf and inf."""
    value = np.asarray(opacity, np.float64)
    with np.errstate(divide="ignore"):
        return np.log(value) - np.log1p(-value)


def scales(table: Table) -> F32:
    with np.errstate(over="ignore"):
        return np.exp(table.geometry[:, LOG_SCALES])  # [N, 3] world


def largest(log_scales: F32) -> F32:
    """The largest scale of each row [N]. Column by column: a maximum along rows of three takes eight times as
    long."""
    first, second, third = log_scales.T  # each [N]
    with np.errstate(over="ignore"):
        return np.exp(np.maximum(np.maximum(first, second), third))


def opacities(table: Table) -> F32:
    return sigmoid(table.geometry[:, OPACITY_LOGITS]).astype(np.float32)  # [N]


def rotations(table: Table) -> F32:
    """Unit quaternions (w, x, y, z)."""
    stored = table.geometry[:, ROTATIONS]
    length = np.linalg.norm(stored, axis=1, keepdims=True)
    return stored / np.maximum(length, np.float32(1e-12))  # [N, 4]


def mean_opacity(table: Table) -> float:
    """Mean of the raw opacities, before the filter; 0 for an empty table."""
    return float(np.mean(sigmoid(table.geometry[:, OPACITY_LOGITS]))) if table.count else 0.0


def filtered_log_scales(table: Table) -> F64:
    """log sqrt(s^2 + f^2), safe for scales whose square underflows."""
    stored = table.geometry[:, LOG_SCALES].astype(np.float64)  # [N, 3]
    with np.errstate(divide="ignore", invalid="ignore"):
        log_filter = np.log(table.geometry[:, FILTER_3D].astype(np.float64))  # [N], -inf without a filter
        return 0.5 * np.logaddexp(2 * stored, 2 * log_filter[:, None])  # [N, 3]


def filtered_scales(table: Table) -> F32:
    with np.errstate(over="ignore"):
        return np.exp(filtered_log_scales(table)).astype(np.float32)  # [N, 3]


def _log_coefficients(table: Table, log_scales: F64) -> F64:
    """log of the product over the axes of s / s', s' being the filtered scales: at most 0."""
    with np.errstate(invalid="ignore"):
        return np.minimum((table.geometry[:, LOG_SCALES] - log_scales).sum(axis=1), 0)  # [N]


def opacity_coefficients(table: Table) -> F32:
    """Product over the axes of s / s': what the 3D filter multiplies the opacity with."""
    return np.exp(_log_coefficients(table, filtered_log_scales(table))).astype(np.float32)  # [N]


def filtered_opacities(table: Table) -> F32:
    opacity = sigmoid(table.geometry[:, OPACITY_LOGITS])  # [N]
    return (opacity * np.exp(_log_coefficients(table, filtered_log_scales(table)))).astype(np.float32)  # [N]


def fused(table: Table) -> tuple[F64, F64]:
    """Log scales [N, 3] and opacity logits [N] with the 3D filter inside.

    logit(o c) is found without forming o c, so that faint and nearly opaque Gaussians keep their digits:
    with l = logit(o) and c in (0, 1],  logit(o c) = log c - log((1 - c) + exp(-l)).
    """
    log_scales = filtered_log_scales(table)
    coefficient = _log_coefficients(table, log_scales)  # [N] log c
    logits = table.geometry[:, OPACITY_LOGITS].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.log(-np.expm1(coefficient))  # [N] log(1 - c), -inf without a filter
        return log_scales, coefficient - np.logaddexp(lost, -logits)


def harmonics_degree(table: Table) -> int:
    """The lowest degree that holds every non-zero coefficient."""
    used = np.flatnonzero(np.any(table.harmonics != 0, axis=0))
    highest = int(used[-1]) // 3 if len(used) else 0
    return next(degree for degree in range(4) if highest < coefficients_of(degree))


def finite_rows(table: Table) -> NDArray[np.bool_]:
    """Rows all of whose drawn columns are numbers."""
    geometry = np.isfinite(table.geometry[:, : FILTER_3D + 1]).all(axis=1)  # [N]
    return np.logical_and(geometry, np.isfinite(table.harmonics).all(axis=1))  # [N]


def only_finite(table: Table) -> Table:
    """A model without its broken rows; the same table if there are none. Not for tables in training."""
    rows = finite_rows(table)
    if rows.all():
        return table
    return Table(
        table.geometry[rows],
        table.harmonics[rows],
        table.geometry_moments[:0],
        table.harmonics_first[:0],
        table.harmonics_second[:0],
    )
