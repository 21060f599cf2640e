"""Growth by the strategies' own rules in NumPy, and the same as the card's arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from twins import copied

from splatmeter import _native  # type: ignore[attr-defined]
from splatmeter.backend import Change, GrowthRule
from splatmeter.backends.reference.surgery import rearrange
from splatmeter.densify.division import CUT_DISTANCE, CUT_LENGTH, CUT_OPACITY, CUT_WIDTH, SHRINK
from splatmeter.densify.draws import FIRST_CHILD, RELOCATION, keys_of
from splatmeter.densify.strategies import STRATEGIES
from splatmeter.ops import Table


@dataclass(frozen=True, eq=False)
class Grown:
    table: Table
    change: Change


def rule(strategy: str = "gof", **changes: Any) -> GrowthRule:
    usual = {"seed": 3, "step": 700, "threshold": 2e-4, "dense_scale": 0.05, "lowest_opacity": 0.005}
    return GrowthRule(strategy=strategy, **(usual | {"largest_scale": math.inf, "budget": None} | changes))


def morton_order(means: np.ndarray) -> np.ndarray:
    order = np.empty(len(means), np.int64)
    _native.Engine(1).morton_order(means, order)
    return order


def grown(table: Table, followed: GrowthRule) -> Grown:
    strategy = STRATEGIES[followed.strategy]
    assert strategy.plan is not None
    operation = strategy.plan(table, followed)
    hands = SimpleNamespace(morton_order=morton_order, rearrange=rearrange)
    return Grown(operation.perform(copied(table), hands), operation.change)


def grow_on(card: Any, followed: GrowthRule) -> Change:
    """On a settled table."""
    if followed.strategy == "mcmc":
        keys = keys_of(followed.seed, followed.step, RELOCATION)
        return Change(*card.relocate(followed.budget, followed.lowest_opacity, keys))
    return Change(
        *card.grow(
            threshold=followed.threshold,
            by_absolute=followed.strategy in ("gof", "cut"),
            lowest_opacity=followed.lowest_opacity,
            small_limit=followed.dense_scale,
            size_limit=followed.largest_scale,
            shrink=SHRINK,
            budget=followed.budget,
            child_keys=[keys_of(followed.seed, followed.step, FIRST_CHILD + child) for child in range(2)],
            cut=(CUT_DISTANCE, CUT_LENGTH, CUT_WIDTH, CUT_OPACITY) if followed.strategy == "cut" else None,
        )
    )
