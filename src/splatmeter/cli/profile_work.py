"""How much each pass of a step must do at least: floating point operations and bytes, from real counts.

Operations are counted in the formulas of native/: a fused multiply-add is two, comparison, square root and
division one, a power of two 14. Bytes are what has to enter and leave a pass if everything in between stayed
in the caches; writing to a line that was not read counts twice, because the line is fetched first. A pass of
additions and comparisons alone cannot pass 50 % of the arithmetic limit; one whose data fits the caches can
pass 100 % of memory's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from splatmeter.backends.native.limits import Counts, Limits

FLOAT = 4
LINE = 64
WRITTEN = 2
"""Bytes on the bus for one byte written to a line that was not read before."""
LANES = 8

GEOMETRY = 16 * FLOAT
MOMENTS = 24 * FLOAT
FIRST_MOMENTS = 12 * FLOAT
SPLAT, BOX, KEY, INDEX, PAIR = 64, 16, 8, 4, 8
PAIR_GRADIENT = 12 * FLOAT

# Operations on one Gaussian.
QUICK_LOOK = 60
"""Radius 20, five half-spaces of 8."""
TO_SCREEN = 258
"""Camera space 18, rotation 44, filtered scales 81, opacity 20, screen matrix 29, footprint 66."""
EXTENT = 75
CATCH_UP = 2
"""Per column that lazy Adam owes something: direction times drift, subtracted."""
BASIS, PER_COEFFICIENT = 72, 6
GRADIENT = 320
"""Through footprint, covariance, rotation, scales, position and opacity."""
BASIS_GRADIENT, COEFFICIENT_GRADIENT = 110, 9
ADAM = 13
"""Per parameter: two moments (7), root and correction (3), division, step (2)."""
OPTIMIZED = 11

# Operations on one pixel that takes a Gaussian, on one strip, on one pair.
FORWARD = 13
"""Cap, two comparisons, weight and rest (2), three colours (6), the exponential's recurrence (2)."""
BACKWARD = 31
"""Forward without colours 8, own light 6, light behind 1, colour sums 6, q 4, its moments 6."""
START_STRIP, END_STRIP = 40, 8
PREPARE_PAIR = 180
"""Exact rows in each of a tile's four strips."""
SUM_PAIR = 10 * (LANES - 1)

LOSS = 3 * 289
"""Per pixel: moments 5, windows of four of them down 64 and across 64, SSIM and its derivatives 45, windows
of three derivative maps down 48 and across 48, gradient 12, L1 3; three channels."""


@dataclass(frozen=True, slots=True)
class Work:
    flops: float
    bytes: float


@dataclass(frozen=True, slots=True)
class Share:
    """How near a pass comes to what the machine could do, by the limit that binds it."""

    limit: Literal["arithmetic", "memory"]
    share: float
    arithmetic: float
    memory: float


def work_of_passes(counts: Counts, image_pixels: int, sh_degree: int) -> dict[str, Work]:
    """The least work of each pass, under the engine's names for them."""
    coefficients = (sh_degree + 1) ** 2
    colors = 3 * coefficients * FLOAT
    c = counts
    drawn = SPLAT + BOX + KEY + INDEX
    adam_rows = 2 * (GEOMETRY + MOMENTS + 3 * colors)  # read and written back
    return {
        "project": Work(
            c.gaussians * QUICK_LOOK
            + c.visible * (TO_SCREEN + EXTENT + BASIS + PER_COEFFICIENT * coefficients)
            + c.visible_behind * (OPTIMIZED + 3 * coefficients) * CATCH_UP,
            c.gaussians * GEOMETRY
            + c.visible * (colors + WRITTEN * drawn)
            + c.visible_behind * (FIRST_MOMENTS + colors),
        ),
        "sort": Work(0.0, c.visible * (KEY + WRITTEN * INDEX)),
        "bin": Work(0.0, c.visible * (INDEX + 2 * BOX) + c.pairs * WRITTEN * PAIR),
        "blend forward": Work(
            LANES * (c.vectors * FORWARD + c.items * START_STRIP) + c.walked * PREPARE_PAIR,
            c.walked * (PAIR + SPLAT) + image_pixels * WRITTEN * 4 * FLOAT,
        ),
        "loss": Work(image_pixels * LOSS, image_pixels * (3 * FLOAT + 3 + WRITTEN * 3 * FLOAT)),
        "blend backward": Work(
            LANES * (c.vectors * BACKWARD + c.items * (START_STRIP + END_STRIP))
            + c.walked * (PREPARE_PAIR + SUM_PAIR),
            c.walked * (PAIR + SPLAT) + c.pairs * WRITTEN * PAIR_GRADIENT + image_pixels * 6 * FLOAT,
        ),
        "update": Work(
            c.seen * (TO_SCREEN + GRADIENT + BASIS + BASIS_GRADIENT + coefficients * COEFFICIENT_GRADIENT)
            + c.seen * ADAM * (OPTIMIZED + 3 * coefficients),
            c.pairs * PAIR_GRADIENT
            + c.visible * (INDEX + BOX)
            + c.seen * (adam_rows + LINE)
            + (c.visible - c.seen) * 2 * LINE,
        ),
    }


def share_of(work: Work, seconds: float, limits: Limits) -> Share:
    arithmetic = work.flops / limits.flops / seconds if seconds > 0 else 0.0
    memory = work.bytes / limits.bandwidth / seconds if seconds > 0 else 0.0
    return Share(
        "arithmetic" if arithmetic >= memory else "memory", max(arithmetic, memory), arithmetic, memory
    )
