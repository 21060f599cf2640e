"""Noise and pull of 3DGS-MCMC: native against reference, and both against what they promise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from parity_scenes import copied
from pending_tables import pending_after

from splatmeter.backends.kernels import Exploration, Kernels
from splatmeter.backends.lazy_adam import lazy
from splatmeter.ops import (
    FILTER_3D,
    LAST_UPDATE,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    Rates,
    Table,
    empty_table,
)

RATES = Rates(mean=1e-3, harmonics_dc=2.5e-3, harmonics_rest=1.25e-4, opacity=0.05, scale=5e-3, rotation=1e-3)


def exploration(number: int = 70, seed: int = 3, **changes: float) -> Exploration:
    weights = {"noise": 5e5, "opacity_weight": 1e-5, "scale_weight": 1e-5} | changes
    return Exploration(seed, number, 10, RATES, **weights)


def some_table(count: int, opacity: float | None = None) -> Table:
    generator = np.random.default_rng(5)
    table = lazy(empty_table(count))
    table.geometry[:, : FILTER_3D + 1] = generator.normal(size=(count, FILTER_3D + 1))
    table.geometry[:, LOG_SCALES] -= 4
    table.geometry[:, OPACITY_LOGITS] = generator.normal(-3, 2, count)
    if opacity is not None:
        table.geometry[:, OPACITY_LOGITS] = np.log(opacity / (1 - opacity))
    table.geometry[:, LAST_UPDATE] = generator.integers(40, 71, count)
    table.geometry_moments[:, 12:] = 10.0 ** generator.uniform(-8, -3, (count, 12))
    table.pending = pending_after(70, RATES)
    return table


def reference() -> Kernels:
    pytest.importorskip("torch", reason="torch is not installed: the native engine was not compared with it")
    from splatmeter.backends.reference import reference_kernels

    return reference_kernels()


@pytest.mark.parametrize("count", [0, 1, 7, 8, 1003])
def test_native_and_reference_explore_alike(native: Kernels, count: int) -> None:
    before = some_table(count)
    ours, theirs = copied(before), copied(before)
    native.explore(ours, exploration())
    reference().explore(theirs, exploration())
    difference = np.abs(ours.geometry.astype(np.float64) - theirs.geometry)
    farthest = np.abs(theirs.geometry - before.geometry).max(axis=1, initial=0, keepdims=True)  # [N, 1]
    assert np.all(difference <= 2e-4 * farthest + 2e-6)  # rows of the noisiest move by hundreds
    for name in ("harmonics", "geometry_moments", "harmonics_first", "harmonics_second"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(before, name))


def test_the_draws_do_not_depend_on_threads_but_on_seed_step_and_row(
    native_with: Callable[[int], Kernels],
) -> None:
    found = []
    same, later, other_seed = exploration(), exploration(71), exploration(seed=4)
    for threads, chosen in ((1, same), (3, same), (1, later), (1, other_seed)):
        table = some_table(5000)
        native_with(threads).explore(table, chosen)
        found.append(table.geometry.copy())
    np.testing.assert_array_equal(found[0], found[1])
    for other in found[2:]:
        assert np.mean(found[0][:, MEANS] == other[:, MEANS]) < 0.7  # the opaque ones have no noise at all


def test_noise_has_the_shape_of_the_covariance_squared_and_spares_opaque_ones(native: Kernels) -> None:
    count = 40_000
    table = some_table(count, opacity=0.005)  # where the gate is one half
    table.geometry[:, MEANS] = 0
    table.geometry[:, LOG_SCALES] = np.log([0.3, 0.1, 0.02])
    table.geometry[:, ROTATIONS] = (2.0, 0, 0, 2.0)  # a quarter turn about z, any length
    native.explore(table, exploration(noise=100, opacity_weight=0, scale_weight=0))
    expected = 0.5 * 100 * RATES.mean * np.sqrt(10) * np.array([0.1, 0.3, 0.02]) ** 2
    moved = table.geometry[:, MEANS].astype(np.float64)
    assert moved.std(axis=0) == pytest.approx(expected, rel=0.02)  # five standard errors
    assert np.abs(moved.mean(axis=0) / expected).max() < 0.025
    normal = moved / expected
    assert np.mean(normal**4, axis=0) == pytest.approx([3, 3, 3], abs=0.3)
    assert np.abs(np.corrcoef(normal.T) - np.eye(3)).max() < 0.025
    opaque = some_table(100, opacity=0.5)
    before = opaque.geometry[:, MEANS].copy()
    native.explore(opaque, exploration(opacity_weight=0, scale_weight=0))
    np.testing.assert_array_equal(opaque.geometry[:, MEANS], before)


def test_the_pull_makes_gaussians_fainter_and_smaller_and_never_faster_than_adam(native: Kernels) -> None:
    table = some_table(1000)
    before = table.geometry.copy()
    native.explore(table, exploration(noise=0))
    fainter = before[:, OPACITY_LOGITS] - table.geometry[:, OPACITY_LOGITS]
    smaller = before[:, LOG_SCALES] - table.geometry[:, LOG_SCALES]
    assert fainter.min() > 0 and fainter.max() <= 10 * RATES.opacity * 1.0001
    assert smaller.min() >= 0 and smaller.max() <= 10 * RATES.scale * 1.0001
    np.testing.assert_array_equal(table.geometry[:, MEANS], before[:, MEANS])
