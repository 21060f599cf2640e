"""Which photos to look at beside each: those that share much with it, neither too near nor too far away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from splatmeter.ops import F64, Pinhole

BESIDE = 4
LEAST_SHARED = 20
"""Points that two photos must both see."""
LOOKED_AT = 20
"""Partners by shared points whose angle is computed."""
NARROW, WIDE = 5.0, 20.0
"""Degrees between lines of sight: below, distances are vague; above, things look different."""


def beside_each(
    cameras: Sequence[Pinhole], positions: F64, seen: Sequence[NDArray[np.int64]]
) -> list[list[int]]:
    """For each camera the best others, best first; `seen` are rows of positions [P, 3] for each camera."""
    centers = np.stack([camera.position for camera in cameras])  # [C, 3]
    found: list[list[int]] = []
    for place, own in enumerate(seen):
        mark = np.zeros(len(positions), np.bool_)
        mark[own] = True
        shared = np.array([0 if i == place else int(mark[other].sum()) for i, other in enumerate(seen)])
        likely = np.argsort(-shared, kind="stable")[:LOOKED_AT]
        likely = likely[shared[likely] >= LEAST_SHARED]
        worth = []
        for other in likely.tolist():
            points = positions[seen[other][mark[seen[other]]]]
            worth.append(shared[other] * _weight(_degrees(points, centers[place], centers[other])))
        order = np.argsort(-np.array(worth), kind="stable")[:BESIDE]
        found.append([int(likely[i]) for i in order if worth[i] > 0])
    return found


def _degrees(points: F64, one: F64, other: F64) -> float:
    """The median angle under which the two places see the points."""
    a, b = points - one, points - other
    cosine = (a * b).sum(1) / np.maximum(np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1), 1e-12)
    return float(np.degrees(np.arccos(np.clip(np.median(cosine), -1, 1))))


def _weight(degrees: float) -> float:
    return min(1.0, (degrees / NARROW) ** 2, (WIDE / max(degrees, 1e-6)) ** 2)
