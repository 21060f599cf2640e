"""The native engine against stored results of the float64 reference: needs nothing but NumPy."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from make_golden import GOLDEN, SETTINGS, camera_from

from splatmeter.backends.kernels import Gradients, Kernels, Picture
from splatmeter.ops import Table, empty_table

VIEWS = (0, 1, 2)
# alphas are good to 3e-5 (a row recurrence of up to 31 steps) and pixels are sums of alphas times 1 or so
PIXEL = 3e-5
# gradients are sums over pixels that partly cancel, judged by the largest of their column
GRADIENT = 2e-4


def read(number: int) -> tuple[Table, dict[str, np.ndarray]]:
    with np.load(GOLDEN) as archive:
        prefix = f"view{number}/"
        view = {name.removeprefix(prefix): archive[name] for name in archive if name.startswith(prefix)}
        table = empty_table(len(archive["table/geometry"]))
        table.geometry[:], table.harmonics[:] = archive["table/geometry"], archive["table/harmonics"]
    return table, view


def see(native: Kernels, number: int) -> tuple[Picture, Gradients, dict[str, np.ndarray]]:
    table, golden = read(number)
    rendering, tape = native.forward(table, camera_from(golden), SETTINGS)
    light = np.ascontiguousarray(golden["weights"][1])
    return rendering, native.backward(tape, golden["weights"], light), golden


@pytest.mark.parametrize("number", VIEWS)
def test_images_are_the_golden_ones(native: Kernels, number: int) -> None:
    rendering, _, golden = see(native, number)
    certain = ~golden["doubtful_pixels"]
    assert certain.mean() > 0.9
    for name in ("color", "transmittance"):
        found = getattr(rendering, name)
        np.testing.assert_allclose(found[..., certain], golden[name][..., certain], rtol=0, atol=PIXEL)


@pytest.mark.parametrize("number", VIEWS)
def test_gradients_are_the_golden_ones(native: Kernels, number: int) -> None:
    _, gradients, golden = see(native, number)
    sure = ~golden["doubtful_rows"]
    np.testing.assert_array_equal(gradients.visible[sure], golden["visible"][sure])
    for field in fields(gradients):
        if field.name == "visible":
            continue
        expected = golden[field.name]
        found = getattr(gradients, field.name)
        found = found[:, :11] if field.name == "geometry" else found
        scale = np.abs(expected).max(axis=0)
        assert (np.abs(found - expected) <= GRADIENT * scale).all(), field.name


def test_every_instruction_set_of_this_machine_gives_the_golden_results(native: Kernels) -> None:
    from splatmeter import _native

    usual = _native.instruction_set()
    try:
        for name in _native.instruction_sets():
            _native.force_instruction_set(name)
            test_images_are_the_golden_ones(native, 1)
            test_gradients_are_the_golden_ones(native, 1)
    finally:
        _native.force_instruction_set(usual)


def test_the_golden_file_is_small_and_sees_everything() -> None:
    assert GOLDEN.stat().st_size < 200_000
    _, golden = read(0)
    assert golden["visible"].sum() > 40
    assert golden["geometry"].any(axis=0).all()
    assert golden["harmonics"].any(axis=0).all()
    assert golden["transmittance"].min() < 0.1
