"""Scans and stable sorts at sizes at which every loop turns more than once."""

from __future__ import annotations

import numpy as np
import pytest
from standin import Standin
from twins import CardTwin


@pytest.mark.parametrize("count", [1, 31, 2048, 2049, 530_000])
def test_scans_are_exact(card: CardTwin, schedule: Standin, count: int) -> None:
    """Beyond 256 x 2048 numbers the sums of blocks take two turns."""
    schedule.option("checks", int(count < 100_000))  # global accesses; shared memory is always checked
    values = np.random.default_rng(0).integers(0, 4000, count, dtype=np.uint32)
    out = np.empty_like(values)
    total = card.card.scan(values, 2, 255, out)
    wanted = (values >> 2) & 255
    np.testing.assert_array_equal(out, np.cumsum(wanted) - wanted)
    assert total == wanted.sum()


@pytest.mark.parametrize("count", [1, 2049, 530_000])
def test_wide_scans_are_exact(card: CardTwin, schedule: Standin, count: int) -> None:
    schedule.option("checks", int(count < 100_000))
    values = np.random.default_rng(3).integers(0, 1 << 40, count, dtype=np.uint64)
    expected = np.cumsum(values)
    card.card.scan_wide(values)
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("bits", [5, 9, 18, 32])
@pytest.mark.parametrize("count", [0, 1, 33, 2047, 5000])
def test_sorting_keeps_the_order_of_equals(card: CardTwin, count: int, bits: int) -> None:
    keys = np.random.default_rng(1).integers(0, 1 << bits, count, dtype=np.uint32)
    keys[: count // 2] %= 7  # many equals
    order = np.empty(count, np.uint32)
    card.card.sort(keys, bits, order)
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("count", [1, 33, 5000])
def test_wide_keys_are_sorted_too(card: CardTwin, count: int) -> None:
    keys = np.random.default_rng(2).integers(0, 1 << 63, count, dtype=np.uint64)
    keys[::3] &= np.uint64(0xFF00FF)
    order = np.empty(count, np.uint32)
    card.card.sort(keys, 63, order)
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))


def test_equal_keys_fill_one_digit(card: CardTwin) -> None:
    keys = np.full(4100, 511, np.uint32)
    order = np.empty(4100, np.uint32)
    card.card.sort(keys, 9, order)
    np.testing.assert_array_equal(order, np.arange(4100))
