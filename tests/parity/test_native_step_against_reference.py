"""Statistics, Adam, lazy rows and the fused step of the native engine; its bits for any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest
from parity_scenes import SETTINGS, camera, copied, random_table, smooth_image
from pending_tables import pending_after, waiting_after

from splatmeter.backends.kernels import Gradients, Kernels
from splatmeter.backends.lazy_adam import AdamStep, Pending
from splatmeter.ops import ABSOLUTE_SUM, GRADIENT_SUM, LAST_UPDATE, VISITS, Rates, Table

pytest.importorskip("torch", reason="torch is not installed: the native engine was not compared with it")
from agreement import EXACT

RATES = Rates(mean=1e-3, harmonics_dc=2.5e-3, harmonics_rest=1.25e-4, opacity=0.05, scale=5e-3, rotation=1e-3)
ARRAYS = ("geometry", "harmonics", "geometry_moments", "harmonics_first", "harmonics_second")
VIEW = camera(33, 17, seed=1)
IMAGE = smooth_image(33, 17, seed=2)


def trained(
    backend: Kernels,
    steps: int,
    table: Table | None = None,
    first: int = 1,
    owed: Callable[[int, Rates], Pending] = pending_after,
) -> Table:
    """Fused steps from changing sides, so that some rows are seen and others are not."""
    table = table or random_table(seed=3)
    for number in range(first, first + steps):
        table.pending = owed(number - 1, RATES)
        view = camera(33, 17, seed=number, shift=(0.4, 0.0))  # half the scene is outside
        _, tape = backend.forward(table, view, SETTINGS["mip"])
        backend.backward_and_update(tape, smooth_image(33, 17, seed=number), AdamStep(number, RATES))
    table.pending = owed(first + steps - 1, RATES)
    return table


def assert_tables_close(ours: Table, theirs: Table, tolerance: float) -> None:
    for name in ARRAYS:
        found, expected = getattr(ours, name), getattr(theirs, name)
        scale = np.abs(expected).max(axis=0) + 1e-30  # column by column: second moments are tiny
        error = np.abs(found.astype(np.float64) - expected) / scale
        assert error.max(initial=0) <= tolerance, f"{name} at {np.unravel_index(error.argmax(), error.shape)}"


def random_gradients(count: int, seed: int) -> Gradients:
    generator = np.random.default_rng(seed)
    geometry = np.zeros((count, 16), np.float32)
    geometry[:, :11] = generator.normal(size=(count, 11)) * 10.0 ** generator.uniform(-6, 1, (count, 11))
    harmonics = (generator.normal(size=(count, 48)) * 1e-3).astype(np.float32)
    unseen = generator.random(count) < 0.3
    geometry[unseen], harmonics[unseen] = 0, 0
    nothing = np.zeros(count, np.float32)
    return Gradients(geometry, harmonics, np.zeros((count, 2), np.float32), nothing, ~unseen)


def test_statistics_are_sums_over_visits(native: Kernels) -> None:
    ours, theirs = random_table(seed=4), random_table(seed=4)
    for seed in (1, 2, 3):
        view = camera(33, 17, seed=seed, shift=(0.6, 0.0))
        for backend, table in ((native, ours), (EXACT, theirs)):
            _, tape = backend.forward(table, view, SETTINGS["mip"])
            backend.backward_and_update(tape, IMAGE, None)
    np.testing.assert_array_equal(ours.geometry[:, :12], theirs.geometry[:, :12])
    np.testing.assert_array_equal(ours.geometry[:, VISITS], theirs.geometry[:, VISITS])
    assert 0 < (theirs.geometry[:, VISITS] == 3).sum() < ours.count
    for column in (GRADIENT_SUM, ABSOLUTE_SUM):
        largest = theirs.geometry[:, column].max()
        np.testing.assert_allclose(ours.geometry[:, column], theirs.geometry[:, column], atol=1e-3 * largest)


def test_dense_adam_agrees(native: Kernels) -> None:
    ours, theirs = random_table(seed=5), random_table(seed=5)
    for number in range(1, 6):
        gradients = random_gradients(ours.count, seed=number)
        for backend, table in ((native, ours), (EXACT, theirs)):
            backend.adam(table, gradients, AdamStep(number, RATES))
    # both tables are float32 and take five steps: a few roundings each
    assert_tables_close(ours, theirs, 2e-6)
    assert (ours.geometry[:, LAST_UPDATE] == 5).all()


@pytest.mark.parametrize("owed", [pending_after, waiting_after])
@pytest.mark.parametrize("missed", [1, 5, 100, 600])
def test_settling_agrees(native: Kernels, missed: int, owed: Callable[[int, Rates], Pending]) -> None:
    ours = random_table(seed=6)
    for number in (1, 2, 3):
        EXACT.adam(ours, random_gradients(ours.count, seed=number), AdamStep(number, RATES))
    ours.geometry[::3, LAST_UPDATE] = 2  # rows of different ages
    theirs = copied(ours)
    ours.pending = theirs.pending = owed(3 + missed, RATES)
    native.settle(ours)
    EXACT.settle(theirs)
    assert_tables_close(ours, theirs, 2e-6)


def test_rows_that_are_behind_are_rendered_as_if_settled(native: Kernels) -> None:
    table = trained(native, 4)
    table.pending = pending_after(9, RATES)
    before = copied(table)
    behind, tape = native.forward(table, VIEW, SETTINGS["mip"])
    gradients = native.backward(tape, IMAGE, None)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(table, name), getattr(before, name))
    native.settle(table)
    settled, tape = native.forward(table, VIEW, SETTINGS["mip"])
    np.testing.assert_allclose(behind.color, settled.color, atol=2e-5)  # one rounding apart at most
    again = native.backward(tape, IMAGE, None)
    largest = np.abs(again.geometry).max(axis=0) + 1e-30
    assert (np.abs(gradients.geometry - again.geometry) / largest).max() < 1e-3


def test_where_momentum_waits_the_engine_does_what_the_reference_does(native: Kernels) -> None:
    """Rows that are behind are drawn, and then learn, with the momentum that they had."""
    start = trained(EXACT, 4)
    EXACT.settle(start)
    tables = []
    for backend in (native, EXACT):
        table = trained(backend, 3, copied(start), first=5, owed=waiting_after)
        behind, _ = backend.forward(table, VIEW, SETTINGS["mip"])
        tables.append((table, behind.color))
    (ours, drawn), (theirs, expected) = tables
    assert len(np.unique(ours.geometry[:, LAST_UPDATE])) > 2, "no row was behind"
    np.testing.assert_allclose(drawn, expected, atol=1e-5)
    for backend, table in ((native, ours), (EXACT, theirs)):
        backend.settle(table)
    rate = np.array([RATES.mean] * 3 + [RATES.scale] * 3 + [RATES.rotation] * 4 + [RATES.opacity])
    difference = np.abs(ours.geometry[:, :11] - theirs.geometry[:, :11]) / rate
    assert difference.max() < 0.02  # of a rate: all rows have a history, so no rounding is amplified
    moved = np.abs(theirs.geometry[:, :11] - start.geometry[:, :11]) / rate
    assert np.median(moved) > 0.3


def test_rows_that_no_step_sees_stay_where_they_are_and_keep_their_momentum(native: Kernels) -> None:
    table = trained(native, 4)
    native.settle(table)
    before = copied(table)
    table.pending = waiting_after(60, RATES)
    native.settle(table)
    np.testing.assert_array_equal(table.geometry[:, :12], before.geometry[:, :12])
    np.testing.assert_array_equal(table.harmonics, before.harmonics)
    first, second = (t.harmonics_first * t.harmonics_second for t in (table, before))
    np.testing.assert_allclose(first, second, rtol=1e-6)
    np.testing.assert_allclose(table.harmonics_second, before.harmonics_second * 0.999**28, rtol=1e-6)


def test_the_fused_step_is_backward_then_adam(native: Kernels) -> None:
    fused, apart = trained(native, 3), trained(native, 3)
    native.settle(apart)
    step = AdamStep(4, RATES)
    _, tape = native.forward(fused, VIEW, SETTINGS["mip"])
    native.backward_and_update(tape, IMAGE, step)
    _, tape = native.forward(apart, VIEW, SETTINGS["mip"])
    gradients = native.backward(tape, IMAGE, None)
    native.adam(apart, gradients, step)
    for table in (fused, apart):
        table.pending = pending_after(4, RATES)
        native.settle(table)
    apart.geometry[:, GRADIENT_SUM] += np.linalg.norm(gradients.mean2d, axis=1)
    apart.geometry[:, ABSOLUTE_SUM] += gradients.mean2d_absolute
    apart.geometry[:, VISITS] += gradients.visible
    # moments from three earlier steps keep Adam from amplifying the rounding of tiny gradients
    assert_tables_close(fused, apart, 1e-4)


def test_lazy_training_follows_dense_training(native: Kernels) -> None:
    """Parameters after six fused steps against the reference that moves every row in every step.

    Adam's first steps have the size of the rate whatever the gradient's, so where a gradient is rounding
    noise the two may part by a few rates: such entries may be few, and the parting no larger than that.
    """
    ours = trained(native, 6)
    native.settle(ours)
    theirs = trained(EXACT, 6)
    difference = np.abs(ours.geometry[:, :11] - theirs.geometry[:, :11])
    rate = np.array([RATES.mean] * 3 + [RATES.scale] * 3 + [RATES.rotation] * 4 + [RATES.opacity])
    assert (difference > 0.02 * rate).mean() < 0.02
    assert (difference <= 12 * rate).all()
    moved = np.abs(theirs.geometry[:, :11] - random_table(seed=3).geometry[:, :11])
    assert np.median(moved / rate) > 0.5
    assert (ours.geometry[:, LAST_UPDATE] == 6).all()


@pytest.mark.parametrize("size", [(33, 17), (131, 97)], ids=["33x17", "131x97"])
def test_bits_do_not_depend_on_the_number_of_threads(
    native_with: Callable[[int], Kernels], size: tuple[int, int]
) -> None:
    results = []
    for threads in (1, 2, 3):
        backend = native_with(threads)
        table = random_table(500, seed=12)
        view = camera(*size, seed=2)
        image = smooth_image(*size, seed=3)
        for number in (1, 2):
            table.pending = pending_after(number - 1, RATES)
            rendering, tape = backend.forward(table, view, SETTINGS["mip"])
            gradients = backend.backward(tape, image, np.ascontiguousarray(image[0]))
            _, tape = backend.forward(table, view, SETTINGS["mip"])
            backend.backward_and_update(tape, image, AdamStep(number, RATES))
        found = [getattr(gradients, field.name) for field in fields(gradients)]
        found += [rendering.color, rendering.transmittance, *[getattr(table, name) for name in ARRAYS]]
        photo = np.random.default_rng(0).integers(0, 256, image.shape, dtype=np.uint8)
        similarity, gradient = backend.image_loss(rendering.color, photo, 0.2)
        results.append([*found, gradient, np.array([similarity.l1, similarity.ssim])])
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_the_same_step_twice_has_the_same_bits(native: Kernels) -> None:
    one, two = trained(native, 3), trained(native, 3)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
