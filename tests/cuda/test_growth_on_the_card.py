"""Growth on the card: rows cloned, split, moved and pruned as by the rules in NumPy, in the same order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from growth_twin import grow_on, grown, rule
from parity_scenes import random_table
from standin import Standin
from twins import CardTwin, arrays_of, owed_after

from splatmeter import _native  # type: ignore[attr-defined]
from splatmeter.backend import Change, GrowthRule
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


def in_step(found: Table, expected: Table) -> Table:
    """A child's mean may differ in its last bit, and then so may its Morton code: few rows change places."""
    one, two = (np.lexsort((t.geometry[:, 0], *t.harmonics[:, :3].T)) for t in (found, expected))
    places = np.empty(found.count, np.int64)
    places[two] = one
    breaks = np.count_nonzero(np.diff(places) != 1)
    assert breaks <= 3 * max(2, 0.001 * found.count), f"{breaks} places at which the order differs"
    return Table(*(array[places] for array in arrays_of(found)))


def assert_grows_alike(card: CardTwin, table: Table, followed: GrowthRule) -> Change:
    expected = grown(table, followed)
    card.put(table)
    assert grow_on(card.card, followed) == expected.change
    found = card.get()
    assert found.count == expected.table.count
    found = in_step(found, expected.table)
    for one, two in zip(arrays_of(found)[1:], arrays_of(expected.table)[1:], strict=True):
        np.testing.assert_array_equal(one, two)  # moved, never changed: to the bit
    np.testing.assert_allclose(found.geometry[:, :6], expected.table.geometry[:, :6], rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(found.geometry[:, 10], expected.table.geometry[:, 10], rtol=2e-6, atol=2e-6)
    for columns in (slice(6, 10), slice(11, 16)):
        np.testing.assert_array_equal(found.geometry[:, columns], expected.table.geometry[:, columns])
    return expected.change


@pytest.mark.parametrize("count", [1, 2, 300, 2500])
@pytest.mark.parametrize("strategy", ["3dgs", "gof", "cut"])
def test_candidates_are_the_same(card: CardTwin, count: int, strategy: str) -> None:
    """2500 rows are more than one block of everything. What is cut is not cloned."""
    change = assert_grows_alike(card, visited(count), rule(strategy))
    if count >= 300:
        assert min(change.split, change.pruned) > 0 and (change.cloned > 0) == (strategy != "cut")


@pytest.mark.parametrize(("strategy", "budget"), [("3dgs", None), ("gof", 850), ("cut", 850)])
def test_rows_that_are_behind_are_settled_while_they_move(
    card: CardTwin, strategy: str, budget: int | None
) -> None:
    """As if they had been settled before, to the last bit. What they owe decides who is faint, and where
    children are."""
    table, followed = visited(800), rule(strategy, budget=budget, lowest_opacity=0.2)
    table.geometry[:, 15] = np.random.default_rng(4).integers(0, 8, table.count)
    results = []
    for first in (True, False):
        card.put(table, owed_after(7))
        if first:
            card.card.settle()
        results.append((grow_on(card.card, followed), card.get()))
    (change, expected), (found_change, found) = results
    assert found_change == change and min(change.split, change.pruned) > 0
    assert (change.cloned > 0) == (strategy != "cut")
    for one, two in zip(arrays_of(found), arrays_of(expected), strict=True):
        np.testing.assert_array_equal(one, two)
    assert (found.geometry[:, 15] == 7).all()
    card.put(table)
    assert grow_on(card.card, followed).pruned != change.pruned
    card.owe(None)


@pytest.mark.parametrize("room", [-20, 0, 1, 7, 60, 10_000])
def test_a_budget_takes_the_most_urgent(card: CardTwin, room: int) -> None:
    table = visited(400)
    stay = 400 - grown(table, rule("3dgs", threshold=math.inf, largest_scale=2.0)).change.pruned
    assert_grows_alike(card, table, rule(largest_scale=2.0, budget=stay + room))
    if 0 <= room < 10_000:
        assert card.card.count == stay + room


def test_equally_urgent_rows_are_taken_in_order(card: CardTwin) -> None:
    """Ties lie at the border of the budget, in rows of several blocks."""
    table = visited(2500)
    table.geometry[:, 12:15] = [3e-4, 0, 1]
    table.geometry[::3, 12] = 6e-4
    stay = 2500 - grown(table, rule("3dgs", threshold=math.inf)).change.pruned
    for room in (400, 1500):
        assert_grows_alike(card, table, rule("3dgs", budget=stay + room))


@pytest.mark.parametrize("budget", [None, 330])
def test_halves_are_pruned_by_their_own_size(card: CardTwin, budget: int | None) -> None:
    """Some parents are too large and their halves are not: these count twice where a budget binds."""
    table = visited(300)
    limit = float(np.exp(np.quantile(table.geometry[:, 3:6].max(axis=1), 0.6)))
    change = assert_grows_alike(card, table, rule("cut", largest_scale=limit, budget=budget))
    whole = grown(table, rule("cut", threshold=math.inf, largest_scale=limit, budget=budget)).change
    assert change.split > 20 and change.pruned != whole.pruned


def test_of_equal_axes_the_first_is_cut(card: CardTwin) -> None:
    """Also where opacities are so close to 1 that float64 sees no difference."""
    table = visited(300)
    table.geometry[:, 3:6] = np.round(table.geometry[:, 3:6])
    table.geometry[::5, 3:6] = -1.25
    table.geometry[:, 12:15] = 1
    table.geometry[::7, 10], table.geometry[1::7, 10] = 80, 17
    longest = table.geometry[:, 3:6] == table.geometry[:, 3:6].max(axis=1, keepdims=True)
    assert {tuple(row) for row in longest.tolist()} >= {(1, 1, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1), (0, 0, 1)}
    assert assert_grows_alike(card, table, rule("cut")).split == 300
    assert card.get().geometry[:, 10].max() < 2, "halves are never more opaque than 0.83"


def test_without_statistics_all_are_densified(card: CardTwin) -> None:
    """gof's quantile is the maximum then, and here that is zero: everything is chosen, as in the original."""
    table = visited(50)
    table.geometry[:, 12:15] = 0
    change = assert_grows_alike(card, table, rule())
    assert change.cloned + change.split == 50


def test_pruning_is_growth_without_candidates(card: CardTwin) -> None:
    change = assert_grows_alike(card, visited(300), rule("3dgs", threshold=math.inf, lowest_opacity=0.3))
    assert change.cloned == change.split == 0 and change.pruned > 100


def test_everything_may_go(card: CardTwin) -> None:
    table = visited(40)
    table.geometry[:, 10] = -9
    assert_grows_alike(card, table, rule())
    assert card.card.count == 0
    assert grow_on(card.card, rule()) == grow_on(card.card, rule("mcmc")) == Change(0, 0, 0)


@pytest.mark.parametrize("budget", [None, 200, 330, 5000])
def test_relocation_copies_the_same_rows(card: CardTwin, budget: int | None) -> None:
    change = assert_grows_alike(card, visited(300), rule("mcmc", budget=budget))
    assert change.pruned > 10
    assert (change.cloned > 20) == (budget != 200)


def test_many_copies_of_one_row_share_its_opacity(card: CardTwin) -> None:
    """All but three are faint: each is copied more than fifty times."""
    table = random_table(300)
    table.geometry[:, 10] = -9
    table.geometry[[7, 120, 299], 10] = [3, -1, 0.5]
    change = assert_grows_alike(card, table, rule("mcmc"))
    assert change == Change(297, 0, 297)


@pytest.mark.parametrize("budget", [None, 1000, 5000])
def test_where_all_are_faint_all_stay_in_a_new_order(card: CardTwin, budget: int | None) -> None:
    """Nobody can be copied. What is no number counts as faint too."""
    table = visited(2500)
    table.geometry[:, 10] = -9
    table.harmonics[7, 3] = math.nan
    assert assert_grows_alike(card, table, rule("mcmc", budget=budget)) == Change(0, 0, 0)
    assert card.card.count == 2500 and not card.get().geometry[:, 12:15].any()


@pytest.mark.parametrize("strategy", ["gof", "cut", "mcmc"])
def test_growth_that_cannot_fit_changes_nothing(schedule: Standin, strategy: str) -> None:
    table = visited(3000)
    table.geometry[:, 12:15] = [1, 1, 1]
    table.geometry[:, 10] = 1
    held = schedule.count("bytes")
    schedule.option("foreign", (16 << 30) - held - int(3000 * 736 * 1.35 / 0.9))
    card = CardTwin()
    card.put(table)
    with pytest.raises(_native.CardError) as problem:
        grow_on(card.card, rule(strategy, budget=9000 if strategy == "mcmc" else None))
    assert problem.value.args[0] == "out of memory"
    for found, before in zip(arrays_of(card.get()), arrays_of(table), strict=True):
        np.testing.assert_array_equal(found, before)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["gof", "cut", "mcmc"])
def test_growth_over_many_blocks(card: CardTwin, schedule: Standin, strategy: str) -> None:
    """More than 256 blocks of rows: the loops over blocks turn twice."""
    table = visited(70_000)
    assert_grows_alike(card, table, rule(strategy, budget=70_500))
