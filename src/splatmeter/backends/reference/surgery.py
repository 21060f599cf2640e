"""Keeping, copying and reordering rows of parameters, moments and statistics together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...ops import ABSOLUTE_SUM, F32, GRADIENT_SUM, VISITS, Table


def rearrange(table: Table, source: NDArray[np.int64], fresh: NDArray[np.bool_]) -> Table:
    """Settle before: a fresh row loses its moments, and with them what they still owed to its parameters."""
    geometry = take(table, "geometry", source)
    geometry[:, [GRADIENT_SUM, ABSOLUTE_SUM, VISITS]] = 0
    harmonics = take(table, "harmonics", source)
    rows = source if len(table.geometry_moments) else source[:0]  # models without an optimizer have none
    moments = [
        take(table, name, rows) for name in ("geometry_moments", "harmonics_first", "harmonics_second")
    ]
    for array in moments:
        array[fresh[: len(array)]] = 0
    return Table(geometry, harmonics, *moments)


def take(table: Table, name: str, rows: NDArray[np.int64]) -> F32:
    """Copies the rows and lets the old array go, so that only one array exists twice at a time."""
    array: F32 = getattr(table, name)
    setattr(table, name, array[:0].copy())
    return array[rows]
