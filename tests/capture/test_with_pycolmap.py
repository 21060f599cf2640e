"""The real library on a few renders of the built-in garden: places found, masks along, distortion removed."""

from __future__ import annotations

import functools
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from capture_stand_in import arc, garden_photos, textured
from PIL import Image, ImageDraw

from splatmeter.capture.cameras import guesses
from splatmeter.capture.clean import clean_photos
from splatmeter.capture.exif import ORIENTATION
from splatmeter.capture.job import Job, Settings, SourcePhoto
from splatmeter.capture.report import NAME
from splatmeter.capture.work import Work
from splatmeter.cli.main import main
from splatmeter.ops import Pinhole
from splatmeter.scene.camera_files import quaternion_of_rotation
from splatmeter.scene.scene import SceneOptions, load_scene

pytest.importorskip("pycolmap", reason="pycolmap is not installed: pip install 'splatmeter[photos]'")
pytest.importorskip("splatmeter._native", reason="the native module is not built")


def apart(one: Pinhole, other: Pinhole) -> float:
    """Degrees between two viewing directions."""
    cosine = float(one.rotation[2] @ other.rotation[2])
    return math.degrees(math.acos(min(1.0, max(-1.0, cosine))))


def test_photos_of_the_garden_become_a_scene(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Eight steps around it, one photo held sideways, one of something else, a mask for all."""
    cameras = arc(8, 6.0, 400, 300)
    photos = tmp_path / "my photos"
    (photos / "masks").mkdir(parents=True)
    for number, picture in enumerate(garden_photos(cameras)):
        block = Image.Exif()
        if number == 3:
            picture, block[ORIENTATION] = picture.transpose(Image.Transpose.ROTATE_90), 6
        picture.save(photos / f"gärden {number}.jpg", quality=95, exif=block)
        mask = Image.new("L", (400, 300), 255)
        ImageDraw.Draw(mask).rectangle((0, 0, 399, 99), fill=0)
        mask.save(photos / "masks" / f"gärden {number}.png")
    textured(1, 400, 300).save(photos / "stranger.jpg")
    out = tmp_path / "scene"
    assert main(["scene", "from-photos", str(photos), str(out), "--threads", "2", "--single-camera"]) == 0
    assert "8 of 9 have found their place" in capsys.readouterr().out

    facts = json.loads((out / NAME).read_text("utf-8"))
    assert facts["reprojection_error_pixels"] < 1
    assert facts["points_added"] > facts["points"]
    assert [photo["photo"] for photo in facts["left_out"]] == ["stranger.jpg"]
    scene = load_scene(SceneOptions(out))
    assert scene.points.count == facts["points"] + facts["points_added"]
    found = {view.name: view.camera for view in scene.train}
    assert sorted(found) == [f"gärden {number}.jpg" for number in range(8)]
    ordered = [found[f"gärden {number}.jpg"] for number in range(8)]
    for number in range(1, 8):
        true, seen = apart(cameras[0], cameras[number]), apart(ordered[0], ordered[number])
        assert seen == pytest.approx(true, abs=1.0)
    assert ordered[0].fx / ordered[0].width == pytest.approx(cameras[0].fx / 400, rel=0.06)
    for view in scene.train:
        assert view.photo.mask is not None
        with Image.open(view.photo.mask) as mask:
            pixels = np.asarray(mask)
        assert pixels.shape == (view.photo.height, view.photo.width)
        assert pixels[:80].max() == 0 and pixels[120:].min() == 255
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my photos", "scene"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("picture", "words"),
    [
        (lambda n: textured(n, 400, 300), "no two of them show enough of the same"),
        (lambda n: Image.new("RGB", (400, 300)), "most show too little detail (about 0 features each)"),
        (lambda n: three_views()[1][0], "not from places far enough apart"),
    ],
    ids=["different things", "black", "all equal"],
)
def test_photos_that_make_no_scene_say_why(
    tmp_path: Path, picture: Callable[[int], Image.Image], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(4):
        picture(number).save(photos / f"{number}.jpg", quality=95)
    for command in (["scene", "from-photos", str(photos)], ["make", str(photos), "-o"]):
        assert main([*command, str(tmp_path / "out")]) == 65
        said = capsys.readouterr().err
        assert "No scene could be made of the 4 photos" in said and words in said
        assert list(tmp_path.iterdir()) == [photos]


@pytest.mark.slow
def test_two_groups_give_the_larger_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Opposite sides of the garden, with nothing between."""
    photos = tmp_path / "photos"
    photos.mkdir()
    cameras = arc(31, 6.0, 400, 300)
    for number, picture in enumerate(garden_photos([*cameras[:9], *cameras[26:]])):
        picture.save(photos / f"{number}.jpg", quality=95)
    assert main(["scene", "from-photos", str(photos), str(tmp_path / "scene")]) == 0
    facts = json.loads((tmp_path / "scene" / NAME).read_text("utf-8"))
    assert facts["registered"] == 9
    assert len(facts["left_out"]) == 5


def test_no_features_are_sought_behind_transparency(tmp_path: Path) -> None:
    """Transparent on the left; what is painted there is full of detail."""
    import pycolmap

    from splatmeter.capture.colmap_engine import ColmapEngine

    work = Work(tmp_path / "work")
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(3):
        pixels = np.asarray(textured(number, 320, 240).convert("RGBA")).copy()
        pixels[:, :160, 3] = 0
        Image.fromarray(pixels).save(photos / f"{number}.png")
    job = Job(Settings(), tuple(SourcePhoto(path, path.name) for path in sorted(photos.iterdir())))
    work.open(job)
    clean = clean_photos(job, work, lambda done, total: None).photos
    assert all(photo.hidden for photo in clean)
    ColmapEngine(work, job.settings).extract(guesses(clean, single=False)[0], lambda done, total: None)
    database = pycolmap.Database.open(work.database)
    found = [database.read_keypoints(image.image_id) for image in database.read_all_images()]
    database.close()
    assert len(found) == 3
    for keypoints in found:
        assert len(keypoints) > 20 and keypoints[:, 0].min() > 155


def bent(picture: Image.Image, lens: Pinhole, k: float) -> Image.Image:
    """As a lens with one radial coefficient would have seen it (nearest pixel)."""
    y, x = np.mgrid[0 : lens.height, 0 : lens.width] + 0.5  # [h, w] each
    u, v = (x - lens.cx) / lens.fx, (y - lens.cy) / lens.fy
    plain_u, plain_v = u.copy(), v.copy()
    for _ in range(20):
        factor = 1 + k * (plain_u**2 + plain_v**2)
        plain_u, plain_v = u / factor, v / factor
    columns = np.clip((plain_u * lens.fx + lens.cx).astype(int), 0, lens.width - 1)
    rows = np.clip((plain_v * lens.fy + lens.cy).astype(int), 0, lens.height - 1)
    return Image.fromarray(np.asarray(picture)[rows, columns])


@functools.cache
def three_views() -> tuple[list[Pinhole], list[Image.Image]]:
    cameras = arc(3, 10.0, 320, 240)
    return cameras, garden_photos(cameras)


def distorted_scene(folder: Path, model: str = "SIMPLE_RADIAL", k: float = -0.2) -> list[Image.Image]:
    """Three photos with masks, poses as text; gives the photos as a pinhole sees them."""
    cameras, pictures = three_views()
    lens, sparse = cameras[0], folder / "sparse" / "0"
    sparse.mkdir(parents=True)
    (folder / "images" / "sub dir").mkdir(parents=True)
    (folder / "masks" / "sub dir").mkdir(parents=True)
    parameters = {
        "SIMPLE_RADIAL": f"{lens.fx} {lens.cx} {lens.cy} {k}",
        "OPENCV": f"{lens.fx} {lens.fy} {lens.cx} {lens.cy} {k} 0 0 0",
        "OPENCV_FISHEYE": f"{lens.fx} {lens.fy} {lens.cx} {lens.cy} 0 0 0 0",
        "FISHEYE": f"{lens.fx} {lens.fy} {lens.cx} {lens.cy}",
        "EQUIRECTANGULAR": "320 240",
        "PINHOLE": f"{lens.fx} {lens.fy} {lens.cx} {lens.cy}",
    }[model]
    (sparse / "cameras.txt").write_text(f"1 {model} 320 240 {parameters}\n")
    rows, mask = [], Image.new("L", (320, 240), 0)
    ImageDraw.Draw(mask).rectangle((100, 60, 219, 179), fill=255)
    for number, (camera, picture) in enumerate(zip(cameras, pictures, strict=True), start=1):
        pose = [*quaternion_of_rotation(camera.rotation), *camera.translation]
        rows.append(f"{number} {' '.join(map(repr, map(float, pose)))} 1 sub dir/{number}.png\n\n")
        bent(picture, lens, k).save(folder / "images" / "sub dir" / f"{number}.png")
        bent(mask, lens, k).save(folder / "masks" / "sub dir" / f"{number}.png")
    (sparse / "images.txt").write_text("".join(rows))
    points = [f"{n} {n % 3} {n // 3} 0.5 9 9 9 0.1\n" for n in range(1, 10)]
    (sparse / "points3D.txt").write_text("".join(points))
    return pictures


@pytest.mark.parametrize("model", ["SIMPLE_RADIAL", "OPENCV"])
def test_a_distorted_scene_is_made_straight(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = distorted_scene(tmp_path / "old", model)
    assert main(["train", "-s", str(tmp_path / "old"), "-m", str(tmp_path / "run"), "--dry-run"]) == 65
    assert "splatmeter scene undistort <this scene> <new scene>" in capsys.readouterr().err
    assert main(["scene", "undistort", str(tmp_path / "old"), str(tmp_path / "new")]) == 0
    scene = load_scene(SceneOptions(tmp_path / "new"))
    assert [view.name for view in scene.train] == [f"sub dir/{n}.png" for n in (1, 2, 3)]
    for view, picture in zip(scene.train, pictures, strict=True):
        camera, true = view.camera, np.asarray(picture).astype(float)
        with Image.open(view.photo.path) as image:
            straight = np.asarray(image.convert("RGB")).astype(float)
        y, x = np.mgrid[20 : camera.height - 20, 20 : camera.width - 20] + 0.5
        fx, fy = arc(1, 0, 320, 240)[0].fx, arc(1, 0, 320, 240)[0].fy
        columns = ((x - camera.cx) / camera.fx * fx + 160).astype(int)
        rows = ((y - camera.cy) / camera.fy * fy + 120).astype(int)
        difference = np.abs(straight[20:-20, 20:-20] - true[rows, columns]).mean()
        wrong = np.abs(straight[20:-20, 20:-20] - true[rows, np.clip(columns + 4, 0, 319)]).mean()
        assert difference < 0.6 * wrong
        assert view.photo.mask is not None
        with Image.open(view.photo.mask) as mask:
            shown = np.asarray(mask).astype(float) / 255
        expected = 120 * 120 * (camera.fx / fx) * (camera.fy / fy)
        assert shown.sum() == pytest.approx(expected, rel=0.03)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("model", ["OPENCV_FISHEYE", "FISHEYE", "OPENCV"])
def test_coefficients_of_zero_are_no_trap(tmp_path: Path, model: str) -> None:
    """The library would copy such photos; a fisheye must be warped, the other is a pinhole already."""
    distorted_scene(tmp_path / "old", model, 0.0)
    assert main(["scene", "undistort", str(tmp_path / "old"), str(tmp_path / "new")]) == 0
    scene = load_scene(SceneOptions(tmp_path / "new"))
    sizes = {(view.photo.width, view.photo.height) for view in scene.train}
    assert (sizes == {(320, 240)}) == (model == "OPENCV")
    for view in scene.train:
        with Image.open(view.photo.path) as image:
            assert image.size == (view.camera.width, view.camera.height)


def spoil_photo(scene: Path) -> None:
    (scene / "images" / "sub dir" / "2.png").write_bytes(b"nothing")


def cut_photo(scene: Path) -> None:
    path = scene / "images" / "sub dir" / "2.png"
    path.write_bytes(path.read_bytes()[:5000])


def resize_photo(scene: Path) -> None:
    Image.new("RGB", (160, 120)).save(scene / "images" / "sub dir" / "2.png")


@pytest.mark.parametrize(
    ("model", "spoil", "code", "words"),
    [
        ("EQUIRECTANGULAR", None, 65, "describes panoramas"),
        ("PINHOLE", None, 65, "is not distorted. Train on it as it is"),
        ("OPENCV", spoil_photo, 65, "2.png is not a readable image"),
        ("OPENCV", cut_photo, 65, "sub dir/2.png: It cannot be decoded"),
        ("OPENCV", resize_photo, 65, "is 160x120 but its camera 320x240"),
        ("OPENCV", lambda s: (s / "images" / "sub dir" / "2.png").unlink(), 66, "1 of 3 photos"),
        (
            "OPENCV",
            lambda s: shutil.rmtree(s / "sparse"),
            66,
            "does not exist. Name a folder that COLMAP made",
        ),
        ("OPENCV", lambda s: (s / "sparse/0/points3D.txt").write_text("x"), 65, "is not a point"),
        ("OPENCV", lambda s: (s / "sparse/0/images.txt").write_text(""), 65, "names no photos"),
    ],
)
def test_scenes_that_cannot_be_undistorted_say_why(
    tmp_path: Path, model: str, spoil: object, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    distorted_scene(tmp_path / "old", model, 0.0)
    if callable(spoil):
        spoil(tmp_path / "old")
    assert main(["scene", "undistort", str(tmp_path / "old"), str(tmp_path / "new")]) == code
    shown = capsys.readouterr().err
    assert words in shown and shown.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def as_transforms(source: Path, model: str, k: float) -> dict[str, object]:
    """What nerfstudio would say about a scene of `distorted_scene`."""
    lens = arc(1, 0, 320, 240)[0]
    frames = []
    for number, camera in enumerate(three_views()[0], start=1):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = camera.rotation.T, camera.position
        pose[:3, 1:3] *= -1
        name = f"sub dir/{number}.png"
        matrix = pose.tolist()
        frames.append(
            {"file_path": f"images/{name}", "mask_path": f"masks/{name}", "transform_matrix": matrix}
        )
    whole = {"fl_x": lens.fx, "fl_y": lens.fy, "cx": lens.cx, "cy": lens.cy, "w": 320, "h": 240}
    shutil.rmtree(source / "sparse")
    return {**whole, "camera_model": model, "k1": k, "frames": frames}


def test_a_distorted_transforms_file_becomes_the_scene_that_colmaps_files_would(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    distorted_scene(tmp_path / "colmap", "OPENCV")
    distorted_scene(tmp_path / "studio", "OPENCV")
    camera = (tmp_path / "colmap" / "sparse" / "0" / "cameras.txt").read_text().split()
    content = as_transforms(tmp_path / "studio", "OPENCV", float(camera[8]))
    (tmp_path / "studio" / "transforms.json").write_text(json.dumps(content))
    assert main(["train", "-s", str(tmp_path / "studio"), "-m", str(tmp_path / "run"), "--dry-run"]) == 65
    assert "splatmeter scene undistort <this scene> <new scene>" in capsys.readouterr().err
    for name in ("colmap", "studio"):
        assert main(["scene", "undistort", str(tmp_path / name), str(tmp_path / f"new {name}")]) == 0
    one, two = (load_scene(SceneOptions(tmp_path / f"new {name}")) for name in ("colmap", "studio"))
    assert two.points.count == 100_000 and len(one.train) == len(two.train) == 3
    for ours, theirs in zip(one.train, two.train, strict=True):
        np.testing.assert_allclose(theirs.camera.rotation, ours.camera.rotation, atol=1e-9)
        np.testing.assert_allclose(theirs.camera.translation, ours.camera.translation, atol=1e-9)
        assert theirs.name == ours.name and theirs.camera.fx == pytest.approx(ours.camera.fx)
        assert theirs.photo.path.read_bytes() == ours.photo.path.read_bytes()
        assert theirs.photo.mask is not None and ours.photo.mask is not None
        assert theirs.photo.mask.read_bytes() == ours.photo.mask.read_bytes()
