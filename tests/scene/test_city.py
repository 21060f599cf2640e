"""The built-in city is deterministic, grows with its size, and is an ordinary COLMAP folder with tracks."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from splatmeter.errors import OutputError, UsageError
from splatmeter.ops import Pinhole
from splatmeter.scene import built_in
from splatmeter.scene.built_in import BuiltIn, looking_at
from splatmeter.scene.city import (
    LARGEST_SIZE,
    LONGEST_TRACK,
    CitySize,
    cached_city_scene,
    is_city_scene,
    make_city_scene,
    photograph,
    surface_points,
)
from splatmeter.scene.city_cameras import PITCH, city_shots, count_of_photos
from splatmeter.scene.scene import Scene, SceneOptions, load_scene

pytest.importorskip("splatmeter._scenery", reason="the native module is not built: no city is traced")

TINY = CitySize(size=1, width=48, height=32, samples=4, points_per_block=300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_city_scene(tmp_path_factory.mktemp("city") / "town", TINY)


@pytest.fixture(scope="module")
def scene(folder: Path) -> Scene:
    return load_scene(SceneOptions(source=folder, eval=True))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def camera_at(eye: list[float], target: list[float], focal: float, width: int, height: int) -> Pinhole:
    rotation = looking_at(np.array(eye), np.array(target), (0.0, 1.0, 0.0))
    position = np.array(eye)
    return Pinhole(rotation, -rotation @ position, focal, focal, width / 2, height / 2, width, height)


# ---- the pictures -----------------------------------------------------------------------------------------
def test_size_and_seed_give_the_same_bytes_with_any_number_of_threads(folder: Path, tmp_path: Path) -> None:
    photograph(
        city_shots(2, 1, 48, 32)[0].camera, replace(TINY, size=2, seed=1)
    )  # the first city is forgotten
    three = make_city_scene(tmp_path / "three", TINY, threads=3)
    one = make_city_scene(tmp_path / "one", TINY, threads=1)
    assert contents(one) == contents(three) == contents(folder)


def test_another_seed_builds_another_city() -> None:
    camera = city_shots(1, 0, 48, 32)[0].camera
    ours, theirs = photograph(camera, TINY), photograph(camera, replace(TINY, seed=1))
    assert np.mean(np.abs(ours.astype(int) - theirs) > 10) > 0.2


def test_a_larger_city_has_the_blocks_of_a_smaller_one() -> None:
    """The yard of the first block, from above: nothing beyond its houses throws a shadow there."""
    yard = camera_at([20, 20, 30], [20, 20, 0], 120, 48, 32)
    small, large = photograph(yard, TINY), photograph(yard, replace(TINY, size=3))
    np.testing.assert_array_equal(small, large)
    beyond = camera_at([60, 20, 30], [60, 20, 0], 120, 48, 32)
    assert np.any(photograph(beyond, TINY) != photograph(beyond, replace(TINY, size=3)))


def test_photos_are_anti_aliased_so_shrinking_a_large_one_gives_the_small_one() -> None:
    camera = city_shots(1, 0, 48, 32)[5].camera
    large = Pinhole(
        camera.rotation,
        camera.translation,
        camera.fx * 4,
        camera.fy * 4,
        camera.cx * 4,
        camera.cy * 4,
        192,
        128,
    )
    small = photograph(camera, replace(TINY, samples=64)).astype(float)  # [32, 48, 3]
    fine = photograph(large, replace(TINY, samples=16)).astype(float)  # [128, 192, 3]
    shrunk = fine.reshape(32, 4, 48, 4, 3).mean(axis=(1, 3))  # [32, 48, 3]
    shifted = np.abs(small[:, 1:] - shrunk[:, :-1]).mean()
    assert abs(small.mean() / shrunk.mean() - 1) < 0.03
    assert np.abs(small - shrunk).mean() < shifted / 3


@pytest.mark.parametrize("seed", [0, 7])
def test_no_camera_stands_inside_of_something(seed: int) -> None:
    """From inside a house, a car or a crown a photo would be dark or of one colour."""
    size = replace(TINY, size=2, seed=seed, samples=1)
    for shot in city_shots(2, seed, 48, 32):
        pixels = photograph(shot.camera, size, threads=2)
        assert pixels.mean() > 60 and pixels.std() > 12, shot.camera.position


# ---- where photos are taken -------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [1, 2, 5])
def test_photos_grow_with_the_area_and_their_number_is_known_before(size: int) -> None:
    shots = city_shots(size, 0, 48, 32)
    assert len(shots) == count_of_photos(size) == CitySize(size).photos
    assert 14 * size * size == sum(shot.view == "air" for shot in shots)
    assert len({shot.camera.position.tobytes() for shot in shots}) == len(shots)


def test_photos_straight_down_overlap_by_about_seventy_percent() -> None:
    down = [shot.camera for shot in city_shots(2, 0, 480, 320) if shot.camera.rotation[2, 2] < -0.99]
    places = np.array([camera.position for camera in down])  # [24, 3]
    rows = np.sort(np.unique(np.round(places[:, 1] / (PITCH / 3) - 0.5)))  # [6] flight lines
    footprint = 480 / down[0].fx * places[:, 2].mean(), 320 / down[0].fy * places[:, 2].mean()
    assert len(down) == 24 and len(rows) == 6
    assert 0.65 < 1 - 20 / footprint[0] < 0.75 and 0.65 < 1 - PITCH / 3 / footprint[1] < 0.75


@pytest.mark.parametrize("size", [1, 2, 4])
def test_test_views_are_spread_over_air_and_street_and_over_the_city(size: int) -> None:
    shots = city_shots(size, 3, 48, 32)
    held = shots[::8]
    for view in ("air", "street"):
        share = sum(shot.view == view for shot in shots) / len(shots)
        assert abs(sum(shot.view == view for shot in held) - share * len(held)) <= 1
    middle = np.median([shot.camera.position[:2] for shot in shots], axis=0)  # [2]
    quarters = {tuple(shot.camera.position[:2] > middle) for shot in held}
    assert len(quarters) == 4 or size == 1


def test_the_few_test_views_of_the_smallest_city_are_on_different_streets() -> None:
    for seed in range(5):
        held = [shot for shot in city_shots(1, seed, 48, 32)[::8] if shot.view == "street"]
        places = np.array([shot.camera.position[:2] for shot in held])  # [5, 2]
        beside = np.abs(places - PITCH * np.round(places / PITCH))  # [5, 2] from the nearest streets
        axes = beside.argmin(axis=1)  # [5] the coordinate that stays the same along the street
        lines = np.round(places[np.arange(len(held)), axes] / PITCH)  # [5]
        assert len(set(zip(axes.tolist(), lines.tolist(), strict=True))) >= 3


def test_walks_go_along_every_street_in_both_directions_and_look_into_the_city() -> None:
    walks = [shot.camera for shot in city_shots(2, 0, 48, 32) if shot.view == "street"]
    places = np.array([camera.position for camera in walks])  # [120, 3]
    ahead = np.array([camera.rotation[2] for camera in walks])  # [120, 3]
    beside = np.abs(places[:, :2] - PITCH * np.round(places[:, :2] / PITCH)).min(axis=1)  # [120]
    assert beside.max() < 2 and places[:, 2].min() > 1.4 and places[:, 2].max() < 2
    for axis in (0, 1):
        for way in (-1, 1):
            assert np.sum(way * ahead[:, axis] > 0.8) >= 12
    shown = places[:, :2] + 15 * ahead[:, :2]  # [120, 2]
    pavement = 5.5  # metres from the middle of the outermost street to the edge of the city
    assert shown.min() > -pavement and shown.max() < 2 * PITCH + pavement


# ---- the folder -------------------------------------------------------------------------------------------
def test_the_folder_loads_as_a_colmap_scene(scene: Scene) -> None:
    assert scene.kind == "colmap"
    assert (len(scene.train), len(scene.test)) == (47, 7)
    assert {view.name.rpartition("_")[2].partition(".")[0] for view in scene.test} == {"air", "street"}
    assert scene.points.count == TINY.points


def test_loaded_cameras_are_the_ones_that_took_the_photos(scene: Scene) -> None:
    views = sorted([*scene.train, *scene.test], key=lambda view: view.name)
    for view, shot in zip(views, city_shots(1, 0, 48, 32), strict=True):
        np.testing.assert_allclose(view.camera.rotation, shot.camera.rotation, atol=1e-12)
        np.testing.assert_allclose(view.camera.translation, shot.camera.translation, atol=1e-10)
    pixels = photograph(views[9].camera, TINY)
    np.testing.assert_array_equal(np.asarray(Image.open(views[9].photo.path)), pixels)


def test_tracks_lead_to_pixels_that_show_the_point() -> None:
    """A hidden point would show what hides it: its colour agrees with no pixel but by chance."""
    shots = city_shots(1, 0, 48, 32)
    cloud, tracks = surface_points([shot.camera for shot in shots], TINY)
    photos = np.stack([photograph(shot.camera, TINY) for shot in shots]).astype(float)  # [54, 32, 48, 3]
    columns, rows = np.floor(tracks.pixels).astype(int).T  # [M] [M]
    shown = photos[tracks.images, rows, columns]  # [M, 3]
    own = np.repeat(cloud.colors.astype(float), tracks.counts, axis=0)  # [M, 3]
    others = np.roll(own, len(own) // 2, axis=0)  # [M, 3]
    right, wrong = (np.median(np.abs(shown - colors).mean(axis=1)) for colors in (own, others))
    assert right < 14 and right < wrong / 2.5
    assert tracks.counts.min() >= 2 and tracks.counts.max() <= LONGEST_TRACK
    starts = np.cumsum(tracks.counts)[:-1]
    assert all(len(set(images)) == len(images) for images in np.split(tracks.images, starts))


def test_colmap_itself_reads_the_tracks_and_finds_small_errors(folder: Path) -> None:
    pycolmap = pytest.importorskip(
        "pycolmap", reason="pycolmap is not installed: nobody else reads the files"
    )
    model = pycolmap.Reconstruction(str(folder / "sparse" / "0"))
    assert model.num_reg_images() == 54 and model.num_points3D() == TINY.points
    errors = []
    for number, point in model.points3D.items():
        for seen in point.track.elements:
            image = model.images[seen.image_id]
            feature = image.points2D[seen.point2D_idx]
            assert feature.point3D_id == number
            errors.append(np.linalg.norm(image.project_point(point.xyz) - feature.xy))
    assert 0.01 < np.median(errors) < 1  # pixels: points are noisy, and near where they were seen


def test_points_lie_in_the_city_and_grow_with_its_area(scene: Scene) -> None:
    inside = (scene.points.positions[:, :2] > -6) & (scene.points.positions[:, :2] < PITCH + 6)  # [N, 2]
    assert inside.all(axis=1).mean() > 0.4
    assert CitySize(4).points == 16 * CitySize(1).points


# ---- making and caching -----------------------------------------------------------------------------------
def test_making_it_twice_leaves_the_first_untouched(folder: Path) -> None:
    before = contents(folder)
    assert make_city_scene(folder, TINY, progress=lambda done, total: pytest.fail("made again")) == folder
    assert contents(folder) == before


def test_another_city_in_the_same_folder_is_refused(folder: Path) -> None:
    for other in (replace(TINY, seed=1), replace(TINY, size=2), replace(TINY, width=64)):
        assert not is_city_scene(folder, other)
        with pytest.raises(OutputError, match="exists and is not this city"):
            make_city_scene(folder, other)


def test_an_interrupted_making_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_city_scene(tmp_path / "town", TINY, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_photo_that_cannot_be_saved_stops_the_making(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Image.Image, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Image.Image, "save", full)
    with pytest.raises(OutputError, match="No space left on device"):
        make_city_scene(tmp_path / "town", TINY)
    assert list(tmp_path.iterdir()) == []


def test_the_cache_serves_the_second_call_and_heals_when_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPLATMETER_CACHE", str(tmp_path))
    folder = cached_city_scene(TINY)
    assert folder.parent == tmp_path
    assert cached_city_scene(TINY, progress=lambda done, total: pytest.fail("made again")) == folder
    next((folder / "images").iterdir()).unlink()
    assert len(list((cached_city_scene(TINY) / "images").iterdir())) == TINY.photos


def test_only_what_nobody_works_on_any_more_counts_as_abandoned(tmp_path: Path) -> None:
    """A large city takes hours; its folder itself changes only at the beginning and at the end."""
    long_ago = time.time() - 2 * built_in.ABANDONED_AFTER_SECONDS
    for name in (".town.dead.making", ".town.alive.making"):
        (tmp_path / name / "images").mkdir(parents=True)
        os.utime(tmp_path / name, (long_ago, long_ago))
    os.utime(tmp_path / ".town.dead.making" / "images", (long_ago, long_ago))
    BuiltIn("this", {}, 0).put_into(tmp_path / "town", lambda making: (making / "images").mkdir())
    assert {path.name for path in tmp_path.iterdir()} == {".town.alive.making", "town"}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"size": 0}, "--size is 0, but must be from 1 to 20"),
        ({"size": LARGEST_SIZE + 1}, "--size is 21"),
        ({"width": 8}, "--width is 8"),
        ({"height": 5000}, "--height is 5000"),
        ({"seed": 2**32}, "out of range"),
    ],
)
def test_numbers_that_make_no_sense_are_refused_before_anything_is_written(
    wrong: dict[str, int], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=sentence):
        make_city_scene(tmp_path / "town", replace(TINY, **wrong))
    assert not list(tmp_path.iterdir())


def test_the_tracer_refuses_what_the_command_would_not_ask_for() -> None:
    camera = city_shots(1, 0, 48, 32)[0].camera
    with pytest.raises(ValueError, match="from 1 to 32"):
        photograph(camera, replace(TINY, size=33))
    with pytest.raises(ValueError, match="positive"):
        photograph(camera, replace(TINY, samples=0))
