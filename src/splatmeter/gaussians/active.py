"""Gaussians as people think of them, with scales and opacities instead of their logarithms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatmeter.errors import UsageError
from splatmeter.gaussians import gaussians
from splatmeter.gaussians.harmonics import C0, coefficients_of, degree_of
from splatmeter.ops import (
    F32,
    LOG_SCALES,
    MEANS,
    NEAR,
    OPACITY_LOGITS,
    ROTATIONS,
    Pinhole,
    Table,
    empty_table,
)

FAINTEST, FULLEST = 1e-12, 1 - 2.0**-25
"""Opacities of 0 and 1 have no logit; they are taken for these, which no pixel can tell from them."""


# ---- into a table -----------------------------------------------------------------------------------------
def table_of(
    means: ArrayLike, scales: ArrayLike, rotations: ArrayLike, opacities: ArrayLike, harmonics: ArrayLike
) -> tuple[Table, int]:
    """A table without a 3D filter, and the degree of its harmonics; UsageError names what is wrong."""
    place = _array("means", means)
    if place.ndim != 2 or place.shape[1] != 3:
        raise UsageError(f"means has the shape {place.shape}, but must be (N, 3): one row for each Gaussian.")
    count = len(place)
    size = _shaped("scales", _array("scales", scales), (count, 3))
    turn = _shaped("rotations", _array("rotations", rotations), (count, 4))
    opaque = _array("opacities", opacities)
    opaque = _shaped("opacities", opaque.reshape(-1) if opaque.shape == (count, 1) else opaque, (count,))
    color = _harmonics(_array("harmonics", harmonics), count)
    _check_values(size, turn, opaque)
    table = empty_table(count, trainable=False)
    table.geometry[:, MEANS] = place
    table.geometry[:, LOG_SCALES] = np.log(size)
    table.geometry[:, ROTATIONS] = turn / np.linalg.norm(turn.astype(np.float64), axis=1, keepdims=True)
    table.geometry[:, OPACITY_LOGITS] = gaussians.logit(
        np.clip(opaque.astype(np.float64), FAINTEST, FULLEST)
    )
    table.harmonics[:, : 3 * color.shape[1]] = color.reshape(count, 3 * color.shape[1])
    return table, degree_of(color.shape[1])


def _array(name: str, values: ArrayLike) -> F32:
    """Any layout and any kind of number; finite in single precision, which is what engines compute in."""
    try:
        with np.errstate(over="ignore"):
            found = np.array(values, np.float32)
    except (TypeError, ValueError, RuntimeError) as problem:
        reason = str(problem).splitlines()[0].rstrip(".")
        raise UsageError(f"{name} cannot be read as an array of numbers ({reason}).") from None
    finite = np.isfinite(found)
    if not finite.all():
        row = int(np.argwhere(~finite)[0][0]) if found.ndim else 0
        raise UsageError(
            f"{name} has a value in row {row} that is no finite number in single precision "
            f"({np.count_nonzero(~finite)} of {finite.size} are none). Leave such Gaussians out."
        )
    return found


def _shaped(name: str, found: F32, shape: tuple[int, ...]) -> F32:
    if found.shape != shape:
        raise UsageError(
            f"{name} has the shape {found.shape}, but must be {shape}: means has {shape[0]} rows, one for "
            "each Gaussian."
        )
    return found


def _harmonics(found: F32, count: int) -> F32:
    if found.ndim == 3 and len(found) == count and found.shape[1] in (1, 4, 9, 16) and found.shape[2] == 3:
        return found
    hint = ""
    if found.shape == (count, 3):
        hint = " If these are colours, api.harmonics_from_colors makes harmonics of them."
    elif found.ndim == 3 and found.shape[1] == 3:
        hint = " It looks like (N, 3, K): pass harmonics.transpose(0, 2, 1)."
    raise UsageError(
        f"harmonics has the shape {found.shape}, but must be ({count}, K, 3) with K = 1, 4, 9 or 16 for the "
        f"degrees 0 to 3.{hint}"
    )


def _check_values(scales: F32, rotations: F32, opacities: F32) -> None:
    if (scales < np.finfo(np.float32).tiny).any():
        raise UsageError(
            f"scales must be above 0, but begin at {scales.min():g}. Are they logarithms? Then pass "
            "np.exp(scales)."
        )
    if ((opacities < 0) | (opacities > 1)).any():
        raise UsageError(
            f"opacities must lie between 0 and 1, but reach from {opacities.min():g} to {opacities.max():g}. "
            "Are they logits? Then pass 1 / (1 + np.exp(-opacities))."
        )
    if (np.abs(rotations).max(axis=1, initial=0) < 1e-12).any():
        raise UsageError(
            "rotations has a quaternion of zeros, which is no rotation; 1, 0, 0, 0 turns nothing."
        )


# ---- out of a table ---------------------------------------------------------------------------------------
def means_of(table: Table) -> F32:
    return table.geometry[:, MEANS].copy()  # [N, 3] world


def harmonics_of(table: Table, degree: int) -> F32:
    kept = coefficients_of(degree)
    return table.harmonics[:, : 3 * kept].reshape(-1, kept, 3).copy()  # [N, K, 3]


def rows_of(table: Table, chosen: NDArray[np.bool_] | NDArray[np.integer]) -> Table:
    """Not for tables in training."""
    nothing = empty_table(0)
    moments = (nothing.geometry_moments, nothing.harmonics_first, nothing.harmonics_second)
    return Table(table.geometry[chosen], table.harmonics[chosen], *moments)


# ---- depth ------------------------------------------------------------------------------------------------
def colored_by_depth(table: Table, camera: Pinhole) -> Table:
    """The same Gaussians in two colours: red is how far the mean lies along the camera's axis, green is 1.

    Blending is linear in colours, and nothing else in it depends on them. Drawn with harmonics of degree 0
    over black, red is therefore the sum of weight times depth, and green the sum of the weights.
    """
    depth = table.geometry[:, MEANS].astype(np.float64) @ camera.rotation[2] + camera.translation[2]  # [N]
    colored = np.zeros_like(table.harmonics)
    colored[:, 0] = (np.maximum(depth, NEAR) - 0.5) / C0  # nearer ones are not drawn
    colored[:, 1] = 0.5 / C0
    nothing = empty_table(0)
    moments = (nothing.geometry_moments, nothing.harmonics_first, nothing.harmonics_second)
    return Table(table.geometry, colored, *moments)
