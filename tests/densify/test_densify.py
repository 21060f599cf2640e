from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from splatmeter.backend import Change
from splatmeter.densify import prune, statistics
from splatmeter.densify.adaptive import Candidates, within_budget
from splatmeter.densify.densifier import Densifier, DensifySettings
from splatmeter.densify.division import rotation_matrices
from splatmeter.densify.statistics import Statistics
from splatmeter.densify.strategies.gof import absolute_criterion, quantile
from splatmeter.densify.strategies.three_dgs import gradient_criterion
from splatmeter.densify.surgery import Surgery, removal
from splatmeter.gaussians import gaussians
from splatmeter.ops import (
    ABSOLUTE_SUM,
    FILTER_3D,
    GRADIENT_SUM,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    SECOND_GEOMETRY,
    VISITS,
    Table,
    empty_table,
)

SMALL, LARGE, HUGE = 0.005, 0.05, 0.5  # against an extent of 1: cloned, split, too large for the size prune


def rearrange(table: Table, sources: np.ndarray, fresh: np.ndarray) -> Table:
    moments = [
        table.geometry_moments[sources],
        table.harmonics_first[sources],
        table.harmonics_second[sources],
    ]
    for moment in moments:
        moment[fresh] = 0
    geometry = table.geometry[sources]
    geometry[:, [GRADIENT_SUM, ABSOLUTE_SUM, VISITS]] = 0
    return Table(geometry, table.harmonics[sources], *moments)


HANDS: Any = SimpleNamespace(
    rearrange=rearrange, morton_order=lambda means: np.argsort(means[:, 0], kind="stable")
)


def table_of(scales: list[float], opacities: list[float], gradients: list[float]) -> Table:
    """Row i at x = i, colour i, moments 1, statistics of four visits."""
    table = empty_table(len(scales))
    table.geometry[:, 0] = np.arange(len(scales))
    table.geometry[:, LOG_SCALES] = np.log(scales)[:, None]
    table.geometry[:, ROTATIONS] = (1, 0, 0, 0)
    table.geometry[:, OPACITY_LOGITS] = gaussians.logit(np.array(opacities))
    table.geometry[:, VISITS] = 4
    table.geometry[:, GRADIENT_SUM] = 4 * np.array(gradients)
    table.geometry[:, ABSOLUTE_SUM] = 4 * np.array(gradients)
    table.harmonics[:, 0] = np.arange(len(scales))
    for moments in (table.geometry_moments, table.harmonics_first, table.harmonics_second):
        moments[:] = 1
    return table


def settings(**changes: Any) -> DensifySettings:
    return DensifySettings(**({"extent": 1.0, "strategy": "3dgs"} | changes))


def grown(table: Table, step: int = 600, **changes: Any) -> tuple[Table, Any]:
    return performed(Densifier(settings(**changes)), step, table)


def performed(densifier: Densifier, step: int, table: Table) -> tuple[Table, Any]:
    assert densifier.strategy.plan is not None
    operation = densifier.strategy.plan(table, densifier.rule(step))
    return operation.perform(table, HANDS), operation.change


# ---- statistics and criteria ------------------------------------------------------------------------------
def test_statistics_are_means_over_visits_and_zero_without_any() -> None:
    table = table_of([SMALL] * 2, [0.5] * 2, [3e-4, 0.0])
    table.geometry[1, VISITS] = 0
    read = statistics.read(table)
    assert read.gradient == pytest.approx([3e-4, 0.0])


def test_the_gradient_criterion_includes_its_threshold() -> None:
    values = np.array([1e-4, 2e-4, 3e-4], np.float32)
    assert gradient_criterion(Statistics(values, values), 2e-4).chosen.tolist() == [False, True, True]


def test_the_absolute_criterion_adds_as_large_a_share_again() -> None:
    gradient = np.array([9e-4] + [0] * 9, np.float32)  # one in ten
    absolute = np.arange(10, dtype=np.float32)  # quantile(0.9) of 0..9 is 8.1
    chosen = absolute_criterion(Statistics(gradient, absolute), 2e-4).chosen
    assert np.flatnonzero(chosen).tolist() == [0, 9]


def test_without_any_candidate_the_largest_absolute_gradient_is_still_one() -> None:
    nothing = np.zeros(5, np.float32)
    absolute = np.array([0, 3, 1, 2, 0], np.float32)
    assert np.flatnonzero(absolute_criterion(Statistics(nothing, absolute), 2e-4).chosen).tolist() == [1]


@pytest.mark.parametrize("fraction", [0.0, 0.123, 0.5, 0.95, 1.0])
def test_the_quantile_is_numpys_linear_one(fraction: float) -> None:
    values = np.random.default_rng(1).random(997).astype(np.float32)
    assert quantile(values, fraction) == pytest.approx(
        np.quantile(values.astype(np.float64), fraction), rel=1e-12
    )


def test_a_budget_takes_the_most_urgent_and_breaks_ties_by_row() -> None:
    candidates = Candidates(np.array([True, True, False, True, True]), np.array([1.0, 3.0, 9.0, 3.0, 2.0]))
    everyone = np.ones(5, bool)
    assert np.flatnonzero(within_budget(candidates, everyone, 2)).tolist() == [1, 3]
    assert np.flatnonzero(within_budget(candidates, everyone, 1)).tolist() == [1]
    assert not within_budget(candidates, everyone, -3).any()


# ---- surgery ----------------------------------------------------------------------------------------------
def test_small_candidates_are_cloned_exactly_with_fresh_moments() -> None:
    table, change = grown(table_of([SMALL, SMALL], [0.5, 0.6], [1e-3, 0.0]))
    assert (change.cloned, change.split, change.pruned) == (1, 0, 0)
    assert table.harmonics[:, 0].tolist() == [0, 0, 1]
    assert table.geometry[0, MEANS].tolist() == table.geometry[1, MEANS].tolist()
    assert sorted(table.geometry_moments[:2, 0].tolist()) == [0, 1]
    assert not table.geometry[:, [GRADIENT_SUM, ABSOLUTE_SUM, VISITS]].any()


def test_large_candidates_become_two_smaller_children_of_the_same_opacity() -> None:
    table, change = grown(table_of([LARGE, LARGE], [0.5, 0.6], [1e-3, 0.0]))
    assert (change.cloned, change.split, change.pruned) == (0, 1, 0)
    children = table.harmonics[:, 0] == 0
    assert children.sum() == 2 and table.count == 3
    assert np.exp(table.geometry[children, LOG_SCALES]) == pytest.approx(LARGE / 1.6)
    assert gaussians.opacities(table)[children] == pytest.approx(0.5)
    assert not table.geometry_moments[children].any()
    assert table.geometry_moments[~children].all()


def test_children_scatter_like_their_parent_along_its_turned_axes() -> None:
    count = 20_000
    table = empty_table(count)
    table.geometry[:, LOG_SCALES] = np.log([0.3, 0.02, 0.1])
    half = math.radians(90) / 2
    table.geometry[:, ROTATIONS] = (
        np.array([math.cos(half), 0, 0, math.sin(half)]) * 2.5
    )  # about z, any length
    nobody = np.zeros(count, bool)
    surgery = Surgery(nobody, nobody, ~nobody, Change(0, count, 0), seed=2)
    children = surgery.perform(table, HANDS)
    # 40 000 draws: the standard error of a standard deviation is 0.35 %
    assert children.geometry[:, MEANS].std(axis=0) == pytest.approx([0.02, 0.3, 0.1], rel=0.02)
    assert abs(children.geometry[:, MEANS].mean(axis=0)).max() < 0.01


def test_rotation_matrices_turn_right_handed() -> None:
    half = math.radians(90) / 2
    about_x = np.array([[math.cos(half), math.sin(half), 0, 0]], np.float32)
    assert rotation_matrices(about_x)[0] @ [0, 1, 0] == pytest.approx([0, 0, 1], abs=1e-6)


def test_rows_come_out_in_the_backends_order() -> None:
    table = table_of([SMALL] * 4, [0.5] * 4, [0.0] * 4)
    table.geometry[:, 0] = [3, 1, 2, 0]
    result = removal(np.zeros(4, bool)).perform(table, HANDS)
    assert result.geometry[:, 0].tolist() == [0, 1, 2, 3]
    assert result.harmonics[:, 0].tolist() == [3, 1, 2, 0]


def test_children_are_placed_by_seed_step_and_row_alone() -> None:
    def places(step: int = 600, seed: int = 0, rows: int = 3) -> np.ndarray:
        table = table_of([LARGE] * rows, [0.5] * rows, [1e-3] * rows)
        return grown(table, step, seed=seed)[0].geometry[:, MEANS]

    np.testing.assert_array_equal(places(), places())
    assert set(places().ravel()) <= set(places(rows=5).ravel())  # whoever else is split
    assert not set(places().ravel()) & set(places(step=700).ravel())
    assert not set(places().ravel()) & set(places(seed=1).ravel())


# ---- pruning and budget -----------------------------------------------------------------------------------
def test_faint_rows_go_and_their_copies_with_them() -> None:
    table, change = grown(table_of([SMALL, LARGE, SMALL], [0.004, 0.004, 0.006], [1e-3, 1e-3, 0.0]))
    assert table.harmonics[:, 0].tolist() == [2]
    assert (change.cloned, change.split, change.pruned) == (1, 1, 4)


def test_the_size_prune_is_off_unless_asked_for_and_waits_for_the_first_reset() -> None:
    def rows(step: int, size_prune: bool) -> int:
        return grown(table_of([HUGE, SMALL], [0.5, 0.5], [0.0, 0.0]), step, size_prune=size_prune)[0].count

    assert rows(3100, False) == 2
    assert rows(3000, True) == 2
    assert rows(3100, True) == 1


def test_children_small_enough_survive_the_size_prune_of_their_parent() -> None:
    table, change = grown(table_of([0.15], [0.5], [1e-3]), 3100, size_prune=True)
    assert table.count == 2 and change.pruned == 0
    table, change = grown(table_of([0.17], [0.5], [1e-3]), 3100, size_prune=True)
    assert table.count == 0 and change.pruned == 2


def test_rows_that_are_no_numbers_go() -> None:
    table = table_of([SMALL] * 3, [0.5] * 3, [0.0] * 3)
    table.geometry[0, 1] = np.nan
    table.geometry[2, OPACITY_LOGITS] = np.nan
    assert grown(table)[0].harmonics[:, 0].tolist() == [1]


def test_rows_whose_colour_is_no_number_go() -> None:
    table = table_of([SMALL] * 3, [0.5] * 3, [0.0] * 3)
    table.harmonics[0, 47] = np.nan
    table.harmonics[2, [3, 4]] = np.inf, -np.inf
    assert grown(table)[0].harmonics[:, 0].tolist() == [1]


def test_a_budget_that_does_not_bind_changes_nothing() -> None:
    """A parent too large for the size prune, whose children are not, is split with and without a budget."""
    counts = [
        grown(table_of([0.15], [0.5], [1e-3]), 3100, size_prune=True, max_gaussians=budget)[0].count
        for budget in (None, 100)
    ]
    assert counts == [2, 2]


def test_the_budget_is_kept_and_spent_on_the_largest_gradients() -> None:
    table, change = grown(
        table_of([SMALL, LARGE, SMALL, LARGE], [0.5] * 4, [3e-4, 9e-4, 5e-4, 4e-4]), max_gaussians=6
    )
    assert table.count == 6
    assert sorted(table.harmonics[:, 0].tolist()) == [0, 1, 1, 2, 2, 3]
    assert (change.cloned, change.split) == (1, 1)


def test_what_is_pruned_makes_room_in_the_budget() -> None:
    table, _ = grown(table_of([SMALL] * 3, [0.001, 0.5, 0.5], [0.0, 1e-3, 0.0]), max_gaussians=3)
    assert sorted(table.harmonics[:, 0].tolist()) == [1, 1, 2]


def test_a_table_over_budget_does_not_grow_and_is_not_cut() -> None:
    table, change = grown(table_of([SMALL] * 3, [0.5] * 3, [1e-3] * 3), max_gaussians=2)
    assert table.count == 3 and change.cloned == 0


def test_an_empty_table_stays_empty() -> None:
    for strategy in ("3dgs", "gof"):
        table, change = grown(empty_table(0), strategy=strategy)
        assert table.count == 0 and change.cloned == change.split == change.pruned == 0


def test_aggressive_pruning_takes_what_is_below_its_threshold() -> None:
    threshold = Densifier(settings(aggressive_opacity=0.05)).lowest_opacity(aggressive=True)
    table = table_of([SMALL] * 3, [0.04, 0.06, 0.5], [0.0] * 3)
    operation = removal(prune.faint(table, threshold))
    table = operation.perform(table, HANDS)
    assert table.harmonics[:, 0].tolist() == [1, 2] and operation.change.pruned == 1
    assert table.geometry_moments.all()


# ---- the schedule -----------------------------------------------------------------------------------------
def test_a_default_run_densifies_144_times_and_resets_four_times() -> None:
    densifier = Densifier(DensifySettings(extent=1.0))
    growing = [step for step in range(1, 30_001) if densifier.grows_at(step)]
    assert (growing[0], growing[-1], len(growing)) == (600, 14_900, 144)
    assert [step for step in range(1, 30_001) if densifier.resets_at(step)] == [3000, 6000, 9000, 12_000]


def test_a_white_background_adds_a_reset_at_the_first_densification_step() -> None:
    densifier = Densifier(settings(white_background=True))
    assert densifier.resets_at(500) and not densifier.grows_at(500)


def test_without_densification_nothing_grows_and_nothing_is_reset() -> None:
    densifier = Densifier(settings(strategy="none"))
    assert not any(densifier.grows_at(step) or densifier.resets_at(step) for step in range(1, 15_000, 100))


def test_aggressive_pruning_waits_after_a_reset_and_goes_on_after_densification() -> None:
    densifier = Densifier(settings(aggressive_opacity=0.05, aggressive_interval=300))
    pruning = [step for step in range(1, 4000) if densifier.prunes_at(step)]
    assert 3000 in pruning  # the reset comes after the pruning of the same step
    assert 3300 not in pruning and 3600 in pruning
    assert densifier.prunes_at(29_700)


# ---- the opacity reset ------------------------------------------------------------------------------------
def test_a_reset_limits_the_filtered_opacity_and_leaves_fainter_ones_alone() -> None:
    table = table_of([0.05, 0.05, 0.001], [0.9, 0.004, 0.9], [0.0] * 3)
    table.geometry[:, FILTER_3D] = 0.02
    before = table.geometry.copy()
    filtered = gaussians.filtered_opacities(table)
    prune.reset_opacities(table)
    assert gaussians.filtered_opacities(table) == pytest.approx(np.minimum(filtered, 0.01), rel=1e-5)
    assert table.geometry[1, OPACITY_LOGITS] == before[1, OPACITY_LOGITS]
    assert gaussians.opacities(table)[0] > 0.01  # stored: divided by the filter's coefficient


def test_a_reset_forgets_the_moments_of_opacities_only() -> None:
    table = table_of([SMALL], [0.9], [0.0])
    prune.reset_opacities(table)
    assert table.geometry_moments[0, OPACITY_LOGITS] == 0
    assert table.geometry_moments[0, SECOND_GEOMETRY + OPACITY_LOGITS] == 0
    assert table.geometry_moments[0, 0] == 1 and table.harmonics_first.all()


def test_a_reset_is_safe_for_opaque_and_collapsed_gaussians() -> None:
    table = table_of([1e-20, SMALL], [0.5, 0.5], [0.0, 0.0])
    table.geometry[:, OPACITY_LOGITS] = 40.0  # sigmoid is 1 in float32
    table.geometry[:, FILTER_3D] = 0.01
    prune.reset_opacities(table)
    assert np.isfinite(table.geometry[:, OPACITY_LOGITS]).all()
