"""The reference's joined step: backward, statistics and Adam, and rendering rows that are behind."""

from __future__ import annotations

import numpy as np
import pytest
from parity_scenes import camera, copied, random_table, smooth_image
from pending_tables import pending_after

from splatmeter.backends.lazy_adam import AdamStep
from splatmeter.backends.reference import reference_kernels
from splatmeter.errors import UsageError
from splatmeter.ops import ABSOLUTE_SUM, GRADIENT_SUM, LAST_UPDATE, VISITS, RasterSettings, Rates, empty_table

torch = pytest.importorskip("torch", reason="torch is not installed: the reference backend was not checked")

RATES = Rates(0.01, 0.02, 0.005, 0.05, 0.02, 0.01)
SETTINGS = RasterSettings(absolute_gradients=True)
VIEW = camera(24, 16)


def test_the_joined_step_is_its_parts_one_after_the_other() -> None:
    backend = reference_kernels(torch.float64)
    joined, apart = random_table(20), random_table(20)
    for number in (1, 2):
        image = smooth_image(24, 16, number)
        _, tape = backend.forward(joined, VIEW, SETTINGS)
        backend.backward_and_update(tape, image, AdamStep(number, RATES))
        _, tape = backend.forward(apart, VIEW, SETTINGS)
        gradients = backend.backward(tape, image, None)
        apart.geometry[:, GRADIENT_SUM] += np.linalg.norm(gradients.mean2d, axis=1)
        apart.geometry[:, ABSOLUTE_SUM] += gradients.mean2d_absolute
        apart.geometry[:, VISITS] += gradients.visible
        backend.adam(apart, gradients, AdamStep(number, RATES))
    np.testing.assert_array_equal(joined.geometry, apart.geometry)
    np.testing.assert_array_equal(joined.harmonics, apart.harmonics)
    assert joined.geometry[:, VISITS].max() == 2
    assert (joined.geometry[:, LAST_UPDATE] == 2).all()


def test_without_a_step_only_the_statistics_move() -> None:
    backend = reference_kernels()
    table = random_table(20)
    before = copied(table)
    _, tape = backend.forward(table, VIEW, SETTINGS)
    backend.backward_and_update(tape, smooth_image(24, 16), None)
    np.testing.assert_array_equal(table.geometry[:, :12], before.geometry[:, :12])
    np.testing.assert_array_equal(table.harmonics, before.harmonics)
    assert table.geometry[:, GRADIENT_SUM].any()
    assert table.geometry[:, ABSOLUTE_SUM].any()


def test_rows_that_are_behind_are_rendered_as_if_settled_and_left_alone() -> None:
    backend = reference_kernels()
    table = random_table(20)
    _, tape = backend.forward(table, VIEW, SETTINGS)
    backend.backward_and_update(tape, smooth_image(24, 16), AdamStep(1, RATES))
    table.pending = pending_after(6, RATES)
    before = copied(table)
    behind, _ = backend.forward(table, VIEW, SETTINGS)
    np.testing.assert_array_equal(table.geometry, before.geometry)
    backend.settle(table)
    settled, _ = backend.forward(table, VIEW, SETTINGS)
    np.testing.assert_array_equal(behind.color, settled.color)
    assert np.abs(table.geometry[:, :11] - before.geometry[:, :11]).max() > 0.01


def test_a_model_without_moments_cannot_be_trained() -> None:
    backend = reference_kernels()
    table = empty_table(3, trainable=False)
    _, tape = backend.forward(table, VIEW, SETTINGS)
    with pytest.raises(UsageError, match="cannot be trained"):
        backend.backward_and_update(tape, smooth_image(24, 16), AdamStep(1, RATES))
