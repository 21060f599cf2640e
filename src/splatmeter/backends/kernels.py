"""What an engine in the host's memory is made of, and what tests compare: single operations, with forward and
backward apart. The trainer never sees them.

`Kernels` is a frozen value of functions, so that swapping one in an experiment is one `dataclasses.replace`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import Explore
from splatmeter.backends.lazy_adam import AdamStep
from splatmeter.densify.draws import keys_of
from splatmeter.ops import F32, F64, Pinhole, RasterSettings, Rates, Similarity, Table


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A rendering in the host's memory."""

    color: F32  # [3, H, W] background included, not clamped
    transmittance: F32  # [H, W] what the background shows through


Tape = Any
"""What backward needs of forward; opaque, valid until the engine's next forward."""


@dataclass(frozen=True, slots=True, eq=False)
class Gradients:
    """The unfused backward's result: with respect to stored forms."""

    geometry: F32  # [N, 16], columns OPTIMIZED filled, the rest zero
    harmonics: F32  # [N, 48]
    mean2d: F32  # [N, 2] in units of half the image: pixels times (W/2, H/2)
    mean2d_absolute: F32  # [N] sum over pixels of |d/dx| W/2 + |d/dy| H/2; zero unless asked for
    visible: NDArray[np.bool_]  # [N] could reach 1/255 somewhere in the image


@dataclass(frozen=True, slots=True)
class Exploration:
    """`ops.Explore` at a certain step of the optimizer, for a certain number of Gaussians.

    With o the opacity, S the covariance and v the unbiased second moment of a stored value:
        mean     += sqrt(steps) noise rates.mean / (1 + exp(100 (o - 0.005))) S n,   n standard normal;
        value    -= steps rate g / sqrt(v + g^2),   g = weight d opacity / d logit or weight d size / d log.
    """

    seed: int
    number: int
    """The optimizer's step: with the seed and the row it names the random numbers."""
    steps: int
    rates: Rates
    noise: float
    opacity_weight: float
    """For one Gaussian: the weight of the mean over all of them, divided by their number."""
    scale_weight: float
    beta2: float = 0.999

    @property
    def second_correction(self) -> float:
        return 1 / (1 - self.beta2 ** max(1, self.number))

    @property
    def noise_distance(self) -> float:
        return math.sqrt(self.steps) * self.noise * self.rates.mean

    def random_keys(self) -> list[int]:
        """Five words, from which densify/draws.py makes a row's numbers."""
        return keys_of(self.seed, self.number)


def exploration(asked: Explore, rates: Rates, number: int, count: int) -> Exploration:
    return Exploration(
        seed=asked.seed,
        number=number,
        steps=asked.steps,
        rates=rates,
        noise=asked.noise,
        opacity_weight=asked.opacity / count,
        scale_weight=asked.scale / (3 * count),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    forward: Callable[[Table, Pinhole, RasterSettings], tuple[Picture, Tape]]
    """Never writes to the table: rows that are behind are brought up to date on the fly."""

    backward_and_update: Callable[[Tape, F32, AdamStep | None], None]
    """(tape, dL/dcolor [3, H, W], step): backward, statistics into the table, and Adam in one pass. Without a
    step only the statistics move."""

    settle: Callable[[Table], None]
    """Apply what is pending to every row in place; afterwards LAST_UPDATE equals the step everywhere."""

    explore: Callable[[Table, Exploration], None]
    """In place, for every row as it stands; what rows are owed stays owed."""

    image_loss: Callable[[F32, NDArray[np.uint8], float], tuple[Similarity, F32]]
    """(rendered [3, H, W], photo u8 [3, H, W], ssim weight) -> L1 and SSIM, and dL/drendered [3, H, W]."""

    exposed_loss: Callable[[F32, NDArray[np.uint8], float, F64], tuple[Similarity, F32, F64]]
    """(..., transform [3, 4]) -> the same for A rendered + b, with the gradient by the rendering itself, and
    dL/dtransform [3, 4]."""

    similarity: Callable[[F32, NDArray[np.uint8]], Similarity]
    """The values of image_loss without the gradient."""

    sampling_distance: Callable[[F32, Sequence[Pinhole]], F32]
    """means [N, 3] -> smallest depth over the cameras that see the point [N]; inf where none does."""

    neighbour_distance: Callable[[F32], F32]
    morton_order: Callable[[F32], NDArray[np.int64]]

    rearrange: Callable[[Table, NDArray[np.int64], NDArray[np.bool_]], Table]
    """(table, source rows [M], fresh [M]) -> new table; fresh rows get zero moments, all get zero statistics.
    The old table's arrays are released one by one as they are copied: do not use it afterwards."""

    backward: Callable[[Tape, F32, F32 | None], Gradients]
    """(tape, dL/dcolor, dL/dtransmittance [H, W] or None). For tests: half of `backward_and_update`."""

    adam: Callable[[Table, Gradients, AdamStep], None]
    """Dense Adam over a settled table. For tests: the other half."""

    timings: Callable[[], Mapping[str, float]] = field(default=dict)
    """Seconds per pass since the last call."""
