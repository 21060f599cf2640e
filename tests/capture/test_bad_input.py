"""What people point at by mistake: one sentence each, an exit code, and nothing left behind."""

from __future__ import annotations

import functools
import importlib
import os
import re
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from capture_stand_in import InProcess, folder_of_photos, textured
from PIL import Image

from splatmeter.capture.from_photos import from_photos
from splatmeter.cli.main import main

NOBODY = 65534
Make = Callable[[Path], Path]
"""Puts something into a folder and names what the command is pointed at."""


def photos_and(change: Callable[[Path], object], count: int = 4) -> Make:
    def make(folder: Path) -> Path:
        photos = folder_of_photos(folder / "photos", count)
        change(photos)
        return photos

    return make


def only(*names: str, data: bytes = b"this is no picture") -> Make:
    def make(folder: Path) -> Path:
        photos = folder / "photos"
        photos.mkdir()
        for name in names:
            (photos / name).write_bytes(data)
        return photos

    return make


def file(name: str, data: bytes) -> Make:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return make


def thumbnails(folder: Path) -> Path:
    photos = folder / "photos"
    photos.mkdir()
    textured(0, 64, 64).save(photos / "0.jpg")
    for number in range(1, 2000):
        os.link(photos / "0.jpg", photos / f"{number}.jpg")
    return photos


def pictures(*made: Image.Image, name: str = "{}.png") -> Make:
    def make(folder: Path) -> Path:
        photos = folder / "photos"
        photos.mkdir()
        for number, picture in enumerate(made):
            picture.save(photos / name.format(number))
        return photos

    return make


def around(seed: int) -> Image.Image:
    """As a camera with two fisheyes writes the whole sphere, without saying so in a mark."""
    half = np.asarray(textured(seed, 400, 400))  # [h, w, 3]
    whole = np.concatenate([half, half[:, ::-1]], axis=1)
    whole[:20] = whole[:20].mean(axis=(0, 1))
    return Image.fromarray(whole)


def bombs(folder: Path) -> Path:
    """60,000 x 60,000 pixels in a few bytes."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0))
    data = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(999))) + chunk(b"IEND", b"")
    return only("a.png", "b.png", "c.png", data=data)(folder)


def cut(photos: Path) -> None:
    for path in photos.iterdir():
        path.write_bytes(path.read_bytes()[:3000])


def wrong_mask(photos: Path) -> None:
    (photos / "masks").mkdir()
    Image.new("L", (10, 100), 255).save(photos / "masks" / "IMG_1.png")


def foreign_masks(photos: Path) -> None:
    (photos / "masks").mkdir()
    Image.new("L", (320, 240), 255).save(photos / "masks" / "other.png")


CASES: dict[str, tuple[Make, int, str]] = {
    "nothing there": (lambda folder: folder / "nowhere", 66, "does not exist. Name a folder of photos"),
    "an empty folder": (only(), 65, "holds no photos"),
    "a folder of empty folders": (
        photos_and(lambda p: (p / "a" / "b").mkdir(parents=True), 0),
        65,
        "holds no photos",
    ),
    "documents": (only("a.txt", "b.pdf"), 65, "holds no photos"),
    "one photo": (photos_and(lambda p: None, 1), 65, "holds one photo; at least 3"),
    "two photos": (photos_and(lambda p: None, 2), 65, "holds 2 photos; at least 3"),
    "a photo instead of a folder": (file("a.jpg", b"x"), 65, "is one photo. Name the folder"),
    "a text file": (file("a.txt", b"x"), 65, "neither a folder of photos nor a video"),
    "iPhone files": (only("a.HEIC", "b.heic"), 65, "HEIC files only.*Export them as JPEG"),
    "a folder with a video": (only("a.mp4"), 65, "Name the video itself"),
    "text files named .jpg": (only("a.jpg", "b.jpg", "c.jpg"), 65, "a.jpg: It is not a readable image"),
    "empty files": (only("a.png", "b.png", "c.png", data=b""), 65, "a.png: It is not a readable image"),
    "cut-off photos": (photos_and(cut), 65, "Only 0 of 4 photos can be used.*cut off.*Copy it again"),
    "2,000 thumbnails": (thumbnails, 65, "thumbnail of 64 pixels. Use the photo as the camera stored it"),
    "panoramas": (pictures(*[textured(n, 1200, 240) for n in range(3)]), 65, "It is a panorama"),
    "equirectangular ones": (pictures(*[around(n) for n in range(3)]), 65, "Only 0 of 3.*It is a panorama"),
    "animations": (pictures(*[textured(n) for n in range(3)], name="{}.gif"), 65, "GIF files only"),
    "an animation": (file("a.gif", b"GIF89a"), 65, "is a GIF of few colours. Name the video or the photos"),
    "raw files": (only("a.CR2", "b.nef", "c.dng"), 65, "CR2 files only, which are not read here"),
    "an audio file": (file("a.mp3", b"ID3"), 65, "neither a folder of photos nor a video"),
    "a bomb": (bombs, 65, "claims to have more than 178 million pixels. Shrink it, or leave it out"),
    "a name of two lines": (lambda folder: folder / "a\nb\x1b[31m", 66, r"a\\nb\\x1b\[31m does not exist"),
    "floating point": (
        pictures(*[Image.fromarray(np.zeros((240, 320), np.float32))] * 3, name="{}.tif"),
        65,
        "floating-point pixels",
    ),
    "a mask of another shape": (photos_and(wrong_mask), 65, "The mask .* is 10x100"),
    "masks of other photos": (photos_and(foreign_masks), 66, "holds no mask for any"),
    "a scene": (photos_and(lambda p: (p / "sparse").mkdir()), 65, "is a scene already. Train on it"),
    "pictures of nothing": (pictures(*[Image.new("RGB", (320, 240))] * 2), 65, "holds 2 photos"),
}


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The command line, with an engine that pretends."""
    pretended = functools.partial(from_photos, child=InProcess())
    monkeypatch.setattr("splatmeter.cli.scene_photos.from_photos", pretended)
    return lambda *words: main(["scene", "from-photos", *map(str, words)])


def one_sentence(shown: str) -> str:
    lines = [line for line in shown.splitlines() if ": done" not in line]
    assert len(lines) == 1 and "Traceback" not in shown, shown
    return lines[0]


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_gets_one_sentence_and_leaves_nothing(
    name: str, tmp_path: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of `scene from-photos` and, but for a scene, which it takes, of `make`."""
    make, code, words = CASES[name]
    source, out = make(tmp_path), tmp_path / "scene"
    before = set(tmp_path.iterdir())
    assert command(source, out) == code
    assert re.search(words, one_sentence(capsys.readouterr().err))
    assert set(tmp_path.iterdir()) == before
    if name != "a scene":
        assert main(["make", str(source), "-o", str(out)]) == code
        assert re.search(words, one_sentence(capsys.readouterr().err))
        assert set(tmp_path.iterdir()) == before


def test_what_can_be_used_is_used(
    tmp_path: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """One bad file of each kind among good ones, names with spaces and letters of the world, sub-folders."""
    photos = folder_of_photos(tmp_path / "my photos", 4)
    (photos / "text.jpg").write_text("no picture")
    (photos / "cut.jpg").write_bytes((photos / "IMG_1.jpg").read_bytes()[:3000])
    textured(5, 160, 120).save(photos / "small.jpg")
    (photos / "sub folder").mkdir()
    textured(6).save(photos / "sub folder" / "Ünïcode 写真.png")
    textured(7).save(photos / "IMG_1.png")
    textured(8).convert("CMYK").save(photos / "cmyk.jpg")
    Image.fromarray(np.asarray(textured(9).convert("L")).astype(np.uint16) * 257).save(photos / "sixteen.png")
    textured(10, 400, 300).save(photos / "larger.jpg")
    assert command(photos, tmp_path / "scene") == 0
    shown = capsys.readouterr().out
    assert "9 of 12 have found their place" in shown
    for name in ("text.jpg", "cut.jpg", "small.jpg"):
        assert f"{name}: It " in shown
    images = tmp_path / "scene" / "images"
    written = {path.relative_to(images).as_posix() for path in images.rglob("*.*")}
    assert {"sub folder/Ünïcode 写真.png", "IMG_1.jpg", "IMG_1-png.png", "cmyk.jpg", "sixteen.png"} <= written


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("photos", "is where the photos are"),
        ("photos/scene", "lies inside"),
        (".", "holds the photos"),
        ("full", "exists and is not the scene of this command"),
        ("file", "exists and is not the scene of this command"),
        ("file/scene", "cannot be made"),
    ],
)
def test_a_place_that_is_taken_is_refused(
    place: str, words: str, tmp_path: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    photos = folder_of_photos(tmp_path / "photos")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    before = sorted(path.as_posix() for path in tmp_path.rglob("*"))
    assert command(photos, tmp_path / place) == 73
    assert words in one_sentence(capsys.readouterr().err)
    assert sorted(path.as_posix() for path in tmp_path.rglob("*")) == before


@pytest.fixture
def ordinary(command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> Iterator[Path]:
    """A folder of somebody who may not do everything, as the superuser may: he steps aside for the test."""
    if not hasattr(os, "geteuid"):
        pytest.skip("this system has other permissions")
    with tempfile.TemporaryDirectory(prefix="splatmeter-") as name:
        folder = Path(name)
        command(folder_of_photos(folder / "warm up"), folder / "scene 0")
        importlib.import_module("splatmeter.cli.make")  # later this Python's files may not be readable
        capsys.readouterr()
        folder.chmod(0o777)
        before = os.geteuid()
        if before == 0:
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            if before == 0:
                os.seteuid(before)


def test_permissions_are_respected(
    ordinary: Path, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    photos = folder_of_photos(ordinary / "photos")
    (photos / "IMG_2.jpg").chmod(0)
    assert command(photos, ordinary / "scene") == 0
    assert "IMG_2.jpg: It cannot be read (Permission denied)" in capsys.readouterr().out
    (ordinary / "locked").mkdir(mode=0o500)
    assert command(photos, ordinary / "locked" / "scene") == 73
    assert "Permission denied" in one_sentence(capsys.readouterr().err)
    assert main(["make", str(photos), "-o", str(ordinary / "locked" / "out")]) == 73
    assert "Permission denied" in one_sentence(capsys.readouterr().err)
    photos.chmod(0)
    assert command(photos, ordinary / "other") == 65
    assert "cannot be read. Check its permissions." in one_sentence(capsys.readouterr().err)
    photos.chmod(0o700)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--max-size", "10"], "--max-size is 10"),
        (["--frames", "1"], "--frames is 1"),
        (["--every", "0"], "--every is 0"),
        (["--every", "nan"], "--every is nan"),
        (["--seed", "-1"], "out of range"),
        (["--threads", "0"], "--threads is 0"),
        (["--matching", "guess"], "--matching"),
        (["--camera-model", "EQUIRECTANGULAR"], "--camera-model"),
    ],
)
def test_options_that_make_no_sense(
    words: list[str], complaint: str, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("photos", "scene", *words) == 64
    assert complaint in one_sentence(capsys.readouterr().err)
