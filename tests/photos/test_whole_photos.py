"""A cut-off photo is found by its end, and none is accused wrongly."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from splatmeter.errors import InputError
from splatmeter.photos.photo import Photo
from splatmeter.photos.whole import looks_whole, require_whole

GENERATOR = np.random.default_rng(7)
ENDINGS = ("jpg", "png", "webp", "bmp", "gif", "tif")
SCENES = Path(__file__).parents[3] / "shared" / "data" / "scenes"


def saved(folder: Path, ending: str, **options: object) -> Path:
    smooth = np.cumsum(GENERATOR.integers(0, 3, (90, 120, 3)), axis=0).astype(np.uint8)
    path = folder / f"photo.{ending}"
    Image.fromarray(smooth).save(path, **options)
    return path


def require(path: Path) -> None:
    require_whole([Photo(path, 120, 90)])


@pytest.mark.parametrize("ending", ENDINGS)
def test_whole_photos_look_whole_and_cut_ones_are_refused(tmp_path: Path, ending: str) -> None:
    path = saved(tmp_path, ending)
    assert looks_whole(path)
    require(path)
    whole = path.read_bytes()
    for share in (0.3, 0.6, 0.9):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(InputError, match=r"photo\.\w+ is cut off\. Copy it again"):
            require(path)


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize(
    "appended", [b"\0" * 30, b"\0" * 200_000, b"\0\0\0\x18ftypmp42" + bytes(range(200)) * 1000, b"SEFT"]
)
def test_what_phones_append_to_a_jpeg_does_not_matter(
    tmp_path: Path, progressive: bool, appended: bytes
) -> None:
    path = saved(tmp_path, "jpg", progressive=progressive)
    path.write_bytes(path.read_bytes() + appended)
    assert looks_whole(path)


def test_a_whole_thumbnail_in_a_cut_off_jpeg_is_not_its_end(tmp_path: Path) -> None:
    thumbnail = saved(tmp_path, "jpg").read_bytes()
    path = saved(tmp_path, "jpg", exif=b"Exif\0\0" + thumbnail)
    data = path.read_bytes()
    assert data.count(b"\xff\xd9") == 2 and looks_whole(path)
    path.write_bytes(data[: len(data) - 400])
    assert not looks_whole(path)
    with pytest.raises(InputError, match="is cut off"):
        require(path)


def test_a_photo_that_lacks_only_its_last_mark_and_can_be_decoded_is_not_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, "png")
    path.write_bytes(path.read_bytes()[:-8])
    assert not looks_whole(path)
    require(path)


def test_several_are_counted_and_masks_are_looked_at_too(tmp_path: Path) -> None:
    photo, mask = saved(tmp_path, "jpg"), saved(tmp_path, "png")
    for path in (photo, mask):
        path.write_bytes(path.read_bytes()[:-900])
    with pytest.raises(InputError, match=r"2 of 2 photos and masks are cut off \(first: .*photo.jpg\)"):
        require_whole([Photo(photo, 120, 90, mask)])


def test_real_photos_cut_anywhere_are_found_and_none_falsely(tmp_path: Path) -> None:
    files = sorted(p for p in SCENES.rglob("*") if p.suffix in (".jpg", ".png")) if SCENES.is_dir() else []
    if not files:
        pytest.skip("the shared scenes are not here: real photos were not cut")
    assert all(looks_whole(path) for path in files)
    draw = random.Random(3)
    for path in draw.sample(files, 60):
        data = path.read_bytes()
        cut = tmp_path / path.name
        cut.write_bytes(data[: draw.randrange(1, len(data) - 100)])
        with pytest.raises(InputError):
            require(cut)
