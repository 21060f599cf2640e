"""L1 and SSIM of the reference against a plain NumPy statement, and its gradient against differences."""

from __future__ import annotations

import numpy as np
import pytest

from splatmeter.backends.reference import reference_kernels

torch = pytest.importorskip("torch", reason="torch is not installed: the reference loss was not checked")


def plain_similarity(rendered: np.ndarray, photo: np.ndarray) -> tuple[float, float]:
    """Window by window, with means and variances written as weighted sums of deviations."""
    target = photo / 255
    distance = np.arange(-5, 6)
    weights = np.exp(-0.5 * (distance / 1.5) ** 2)
    weights = np.outer(weights, weights) / weights.sum() ** 2  # [11, 11]
    padding = ((0, 0), (5, 5), (5, 5))
    values = []
    first, second = np.pad(rendered, padding), np.pad(target, padding)
    for channel, y, x in np.ndindex(rendered.shape):
        one, two = first[channel, y : y + 11, x : x + 11], second[channel, y : y + 11, x : x + 11]
        mean1, mean2 = (weights * one).sum(), (weights * two).sum()
        variance1, variance2 = (weights * (one - mean1) ** 2).sum(), (weights * (two - mean2) ** 2).sum()
        covariance = (weights * (one - mean1) * (two - mean2)).sum()
        luminance = (2 * mean1 * mean2 + 1e-4) / (mean1**2 + mean2**2 + 1e-4)
        values.append(luminance * (2 * covariance + 9e-4) / (variance1 + variance2 + 9e-4))
    return float(np.abs(rendered - target).mean()), float(np.mean(values))


def pictures(width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(width)
    photo = generator.integers(0, 256, (3, height, width), dtype=np.uint8)
    return generator.uniform(-0.1, 1.2, (3, height, width)), photo


@pytest.mark.parametrize(("width", "height"), [(1, 1), (7, 5), (23, 14)])
def test_l1_and_ssim_are_what_the_definition_says(width: int, height: int) -> None:
    rendered, photo = pictures(width, height)
    l1, ssim = plain_similarity(rendered, photo)
    found = reference_kernels(torch.float64).similarity(rendered, photo)
    assert found.l1 == pytest.approx(l1, rel=1e-12)
    assert found.ssim == pytest.approx(ssim, rel=1e-9)  # E[x^2] - mu^2 loses a few digits to the plain form
    single = reference_kernels().similarity(rendered.astype(np.float32), photo)
    # float32's rounding of E[x^2] - mu^2, about 1e-7, beside a constant of 9e-4
    assert single.ssim == pytest.approx(ssim, abs=3e-4)
    assert single.l1 == pytest.approx(l1, rel=1e-5)


def test_a_photo_is_identical_to_itself() -> None:
    _, photo = pictures(17, 13)
    found = reference_kernels(torch.float64).similarity(photo / 255, photo)
    assert found.l1 == 0
    assert found.ssim == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("weight", [0.0, 0.2, 1.0])
def test_the_gradient_is_the_derivative_of_the_weighted_loss(weight: float) -> None:
    rendered, photo = pictures(15, 12)
    backend = reference_kernels(torch.float64)
    similarity, gradient = backend.image_loss(rendered, photo, weight)
    assert similarity.loss(weight) == pytest.approx(
        backend.similarity(rendered, photo).loss(weight), rel=1e-12
    )
    step = 1e-6  # far below the distance of any pixel to its photo, so that |.| has no kink in between
    assert np.abs(rendered - photo / 255).min() > 10 * step
    for index in [(0, 0, 0), (1, 5, 7), (2, 11, 14), (0, 3, 0)]:
        ends = []
        for sign in (-1, 1):
            moved = rendered.copy()
            moved[index] += sign * step
            ends.append(backend.similarity(moved, photo).loss(weight))
        assert gradient[index] == pytest.approx((ends[1] - ends[0]) / (2 * step), rel=1e-5, abs=1e-9)


def test_where_rendering_and_photo_agree_l1_pulls_nowhere() -> None:
    _, photo = pictures(6, 6)
    _, gradient = reference_kernels(torch.float64).image_loss(photo / 255, photo, 0.0)
    assert not gradient.any()
