"""Cloning, splitting and removing as one rearrangement of rows, in Morton order afterwards."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import Change
from splatmeter.densify.draws import FIRST_CHILD, keys_of, normals
from splatmeter.densify.strategy import Hands
from splatmeter.ops import F32, LOG_SCALES, MEANS, ROTATIONS, Table

CHILDREN = 2
"""A split Gaussian is replaced by this many."""

SHRINK = 0.8 * CHILDREN
"""Children are this much smaller than their parent in every axis."""


@dataclass(frozen=True, slots=True, eq=False)
class Surgery:
    """What happens to each row. Rows neither kept nor split disappear."""

    keep: NDArray[np.bool_]  # [N]
    clone: NDArray[np.bool_]  # [N] append an exact copy
    split: NDArray[np.bool_]  # [N] append two smaller children in its place (not kept, then)
    change: Change
    seed: int = 0
    step: int = 0
    """Name the draws of the children's places."""

    def perform(self, table: Table, hands: Hands) -> Table:
        """Rows in Morton order; the old table, which must be settled, is used up.

        Appended rows start with zero moments. All statistics start again.
        """
        kept, cloned, split = (np.flatnonzero(mask) for mask in (self.keep, self.clone, self.split))
        sources = np.concatenate([kept, cloned, *[split] * CHILDREN])  # [M]
        fresh = np.arange(len(sources)) >= len(kept)  # [M]
        first_child = len(kept) + len(cloned)
        means = table.geometry[sources, MEANS]  # [M, 3]
        means[first_child:] += _offsets(table.geometry[split], split, self.seed, self.step)
        changed, order = rearranged(table, sources, fresh, means, hands)
        children = np.flatnonzero(order >= first_child)  # [2K] rows in the new table
        changed.geometry[children, MEANS] = means[order[children]]
        changed.geometry[children, LOG_SCALES] -= np.float32(math.log(SHRINK))
        return changed


def removal(gone: NDArray[np.bool_]) -> Surgery:
    """Only these rows go."""
    none = np.zeros_like(gone)
    change = Change(0, 0, int(np.count_nonzero(gone)))
    return Surgery(~gone, none, none, change)


def rearranged(
    table: Table, sources: NDArray[np.int64], fresh: NDArray[np.bool_], means: F32, hands: Hands
) -> tuple[Table, NDArray[np.int64]]:
    """The rows of `sources` in the Morton order of `means`, and that order [M]; the old table is used up."""
    order = hands.morton_order(np.ascontiguousarray(means))  # [M]
    changed = hands.rearrange(table, np.ascontiguousarray(sources[order]), np.ascontiguousarray(fresh[order]))
    return changed, order


def _offsets(parents: F32, rows: NDArray[np.int64], seed: int, step: int) -> F32:
    """R(q) e with e ~ N(0, diag(s^2)): all first children, then all second ones [2K, 3]."""
    with np.errstate(over="ignore"):
        sigma = np.exp(parents[:, LOG_SCALES])  # [K, 3] raw: the 3D filter has no part in this
    keys = [keys_of(seed, step, FIRST_CHILD + child) for child in range(CHILDREN)]
    draws = np.stack([normals(key, rows).astype(np.float32) for key in keys]) * sigma  # [2, K, 3]
    turned = np.einsum("kij,ckj->cki", rotation_matrices(parents[:, ROTATIONS]), draws)  # [2, K, 3]
    return turned.reshape(-1, 3).astype(np.float32)


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
