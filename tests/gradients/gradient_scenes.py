"""Scenes for finite differences, and the places where rendering is not differentiable. NumPy only.

The image jumps or bends where
  1. a contribution crosses 1/255 (skipped below),          4. a colour crosses 0 (held there),
  2. an alpha crosses max_alpha (held there),               5. x/z or y/z crosses the Jacobian's clamp,
  3. a transmittance crosses 1e-4 (the pixel ends),         6. two Gaussians swap depths.
Both sides of each are visited here, no step crosses one: in float64 a step of 1e-6 seldom meets a jump, and
one that did would show as an error of 1/255/1e-6, far beyond any tolerance. Float32 needs steps too long for
that, so `wide_scene` keeps away from all six altogether.
"""

from __future__ import annotations

import numpy as np

from splatmeter.ops import (
    FILTER_3D,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    Pinhole,
    Table,
    empty_table,
)


def camera(width: int = 20, height: int = 14, shift: float = 0.0) -> Pinhole:
    rotation, _ = np.linalg.qr(np.random.default_rng(8).normal(size=(3, 3)))
    rotation *= np.sign(np.linalg.det(rotation))
    centre = ((0.5 + shift) * width, (0.5 - shift) * height)
    return Pinhole(rotation, np.array([0.1, -0.2, 4.0]), 22.0, 24.0, *centre, width, height)


def general_scene(view: Pinhole, count: int = 8, seed: int = 3) -> Table:
    """Small and large Gaussians, some half outside, some colour channels held at zero; float64."""
    generator = np.random.default_rng(seed)
    table = empty_table(count, trainable=False)
    table.geometry, table.harmonics = table.geometry.astype(np.float64), table.harmonics.astype(np.float64)
    table.geometry[:, MEANS] = generator.normal(size=(count, 3)) * 0.8
    table.geometry[:, LOG_SCALES] = generator.uniform(np.log(0.08), np.log(0.6), (count, 3))
    table.geometry[:, ROTATIONS] = generator.normal(size=(count, 4))
    table.geometry[:, OPACITY_LOGITS] = generator.normal(size=count)
    table.geometry[:, FILTER_3D] = generator.uniform(0.02, 0.1, count)
    table.harmonics[:, :3] = generator.normal(size=(count, 3)) * 1.5
    table.harmonics[:, 3:] = generator.normal(size=(count, 45)) * 0.3
    return table


def place(table: Table, view: Pinhole, positions: np.ndarray) -> None:
    """Puts the means at these camera coordinates [N, 3]."""
    table.geometry[:, MEANS] = (positions - view.translation) @ view.rotation


def wide_scene(view: Pinhole, count: int = 5, seed: int = 4) -> Table:
    """Gaussians wider than the image, at depths well apart, of modest opacity and bright colours."""
    generator = np.random.default_rng(seed)
    table = general_scene(view, count, seed)
    depth = np.linspace(3, 5, count)
    place(table, view, np.concatenate([generator.uniform(-0.5, 0.5, (count, 2)), depth[:, None]], axis=1))
    table.geometry[:, LOG_SCALES] = generator.uniform(np.log(1.5), np.log(3), (count, 3))
    table.geometry[:, OPACITY_LOGITS] = generator.uniform(-1, 0.5, count)
    table.harmonics[:, :3] = generator.uniform(1, 2, (count, 3))
    table.harmonics[:, 3:] *= 0.2
    return table


def weights(view: Pinhole, seed: int = 5) -> np.ndarray:
    """A smooth random image [3, H, W]: the loss is its product with the rendering, summed."""
    generator = np.random.default_rng(seed)
    x, y = np.arange(view.width) / view.width, np.arange(view.height) / view.height
    kx, ky, phase = generator.uniform(-6, 6, (3, 3, 1, 1))
    return np.cos(kx * x[None, None, :] + ky * y[None, :, None] + phase) + generator.normal(size=(3, 1, 1))
