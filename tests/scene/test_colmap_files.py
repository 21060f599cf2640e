"""COLMAP scenes: what is read, and what is said about files that cannot be used."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from small_scenes import cube_points, ring, write_colmap_scene, write_photo

from splatmeter.errors import InputError, MissingFile
from splatmeter.ops import Pinhole
from splatmeter.scene import colmap_binary
from splatmeter.scene.colmap_writer import write_colmap
from splatmeter.scene.points import PointCloud
from splatmeter.scene.scene import Scene, SceneOptions, load_scene

NAMES = ["b 1.png", "left/0001.png", "right/0001.png", "a.b.png"]


def load(folder: Path) -> Scene:
    return load_scene(SceneOptions(folder))


def same_camera(one: Pinhole, other: Pinhole) -> None:
    np.testing.assert_allclose(one.rotation, other.rotation, atol=1e-14)
    np.testing.assert_allclose(one.translation, other.translation)
    numbers = ("fx", "fy", "cx", "cy", "width", "height")
    assert [getattr(one, n) for n in numbers] == pytest.approx([getattr(other, n) for n in numbers])


def to_text(sparse: Path, model: str = "PINHOLE") -> None:
    """Rewrites cameras.bin and images.bin as text."""
    cameras = colmap_binary.parse_cameras((sparse / "cameras.bin").read_bytes(), sparse)
    images = colmap_binary.parse_images((sparse / "images.bin").read_bytes(), sparse)
    rows = ["# Camera list"]
    for camera in cameras:
        fx, fy, cx, cy = camera.parameters
        numbers = (fx, fy, cx, cy) if model == "PINHOLE" else (fx, cx, cy)
        rows.append(f"{camera.number} {model} {camera.width} {camera.height} {' '.join(map(repr, numbers))}")
    (sparse / "cameras.txt").write_text("\n".join(rows) + "\n")
    rows = ["# Image list"]
    for number, image in enumerate(images):
        pose = " ".join(map(repr, image.pose))
        features = "" if number % 2 else "1.5 2.5 -1 3.5 4.5 7"
        rows.append(f"{number} {pose} {image.camera} {image.name}\n{features}")
    (sparse / "images.txt").write_text("\n".join(rows) + "\n")
    for name in ("cameras.bin", "images.bin"):
        (sparse / name).unlink()


def test_what_is_written_is_read_back_with_spaces_folders_and_dots_in_names(tmp_path: Path) -> None:
    cameras = ring(4)
    write_colmap_scene(tmp_path, NAMES, cameras)
    scene = load(tmp_path)
    assert scene.kind == "colmap" and [view.name for view in scene.train] == sorted(NAMES)
    for view in scene.train:
        same_camera(view.camera, cameras[NAMES.index(view.name)])
        assert view.photo.path == tmp_path / "images" / view.name
    np.testing.assert_array_equal(scene.points.positions, cube_points().positions)
    np.testing.assert_array_equal(scene.points.colors, cube_points().colors)


def test_text_files_give_the_same_scene(tmp_path: Path) -> None:
    sparse = write_colmap_scene(tmp_path, NAMES)
    binary = load(tmp_path)
    to_text(sparse)
    rows = zip(binary.points.positions.tolist(), binary.points.colors.tolist(), strict=True)
    lines = [f"{i} {x} {y} {z} {r} {g} {b} 0.5 1 2" for i, ((x, y, z), (r, g, b)) in enumerate(rows)]
    (sparse / "points3D.txt").write_text("# Points\n" + "\n".join(lines))
    (sparse / "points3D.bin").unlink()
    text = load(tmp_path)
    assert [view.name for view in text.train] == [view.name for view in binary.train]
    for one, other in zip(text.train, binary.train, strict=True):
        same_camera(one.camera, other.camera)
    np.testing.assert_array_equal(text.points.positions, binary.points.positions)
    np.testing.assert_array_equal(text.points.colors, binary.points.colors)


def test_simple_pinhole_is_read_from_text(tmp_path: Path) -> None:
    to_text(write_colmap_scene(tmp_path, ["a.png", "b.png"]), "SIMPLE_PINHOLE")
    camera = load(tmp_path).train[0].camera
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == (50, 50, 21, 14)


def test_the_model_may_lie_in_sparse_itself(tmp_path: Path) -> None:
    sparse = write_colmap_scene(tmp_path, ["a.png", "b.png"])
    for path in sparse.iterdir():
        path.rename(tmp_path / "sparse" / path.name)
    sparse.rmdir()
    assert len(load(tmp_path).train) == 2


def test_smaller_photos_scale_the_camera_with_its_principal_point(tmp_path: Path) -> None:
    write_colmap_scene(tmp_path, ["a.png", "b.png"])
    for name in ("a.png", "b.png"):
        write_photo(tmp_path / "images_2" / name, 20, 15)
    camera = load_scene(SceneOptions(tmp_path, images="images_2")).train[0].camera
    expected = (25, 25.5, 10.5, 7, 20, 15)
    assert (camera.fx, camera.fy, camera.cx, camera.cy, camera.width, camera.height) == expected


def test_photos_without_their_sub_folders_are_found(tmp_path: Path) -> None:
    write_colmap_scene(tmp_path, ["s/a.png", "t/b.png"])
    for name in ("s/a.png", "t/b.png"):
        (tmp_path / "images" / name).rename(tmp_path / "images" / Path(name).name)
    assert load(tmp_path).train[1].photo.path == tmp_path / "images" / "b.png"


def test_points_with_tracks_of_different_length_are_read(tmp_path: Path) -> None:
    lengths = [0, 3, 1, 70]
    rows = [
        struct.pack("<Q3d3BdQ", n, n, 0.5, -n, n, 2, 255, 0.1, length) + bytes(8 * length)
        for n, length in enumerate(lengths)
    ]
    cloud = colmap_binary.parse_points(struct.pack("<Q", 4) + b"".join(rows), tmp_path)
    assert cloud.positions.tolist() == [[n, 0.5, -n] for n in range(4)]
    assert cloud.colors.tolist() == [[n, 2, 255] for n in range(4)]
    equal = [row[:43] + struct.pack("<Q", 2) + bytes(16) for row in rows]
    again = colmap_binary.parse_points(struct.pack("<Q", 4) + b"".join(equal), tmp_path)
    np.testing.assert_array_equal(again.positions, cloud.positions)


def test_a_users_ply_wins_and_needs_neither_normals_nor_colours(tmp_path: Path) -> None:
    sparse = write_colmap_scene(tmp_path, ["a.png", "b.png"])
    header = "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n"
    (sparse / "points3D.ply").write_text(header + "end_header\n0 0 0\n1 2 3\n4 5 6\n7 8 nan\n")
    with pytest.raises(InputError, match="3 points"):
        load(tmp_path)
    (sparse / "points3D.ply").write_text(
        (header + "end_header\n0 0 0\n1 2 3\n4 5 6\n7 8 9\n").replace("\n", "\r\n")
    )
    points = load(tmp_path).points
    assert points.positions[3].tolist() == [7, 8, 9] and (points.colors == 127).all()


@pytest.mark.parametrize(("order", "mark"), [("little", "<"), ("big", ">")])
def test_a_binary_ply_with_normals_and_colours_is_read(tmp_path: Path, order: str, mark: str) -> None:
    sparse = write_colmap_scene(tmp_path, ["a.png", "b.png"])
    names = ["x", "y", "z", "nx", "ny", "nz"]
    rows = np.zeros(
        5, [*((name, mark + "f4") for name in names), *((c, "u1") for c in ("red", "green", "blue"))]
    )
    rows["y"], rows["green"] = np.arange(5), 10 * np.arange(5)
    properties = [f"property float {n}" for n in names] + [
        f"property uchar {c}" for c in ("red", "green", "blue")
    ]
    header = [
        "ply",
        f"format binary_{order}_endian 1.0",
        "comment x",
        "element vertex 5",
        *properties,
        "end_header\n",
    ]
    (sparse / "points3D.ply").write_bytes("\n".join(header).encode() + rows.tobytes())
    points = load(tmp_path).points
    assert points.positions[:, 1].tolist() == [0, 1, 2, 3, 4] and points.colors[:, 1].tolist() == [
        0,
        10,
        20,
        30,
        40,
    ]


def test_points_that_are_not_finite_are_left_out_and_mentioned(tmp_path: Path) -> None:
    cloud = cube_points()
    cloud.positions[3] = np.nan
    cloud.positions[5, 1] = np.inf
    write_colmap_scene(tmp_path, ["a.png", "b.png"])
    write_colmap(tmp_path, ring(2), ["a.png", "b.png"], cloud)
    scene = load(tmp_path)
    assert scene.points.count == 58 and np.isfinite(scene.points.positions).all()
    assert scene.notes == ("2 of 60 initial points are not finite and were left out.",)


def test_missing_photos_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    write_colmap_scene(tmp_path, [f"IMG_{n:04d}.png" for n in range(6)])
    for number in (2, 4):
        (tmp_path / "images" / f"IMG_{number:04d}.png").unlink()
    with pytest.raises(
        MissingFile, match=r"2 of 6 photos named in images\.bin are not in .*images/ \(first: IMG_0002"
    ):
        load(tmp_path)
    with pytest.raises(MissingFile, match=r"Put what is missing back there, or pass --images"):
        load(tmp_path)
    with pytest.raises(MissingFile, match="--images"):
        load_scene(SceneOptions(tmp_path, images="images_4"))
    (tmp_path / "images").rename(tmp_path / "images_4")
    with pytest.raises(MissingFile, match=r"images_4/ .* Re-run the downscaling, or pass --images"):
        load_scene(SceneOptions(tmp_path, images="images_4"))


def replaced(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


CAMERA_MODEL, CAMERA_WIDTH, CAMERA_FX = 12, 16, 32
IMAGE_POSE, IMAGE_CAMERA, IMAGE_NAME = 12, 68, 72


def patched(offset: int, layout: str, *values: float) -> Callable[[bytes], bytes]:
    patch = struct.pack(layout, *values)
    return lambda data: data[:offset] + patch + data[offset + len(patch) :]


@pytest.mark.parametrize(
    ("file", "change", "complaint"),
    [
        ("cameras", lambda data: b"", r"cameras\.bin is empty or cut off \(0 bytes\)"),
        ("images", lambda data: data[:5], r"images\.bin is empty or cut off"),
        ("points3D", lambda data: b"", r"points3D\.bin is empty or cut off"),
        ("cameras", lambda data: data[:-1], "ends in the middle|room for"),
        ("images", lambda data: data[:-9], "ends in the middle|room for"),
        ("points3D", lambda data: data[:-1], "ends in the middle|room for"),
        ("images", patched(0, "<Q", 2**63), "has 9223372036854775808 entries but has room for 2 at most"),
        ("points3D", patched(0, "<Q", 2**40), "entries but has room for 60"),
        ("points3D", patched(8 + 43, "<Q", 2**60), "ends in the middle"),
        ("points3D", patched(0, "<Q", 0), "holds no points"),
        ("images", patched(0, "<Q", 0), "names no photos"),
        ("cameras", patched(CAMERA_MODEL, "<i", 99), "unknown model 99"),
        ("cameras", patched(CAMERA_MODEL, "<i", 2), "SIMPLE_RADIAL.*splatmeter scene undistort"),
        ("cameras", patched(CAMERA_WIDTH, "<Q", 0), "impossible"),
        ("cameras", patched(CAMERA_WIDTH, "<Q", 2**63), "impossible"),
        ("cameras", patched(CAMERA_FX, "<d", float("nan")), "impossible"),
        ("cameras", patched(CAMERA_FX, "<d", -5.0), "impossible"),
        ("cameras", patched(CAMERA_WIDTH, "<QQ", 30, 40), "another shape"),
        (
            "images",
            patched(IMAGE_POSE, "<4d", 0, 0, 0, 0),
            "pose of 'a.png' has a rotation quaternion of length",
        ),
        ("images", patched(IMAGE_POSE, "<d", float("nan")), "pose of 'a.png' is not finite"),
        ("images", patched(IMAGE_POSE + 32, "<d", float("inf")), "pose of 'a.png' is not finite"),
        ("images", patched(IMAGE_CAMERA, "<i", 77), "camera 77, which cameras.bin does not list"),
        ("images", lambda data: data.replace(b"a.png", b"../a."), "not a path inside the scene"),
        ("images", lambda data: data.replace(b"a.png", b"/etc/"), "not a path inside the scene"),
        ("images", lambda data: data.replace(b"a.png", b"C:\\ab"), "not a path inside the scene"),
        ("images", lambda data: data.replace(b"a.png\0", b"\0"), "not a path inside the scene"),
        ("images", lambda data: data.replace(b"a.png", b"\xff.png"), "not UTF-8"),
        ("images", lambda data: data.replace(b"a.png", b"b.png"), "'b.png' more than once"),
    ],
)
def test_a_file_that_cannot_be_used_is_explained(
    tmp_path: Path, file: str, change: Callable[[bytes], bytes], complaint: str
) -> None:
    sparse = write_colmap_scene(tmp_path, ["a.png", "b.png"])
    replaced(sparse / f"{file}.bin", change)
    with pytest.raises(InputError, match=complaint):
        load(tmp_path)


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("cameras", "1 PINHOLE 40 30 50", "line 1, is not a camera"),
        ("cameras", "1 OPENCV 40 30 50 50 20 15 0 0 0 0", "OPENCV.*splatmeter scene undistort"),
        ("cameras", "1 MAGIC 40 30 50 50 20 15", "unknown model 'MAGIC'"),
        ("cameras", "1 EQUIRECTANGULAR 40 20 40 20", "is a panorama.*cannot be trained on"),
        ("images", "# x\n1 1 0 0 0 0 0 0 1", "line 2, is not an image"),
        ("images", "1 1 0 0 zero 0 0 0 1 a.png", "line 1, is not an image"),
        ("points3D", "1 0 0 0 300 0 0 1", "line 1, is not a point"),
        ("points3D", "1 0 0", "line 1, is not a point"),
        ("points3D", "# nothing", "holds no points"),
    ],
)
def test_a_text_file_that_cannot_be_used_is_explained(
    tmp_path: Path, file: str, text: str, complaint: str
) -> None:
    sparse = write_colmap_scene(tmp_path, ["a.png", "b.png"])
    to_text(sparse)
    (sparse / "points3D.bin").unlink()
    (sparse / "points3D.txt").write_text("1 0 0 0 1 2 3 1\n" * 4)
    assert len(load(tmp_path).train) == 2
    (sparse / f"{file}.txt").write_text(text)
    with pytest.raises(InputError, match=complaint):
        load(tmp_path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("hello", "is not a PLY file.*Export the points again"),
        ("ply\nformat ascii 1.0\nelement vertex 9\nproperty float x\nend_header\n", "x, y and z"),
        ("ply\nformat ascii 1.0\nelement face 9\nend_header\n", "instead of vertex"),
        ("ply\nformat ascii 1.0\nelement vertex -4\nend_header\n", "'vertex' is '-4'"),
        ("ply\nformat ascii 1.0\nelement vertex 1\nproperty list uchar int x\nend_header\n", "a list among"),
    ],
)
def test_a_ply_that_cannot_be_used_is_explained(tmp_path: Path, text: str, complaint: str) -> None:
    sparse = write_colmap_scene(tmp_path, ["a.png", "b.png"])
    (sparse / "points3D.ply").write_text(text)
    with pytest.raises(InputError, match=complaint):
        load(tmp_path)


def test_a_sparse_folder_without_a_model_is_explained(tmp_path: Path) -> None:
    (tmp_path / "sparse").mkdir()
    with pytest.raises(MissingFile, match=r"neither cameras\.bin"):
        load(tmp_path)


def test_the_writer_shares_equal_cameras_and_refuses_mismatched_lists(tmp_path: Path) -> None:
    sparse = write_colmap(tmp_path, [*ring(3), *ring(1, 20, 20)], list("abcd"), cube_points(4))
    assert len(colmap_binary.parse_cameras((sparse / "cameras.bin").read_bytes(), sparse)) == 2
    empty = PointCloud(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.uint8))
    with pytest.raises(ValueError):
        write_colmap(tmp_path, ring(2), ["a"], empty)
