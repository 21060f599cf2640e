"""3DGS and the paper's variant of Mip-Splatting: the mean screen-space gradient decides."""

from __future__ import annotations

from functools import partial

import numpy as np

from splatmeter.densify import adaptive
from splatmeter.densify.adaptive import Candidates
from splatmeter.densify.statistics import Statistics
from splatmeter.densify.strategy import Strategy


def gradient_criterion(statistics: Statistics, threshold: float) -> Candidates:
    """The mean gradient reaches the threshold."""
    urgency = statistics.gradient.astype(np.float64) / threshold  # [N]
    return Candidates(statistics.gradient >= np.float32(threshold), urgency)


THREE_DGS = Strategy("3dgs", partial(adaptive.plan, criterion=gradient_criterion))
