"""The up-to-date values of a table whose rows may be behind, without touching the table.

Writing or judging a model must not change a single later bit of its training, so nothing may settle the
training table itself except the schedule.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from splatmeter.ops import Backend, Table

CHUNK_ROWS = 65_536
"""Rows settled at a time: moments are copied for these only."""


def settled_copy(table: Table, backend: Backend) -> Table:
    """Parameters as dense Adam would have them now, without moments: 256 bytes a Gaussian."""
    geometry, harmonics = np.empty_like(table.geometry), np.empty_like(table.harmonics)
    for number, part in enumerate(settled_parts(table, backend)):
        rows = slice(number * CHUNK_ROWS, (number + 1) * CHUNK_ROWS)
        geometry[rows], harmonics[rows] = part.geometry, part.harmonics
    no_rows = slice(0, 0)
    return Table(
        geometry=geometry,
        harmonics=harmonics,
        geometry_moments=table.geometry_moments[no_rows].copy(),
        harmonics_first=table.harmonics_first[no_rows].copy(),
        harmonics_second=table.harmonics_second[no_rows].copy(),
    )


def settled_parts(table: Table, backend: Backend) -> Iterator[Table]:
    """The same in small copies one after the other, for what only looks through all rows once."""
    for start in range(0, table.count, CHUNK_ROWS):
        yield settled_rows(table, slice(start, start + CHUNK_ROWS), backend)


def settled_rows(table: Table, rows: slice, backend: Backend) -> Table:
    part = Table(
        geometry=table.geometry[rows].copy(),
        harmonics=table.harmonics[rows].copy(),
        geometry_moments=table.geometry_moments[rows].copy(),
        harmonics_first=table.harmonics_first[rows].copy(),
        harmonics_second=table.harmonics_second[rows].copy(),
        pending=table.pending,
    )
    if table.pending is not None and table.trainable:
        backend.settle(part)
    return part
