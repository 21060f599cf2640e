from __future__ import annotations

import math

import numpy as np
import pytest
from test_densify import HANDS, LARGE, SMALL, grown, settings, table_of

from splatmeter.backend import Backend, Change
from splatmeter.backends import registry
from splatmeter.densify.densifier import Densifier
from splatmeter.densify.division import CUT
from splatmeter.densify.surgery import Surgery
from splatmeter.gaussians import gaussians
from splatmeter.ops import (
    FILTER_3D,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    Pinhole,
    RasterSettings,
    Table,
)

NOBODY = np.zeros(1, bool)


def long_table(opacity: float = 0.9) -> Table:
    """One Gaussian with its longest axis turned from x to y."""
    table = table_of([1.0], [opacity], [0.0])
    table.geometry[:, LOG_SCALES] = np.log([0.3, 0.1, 0.02])
    half = math.radians(90) / 2
    table.geometry[:, ROTATIONS] = np.array([math.cos(half), 0, 0, math.sin(half)]) * 3  # any length
    return table


def halves(table: Table) -> Table:
    return Surgery(NOBODY, NOBODY, ~NOBODY, Change(0, 1, 0), division=CUT).perform(table, HANDS)


def test_halves_lie_on_both_sides_along_the_longest_axis() -> None:
    cut = halves(long_table())
    assert sorted(cut.geometry[:, 1].tolist()) == pytest.approx([-0.24, 0.24])
    assert np.abs(cut.geometry[:, [0, 2]]).max() < 1e-6


def test_halves_are_shorter_most_of_all_in_that_axis_and_fainter() -> None:
    cut = halves(long_table())
    assert np.exp(cut.geometry[:, LOG_SCALES]) == pytest.approx(np.array([[0.18, 0.08, 0.016]] * 2))
    assert gaussians.opacities(cut) == pytest.approx(0.9 * 0.83)
    assert not cut.geometry_moments.any()


def test_small_candidates_are_cut_as_well_and_nothing_is_cloned() -> None:
    table, change = grown(table_of([SMALL, LARGE, LARGE], [0.5] * 3, [1e-3, 1e-3, 0.0]), strategy="cut")
    assert (change.cloned, change.split, change.pruned, table.count) == (0, 2, 0, 5)


def test_the_size_prune_looks_at_the_halves() -> None:
    """Both are above the limit of 0.1; of the first one halves are not."""
    table = table_of([1.0, 1.0], [0.5] * 2, [1e-3, 1e-3])
    table.geometry[:, LOG_SCALES] = np.log([[0.15, 0.05, 0.05], [0.15, 0.14, 0.05]])
    _, change = grown(table, step=4000, strategy="cut", size_prune=True)
    assert (change.split, change.pruned) == (2, 2)


def test_cutting_draws_nothing() -> None:
    first, _ = grown(table_of([LARGE] * 3, [0.5] * 3, [1e-3] * 3), strategy="cut", seed=1)
    second, _ = grown(table_of([LARGE] * 3, [0.5] * 3, [1e-3] * 3), strategy="cut", seed=2)
    assert np.array_equal(first.geometry, second.geometry)


@pytest.mark.parametrize("opacity", [0.1, 0.6])
def test_two_halves_add_no_light_and_keep_most_of_it(opacity: float) -> None:
    """An exact copy of a faint Gaussian would nearly double it."""
    backend: Backend = registry.backend("native", 1)
    camera = Pinhole(np.eye(3), np.array([0.0, 0.0, 2.0]), 80.0, 80.0, 32.0, 32.0, 64, 64)
    settings = RasterSettings(sh_degree=0)
    whole = long_table(opacity)
    whole.geometry[:, FILTER_3D] = 0
    whole.harmonics[:, :3] = 1.0
    before = backend.upload(whole).render(camera, settings).color.sum()
    after = backend.upload(halves(whole)).render(camera, settings).color.sum()
    assert 0.65 < after / before < 1.0


def test_opacities_of_one_and_zero_stay_numbers_or_go() -> None:
    table = table_of([LARGE] * 2, [0.5] * 2, [1e-3] * 2)
    table.geometry[:, OPACITY_LOGITS] = [80, -80]
    result, change = grown(table, strategy="cut")
    assert result.count == 2 and change.pruned == 2
    assert gaussians.opacities(result) == pytest.approx(0.83)
    assert np.isfinite(result.geometry[:, MEANS]).all()


def test_the_threshold_goes_with_the_sixth_root_of_the_loss() -> None:
    densifier = Densifier(settings(threshold=3e-4, reference_loss=0.06))
    assert densifier.rule(600, loss=0.06).threshold == pytest.approx(3e-4)
    assert densifier.rule(600, loss=0.06 / 64).threshold == pytest.approx(1.5e-4)
    assert densifier.rule(600).threshold == 3e-4, "before anything is known"


def test_without_a_reference_the_threshold_is_fixed() -> None:
    assert Densifier(settings(threshold=3e-4)).rule(600, loss=0.5).threshold == 3e-4
