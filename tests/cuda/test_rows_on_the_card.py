"""Passes over all rows against the CPU engine: settling, exploring, the 3D filter, resets, summaries."""

from __future__ import annotations

import numpy as np
import pytest
from parity_scenes import camera, random_table
from test_against_cpu import behind, distance
from twins import ARRAYS, CardTwin, NativeTwin, arrays_of, camera_row, copied

from splatmeter import _native  # type: ignore[attr-defined]
from splatmeter.densify import prune
from splatmeter.gaussians import gaussians
from splatmeter.ops import Table

KEYS = [123456789, 987654321, 5, 4_000_000_000, 77]


@pytest.mark.parametrize(("count", "steps"), [(1, 3), (300, 9), (300, 700)])
def test_settling_agrees(card: CardTwin, cpu: NativeTwin, count: int, steps: int) -> None:
    """After 700 steps some rows are older than the tables."""
    table = random_table(count)
    owed = behind(table, steps)
    card.put(table, owed)
    cpu.put(table, owed)
    card.card.settle()
    cpu.engine.settle(cpu.handle)
    found, expected = card.get(), cpu.get()
    for name in ARRAYS:
        assert distance(getattr(found, name), getattr(expected, name)) <= 1e-6, name
    assert (found.geometry[:, 15] == steps).all()


def test_nothing_owed_means_nothing_settled(card: CardTwin) -> None:
    table = random_table(20)
    behind(table, 5)
    card.put(table)
    card.card.settle()
    for found, before in zip(arrays_of(card.get()), arrays_of(table), strict=True):
        np.testing.assert_array_equal(found, before)


def test_exploring_draws_the_same_numbers(card: CardTwin, cpu: NativeTwin) -> None:
    table = random_table(500)
    owed = behind(table, 9)
    table.geometry[::2, 10] = -6  # faint: noise reaches them
    numbers = (50.0, 0.01, 0.02, 1e-2, 2e-2, 30.0)
    card.put(table, owed)
    cpu.put(table, owed)
    card.card.explore(KEYS, *numbers)
    cpu.engine.explore(cpu.handle, KEYS, *numbers)
    found, expected = card.get().geometry, cpu.get().geometry
    moved = expected[:, :3] - table.geometry[:, :3]
    assert 100 < (np.abs(moved) > 1e-4).any(axis=1).sum() < 500
    np.testing.assert_allclose(found[:, :3] - table.geometry[:, :3], moved, rtol=2e-4, atol=2e-6)
    np.testing.assert_allclose(found[:, 3:], expected[:, 3:], rtol=2e-6, atol=2e-6)


def filter_of(cpu: NativeTwin, table: Table, cameras: list) -> tuple[np.ndarray, int]:
    distances = np.full(table.count, np.inf, np.float32)
    rows = np.array([camera_row(one) for one in cameras])
    cpu.engine.sampling_distance(np.ascontiguousarray(table.geometry[:, :3]), rows, distances)
    seen = np.isfinite(distances)
    if not seen.any():
        return np.zeros_like(distances), 0
    focal = max(one.fx for one in cameras)
    return np.where(seen, distances, distances[seen].max()) * np.float32(np.sqrt(0.2) / focal), int(
        seen.sum()
    )


@pytest.mark.parametrize("cameras", [1, 3, 70])
def test_the_3d_filter_agrees(card: CardTwin, cpu: NativeTwin, cameras: int) -> None:
    """70 cameras come in three portions."""
    table = random_table(700)
    table.geometry[:, :3] *= 4
    views = [camera(60 + k, 40, seed=k) for k in range(cameras)]
    expected, seen = filter_of(cpu, table, views)
    card.put(table)
    assert card.card.refresh_filter([camera_row(view) for view in views]) == seen > 0
    found = card.get()
    np.testing.assert_allclose(found.geometry[:, 11], expected, rtol=1e-6)
    table.geometry[:, 11] = found.geometry[:, 11]
    for one, two in zip(arrays_of(found), arrays_of(table), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_filter_nobody_sees_is_zero(card: CardTwin) -> None:
    table = random_table(10)
    table.geometry[:, :3] = 1e6
    for views in ([], [camera(60, 40)]):
        card.put(table)
        assert card.card.refresh_filter([camera_row(view) for view in views]) == 0
        assert (card.get().geometry[:, 11] == 0).all()


def test_resetting_opacities_agrees(card: CardTwin) -> None:
    table = random_table(300)
    behind(table, 0)
    table.geometry[::5, 3] = -25  # one axis has collapsed: the filter takes all opacity
    expected = copied(table)
    prune.reset_opacities(expected)
    card.put(table)
    card.card.reset_opacities()
    found = card.get()
    assert 0 < (expected.geometry[:, 10] != table.geometry[:, 10]).sum() < 300
    np.testing.assert_allclose(found.geometry[:, 10], expected.geometry[:, 10], rtol=2e-6, atol=2e-6)
    np.testing.assert_array_equal(found.geometry_moments, expected.geometry_moments)
    assert (gaussians.filtered_opacities(found) <= 0.01 * (1 + 1e-5)).all()


@pytest.mark.parametrize("count", [0, 1, 700])
def test_the_summary_agrees(card: CardTwin, count: int) -> None:
    table = random_table(count)
    table.geometry[3::50, 2], table.harmonics[4::50, 47] = np.nan, np.inf
    card.put(table)
    opacity, finite = card.card.summary()
    assert opacity == pytest.approx(gaussians.mean_opacity(table), rel=1e-12)
    assert finite == gaussians.finite_rows(table).sum()


@pytest.mark.slow
def test_sums_over_many_blocks_agree(card: CardTwin) -> None:
    """More than 256 blocks: the last sum's loop turns twice."""
    table = random_table(70_000)
    card.put(table)
    assert card.card.summary()[0] == pytest.approx(gaussians.mean_opacity(table), rel=1e-12)
    assert card.card.refresh_filter([camera_row(camera(60, 40))]) > 0


def test_rows_out_of_range_are_refused(card: CardTwin) -> None:
    card.put(random_table(5))
    arrays = [np.empty((3, width), np.float32) for width in (16, 48, 24, 48, 48)]
    with pytest.raises(ValueError, match="out of range"):
        card.card.download(3, *arrays)
    card.card.download(2, *arrays)
    np.testing.assert_array_equal(arrays[0], random_table(5).geometry[2:])
    assert issubclass(_native.CardError, RuntimeError)
