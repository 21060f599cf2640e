"""The golden file is what the reference says today."""

from __future__ import annotations

import numpy as np
import pytest
from make_golden import CAMERAS, GOLDEN, view_arrays
from parity_scenes import random_table

pytest.importorskip("torch", reason="torch is not installed: whether golden.npz is current was not checked")


def test_the_golden_file_is_up_to_date() -> None:
    with np.load(GOLDEN) as archive:
        np.testing.assert_array_equal(archive["table/geometry"], random_table(60, seed=20).geometry)
        for number, view in enumerate(CAMERAS):
            for name, expected in view_arrays(view, number).items():
                # float64 sums may be ordered otherwise elsewhere: one rounding to float32
                stored = archive[f"view{number}/{name}"]
                np.testing.assert_allclose(stored, expected, rtol=1e-6, atol=1e-7, err_msg=name)
