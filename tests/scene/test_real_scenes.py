"""The scenes in ../shared/data, where they exist: all load, and their points lie in their pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from splatmeter.photos.photo import read
from splatmeter.scene.scene import Scene, SceneOptions, View, load_scene

SCENES = Path(__file__).parents[2].parent / "shared" / "data" / "scenes"
pytestmark = pytest.mark.skipif(not SCENES.is_dir(), reason="the real scenes of ../shared/data are not here")

# training views, test views, points, photo size
EXPECTED = {
    "garden_512": (161, 24, 138_766, (512, 512)),
    "fox_540": (43, 7, 9_628, (540, 960)),
    "maryrose_864": (60, 9, 16_815, (864, 864)),
    "mic_400": (100, 25, 100_000, (400, 400)),
    "chair_400": (87, 13, 100_000, (400, 400)),
}


def load(name: str) -> Scene:
    return load_scene(SceneOptions(SCENES / name, eval=True))


def share_inside(view: View, points: np.ndarray) -> float:
    """Of the points [N, 3], how many lie before the camera and within the image."""
    camera = view.camera
    x, y, z = camera.rotation @ points.T.astype(np.float64) + camera.translation[:, None]  # [N] each
    u, v = camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy
    return float(((z > 0) & (u > 0) & (u < camera.width) & (v > 0) & (v < camera.height)).mean())


@pytest.mark.parametrize("name", EXPECTED)
def test_counts_sizes_and_extent_are_as_known(name: str) -> None:
    scene = load(name)
    width, height = EXPECTED[name][3]
    assert (len(scene.train), len(scene.test), scene.points.count) == EXPECTED[name][:3]
    assert {(view.camera.width, view.camera.height) for view in scene.train} == {(width, height)}
    assert 3 < scene.extent < 7
    for view in scene.train:
        assert (
            abs(view.camera.cx - width / 2) < 0.03 * width
            and abs(view.camera.cy - height / 2) < 0.03 * height
        )


# A centre crop of a wide scene sees a part of its points; an object in the middle is seen whole.
@pytest.mark.parametrize(("name", "least"), [("garden_512", 0.3), ("fox_540", 0.6), ("maryrose_864", 0.9)])
def test_the_points_lie_in_the_pictures(name: str, least: float) -> None:
    scene = load(name)
    shares = [share_inside(view, scene.points.positions) for view in scene.train[::7]]
    assert np.mean(shares) > least, shares


@pytest.mark.parametrize("name", ["garden_512", "fox_540"])
def test_points_fit_the_colours_of_their_pixels_best_where_they_are(name: str) -> None:
    """Catches a flipped axis, a wrong pose or a pixel's shift, which counting points inside would not.

    Hidden points also fall on pixels, of another colour, so the error itself is large and says nothing; but
    one pixel aside, in any direction, it must be larger.
    """
    scene = load(name)
    errors = {
        move: np.mean([color_error(view, scene, *move) for view in scene.train[5:40:14]]) for move in MOVES
    }
    assert min(errors, key=lambda move: errors[move]) == (0, 0, 1, 1), errors


# pixels to the right, pixels down, and -1 for mirrored across or down
MOVES = [(0, 0, 1, 1), (1, 0, 1, 1), (-1, 0, 1, 1), (0, 1, 1, 1), (0, -1, 1, 1), (0, 0, -1, 1), (0, 0, 1, -1)]


def color_error(view: View, scene: Scene, right: int, below: int, across: int, down: int) -> float:
    """Mean difference between the points' colours and the pixels they fall on once the photo is moved."""
    camera = view.camera
    photo = read(view.photo)[:, ::down, ::across]  # [3, H, W]
    x, y, z = camera.rotation @ scene.points.positions.T.astype(np.float64) + camera.translation[:, None]
    u, v = camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy  # [N] each
    seen = (z > 0) & (u >= 2) & (u < camera.width - 2) & (v >= 2) & (v < camera.height - 2)
    pixels = photo[
        :, np.floor(v[seen] + below).astype(int), np.floor(u[seen] + right).astype(int)
    ].T  # [M, 3]
    return float(np.abs(pixels.astype(int) - scene.points.colors[seen]).mean())


def test_the_first_views_by_name_are_tested() -> None:
    assert [view.name for view in load("garden_512").test[:2]] == ["frame_00001.jpg", "frame_00009.jpg"]
    assert [view.name for view in load("maryrose_864").test[:2]] == ["IMG_9669.jpg", "IMG_9677.jpg"]


def test_the_foxs_principal_point_is_honoured() -> None:
    camera = load("fox_540").train[0].camera
    assert (camera.cx, camera.cy) == pytest.approx((277.279, 482.634), abs=1e-3)


def test_the_mary_rose_is_cut_out_by_its_masks() -> None:
    view = load("maryrose_864").train[0]
    assert view.photo.mask is not None and view.photo.mask.parent.name == "masks"
    pixels = read(view.photo)
    corners = pixels[:, [0, 0, -1, -1], [0, -1, 0, -1]]
    assert (corners == 0).all() and pixels.max() > 100


def test_synthetic_photos_lie_over_the_chosen_background() -> None:
    for white, corner in ((False, 0), (True, 255)):
        scene = load_scene(SceneOptions(SCENES / "mic_400", eval=True, white_background=white))
        assert (read(scene.train[0].photo)[:, 0, 0] == corner).all()
