"""Which photos and points a block gets."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from street import points, with_tracks, write_street

from splatmeter.blocks.planning import Division, planned
from splatmeter.errors import InputError
from splatmeter.scene.points import PointCloud
from splatmeter.scene.scene import Scene, SceneOptions, load_scene


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return load_scene(SceneOptions(write_street(tmp_path_factory.mktemp("street") / "s"), eval=True))


def names_of(division: Division) -> list[set[str]]:
    return [{*block.train, *block.test} for block in division.blocks]


def test_a_photo_goes_where_it_looks(street: Scene) -> None:
    left, right = names_of(planned(street, (2, 1)))
    assert "s_01.png" in left and "s_01.png" not in right
    assert "s_22.png" in right and "s_22.png" not in left
    assert left & right  # those in the middle see both


def test_every_photo_belongs_somewhere_and_no_test_view_is_trained_on(street: Scene) -> None:
    division = planned(street, (3, 1))
    everything = {view.name for view in (*street.train, *street.test)}
    assert set().union(*names_of(division)) == everything
    held = {view.name for view in street.test}
    assert held == {"s_00.png", "s_08.png", "s_16.png"}
    for block in division.blocks:
        assert not held & set(block.train) and set(block.test) <= held


def test_own_points_are_shared_out_and_margins_come_on_top(street: Scene) -> None:
    division = planned(street, (2, 2))
    assert sum(block.own for block in division.blocks) == street.points.count
    assert all(block.own < block.inside < street.points.count for block in division.blocks)
    assert sum(block.load for block in division.blocks) == pytest.approx(1)


def test_the_same_scene_is_divided_in_the_same_way(street: Scene) -> None:
    one, two = planned(street, (2, 2)), planned(street, (2, 2))
    assert one.record() == two.record() and names_of(one) == names_of(two)
    assert one.record()["id"] != planned(street, (4, 1)).record()["id"]


def test_stand_ins_are_what_the_blocks_photos_see_outside(street: Scene) -> None:
    first = planned(street, (4, 1)).blocks[0]
    outside = first.points.positions[first.inside :, 0]
    last_camera = max(view.camera.position[0] for view in first.scene(street).train)
    assert len(outside) and (abs(outside) <= 20).all() and outside.max() <= last_camera + 4


def test_stand_ins_are_thinned(street: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splatmeter.blocks.planning.FEWEST_STAND_INS", 10)
    blocks = planned(street, (2, 1)).blocks
    assert all(0 < block.stand_ins <= 0.5 * block.inside for block in blocks)


def test_a_budget_is_shared_out_with_something_for_margins(street: Scene) -> None:
    blocks = planned(street, (2, 2)).blocks
    shares = [block.share_of(10_000) - block.stand_ins for block in blocks]
    assert 10_000 < sum(shares) < 19_000 and all(2400 < share < 5000 for share in shares)


def test_one_block_is_the_whole_scene(street: Scene) -> None:
    (only,) = planned(street, (1, 1)).blocks
    scene = only.scene(street)
    assert scene.train == street.train and scene.test == street.test and only.region == ()
    np.testing.assert_array_equal(only.points.positions, street.points.positions)


def test_cells_that_hardly_anybody_looks_at_are_named_with_a_smaller_grid(tmp_path: Path) -> None:
    scene = load_scene(SceneOptions(write_street(tmp_path / "s", photos=4)))
    with pytest.raises(InputError, match=r"Block \d-1 of 4x1 would have \d photos .* such as 3x1\.$"):
        planned(scene, (4, 1))


def test_fewer_points_than_cells(tmp_path: Path) -> None:
    cloud = PointCloud(np.zeros((20, 3), np.float32), np.zeros((20, 3), np.uint8))
    scene = load_scene(SceneOptions(write_street(tmp_path / "s", 6, cloud)))
    with pytest.raises(InputError, match=r"would have 0 points inside.*such as 1x2 or 2x1\.$"):
        planned(scene, (2, 2))


def test_where_nobody_sees_a_point(tmp_path: Path) -> None:
    far = points()
    cloud = PointCloud(far.positions + np.float32(500), far.colors)
    scene = load_scene(SceneOptions(write_street(tmp_path / "s", 6, cloud)))
    with pytest.raises(InputError, match=r"No photo of .* sees any of its points"):
        planned(scene, (2, 1))


def test_tracks_come_before_projection_because_they_know_what_is_hidden(tmp_path: Path) -> None:
    """Photo s_11 stands in the middle; its tracks say that it sees the left side only."""
    folder = write_street(tmp_path / "s")
    by_projection = planned(load_scene(SceneOptions(folder)), (2, 1))
    assert by_projection.how == "projection" and all("s_11.png" in names for names in names_of(by_projection))
    middles = np.linspace(-18, 18, 24)
    seen = {
        row: [k + 1 for k, x in enumerate(middles) if abs(x - place) < 4 and not (k == 11 and place > -1)]
        for row, place in enumerate(points().positions[:, 0].tolist())
    }
    with_tracks(folder, seen)
    division = planned(load_scene(SceneOptions(folder)), (2, 1))
    assert division.how == "tracks"
    assert ["s_11.png" in names for names in names_of(division)].count(True) == 1


def test_tracks_that_know_too_few_photos_are_left_alone(tmp_path: Path) -> None:
    folder = write_street(tmp_path / "s")
    with_tracks(folder, {row: [1, 2] for row in range(50)})
    assert planned(load_scene(SceneOptions(folder)), (2, 1)).how == "projection"


def test_tracks_in_text_files_are_the_same(tmp_path: Path) -> None:
    folder = write_street(tmp_path / "s")
    sparse = folder / "sparse" / "0"
    lines = [
        f"{row} {x} {y} {z} 1 2 3 0.5 "
        + " ".join(f"{k + 1} 0" for k, place in enumerate(np.linspace(-18, 18, 24)) if abs(place - x) < 3)
        for row, (x, y, z) in enumerate(points().positions.tolist())
    ]
    images = [f"{k + 1} 0 1 0 0 {-x} 0 4 1 s_{k:02d}.png\n" for k, x in enumerate(np.linspace(-18, 18, 24))]
    for name in ("cameras", "images", "points3D"):
        (sparse / f"{name}.bin").unlink()
    (sparse / "points3D.txt").write_text("\n".join(lines) + "\n")
    (sparse / "images.txt").write_text("\n".join(images) + "\n")
    (sparse / "cameras.txt").write_text("1 PINHOLE 32 24 16 16 16 12\n")
    division = planned(load_scene(SceneOptions(folder)), (2, 1))
    assert division.how == "tracks" and all(re.fullmatch(r"[12]-1", block.name) for block in division.blocks)
