"""Growth on the card: the same rows cloned, split and pruned as by the rules in NumPy, in the same order."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from growth_twin import Rule, grown
from parity_scenes import random_table
from standin import Standin
from twins import CardTwin, arrays_of

from splatmeter import _native  # type: ignore[attr-defined]
from splatmeter.ops import Table


def visited(count: int, seed: int = 0) -> Table:
    """With statistics of some visits, faint, huge and broken rows among them."""
    generator = np.random.default_rng(seed)
    table = random_table(count, seed=seed + 1)
    table.geometry[:, 3:6] -= 1
    table.geometry[:, 14] = generator.integers(0, 9, count)
    table.geometry[:, 12] = table.geometry[:, 14] * 10 ** generator.uniform(-5, -3, count)
    table.geometry[:, 13] = table.geometry[:, 12] * generator.uniform(1, 9, count)
    for moments in arrays_of(table)[2:]:
        moments[:] = generator.normal(size=moments.shape)
    table.geometry[::17, 10] = -9
    table.geometry[3::31, 3:6] += 3
    table.geometry[5::41, 0], table.harmonics[7::43, 20], table.geometry[9::37, 12] = np.nan, np.inf, np.nan
    return table


def arguments(rule: Rule) -> dict:
    return {**dataclasses.asdict(rule), "child_keys": [list(keys) for keys in rule.child_keys]}


def assert_grows_alike(card: CardTwin, table: Table, rule: Rule) -> None:
    expected = grown(table, rule)
    card.put(table)
    assert card.card.grow(**arguments(rule)) == (expected.cloned, expected.split, expected.pruned)
    found = card.get()
    assert found.count == expected.table.count
    for name, one, two in zip("ghmfs", arrays_of(found), arrays_of(expected.table), strict=True):
        if name != "g":  # moved, never changed: to the bit
            np.testing.assert_array_equal(one, two)
    # the draws: sine by a polynomial in float32 here, in float64 there
    np.testing.assert_allclose(found.geometry[:, :6], expected.table.geometry[:, :6], rtol=2e-6, atol=2e-5)
    np.testing.assert_array_equal(found.geometry[:, 6:], expected.table.geometry[:, 6:])


@pytest.mark.parametrize("count", [1, 2, 300, 2500])
@pytest.mark.parametrize("by_absolute", [False, True], ids=["3dgs", "gof"])
def test_candidates_are_the_same(card: CardTwin, count: int, by_absolute: bool) -> None:
    """2500 rows are more than one block of everything."""
    rule = Rule(by_absolute=by_absolute)
    expected = grown(visited(count), rule)
    if count >= 300:
        assert min(expected.cloned, expected.split, expected.pruned) > 0
    assert_grows_alike(card, visited(count), rule)


@pytest.mark.parametrize("room", [-20, 0, 1, 7, 60, 10_000])
def test_a_budget_takes_the_most_urgent(card: CardTwin, room: int) -> None:
    table = visited(400)
    stay = 400 - grown(table, Rule(threshold=math.inf, by_absolute=False, size_limit=2.0)).pruned
    rule = Rule(size_limit=2.0, budget=stay + room)
    assert_grows_alike(card, table, rule)
    if 0 <= room < 10_000:
        assert card.card.count == stay + room


def test_equally_urgent_rows_are_taken_in_order(card: CardTwin) -> None:
    """Ties lie at the border of the budget, in rows of several blocks."""
    table = visited(2500)
    table.geometry[:, 12:15] = [3e-4, 0, 1]
    table.geometry[::3, 12] = 6e-4
    stay = 2500 - grown(table, Rule(threshold=math.inf, by_absolute=False)).pruned
    for room in (400, 1500):
        assert_grows_alike(card, table, Rule(by_absolute=False, budget=stay + room))


def test_without_statistics_the_largest_is_still_densified(card: CardTwin) -> None:
    """gof's quantile is the maximum then, and here that is zero: everything is chosen, as in the original."""
    table = visited(50)
    table.geometry[:, 12:15] = 0
    assert grown(table, Rule()).cloned + grown(table, Rule()).split == 50
    assert_grows_alike(card, table, Rule())


def test_pruning_is_growth_without_candidates(card: CardTwin) -> None:
    rule = Rule(threshold=math.inf, by_absolute=False, lowest_opacity=0.3)
    assert_grows_alike(card, visited(300), rule)
    assert card.card.count < 200


def test_everything_may_go(card: CardTwin) -> None:
    table = visited(40)
    table.geometry[:, 10] = -9
    assert_grows_alike(card, table, Rule())
    assert card.card.count == 0
    assert card.card.grow(**arguments(Rule())) == (0, 0, 0)


def test_growth_that_cannot_fit_changes_nothing(schedule: Standin) -> None:
    card, table = CardTwin(), visited(3000)
    table.geometry[:, 12:15] = [1, 1, 1]
    table.geometry[:, 10] = 1
    small = visited(3000)
    small.geometry[:, 10] = 1
    held = card.card.bytes
    schedule.option("foreign", (16 << 30) - held - int(3000 * 736 * 1.35 / 0.9))
    card = CardTwin()
    card.put(table)
    with pytest.raises(_native.CardError) as problem:
        card.card.grow(**arguments(Rule()))
    assert problem.value.args[0] == "out of memory"
    for found, before in zip(arrays_of(card.get()), arrays_of(table), strict=True):
        np.testing.assert_array_equal(found, before)


@pytest.mark.slow
def test_selection_over_many_blocks(card: CardTwin, schedule: Standin) -> None:
    """More than 256 blocks of rows: the loops over blocks turn twice."""
    table = visited(70_000)
    assert_grows_alike(card, table, Rule(budget=70_500))
