"""Adaptive density control: a criterion's candidates become two, by cloning or by division; faint rows go."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import Change, GrowthRule
from splatmeter.densify import prune, region, statistics
from splatmeter.densify.division import SCATTERED, Division
from splatmeter.densify.statistics import Statistics
from splatmeter.densify.surgery import Surgery
from splatmeter.ops import F64, MEANS, Table

Rows = NDArray[np.bool_]  # [N]


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    chosen: Rows
    urgency: F64  # [N] how far above the criterion; ranks candidates where a budget binds
    demand: float = 0.0
    """About how many Gaussians these would have to become for none to be chosen by its gradient."""


Criterion = Callable[[Statistics, float], Candidates]
"""(statistics, gradient threshold) -> candidates."""


def plan(
    table: Table,
    rule: GrowthRule,
    criterion: Criterion,
    division: Division = SCATTERED,
    clones: bool = True,
) -> Surgery:
    """Small candidates are cloned and large ones divided, or all are divided where nothing `clones`."""
    candidates = _candidates(table, rule, criterion)
    faint = prune.faint(table, rule.lowest_opacity)  # [N]
    scales = prune.largest_scales(table)  # [N]
    small = (scales <= rule.dense_scale) & clones  # [N]
    gone = faint | (scales > rule.largest_scale)  # [N] what pruning takes of rows and their exact copies
    gone_child = faint  # [N] and of children
    if math.isfinite(rule.largest_scale):
        gone_child = faint | (division.largest_scales(table.geometry) > rule.largest_scale)
    chosen = _affordable(candidates, gone, np.where(small, gone, gone_child), rule.budget)
    clone, split = chosen & small, chosen & ~small
    pruned = (gone & ~split).sum() + (gone & clone).sum() + 2 * (gone_child & split).sum()
    wanted = int(np.count_nonzero(candidates.chosen))
    return Surgery(
        keep=~split & ~gone,
        clone=clone & ~gone,
        split=split & ~gone_child,
        change=Change(int(clone.sum()), int(split.sum()), int(pruned), wanted, round(candidates.demand)),
        seed=rule.seed,
        step=rule.step,
        division=division,
    )


def _candidates(table: Table, rule: GrowthRule, criterion: Criterion) -> Candidates:
    """Candidates inside the rule's region. Rows elsewhere are not even compared with: a criterion that goes
    by shares would otherwise name fewer or more in the region, depending on what lies around it."""
    found = statistics.read(table)
    if not rule.region:
        return criterion(found, rule.threshold)
    rows = np.flatnonzero(region.inside(table.geometry[:, MEANS], rule.region))  # [K]
    there = criterion(Statistics(found.gradient[rows], found.absolute[rows]), rule.threshold)
    chosen, urgency = np.zeros(table.count, np.bool_), np.zeros(table.count)  # [N]
    chosen[rows], urgency[rows] = there.chosen, there.urgency
    return Candidates(chosen, urgency, there.demand + table.count - len(rows))


def _affordable(candidates: Candidates, gone: Rows, wasted: Rows, budget: int | None) -> Rows:
    """Candidates within the budget: each adds a row, children of a parent too large to stay add two."""
    if budget is None:
        return candidates.chosen
    stay = np.count_nonzero(~gone)
    doubled = np.count_nonzero(candidates.chosen & gone & ~wasted)
    if stay + np.count_nonzero(candidates.chosen & ~wasted) + doubled <= budget:
        return candidates.chosen
    return within_budget(candidates, ~gone, budget - stay)


def within_budget(candidates: Candidates, eligible: Rows, room: int) -> Rows:
    """At most `room` of the eligible candidates: the most urgent, ties by row."""
    wanted = candidates.chosen & eligible  # [N]
    rows = np.flatnonzero(wanted)
    if len(rows) <= room:
        return wanted
    order = np.argsort(-candidates.urgency[rows], kind="stable")[: max(0, room)]
    chosen = np.zeros_like(wanted)
    chosen[rows[order]] = True
    return chosen
