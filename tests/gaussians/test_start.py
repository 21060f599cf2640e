"""From a point cloud to Gaussians, and the filter they get from the cameras."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from splatmeter.errors import InputError
from splatmeter.gaussians.filter3d import refresh
from splatmeter.gaussians.initialize import from_points
from splatmeter.ops import (
    F32,
    FILTER_3D,
    LAST_UPDATE,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    Pinhole,
    empty_table,
)


@dataclass
class Cloud:
    positions: F32
    colors: Any


def neighbours(points: F32) -> F32:
    squared = ((points[:, None] - points[None]) ** 2).sum(2)
    return np.sort(squared, axis=1)[:, 1:4].mean(1)


def backend() -> Any:
    """Brute force stands in for the real operations."""
    return SimpleNamespace(
        neighbour_distance=neighbours, morton_order=lambda means: np.argsort(means[:, 0], kind="stable")
    )


def cloud(count: int, seed: int = 0) -> Cloud:
    generator = np.random.default_rng(seed)
    return Cloud(
        generator.normal(size=(count, 3)).astype(np.float32),
        generator.integers(0, 256, (count, 3), dtype=np.uint8),
    )


def camera(fx: float) -> Pinhole:
    return Pinhole(np.eye(3), np.zeros(3), fx, 2 * fx, 50, 50, 100, 100)


def test_the_start_is_the_published_one() -> None:
    points = cloud(20)
    table = from_points(points, backend())
    order = np.argsort(points.positions[:, 0], kind="stable")
    assert table.trainable
    np.testing.assert_array_equal(table.geometry[:, MEANS], points.positions[order])
    np.testing.assert_allclose(
        np.exp(table.geometry[:, LOG_SCALES]),
        np.sqrt(neighbours(points.positions[order]))[:, None].repeat(3, 1),
        rtol=1e-5,
    )
    assert (table.geometry[:, ROTATIONS] == (1, 0, 0, 0)).all()
    np.testing.assert_allclose(table.geometry[:, OPACITY_LOGITS], -2.1972246, rtol=1e-6)
    expected = (points.colors[order] / 255 - 0.5) / 0.28209479177387814
    np.testing.assert_allclose(table.harmonics[:, :3], expected, rtol=1e-6)
    assert not table.harmonics[:, 3:].any() and not table.geometry[:, LAST_UPDATE].any()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_very_small_clouds_get_a_finite_size(count: int) -> None:
    table = from_points(cloud(count), backend())
    assert table.count == count
    assert np.isfinite(table.geometry).all()


def test_coinciding_points_get_the_smallest_size() -> None:
    points = Cloud(np.zeros((6, 3), np.float32), np.zeros((6, 3), np.uint8))
    table = from_points(points, backend())
    np.testing.assert_allclose(np.exp(table.geometry[:, LOG_SCALES]), math.sqrt(1e-7), rtol=1e-5)


def test_an_empty_or_broken_cloud_is_refused() -> None:
    with pytest.raises(InputError, match="no points"):
        from_points(cloud(0), backend())
    broken = cloud(5)
    broken.positions[3, 1] = np.nan
    with pytest.raises(InputError, match="1 of 5"):
        from_points(broken, backend())


def test_the_filter_uses_the_nearest_depth_and_the_largest_focal_length() -> None:
    table = empty_table(3)
    refresh(table, [camera(100), camera(400)], lambda means, cameras: np.array([2, np.inf, 5], np.float32))
    expected = np.array([2, 5, 5]) / 400 * math.sqrt(0.2)
    np.testing.assert_allclose(table.geometry[:, FILTER_3D], expected, rtol=1e-6)


@pytest.mark.parametrize("cameras", [[], [camera(100)]])
def test_a_cloud_nobody_sees_gets_no_filter(cameras: Sequence[Pinhole]) -> None:
    table = empty_table(3)
    table.geometry[:, FILTER_3D] = 7
    refresh(table, cameras, lambda means, cameras: np.full(3, np.inf, np.float32))
    assert not table.geometry[:, FILTER_3D].any()
