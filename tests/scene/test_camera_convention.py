"""Where a point of the world lands in the image."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_scenes import looking_inward, nerf_matrix

from splatmeter.ops import Pinhole
from splatmeter.scene.camera_files import (
    Intrinsics,
    Pose,
    focal_of_angle,
    pinhole,
    pose_from_nerf,
    pose_from_quaternion,
    quaternion_of_rotation,
)

LENS = Intrinsics(100.0, 110.0, 70.0, 40.0, 160, 90)
IDENTITY = Pose(np.eye(3), np.zeros(3))
COMPONENT = st.floats(-1, 1)


def project(camera: Pinhole, point: list[float]) -> tuple[float, float]:
    x, y, z = camera.rotation @ np.array(point) + camera.translation
    return float(camera.fx * x / z + camera.cx), float(camera.fy * y / z + camera.cy)


def test_the_axis_meets_the_image_at_the_principal_point() -> None:
    assert project(pinhole(LENS, IDENTITY, 160, 90), [0, 0, 5]) == (70, 40)


def test_resizing_moves_every_point_in_proportion() -> None:
    full, small = pinhole(LENS, IDENTITY, 160, 90), pinhole(LENS, IDENTITY, 40, 30)
    u, v = project(full, [0.3, -0.2, 2])
    assert project(small, [0.3, -0.2, 2]) == pytest.approx((u / 4, v / 3))


def test_half_a_turn_about_the_vertical_looks_backward() -> None:
    pose = pose_from_quaternion(np.array([0.0, 0, 2, 0]), np.array([1.0, 2, 3]))
    np.testing.assert_allclose(pose.rotation, np.diag([-1, 1, -1]), atol=1e-15)
    camera = pinhole(LENS, pose, 160, 90)
    np.testing.assert_allclose(camera.position, [1, -2, 3])


@given(COMPONENT, COMPONENT, COMPONENT, COMPONENT)
def test_quaternions_survive_becoming_a_matrix(w: float, x: float, y: float, z: float) -> None:
    quaternion = np.array([w, x, y, z])
    if np.linalg.norm(quaternion) < 1e-3:
        return
    rotation = pose_from_quaternion(quaternion, np.zeros(3)).rotation
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(rotation) == pytest.approx(1)
    back = quaternion_of_rotation(rotation)
    assert abs(back @ quaternion) / np.linalg.norm(quaternion) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("quaternion", [[0, 0, 0, 0], [np.nan, 0, 0, 0], [np.inf, 0, 0, 0]])
def test_what_is_no_rotation_is_refused(quaternion: list[float]) -> None:
    with pytest.raises(ValueError):
        pose_from_quaternion(np.array(quaternion, np.float64), np.zeros(3))


def test_a_nerf_matrix_and_a_colmap_pose_describe_the_same_camera() -> None:
    rotation, translation = looking_inward(0.8)
    pose = pose_from_nerf(np.array(nerf_matrix(0.8)))
    np.testing.assert_allclose(pose.rotation, rotation, atol=1e-12)
    np.testing.assert_allclose(pose.translation, translation, atol=1e-12)


def test_an_inverted_pose_has_the_bits_that_arithmetic_by_hand_gives() -> None:
    """Libraries of linear algebra give others on other processors, and scenes are told apart by bits."""
    for angle in np.linspace(0.1, 6.2, 23):
        matrix = np.array(nerf_matrix(angle))
        pose = pose_from_nerf(matrix)
        a, b, c = ([float(row[k]) * (1.0, -1.0, -1.0)[k] for row in matrix[:3]] for k in range(3))
        ab = [a[k - 2] * b[k - 1] - a[k - 1] * b[k - 2] for k in range(3)]
        bc = [b[k - 2] * c[k - 1] - b[k - 1] * c[k - 2] for k in range(3)]
        determinant = a[0] * bc[0] + a[1] * bc[1] + a[2] * bc[2]
        assert pose.rotation[2].tolist() == [value / determinant + 0.0 for value in ab]
        x, y, z = (float(value) for value in matrix[:3, 3])
        rows = pose.rotation.tolist()
        assert pose.translation.tolist() == [0.0 - (x * r[0] + y * r[1] + z * r[2]) for r in rows]


@pytest.mark.parametrize(
    "matrix", [np.zeros((4, 4)), np.diag([1.0, 1, -1, 1]), 2 * np.eye(4), np.full((4, 4), np.nan)]
)
def test_a_matrix_without_a_rotation_is_refused(matrix: np.ndarray) -> None:
    with pytest.raises(ValueError):
        pose_from_nerf(matrix)


def test_a_right_angle_has_half_the_width_as_focal_length() -> None:
    assert focal_of_angle(np.pi / 2, 800) == pytest.approx(400)
