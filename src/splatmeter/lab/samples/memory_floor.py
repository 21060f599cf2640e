"""The least memory that training so many Gaussians must hold, whoever trains them."""

from __future__ import annotations

FLOAT_BYTES = 4


def floats_per_gaussian(sh_degree: int = 3) -> int:
    """Mean 3, scale 3, rotation 4, opacity 1, harmonics 3 (degree + 1)²: 59 at degree 3."""
    return 11 + 3 * (sh_degree + 1) ** 2


def held_bytes_per_gaussian(sh_degree: int = 3) -> int:
    """Parameters and Adam's two moments: 708 at degree 3."""
    return 3 * FLOAT_BYTES * floats_per_gaussian(sh_degree)


def step_bytes_per_gaussian(sh_degree: int = 3) -> int:
    """With the gradients of a step: 944 at degree 3."""
    return 4 * FLOAT_BYTES * floats_per_gaussian(sh_degree)
