"""Faint Gaussians move to opaque ones, the picture stays, and the budget holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_densify import SMALL, performed, settings, table_of

from splatmeter.densify.densifier import Densifier
from splatmeter.densify.strategies import mcmc
from splatmeter.gaussians import gaussians
from splatmeter.ops import LOG_SCALES, OPACITY_LOGITS, Table, empty_table


def moved(table: Table, budget: int, seed: int = 0) -> tuple[Table, object]:
    return performed(Densifier(settings(strategy="mcmc", max_gaussians=budget, seed=seed)), 600, table)


@pytest.mark.parametrize("opacity", [0.01, 0.3, 0.9, 0.999999])
@pytest.mark.parametrize("times", [1, 2, 3, 10, 51])
def test_shares_follow_the_papers_double_sum(opacity: float, times: int) -> None:
    share, shrink = mcmc.shares(np.array([opacity]), np.array([times]))
    assert 1 - (1 - share[0]) ** times == pytest.approx(opacity, rel=1e-9)
    total = sum(
        math.comb(i - 1, k) * (-1) ** k * share[0] ** (k + 1) / math.sqrt(k + 1)
        for i in range(1, times + 1)
        for k in range(i)
    )
    assert shrink[0] == pytest.approx(opacity / total if times > 1 else 1.0, rel=1e-6)
    assert 0 < shrink[0] <= 1 + 1e-12


def test_a_line_through_several_copies_absorbs_as_much_as_through_one() -> None:
    """The correction keeps the integral of what a cut through the Gaussian hides."""
    x = np.linspace(-8, 8, 4001)
    for opacity, times in ((0.4, 2), (0.8, 3), (0.95, 6)):
        share, shrink = (value[0] for value in mcmc.shares(np.array([opacity]), np.array([times])))
        one = opacity * np.exp(-(x**2) / 2)
        many = 1 - (1 - share * np.exp(-(x**2) / (2 * shrink**2))) ** times
        assert many.sum() == pytest.approx(one.sum(), rel=1e-3)
        assert abs(many - one).max() < 0.1


def test_copies_beyond_the_most_are_shared_out_as_if_they_were_that_many() -> None:
    at_most, beyond = (mcmc.shares(np.array([0.9]), np.array([times])) for times in (51, 500))
    np.testing.assert_array_equal(at_most, beyond)


def test_faint_rows_go_to_opaque_hosts_and_the_number_stays_at_the_budget() -> None:
    table, change = moved(table_of([SMALL] * 5, [0.001, 0.9, 0.002, 0.9, 0.004], [0.0] * 5), budget=5)
    assert table.count == 5
    assert (change.cloned, change.split, change.pruned) == (3, 0, 3)
    assert set(table.harmonics[:, 0].tolist()) == {1.0, 3.0}
    for host in (1.0, 3.0):
        rows = table.harmonics[:, 0] == host
        shared = rows.sum() > 1
        assert (gaussians.opacities(table)[rows] < 0.9 - 1e-6).all() == shared
        assert (gaussians.scales(table)[rows] < SMALL * (1 - 1e-6)).all() == shared


def test_copies_start_with_zero_moments_and_hosts_keep_theirs() -> None:
    table, _ = moved(table_of([SMALL] * 2, [0.001, 0.9], [0.0] * 2), budget=2)
    assert sorted(table.geometry_moments[:, 0].tolist()) == [0, 1]
    assert table.geometry[0, LOG_SCALES].tolist() == table.geometry[1, LOG_SCALES].tolist()


def test_the_set_grows_by_a_twentieth_at_a_time_up_to_the_budget() -> None:
    table, counts = table_of([SMALL] * 200, [0.5] * 200, [0.0] * 200), []
    for seed in range(6):
        table, _ = moved(table, budget=235, seed=seed)
        counts.append(table.count)
    assert counts == [210, 220, 231, 235, 235, 235]


def test_a_set_over_the_budget_does_not_grow() -> None:
    table, _ = moved(table_of([SMALL] * 10, [0.5] * 9 + [0.001], [0.0] * 10), budget=4)
    assert table.count == 9


def test_hosts_are_drawn_in_proportion_to_their_opacity() -> None:
    table = table_of([SMALL] * 20_003, [0.001] * 20_000 + [0.2, 0.3, 0.5], [0.0] * 20_003)
    densifier = Densifier(settings(strategy="mcmc", max_gaussians=table.count))
    plan = mcmc.plan(table, densifier.rule(600))
    share = np.bincount(plan.hosts - 20_000, minlength=3) / len(plan.hosts)
    assert share == pytest.approx([0.2, 0.3, 0.5], abs=0.02)  # five standard deviations


def test_nothing_becomes_fainter_than_what_counts_as_faint() -> None:
    table, _ = moved(table_of([SMALL] * 40, [0.001] * 39 + [0.006], [0.0] * 40), budget=40)
    assert table.count == 40
    assert gaussians.opacities(table) == pytest.approx(0.005, rel=1e-4)


def test_rows_that_are_no_numbers_are_relocated_too() -> None:
    table = table_of([SMALL] * 3, [0.5] * 3, [0.0] * 3)
    table.geometry[1, OPACITY_LOGITS] = np.nan
    table.harmonics[2, 4] = np.nan
    table, _ = moved(table, budget=3)
    assert table.count == 3 and np.isfinite(table.geometry).all() and not table.harmonics[:, 0].any()


def test_without_anybody_alive_nothing_happens() -> None:
    assert moved(empty_table(0), budget=10)[0].count == 0
    table, change = moved(table_of([SMALL] * 2, [0.001] * 2, [0.0] * 2), budget=10)
    assert table.count == 2 and change.pruned == 0


def test_opacities_are_never_reset() -> None:
    densifier = Densifier(settings(strategy="mcmc", max_gaussians=10, white_background=True))
    assert not any(densifier.resets_at(step) for step in range(1, 15_000))
    assert densifier.grows_at(600)
