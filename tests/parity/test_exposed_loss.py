"""The loss through a photo's exposure: native against reference, and both against differences."""

from __future__ import annotations

import numpy as np
import pytest
from test_native_loss_and_space import pictures

from splatmeter.backends.kernels import Kernels

pytest.importorskip("torch", reason="torch is not installed: the native engine was not compared with it")
from agreement import EXACT

WARM = np.array([[1.2, 0.1, -0.05, 0.02], [0.03, 0.9, 0.05, -0.01], [-0.1, 0.02, 0.75, 0.03]])


@pytest.mark.parametrize("size", [(1, 1), (7, 5), (33, 17), (100, 64)])
@pytest.mark.parametrize("weight", [0.0, 0.2, 1.0])
def test_the_loss_and_both_gradients_agree(native: Kernels, size: tuple[int, int], weight: float) -> None:
    rendered, photo = pictures(*size)
    ours, our_gradient, our_transform = native.exposed_loss(rendered, photo, weight, WARM)
    theirs, their_gradient, their_transform = EXACT.exposed_loss(rendered, photo, weight, WARM)
    assert ours.l1 == pytest.approx(theirs.l1, rel=1e-5)
    assert ours.ssim == pytest.approx(theirs.ssim, abs=1e-4)
    assert our_gradient.shape == rendered.shape and our_transform.shape == (3, 4)
    np.testing.assert_allclose(our_gradient, their_gradient, atol=1e-3 * np.abs(their_gradient).max())
    # of a hundred pixels one may lie within rounding of equality, where the sign of L1 turns
    largest = np.abs(their_transform).max()
    np.testing.assert_allclose(our_transform, their_transform, atol=2e-3 * largest)


def test_the_identity_is_no_exposure_to_the_last_bit(native: Kernels) -> None:
    rendered, photo = pictures(61, 35)
    plain, gradient = native.image_loss(rendered, photo, 0.2)
    gradient = gradient.copy()
    same, exposed_gradient, _ = native.exposed_loss(rendered, photo, 0.2, np.eye(3, 4))
    assert plain == same
    np.testing.assert_array_equal(gradient, exposed_gradient)


def test_gradients_are_derivatives() -> None:
    """In float64; smooth where no pixel lies near equality, which is made sure of."""
    rendered, photo = pictures(23, 19)
    rendered = rendered.astype(np.float64)

    def loss(picture: np.ndarray, transform: np.ndarray) -> float:
        return EXACT.exposed_loss(picture, photo, 0.2, transform)[0].loss(0.2)

    exposed = np.tensordot(WARM[:, :3], rendered, 1) + WARM[:, 3, None, None]
    assert np.abs(exposed - photo / 255).min() > 1e-6
    _, gradient, of_transform = EXACT.exposed_loss(rendered, photo, 0.2, WARM)
    step = 1e-7
    for index in np.ndindex(3, 4):
        moved = np.zeros((3, 4))
        moved[index] = step
        slope = (loss(rendered, WARM + moved) - loss(rendered, WARM - moved)) / (2 * step)
        assert of_transform[index] == pytest.approx(slope, rel=1e-4, abs=1e-7)
    for index in [(0, 3, 4), (1, 10, 20), (2, 18, 0)]:
        moved = np.zeros_like(rendered)
        moved[index] = step
        slope = (loss(rendered + moved, WARM) - loss(rendered - moved, WARM)) / (2 * step)
        assert gradient[index] == pytest.approx(slope, rel=1e-3, abs=1e-8)


def test_the_native_gradient_is_a_derivative(native: Kernels) -> None:
    """Of L1 alone and over a wide step: float32 and the sign at equality leave a per cent."""
    rendered, photo = pictures(100, 64)
    _, _, found = native.exposed_loss(rendered, photo, 0.0, WARM)
    for index in np.ndindex(3, 4):
        moved = np.zeros((3, 4))
        moved[index] = 1e-3
        ends = [native.exposed_loss(rendered, photo, 0.0, WARM + sign * moved)[0].l1 for sign in (1, -1)]
        assert found[index] == pytest.approx((ends[0] - ends[1]) / 2e-3, abs=0.02 * np.abs(found).max())
