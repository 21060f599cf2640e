"""Pixels that a unit of length takes in a scene's photos."""

from __future__ import annotations

import numpy as np
import pytest

from splatmeter.ops import Pinhole
from splatmeter.scene.sight import pixels_per_unit

RNG = np.random.default_rng(5)


def camera(focal: float, away: float, turned: bool = False) -> Pinhole:
    rotation = np.diag([-1.0, 1.0, -1.0]) if turned else np.eye(3)
    return Pinhole(rotation, np.array([0.0, 0.0, away]), focal, focal, 50.0, 40.0, 100, 80)


def test_a_unit_looks_as_large_as_lens_and_distance_make_it() -> None:
    points = RNG.normal(0.0, 0.05, (501, 3))
    for focal, away in ((200.0, 4.0), (200.0, 8.0), (2000.0, 40.0)):
        assert pixels_per_unit(points, [camera(focal, away)]) == pytest.approx(focal / away, rel=0.01)


def test_points_that_nobody_sees_and_wild_ones_count_for_nothing() -> None:
    points = np.concatenate([RNG.normal(0.0, 0.05, (501, 3)), RNG.normal(0.0, 1e6, (200, 3))])
    cameras = [camera(200.0, 4.0)] * 3 + [camera(200.0, -0.1, turned=True)]
    assert pixels_per_unit(points, cameras) == pytest.approx(50, rel=0.01)
    assert pixels_per_unit(points, []) == pixels_per_unit(np.zeros((0, 3)), cameras) == 0
    assert pixels_per_unit(np.full((5, 3), -100.0), [camera(200.0, 4.0)]) == 0


def test_thousands_of_cameras_and_points_take_no_time_and_say_the_same() -> None:
    points = RNG.normal(0.0, 0.05, (300_000, 3))
    assert pixels_per_unit(points, [camera(200.0, 4.0)] * 5000) == pytest.approx(50, rel=0.01)
