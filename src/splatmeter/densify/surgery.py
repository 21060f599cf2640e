"""Cloning, splitting and removing as one rearrangement of rows, in Morton order afterwards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import Change
from splatmeter.densify.division import CHILDREN, SCATTERED, Division
from splatmeter.densify.strategy import Hands
from splatmeter.ops import F32, MEANS, Table


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
    division: Division = SCATTERED

    def perform(self, table: Table, hands: Hands) -> Table:
        """Rows in Morton order; the old table, which must be settled, is used up.

        Appended rows start with zero moments. All statistics start again.
        """
        kept, cloned, split = (np.flatnonzero(mask) for mask in (self.keep, self.clone, self.split))
        sources = np.concatenate([kept, cloned, *[split] * CHILDREN])  # [M]
        fresh = np.arange(len(sources)) >= len(kept)  # [M]
        first_child = len(kept) + len(cloned)
        # By take from a copy: a quarter of the time of indexing rows and columns at once.
        means = np.ascontiguousarray(table.geometry[:, MEANS]).take(sources, axis=0)  # [M, 3]
        means[first_child:] += self.division.offsets(table.geometry[split], split, self.seed, self.step)
        del kept, cloned  # while rows move, every array counts
        changed, order = rearranged(table, sources, fresh, means, hands)
        children = np.flatnonzero(order >= first_child)  # [2K] rows in the new table
        shaped = self.division.shaped(changed.geometry.take(children, axis=0))  # [2K, 16]
        shaped[:, MEANS] = means.take(order[children], axis=0)
        changed.geometry[children] = shaped
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
