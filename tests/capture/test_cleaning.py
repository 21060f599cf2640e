"""One photo on its way into the work folder: upright, 8 bits, small enough, nothing said about anybody."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from capture_stand_in import textured
from numpy.typing import NDArray
from PIL import Image

from splatmeter.capture import exif
from splatmeter.capture.prepare import Unusable, prepare
from splatmeter.errors import InputError


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name in ("photos", "masks"):
        (tmp_path / "work" / name).mkdir(parents=True)
    return tmp_path / "work"


def pixels_of(path: Path) -> NDArray[np.uint8]:
    with Image.open(path) as image:
        return np.asarray(image)


def block(orientation: int = 1) -> Image.Exif:
    made = Image.Exif()
    made[exif.ORIENTATION] = orientation
    made[exif.MAKE] = "SecretMaker"
    made.get_ifd(exif.EXIF_BLOCK)[exif.FOCAL_35MM] = 26
    made.get_ifd(0x8825)[2] = (48.0, 8.0, 15.0)  # latitude
    return made


def test_a_jpeg_that_needs_no_change_keeps_its_pixels(tmp_path: Path, work: Path) -> None:
    path = tmp_path / "a.jpg"
    textured().save(path, quality=80, exif=block())
    made = prepare(path, None, work, 7, 1600)
    assert (made.file, made.width, made.height, made.mask) == ("000007.jpg", 320, 240, False)
    assert made.lens.focal == pytest.approx(26 / 43.2666 * 400, rel=1e-4)
    written = work / "photos" / made.file
    assert b"Secret" not in written.read_bytes() and b"Exif" not in written.read_bytes()
    assert np.array_equal(pixels_of(written), pixels_of(path))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("max_size", [1600, 320])
def test_photos_stand_upright(tmp_path: Path, work: Path, orientation: int, max_size: int) -> None:
    """The corner that is shown at the upper left must be there, whatever way the camera was held."""
    shown = np.zeros((240, 480, 3), np.uint8)
    shown[:120, :240] = 255
    flip, turn = Image.Transpose, Image.Transpose
    as_stored = {
        2: flip.FLIP_LEFT_RIGHT,
        3: turn.ROTATE_180,
        4: flip.FLIP_TOP_BOTTOM,
        5: flip.TRANSPOSE,
        6: turn.ROTATE_90,
        7: flip.TRANSVERSE,
        8: turn.ROTATE_270,
    }
    stored = Image.fromarray(shown)
    stored = stored.transpose(as_stored[orientation]) if orientation > 1 else stored
    path = tmp_path / "a.jpg"
    stored.save(path, quality=95, exif=block(orientation))
    made = prepare(path, None, work, 1, max_size)
    assert (made.width, made.height) == ((480, 240) if max_size == 1600 else (320, 160))
    pixels = pixels_of(work / "photos" / made.file).astype(int)
    height, width = pixels.shape[:2]
    assert pixels[: height // 2 - 4, : width // 2 - 4].min() > 240
    assert pixels[height // 2 + 4 :].max() < 15 and pixels[:, width // 2 + 4 :].max() < 15
    assert b"Secret" not in (work / "photos" / made.file).read_bytes()
    assert made.lens.focal == pytest.approx(26 / 43.2666 * np.hypot(made.width, made.height), rel=1e-3)


def test_a_scene_that_exists_is_taken_as_it_lies(tmp_path: Path, work: Path) -> None:
    path = tmp_path / "a.jpg"
    textured().save(path, exif=block(6))
    made = prepare(path, None, work, 1, 10**6, turn=False)
    assert (made.width, made.height) == (320, 240)


@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        ("I;16", ".png"),
        ("CMYK", ".jpg"),
        ("L", ".jpg"),
        ("L", ".png"),
        ("1", ".png"),
        ("P", ".png"),
        ("LA", ".png"),
    ],
)
def test_every_kind_of_picture_becomes_eight_bits_of_rgb(
    tmp_path: Path, work: Path, kind: str, ending: str
) -> None:
    path = tmp_path / f"a{ending}"
    grey = textured().convert("L")
    if kind == "I;16":
        Image.fromarray(np.asarray(grey).astype(np.uint16) * 257).save(path)
    else:
        grey.convert("RGB").convert(kind, palette=Image.Palette.ADAPTIVE).save(path)
    made = prepare(path, None, work, 1, 1600)
    with Image.open(work / "photos" / made.file) as image:
        assert image.mode in ("RGB", "L") and image.size == (320, 240)
        difference = np.abs(np.asarray(image.convert("L")).astype(int) - np.asarray(grey).astype(int))
    assert kind == "1" or difference.mean() < 6


def test_transparency_becomes_a_mask(tmp_path: Path, work: Path) -> None:
    pixels = np.asarray(textured().convert("RGBA")).copy()
    pixels[:, :160, 3] = 0
    Image.fromarray(pixels).save(tmp_path / "a.png")
    made = prepare(tmp_path / "a.png", None, work, 3, 1600)
    assert made.mask and made.hidden
    mask = pixels_of(work / "masks" / "000003.png")
    assert mask[:, :160].max() == 0 and mask[:, 160:].min() == 255
    assert pixels_of(work / "photos" / "000003.png").shape == (240, 320, 3)


def test_a_mask_follows_its_photo_when_that_is_turned_and_shrunk(tmp_path: Path, work: Path) -> None:
    textured().save(tmp_path / "a.jpg", exif=block(6))
    grey = np.zeros((240, 320), np.uint8)
    grey[:120] = 255  # the stored photo's upper half; turned clockwise, that is the right half
    Image.fromarray(grey).save(tmp_path / "stored.png")
    Image.fromarray(np.rot90(grey, -1)).save(tmp_path / "upright.png")
    for name in ("stored.png", "upright.png"):
        prepare(tmp_path / "a.jpg", tmp_path / name, work, 1, 200)
        mask = pixels_of(work / "masks" / "000001.png")
        assert mask.shape == (200, 150)
        assert mask[:, :70].max() == 0 and mask[:, 80:].min() == 255


def test_a_mask_of_another_shape_is_refused(tmp_path: Path, work: Path) -> None:
    textured().save(tmp_path / "a.jpg")
    Image.new("L", (100, 100), 255).save(tmp_path / "m.png")
    with pytest.raises(InputError, match="100x100, its photo 320x240"):
        prepare(tmp_path / "a.jpg", tmp_path / "m.png", work, 1, 1600)
    Image.new("L", (320, 240), 1).save(tmp_path / "m.png")
    with pytest.raises(InputError, match="only 0 and 1"):
        prepare(tmp_path / "a.jpg", tmp_path / "m.png", work, 1, 1600)


def test_photos_that_cannot_be_used_say_why_without_saying_where(tmp_path: Path, work: Path) -> None:
    whole = tmp_path / "whole.jpg"
    textured().save(whole)
    cases = {
        "text.jpg": b"this is no picture",
        "cut.jpg": whole.read_bytes()[:4000],
        "empty.png": b"",
        "pano.jpg": whole.read_bytes().replace(
            b"\xff\xdb", b"\xff\xfe\x00\x16GPano:ProjectionType\xff\xdb", 1
        ),
    }
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
    textured(0, 160, 120).save(tmp_path / "small.jpg")
    textured(0, 1200, 240).save(tmp_path / "wide.jpg")
    Image.fromarray(np.zeros((240, 320), np.float32)).save(tmp_path / "float.tif")
    words = {
        "text.jpg": "not a readable image",
        "cut.jpg": "cannot be decoded",
        "empty.png": "not a readable image",
        "pano.jpg": "panorama",
        "small.jpg": "thumbnail of 160 pixels",
        "wide.jpg": "panorama",
        "float.tif": "floating-point",
    }
    for name, word in words.items():
        with pytest.raises(Unusable) as caught:
            prepare(tmp_path / name, None, work, 1, 1600)
        assert word in caught.value.reason, name
        assert str(tmp_path) not in caught.value.reason and caught.value.advice
