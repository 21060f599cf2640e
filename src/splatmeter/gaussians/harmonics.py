"""Spherical harmonics as far as the model needs them: sizes of degrees, and flat colours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import InputError
from splatmeter.ops import F32

C0 = 0.28209479177387814
"""The constant harmonic, 1 / (2 sqrt(pi))."""

HIGHEST_DEGREE = 3


def coefficients_of(degree: int) -> int:
    """Harmonics per channel, the constant one included: 1, 4, 9, 16."""
    return (degree + 1) ** 2


def degree_of(coefficients: int) -> int:
    """The degree that has this many harmonics per channel; InputError if none up to 3 does."""
    for degree in range(HIGHEST_DEGREE + 1):
        if coefficients_of(degree) == coefficients:
            return degree
    raise InputError(
        f"{coefficients} harmonics per colour channel belong to no degree from 0 to {HIGHEST_DEGREE} "
        "(1, 4, 9 or 16 do)."
    )


def dc_from_rgb(rgb: NDArray[np.floating]) -> F32:
    """Colours in [0, 1] -> the constant coefficient that shows them from all sides."""
    return ((np.asarray(rgb, np.float64) - 0.5) / C0).astype(np.float32)


def rgb_from_dc(dc: NDArray[np.floating]) -> F32:
    return (np.asarray(dc, np.float64) * C0 + 0.5).astype(np.float32)
