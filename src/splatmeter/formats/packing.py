"""Numbers in few bits, as several formats store them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from splatmeter.ops import F32

HALF_ROOT = float(np.sqrt(0.5))
"""No component of a unit quaternion but its largest can be longer."""

_OTHERS = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])


def to_bits(shares: NDArray[np.floating], bits: int) -> NDArray[np.uint32]:
    """[0, 1] to the whole numbers that `bits` hold, to the nearest."""
    highest = (1 << bits) - 1
    return np.clip(np.rint(shares * highest), 0, highest).astype(np.uint32)


def to_bytes(values: NDArray[np.floating]) -> NDArray[np.uint8]:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def field(words: NDArray[np.uint32], shift: int, bits: int) -> NDArray[np.uint32]:
    """`bits` of each word, from the bit `shift` upwards."""
    return (words >> np.uint32(shift)) & np.uint32((1 << bits) - 1)


def from_bits(words: NDArray[np.uint32], shift: int, bits: int) -> NDArray[np.float64]:
    return field(words, shift, bits) / float((1 << bits) - 1)


def smallest_three(quaternions: F32) -> tuple[NDArray[np.intp], F32]:
    """Which component is the largest, made positive, and the other three in their order."""
    largest = np.abs(quaternions).argmax(axis=1)  # [N]
    rows = np.arange(len(quaternions))
    sign = np.where(quaternions[rows, largest] < 0, np.float32(-1), np.float32(1))  # [N]
    return largest, np.take_along_axis(quaternions, _OTHERS[largest], axis=1) * sign[:, None]


def from_smallest_three(largest: NDArray[np.integer], others: NDArray[np.floating]) -> F32:
    quaternions = np.empty((len(others), 4), np.float32)
    np.put_along_axis(quaternions, _OTHERS[largest], others.astype(np.float32), axis=1)
    rest = 1 - np.square(others, dtype=np.float64).sum(axis=1)  # [N]
    quaternions[np.arange(len(others)), largest] = np.sqrt(np.maximum(rest, 0))
    return quaternions


def morton_order(points: F32) -> NDArray[np.intp]:
    """Rows such that neighbours in the list are neighbours in space."""
    if not len(points):
        return np.empty(0, np.intp)
    low = points.min(axis=0).astype(np.float64)
    span = np.maximum(points.max(axis=0) - low, 1e-30)
    grid = ((points - low) / span * (2**21 - 1)).astype(np.uint64)  # [N, 3]
    code = sum(_spread(grid[:, axis]) << np.uint64(axis) for axis in range(3))
    return np.argsort(code, kind="stable")


def _spread(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """21 bits, each followed by two zeros."""
    steps = (
        (32, 0x1F00000000FFFF), (16, 0x1F0000FF0000FF), (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3), (2, 0x1249249249249249),
    )  # fmt: skip
    for shift, mask in steps:
        values = (values | (values << np.uint64(shift))) & np.uint64(mask)
    return values
