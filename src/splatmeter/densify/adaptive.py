"""Which Gaussians ask for more detail: the criteria of 3DGS and of GOF (spec 3.4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splatmeter.densify.statistics import Statistics
from splatmeter.ops import F32, F64


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    chosen: NDArray[np.bool_]  # [N]
    urgency: F64  # [N] how far above the criterion; ranks candidates where a budget binds


Criterion = Callable[[Statistics, float], Candidates]
"""(statistics, gradient threshold) -> candidates."""


def gradient_criterion(statistics: Statistics, threshold: float) -> Candidates:
    """3DGS and the paper's variant of Mip-Splatting: the mean gradient reaches the threshold."""
    urgency = statistics.gradient.astype(np.float64) / threshold  # [N]
    return Candidates(statistics.gradient >= np.float32(threshold), urgency)


def absolute_criterion(statistics: Statistics, threshold: float) -> Candidates:
    """GOF: as many again by the absolute gradient, which opposite pixel gradients cannot cancel.

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
        return Candidates(chosen, np.maximum(plain.urgency, statistics.absolute / level))
    return Candidates(chosen, plain.urgency)


CRITERIA: dict[str, Criterion] = {"3dgs": gradient_criterion, "gof": absolute_criterion}


def quantile(values: F32, fraction: float) -> float:
    """Linear interpolation between order statistics, by selection: no limit on the number of values."""
    position = fraction * (len(values) - 1)
    low = min(max(math.floor(position), 0), len(values) - 1)
    high = min(low + 1, len(values) - 1)
    parts = np.partition(values, (low, high))
    below, above = float(parts[low]), float(parts[high])
    return below + (above - below) * (position - low)


def within_budget(candidates: Candidates, eligible: NDArray[np.bool_], room: int) -> NDArray[np.bool_]:
    """At most `room` of the eligible candidates: the most urgent, ties by row."""
    wanted = candidates.chosen & eligible  # [N]
    rows = np.flatnonzero(wanted)
    if len(rows) <= room:
        return wanted
    order = np.argsort(-candidates.urgency[rows], kind="stable")[: max(0, room)]
    chosen = np.zeros_like(wanted)
    chosen[rows[order]] = True
    return chosen
