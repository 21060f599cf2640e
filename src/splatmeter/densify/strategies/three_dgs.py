"""3DGS and the paper's variant of Mip-Splatting: the mean screen-space gradient decides."""

from __future__ import annotations

from functools import partial

import numpy as np

from splatmeter.densify import adaptive
from splatmeter.densify.adaptive import Candidates
from splatmeter.densify.statistics import Statistics
from splatmeter.densify.strategy import Strategy
from splatmeter.ops import F64

MOST_URGENT = 1e6
"""More than that is no gradient of a picture, and its square might not be a number."""


def gradient_criterion(statistics: Statistics, threshold: float) -> Candidates:
    """The mean gradient reaches the threshold."""
    urgency = statistics.gradient.astype(np.float64) / threshold  # [N]
    return Candidates(statistics.gradient >= np.float32(threshold), urgency, demand(urgency))


def demand(urgency: F64) -> float:
    """A Gaussian half as wide has half the gradient, and it takes four of them to fill the same place."""
    return float(np.square(np.clip(urgency, 1.0, MOST_URGENT)).sum())


THREE_DGS = Strategy("3dgs", partial(adaptive.plan, criterion=gradient_criterion))
