"""Cameras that people build: the conventions by what falls where, and a sentence for what is no camera."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splatmeter.camera.camera import Camera, checked
from splatmeter.errors import UsageError
from splatmeter.ops import F64

LENS: dict[str, Any] = {"width": 64, "height": 48, "fx": 60.0, "fy": 50.0, "cx": 30.0, "cy": 25.0}


def pixel(camera: Camera, point: Any) -> tuple[float, float]:
    x, y, z = camera.rotation @ np.asarray(point, float) + camera.translation
    assert z > 0, "behind the camera"
    return camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy


def turned(w: float, x: float, y: float, z: float) -> F64:
    q = np.array([w, x, y, z]) / np.linalg.norm([w, x, y, z])
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def pose(rotation: Any = None, place: Any = (1.0, 2.0, 3.0)) -> F64:
    matrix = np.eye(4)
    matrix[:3, :3] = turned(0.3, -0.8, 0.4, 0.2) if rotation is None else rotation
    matrix[:3, 3] = place
    return matrix


# ---- conventions ------------------------------------------------------------------------------------------
def test_axes_are_right_down_and_forward() -> None:
    camera = Camera.from_camera_to_world(np.eye(4), **LENS)
    assert pixel(camera, (0, 0, 5)) == (30, 25)
    right, down = pixel(camera, (1, 0, 5)), pixel(camera, (0, 1, 5))
    assert right[0] > 30 and right[1] == 25
    assert down[1] > 25 and down[0] == 30


def test_the_last_column_of_camera_to_world_is_where_it_stands_and_the_third_where_it_looks() -> None:
    matrix = pose()
    camera = Camera.from_camera_to_world(matrix, **LENS)
    np.testing.assert_allclose(camera.position, matrix[:3, 3])
    assert pixel(camera, matrix[:3, 3] + 7 * matrix[:3, 2]) == pytest.approx((30, 25))


def test_both_constructors_are_each_others_inverse() -> None:
    matrix = pose()
    first = Camera.from_camera_to_world(matrix, **LENS)
    second = Camera.from_world_to_camera(np.linalg.inv(matrix), **LENS)
    np.testing.assert_allclose(first.rotation, second.rotation, atol=1e-12)
    np.testing.assert_allclose(first.translation, second.translation, atol=1e-12)
    assert first.intrinsics == second.intrinsics == LENS


@given(
    st.lists(st.floats(-1, 1), min_size=4, max_size=4), st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3)
)
def test_a_camera_tells_the_pose_it_was_built_from(quaternion: list[float], place: list[float]) -> None:
    if np.linalg.norm(quaternion) < 0.01:
        return
    matrix = pose(turned(*quaternion), place)
    span = max(1.0, float(np.abs(place).max()))
    for build, tell in (
        (Camera.from_camera_to_world, "camera_to_world"),
        (Camera.from_world_to_camera, "world_to_camera"),
    ):
        camera = build(matrix, **LENS)
        np.testing.assert_allclose(getattr(camera, tell), matrix, atol=1e-12 * span)
        again = build(getattr(camera, tell), **camera.intrinsics)
        np.testing.assert_allclose(again.position, camera.position, atol=1e-9 * span)


def test_a_pose_of_a_scene_comes_back_to_the_last_bit() -> None:
    """Otherwise a picture of the same camera could differ in a bit."""
    camera = Camera.from_world_to_camera(pose(), **LENS)
    again = Camera.from_world_to_camera(camera.world_to_camera, **camera.intrinsics)
    assert again.rotation.tobytes() == camera.rotation.tobytes()
    assert again.translation.tobytes() == camera.translation.tobytes()


def test_look_at_has_the_target_in_the_middle_and_up_on_top() -> None:
    camera = Camera.look_at((3, -2, 1), (0, 0.5, 0), up=(0, 0, 1), **LENS)
    assert pixel(camera, (0, 0.5, 0)) == pytest.approx((30, 25))
    across, down = pixel(camera, (0, 0.5, 0.3))
    assert down < 25 and across == pytest.approx(30)
    np.testing.assert_allclose(camera.position, (3, -2, 1), atol=1e-12)
    assert np.linalg.det(camera.rotation) == pytest.approx(1)


def test_the_field_of_view_reaches_from_the_left_edge_to_the_right() -> None:
    camera = Camera.from_camera_to_world(np.eye(4), width=200, height=100, field_of_view=90)
    assert pixel(camera, (-1, 0, 1))[0] == pytest.approx(0)
    assert pixel(camera, (1, 0, 1))[0] == pytest.approx(200)
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == pytest.approx((100, 100, 100, 50))


def test_resizing_keeps_what_falls_where() -> None:
    camera = Camera.look_at((3, -2, 1), (0, 0.5, 0), up=(0, 0, 1), **LENS)
    before, after = pixel(camera, (0.2, 0.1, 0.3)), pixel(camera.resized(128), (0.2, 0.1, 0.3))
    assert (camera.resized(128).width, camera.resized(128).height) == (128, 96)
    assert after == pytest.approx((2 * before[0], 2 * before[1]))


def test_single_precision_lists_and_slices_are_taken() -> None:
    wide = np.zeros((8, 8), np.float32)
    wide[::2, ::2] = pose()
    for given_pose in (pose().astype(np.float32), pose().tolist(), wide[::2, ::2], np.asfortranarray(pose())):
        camera = Camera.from_camera_to_world(given_pose, **LENS)
        np.testing.assert_allclose(camera.camera_to_world, pose(), atol=1e-6)
        error = np.abs(camera.rotation @ camera.rotation.T - np.eye(3)).max()
        assert error < 1e-12, "what single precision left over is removed"
    assert Camera.from_camera_to_world(pose()[:3], **LENS).width == 64


def test_the_array_that_was_passed_stays_the_callers() -> None:
    matrix = pose()
    camera = Camera.from_world_to_camera(matrix, **LENS)
    before = camera.world_to_camera
    matrix[:] = 0
    np.testing.assert_array_equal(camera.world_to_camera, before)


# ---- misuse -----------------------------------------------------------------------------------------------
def spoiled(row: int, column: int, value: float) -> F64:
    matrix = pose()
    matrix[row, column] = value
    return matrix


POSES: dict[str, tuple[Any, str]] = {
    "a vector": (np.zeros(16), "shape (16,)"),
    "a rotation alone": (np.eye(3), "shape (3, 3)"),
    "a stack": (np.stack([np.eye(4)] * 2), "shape (2, 4, 4)"),
    "text": ("here", "numbers"),
    "nothing": (None, "shape ()"),
    "ragged": ([[1, 2], [3]], "numbers"),
    "a NaN": (spoiled(0, 1, np.nan), "NaN"),
    "an infinity": (spoiled(1, 3, np.inf), "infinite"),
    "scaled": (pose(2.5 * turned(0.3, -0.8, 0.4, 0.2)), "scales by 2.5"),
    "mirrored": (pose(turned(0.3, -0.8, 0.4, 0.2) @ np.diag([1, 1, -1])), "left-handed"),
    "sheared": (pose([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), "no rotation"),
    "zeros": (pose(np.zeros((3, 3))), "no rotation"),
    "transposed": (pose().T, "pose.T"),
    "a projection": (spoiled(3, 2, -1.0), "projection"),
}


@pytest.mark.parametrize("name", POSES)
def test_what_is_no_pose_gets_a_sentence(name: str) -> None:
    given_pose, word = POSES[name]
    for build in (Camera.from_camera_to_world, Camera.from_world_to_camera):
        with pytest.raises(UsageError) as caught:
            build(given_pose, **LENS)
        assert word in str(caught.value)
        assert str(caught.value).endswith((".", "?", ")"))


LENSES: dict[str, tuple[dict[str, Any], str]] = {
    "none": ({"width": 64, "height": 48}, "field_of_view"),
    "two": ({"width": 64, "height": 48, "fx": 50, "field_of_view": 60}, "both"),
    "no width": ({"width": 0, "height": 48, "fx": 50}, "width is 0"),
    "half a pixel": ({"width": 64, "height": 48.5, "fx": 50}, "height is 48.5"),
    "enormous": ({"width": 10**6, "height": 48, "fx": 50}, "whole number from 1 to"),
    "negative": ({"width": 64, "height": 48, "fx": -50}, "above 0"),
    "a flat angle": ({"width": 64, "height": 48, "field_of_view": 180}, "between 0 and 180"),
    "NaN": ({"width": 64, "height": 48, "fx": 50, "cx": np.nan}, "cx is nan"),
    "text": ({"width": "wide", "height": 48, "fx": 50}, "width is 'wide'"),
}


@pytest.mark.parametrize("name", LENSES)
def test_what_is_no_lens_gets_a_sentence(name: str) -> None:
    lens, word = LENSES[name]
    with pytest.raises(UsageError) as caught:
        Camera.from_camera_to_world(np.eye(4), **lens)
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (((0, 0, 0), (0, 0, 0), (0, 0, 1)), "one point"),
        (((0, 0, 3), (0, 0, 0), (0, 0, 1)), "line of sight"),
        (((0, 0, 3), (0, 0, 0), (0, 0, 0)), "zero"),
        (((0, 0), (0, 0, 0), (0, 0, 1)), "position has the shape (2,)"),
        (((0, 0, 3), (0, np.nan, 0), (0, 1, 0)), "target has a value that is NaN"),
    ],
)
def test_a_look_that_goes_nowhere_gets_a_sentence(arguments: tuple[Any, Any, Any], word: str) -> None:
    with pytest.raises(UsageError) as caught:
        Camera.look_at(*arguments, **LENS)
    assert word in str(caught.value)


@pytest.mark.parametrize("thing", [np.eye(4), None, "camera", [1, 2], 3.0, object()], ids=lambda _: "thing")
def test_what_is_no_camera_is_told_the_way_to_one(thing: Any) -> None:
    with pytest.raises(UsageError, match=r"A Camera is needed.*from_camera_to_world"):
        checked(thing)


def test_a_camera_of_broken_parts_is_found_before_it_is_used() -> None:
    whole = Camera.from_camera_to_world(pose(), **LENS)
    assert checked(whole) is whole
    broken: list[tuple[dict[str, Any], str]] = [
        ({"rotation": 2 * whole.rotation}, "scales by 2"),
        ({"rotation": -whole.rotation}, "left-handed"),
        ({"translation": np.array([0, np.nan, 0])}, "NaN"),
        ({"rotation": np.eye(4)}, "3x3"),
        ({"width": 0}, "width is 0"),
        ({"fx": 0.0}, "above 0"),
    ]
    for change, word in broken:
        with pytest.raises(UsageError) as caught:
            checked(dataclasses.replace(whole, **change))
        assert word in str(caught.value)
