"""What it means for a float32 engine to agree with the reference, said once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from doubt import doubtful
from parity_scenes import smooth_image

from splatmeter.backends.kernels import Gradients, Kernels, Picture
from splatmeter.backends.reference import reference_kernels
from splatmeter.ops import Pinhole, RasterSettings, Table

EXACT, PLAIN = reference_kernels(torch.float64), reference_kernels(torch.float32)

# The engine steps an exponential down up to 31 rows by E *= r, r *= q: n^2 / 2 roundings, 3e-5 of an alpha at
# worst; 5e-6 is usual.
FLOOR = 3e-5
# Gradients are sums over pixels that partly cancel: measured against the largest of their kind.
GRADIENT_FLOOR = 1e-4
# Needles and huge Gaussians make any float32 evaluation worse. How much worse, the plain float32 one tells;
# the engine orders its sums differently and may be this many times further off.
ALLOWANCE = 20

COLUMNS = {
    "means": slice(0, 3),
    "log scales": slice(3, 6),
    "rotations": slice(6, 10),
    "opacity logits": slice(10, 11),
}


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    rendering: Picture
    gradients: Gradients


def look(
    backend: Kernels, table: Table, view: Pinhole, settings: RasterSettings, weights: np.ndarray
) -> Seen:
    """Picture and gradients of sum(weights * colour) + sum(weights[1] * transmittance)."""
    rendering, tape = backend.forward(table, view, settings)
    return Seen(rendering, backend.backward(tape, weights, np.ascontiguousarray(weights[1])))


def assert_agrees(
    backend: Kernels, table: Table, view: Pinhole, settings: RasterSettings, width: float = 1e-4
) -> Seen:
    """Values, visibility and all gradients; returns what the exact reference saw."""
    doubt = doubtful(table, view, settings, width)
    certain = ~doubt.pixels  # [H, W]
    assert certain.mean() > 0.8, "too little is left to compare: choose another scene"
    weights = smooth_image(view.width, view.height, seed=11) * certain  # [3, H, W]
    ours, exact, plain = (look(each, table, view, settings, weights) for each in (backend, EXACT, PLAIN))
    assert ours.rendering.color.dtype == np.float32
    assert ours.rendering.color.shape == (3, view.height, view.width)
    assert np.isfinite(ours.rendering.color).all()
    for name in ("color", "transmittance"):
        one, two, three = (getattr(seen.rendering, name)[..., certain] for seen in (ours, exact, plain))
        assert_within(name, one, two, FLOOR + ALLOWANCE * worst(three, two))
    sure = ~doubt.rows
    np.testing.assert_array_equal(ours.gradients.visible[sure], exact.gradients.visible[sure])
    for one, two, three in zip(*(named(seen.gradients) for seen in (ours, exact, plain)), strict=True):
        name, values = two
        largest = float(np.abs(values).max(initial=0))
        assert_within(name, one[1], values, GRADIENT_FLOOR * largest + ALLOWANCE * worst(three[1], values))
    return exact


def named(gradients: Gradients) -> Iterator[tuple[str, np.ndarray]]:
    """Gradients by kind: kinds differ in size by orders of magnitude and are judged apart."""
    for name, columns in COLUMNS.items():
        yield name, gradients.geometry[:, columns]
    yield "other columns", gradients.geometry[:, 11:]
    yield "constant harmonics", gradients.harmonics[:, :3]
    yield "other harmonics", gradients.harmonics[:, 3:]
    yield "projected means", gradients.mean2d
    yield "absolute gradients", gradients.mean2d_absolute


def worst(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max(initial=0))


def assert_within(name: str, found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    error = np.abs(found.astype(np.float64) - expected)
    if error.size and not error.max() <= tolerance:  # also catches NaN
        where = np.unravel_index(int(np.nanargmax(np.where(np.isnan(error), np.inf, error))), error.shape)
        raise AssertionError(
            f"{name}: {found[where]:.9g} instead of {expected[where]:.9g} at {tuple(map(int, where))}, "
            f"error {error[where]:.3g}, allowed {tolerance:.3g}, "
            f"largest {np.abs(expected).max():.3g}, {int((error > tolerance).sum())} beyond"
        )
