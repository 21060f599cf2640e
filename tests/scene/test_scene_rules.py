"""Kind, split, size, extent, masks and identity of a scene."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from small_scenes import ring, write_colmap_scene, write_photo, write_synthetic_scene

from splatmeter.errors import InputError, MissingFile, UsageError
from splatmeter.photos.photo import read
from splatmeter.scene.colmap_writer import write_colmap
from splatmeter.scene.points import PointCloud
from splatmeter.scene.resolution import target_size
from splatmeter.scene.scene import SceneOptions, fingerprint, load_scene
from splatmeter.scene.split import held_out

NAMES = [f"{n:02d}.png" for n in range(17)]


def test_colmap_wins_over_other_kinds(tmp_path: Path) -> None:
    write_synthetic_scene(tmp_path)
    (tmp_path / "metadata.json").write_text("{}")
    assert load_scene(SceneOptions(tmp_path)).kind == "blender"
    write_colmap_scene(tmp_path, ["a.png", "b.png"])
    assert load_scene(SceneOptions(tmp_path)).kind == "colmap"


def test_a_folder_that_is_no_scene_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a scene"):
        load_scene(SceneOptions(tmp_path))
    with pytest.raises(MissingFile, match="is not a folder"):
        load_scene(SceneOptions(tmp_path / "gone"))


def test_every_eighth_by_name_is_for_testing_whatever_order_the_file_has(tmp_path: Path) -> None:
    write_colmap_scene(tmp_path, NAMES[::-1])
    scene = load_scene(SceneOptions(tmp_path, eval=True))
    assert [view.name for view in scene.test] == ["00.png", "08.png", "16.png"]
    assert [view.name for view in scene.train] == [
        n for n in NAMES if n not in ("00.png", "08.png", "16.png")
    ]
    everything = load_scene(SceneOptions(tmp_path))
    assert [view.name for view in everything.train] == NAMES and not everything.test


def test_names_are_ordered_up_to_their_first_dot_as_in_the_original(tmp_path: Path) -> None:
    write_colmap_scene(tmp_path, ["a-1.png", "a.png", "a.b.png"])
    assert [view.name for view in load_scene(SceneOptions(tmp_path)).train] == ["a.b.png", "a.png", "a-1.png"]


def test_a_number_of_test_views_is_spread_evenly() -> None:
    assert held_out(10, 8, 3) == [0, 3, 6]
    assert held_out(185, 8, None) == list(range(0, 185, 8)) and len(held_out(185, 8, None)) == 24


@given(st.integers(2, 300), st.data())
def test_evenly_spread_views_are_as_many_as_asked_for(count: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(1, count - 1))
    chosen = held_out(count, 8, number)
    assert len(set(chosen)) == number and chosen[0] == 0 and max(chosen) < count
    gaps = np.diff([*chosen, count])
    assert gaps.max() - gaps.min() <= 1


@pytest.mark.parametrize("options", [{"test_count": 0}, {"test_count": 17}, {"test_every": 0}])
def test_a_split_that_makes_no_sense_is_refused(tmp_path: Path, options: dict[str, int]) -> None:
    write_colmap_scene(tmp_path, NAMES)
    with pytest.raises(UsageError):
        load_scene(SceneOptions(tmp_path, eval=True, **options))


def test_a_split_without_a_training_view_is_refused(tmp_path: Path) -> None:
    write_colmap_scene(tmp_path, NAMES[:3])
    with pytest.raises(InputError, match="leaves no view to train on"):
        load_scene(SceneOptions(tmp_path, eval=True, test_every=1))


def test_one_place_is_no_scene_but_two_are(tmp_path: Path) -> None:
    write_colmap_scene(tmp_path, NAMES[:2])
    assert load_scene(SceneOptions(tmp_path)).extent == pytest.approx(1.1 * 4)
    with pytest.raises(InputError, match=r"All 1 training cameras .* stand at one place"):
        load_scene(SceneOptions(tmp_path, eval=True))
    write_colmap_scene(tmp_path, NAMES[:1])
    with pytest.raises(InputError, match="stand at one place"):
        load_scene(SceneOptions(tmp_path))


def test_the_extent_is_measured_from_the_mean_of_the_training_cameras(tmp_path: Path) -> None:
    write_colmap_scene(tmp_path, NAMES)
    scene = load_scene(SceneOptions(tmp_path, eval=True))
    centers = np.stack([view.camera.position for view in scene.train])
    distances = [np.linalg.norm(center - centers.mean(axis=0)) for center in centers]
    assert scene.extent == pytest.approx(1.1 * max(distances))


@pytest.mark.parametrize(
    ("size", "resolution", "expected"),
    [
        ((5187, 3361), 4, (1297, 840)),
        ((5187, 3361), 8, (648, 420)),
        ((5, 7), 2, (2, 4)),  # 2.5 and 3.5: halves go to the even number
        ((1600, 900), -1, (1600, 900)),
        ((3200, 1801), -1, (1600, 900)),
        ((1000, 500), 100, (100, 50)),
        ((100, 50), 128, (128, 64)),  # a width, not a divisor
        ((640, 480), 64, (10, 8)),
    ],
)
def test_sizes_follow_the_resolution(
    size: tuple[int, int], resolution: int, expected: tuple[int, int]
) -> None:
    assert target_size(*size, resolution) == expected


def test_truncation_makes_1599_pixels_of_560_widths() -> None:
    widths = [target_size(width, 1000, -1)[0] for width in range(1601, 12000)]
    assert widths.count(1599) == 560 and set(widths) == {1599, 1600}


@pytest.mark.parametrize("resolution", [0, -2, 10**400, 100_000])
def test_a_resolution_that_makes_no_sense_is_refused(resolution: int) -> None:
    with pytest.raises(UsageError):
        target_size(40, 40, resolution)


def test_photos_that_would_vanish_are_refused(tmp_path: Path) -> None:
    write_colmap_scene(tmp_path, NAMES[:2])
    with pytest.raises(InputError, match="trained at 1x0 pixels"):
        load_scene(SceneOptions(tmp_path, resolution=64))
    write_colmap_scene(tmp_path, NAMES[:2], ring(2, 1, 1))
    with pytest.raises(InputError, match="trained at 1x1 pixels"):
        load_scene(SceneOptions(tmp_path))


def test_the_resolution_scales_photo_and_camera_together(tmp_path: Path) -> None:
    write_colmap_scene(tmp_path, NAMES[:2])
    view = load_scene(SceneOptions(tmp_path, resolution=2)).train[0]
    assert read(view.photo).shape == (3, 15, 20) and (view.camera.cx, view.camera.cy) == (10.5, 7)


def masked(folder: Path, names: list[str]) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        Image.fromarray(np.zeros((30, 40), np.uint8)).save(folder / name)


def test_a_masks_folder_is_used_unless_told_otherwise(tmp_path: Path) -> None:
    write_colmap_scene(tmp_path, ["a.png", "b.png"])
    masked(tmp_path / "masks", ["a.png", "b.png.png"])  # the second as COLMAP names masks
    scene = load_scene(SceneOptions(tmp_path, white_background=True))
    assert [view.photo.mask for view in scene.train] == [
        tmp_path / "masks" / n for n in ("a.png", "b.png.png")
    ]
    assert (read(scene.train[0].photo) == 255).all()
    assert load_scene(SceneOptions(tmp_path, masks="none")).train[0].photo.mask is None


def test_a_named_masks_folder_must_be_complete(tmp_path: Path) -> None:
    write_colmap_scene(tmp_path, ["a.png", "b.png"])
    with pytest.raises(MissingFile, match="is not a folder of masks"):
        load_scene(SceneOptions(tmp_path, masks="cutouts"))
    masked(tmp_path / "cutouts", ["b.png"])
    with pytest.raises(MissingFile, match=r"1 of 2 photos have no mask .*\(first: a\.png\)"):
        load_scene(SceneOptions(tmp_path, masks="cutouts"))
    masked(tmp_path / "masks", ["unrelated.png"])
    assert load_scene(SceneOptions(tmp_path)).train[0].photo.mask is None


def test_alpha_of_colmap_photos_is_used(tmp_path: Path) -> None:
    write_colmap_scene(tmp_path, ["a.png", "b.png"])
    write_photo(tmp_path / "images" / "a.png", 40, 30, "RGBA")
    black, white = (
        read(load_scene(SceneOptions(tmp_path, white_background=w)).train[0].photo) for w in (False, True)
    )
    assert (black != white).any()


def test_the_fingerprint_knows_scene_and_split(tmp_path: Path) -> None:
    write_colmap_scene(tmp_path, NAMES)
    scene = load_scene(SceneOptions(tmp_path))
    assert fingerprint(scene) == fingerprint(load_scene(SceneOptions(tmp_path)))
    moved = replace(scene.points, positions=scene.points.positions + np.float32(1e-3))
    camera = replace(scene.train[0].camera, fx=scene.train[0].camera.fx + 1e-9)
    others = [
        load_scene(SceneOptions(tmp_path, eval=True)),
        load_scene(SceneOptions(tmp_path, resolution=2)),
        replace(scene, points=moved),
        replace(scene, train=(replace(scene.train[0], camera=camera), *scene.train[1:])),
    ]
    assert len({fingerprint(other) for other in [scene, *others]}) == 5


def test_a_lone_sparse_1_is_read_and_of_several_the_largest(tmp_path: Path) -> None:
    sparse = write_colmap_scene(tmp_path, NAMES)
    sparse.rename(sparse.parent / "1")
    scene = load_scene(SceneOptions(tmp_path))
    assert len(scene.train) == 17 and scene.notes == (
        "Cameras and points are those of sparse/1: there is no sparse/0.",
    )
    small = tmp_path / "small"
    write_colmap_scene(small, NAMES[:3]).rename(tmp_path / "sparse" / "10")
    (tmp_path / "sparse" / "2").mkdir()
    assert len(load_scene(SceneOptions(tmp_path)).train) == 17


@pytest.mark.parametrize("place", [1e30, -3e7, 1e38])
def test_an_impossible_point_is_left_out_with_a_note_and_poisons_nothing(
    tmp_path: Path, place: float
) -> None:
    write_colmap_scene(tmp_path, NAMES)
    clean = load_scene(SceneOptions(tmp_path))
    rows = clean.points.positions.copy()
    rows[7] = (0.1, place, 0.2)
    rows[9] = (0.1, 1000 * clean.extent, 0.2)  # far, like a mountain, but possible
    write_colmap(tmp_path, ring(17), NAMES, PointCloud(rows, clean.points.colors))
    scene = load_scene(SceneOptions(tmp_path))
    assert scene.points.count == 59 and scene.extent == clean.extent
    assert np.abs(scene.points.positions).max() == np.float32(1000 * clean.extent)
    (note,) = scene.notes
    assert note.startswith("1 of 60 initial points are impossibly far away") and "left out" in note


@pytest.mark.parametrize(("resolution", "near"), [(3, "2 or 4"), (5, "4 or 8"), (50, "32 or 64")])
def test_a_width_that_was_hardly_meant_as_one_is_remarked_on(
    tmp_path: Path, resolution: int, near: str
) -> None:
    write_colmap_scene(tmp_path, ["a.png", "b.png"], ring(2, 200, 150))
    (note,) = load_scene(SceneOptions(tmp_path, resolution=resolution)).notes
    assert note.startswith(
        f"--resolution {resolution} is a width: photos of 200x150 are trained at {resolution}x"
    )
    assert note.endswith(f"To shrink them by a factor, use {near}.")


def test_usual_resolutions_need_no_remark_and_enlarging_does(tmp_path: Path) -> None:
    write_colmap_scene(tmp_path, ["a.png", "b.png"], ring(2, 200, 150))
    assert not any(load_scene(SceneOptions(tmp_path, resolution=r)).notes for r in (-1, 1, 2, 8, 64, 100))
    assert "enlarges photos of 200x150" in load_scene(SceneOptions(tmp_path, resolution=400)).notes[0]
