"""Random numbers that have names instead of an order: seed, step, purpose and row.

Whoever makes them, in whatever order and number, makes the same ones: a device as well as the host, and a
resumed run without having to remember anything. Five 32-bit keys stand for seed, step and purpose; a row's
four words are mixed(mixed(row + keys[0]) ^ keys[1 to 4]).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from splatmeter.ops import F64

Words = NDArray[np.uint32]

RELOCATION = 0
FIRST_CHILD = 1
"""Purposes: the children of a split count on from here."""


def keys_of(*name: int) -> list[int]:
    """Five 32-bit words for any number of integers that are not negative."""
    return [int(word) for word in np.random.SeedSequence(name).generate_state(5)]


def words(keys: Sequence[int], rows: NDArray[np.integer]) -> tuple[Words, Words, Words, Words]:
    first, *others = (np.uint32(key) for key in keys)
    bits = _mixed(rows.astype(np.uint32) + first)  # [K]
    one, two, three, four = (_mixed(bits ^ key) for key in others)
    return one, two, three, four


def normals(keys: Sequence[int], rows: NDArray[np.integer]) -> F64:
    """Three standard normal numbers for each row [K, 3]."""
    one, two, three, four = words(keys, rows)
    return np.stack([*_two_normals(one, two), _two_normals(three, four)[0]], axis=1)


def uniform(keys: Sequence[int], rows: NDArray[np.integer]) -> F64:
    """At least 0 and below 1, in steps of 2^-53 [K]."""
    one, two, _, _ = words(keys, rows)
    high, low = (one >> np.uint32(5)).astype(np.float64), (two >> np.uint32(6)).astype(np.float64)
    return (high * 2.0**26 + low) / 2.0**53


def _mixed(bits: Words) -> Words:
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return bits ^ (bits >> np.uint32(16))


def _two_normals(one: Words, two: Words) -> tuple[F64, F64]:
    """Box and Muller; the lowest bit of `two` is the sign of the cosine."""
    radius = np.sqrt(-2 * np.log(((one >> np.uint32(8)) + 1) / 2**24))
    angle = ((two >> np.uint32(8)) / 2**24 - 0.5) * np.pi
    sign = np.where(two & np.uint32(1), -1.0, 1.0)
    return radius * np.sin(angle), radius * np.cos(angle) * sign
