"""Where float32 and float64 may rightly take different branches, so that tests can leave those places out.

Blending has three jumps: a contribution is skipped below 1/255, a pixel ends at a transmittance of 1e-4 or
at the light cut, and the order follows the depth. Within rounding of a jump either side is right, and the
results differ by up to 1/255. Everywhere else they must agree to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from splatmeter.backends.reference import adam, blending
from splatmeter.backends.reference.projection import FAINTEST, project
from splatmeter.ops import Pinhole, RasterSettings, Table


@dataclass(frozen=True, slots=True, eq=False)
class Doubt:
    pixels: np.ndarray  # [H, W] bool
    rows: np.ndarray  # [N] bool: visibility itself is a matter of rounding


def doubtful(table: Table, camera: Pinhole, settings: RasterSettings, width: float = 1e-4) -> Doubt:
    """`width` is the relative rounding to expect of an alpha or a transmittance."""
    now = adam.settled(table, dtype=torch.float64)
    everything = project(now.geometry, now.harmonics, camera, settings)
    rows = doubtful_rows(everything, now.geometry, camera, settings, width)
    order = torch.argsort(everything.depth, stable=True)
    order = order[(everything.keep | rows)[order]]  # [M]
    ellipses = blending.Sorted(
        *[getattr(everything, name)[order] for name in ("center", "conic", "alpha", "color")]
    )
    depth = everything.depth[order]
    gap = depth.diff() / depth[1:].abs()
    tie = (gap > 0) & (gap < 2e-6)  # [M - 1] exact ties are decided by the row
    pixels = torch.zeros(camera.height * camera.width, dtype=torch.bool)
    for part, centres in blending.pixel_chunks(camera.width, camera.height, ellipses):
        offset = blending.offsets(centres, ellipses)
        dx, dy = offset.unbind(-1)
        xx, xy, yy = ellipses.conic.unbind(-1)
        value = ellipses.alpha * (-0.5 * (xx * dx * dx + yy * dy * dy) - xy * dx * dy).exp()  # [P, M]
        doubt = near(value, FAINTEST, width).any(dim=1)
        there = value >= FAINTEST
        light = torch.cumprod(1 - torch.where(there, value.clamp(max=settings.max_alpha), 0), dim=1)
        end = settings.light_cut or blending.OPAQUE
        doubt |= (near(light, end, 100 * width) & there).any(dim=1)
        doubt |= near(value, settings.max_alpha, width).any(dim=1)  # the gradient jumps at the cap
        pixels[part] = doubt | (tie & there[:, :-1] & there[:, 1:]).any(dim=1)
    return Doubt(pixels.reshape(camera.height, camera.width).numpy(), rows.numpy())


def doubtful_rows(
    everything, geometry, camera: Pinhole, settings: RasterSettings, width: float
) -> torch.Tensor:
    """Rows whose keep flag flips if opacity, near plane or image border move by a rounding."""
    result = near(everything.alpha, FAINTEST, width) | near(everything.depth, 0.2, 1e-5)
    for sign in (-1, 1):
        moved = geometry.clone()
        moved[:, 10] += sign * width
        for shift in (-1e-3, 1e-3):
            other = Pinhole(
                camera.rotation,
                camera.translation,
                camera.fx,
                camera.fy,
                camera.cx + shift,
                camera.cy + shift,
                camera.width,
                camera.height,
            )
            keep = project(moved, torch.zeros(len(moved), 48, dtype=moved.dtype), other, settings).keep
            result |= keep != everything.keep
    return result


def near(value: torch.Tensor, jump: float, width: float) -> torch.Tensor:
    return (value - jump).abs() < width * jump
