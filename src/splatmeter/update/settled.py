"""The up-to-date values of a table whose rows may be behind, without touching the table.

Writing or judging a model must not change a single later bit of its training, so nothing may settle the
training table itself except the schedule.
"""

from __future__ import annotations

import numpy as np

from splatmeter.ops import Backend, Table

CHUNK_ROWS = 65_536
"""Rows settled at a time: moments are copied for these only."""


def settled_copy(table: Table, backend: Backend) -> Table:
    """Parameters as dense Adam would have them now, without moments: 256 bytes a Gaussian."""
    copy = Table(
        geometry=table.geometry.copy(),
        harmonics=table.harmonics.copy(),
        geometry_moments=np.zeros((0, table.geometry_moments.shape[1]), np.float32),
        harmonics_first=np.zeros((0, table.harmonics_first.shape[1]), np.float32),
        harmonics_second=np.zeros((0, table.harmonics_second.shape[1]), np.float32),
    )
    if table.pending is None or not table.trainable:
        return copy
    for start in range(0, table.count, CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        part = Table(
            geometry=copy.geometry[rows],
            harmonics=copy.harmonics[rows],
            geometry_moments=table.geometry_moments[rows].copy(),
            harmonics_first=table.harmonics_first[rows].copy(),
            harmonics_second=table.harmonics_second[rows].copy(),
            pending=table.pending,
        )
        backend.settle(part)
        copy.geometry[rows] = part.geometry
        copy.harmonics[rows] = part.harmonics
    return copy
