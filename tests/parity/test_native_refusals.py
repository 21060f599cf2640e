"""What the native engine refuses instead of returning numbers that are none."""

from __future__ import annotations

import numpy as np
import pytest

from splatmeter.backends.native import native_backend
from splatmeter.errors import SplatmeterError
from splatmeter.ops import Pinhole, RasterSettings, empty_table


def test_a_fully_opaque_cap_is_refused_because_backward_would_divide_by_zero() -> None:
    try:
        backend = native_backend(threads=1)
    except SplatmeterError as problem:
        pytest.skip(f"the native engine was not checked: {problem}")
    camera = Pinhole(np.eye(3), np.zeros(3), 10.0, 10.0, 4.0, 4.0, 8, 8)
    with pytest.raises(ValueError, match="max_alpha"):
        backend.upload(empty_table(1)).render(camera, RasterSettings(max_alpha=1.0))
    for cut in (-0.1, 1.0, float("nan")):
        with pytest.raises(ValueError, match="light_cut"):
            backend.upload(empty_table(1)).render(camera, RasterSettings(light_cut=cut))
