"""Small functions of the way from photos to a scene, each on its own."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pytest
from capture_stand_in import folder_of_photos, textured
from PIL import Image, ImageFilter

from splatmeter.capture import choose, exif, listing, pairs
from splatmeter.capture.cameras import guesses
from splatmeter.capture.choose import Candidate
from splatmeter.capture.job import CleanPhoto
from splatmeter.capture.jpeg import stripped
from splatmeter.capture.likeness import likeness
from splatmeter.capture.reasons import reasons
from splatmeter.capture.sharpness import judged, motion
from splatmeter.errors import InputError


def test_files_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    folder = folder_of_photos(tmp_path / "photos", 11)
    (folder / ".hidden.jpg").write_bytes(b"x")
    (folder / "__MACOSX").mkdir()
    (folder / "__MACOSX" / "IMG_1.jpg").write_bytes(b"x")
    (folder / "notes.txt").write_text("no photo")
    (folder / "raw.HEIC").write_bytes(b"x")
    found = listing.find(folder)
    assert [path.name for path in found.photos] == [f"IMG_{n}.jpg" for n in range(1, 12)]
    assert [path.name for path in found.foreign] == ["raw.HEIC"]


def test_a_masks_folder_within_the_photos_holds_no_photos(tmp_path: Path) -> None:
    folder = folder_of_photos(tmp_path / "photos")
    folder_of_photos(folder / "masks")
    assert len(listing.find(folder, folder / "masks").photos) == 4
    assert len(listing.find(folder).photos) == 8


def test_names_that_differ_in_ending_or_capitals_only_stay_apart() -> None:
    names = ["a/IMG_1.jpg", "a/IMG_1.PNG", "a/img_1.tif", "b/IMG_1.jpg", "a/IMG_1.png"]
    made = listing.final_names(names, [".jpg", ".png", ".png", ".jpg", ".png"])
    assert made == ["a/IMG_1.jpg", "a/IMG_1-png.png", "a/img_1-tif.png", "b/IMG_1.jpg", "a/IMG_1-2.png"]
    stems = [name.rsplit(".", 1)[0].casefold() for name in made]
    assert len(set(stems)) == len(stems)


def test_names_that_cannot_be_written_are_changed() -> None:
    assert listing.printable("a\nb\\c") == "a_b_c"
    assert listing.printable("ü ö.jpg") == "ü ö.jpg"
    listing.printable("broken\udcff.jpg").encode("utf-8")


def test_a_jpeg_loses_its_chatter_and_keeps_its_pixels() -> None:
    block = Image.Exif()
    block[exif.MAKE] = "SecretMaker"
    for progressive in (False, True):
        file = io.BytesIO()
        textured().save(file, "JPEG", exif=block, comment=b"SecretComment", progressive=progressive)
        data = file.getvalue() + b"SecretTrailer" + file.getvalue()
        clean = stripped(data)
        assert clean is not None and b"Secret" not in clean
        with Image.open(io.BytesIO(clean)) as after, Image.open(file) as before:
            assert np.array_equal(np.asarray(after), np.asarray(before))


@pytest.mark.parametrize(
    "data", [b"", b"\x89PNG", b"\xff\xd8", b"\xff\xd8\xff\xe1\xff\xff", b"\xff\xd8abcdef"]
)
def test_what_is_no_whole_jpeg_is_not_stripped(data: bytes) -> None:
    assert stripped(data) is None


def test_the_focal_length_comes_from_the_diagonal() -> None:
    size = (4000, 3000)
    assert exif.focal_in_pixels({exif.FOCAL_35MM: 26}, size) == pytest.approx(26 / math.hypot(36, 24) * 5000)
    sensor = {
        exif.FOCAL_LENGTH: 6.0,
        exif.PLANE_RESOLUTION: 500.0,
        exif.PLANE_UNIT: 4,
        exif.PIXELS_ACROSS: 4000,
    }
    assert exif.focal_in_pixels(sensor, size) == pytest.approx(3000)
    assert exif.focal_in_pixels(sensor, (2000, 1500)) == pytest.approx(1500)


@pytest.mark.parametrize(
    "tags",
    [
        {},
        {exif.FOCAL_35MM: 0},
        {exif.FOCAL_35MM: "wide"},
        {exif.FOCAL_35MM: 1},
        {exif.FOCAL_LENGTH: 5.0},
        {exif.FOCAL_35MM: 26, exif.PIXELS_ACROSS: 4000, exif.PIXELS_DOWN: 4000},
    ],
)
def test_a_focal_length_that_cannot_be_is_no_focal_length(tags: dict[int, object]) -> None:
    assert exif.focal_in_pixels(tags, (4000, 3000)) is None


def test_blur_takes_sharpness_away_and_size_does_not_decide() -> None:
    photo = textured(1, 640, 480)
    assert judged(photo.filter(ImageFilter.GaussianBlur(4))) < 0.3 * judged(photo)
    large = photo.resize((1280, 960), Image.Resampling.NEAREST)
    assert judged(large) == pytest.approx(judged(photo), rel=0.25)


def test_exposure_is_no_motion() -> None:
    thumbnail = np.asarray(textured(1, 48, 48).convert("L"))
    assert motion(thumbnail // 2, thumbnail // 2 + 40) < 0.01
    assert motion(thumbnail, np.roll(thumbnail, 8, axis=1)) > 10


def candidates(motions: list[float], sharp: list[float] | None = None) -> list[Candidate]:
    sharp = sharp or [1.0] * len(motions)
    return [Candidate(i, i / 10, s, m) for i, (m, s) in enumerate(zip(motions, sharp, strict=True))]


def test_frames_are_spread_by_motion_and_the_sharpest_wins() -> None:
    sharp = [1.0 + (i % 5 == 2) for i in range(50)]
    assert choose.choose_by_count(candidates([3.0] * 50, sharp), 10) == list(range(2, 50, 5))
    halting = choose.choose_by_count(candidates([3.0] * 50 + [0.0] * 200 + [3.0] * 50), 20)
    assert len([i for i in halting if 55 <= i < 245]) <= 1
    assert len(halting) >= 18


def test_a_camera_that_stands_still_gives_one_frame() -> None:
    assert len(choose.choose_by_count(candidates([0.1] * 100), 20)) == 1
    assert choose.choose_by_count([], 20) == []


def test_a_cut_does_not_eat_all_frames() -> None:
    chosen = choose.choose_by_count(candidates([2.0] * 50 + [200.0] + [2.0] * 49), 20)
    assert len(chosen) >= 17


def test_frames_by_time_are_one_a_period() -> None:
    chosen = choose.choose_by_time(candidates([1.0] * 100), 1.0)
    assert chosen == list(range(0, 100, 10))


def test_all_pairs_once() -> None:
    made = pairs.exhaustive(60)
    assert len(made) == len(set(made)) == 60 * 59 // 2
    assert all(one < other for one, other in made)


def test_a_sequence_looks_ahead_near_and_far() -> None:
    made = set(pairs.sequential(100))
    assert {(0, 1), (0, 10), (0, 16), (0, 32), (0, 64)} <= made
    assert (0, 11) not in made and (0, 20) not in made


def test_who_is_alike_is_compared() -> None:
    alike = np.eye(6, dtype=np.float32)
    alike[0, 5] = alike[5, 0] = 0.9
    assert (0, 5) in pairs.similar(alike, 1)
    assert (0, 5) not in pairs.similar(alike, 1, apart=6)
    count = 300
    made = pairs.planned("similar", count, np.random.default_rng(0).random((count, count)).astype(np.float32))
    assert len(made) < count * (pairs.SIMILAR + pairs.NEIGHBOURS_OF_MANY)
    assert all((n, n + 1) in set(made) for n in range(count - 1))


@pytest.mark.parametrize(
    ("photos", "video", "how"),
    [
        (3, False, "exhaustive"),
        (100, False, "exhaustive"),
        (101, False, "similar"),
        (101, True, "sequential"),
    ],
)
def test_the_way_of_matching_follows_the_number_of_photos(photos: int, video: bool, how: str) -> None:
    assert pairs.chosen_matching("auto", photos, video) == how
    assert pairs.chosen_matching("exhaustive", photos, video) == "exhaustive"


def test_photos_with_the_same_features_are_alike() -> None:
    """Six places, each seen twice: half of the features are shared."""
    generator = np.random.default_rng(0)
    places = [generator.integers(0, 255, (300, 128)).astype(np.uint8) for _ in range(6)]
    noise = [generator.integers(0, 255, (300, 128)).astype(np.uint8) for _ in range(12)]
    photos = [np.concatenate([places[i // 2], noise[i]]) for i in range(12)]
    alike = likeness(range(12), lambda number: photos[number], seed=0)
    np.fill_diagonal(alike, -1)
    assert alike.argmax(axis=1).tolist() == [i ^ 1 for i in range(12)]


def test_photos_without_features_are_alike_to_nobody() -> None:
    alike = likeness(range(3), lambda number: np.zeros((0, 128), np.uint8), seed=0)
    assert np.array_equal(alike, np.eye(3))


def photo(number: int, **changes: object) -> CleanPhoto:
    usual: dict[str, object] = {
        "number": number,
        "file": f"{number:06d}.jpg",
        "name": f"IMG_{number}.jpg",
        "width": 320,
        "height": 240,
        "sharpness": 100.0,
        "focal": None,
        "body": "x",
    }
    return CleanPhoto(**{**usual, **changes})  # type: ignore[arg-type]


def test_each_photo_without_a_place_gets_the_likely_reason() -> None:
    photos = [photo(n) for n in range(1, 5)]
    photos += [photo(5, sharpness=10.0), photo(6), photo(7), photo(8), photo(9)]
    features = {n: 2000 for n in range(1, 10)} | {6: 40}
    inliers = {(1, 2): 500, (2, 3): 400, (1, 7): 20, (1, 8): 300, (1, 9): 300}
    said = {p.name: p.reason for p in reasons(photos, [[1, 2, 3, 4], [9]], features, inliers)}
    assert set(said) == {f"IMG_{n}.jpg" for n in (5, 6, 7, 8, 9)}
    for number, word in (
        (5, "blurred"),
        (6, "40 features"),
        (7, "20 matches"),
        (8, "fits nowhere"),
        (9, "group"),
    ):
        assert word in said[f"IMG_{number}.jpg"]


def test_one_lens_for_each_camera_zoom_and_size() -> None:
    photos = [
        photo(1, focal=300.0),
        photo(2, focal=310.0),
        photo(3, body="y"),
        photo(4, width=240, height=320),
    ]
    made = guesses(photos, single=False)
    assert [(len(g.photos), g.focal, g.known) for g in made] == [
        (2, 305.0, True),
        (1, pytest.approx(384.0), False),
        (1, pytest.approx(384.0), False),
    ]
    with pytest.raises(InputError, match=r"one size.*320x240 \(3\), 240x320 \(1\)"):
        guesses(photos, single=True)
    assert len(guesses(photos[:3], single=True)) == 1
