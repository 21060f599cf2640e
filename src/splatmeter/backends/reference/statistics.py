"""What densification wants to know, summed up row by row."""

from __future__ import annotations

import numpy as np

from ...ops import ABSOLUTE_SUM, GRADIENT_SUM, VISITS, Table
from ..kernels import Gradients


def gather(table: Table, gradients: Gradients) -> None:
    """Adds this view's visit; rows it does not see stay as they are."""
    seen = gradients.visible  # [N]
    table.geometry[seen, GRADIENT_SUM] += np.linalg.norm(gradients.mean2d[seen], axis=1)
    table.geometry[seen, ABSOLUTE_SUM] += gradients.mean2d_absolute[seen]
    table.geometry[seen, VISITS] += 1
