"""The reference's answers about points in space, and its surgery, against plain statements of both."""

from __future__ import annotations

import numpy as np
import pytest
from parity_scenes import camera, copied, random_table

from splatmeter.backends.reference import reference_kernels
from splatmeter.ops import Pinhole, empty_table

torch = pytest.importorskip("torch", reason="torch is not installed: the reference backend was not checked")


def seen_depth(point: np.ndarray, view: Pinhole) -> float:
    x, y, z = view.rotation @ point + view.translation
    if z <= 0.2:
        return np.inf
    u, v = x / z * view.fx + view.cx, y / z * view.fy + view.cy
    inside = -0.15 * view.width <= u <= 1.15 * view.width and -0.15 * view.height <= v <= 1.15 * view.height
    return float(z) if inside else np.inf


def test_sampling_distance_is_the_smallest_depth_over_the_cameras_that_see_the_point() -> None:
    means = np.random.default_rng(0).normal(size=(300, 3)) * 3
    cameras = [camera(40, 30, seed) for seed in range(3)] + [camera(40, 30, 7, shift=(0.3, -0.2))]
    expected = [min(seen_depth(point, view) for view in cameras) for point in means]
    found = reference_kernels(torch.float64).sampling_distance(means, cameras)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.isinf(found).any()
    assert np.isfinite(found).any()


def test_without_cameras_nobody_sees_anything() -> None:
    assert np.isinf(reference_kernels().sampling_distance(np.zeros((4, 3), np.float32), [])).all()


def test_neighbour_distance_is_the_mean_of_three_squared_distances() -> None:
    points = np.random.default_rng(1).normal(size=(700, 3))
    points[10] = points[11]  # duplicates are neighbours at distance 0
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=-1)
    np.fill_diagonal(squared, np.inf)
    expected = np.sort(squared, axis=1)[:, :3].mean(axis=1)
    np.testing.assert_allclose(
        reference_kernels(torch.float64).neighbour_distance(points), expected, rtol=1e-12
    )


def test_few_points_have_fewer_neighbours() -> None:
    backend = reference_kernels()
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 3, 0]], np.float32)
    assert backend.neighbour_distance(points[:0]).shape == (0,)
    assert backend.neighbour_distance(points[:1]).tolist() == [0]
    assert backend.neighbour_distance(points[:2]).tolist() == [1, 1]
    assert backend.neighbour_distance(points).tolist() == [5, 5.5, 9.5]


@pytest.mark.parametrize("count", [0, 1, 2000])
def test_morton_order_is_a_permutation_that_keeps_neighbours_together(count: int) -> None:
    means = np.random.default_rng(2).normal(size=(count, 3)).astype(np.float32)
    order = reference_kernels().morton_order(means)
    np.testing.assert_array_equal(np.sort(order), np.arange(count))
    if count > 100:
        jumps = np.linalg.norm(np.diff(means[order], axis=0), axis=1).mean()
        assert jumps < 0.3 * np.linalg.norm(np.diff(means, axis=0), axis=1).mean()


def test_rearranged_rows_keep_their_moments_and_fresh_ones_lose_them() -> None:
    table = random_table(6)
    generator = np.random.default_rng(3)
    for array in (table.geometry_moments, table.harmonics_first, table.harmonics_second):
        array[:] = generator.normal(size=array.shape)
    table.geometry[:, 12:16] = generator.integers(1, 9, (6, 4))
    before = copied(table)
    source, fresh = np.array([5, 0, 0, 3]), np.array([False, False, True, False])
    result = reference_kernels().rearrange(table, source, fresh)
    np.testing.assert_array_equal(result.geometry[:, :12], before.geometry[source, :12])
    np.testing.assert_array_equal(result.harmonics, before.harmonics[source])
    assert not result.geometry[:, 12:15].any()
    np.testing.assert_array_equal(result.geometry[:, 15], before.geometry[source, 15])
    for name in ("geometry_moments", "harmonics_first", "harmonics_second"):
        np.testing.assert_array_equal(getattr(result, name)[~fresh], getattr(before, name)[source[~fresh]])
        assert not getattr(result, name)[fresh].any()
    assert table.count == 0  # the old arrays were let go


def test_a_model_without_moments_can_be_rearranged() -> None:
    result = reference_kernels().rearrange(
        empty_table(4, trainable=False), np.array([1, 1]), np.array([True, False])
    )
    assert result.count == 2
    assert not result.trainable
