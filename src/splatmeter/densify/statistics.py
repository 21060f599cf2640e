"""What the steps since the last densification say about each Gaussian, read from the table's columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from splatmeter.ops import ABSOLUTE_SUM, F32, GRADIENT_SUM, VISITS, Table


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """Means over the visits; rows nobody visited count as zero."""

    gradient: F32  # [N] |dL/d mean2D| in units of half the image
    absolute: F32  # [N] sums of per-pixel absolute gradients, the gof statistic


def read(table: Table) -> Statistics:
    visits = table.geometry[:, VISITS]  # [N]
    share = np.divide(1.0, visits, out=np.zeros_like(visits), where=visits > 0)  # [N]
    return Statistics(
        gradient=_mean(table.geometry[:, GRADIENT_SUM], share),
        absolute=_mean(table.geometry[:, ABSOLUTE_SUM], share),
    )


def _mean(total: F32, share: F32) -> F32:
    return np.nan_to_num(total * share, nan=0.0, posinf=0.0, neginf=0.0)  # [N]
