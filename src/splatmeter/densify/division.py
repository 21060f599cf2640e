"""How one Gaussian becomes two: where the children lie, and what they look like."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from splatmeter.densify.draws import FIRST_CHILD, keys_of, normals
from splatmeter.gaussians.gaussians import largest, logit, sigmoid
from splatmeter.ops import F32, LOG_SCALES, OPACITY_LOGITS, ROTATIONS

CHILDREN = 2
"""A split Gaussian is replaced by this many."""

SHRINK = 0.8 * CHILDREN
"""Scattered children are this much smaller than their parent in every axis."""

CUT_DISTANCE, CUT_LENGTH, CUT_WIDTH, CUT_OPACITY = 0.8, 0.6, 0.8, 0.83
"""Halves of a cut Gaussian: their distance from its centre in standard deviations of the longest axis; what
is left of that axis, of the two others and of the opacity. With a width of 1 the two look like the whole;
narrower ones leave room for the detail that asked for them, and gave more on every scene tried."""


class Division(Protocol):
    """Parents and children are rows of the table's geometry, in the stored form; the 3D filter has no part in
    this."""

    def offsets(self, parents: F32, rows: NDArray[np.int64], seed: int, step: int) -> F32:
        """From a parent's centre to its children's: all first children, then all second ones [2K, 3]."""
        ...

    def shaped(self, children: F32) -> F32:
        """Children that are still copies of their parents, with the shape and opacity they get."""
        ...

    def largest_scales(self, parents: F32) -> F32:
        """The largest scale of each parent's children [N]."""
        ...


class Scattered:
    """The original's: children are drawn at random from the parent itself, and smaller in every axis."""

    def offsets(self, parents: F32, rows: NDArray[np.int64], seed: int, step: int) -> F32:
        """R(q) e with e ~ N(0, diag(s^2))."""
        keys = [keys_of(seed, step, FIRST_CHILD + child) for child in range(CHILDREN)]
        draws = np.stack([normals(key, rows).astype(np.float32) for key in keys])  # [2, K, 3]
        draws *= _scales(parents)
        turned = np.einsum("kij,ckj->cki", rotation_matrices(parents[:, ROTATIONS]), draws)  # [2, K, 3]
        return turned.reshape(-1, 3).astype(np.float32)

    def shaped(self, children: F32) -> F32:
        children[:, LOG_SCALES] -= np.float32(math.log(SHRINK))
        return children

    def largest_scales(self, parents: F32) -> F32:
        return largest(parents[:, LOG_SCALES]) / SHRINK


class Cut:
    """Across the longest axis, into two halves side by side: nothing is drawn."""

    def offsets(self, parents: F32, rows: NDArray[np.int64], seed: int, step: int) -> F32:
        longest = parents[:, LOG_SCALES].argmax(axis=1)  # [K]
        each = np.arange(len(parents))
        axes = rotation_matrices(parents[:, ROTATIONS])[each, :, longest]  # [K, 3]
        away = axes * (np.float32(CUT_DISTANCE) * _scales(parents)[each, longest])[:, None]  # [K, 3]
        return np.concatenate([away, -away])

    def shaped(self, children: F32) -> F32:
        children[:, LOG_SCALES] = _cut(children)
        opacities = sigmoid(children[:, OPACITY_LOGITS]).astype(np.float64) * CUT_OPACITY  # [2K]
        children[:, OPACITY_LOGITS] = logit(opacities)
        return children

    def largest_scales(self, parents: F32) -> F32:
        return largest(_cut(parents))


SCATTERED, CUT = Scattered(), Cut()


def _cut(rows: F32) -> F32:
    """Log scales of the halves [K, 3]."""
    log_scales = rows[:, LOG_SCALES]  # [K, 3]
    longest = np.arange(3) == log_scales.argmax(axis=1)[:, None]  # [K, 3]
    return log_scales + np.where(longest, np.float32(math.log(CUT_LENGTH)), np.float32(math.log(CUT_WIDTH)))


def _scales(rows: F32) -> F32:
    with np.errstate(over="ignore"):
        return np.exp(rows[:, LOG_SCALES])  # [K, 3]


def rotation_matrices(quaternions: F32) -> F32:
    """From (w, x, y, z) of any length [K, 4] to [K, 3, 3]."""
    length = np.linalg.norm(quaternions, axis=1, keepdims=True)
    w, x, y, z = (quaternions / np.maximum(length, np.float32(1e-12))).T  # each [K]
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)  # [K, 3, 3]
