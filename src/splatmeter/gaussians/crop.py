"""The part of a model inside a box."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from splatmeter.ops import MEANS, Table


def inside(table: Table, box: Sequence[float]) -> Table:
    """Gaussians whose means lie in the box (xmin, ymin, zmin, xmax, ymax, zmax), world. Not for training."""
    low, high = np.array(box, np.float64).reshape(2, 3)
    means = table.geometry[:, MEANS]
    rows = ((means >= low) & (means <= high)).all(axis=1)  # [N]
    return dataclasses.replace(table, geometry=table.geometry[rows], harmonics=table.harmonics[rows])
