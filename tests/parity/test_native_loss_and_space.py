"""The native engine's loss, distances, order and surgery against the reference's."""

from __future__ import annotations

import numpy as np
import pytest
from parity_scenes import camera, copied, random_table

from splatmeter.backends.kernels import Kernels
from splatmeter.ops import empty_table

pytest.importorskip("torch", reason="torch is not installed: the native engine was not compared with it")
from agreement import EXACT


def pictures(width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """A photo of smooth and rough parts, and a rendering that is close in some places and off in others."""
    generator = np.random.default_rng(width)
    smooth = np.linspace(0, 255, height)[None, :, None] * np.linspace(0.2, 1, width)[None, None, :]
    noise = generator.normal(size=(3, height, width)) * np.linspace(0, 60, width)
    photo = np.clip(smooth + noise, 0, 255).astype(np.uint8)
    rendered = photo / 255 + generator.normal(size=photo.shape) * 0.1
    return rendered.astype(np.float32), photo


@pytest.mark.parametrize("size", [(1, 1), (7, 5), (33, 17), (100, 64), (131, 97)])
@pytest.mark.parametrize("weight", [0.0, 0.2, 1.0])
def test_the_loss_and_its_gradient_agree(native: Kernels, size: tuple[int, int], weight: float) -> None:
    rendered, photo = pictures(*size)
    ours, our_gradient = native.image_loss(rendered, photo, weight)
    theirs, their_gradient = EXACT.image_loss(rendered, photo, weight)
    # E[x^2] - mu^2 in float32 is good to 1e-7, beside a constant of 9e-4 below it: 1e-4 of a pixel's SSIM
    assert ours.l1 == pytest.approx(theirs.l1, rel=1e-5)
    assert ours.ssim == pytest.approx(theirs.ssim, abs=1e-4)
    np.testing.assert_allclose(our_gradient, their_gradient, atol=1e-3 * np.abs(their_gradient).max())
    alone = native.similarity(rendered, photo)
    assert alone.l1 == pytest.approx(theirs.l1, rel=1e-5)
    assert alone.ssim == pytest.approx(theirs.ssim, abs=1e-4)


def test_a_photo_is_identical_to_itself(native: Kernels) -> None:
    _, photo = pictures(40, 30)
    same = (photo / 255).astype(np.float32)
    found, gradient = native.image_loss(same, photo, 0.0)
    assert found.l1 < 1e-7
    assert found.ssim == pytest.approx(1, abs=1e-5)
    assert np.abs(gradient).max() <= 1 / photo.size * (1 + 1e-6)


def test_sampling_distance_agrees(native: Kernels) -> None:
    means = (np.random.default_rng(0).normal(size=(1003, 3)) * 3).astype(np.float32)
    cameras = [camera(40, 30, seed, shift=(0.1 * seed, 0.0)) for seed in range(4)]
    ours, theirs = native.sampling_distance(means, cameras), EXACT.sampling_distance(means, cameras)
    np.testing.assert_array_equal(np.isinf(ours), np.isinf(theirs))
    assert 0 < np.isinf(theirs).sum() < len(means)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert native.sampling_distance(means[:0], cameras).shape == (0,)
    assert np.isinf(native.sampling_distance(means, [])).all()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 1000])
def test_neighbour_distance_agrees(native: Kernels, count: int) -> None:
    generator = np.random.default_rng(count)
    points = generator.normal(size=(count, 3)).astype(np.float32)
    points[: count // 5] *= 0.01  # dense and thin regions
    points[count // 2 :][: count // 10] = points[: count // 10]  # duplicates
    np.testing.assert_allclose(
        native.neighbour_distance(points), EXACT.neighbour_distance(points), rtol=1e-4, atol=1e-12
    )


def test_far_points_do_not_disturb_neighbour_distances(native: Kernels) -> None:
    points = np.random.default_rng(9).normal(size=(500, 3)).astype(np.float32)
    points[0] = (1e5, -1e5, 1e5)
    np.testing.assert_allclose(native.neighbour_distance(points), EXACT.neighbour_distance(points), rtol=1e-4)


@pytest.mark.parametrize("count", [0, 1, 2000])
def test_morton_order_is_a_permutation_that_keeps_neighbours_together(native: Kernels, count: int) -> None:
    means = np.random.default_rng(2).normal(size=(count, 3)).astype(np.float32)
    order = native.morton_order(means)
    np.testing.assert_array_equal(np.sort(order), np.arange(count))
    if count > 100:
        jumps = np.linalg.norm(np.diff(means[order], axis=0), axis=1).mean()
        assert jumps < 0.3 * np.linalg.norm(np.diff(means, axis=0), axis=1).mean()


def test_rearranging_agrees(native: Kernels) -> None:
    ours = random_table(50)
    generator = np.random.default_rng(3)
    for array in (ours.geometry_moments, ours.harmonics_first, ours.harmonics_second):
        array[:] = generator.normal(size=array.shape)
    ours.geometry[:, 12:16] = generator.integers(1, 9, (50, 4))
    theirs = copied(ours)
    source = generator.integers(0, 50, 77)
    fresh = generator.random(77) < 0.3
    one, two = native.rearrange(ours, source, fresh), EXACT.rearrange(theirs, source, fresh)
    for name in ("geometry", "harmonics", "geometry_moments", "harmonics_first", "harmonics_second"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)


def test_a_model_without_moments_can_be_rearranged(native: Kernels) -> None:
    table = empty_table(4, trainable=False)
    result = native.rearrange(table, np.array([1, 1]), np.array([True, False]))
    assert result.count == 2
    assert not result.trainable
