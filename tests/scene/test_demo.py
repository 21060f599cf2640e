"""The built-in scene is deterministic, exact, and an ordinary COLMAP folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from splatmeter.errors import OutputError, UsageError
from splatmeter.ops import Pinhole
from splatmeter.places import cache_folder
from splatmeter.scene import demo
from splatmeter.scene.built_in import STAMP
from splatmeter.scene.demo import DemoSize, cached_demo_scene, demo_cameras, make_demo_scene, photograph
from splatmeter.scene.scene import Scene, SceneOptions, load_scene

pytest.importorskip("splatmeter._scenery", reason="the native module is not built: no demo scene is traced")

SMALL = DemoSize(photos=10, width=64, height=48, samples=4, points=600)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "QUICK", SMALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "QUICK", SMALL)
        return make_demo_scene(tmp_path_factory.mktemp("demo") / "garden", quick=True)


@pytest.fixture(scope="module")
def scene(folder: Path) -> Scene:
    return load_scene(SceneOptions(source=folder, eval=True))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def project(camera: Pinhole, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    inside = positions @ camera.rotation.T + camera.translation  # [N, 3] camera
    depth = np.maximum(inside[:, 2], 1e-9)  # [N]
    pixels = inside[:, :2] / depth[:, None] * [camera.fx, camera.fy] + [camera.cx, camera.cy]  # [N, 2]
    return pixels, inside[:, 2]


def light(pixels: np.ndarray) -> np.ndarray:
    """Undoes sRGB and the tracer's shoulder 1 - exp(-exposure * light), up to the exposure."""
    coded = np.minimum(pixels / 255, 0.998)
    shown = np.where(coded < 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    return -np.log1p(-shown)


# ---- the pictures -----------------------------------------------------------------------------------------
def test_another_seed_plants_another_garden(folder: Path) -> None:
    theirs = photograph(demo_cameras(0, SMALL)[0], samples=SMALL.samples, seed=1)
    ours = np.asarray(Image.open(min((folder / "images").iterdir())))
    assert np.mean(np.abs(ours.astype(int) - theirs) > 10) > 0.1


def test_the_same_seed_gives_the_same_bytes_with_any_number_of_threads(folder: Path, tmp_path: Path) -> None:
    photograph(demo_cameras(1, SMALL)[0], samples=1, seed=1)  # garden 0 is forgotten and planted anew
    three = make_demo_scene(tmp_path / "three", quick=True, threads=3)
    one = make_demo_scene(tmp_path / "one", quick=True, threads=1)
    assert contents(one) == contents(three) == contents(folder)


def test_a_photo_has_the_size_of_its_camera_and_a_wide_range_of_tones() -> None:
    pixels = photograph(demo_cameras(0, SMALL)[3], samples=4, seed=0)
    assert pixels.shape == (48, 64, 3) and pixels.dtype == np.uint8
    assert pixels.min() < 60 and pixels.max() > 200 and pixels.std() > 30


def test_photos_are_box_filtered_so_shrinking_a_large_one_gives_the_small_one() -> None:
    """Light is averaged, not 8-bit values; what is left is the noise of samples and rounding."""
    camera = demo_cameras(0, SMALL)[1]
    double = Pinhole(
        camera.rotation,
        camera.translation,
        camera.fx * 2,
        camera.fy * 2,
        camera.cx * 2,
        camera.cy * 2,
        128,
        96,
    )
    small = light(photograph(camera, samples=64, seed=0))  # [48, 64, 3]
    large = light(photograph(double, samples=16, seed=0))  # [96, 128, 3]
    shrunk = large.reshape(48, 2, 64, 2, 3).mean(axis=(1, 3))  # [48, 64, 3]
    assert abs(small.mean() / shrunk.mean() - 1) < 0.01
    assert np.abs(small - shrunk).mean() < 0.06 * small.mean()
    shifted = np.abs(small[:, 1:] - shrunk[:, :-1]).mean()
    assert np.abs(small - shrunk).mean() < shifted / 4  # half a pixel off would show


def test_cameras_stand_inside_the_fence_at_varying_distance_and_look_at_the_table() -> None:
    cameras = demo_cameras(5, demo.FULL)
    positions = np.stack([camera.position for camera in cameras])  # [48, 3]
    distances = np.linalg.norm(positions[:, :2], axis=1)  # [48]
    assert 3.2 < distances.min() < 3.5 and 4.3 < distances.max() < 4.6
    assert positions[:, 2].min() > 1 and positions[:, 2].max() < 3
    for camera in cameras:
        np.testing.assert_allclose(camera.rotation @ camera.rotation.T, np.eye(3), atol=1e-12)
        assert np.linalg.det(camera.rotation) > 0
        pixels, depth = project(camera, demo.TARGET[None])
        assert depth[0] > 3 and np.abs(pixels[0] - [camera.cx, camera.cy]).max() < 40


def test_test_views_are_spread_all_around() -> None:
    positions = np.stack([camera.position for camera in demo_cameras(0, demo.FULL)[::8]])  # [6, 3]
    angles = np.sort(np.arctan2(positions[:, 1], positions[:, 0]))  # [6]
    gaps = np.diff(np.append(angles, angles[0] + 2 * np.pi))  # [6]
    assert np.degrees(gaps.max()) < 90


def test_bad_numbers_are_refused_by_the_tracer() -> None:
    camera = demo_cameras(0, SMALL)[0]
    with pytest.raises(ValueError, match="positive"):
        photograph(camera, samples=0, seed=0)


# ---- the folder -------------------------------------------------------------------------------------------
def test_the_folder_loads_as_a_colmap_scene(scene: Scene) -> None:
    assert scene.kind == "colmap"
    assert (len(scene.train), len(scene.test)) == (8, 2)
    assert {(view.photo.width, view.photo.height) for view in scene.train} == {(64, 48)}
    assert scene.points.count == SMALL.points


def test_loaded_cameras_are_the_ones_that_took_the_photos(scene: Scene) -> None:
    views = sorted([*scene.train, *scene.test], key=lambda view: view.name)
    for view, camera in zip(views, demo_cameras(0, SMALL), strict=True):
        np.testing.assert_allclose(view.camera.rotation, camera.rotation, atol=1e-12)
        np.testing.assert_allclose(view.camera.translation, camera.translation, atol=1e-12)
        pixels = photograph(camera, samples=SMALL.samples, seed=0)
        np.testing.assert_array_equal(np.asarray(Image.open(view.photo.path)), pixels)


def test_points_projected_into_the_photos_find_their_colours(scene: Scene) -> None:
    """Some are hidden in some photos, so the median error is judged, against wrongly paired points."""
    errors, wrong = [], []
    colors = scene.points.colors.astype(float)  # [N, 3]
    for view in scene.train:
        photo = np.asarray(Image.open(view.photo.path)).astype(float)  # [H, W, 3]
        pixels, depth = project(view.camera, scene.points.positions)
        column, row = np.floor(pixels).astype(int).T
        seen = (depth > 0.2) & (column >= 0) & (column < 64) & (row >= 0) & (row < 48)  # [N]
        shown = photo[row[seen], column[seen]]  # [M, 3]
        errors.append(np.abs(shown - colors[seen]).mean(axis=1))
        wrong.append(np.abs(shown - np.roll(colors, 1, axis=0)[seen]).mean(axis=1))
    assert np.median(np.concatenate(errors)) < 15
    assert np.median(np.concatenate(errors)) < np.median(np.concatenate(wrong)) / 2


def test_points_are_noisy_but_near_the_surface() -> None:
    cameras = demo_cameras(0, SMALL)
    cloud = demo.surface_points(cameras, SMALL, seed=0)
    ground = cloud.positions[np.abs(cloud.positions[:, 2]) < 0.06]  # [M, 3] mostly bricks and lawn
    assert len(ground) > 0.2 * cloud.count
    assert 0.003 < np.std(ground[:, 2]) < 0.03


def test_the_full_scene_is_a_few_megabytes(folder: Path) -> None:
    small = sum(path.stat().st_size for path in (folder / "images").iterdir())
    ratio = (
        demo.FULL.photos * demo.FULL.width * demo.FULL.height / (SMALL.photos * SMALL.width * SMALL.height)
    )
    assert small * ratio < 12e6  # an upper bound: larger photos compress better


# ---- making and caching -----------------------------------------------------------------------------------
def test_making_it_twice_leaves_the_first_untouched(folder: Path) -> None:
    before = (folder / STAMP).stat().st_mtime_ns
    assert make_demo_scene(folder, quick=True) == folder
    assert (folder / STAMP).stat().st_mtime_ns == before


def test_a_folder_with_something_else_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("important")
    with pytest.raises(OutputError, match="exists and is not this demo scene"):
        make_demo_scene(tmp_path, quick=True)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_interrupted_making_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_demo_scene(tmp_path / "garden", quick=True, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    assert load_scene(SceneOptions(source=make_demo_scene(tmp_path, quick=True))).kind == "colmap"


def test_the_cache_serves_the_second_call_and_heals_when_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPLATMETER_CACHE", str(tmp_path))
    made: list[int] = []
    folder = cached_demo_scene(quick=True, progress=lambda done, total: made.append(done))
    assert folder.parent == tmp_path and made == list(range(1, SMALL.photos + 1))
    assert cached_demo_scene(quick=True, progress=lambda done, total: made.append(-1)) == folder
    assert -1 not in made
    next((folder / "images").iterdir()).unlink()
    assert len(list((cached_demo_scene(quick=True) / "images").iterdir())) == SMALL.photos


def test_a_stamp_of_another_version_is_not_recognised(folder: Path, tmp_path: Path) -> None:
    stamp = json.loads((folder / STAMP).read_text())
    (tmp_path / "images").mkdir()
    for number in range(SMALL.photos):
        (tmp_path / "images" / str(number)).touch()
    (tmp_path / STAMP).write_text(json.dumps(stamp))
    assert demo.is_demo_scene(tmp_path, 0, SMALL)
    (tmp_path / STAMP).write_text(json.dumps({**stamp, "version": demo.VERSION - 1}))
    assert not demo.is_demo_scene(tmp_path, 0, SMALL)


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPLATMETER_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/splatmeter")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "splatmeter"


def test_a_seed_out_of_range_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="out of range"):
        make_demo_scene(tmp_path / "garden", seed=-1, quick=True)
    assert not list(tmp_path.iterdir())
