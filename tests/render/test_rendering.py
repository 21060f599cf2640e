"""Pictures of renderings, smaller cameras, camera paths."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from splatmeter.errors import UsageError
from splatmeter.ops import Pinhole
from splatmeter.render.path import orbit
from splatmeter.render.pictures import box_average, shrunk, to_8bit


def looking_at_origin(angle: float, radius: float = 4.0, height: float = 1.0) -> Pinhole:
    position = np.array([radius * math.cos(angle), -height, radius * math.sin(angle)])
    forward = -position / np.linalg.norm(position)
    right = np.cross(forward, [0, -1, 0])
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward])
    return Pinhole(rotation, -rotation @ position, 100, 110, 33, 20, 64, 48)


def test_rounding_is_half_up_and_clamped() -> None:
    color = np.array([-1, 0, 0.5 / 255, 0.49 / 255, 1, 7, np.nan, np.inf], np.float32)
    assert to_8bit(color).tolist() == [0, 0, 1, 0, 255, 255, 0, 255]


def test_a_smaller_camera_sees_the_same_rays() -> None:
    camera = looking_at_origin(0.3)
    smaller = shrunk(camera, 4)
    assert (smaller.width, smaller.height) == (16, 12)
    point = camera.rotation @ np.array([0.1, 0.2, 0.3]) + camera.translation
    full = camera.fx * point[0] / point[2] + camera.cx
    assert smaller.fx * point[0] / point[2] + smaller.cx == pytest.approx(full / 4)
    with pytest.raises(UsageError, match="leaves nothing"):
        shrunk(camera, 64)


def test_box_averages_are_repeated_two_by_two_averages() -> None:
    photo = np.random.default_rng(0).integers(0, 256, (3, 19, 26), dtype=np.uint8)
    average = photo[:, :16, :24].astype(np.float64) / 255
    for _ in range(3):
        average = (average[:, ::2] + average[:, 1::2]) / 2
        average = (average[:, :, ::2] + average[:, :, 1::2]) / 2
    np.testing.assert_allclose(box_average(photo, 8), average, atol=1e-7)


def test_the_orbit_is_closed_smooth_and_near_the_cameras() -> None:
    cameras = [looking_at_origin(angle) for angle in np.linspace(0, 2 * math.pi, 24, endpoint=False)]
    path = orbit(cameras, 60)
    places = np.stack([camera.position for camera in path])
    steps = np.linalg.norm(places - np.roll(places, 1, axis=0), axis=1)
    assert steps.max() < 1.5 * steps.min()
    assert np.linalg.norm(places[0] - cameras[0].position) < 0.05
    for camera in path:
        np.testing.assert_allclose(camera.rotation @ camera.rotation.T, np.eye(3), atol=1e-9)
        assert np.linalg.det(camera.rotation) == pytest.approx(1)
        seen = camera.translation  # of the origin
        assert seen[2] > 0 and abs(seen[0] / seen[2]) < 0.05 and abs(seen[1] / seen[2]) < 0.05
        assert camera.rotation[1] @ [0, 1, 0] > 0.5, "the picture must not be upside down"


def test_photos_of_one_side_give_a_path_on_that_side() -> None:
    cameras = [looking_at_origin(angle) for angle in np.linspace(-1, 1, 15)]
    path = orbit(cameras, 40)
    angles = [math.atan2(camera.position[2], camera.position[0]) for camera in path]
    assert min(angles) < -0.9 and max(angles) > 0.9 and max(map(abs, angles)) < 1.1
    assert all(np.linalg.norm(camera.position) == pytest.approx(math.sqrt(17), rel=0.02) for camera in path)


@pytest.mark.parametrize("count", [1, 2])
def test_even_one_camera_makes_a_path(count: int) -> None:
    path = orbit([looking_at_origin(angle) for angle in range(count)], 3)
    assert len(path) == 3
    assert all(np.isfinite(camera.translation).all() for camera in path)


def test_a_path_needs_frames_and_cameras() -> None:
    with pytest.raises(UsageError):
        orbit([], 5)
    with pytest.raises(UsageError):
        orbit([looking_at_origin(0)], 0)


def test_rounding_a_picture_makes_one_copy_of_it() -> None:
    """Evaluation must not need more memory than a training step, which holds the gradient image instead."""
    color = np.full((3, 200, 300), 0.4, np.float32)
    tracemalloc.start()
    to_8bit(color)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.6 * color.nbytes
