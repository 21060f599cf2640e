"""Points by comparing pixels: a slanted wall with paint on it, whose distance from every pixel is known."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from splatmeter.capture import more_points
from splatmeter.capture.beside import BESIDE, beside_each
from splatmeter.capture.fusion import CELL
from splatmeter.capture.sweep import Grey, box, sampled, sweep
from splatmeter.ops import F64, Pinhole
from splatmeter.scene.colmap import read_points
from splatmeter.scene.colmap_writer import Tracks, write_colmap
from splatmeter.scene.points import PointCloud
from splatmeter.scene.tracks import read_tracks

SLOPE, DISTANCE = 0.4, 4.0
WIDTH, HEIGHT, FOCAL = 256, 192, 240.0


def camera_at(x: float) -> Pinhole:
    eye = np.array([x, 0.1 * x, 0.0])
    return Pinhole(np.eye(3), -eye, FOCAL, FOCAL, WIDTH / 2, HEIGHT / 2, WIDTH, HEIGHT)


CAMERAS = [camera_at(x) for x in (-0.8, -0.4, 0.0, 0.4, 0.8)]


def paint(x: F64, y: F64) -> NDArray[np.uint8]:
    """Spots of no order, the same wherever the wall is looked at from."""
    noise = np.random.default_rng(5).random((3, 96, 96)).astype(np.float32)
    across, down = ((x + 6) * 8 % 94 + 1).astype(np.float32), ((y + 6) * 8 % 94 + 1).astype(np.float32)
    return np.stack([255 * np.nan_to_num(sampled(n, across, down)) for n in noise], -1).astype(np.uint8)


def on_the_wall(camera: Pinhole, column: F64, row: F64) -> F64:
    """Where lines of sight meet the plane z = DISTANCE + SLOPE x."""
    rays = np.stack([(column - camera.cx) / FOCAL, (row - camera.cy) / FOCAL, np.ones_like(column)], -1)
    eye = camera.position
    depth = (DISTANCE + SLOPE * eye[0] - eye[2]) / (rays[..., 2] - SLOPE * rays[..., 0])
    return eye + rays * depth[..., None]


def photo_of(camera: Pinhole) -> NDArray[np.uint8]:
    row, column = np.mgrid[0:HEIGHT, 0:WIDTH] + 0.5
    wall = on_the_wall(camera, column, row)
    return paint(wall[..., 0], wall[..., 1])


def wall_scene(folder: Path, tracked: bool = True) -> Path:
    """As the stages before leave it, with forty points that all photos see."""
    (folder / "images").mkdir(parents=True)
    names = [f"{number}.png" for number in range(len(CAMERAS))]
    for camera, name in zip(CAMERAS, names, strict=True):
        Image.fromarray(photo_of(camera)).save(folder / "images" / name)
    random = np.random.default_rng(1)
    count, seen = 40, len(CAMERAS)
    places = on_the_wall(CAMERAS[2], random.uniform(60, 196, count), random.uniform(10, 182, count))
    cloud = PointCloud(places.astype(np.float32), np.zeros((count, 3), np.uint8))
    images = np.tile(np.arange(seen, dtype=np.int32), count)
    tracks = Tracks(np.full(count, seen, np.int32), images, np.zeros((count * seen, 2), np.float32))
    write_colmap(folder, CAMERAS, names, cloud, *([tracks] if tracked else []))
    return folder


def added(scene: Path, work: Path, threads: int = 1) -> tuple[int, PointCloud]:
    count = more_points.add_points(scene, work, threads, 0, lambda done, total: None)
    return count, read_points(scene)


def test_points_lie_on_the_wall_and_have_its_paint(tmp_path: Path) -> None:
    scene = wall_scene(tmp_path / "scene")
    told: list[tuple[int, int]] = []
    count = more_points.add_points(scene, tmp_path / "maps", 2, 0, lambda *done: told.append(done))
    points = read_points(scene)
    assert count > 2000 and points.count == 40 + count
    assert told[0] == (0, 5) and told[-1] == (5, 5)
    x, y, z = points.positions[40:].astype(np.float64).T
    off = np.abs(z - DISTANCE - SLOPE * x) / z
    assert np.median(off) < 0.003 and np.quantile(off, 0.99) < 0.02
    painted = np.abs(points.colors[40:].astype(float) - paint(x, y)).mean()
    moved = np.abs(points.colors[40:].astype(float) - paint(x + 0.3, y)).mean()
    assert painted < 0.35 * moved
    kept = read_tracks(scene)
    assert kept is not None and len(kept[0].points) == 40 * 5 and len(kept[0].positions) == 40 + count


def test_each_place_gets_about_one_point_and_not_one_a_photo(tmp_path: Path) -> None:
    count, points = added(wall_scene(tmp_path / "scene"), tmp_path / "maps")
    in_each_photo = (WIDTH // CELL) * (HEIGHT // CELL)
    assert in_each_photo < count < 2 * in_each_photo
    covered = np.unique((points.positions[40:, :2] * 10).round().astype(int), axis=0)
    assert len(covered) > 1000  # of about 4.6 x 3.2 units, a hundred a unit


def test_what_masks_hide_gets_no_points(tmp_path: Path) -> None:
    scene = wall_scene(tmp_path / "scene")
    (scene / "masks").mkdir()
    for number in range(5):
        mask = np.zeros((HEIGHT, WIDTH), np.uint8)
        mask[: HEIGHT // 2] = 255
        Image.fromarray(mask).save(scene / "masks" / f"{number}.png")
    count, points = added(scene, tmp_path / "maps")
    assert count > 500 and points.positions[40:, 1].max() < 0.1


def test_a_run_killed_in_between_goes_on_to_the_same_points(tmp_path: Path) -> None:
    """After some photos, and after the points were written but nobody had noted it."""
    whole, expected = added(wall_scene(tmp_path / "whole"), tmp_path / "maps of whole")
    scene, work = wall_scene(tmp_path / "scene"), tmp_path / "maps"

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        more_points.add_points(scene, work, 1, 0, stop)
    assert 2 <= len(list(work.glob("*.npz"))) < 5 and read_points(scene).count == 40
    for _ in range(2):
        count, points = added(scene, work)
        assert count == whole
        np.testing.assert_array_equal(points.positions, expected.positions)
    assert added(wall_scene(tmp_path / "again"), tmp_path / "others", threads=3)[0] == whole
    assert threading.active_count() < 10


def test_scenes_with_many_points_or_without_tracks_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert added(wall_scene(tmp_path / "no tracks", tracked=False), tmp_path / "maps")[0] == 0
    monkeypatch.setattr(more_points, "ENOUGH", 40)
    scene = wall_scene(tmp_path / "scene")
    before = (scene / "sparse" / "0" / "points3D.bin").read_bytes()
    assert added(scene, tmp_path / "other maps")[0] == 0
    assert (scene / "sparse" / "0" / "points3D.bin").read_bytes() == before


def test_photos_and_points_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(more_points, "MOST_PHOTOS", 3)
    monkeypatch.setattr(more_points, "MOST_POINTS", 300)
    count, points = added(wall_scene(tmp_path / "scene"), tmp_path / "maps")
    assert len(list((tmp_path / "maps").glob("*.npz"))) == 3
    assert count == 300 and points.count == 340


def test_plain_walls_give_nothing(tmp_path: Path) -> None:
    scene = wall_scene(tmp_path / "scene")
    for number in range(5):
        Image.new("RGB", (WIDTH, HEIGHT), (90, 120, 60)).save(scene / "images" / f"{number}.png")
    assert added(scene, tmp_path / "maps")[0] == 0


def test_a_sweep_finds_the_distance_between_its_planes() -> None:
    def grey(camera: Pinhole) -> Grey:
        return Grey(camera, photo_of(camera)[..., 0].astype(np.float32))

    photo = grey(CAMERAS[2])
    near = sweep(photo, [grey(CAMERAS[1]), grey(CAMERAS[3])], nearest=0.5, farthest=0.1)
    row, column = np.mgrid[0:HEIGHT, 0:WIDTH] + 0.5
    true = 1 / on_the_wall(CAMERAS[2], column, row)[..., 2]
    middle = slice(30, -30)
    off = np.abs(near.inverse - true)[middle, middle]
    assert np.median(off) < 0.2 * (0.4 / 71)
    assert (near.score[middle, middle] > 0.6).mean() > 0.9


def test_photos_beside_share_points_and_stand_apart() -> None:
    """One stands at the same place, which tells no distance; one shares too little."""
    cameras = [camera_at(0.0), camera_at(0.0), camera_at(0.5), camera_at(-0.5), camera_at(0.4)]
    positions = np.random.default_rng(0).uniform(-1, 1, (100, 3)) + np.array([0, 0, 4])
    everything = np.arange(100)
    beside = beside_each(cameras, positions, [everything] * 4 + [everything[:10]])
    assert set(beside[0]) == {2, 3} and len(beside[0]) <= BESIDE
    assert beside[4] == []


def test_windows_beyond_the_border_repeat_it() -> None:
    pixels = np.arange(30, dtype=np.float32).reshape(5, 6)
    wide = np.pad(pixels, 2, mode="edge")
    expected = [[wide[y : y + 5, x : x + 5].mean() for x in range(6)] for y in range(5)]
    np.testing.assert_allclose(box(pixels), expected, rtol=1e-5)
