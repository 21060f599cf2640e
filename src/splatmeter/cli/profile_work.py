"""How much each pass of a step must do at least, from real counts, and what therefore bounds it.

Floating point operations are counted in the formulas of native/: a fused multiply-add is two, comparison,
square root and division one, a power of two 14. Bytes are what has to enter and leave a pass if everything in
between stayed in the caches; writing to a line that was not read counts twice, because the line is fetched
first: a pass whose data fits the caches can pass 100 % of memory's limit.

No pass is made of multiply-adds alone: one that does all the processor can may reach a third of its floating
point limit. So vector operations are counted, too, which is everything done with eight floats at once, loads,
masks, shuffles and stores among it; and apart from those divisions and square roots, for which there is but
one slow unit. What reaches half of none of its limits waits for something else: addresses, branches that were
guessed wrong, single numbers.
"""

from __future__ import annotations

import math
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

# Operations on eight floats, estimated by reading the code: for one vector of pixels, strip, pair or row.
FORWARD_VECTOR = 21
"""Load 4, mask 2, weight and rest 2, end of light 4, three colours 3, recurrence 2, store 4."""
BACKWARD_VECTOR = 30
"""Load 5, mask 2, weight and rest 2, end of light 3, own light 3, behind 1, colours 3, q 4, moments 3,
recurrence 2, store 2."""
START_VECTOR, END_VECTOR = 45, 14
PREPARE_VECTOR = 38
"""For one pair: an eighth of the exact rows (180) and of transposing (75), and its items packed."""
SUM_VECTOR = 36
ROW_TO_SCREEN, ROW_COLOR = 62, 45
"""For one row: an eighth of what eight rows take together, and its own harmonics."""
ROW_LOOK = 13
ROW_GRADIENT = 120
"""An eighth of 16 transposed columns in, 24 moments in and out, 8 + 8 sums, and the formulas (750)."""
CHUNK_ADAM = 19
"""For eight harmonics: load 3, product, triples 2, mask 1, moments 7, step 2, store 3."""
LOSS_VECTOR = 3 * 210

LOSS = 3 * 289
"""Per pixel: moments 5, windows of four of them down 64 and across 64, SSIM and its derivatives 45, windows
of three derivative maps down 48 and across 48, gradient 12, L1 3; three channels."""


Limit = Literal["arithmetic", "memory", "latency"]
Unit = Literal["multiply-adds", "operations", "divisions", "bandwidth"]
FAR = 0.5
"""Share of the nearest limit below which no limit explains a pass."""


@dataclass(frozen=True, slots=True)
class Work:
    flops: float
    bytes: float
    operations: float = 0.0
    """On eight floats."""
    divisions: float = 0.0
    """Each on eight floats; square roots count, too."""


@dataclass(frozen=True, slots=True)
class Share:
    """How near a pass comes to what the machine could do."""

    limit: Limit
    """What bounds it; latency where it is far from all limits."""
    nearest: Unit
    """The limit that it comes nearest to."""
    share: float
    """How much of that limit it reaches."""
    arithmetic: float
    memory: float
    operations: float
    divisions: float


def work_of_passes(counts: Counts, image_pixels: int, sh_degree: int) -> dict[str, Work]:
    """The least work of each pass, under the engine's names for them."""
    c, coefficients = counts, (sh_degree + 1) ** 2
    return {
        "project": _project(c, coefficients),
        "sort": Work(0.0, c.visible * (KEY + WRITTEN * INDEX)),
        "bin": Work(0.0, c.visible * (INDEX + 2 * BOX) + c.pairs * WRITTEN * PAIR),
        "blend forward": Work(
            LANES * (c.vectors * FORWARD + c.items * START_STRIP) + c.walked * PREPARE_PAIR,
            c.walked * (PAIR + SPLAT) + image_pixels * WRITTEN * 4 * FLOAT,
            c.vectors * FORWARD_VECTOR + c.items * START_VECTOR + c.walked * PREPARE_VECTOR,
            c.walked * 10 / LANES,
        ),
        "loss": Work(
            image_pixels * LOSS,
            image_pixels * (3 * FLOAT + 3 + WRITTEN * 3 * FLOAT),
            image_pixels / LANES * LOSS_VECTOR,
            image_pixels / LANES * 3,
        ),
        "blend backward": _blend_backward(c, image_pixels),
        "update": _update(c, coefficients),
    }


def _project(c: Counts, coefficients: int) -> Work:
    colors, drawn = 3 * coefficients * FLOAT, SPLAT + BOX + KEY + INDEX
    return Work(
        c.gaussians * QUICK_LOOK
        + c.visible * (TO_SCREEN + EXTENT + BASIS + PER_COEFFICIENT * coefficients)
        + c.visible_behind * (OPTIMIZED + 3 * coefficients) * CATCH_UP,
        c.gaussians * GEOMETRY
        + c.visible * (colors + WRITTEN * drawn)
        + c.visible_behind * (FIRST_MOMENTS + colors),
        c.gaussians * ROW_LOOK + c.visible * (ROW_TO_SCREEN + ROW_COLOR),
        c.visible * 10 / LANES,
    )


def _blend_backward(c: Counts, image_pixels: int) -> Work:
    return Work(
        LANES * (c.vectors * BACKWARD + c.items * (START_STRIP + END_STRIP))
        + c.walked * (PREPARE_PAIR + SUM_PAIR),
        c.walked * (PAIR + SPLAT) + c.pairs * WRITTEN * PAIR_GRADIENT + image_pixels * 6 * FLOAT,
        c.vectors * BACKWARD_VECTOR
        + c.items * (START_VECTOR + END_VECTOR)
        + c.walked * (PREPARE_VECTOR / 3 + SUM_VECTOR),
        c.vectors,
    )


def _update(c: Counts, coefficients: int) -> Work:
    rows = 2 * (GEOMETRY + MOMENTS + 3 * 3 * coefficients * FLOAT)  # read and written back
    chunks = math.ceil(3 * coefficients / LANES)
    return Work(
        c.seen * (TO_SCREEN + GRADIENT + BASIS + BASIS_GRADIENT + coefficients * COEFFICIENT_GRADIENT)
        + c.seen * ADAM * (OPTIMIZED + 3 * coefficients),
        c.pairs * PAIR_GRADIENT
        + c.visible * (INDEX + BOX)
        + c.seen * (rows + LINE)
        + (c.visible - c.seen) * 2 * LINE,
        c.pairs * 4 + c.seen * (ROW_GRADIENT + chunks * CHUNK_ADAM),
        c.seen * (2 * OPTIMIZED / LANES + 2 * chunks + 10 / LANES),
    )


def share_of(work: Work, seconds: float, limits: Limits) -> Share:
    shares: dict[Unit, float] = {
        "multiply-adds": work.flops / limits.flops,
        "bandwidth": work.bytes / limits.bandwidth,
        "operations": work.operations / limits.operations,
        "divisions": work.divisions / limits.divisions,
    }
    shares = {unit: least / seconds if seconds > 0 else 0.0 for unit, least in shares.items()}
    nearest = max(shares, key=lambda unit: shares[unit])
    reached: Limit = "memory" if nearest == "bandwidth" else "arithmetic"
    return Share(
        reached if shares[nearest] >= FAR else "latency",
        nearest,
        shares[nearest],
        shares["multiply-adds"],
        shares["bandwidth"],
        shares["operations"],
        shares["divisions"],
    )
