"""NeRF-synthetic scenes and their multi-scale form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_scenes import nerf_matrix, write_multiscale_scene, write_photo, write_synthetic_scene

from splatmeter.errors import InputError, MissingFile
from splatmeter.photos.photo import read
from splatmeter.scene.scene import SceneOptions, load_scene


def test_frames_keep_the_order_of_the_file_and_bring_their_own_test_views(tmp_path: Path) -> None:
    write_synthetic_scene(tmp_path, train=3, test=2)
    scene = load_scene(SceneOptions(tmp_path, eval=True))
    assert scene.kind == "blender"
    assert [view.name for view in scene.train] == [f"train/r_{n}.png" for n in range(3)]
    assert [view.name for view in scene.test] == ["test/r_0.png", "test/r_1.png"]
    camera = scene.train[1].camera
    focal = 20 / (2 * np.tan(0.35))
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == pytest.approx((focal, focal, 10, 8))
    np.testing.assert_allclose(camera.position, np.array(nerf_matrix(0.3))[:3, 3], atol=1e-12)
    assert (camera.rotation @ -camera.position)[2] > 0  # looks at the origin


def test_without_evaluation_the_test_frames_join_training(tmp_path: Path) -> None:
    write_synthetic_scene(tmp_path, train=3, test=2)
    scene = load_scene(SceneOptions(tmp_path))
    assert [view.name[:5] for view in scene.train] == ["train"] * 3 + ["test/"] * 2 and not scene.test


def test_the_random_cloud_is_the_originals_and_nothing_is_written(tmp_path: Path) -> None:
    write_synthetic_scene(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    points = load_scene(SceneOptions(tmp_path)).points
    assert points.positions.shape == (100_000, 3) and points.positions.dtype == np.float32
    np.testing.assert_allclose(points.positions[0], [0.12691511, 0.55949235, 0.26718478], rtol=1e-7)
    assert np.abs(points.positions).max() <= 1.3 and (points.colors == 127).all()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_cloud_beside_the_frames_is_used(tmp_path: Path) -> None:
    write_synthetic_scene(tmp_path)
    header = "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n"
    colors = "property uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n"
    (tmp_path / "points3d.ply").write_text(header + colors + "1 2 3 4 5 6\n" * 4)
    points = load_scene(SceneOptions(tmp_path)).points
    assert points.count == 4 and points.colors[0].tolist() == [4, 5, 6]


def test_transparent_parts_show_the_chosen_background(tmp_path: Path) -> None:
    write_synthetic_scene(tmp_path)
    black = load_scene(SceneOptions(tmp_path)).train[0].photo
    white = load_scene(SceneOptions(tmp_path, white_background=True)).train[0].photo
    assert (read(white) >= read(black)).all() and (read(white) > read(black)).any()


def edited(folder: Path, file: str, **changes: Any) -> None:
    content = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps({**content, **changes}))


def frame(path: Any = "train/r_0", matrix: Any = None) -> dict[str, Any]:
    return {"file_path": path, "transform_matrix": nerf_matrix(0) if matrix is None else matrix}


def test_an_ending_in_the_file_path_is_not_doubled(tmp_path: Path) -> None:
    write_synthetic_scene(tmp_path)
    write_photo(tmp_path / "train" / "x.1.jpg")
    frames = [frame("train/r_0.png"), frame("./train/x.1.jpg", nerf_matrix(1))]
    edited(tmp_path, "transforms_train.json", frames=frames)
    names = [view.name for view in load_scene(SceneOptions(tmp_path, eval=True)).train]
    assert names == ["train/r_0.png", "train/x.1.jpg"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"camera_angle_x": None}, "camera_angle_x is missing"),
        ({"camera_angle_x": 0}, "not an angle"),
        ({"camera_angle_x": float("nan")}, "not a finite number"),
        ({"frames": []}, "no list of frames"),
        ({"frames": [{}]}, "frame 0 has no file_path"),
        ({"frames": [frame("../x")]}, "not a path inside the scene"),
        ({"frames": [frame("a\0b")]}, "not a path inside the scene"),
        ({"frames": [frame("\udc80")]}, "not a path inside the scene"),
        ({"frames": [frame("a" * 5000)]}, "not a path inside the scene"),
        ({"frames": [frame(matrix=[[1]])]}, "is not a 4x4 matrix"),
        ({"frames": [frame(matrix=[[1], 2])]}, "is not a 4x4 matrix"),
        ({"frames": [frame(matrix=[[0] * 4] * 4)]}, "has no rotation"),
        ({"frames": [frame(), frame()]}, "more than once"),
        ({"frames": [frame()]}, "stand at one place"),
    ],
)
def test_a_scene_file_that_cannot_be_used_is_explained(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    write_synthetic_scene(tmp_path)
    edited(tmp_path, "transforms_train.json", **changes)
    with pytest.raises(InputError, match=complaint):
        load_scene(SceneOptions(tmp_path, eval=True))


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, "\xff"])
def test_what_is_not_json_is_explained(tmp_path: Path, text: str) -> None:
    write_synthetic_scene(tmp_path)
    (tmp_path / "transforms_train.json").write_text(text, "latin-1")
    with pytest.raises(InputError, match=r"transforms_train\.json"):
        load_scene(SceneOptions(tmp_path))


def test_missing_frames_are_counted(tmp_path: Path) -> None:
    write_synthetic_scene(tmp_path)
    (tmp_path / "train" / "r_1.png").unlink()
    with pytest.raises(MissingFile, match=r"1 of 3 photos named in transforms_train\.json"):
        load_scene(SceneOptions(tmp_path))


def test_multi_scale_trains_on_full_size_and_tests_on_every_level(tmp_path: Path) -> None:
    write_multiscale_scene(tmp_path, photos=3)
    scene = load_scene(SceneOptions(tmp_path, eval=True))
    assert scene.kind == "multiscale" and [view.level for view in scene.train] == [0, 0, 0]
    assert [view.level for view in scene.test] == [0, 1, 2, 3] * 3
    assert [view.camera.fx for view in scene.test[:4]] == [60, 30, 15, 7.5]
    assert [view.camera.width for view in scene.test[:4]] == [32, 16, 8, 4]
    everything = load_scene(SceneOptions(tmp_path, eval=True, load_allres=True))
    assert [view.level for view in everything.train] == [0, 1, 2, 3] * 3
    assert len(load_scene(SceneOptions(tmp_path)).train) == 3 + 12


@pytest.mark.parametrize("key", ["file_path", "focal", "cam2world"])
def test_incomplete_metadata_is_explained(tmp_path: Path, key: str) -> None:
    write_multiscale_scene(tmp_path)
    content = json.loads((tmp_path / "metadata.json").read_text())
    content["train"][key].pop()
    (tmp_path / "metadata.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="differ in length"):
        load_scene(SceneOptions(tmp_path))
    del content["train"][key]
    (tmp_path / "metadata.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="lacks file_path, focal or cam2world"):
        load_scene(SceneOptions(tmp_path))
