"""The reference's gradients in float64 against central differences of its own rendering."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gradient_scenes import camera, general_scene, place, weights

from splatmeter.backends.kernels import Gradients
from splatmeter.backends.reference import reference_kernels
from splatmeter.ops import FILTER_3D, LOG_SCALES, OPACITY_LOGITS, Pinhole, RasterSettings, Table

torch = pytest.importorskip(
    "torch", reason="torch is not installed: the reference's gradients were not checked"
)

STEP = 1e-6
# Truncation is STEP^2 times third derivatives (1e-12 * 1e3), rounding 1e-15 * 1e3 / STEP: both about 1e-9 of
# the largest gradient. A forgotten term is of order 1.
TOLERANCE = 1e-6
BACKEND = reference_kernels(torch.float64)


def loss(table: Table, view: Pinhole, settings: RasterSettings) -> float:
    rendering, _ = BACKEND.forward(table, view, settings)
    image = weights(view)
    return float((rendering.color * image).sum() + (rendering.transmittance * image[1]).sum())


def gradients(table: Table, view: Pinhole, settings: RasterSettings) -> Gradients:
    _, tape = BACKEND.forward(table, view, settings)
    return BACKEND.backward(tape, weights(view), weights(view)[1])


def difference(
    array: np.ndarray, index: tuple, table: Table, view: Pinhole, settings: RasterSettings
) -> float:
    kept = array[index]
    ends = []
    for sign in (-1, 1):
        array[index] = kept + sign * STEP
        ends.append(loss(table, view, settings))
    array[index] = kept
    return (ends[1] - ends[0]) / (2 * STEP)


def assert_gradients_are_derivatives(table: Table, view: Pinhole, settings: RasterSettings) -> None:
    found = gradients(table, view, settings)
    slopes = np.zeros((table.count, 11))
    for index in np.ndindex(slopes.shape):
        slopes[index] = difference(table.geometry, index, table, view, settings)
    assert np.abs(slopes).max(axis=0).min() > 0  # every column matters in this scene
    scale = np.abs(slopes).max(axis=0)
    np.testing.assert_array_less(
        np.abs(found.geometry[:, :11] - slopes), np.broadcast_to(TOLERANCE * scale, slopes.shape)
    )
    generator = np.random.default_rng(0)
    for _ in range(12):
        index = (generator.integers(table.count), generator.integers(48))
        slope = difference(table.harmonics, index, table, view, settings)
        assert found.harmonics[index] == pytest.approx(slope, abs=TOLERANCE * np.abs(found.harmonics).max())


@pytest.mark.parametrize(
    "settings",
    [
        RasterSettings(background=(1.0, 0.5, 0.0)),
        RasterSettings(kernel_size=0.3, compensate=False, sh_degree=1),
        RasterSettings(kernel_size=0.0, sh_degree=2),
    ],
    ids=["mip", "plain", "no kernel"],
)
def test_gradients_are_derivatives_with_and_without_the_filters(settings: RasterSettings) -> None:
    view = camera(shift=0.1)
    table = general_scene(view)
    if not settings.compensate:
        table.geometry[:, FILTER_3D] = 0
    assert_gradients_are_derivatives(table, view, settings)


def test_gradients_are_derivatives_where_alphas_are_capped_and_pixels_end() -> None:
    view = camera()
    table = general_scene(view, count=12)
    table.geometry[:, OPACITY_LOGITS] = np.linspace(1, 3, 12)
    table.geometry[:, LOG_SCALES] += 0.8
    capped = RasterSettings(max_alpha=0.7)
    rendering, _ = BACKEND.forward(table, view, capped)
    uncapped, _ = BACKEND.forward(table, view, RasterSettings())
    assert np.abs(rendering.color - uncapped.color).max() > 0.01  # the cap is at work
    assert_gradients_are_derivatives(table, view, capped)


def test_gradients_are_derivatives_where_a_light_cut_ends_pixels() -> None:
    view = camera()
    table = general_scene(view, count=12)
    table.geometry[:, OPACITY_LOGITS] = np.linspace(1, 3, 12)
    table.geometry[:, LOG_SCALES] += 0.8
    cut = RasterSettings(light_cut=0.3, background=(0.2, 0.4, 0.6))
    rendering, _ = BACKEND.forward(table, view, cut)
    whole, _ = BACKEND.forward(table, view, replace(cut, light_cut=0.0))
    assert np.abs(rendering.color - whole.color).max() > 0.01  # the cut is at work
    assert_gradients_are_derivatives(table, view, cut)


def test_gradients_are_derivatives_beyond_the_clamp_of_the_jacobian() -> None:
    view = camera()
    table = general_scene(view, count=6)
    beyond = np.array([[6, 1, 3], [-6, 0, 4], [1, 5, 3.2], [0, -6, 3.9], [5, 5, 2.9], [0.2, 0.1, 3.1]])
    place(table, view, beyond)  # x/z up to 2, the clamp is at 0.6
    table.geometry[:, LOG_SCALES] = np.log([2.5, 1.5, 2.0])
    assert gradients(table, view, RasterSettings()).visible.all()
    assert_gradients_are_derivatives(table, view, RasterSettings())


def test_gradients_of_projected_means_add_up_to_the_principal_point() -> None:
    """Moving the principal point moves every projected mean and, inside the image, nothing else."""
    view = camera()
    table = general_scene(view)
    table.geometry[:, LOG_SCALES] -= 0.5
    found = gradients(table, view, RasterSettings())
    for axis, name in enumerate(("cx", "cy")):
        ends = [
            loss(table, replace(view, **{name: getattr(view, name) + sign * STEP}), RasterSettings())
            for sign in (-1, 1)
        ]
        half_image = (view.width / 2, view.height / 2)[axis]
        slope = (ends[1] - ends[0]) / (2 * STEP)
        assert found.mean2d[:, axis].sum() / half_image == pytest.approx(slope, rel=1e-6)


def test_absolute_gradients_are_the_pixels_own_gradients_without_cancelling() -> None:
    view = camera(width=6, height=5)
    table = general_scene(view)
    settings = RasterSettings(absolute_gradients=True)
    _, tape = BACKEND.forward(table, view, settings)
    image = weights(view)
    expected = np.zeros(table.count)
    for y, x in np.ndindex(view.height, view.width):
        single = np.zeros_like(image)
        single[:, y, x] = image[:, y, x]
        expected += np.abs(BACKEND.backward(tape, single, None).mean2d).sum(axis=1)
    found = BACKEND.backward(tape, image, None)
    np.testing.assert_allclose(found.mean2d_absolute, expected, rtol=1e-10)
    assert (found.mean2d_absolute >= np.linalg.norm(found.mean2d, axis=1)).all()


def test_a_channel_held_at_zero_has_no_gradient() -> None:
    view = camera()
    table = general_scene(view)
    table.harmonics[:, 0] = -30  # red far below zero
    found = gradients(table, view, RasterSettings())
    assert not found.harmonics[:, 0::3].any()
    assert found.harmonics[:, 1::3].any()


def test_nothing_becomes_nan_without_visible_gaussians() -> None:
    view = camera()
    for count in (0, 4):
        table = general_scene(view, count=count)
        table.geometry[:, OPACITY_LOGITS] = -40
        rendering, tape = BACKEND.forward(table, view, RasterSettings(background=(0.2, 0.4, 0.6)))
        np.testing.assert_array_equal(rendering.transmittance, 1)
        np.testing.assert_array_equal(rendering.color[1], 0.4)
        found = BACKEND.backward(tape, weights(view), None)
        assert found.geometry.shape == (count, 16)
        assert not found.visible.any()
        assert not found.geometry.any()
        assert not found.harmonics.any()
