"""Photos become planar 8-bit arrays; broken ones become a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from splatmeter.errors import InputError, MissingFile
from splatmeter.photos.photo import Photo, over_background, read, same_shape, size_of

GENERATOR = np.random.default_rng(5)
WHITE = (255, 255, 255)


def saved(path: Path, pixels: np.ndarray, mode: str | None = None) -> Path:
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(path)
    return path


def noise(*shape: int) -> np.ndarray:
    return GENERATOR.integers(0, 256, shape, np.uint8)


def test_an_opaque_photo_at_its_own_size_is_what_the_file_holds(tmp_path: Path) -> None:
    pixels = noise(5, 7, 3)
    result = read(Photo(saved(tmp_path / "a.png", pixels), 7, 5))
    assert result.dtype == np.uint8 and result.flags.c_contiguous
    np.testing.assert_array_equal(result, pixels.transpose(2, 0, 1))


def test_the_size_is_known_without_decoding(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.png", noise(30, 40, 3))
    path.write_bytes(path.read_bytes()[:60])  # the header only
    assert size_of(path) == (40, 30)


def test_resizing_is_pillows_bicubic(tmp_path: Path) -> None:
    pixels = noise(31, 40, 3)
    expected = np.asarray(Image.fromarray(pixels).resize((10, 8), Image.Resampling.BICUBIC))
    result = read(Photo(saved(tmp_path / "a.png", pixels), 10, 8))
    np.testing.assert_array_equal(result, expected.transpose(2, 0, 1))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
def test_every_usual_mode_is_accepted(tmp_path: Path, mode: str) -> None:
    path = saved(tmp_path / ("a.tiff" if mode == "CMYK" else "a.png"), noise(6, 8, 4), mode)
    assert read(Photo(path, 4, 3)).shape == (3, 3, 4)


def test_sixteen_bit_grey_keeps_its_brightness(tmp_path: Path) -> None:
    grey = np.array([[0, 256, 32768, 65535]], np.uint16)
    Image.fromarray(grey).save(tmp_path / "a.png")
    assert read(Photo(tmp_path / "a.png", 4, 1))[0].tolist() == [[0, 1, 128, 255]]


def test_transparency_shows_the_background_also_in_palette_photos(tmp_path: Path) -> None:
    palette = Image.new("P", (2, 1), 0)
    palette.putpalette([200, 100, 50, 1, 2, 3])
    palette.putpixel((1, 0), 1)
    palette.save(tmp_path / "a.png", transparency=0)
    assert read(Photo(tmp_path / "a.png", 2, 1, background=WHITE)).reshape(3, 2).T.tolist() == [
        [255] * 3,
        [1, 2, 3],
    ]


def test_compositing_truncates_the_float64_expression_of_the_original() -> None:
    values, alphas = (grid.astype(np.uint8) for grid in np.meshgrid(np.arange(256), np.arange(256)))
    pixels = np.repeat(values[..., None], 3, axis=2)
    differing = 0
    for white in (0, 1):
        result = over_background(pixels, alphas, (255 * white,) * 3)[..., 1]
        value, alpha = values / 255.0, alphas / 255.0
        np.testing.assert_array_equal(result, ((value * alpha + white * (1 - alpha)) * 255).astype(np.uint8))
        exact = (values.astype(int) * alphas + 255 * white * (255 - alphas.astype(int))) // 255
        differing += int((exact != result).sum())
    assert differing == 306  # counted independently for the specification


def test_opaque_and_invisible_pixels_are_exact() -> None:
    pixels = noise(4, 4, 3)
    opaque = over_background(pixels, np.full((4, 4), 255, np.uint8), WHITE)
    np.testing.assert_array_equal(opaque, pixels)
    assert (over_background(pixels, np.zeros((4, 4), np.uint8), (9, 0, 255)) == [9, 0, 255]).all()


def test_a_mask_takes_the_place_of_alpha(tmp_path: Path) -> None:
    pixels = noise(2, 2, 3)
    mask = saved(tmp_path / "m.png", np.array([[255, 0], [0, 255]], np.uint8))
    result = read(Photo(saved(tmp_path / "a.png", pixels), 2, 2, mask))
    expected = pixels * np.array([[1, 0], [0, 1]], np.uint8)[..., None]
    np.testing.assert_array_equal(result, expected.transpose(2, 0, 1))


def test_a_full_size_mask_serves_a_shrunk_photo(tmp_path: Path) -> None:
    mask = np.zeros((40, 40), np.uint8)
    mask[:, 20:] = 255
    photo = Photo(
        saved(tmp_path / "a.png", np.full((10, 10, 3), 200, np.uint8)),
        10,
        10,
        saved(tmp_path / "m.png", mask),
    )
    row = read(photo)[0, 5]
    assert row[:4].tolist() == [0] * 4 and row[6:].tolist() == [200] * 4


@pytest.mark.parametrize(
    ("mask", "complaint"),
    [(np.ones((10, 10), np.uint8), "only 0 and 1"), (np.zeros((10, 30), np.uint8), "same frame")],
)
def test_masks_that_cannot_be_meant_are_refused(tmp_path: Path, mask: np.ndarray, complaint: str) -> None:
    photo = Photo(saved(tmp_path / "a.png", noise(10, 10, 3)), 10, 10, saved(tmp_path / "m.png", mask))
    with pytest.raises(InputError, match=complaint):
        read(photo)


def test_a_missing_photo_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"gone\.jpg"):
        read(Photo(tmp_path / "gone.jpg", 2, 2))


@pytest.mark.parametrize("content", [b"", b"hello", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0"])
def test_what_is_not_an_image_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "odd.jpg").write_bytes(content)
    with pytest.raises(InputError, match=r"odd\.jpg"):
        size_of(tmp_path / "odd.jpg")


@pytest.mark.parametrize("ending", ["png", "jpg"])
def test_a_truncated_photo_is_refused_not_half_shown(tmp_path: Path, ending: str) -> None:
    path = saved(tmp_path / f"cut.{ending}", noise(64, 64, 3))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match=f"cut.{ending}.*cut off"):
        read(Photo(path, 64, 64))


def test_a_decompression_bomb_is_refused_by_its_header(tmp_path: Path) -> None:
    path = tmp_path / "bomb.ppm"
    path.write_bytes(b"P6 30000 30000 255\n" + bytes(30))
    with pytest.raises(InputError, match=r"bomb\.ppm claims"):
        size_of(path)


def test_a_folder_in_place_of_a_photo_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        size_of(tmp_path)


def test_shapes_are_the_same_up_to_rounding() -> None:
    assert same_shape((5187, 3361), (1297, 840)) and same_shape((5187, 3361), (648, 420))
    assert not same_shape((400, 300), (300, 400))
    assert not same_shape((400, 300), (400, 320))
