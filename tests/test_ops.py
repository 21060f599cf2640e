"""Where the arrays of a table lie in memory."""

from __future__ import annotations

import numpy as np
import pytest

from splatmeter.backends.native import native_kernels
from splatmeter.ops import CACHE_LINE, WIDTHS, Table, aligned, empty_table


def begins(table: Table) -> set[int]:
    return {getattr(table, name).ctypes.data % CACHE_LINE for name in WIDTHS}


@pytest.mark.parametrize("shape", [(), (0,), (0, 16), (1, 3), (1000, 48)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_aligned_array_begins_with_a_cache_line_and_has_its_shape(shape, dtype):
    array = aligned(shape, dtype, make=np.zeros)
    assert array.ctypes.data % CACHE_LINE == 0 or array.size == 0
    assert (array.shape, array.dtype, array.flags.c_contiguous) == (shape, dtype, True)
    assert not array.any()


def test_a_table_begins_with_cache_lines_and_still_does_after_its_rows_moved():
    table = empty_table(1001)
    table.harmonics[:] = np.arange(1001)[:, None]
    assert begins(table) == {0}
    order, fresh = np.arange(1001)[::-1].copy(), np.zeros(1001, np.bool_)
    moved = native_kernels(1).rearrange(table, order, fresh)
    assert begins(moved) == {0}
    assert (moved.harmonics[:, 47] == np.arange(1001)[::-1]).all()
