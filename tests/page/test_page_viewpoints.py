"""Which way is up, what the cameras look at, and where a visitor stands first."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from page_models import looking, ring

from splatmeter.page import viewpoints
from splatmeter.page.compared_photos import chosen
from splatmeter.page.viewpoints import Viewpoint
from splatmeter.scene.camera_files import upward

NOTHING = np.zeros((0, 3))


@pytest.mark.parametrize("up", [(0.0, -1.0, 0.0), (0.0, 0.0, 1.0), (0.6, 0.8, 0.0)])
def test_up_is_square_to_the_horizon_of_level_cameras(up: tuple[float, float, float]) -> None:
    cameras = ring(7, up)[:4]  # from one side only: the mean of their tops would lean
    np.testing.assert_allclose(upward(cameras), up, atol=1e-6)


def test_up_of_cameras_that_do_not_tell_is_the_mean_of_their_tops() -> None:
    one = ring()[0]
    np.testing.assert_allclose(upward([one]), -one.rotation[1], atol=1e-9)
    turned = dataclasses.replace(
        one, rotation=np.stack([-one.rotation[0], -one.rotation[1], one.rotation[2]])
    )
    assert np.isfinite(upward([one, turned])).all(), "tops that cancel out"


def test_the_focus_is_where_the_axes_meet_or_the_middle_of_the_gaussians() -> None:
    np.testing.assert_allclose(viewpoints.looked_at(ring(), NOTHING), 0, atol=1e-9)
    side_by_side = [
        looking(np.array([x, 0, -5.0]), np.array([x, 0, 0.0]), np.array([0, -1.0, 0]))
        for x in (0.0, 1.0, 2.0)
    ]
    middle = np.array([[1.0, 2.0, 3.0]])
    np.testing.assert_allclose(viewpoints.looked_at(side_by_side, middle), middle[0])
    about = np.array([-1.0, 1.0, -1.0])  # turned around where they stand, the focus behind them
    outwards = [
        dataclasses.replace(
            camera, rotation=about[:, None] * camera.rotation, translation=about * camera.translation
        )
        for camera in ring()
    ]
    np.testing.assert_allclose(viewpoints.looked_at(outwards, middle), middle[0])


def test_one_begins_with_a_view_that_was_held_out() -> None:
    views = [Viewpoint(camera, held_out=number == 4) for number, camera in enumerate(ring())]
    around = viewpoints.surroundings(views, NOTHING)
    assert around.first == 4 and around.start is views[4].camera
    assert around.distance == pytest.approx(np.hypot(4, 1.2))


def test_without_cameras_one_sees_the_whole_from_outside() -> None:
    means = np.random.default_rng(1).normal((5.0, 0.0, 0.0), size=(500, 3))
    around = viewpoints.surroundings([], means)
    camera = around.start
    seen = means @ camera.rotation.T + camera.translation
    pixels = seen[:, :2] / seen[:, 2:] * camera.fx + [camera.cx, camera.cy]
    inside = (
        (seen[:, 2] > 0) & (pixels > 0).all(axis=1) & (pixels < [camera.width, camera.height]).all(axis=1)
    )
    assert around.first == -1 and inside.mean() > 0.9
    assert np.isfinite(viewpoints.surroundings([], NOTHING).start.translation).all()


def test_photos_go_to_held_out_views_first() -> None:
    assert chosen([False, True, False]) == {0, 1, 2}
    taken = chosen([number % 8 == 0 for number in range(800)])
    assert len(taken) == 48 and all(number % 8 == 0 for number in taken)
    assert len(chosen([number == 3 for number in range(800)])) == 48
