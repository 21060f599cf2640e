"""The operations a backend provides, and the arrays they exchange.

A backend is a frozen value holding functions, so that swapping one kernel in an experiment is one
`dataclasses.replace`. Everything here is NumPy, float32, C-contiguous unless said otherwise.

Conventions, once for all: camera axes are COLMAP's (x right, y down, z forward); the centre of the first
pixel lies at (0.5, 0.5); images are planar [3, H, W]; colours are in [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import UsageError

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

NEAR = 0.2
"""Gaussians at or nearer than this depth (world units) are not drawn."""


# ---- the camera -------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class Pinhole:
    """An undistorted camera at the resolution it is rendered at."""

    rotation: F64  # [3, 3] world to camera
    translation: F64  # [3]
    fx: float
    fy: float
    cx: float
    cy: float
    width: int
    height: int

    @property
    def position(self) -> F64:
        return -self.rotation.T @ self.translation  # [3] world


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

    Adam's moments m and v are kept normalized, as first = m / sqrt(v) and second = sqrt(v): what a row owes
    for steps in which nobody saw it is then `first` times a number: reading it needs neither v nor a root.

    A table without an optimizer (a model read from a file) has moments with zero rows and `pending` None.
    """

    geometry: F32  # [N, 16]
    harmonics: F32  # [N, 48]
    geometry_moments: F32  # [N, 24] or [0, 24]
    harmonics_first: F32  # [N, 48] or [0, 48]
    harmonics_second: F32  # [N, 48] or [0, 48]
    pending: Pending | None = None

    @property
    def count(self) -> int:
        return len(self.geometry)

    @property
    def trainable(self) -> bool:
        return len(self.geometry_moments) == len(self.geometry)


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """What zero-gradient Adam steps still owe to rows that were not seen for a while.

    Dense Adam moves a Gaussian also in steps where its gradient is zero. Such steps have a closed form:
    after k of them  m -> b1^k m,  v -> b2^k v,  p -> p - (m / (sqrt(v) + epsilon)) * rate * drift[k].
    A row whose LAST_UPDATE is `step - k` is k steps behind. Ages past the tables use
    the last entry, except that second moments go on decaying as second_decay[1]^k.
    """

    step: int  # optimizer steps done
    drift: F64  # [AGES] sum over the missed steps of b1^j b2^(-j/2) and the bias corrections, rate 1
    mean_drift: F64  # [AGES] the same with the means' own, changing rate already in
    rates: Rates  # of the latest step; `mean` is contained in mean_drift instead
    first_decay: F32  # [AGES] b1^k
    second_decay: F32  # [AGES] b2^k


def one_step_older(drifts: F64, terms: F64, rates: Sequence[float], fallen: float) -> F64:
    """`drift` and `mean_drift` [2, AGES] after one more step: sums of one term more, at one age more.

    `rates` are what each table's new terms are multiplied by; what is in the first one grows by `fallen`.
    """
    older = np.multiply.outer(rates, terms)  # [2, AGES]
    older[0, 1:] += drifts[0, :-1] * fallen
    older[1, 1:] += drifts[1, :-1]
    return older


PENDING_AGES = 512
"""b1^512 is 4e-24: nothing moves after that."""


def empty_table(count: int, *, trainable: bool = True) -> Table:
    """All zeros; the caller fills the columns."""
    moments = count if trainable else 0
    return Table(
        geometry=np.zeros((count, GEOMETRY_WIDTH), np.float32),
        harmonics=np.zeros((count, HARMONICS_WIDTH), np.float32),
        geometry_moments=np.zeros((moments, GEOMETRY_MOMENTS_WIDTH), np.float32),
        harmonics_first=np.zeros((moments, HARMONICS_WIDTH), np.float32),
        harmonics_second=np.zeros((moments, HARMONICS_WIDTH), np.float32),
    )


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


@dataclass(frozen=True, slots=True, eq=False)
class Rendering:
    color: F32  # [3, H, W] background included, not clamped
    transmittance: F32  # [H, W] what the background shows through


Tape = Any
"""What backward needs of forward; opaque, valid until the backend's next forward."""


@dataclass(frozen=True, slots=True, eq=False)
class Gradients:
    """The unfused backward's result: with respect to stored forms."""

    geometry: F32  # [N, 16], columns OPTIMIZED filled, the rest zero
    harmonics: F32  # [N, 48]
    mean2d: F32  # [N, 2] in units of half the image: pixels times (W/2, H/2)
    mean2d_absolute: F32  # [N] sum over pixels of |d/dx| W/2 + |d/dy| H/2; zero unless asked for
    visible: NDArray[np.bool_]  # [N] could reach 1/255 somewhere in the image


# ---- loss -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Similarity:
    l1: float
    ssim: float

    def loss(self, ssim_weight: float) -> float:
        return (1 - ssim_weight) * self.l1 + ssim_weight * (1 - self.ssim)


# ---- optimizer --------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Rates:
    mean: float
    harmonics_dc: float
    harmonics_rest: float
    opacity: float
    scale: float
    rotation: float


@dataclass(frozen=True, slots=True)
class AdamStep:
    """One step of the published optimizer; `number` counts from 1 and drives the bias correction."""

    number: int
    rates: Rates
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-15


@dataclass(frozen=True, slots=True)
class Exploration:
    """What 3DGS-MCMC adds to `steps` steps of training, done at once: noise on the means, and the gradients
    of weight * opacity and weight * size of every Gaussian, pulled through Adam's root.

    With o the opacity, S the covariance and v the unbiased second moment of a stored value:
        mean     += sqrt(steps) noise rates.mean / (1 + exp(100 (o - 0.005))) S n,   n standard normal;
        value    -= steps rate g / sqrt(v + g^2),   g = weight d opacity / d logit or weight d size / d log.
    """

    seed: int
    number: int
    """Of the optimizer's step: with the seed and the row it names the random numbers."""
    steps: int
    rates: Rates
    noise: float
    opacity_weight: float
    """Of one Gaussian: of a mean over all of them it is the mean's weight over their number."""
    scale_weight: float
    beta2: float = 0.999

    @property
    def second_correction(self) -> float:
        return 1 / (1 - self.beta2 ** max(1, self.number))

    def random_keys(self) -> list[int]:
        """Five 32-bit words; a row's random bits are mixed(mixed(row + keys[0]) ^ keys[1 to 4])."""
        generator = np.random.SeedSequence((self.seed, self.number))
        return [int(word) for word in generator.generate_state(5)]


def _cannot_explore(table: Table, exploration: Exploration) -> None:
    raise UsageError("This backend cannot train with --densification mcmc.")


# ---- the backend ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class Backend:
    name: str

    forward: Callable[[Table, Pinhole, RasterSettings], tuple[Rendering, Tape]]
    """Never writes to the table: rows that are behind are brought up to date on the fly."""

    backward: Callable[[Tape, F32, F32 | None], Gradients]
    """(tape, dL/dcolor [3, H, W], dL/dtransmittance [H, W] or None); the twin of `backward_and_update`."""

    backward_and_update: Callable[[Tape, F32, AdamStep | None], None]
    """Backward, statistics into the table, and Adam in one pass. Without a step only the statistics move."""

    adam: Callable[[Table, Gradients, AdamStep], None]
    """Dense Adam over a settled table; the twin of the lazy one inside `backward_and_update`."""

    settle: Callable[[Table], None]
    """Apply what is pending to every row in place; afterwards LAST_UPDATE equals the step everywhere."""

    image_loss: Callable[[F32, NDArray[np.uint8], float], tuple[Similarity, F32]]
    """(rendered [3, H, W], photo u8 [3, H, W], ssim weight) -> L1 and SSIM, and dL/drendered [3, H, W]."""

    similarity: Callable[[F32, NDArray[np.uint8]], Similarity]
    """The same values without the gradient, for evaluation."""

    sampling_distance: Callable[[F32, Sequence[Pinhole]], F32]
    """means [N, 3] -> smallest depth over the cameras that see the point [N]; inf where none does."""

    neighbour_distance: Callable[[F32], F32]
    """points [N, 3] -> mean of the squared distances to the three nearest other points [N], exact."""

    morton_order: Callable[[F32], NDArray[np.int64]]
    """means [N, 3] -> the order of rows that keeps neighbours in space near in memory [N]."""

    rearrange: Callable[[Table, NDArray[np.int64], NDArray[np.bool_]], Table]
    """(table, source rows [M], fresh [M]) -> new table; fresh rows get zero moments, all get zero statistics.
    The old table's arrays are released one by one as they are copied: do not use it afterwards."""

    one_step_older: Callable[[F64, F64, Sequence[float], float], F64] = field(default=one_step_older)
    """See the function of that name, which is its twin."""

    explore: Callable[[Table, Exploration], None] = field(default=_cannot_explore)
    """In place, for every row as it stands; what rows are owed stays owed."""

    timings: Callable[[], Mapping[str, float]] = field(default=dict)
    """Seconds per pass since the last call."""

    synchronize: Callable[[], None] = field(default=lambda: None)
    description: Mapping[str, Any] = field(default_factory=dict)
    """Device, instruction set, threads, compiler: recorded with every run."""
