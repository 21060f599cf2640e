"""3DGS-MCMC: a fixed number of Gaussians, of which faint ones move to where opaque ones are.

N Gaussians in one place look like the one they come from if each has the opacity o' and all scales times r:
    (1 - o')^N = 1 - o,
    r = o / sum over i = 1 ... N and k = 0 ... i - 1 of  C(i - 1, k) (-1)^k o'^(k + 1) / sqrt(k + 1)
(Kheradmand et al., 2024, equation 9; opacities and scales are those without the 3D filter, as for pruning).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import Change, GrowthRule
from splatmeter.densify import prune, region
from splatmeter.densify.draws import RELOCATION, keys_of, uniform
from splatmeter.densify.strategy import Hands, Strategy
from splatmeter.densify.surgery import rearranged
from splatmeter.gaussians import gaussians
from splatmeter.ops import F32, F64, LOG_SCALES, MEANS, OPACITY_LOGITS, Table

GROWTH = 0.05
"""The set grows by this share at a time until the budget is reached."""

MOST_TOGETHER = 51
"""Copies beyond that are shared out as if there were so many: differences are invisible by then."""

HIGHEST_OPACITY = 1 - 1e-6


ONE = 2.0**32
"""An opacity of 1 among the weights of hosts."""


@dataclass(frozen=True, slots=True, eq=False)
class Relocation:
    live: NDArray[np.int64]  # [L] rows that stay
    hosts: NDArray[np.int64]  # [K] rows that are copied, with repetitions
    change: Change

    def perform(self, table: Table, hands: Hands) -> Table:
        """The old table is used up. Copies start with zero moments, their hosts keep theirs."""
        self._share_out(table)
        sources = np.concatenate([self.live, self.hosts])  # [M]
        fresh = np.arange(len(sources)) >= len(self.live)  # [M]
        return rearranged(table, sources, fresh, table.geometry[sources, MEANS], hands)[0]

    def _share_out(self, table: Table) -> None:
        """Those that will lie in one place look like the one that is there now."""
        times = np.bincount(self.hosts, minlength=table.count) + 1  # [N] Gaussians in each place
        opacity = np.minimum(gaussians.sigmoid(table.geometry[:, OPACITY_LOGITS]), HIGHEST_OPACITY)  # [N]
        shared = times > 1  # [N]
        new_opacity, shrink = shares(opacity[shared], times[shared])
        lowest = np.maximum(new_opacity, prune.LOWEST_OPACITY)
        table.geometry[shared, OPACITY_LOGITS] = gaussians.logit(lowest)
        table.geometry[shared, LOG_SCALES] += np.log(shrink)[:, None].astype(np.float32)


def plan(table: Table, rule: GrowthRule) -> Relocation:
    """Every faint row makes room for a copy, and up to a twentieth more are added. The table is settled."""
    budget = rule.budget or table.count
    faint = prune.faint(table, prune.LOWEST_OPACITY)  # [N]
    live = np.flatnonzero(~faint)
    places = live[region.inside(table.geometry[live, MEANS], rule.region)]  # [P] who may be copied
    if not len(places):
        return Relocation(np.arange(table.count), places, Change(0, 0, 0))
    grown = min(budget, table.count + int(GROWTH * table.count))
    copies = max(grown, min(table.count, budget)) - len(live)
    hosts = places[drawn_places(table.geometry[places, OPACITY_LOGITS], copies, rule)]  # [K]
    return Relocation(live, hosts, Change(len(hosts), 0, table.count - len(live)))


def drawn_places(logits: F32, copies: int, rule: GrowthRule) -> NDArray[np.int64]:
    """In proportion to opacity [K]. Sums of whole numbers are the same in whatever order they are added."""
    weights = np.cumsum(np.rint(gaussians.sigmoid(logits) * ONE).astype(np.uint64))  # [L]
    keys = keys_of(rule.seed, rule.step, RELOCATION)
    draws = (uniform(keys, np.arange(max(0, copies))) * float(weights[-1])).astype(np.uint64)  # [K]
    return np.minimum(np.searchsorted(weights, draws, side="right"), len(logits) - 1)


def shares(opacity: F64, times: NDArray[np.int64]) -> tuple[F64, F64]:
    """Opacity of each of `times` Gaussians that replace one, and the factor of their scales."""
    count = np.minimum(times, MOST_TOGETHER)  # [K]
    share = -np.expm1(np.log1p(-opacity) / count)  # [K]
    total = np.zeros_like(share)
    for number in range(2, int(count.max(initial=1)) + 1):
        rows = np.flatnonzero(count == number)
        powers = share[rows, None] ** np.arange(1, number + 1)  # [R, N]
        total[rows] = (powers * _coefficients(number)).sum(axis=1)
    alone = count == 1
    return share, np.where(alone, 1.0, opacity / np.where(alone, 1.0, total))


@functools.cache
def _coefficients(number: int) -> F64:
    """Coefficients of o'^(k + 1), k = 0 ... N - 1. Binomials C(i - 1, k) summed over i are C(N, k + 1)."""
    signed = [math.comb(number, k + 1) * (-1.0) ** k / math.sqrt(k + 1) for k in range(number)]
    return np.array(signed)  # [N]


MCMC = Strategy("mcmc", plan, resets_opacities=False, needs_budget=True, explores=True)
