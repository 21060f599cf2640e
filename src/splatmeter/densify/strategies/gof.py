"""GOF, the original's present criterion: absolute gradients name as many candidates again."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from splatmeter.densify import adaptive
from splatmeter.densify.adaptive import Candidates
from splatmeter.densify.statistics import Statistics
from splatmeter.densify.strategies.three_dgs import gradient_criterion
from splatmeter.densify.strategy import Strategy
from splatmeter.ops import F32


def absolute_criterion(statistics: Statistics, threshold: float) -> Candidates:
    """As many again by the absolute gradient, which opposite pixel gradients cannot cancel.

    The second threshold is the quantile that the first one's share of candidates names. With a share of 0
    it is the maximum, and that one Gaussian is still densified, as in the original.
    """
    plain = gradient_criterion(statistics, threshold)
    if not len(plain.chosen):
        return plain
    share = np.count_nonzero(plain.chosen) / len(plain.chosen)
    level = quantile(statistics.absolute, 1.0 - share)
    chosen = plain.chosen | (statistics.absolute.astype(np.float64) >= level)  # [N]
    if level > 0:
        return replace(plain, chosen=chosen, urgency=np.maximum(plain.urgency, statistics.absolute / level))
    return replace(plain, chosen=chosen)


def quantile(values: F32, fraction: float) -> float:
    """Linear interpolation between order statistics, by selection: no limit on the number of values."""
    position = fraction * (len(values) - 1)
    low = min(max(math.floor(position), 0), len(values) - 1)
    high = min(low + 1, len(values) - 1)
    parts = np.partition(values, (low, high))
    below, above = float(parts[low]), float(parts[high])
    return below + (above - below) * (position - low)


GOF = Strategy("gof", partial(adaptive.plan, criterion=absolute_criterion), absolute_gradients=True)
