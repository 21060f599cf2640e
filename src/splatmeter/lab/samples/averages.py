"""Mean and standard deviation of a small sample."""

from __future__ import annotations

import math
from collections.abc import Sequence


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def deviation_of(values: Sequence[float]) -> float:
    """Sample standard deviation; nan below two values."""
    if len(values) < 2:
        return math.nan
    center = mean(values)
    return math.sqrt(math.fsum((value - center) ** 2 for value in values) / (len(values) - 1))
