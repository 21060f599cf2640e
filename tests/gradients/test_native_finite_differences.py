"""The native engine's gradients against central differences of its own rendering: NumPy only.

The rendering is float32, so the step must be long. With a loss that sums up P = 300 values good to 1e-6 each,
its noise is about 1e-6 sqrt(P) = 2e-5; over a step of 0.01 that is 1e-3 beside gradients of order 1 to 10.
Truncation is step^2 / 6 times third derivatives of the order of the gradient, 2e-5 of it. Asked for is 1 % of
the largest in the column: a forgotten term is larger, and the parity tests are finer where torch is at hand.
Steps this long would cross jumps, so the scene has none within reach (see gradient_scenes).
"""

from __future__ import annotations

import numpy as np
import pytest
from gradient_scenes import camera, weights, wide_scene

from splatmeter.backends.kernels import Kernels
from splatmeter.ops import Pinhole, RasterSettings, Table

STEP = 0.01
TOLERANCE = 0.01
VIEW = camera(width=12, height=9, shift=0.05)


@pytest.fixture(scope="module")
def native() -> Kernels:
    reason = "splatmeter._native is not built (pip install -e . builds it): its gradients were not checked"
    pytest.importorskip("splatmeter._native", reason=reason)
    from splatmeter.backends.native import native_kernels

    return native_kernels(threads=1)


def scene() -> Table:
    table = wide_scene(VIEW)
    table.geometry, table.harmonics = table.geometry.astype(np.float32), table.harmonics.astype(np.float32)
    return table


def loss(native: Kernels, table: Table, view: Pinhole, settings: RasterSettings) -> float:
    rendering, _ = native.forward(table, view, settings)
    image = weights(view)
    return float((rendering.color * image).sum() + (rendering.transmittance * image[1]).sum())  # in float64


def slopes(
    native: Kernels, table: Table, array: np.ndarray, columns: int, settings: RasterSettings
) -> np.ndarray:
    result = np.zeros((table.count, columns))
    for index in np.ndindex(result.shape):
        kept = array[index]
        ends, positions = [], []
        for sign in (-1, 1):
            array[index] = kept + np.float32(sign * STEP)
            positions.append(float(array[index]))  # where float32 really put it
            ends.append(loss(native, table, VIEW, settings))
        array[index] = kept
        result[index] = (ends[1] - ends[0]) / (positions[1] - positions[0])
    return result


@pytest.mark.parametrize(
    "settings",
    [
        RasterSettings(background=(1.0, 0.5, 0.0)),
        RasterSettings(kernel_size=0.3, compensate=False, sh_degree=2),
    ],
    ids=["mip", "plain"],
)
def test_gradients_are_derivatives(native: Kernels, settings: RasterSettings) -> None:
    table = scene()
    _, tape = native.forward(table, VIEW, settings)
    image = weights(VIEW).astype(np.float32)
    found = native.backward(tape, image, np.ascontiguousarray(image[1]))
    assert found.visible.all()
    for ours, array, columns in (
        (found.geometry, table.geometry, 11),
        (found.harmonics, table.harmonics, 3 * (settings.sh_degree + 1) ** 2),
    ):
        expected = slopes(native, table, array, columns, settings)
        scale = np.abs(expected).max(axis=0)  # per column
        assert (scale > 0.01).all()  # far above the noise of the differences
        worst = (np.abs(ours[:, :columns] - expected) / scale).max(axis=0)
        assert (worst < TOLERANCE).all(), f"column {worst.argmax()} is off by {worst.max():.2%}"


def test_the_scene_keeps_away_from_jumps(native: Kernels) -> None:
    """Every Gaussian covers every pixel well above 1/255, no pixel is nearly opaque."""
    table = scene()
    rendering, _ = native.forward(table, VIEW, RasterSettings())
    assert rendering.transmittance.min() > 0.005
    for row in range(table.count):
        alone = Table(
            *[getattr(table, name)[row : row + 1].copy() for name in ("geometry", "harmonics")],
            *[np.zeros((0, width), np.float32) for width in (24, 48, 48)],
        )
        rendering, _ = native.forward(alone, VIEW, RasterSettings())
        alpha = 1 - rendering.transmittance
        assert alpha.min() > 0.01
        assert alpha.max() < 0.95
        assert rendering.color.min() > 0
