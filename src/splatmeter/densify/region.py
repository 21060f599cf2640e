"""Where Gaussians may be added: a convex part of space, given by the half-spaces that bound it.

As text, `nx,ny,nz,d` for each half-space nx x + ny y + nz z >= d, with semicolons between them; without any
half-space it is all of space.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import HalfSpaces
from splatmeter.errors import UsageError
from splatmeter.ops import F32, F64

MOST_HALF_SPACES = 64


def parse(text: str | None) -> HalfSpaces:
    """UsageError where it is no region."""
    if text is None:
        return ()
    rows = [_numbers(row) for row in text.split(";")]
    if len(rows) > MOST_HALF_SPACES:
        raise UsageError(
            f"--densify-region has {len(rows)} half-spaces, but at most {MOST_HALF_SPACES} are possible."
        )
    return tuple(rows)


def text_of(region: HalfSpaces) -> str | None:
    """The same numbers to the last bit when it is read again."""
    return ";".join(",".join(map(repr, map(float, row))) for row in region) or None


def inside(points: F32 | F64, region: HalfSpaces) -> NDArray[np.bool_]:
    """Which of the points [N, 3] lie in all half-spaces; what is not a number lies nowhere."""
    found = np.ones(len(points), np.bool_)  # [N]
    for x, y, z, least in region:
        found &= along(points, (x, y, z)) >= least
    return found


def along(points: F32 | F64, axis: tuple[float, float, float]) -> F64:
    """Coordinates along an axis [N], the same bits however many points are asked about at once."""
    x, y, z = (points[:, k].astype(np.float64) for k in range(3))
    return x * axis[0] + y * axis[1] + z * axis[2]


def _numbers(row: str) -> tuple[float, float, float, float]:
    try:
        x, y, z, least = map(float, row.split(","))
    except ValueError:
        raise UsageError(_NO_REGION.format(row[:80])) from None
    if not all(map(math.isfinite, (x, y, z, least))) or not x * x + y * y + z * z > 0:
        raise UsageError(_NO_REGION.format(row[:80]))
    return x, y, z, least


_NO_REGION = (
    "--densify-region: {!r} is no half-space. Write four finite numbers nx,ny,nz,d with a direction that is "
    "not zero, and semicolons between half-spaces, such as '1,0,0,-2;-1,0,0,-2' for x between -2 and 2."
)
