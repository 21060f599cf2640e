"""The values everybody exchanges: cameras, the table of Gaussians, how they are drawn, how fast they learn.

Everything here is NumPy, float32, C-contiguous unless said otherwise.

Conventions, once for all: camera axes are COLMAP's (x right, y down, z forward); the centre of the first
pixel lies at (0.5, 0.5); images are planar [3, H, W]; colours are in [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.camera.camera import Camera

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

NEAR = 0.2
"""Gaussians at or nearer than this depth (world units) are not drawn."""


# ---- the camera -------------------------------------------------------------------------------------------
Pinhole = Camera
"""What engines call it: all of it that they draw is a pinhole."""


# ---- the table of Gaussians -------------------------------------------------------------------------------
# One cache line of geometry a Gaussian.
# Stored forms: log scale, logit opacity, unnormalised quaternion (w, x, y, z).
MEANS = slice(0, 3)
LOG_SCALES = slice(3, 6)
ROTATIONS = slice(6, 10)
OPACITY_LOGITS = 10
FILTER_3D = 11
GRADIENT_SUM = 12  # densification: sum over visits of |dL/d mean2D|, in units of half the image size
ABSOLUTE_SUM = 13  # densification (gof): sum over visits of the per-pixel absolute gradients
VISITS = 14
LAST_UPDATE = 15  # optimizer step up to which parameters and moments of this row are current
GEOMETRY_WIDTH = 16
OPTIMIZED = slice(0, 11)  # the columns Adam moves

COEFFICIENTS = 16  # harmonics of degree 3; lower degrees leave the rest zero
HARMONICS_WIDTH = 3 * COEFFICIENTS  # coefficient-major: r0 g0 b0 r1 g1 b1 ...
GEOMETRY_MOMENTS_WIDTH = 24  # first moments of the 11 optimized columns + 1 pad, then second moments + 1 pad
SECOND_GEOMETRY = 12  # where second moments begin in a row of geometry moments


@dataclass(slots=True, eq=False)
class Table:
    """All that is kept per Gaussian; rows of the arrays belong together.

    Adam's moments m and v are kept normalized, as first = m / sqrt(v) and second = sqrt(v).
    A table without an optimizer (a model read from a file) has moments with zero rows.
    """

    geometry: F32  # [N, 16]
    harmonics: F32  # [N, 48]
    geometry_moments: F32  # [N, 24] or [0, 24]
    harmonics_first: F32  # [N, 48] or [0, 48]
    harmonics_second: F32  # [N, 48] or [0, 48]

    @property
    def count(self) -> int:
        return len(self.geometry)

    @property
    def trainable(self) -> bool:
        return len(self.geometry_moments) == len(self.geometry)


WIDTHS = {
    "geometry": GEOMETRY_WIDTH,
    "harmonics": HARMONICS_WIDTH,
    "geometry_moments": GEOMETRY_MOMENTS_WIDTH,
    "harmonics_first": HARMONICS_WIDTH,
    "harmonics_second": HARMONICS_WIDTH,
}
"""Columns of each array of a table."""


CACHE_LINE = 64
"""Bytes that memory hands over at once, on every machine we know but Apple's."""


def aligned(
    shape: tuple[int, ...], dtype: Any = np.float32, make: Callable[..., NDArray[np.uint8]] = np.empty
) -> NDArray[Any]:
    """An array that begins with a cache line. NumPy's own begin 16 bytes after one: every second vector read
    or written would lie in two of them, and a row of geometry always."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    block = make(size + CACHE_LINE, np.uint8)
    begin = -block.ctypes.data % CACHE_LINE
    return block[begin : begin + size].view(dtype).reshape(shape)


def empty_table(count: int, *, trainable: bool = True) -> Table:
    """All zeros; the caller fills the columns."""
    has_moments = ("geometry_moments", "harmonics_first", "harmonics_second")
    rows = {name: count if trainable or name not in has_moments else 0 for name in WIDTHS}
    return Table(**{name: aligned((rows[name], width), make=np.zeros) for name, width in WIDTHS.items()})


def normalize_moments(table: Table) -> None:
    """From m and v, as other programs keep them, to this table's own form, in place."""
    geometry = table.geometry_moments
    for first, second in (
        (geometry[:, :SECOND_GEOMETRY], geometry[:, SECOND_GEOMETRY:]),
        (table.harmonics_first, table.harmonics_second),
    ):
        np.sqrt(second, out=second)
        np.divide(first, second, out=first, where=second > 0)


# ---- rendering --------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class RasterSettings:
    """How Gaussians become pixels. The defaults are Mip-Splatting; plain 3DGS is 0.3 without compensation."""

    sh_degree: int = 3  # active degree, 0 to 3
    kernel_size: float = 0.1  # variance of the 2D Mip filter, pixels squared
    compensate: bool = True  # scale the opacity by rho = sqrt(det before / det after the 2D filter)
    background: tuple[float, float, float] = (0.0, 0.0, 0.0)
    max_alpha: float = 0.99
    absolute_gradients: bool = False  # also gather the gof criterion's statistic
    light_cut: float = 0.0  # a pixel takes Gaussians while more of its light is left; 0: the original's rule


@dataclass(frozen=True, slots=True)
class Similarity:
    l1: float
    ssim: float

    def loss(self, ssim_weight: float) -> float:
        """What training minimises."""
        return (1 - ssim_weight) * self.l1 + ssim_weight * (1 - self.ssim)


@dataclass(frozen=True, slots=True)
class Rates:
    mean: float
    harmonics_dc: float
    harmonics_rest: float
    opacity: float
    scale: float
    rotation: float
